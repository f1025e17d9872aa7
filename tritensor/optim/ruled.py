"""Optimizers that are declared: by their options, a rule for every element, and a schedule for the rule's numbers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from math import inf
from operator import attrgetter
from typing import Any, ClassVar, TypeVar, dataclass_transform

import numpy as np

from ..autograd.mode import enable_grad, no_grad
from ..drivers.capture import capturing
from ..errors import ArgumentError, DeviceError, DtypeError, RangeError, explain
from ..functional.creation.creation import tensor, zeros
from ..functional.views.complex_views import view_as_real
from ..ground.arguments import check_flag, check_number
from ..ground.composing import compose
from ..kernels.optimizer.multi_tensor import Tables, count_changes
from ..kernels.optimizer.rates import Schedule
from ..kernels.optimizer.rules import Update
from ..kernels.optimizer.steps import Large, Step
from ..kernels.optimizer.words import ARRAYS, TENSORS, spoken
from ..memory.array import DeviceArray
from ..memory.sparse import Sparse
from ..runtime.choice import allowed
from ..tensors import Tensor, wrap
from ..types import Device
from ..types.dtypes import float32
from .optimizer import Optimizer, new_state, no_numbers

Kind = TypeVar("Kind", bound="type[Declared]")
_Parameter = inspect.Parameter
_DATA, _GRADIENT, _FORM = map(attrgetter, ("_data", "_grad", "form"))
_POSITIONAL: Any = _Parameter.POSITIONAL_OR_KEYWORD
_BY_NAME: Any = _Parameter.KEYWORD_ONLY


def check_rate(lr: Any, fits: Callable[[Any], Any], words: str = "Invalid learning rate: {}") -> None:
    """Raise unless the learning rate is a number, or a tensor of one element, that fits."""
    if isinstance(lr, Tensor):
        if lr.numel() != 1:
            raise ValueError(explain("Tensor lr must be 1-element", f"it has shape {tuple(lr.shape)}"))
        lr = lr.item()
    check_number("lr", lr, fits, words.format(lr))


def pair(name: str, values: Any, fits: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Two numbers, each found to fit.

    Raises:
        RangeError: there are fewer, which Python tells in the same words as in PyTorch. ValueError: there are more, or
        one is out of range. ArgumentError: a number, or one of them is none.
    """
    fact, remedy = f"{name} is {values!r}", f"pass two numbers, as {name}=(0.9, 0.999)"
    try:
        for position in (0, 1):
            words = f"Invalid {name[:-1]} parameter at index {position}: {values[position]}"
            check_number(f"{name}[{position}]", values[position], fits, words)
    except IndexError as error:
        raise RangeError(str(error), fact, remedy=remedy) from None
    except ArgumentError:
        raise
    except (KeyError, TypeError) as error:
        raise ArgumentError(str(error), fact, remedy=remedy) from None
    if len(values) > 2:  # PyTorch raises this at the first step
        raise ValueError(explain("too many values to unpack (expected 2)", fact, remedy=remedy))
    return tuple(values)


@dataclass_transform(eq_default=False)
def optimizer(schedule: Any = None, *rules: Any) -> Callable[[Kind], Kind]:
    """A decorator of optimizers whose annotated fields, with their defaults, are the parameters of the constructor.

    They follow `params` and those of the base; what follows a field named `_` is passed by name.

    Args:
        schedule, rules: for a `Ruled` one, from `kernels/optimizer/rules.py`; a rule for each choice of `_switched`.
    """

    def declare(cls: Kind) -> Kind:
        fields, kind = dict(cls._fields), _POSITIONAL
        for name, annotation in inspect.get_annotations(cls).items():
            if name == "_":
                kind = _BY_NAME
            elif not annotation.startswith("ClassVar"):
                default = vars(cls).get(name, _Parameter.empty)
                fields[name] = _Parameter(name, fields[name].kind if name in fields else kind, default=default)
                fields[name] = fields[name].replace(annotation=annotation)
                if name in vars(cls):
                    delattr(cls, name)
        cls._fields = {name: field for name, field in fields.items() if name not in cls._fixed}
        options = ", ".join(f"{name!r}: {name}" for name in cls._fields if name != "params")
        place, lines = (cls.__module__, f"{cls.__qualname__}.__init__"), [f"self._declare(params, {{{options}}})"]
        cls.__init__ = compose(place, list(cls._fields.values()), "None", lines, {})
        if schedule is not None and issubclass(cls, Ruled):
            cls._rules = {frozenset(rule.inputs[2:]) & frozenset(cls._switched): rule for rule in rules}
            taken = list(inspect.signature(schedule.function).parameters)[1:]
            cls._schedule, cls._numbers_of = schedule, staticmethod(spoken(schedule, ARRAYS))
            cls._takes = tuple([name in taken for name in cls._counted])
            cls._options = tuple([name for name in taken if name not in (*cls._counted, "first")])
            cls._flags = frozenset(
                [name for name in cls._options if name in fields and fields[name].annotation == "bool"]
            )
            cls._shaped_state = tuple(dict.fromkeys(name for rule in rules for name in rule.inputs[2:]))
        return cls

    return declare


@optimizer()
class Declared(Optimizer):
    """An optimizer whose options are declared, see `optimizer`.

    Attributes:
        _fixed: options that the constructor does not take.
        _ranged: of which options numbers below 0 are refused, and what PyTorch calls them.
    """

    params: Iterable[Any]

    _fields: ClassVar[dict[str, _Parameter]] = {}
    _fixed: ClassVar[dict[str, Any]] = {}
    _ranged: ClassVar[dict[str, str]] = {}

    def _declare(self, params: Iterable[Any], options: dict[str, Any]) -> None:
        self._check(options)
        Optimizer.__init__(self, params, options | self._fixed)

    def _check(self, options: dict[str, Any]) -> None:
        """Raise for options out of range; may change them."""
        check_rate(options["lr"], self._fits)
        for name, words in self._ranged.items():
            check_number(name, options[name], self._fits, f"Invalid {words} value: {options[name]}")
        if "betas" in options:
            pair("betas", options["betas"], lambda beta: 0.0 <= beta < 1.0)
        if options.get("fused"):
            if options["differentiable"]:
                raise RuntimeError("`fused` does not support `differentiable`")
            if options["foreach"]:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")

    @staticmethod
    def _fits(value: Any) -> Any:
        return 0.0 <= value <= inf  # compared as PyTorch does, which is what an error says


class Ruled(Declared):
    """A declared optimizer whose step is a rule for every element.

    Attributes:
        _counted: what is counted for a parameter, in float32: its steps, and what else the schedule keeps.
        _begin: what state begins with where that is not 0: a number, or the name of an option.
        _switched: state that there is only with an option, and the option.
    """

    _begin: ClassVar[dict[str, Any]] = {}
    _switched: ClassVar[dict[str, str]] = {}
    _rules: ClassVar[dict[frozenset[str], Any]]
    _schedule: ClassVar[Any]
    _numbers_of: ClassVar[Callable[..., tuple[Any, ...]]]
    _takes: ClassVar[tuple[bool, ...]]  # which of the counts the schedule takes
    _options: ClassVar[tuple[str, ...]]  # what it takes after them
    _flags: ClassVar[frozenset[str]]  # those of them that are true or false
    _tables: Tables

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change every parameter that has a gradient; returns the closure's loss."""
        check_flag("set_grad_enabled", "enabled", self.defaults["differentiable"], 1)
        loss = self._loss_of(closure)
        large = Large()
        with np.errstate(all="ignore"):
            try:
                for position, group in enumerate(self.param_groups):
                    self._step_group(position, group, large)
            finally:
                large.run()
        return loss

    def _step_group(self, position: int, group: dict[str, Any], large: Large) -> None:
        rule = self._rules[frozenset([name for name, option in self._switched.items() if group[option]])]
        names, counted, states, rate = rule.inputs[2:], self._counted, self.state, group["lr"]
        capturable, recorded = group.get("capturable"), self.defaults["differentiable"]
        in_memory = isinstance(rate, Tensor) and rate._off_host and (capturable or not counted)
        try:
            options, lr = self._options_of(group), None if in_memory else float(rate)
        except (TypeError, ValueError) as error:
            raise no_numbers(group, error) from None
        needed = frozenset((*counted, *names))
        # parameters of a group mostly have the same counts, and then share a step
        shared: dict[Any, tuple[Step, list[float]]] = {}
        launches: dict[Any, list[tuple[Tensor, dict[str, Any]]]] = {}
        params = self._with_dense_gradients(group)
        at_once = lr is not None and not (capturable or recorded)
        if at_once and self._step_at_once(position, rule, params, lr, options):  # type: ignore[arg-type]
            return
        # all are looked up before the first step: without counts a parameter that is there twice starts twice
        for param, state in zip(params, [states.get(param) for param in params], strict=True):
            state = state or self._begun(param)
            first = not counted and bool(names) and state.get(names[0]) is None
            if first or not state.keys() >= needed:
                self._fill(param, group, names, state)
            on_device = param._data.__class__ is DeviceArray and not recorded
            if on_device and (in_memory or capturable):
                launches.setdefault((param._data.device, first), []).append((param, state))
                continue
            key: Any = self._taken([_count(state, name) for name in counted]) if counted else first
            if key not in shared:
                shared[key] = self._step_of(rule, rate if lr is None else lr, key, options)
            step, kept = shared[key]
            if on_device:
                launches.setdefault(key, []).append((param, state))
                continue
            tensors = [param, param._grad, *[state[name] for name in names]]
            if recorded:
                self._record(step, tensors, rate, key, options)
            elif not step.in_place(param, tensors[1], tensors[2:], large):
                self._step_placed(step, param, state, names, large)
            self._keep(param, state, kept)
        for number, (key, members) in enumerate(launches.items()):
            if key not in shared:
                self._launch_counted(position, rule, rate, key, options, members)
                continue
            self._launch_shared((position, number), rule, members, *shared[key])

    def _with_dense_gradients(self, group: dict[str, Any]) -> list[Tensor]:
        """The parameters of a group that have a dense gradient, after a step of those that have a sparse one."""
        params = [param for param in group["params"] if param._grad is not None]
        if Sparse.used:
            for param in params:
                if param._grad._data.__class__ is Sparse:
                    self._step_sparse(param, param._grad, group)
            params = [param for param in params if param._grad._data.__class__ is not Sparse]
        return params

    def _step_sparse(self, param: Tensor, grad: Tensor, group: dict[str, Any]) -> None:
        """Change a parameter by its sparse gradient.

        Raises:
            DtypeError: the optimizer takes dense ones only.
        """
        name = type(self).__name__.replace("AdamW", "Adam")
        hint = ", please consider SparseAdam instead" if name == "Adam" else ""
        raise DtypeError(f"{name} does not support sparse gradients{hint}", remedy="SGD and Adagrad take them, too")

    def _step_placed(
        self, step: Step, param: Tensor, state: dict[str, Any], names: Sequence[str], large: Large
    ) -> None:
        """A step on the host of a parameter whose state may have to be moved there, or that is complex."""
        self.state_of(param, state)
        grad: Any = param._grad
        others = [state[name] for name in names]
        if param._data.dtype.kind != "c":
            step(param, grad, others, large)
            return
        parts, grad, *pairs = _real([param, grad, *others])
        step(parts, grad, pairs, large)
        for each in (param, *others):
            each._count_change()

    def _step_at_once(
        self, position: int, rule: Update, params: list[Tensor], lr: float, options: Sequence[float]
    ) -> bool:
        """One launch for parameters whose state is complete and whose counts are the same; False for others, and on the
        CPU until there is native code.

        It loops in C: a loop in Python over 300 parameters took longer than Adam on the device.
        """
        arrays, count = list(map(_DATA, params)), len(params)
        kinds = list(map(type, arrays))
        on_host = kinds.count(np.ndarray) == count and allowed(rule.name)
        if not count or not (on_host or kinds.count(DeviceArray) == count) or len({*map(id, params)}) != count:
            return False
        of_each_form = {} if on_host else dict(zip(map(_FORM, arrays), params, strict=True))
        if any(form.dtype.kind == "c" for form in of_each_form):
            return False
        names = (*self._counted, *rule.inputs[2:])
        states = [self.state.get(param) or {} for param in params] if names else [{}] * count
        try:
            columns = [[state[name] for state in states] for name in names]
        except KeyError:
            return False
        if any(not {*map(type, column)} <= {Tensor, type(params[0])} for column in columns):  # a DTensor's is one
            return False
        counts = []
        counters = [list(map(_DATA, column)) for column in columns[: len(self._counted)]]
        for column in counters:
            if list(map(type, column)).count(np.ndarray) != count:
                return False
            values = [counter.item() for counter in column]
            if values.count(values[0]) != count:
                return False
            counts.append(values[0])
        step, kept = self._step_of(rule, lr, self._taken(counts) if counts else False, options)
        shaped = columns[len(counts) :]
        if on_host:
            plans = self.__dict__.get("_plans")
            if plans is None:
                from ..kernels.optimizer.natively import Plans

                plans = self.__dict__["_plans"] = Plans()
            rows = [arrays, [*map(_DATA, map(_GRADIENT, params))], *[[*map(_DATA, each)] for each in shaped]]
            if not plans.step((position, rule.name), rule, step.values, rows):
                return False
            count_changes(chain(params, *shaped))
        else:
            if counts:
                self._refuse_capture(of_each_form.values())
            entries = list(zip(params, map(_GRADIENT, params), *shaped, strict=True))
            members = zip(params, states, strict=True)
            tables = self.__dict__.setdefault("_tables", Tables())
            tables.step((position, 0, rule.name), rule, step.numbers, entries, lambda: self._entries(rule, [*members]))
        for column, value in zip(counters, (counts[0] + 1, *kept) if counts else (), strict=True):
            for counter in column:
                counter.fill(value)
        return True

    def _taken(self, counts: Sequence[float]) -> tuple[float, ...]:
        """Those of a parameter's counts that the schedule takes."""
        return tuple([value for value, taken in zip(counts, self._takes, strict=True) if taken])

    def _step_of(
        self, rule: Update, lr: float, given: tuple[float, ...] | bool, options: Sequence[float]
    ) -> tuple[Step, list[float]]:
        """A step with the numbers of the schedule, and what is kept of them."""
        kept, numbers = self._scheduled(self._numbers_of, np.float64(float(lr)), given, options)
        return Step(rule, [float(each) for each in numbers[: len(rule.metadata)]]), kept

    def _scheduled(
        self, schedule: Callable[..., Any], lr: Any, given: Any, options: Sequence[float]
    ) -> tuple[list[float], Sequence[Any]]:
        """What is kept and the numbers of a rule, for counts before the step, or for whether it is the first."""
        counts: list[Any] = [np.float64(value) for value in given] if self._counted else [float(given)]
        if self._takes[:1] == (True,):
            counts[0] += 1
        found = schedule(lr, *counts, *options)
        kept = max(len(self._counted) - 1, 0)
        return [float(each) for each in found[:kept]], found[kept:]

    def _options_of(self, group: dict[str, Any]) -> list[float]:
        """The numbers that the schedule takes: options, `beta1` as the first of `betas`, `sign` as -1 to maximise."""
        found = []
        for name in self._options:
            if name == "sign":
                found.append(-1.0 if group["maximize"] else 1.0)
            else:
                value = group[name] if name in group else group[f"{name[:-1]}s"][int(name[-1]) - 1]
                found.append(float(bool(value) if name in self._flags else value))
        return found

    def _begun(self, param: Tensor) -> dict[str, Any]:
        """The state of a parameter that had none before the step; if it is there twice, what its first step began."""
        return (self.state.get(param) if self._counted else None) or {}

    def _fill(self, param: Tensor, group: dict[str, Any], names: Sequence[str], state: dict[str, Any]) -> None:
        """Add what is missing of a parameter's state."""
        for name in (*self._counted, *names):
            if state.get(name) is None:
                value = self._begin.get(name, 0.0)
                value = float(group[value]) if isinstance(value, str) else value
                if name in names:
                    state[name] = new_state(param)
                    if value:
                        state[name].fill_(complex(value, value) if param.is_complex() else value)
                elif group.get("capturable"):
                    state[name] = zeros((), dtype=float32, device=param.device)
                    if value:
                        state[name].fill_(value)
                else:
                    state[name] = wrap(np.array(value, np.float32))
        if self._counted:  # others are kept after the step
            self.state[param] = state

    def _keep(self, param: Tensor, state: dict[str, Any], kept: Sequence[float]) -> None:
        """After a step: what is counted, in place as in PyTorch, and the state of a parameter that had none."""
        if self._counted:
            count = state[self._counted[0]]._data
            count.fill(count.item() + 1)
            for name, value in zip(self._counted[1:], kept, strict=True):
                state[name]._data.fill(value)
        elif state:
            self.state[param] = state

    def _record(self, step: Step, tensors: list[Tensor], lr: Tensor, given: bool, options: Sequence[float]) -> None:
        """A step that is differentiated: its results are recorded, and written into the tensors."""
        values = step.values
        with enable_grad():
            if isinstance(lr, Tensor) and lr.requires_grad:
                values = self._scheduled(spoken(self._schedule, TENSORS), lr, given, options)[1][: len(values)]
            found = spoken(step.operator.body, TENSORS)(*[each.clone() for each in tensors], *values)
            results = found if isinstance(found, tuple) else (found,)
            for old, new in zip([tensors[0], *tensors[2:]], results, strict=True):
                old.copy_(new)

    # ---- on CUDA devices --------------------------------------------------------------------------------------

    def _refuse_capture(self, params: Iterable[Tensor]) -> None:
        """Raise if a step that the host counts is being captured."""
        for array in {param._data.device: param._data for param in params}.values():
            capture = capturing(array.buffer.driver, array.device.index)
            if capture is None:
                continue
            capture.failed = capture.failed or f"{type(self).__name__}.step"
            raise DeviceError(
                f"Attempting CUDA graph capture of step() for an instance of {type(self).__name__} but "
                "param_groups' capturable is False.",
                "the host counts its steps, and each replay would repeat the same one",
                remedy=f"make it with {type(self).__name__}(..., capturable=True)",
            )

    def _launch(
        self,
        tag: tuple[Any, ...],
        rule: Update,
        numbers: dict[str, float],
        members: list[tuple[Tensor, dict[str, Any]]],
        rates: Schedule | None,
    ) -> None:
        """Change parameters and their states, with one launch for each device and combination of dtypes."""
        tables = self.__dict__.setdefault("_tables", Tables())
        entries = self._entries(rule, members, False)
        tables.step((*tag, rule.name), rule, numbers, entries, lambda: self._entries(rule, members), rates)

    def _launch_shared(
        self, tag: tuple[int, int], rule: Update, members: list[Any], step: Step, kept: Sequence[float]
    ) -> None:
        """A step of parameters on devices that have the same counts, on the host."""
        if self._counted:
            self._refuse_capture(param for param, _ in members)
        self._launch(tag, rule, step.numbers, members, None)
        for param, state in members:
            self._keep(param, state, kept)

    def _entries(
        self, rule: Update, members: list[tuple[Tensor, dict[str, Any]]], place: bool = True
    ) -> list[tuple[Any, ...]]:
        """Each parameter with its gradient and state, which is moved to its device to `place` it."""
        if place:
            for param, state in members:
                self.state_of(param, state)
        rows = [(param, param._grad, *[state[name] for name in rule.inputs[2:]]) for param, state in members]
        return [tuple(_real(row)) if row[0]._data.dtype.kind == "c" else row for row in rows]

    def _launch_counted(
        self, position: int, rule: Update, rate: Tensor | float, key: Any, options: list[float], members: list[Any]
    ) -> None:
        """A step whose counts, and the learning rate if it is a tensor, are in device memory and are read there."""
        device, first = key
        lr = rate.to(device) if isinstance(rate, Tensor) and rate._off_host else float(rate)
        counters = [[_counter_on(device, state, name) for name in self._counted] for _, state in members]
        given = options if self._counted else [float(first), *options]
        rates = Schedule(self._schedule, lr, given, counters, self._takes, tuple(rule.metadata))
        self._launch((position, device, first), rule, dict.fromkeys(rule.metadata, 0.0), members, rates)
        for param, state in members:
            if state:
                self.state[param] = state


def _count(state: dict[str, Any], name: str) -> float:
    """What is counted in a parameter's state, which is moved to the host."""
    count = state[name]
    if count.__class__ is not Tensor or count._data.__class__ is not np.ndarray:
        count = state[name] = wrap(np.array(float(count), np.float32))
    value: float = count._data.item()
    return value


def _counter_on(device: Device, state: dict[str, Any], name: str) -> Tensor:
    """What is counted in a parameter's state, moved to a device as one float32."""
    counter = state[name]
    data = counter._data if counter.__class__ is Tensor else None
    if data.__class__ is not DeviceArray or data.device is not device or data.dtype != float32.numpy:
        counter = state[name] = tensor(float(counter), device=device)
    return counter


def _real(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Views of complex tensors, in which a real and an imaginary part are two elements."""
    return [view_as_real(x.detach()) for x in tensors]

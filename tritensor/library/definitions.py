"""Operators of programs: kernels by device, the gradient, and what is told of results without computing them."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import update_wrapper
from typing import Any

from ..autograd.mode import no_grad, recording
from ..errors import AutogradError, UnsupportedError, require
from ..functional.views.joining import stack
from ..memory.lifted import Lifted
from ..operators.function import Function
from ..tensors import Tensor, tensors_in
from ..types import devices
from ..types.formats import is_dense
from .schemas import Schema


class Namespace:
    """The operators of one namespace."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")


class Own(Namespace):
    """PyTorch's namespace: its operators are methods and functions here, but for one that libraries ask for by name."""

    def is_non_overlapping_and_dense(self, x: Tensor) -> bool:
        """True if every element of the memory between the tensor's first and last is used, and once."""
        return is_dense(x.shape, x.stride())


class Namespaces:
    """`tritensor.ops`: the operators by namespace and name, `ops.mylib.sin(x)`; any namespace is there."""

    aten = Own("aten")

    def __getattr__(self, name: str) -> Namespace:
        if name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        made: Namespace = vars(self).setdefault(name, Namespace(name))
        return made


ops = Namespaces()


class _Here(threading.local):
    """The operators whose function of `through` this thread is in: they are what is below it."""

    def __init__(self) -> None:
        self.below: set[CustomOpDef] = set()


_here = _Here()


class CustomOpDef:
    """An operator of a program: what it computes on each kind of device, its gradient, and its results on meta tensors.

    `custom_op` and `Library.define` make it; it is called like a function, also as `ops.namespace.name`.
    """

    def __init__(self, name: str, schema: str, fn: Callable[..., Any] | None = None) -> None:
        namespace, _, short = name.partition("::")
        require(short, ValueError, "expected a name with its namespace, such as mylib::{}, got {!r}", namespace, name)
        self._qualname, self._name, self._schema, self._init_fn = name, short, schema, fn
        self.schema = Schema(name + schema)
        self.kernels: dict[str | None, Callable[..., Any]] = {}
        self.checked, self._off = fn is not None, set[str]()
        self.overload = f"{namespace}.{short}.default"
        self._mutated = [each.name for each in self.schema.arguments if each.mutated]
        if fn is not None:
            update_wrapper(self, fn)
        self._function = _recorded(self)
        setattr(getattr(ops, namespace), short, self)

    fake: Callable[..., Any] | None = None
    vmap: Callable[..., Any] | None = None
    backward: Callable[..., Any] | None = None
    setup: Callable[..., Any] | None = None
    through: Callable[..., Any] | None = None  # computes and records, and may call the operator for the rest
    composed: Callable[..., Any] | None = None  # computes by other operators, where there is no kernel

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    @property
    def default(self) -> CustomOpDef:
        """The operator; it has one overload."""
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute it, and record it if an input needs a gradient."""
        args, kwargs = self.schema.bind(args, kwargs)
        if self.composed is not None and not self.kernels:
            return self.composed(*args, **kwargs)
        if self.through is not None and self not in _here.below:
            _here.below.add(self)
            try:
                return self.through(*args, **kwargs)
            finally:
                _here.below.remove(self)
        tensors = list(tensors_in([*args, *kwargs.values()]))
        needed = recording.enabled and any(x.requires_grad for x in tensors) and (self.checked or self.backward)
        if not needed and not any(isinstance(x._data, Lifted) for x in tensors):
            return self.compute(args, kwargs)
        plan = _Plan(args, kwargs)
        found = self._function.apply(*plan.flat, plan)
        return list(found) if self.schema.returns == "Tensor[]" else found

    def compute(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call the kernel of the inputs' device, or on meta tensors the fake.

        Raises:
            RuntimeError: there is none; a result is an input, or shares its memory.
        """
        tensors = list(tensors_in([*args, *kwargs.values()]))
        places = [x.device for x in tensors] or [x for x in args if isinstance(x, devices.device)] or [devices.cpu]
        kind = places[0].type
        if kind == "meta" and "meta" not in self.kernels:
            return self.faked(args, kwargs)
        kernel = self._init_fn if kind in self._off else self.kernels.get(kind) or self.kernels.get(None)
        kernel = kernel or self.composed
        if kernel is None:
            words = f"Could not run '{self._qualname}' with arguments from the '{kind.upper()}' backend."
            have = ", ".join(str(each).upper() for each in self.kernels) or "none"
            raise UnsupportedError(words, f"it has kernels for these backends: {have}", remedy="register_kernel")
        given = dict(zip([each.name for each in self.schema.arguments], args)) | kwargs
        with no_grad() if self.checked else nullcontext():
            found = kernel(*args, **kwargs)
        for x in tensors_in([given[name] for name in self._mutated]):
            x._count_change()
        outputs = list(tensors_in(found if isinstance(found, (tuple, list)) else [found])) if self.checked else []
        for position, x in enumerate(outputs):
            if any(_shares(x, other) for other in (*tensors, *outputs[:position])):
                raise AutogradError(
                    f"{self._name} (with implementation in {inspect.getmodule(kernel)}): The output of this custom "
                    "operator (1) must not also be an input to this custom operator and (2) may not alias any inputs "
                    "to this custom operator or other returns. The most common way to trigger this error is if we have "
                    "y = custom_op(x) and y and x are the same Tensor. Please instead return a clone of the offending "
                    "output tensor(s) (e.g. return x.clone()) or refactor the custom operator to not return y."
                )
        return found

    def faked(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The results that the fake makes."""
        if self.fake is None and self.schema.returns == "()":
            return None
        if self.fake is None:
            raise AutogradError(
                f"There was no fake impl registered for {self}. This is necessary for torch.compile/export/fx tracing "
                f"to work. Please use `{self._name}.register_fake` to add an fake impl."
            )
        return self.fake(*args, **kwargs)

    def register_kernel(self, device_types: str | Sequence[str] | None, fn: Callable[..., Any] | None = None, /) -> Any:
        """Register a kernel for one kind of device, for several, or for all others (None); a decorator without `fn`."""
        kinds = [device_types] if device_types is None or isinstance(device_types, str) else device_types
        return kept(fn, lambda fn: self.kernels.update(dict.fromkeys(kinds, fn)))

    @contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """In a block, call the function that made the operator in place of the kernel of a kind of device."""
        before = set(self._off)
        self._off = before - {device_type} if enabled else before | {device_type}
        try:
            yield
        finally:
            self._off = before

    def register_fake(self, fn: Callable[..., Any] | None = None, /) -> Any:
        """Register a fake: it makes results on meta tensors, of shapes and dtypes alone; a decorator without `fn`."""
        return kept(fn, lambda fn: setattr(self, "fake", fn))

    def register_vmap(self, func: Callable[..., Any] | None = None, /) -> Any:
        """Register a `func.vmap` rule, `fn(info, in_dims, *args)`, of all samples at once; without it `vmap` loops."""
        return kept(func, lambda fn: setattr(self, "vmap", fn))

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Register the gradients of the inputs, `backward(ctx, *grads)`, and a function that saves values for it.

        It is `setup_context(ctx, inputs, output)`, or `(ctx, inputs, keyword_only_inputs, output)`.

        Raises:
            RuntimeError: the operator changes its arguments.
        """
        if self._mutated:
            raise AutogradError(
                f"Cannot register autograd formula for non-functional operator {self} with schema {self.schema}. "
                "Please create a functional operator and register an autograd formula for that."
            )
        self.backward, self.setup = backward, setup_context


def kept(fn: Callable[..., Any] | None, keep: Callable[[Any], Any]) -> Any:
    """The function, of which something is kept; a decorator without it."""

    def decorated(fn: Callable[..., Any]) -> Any:
        keep(fn)
        return fn

    return decorated if fn is None else decorated(fn)


def _shares(x: Tensor, y: Tensor) -> bool:
    """True if two tensors are one, or on one storage; sparse ones have none."""
    if x.is_sparse or y.is_sparse:
        return False
    return x is y or bool(x.numel() and y.numel() and x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr())


class _Plan:
    """The arguments of a call as one list, in which the tensors of lists stand themselves."""

    def __init__(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.kwargs, self.flat = kwargs, list[Any]()
        self.counts: list[int | None] = []  # of each argument that is a list of tensors
        for each in args:
            spread = isinstance(each, (list, tuple)) and any(isinstance(x, Tensor) for x in each)
            self.counts.append(len(each) if spread else None)
            self.flat += each if spread else [each]

    def nested(self, flat: Iterable[Any]) -> tuple[Any, ...]:
        """Values for the arguments, from one list of them."""
        left = iter(flat)
        return tuple([next(left) if count is None else [next(left) for _ in range(count)] for count in self.counts])

    def flattened(self, values: Sequence[Any]) -> list[Any]:
        """One list, from values for the arguments."""
        found: list[Any] = []
        for value, count in zip(values, self.counts, strict=True):
            found += [value] if count is None else [None] * count if value is None else value
        return found


def _recorded(operator: CustomOpDef) -> type[Function]:
    """The function that a call is when it is recorded, or made for samples; its last argument is a `_Plan`."""

    class Recorded(Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            *flat, plan = args
            ctx.plan, ctx.needs_input_grad = plan, plan.nested(ctx.needs_input_grad[:-1])  # by argument
            named = {"inputs": plan.nested(flat)}
            found = operator.compute(named["inputs"], plan.kwargs)
            if any(each.kwarg_only for each in operator.schema.arguments):
                named["keyword_only_inputs"] = plan.kwargs
            if operator.setup is not None:
                operator.setup(ctx=ctx, **named, output=found)
            return tuple(found) if isinstance(found, list) else found

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            if operator.backward is None:
                words = f"Trying to backward through {operator.overload} but no autograd formula was registered."
                raise AutogradError(f"{words} Please use register_autograd to add one.")
            found = operator.backward(ctx, *((list(grads),) if operator.schema.returns == "Tensor[]" else grads))
            return (*ctx.plan.flattened(found if isinstance(found, tuple) else (found,)), None)

        @staticmethod
        def vmap(info: Any, in_dims: tuple[Any, ...], *args: Any) -> Any:
            *flat, plan = args
            if operator.vmap is not None:
                return operator.vmap(info, plan.nested(in_dims), *plan.nested(flat), **plan.kwargs)
            rows = []
            for i in range(info.batch_size):
                sample = [x if dim is None else x.select(dim, i) for x, dim in zip(flat, in_dims)]
                rows.append(operator(*plan.nested(sample), **plan.kwargs))
            if isinstance(rows[0], (tuple, list)):
                return tuple([stack(each) for each in zip(*rows, strict=True)]), 0
            return stack(rows), 0

    Recorded.__name__ = f"GeneratedBackwardFor_{operator._qualname.replace('::', '_')}_default"
    return Recorded


def defined(qualname: str) -> CustomOpDef | None:
    """The operator of a name, `mylib::sin`, if there is one."""
    namespace, _, name = qualname.partition("::")
    found = getattr(getattr(ops, namespace), name.partition(".")[0], None)
    return found if isinstance(found, CustomOpDef) else None


def found_by(op: CustomOpDef | str) -> CustomOpDef:
    """An operator, by itself or by its name."""
    found = op if isinstance(op, CustomOpDef) else defined(op)
    if found is None:
        raise AutogradError(f"operator {op} does not exist", remedy="define it first: library.define, or custom_op")
    return found

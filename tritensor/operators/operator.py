"""Declare an operator once, and run it anywhere.

An `Operator` holds everything that is known about one operation: the names of its inputs, the rule for its dtypes, the
NumPy reference, the kernel and the gradients. `Operator.__call__` is the one way in:

    prepared   check and normalise the arguments, find the one device and the dtypes; every error is raised here
    compute    on the CPU: the reference, on NumPy arrays; on a CUDA device: `launch`, into arrays that `allocate`
               described
    record     leave a node on the result when an input requires grad

The stages share a `Call`. What they found is remembered as a `Replay` (`runtime/replay.py`), so a call with arrays of
the same shapes, strides and dtypes has one stage and `record`.

The families in `tritensor/kernels/` subclass it. The registry lists every declared operator; tests, type stubs,
documentation pages and benchmarks are generated from it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np

from .. import errors, settings
from ..autograd.gradients import OperatorGradient, attach, not_by, unknown
from ..autograd.mode import recording
from ..autograd.precision import casts, state
from ..errors import ArgumentError, DeviceMismatchError
from ..ground.arguments import OF_NUMPY, number_of, older_order, wrong_type
from ..ground.index import Names
from ..ground.public import ShownSignature
from ..host.threads import quietly
from ..memory import buffer
from ..memory.array import DeviceArray
from ..memory.lifted import Lifted, device_of
from ..runtime.call import Call, refuse_complex
from ..runtime.choice import Native
from ..runtime.reference import with_casts
from ..runtime.replay import Replay, active, key_of, table
from ..runtime.trace import traced
from ..tensors import Tensor, wrap
from ..types import devices, dtypes
from .autocasting import POLICIES, cast
from .float8 import FLOAT8, ODD, computes_float8, refuse_float8, takes_float8, through_float32
from .rules import ANY, COMPARISON, FLOAT, INTEGRAL, NUMERIC, ORDER, REAL, REAL_FLOAT, Number, Rule, compute_dtype

__all__ = ["ANY", "COMPARISON", "FLOAT", "INTEGRAL", "NUMERIC", "ORDER", "REAL", "REAL_FLOAT", "Number", "Operator"]
__all__ += ["OperatorGradient", "Rule", "compute_dtype", "registry"]

ndarray = np.ndarray
_getframe = sys._getframe
Dtypes = tuple[dtypes.dtype, tuple[dtypes.dtype, ...]]  # to compute in, and of each result
Shapes = list[tuple[Any, ...]]  # shape and dtype of each result, and strides unless it is row-major

registry = Names("operator")

#: `(operator, inputs, metadata)`: a call inside of a transformation; set by `tritensor.operators.lifting`
lifted_call: Any = None


class Operator:
    """One operation: reference, kernel, gradients, dtype rule. Families subclass it; see the module's docstring.

    Attributes:
        name: the operator's name, PyTorch's where PyTorch has it.
        inputs: names of the data arguments, positional; the last may be missing when it has a default of None.
        metadata: names of the keyword arguments with their defaults.
        outputs: names of the results; the first is the one that gradients flow through.
        reference: the NumPy definition, `(*arrays, **metadata) -> array or tuple`.
        rule: the dtype rule.
        kinds: inputs with a fixed dtype, to which the rule does not apply (indices, conditions).
        main: the input whose dtype alone decides; further results have the dtype to compute in. None where all decide.
        variadic: the operator takes any number of tensors (`cat`); inputs are then called x0, x1, ...
        deferrable: a compiled function may compute a repeatable call later: nothing is raised for its elements.
        repeatable: a call depends only on the inputs' shapes, strides and dtypes and on the metadata, not on the
            contents of memory or on earlier calls, so it can be remembered; "cpu" where that is so on the CPU alone.
        calls: how the derived tests call the operator, see `samples`; None where its family has tests of its own.
        domain: the interval that inputs of tests are drawn from, where not all will do: for all, or for each by name.
        gradient_domain: the same for tests of gradients, where the operator has jumps.
        example: metadata for those calls, where the defaults are not suitable.
        constant: results require no grad, or by the inputs in this tuple; of others without gradients backward raises.
        refuses: inputs that must not require grad, each with the name that the error has for the operator.
        batched: the results for all samples of a `lifting.batching.Batch`; where it is None, samples are a loop.
        node: PyTorch's operator that names the node, where it is not of the operator's name.
        sums_samples: inside of `vmap` the gradient of a first input that all samples share is computed of all at once.
        linear: how it is linear, for forward mode, see `lifting.forward`; empty where it is not, or needs no rule.
        overload: the number of PyTorch's overload, of what a node saved by name; None where there is one alone.
        float8: "moved", "computed" (in float32), "paired" (not beside numbers) or "taken" by a kernel; else refused.
        autocast: what autocast casts the inputs to, by the type of device; `listed` says whether it does at all.
        takes_numbers: the kernel's arguments begin with the results, the inputs and the metadata's numbers, in the
            order of the call; a repeated call may then pass other numbers.
        native: the sizes for which native code of the kernel is quicker on the CPU than the reference; or None.
    """

    family = "operator"
    outputs: tuple[str, ...] = ("out",)
    main: int | None = None
    deferrable, variadic, takes_numbers = True, False, False
    repeatable: bool | str = False
    native: Native | None = None
    on_pairs = False  # whether the kernel takes complex numbers, as pairs of real ones: see `kernels/pairs.py`
    constant: bool | tuple[str, ...] = ()
    refuses: Mapping[str, str] = {}
    batched: Callable[[Any], tuple[Any, ...]] | None = None
    node = linear = float8 = ""
    overload: Callable[[dict[Any, Any]], int] | None = None
    autocast: Mapping[str, str] = {}
    listed = sums_samples = False
    holomorphic = True  # whether gradient functions multiply by a complex derivative, which PyTorch conjugates
    __signature__ = ShownSignature()
    calls: Callable[[Any], Iterable[tuple[Any, ...]]] | None = None
    domain: tuple[float, float] | dict[str, tuple[float, float]] | None = None
    gradient_domain: tuple[float, float] | dict[str, tuple[float, float]] | None = None
    example: Mapping[str, Any] = {}

    def __init__(
        self,
        name: str,
        reference: Callable[..., Any],
        rule: Rule,
        *,
        inputs: Sequence[str] | None = None,
        outputs: Sequence[str] | None = None,
        register: bool = True,
    ) -> None:
        signature = None if inputs is not None else inspect.signature(reference)
        parameters = list(signature.parameters.values()) if signature is not None else []
        positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        self.name, self.reference, self.rule = name, reference, rule
        self.inputs = tuple(inputs) if inputs is not None else tuple(p.name for p in positional)
        self.optional = {p.name for p in positional if p.default is None}
        self.variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        self.metadata = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        if outputs is not None:
            self.outputs = tuple(outputs)
        self.gradients_of: dict[str, Callable[..., Any]] = {}
        self.joint_gradient: Callable[..., Any] | None = None
        self.device_gradient: Callable[..., Any] | None = None
        self.kinds: dict[str, dtypes.dtype] = {}
        self.backwards: dict[tuple[bool, ...], OperatorGradient | None] = {}
        self.replays: dict[Any, Replay | None] = table()
        self.body: Any = None
        self.__name__ = name
        self.__doc__ = reference.__doc__
        both = set(self.inputs) & set(self.outputs)
        if both:
            # in a gradient function this parameter name would be ambiguous
            raise ValueError(f"operator {name!r}: {both.pop()!r} is the name of an input and of an output")
        if register:
            registry.declare(name, self)

    # ---- declaration ------------------------------------------------------------------------------------------

    def kernel(self, body: Callable[..., Any]) -> Self:
        """Declare the Triton body; the family defines its parameters and results."""
        body.__name__ = body.__qualname__ = self.name
        self.body = body
        return self

    def gradient(self, function: Callable[..., Any], on_device: Callable[..., Any] | None = None) -> Self:
        """Declare the gradient of a one-input operator, or of all inputs at once (a tuple, None where there is none).

        The first parameter is the gradient of the first output; the others name inputs, outputs, metadata, `needs`
        (which inputs need a gradient) or `<input>_shape`. Only what it names is saved for backward. `on_device` takes
        the same parameters and replaces it on CUDA devices, where each operator that `function` calls is a launch.
        """
        self.device_gradient = on_device
        if len(self.inputs) == 1 and not self.variadic:
            self.gradients_of[self.inputs[0]] = function
        else:
            self.joint_gradient = function
        return self

    def gradients(self, **functions: Callable[..., Any]) -> Self:
        """Declare the gradient of each input separately, so that only what is needed is computed and saved."""
        self.gradients_of.update(functions)
        return self

    def autocasts(self, **policy: str) -> Operator:
        """Declare what autocast casts the inputs to on a type of device: `cuda="float32"`, see `autocasting`."""
        self.autocast, self.listed = policy, True
        POLICIES[self.name] = policy
        return self

    def samples(self, function: Callable[[Any], Iterable[tuple[Any, ...]]]) -> Callable[..., Any]:
        """Declare how the derived tests call the operator, where the family does not define it; a decorator.

        `function(draw)` yields `(inputs, metadata)`, where inputs are NumPy arrays, numbers or None. `draw(shape)` is
        an array of the dtype under test, `draw(shape, (low, high))` one of elements between two numbers, and
        `draw.input(name, shape)` one for that input, within its domain and of its fixed dtype if it has one.
        `draw.dtype` is the dtype under test, `draw.rng` NumPy's generator. A third item after the metadata holds the
        positions of the inputs whose gradient is compared; all floating ones unless it is given.
        """
        self.calls = function
        return function

    @property
    def differentiable(self) -> bool:
        """True if any gradient was declared."""
        return self.joint_gradient is not None or bool(self.gradients_of)

    # ---- the stages that families define ----------------------------------------------------------------------

    def prepare(self, call: Call) -> None:
        """Check and normalise inputs and metadata. The family's errors are raised here."""

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """The dtype to compute in, and the dtype of each result: by the rule, from all inputs or from `main`."""
        if self.main is None:
            compute, result = self.rule(self.name, call.inputs)
            return compute, (result,) * len(self.outputs)
        compute, result = self.rule(self.name, call.inputs[self.main : self.main + 1])
        return compute, (result, *(compute,) * (len(self.outputs) - 1))

    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """The function from NumPy arrays and numbers to the results of calls like this one.

        It casts the arrays to the compute dtype, calls the reference, and casts its results to the result dtypes.
        """
        names = self.inputs if self.kinds else ("",) * len(call.inputs)
        kinds = [self.kinds.get(name, call.compute).numpy for name in names]
        return with_casts(self.reference, kinds, call)

    def allocate(self, call: Call) -> Shapes:
        """The shape and NumPy dtype of each output, and its strides unless it is row-major, from the inputs' arrays;
        unless a family says otherwise, the shape of the first input or of `main`."""
        shape = tuple(call.arrays[self.main or 0].shape)
        return [(shape, result.numpy) for result in call.results]

    def terms(self, call: Call) -> int:
        """The number of summands of an element of the smallest result, about, for checked mode's tolerance."""
        largest: int = max([1, *(x.size for x in call.arrays if hasattr(x, "size"))])
        return largest // max(1, min(out.size for out in call.outs))

    def launch(self, call: Call) -> None:
        """Run the kernel on the call's device arrays (and Python numbers) into its outputs."""
        raise TypeError(f"{self.name}: the family {self.family} has no kernel")

    def cost(self, call: Call) -> tuple[int, int]:
        """Bytes moved and floating-point operations of one launch, for the debug line and the benchmarks."""
        moved = sum(array.nbytes for array in (*call.outs, *call.arrays) if hasattr(array, "nbytes"))
        return moved, call.outs[0].size

    # ---- running ----------------------------------------------------------------------------------------------

    def __call__(self, *inputs: Any, **metadata: Any) -> Tensor:
        """Run the operator on tensors (and Python numbers); see the module for the stages."""
        if casts.on and self.listed:
            given = cast(self.autocast, *inputs, *metadata.values())
            inputs, metadata = given[: len(inputs)], dict(zip(metadata, given[len(inputs) :], strict=True))
        values: list[Any] = []
        key = key_of(self, inputs, metadata, values) if self.repeatable else None
        return self.call(key, values, inputs, metadata)

    def call_one(self, input: Tensor, more: tuple[Any, ...], metadata: dict[str, Any]) -> Tensor:
        """Run an operator of one input, with a key of fewer steps than `key_of` takes.

        Args:
            more: what the call depends on besides the input: numbers of one class each, strings, None.
        """
        if casts.on and self.listed:
            (input,) = cast(self.autocast, input)
        data = getattr(input, "_data", None)
        if data.__class__ is ndarray:
            return self.call((data.dtype, data.shape, more), [data], (input,), metadata)
        if data.__class__ is DeviceArray and active.on:
            return self.call((data.form, more), [data], (input,), metadata)
        return self(input, **metadata)

    def call(self, key: object, values: list[Any], inputs: tuple[Any, ...], metadata: dict[str, Any]) -> Any:
        """Run the operator: repeat what is remembered under the key, or go through the stages and remember it.

        Args:
            key, values: from `key_of`, or from a caller that knows in fewer steps what its calls depend on.
        """
        watch = casts.on and state.watch
        known = None if key is None or watch else self.replays.get(key)
        if known is not None:
            result = known.run(*values)
            if result is not None:
                for value in inputs:
                    if isinstance(value, Tensor) and value._needs:
                        if recording.enabled:
                            outputs = result if result.__class__ is tuple else (result,)
                            self.record(outputs, inputs + known.missing, known.tape(metadata), known.alike)
                        break
                return result
        if len(inputs) > len(self.inputs) and "value" in self.metadata:
            inputs, factor = older_order(self.name, {"value": metadata.get("value", 1)}, *inputs)
            return self(*inputs, **{**metadata, **factor})
        if key is None and any(isinstance(x, Tensor) and isinstance(x._data, Lifted) for x in inputs):
            return lifted_call(self, inputs, metadata)
        call = self.prepared(inputs, metadata)
        if (call.compute in ODD or call.metadata.get("dtype")) and computes_float8(call):
            return through_float32(call)
        if key is None or watch or key in self.replays:
            arrays = (watch and hasattr(watch, "instead") and watch.instead(call)) or self.execute(call)
        else:
            call.arrays = self.arrays_of(call)
            arrays = traced(call, key, (inputs, metadata), values, lambda: self.compute(call))
        if watch:
            watch(call, arrays)
        outputs = tuple([wrap(data) for data in arrays])
        if recording.enabled:
            self.record(outputs, call.inputs, call.metadata)
        return outputs[0] if len(outputs) == 1 else outputs

    def prepared(self, inputs: tuple[Any, ...], metadata: dict[str, Any]) -> Call:
        """A call with its arguments checked and normalised, its device and its dtypes."""
        if metadata or self.metadata:
            inputs, metadata = self._bind(inputs, metadata)
        elif len(inputs) != len(self.inputs) and not self.variadic:
            inputs = self._fill(inputs)
        call = Call(self, tuple([self._accept(value, position) for position, value in enumerate(inputs)]), metadata)
        self.prepare(call)
        call.device = self.place(call.inputs)
        call.compute, call.results = self.resolve_dtypes(call)
        if call.compute in FLOAT8 and not takes_float8(call):
            refuse_float8(self.name, call.compute)
        return call

    def arrays_of(self, call: Call) -> list[Any]:
        """The inputs as arrays of the call's device, and numbers."""
        if call.device is devices.cpu:
            return [value._host_array() if isinstance(value, Tensor) else value for value in call.inputs]
        kinds = [self.kinds.get(name, call.compute) for name in (call.inputs if self.variadic else self.inputs)]
        return [self._device_operand(value, kind) for value, kind in zip(call.inputs, kinds)]

    def execute(self, call: Call) -> Sequence[Any]:
        """Compute the results' arrays from the inputs."""
        call.arrays = self.arrays_of(call)
        return self.compute(call)

    def compute(self, call: Call) -> Sequence[Any]:
        """Compute the results' arrays from the call's arrays; on a device into `outs`, which are made unless given."""
        if call.device is devices.cpu:
            return self.on_host(call)(*call.arrays)
        given, meta = bool(call.outs), call.device is devices.meta
        if not (meta or self.on_pairs):
            refuse_complex(self.name, call.device, (call.compute, *call.results, *call.arrays))
        if not given:
            call.outs = [buffer.empty(shape, kind, call.device, *rest) for shape, kind, *rest in self.allocate(call)]
        if meta:
            return call.outs
        if settings.debug.value < 2:
            self.launch(call)
        else:
            from ..runtime.log import logged

            logged(call)
        if settings.check.value and not given:
            from ..runtime.checking import compare_with_reference

            compare_with_reference(call)
        return call.outs

    def compute_into(
        self, out: DeviceArray, inputs: tuple[Any, ...], metadata: dict[str, Any], prepared: Callable[[], Call | None]
    ) -> bool:
        """Run the kernel with an existing array as its result.

        Args:
            inputs: tensors, or device arrays, and numbers.
            prepared: makes the call for the first inputs of their kind; None if its result does not fit into `out`.

        Returns:
            Whether it was done.
        """
        values: list[Any] = []
        key = key_of(self, inputs, metadata, values, out)
        known = None if key is None else self.replays.get(key)
        if known is not None and known.run(*values) is not None:
            return True
        call = prepared()
        if call is None:
            return False
        call.outs = [out]
        if key is None or key in self.replays:
            self.compute(call)
        else:
            traced(call, key, (inputs, metadata), values, lambda: self.compute(call))
        return True

    @staticmethod
    def _device_operand(value: object, kind: dtypes.dtype) -> Any:
        """A tensor's device array; a 0-dimensional CPU tensor among CUDA ones is cast and read as a Python number."""
        if not isinstance(value, Tensor):
            return value
        if value._data.__class__ is DeviceArray:
            return value._data
        return quietly(value._host_array().astype, kind.numpy).item()

    def _bind(self, inputs: tuple[Any, ...], metadata: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Split keyword arguments into inputs (by name, or as `input` and `other`) and metadata with defaults."""
        bound, named = dict(self.metadata), dict[int, Any]()
        for key, value in metadata.items():
            word = key if key in bound or key in self.inputs else OF_NUMPY.get(key, key)
            if word in bound:
                bound[word] = number_of(self.name, word, value) if word in self.rule.held else value
                continue
            name = {"input": 0, "other": 1}.get(word, self.inputs.index(word) if word in self.inputs else None)
            if name is None:
                raise ArgumentError(f"{self.name}() got an unexpected keyword argument '{key}'", self.signature())
            named[name] = value
        if named:
            filled = list(inputs) + [None] * (max(named) + 1 - len(inputs))
            for position, value in named.items():
                if position < len(inputs):
                    raise ArgumentError(f"{self.name}() got multiple values for argument '{self.inputs[position]}'")
                filled[position] = value
            inputs = tuple(filled)
        return (inputs if self.variadic or len(inputs) == len(self.inputs) else self._fill(inputs)), bound

    def _fill(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Add None for optional inputs that were left out; metadata after the inputs must be named."""
        missing = self.inputs[len(inputs) :]
        if len(inputs) > len(self.inputs) or any(name not in self.optional for name in missing):
            raise ArgumentError(
                f"{self.name}() takes {len(self.inputs)} positional arguments but {len(inputs)} were given",
                self.signature(),
            )
        return inputs + (None,) * len(missing)

    def _accept(self, value: object, position: int) -> Any:
        """A tensor or Python number as it is, a NumPy array as a CPU tensor."""
        if isinstance(value, (Tensor, *Number)):
            return value
        if value is None and not self.variadic and self.inputs[position] in self.optional:
            return value
        if isinstance(value, ndarray):
            dtypes.of(value.dtype)
            return wrap(value)
        name = "tensors" if self.variadic else self.inputs[position]
        raise wrong_type(self.name, {"x": "input", "y": "other"}.get(name, name), "Tensor", value, position + 1)

    def signature(self) -> str:
        """The call in one line, for messages and the stub."""
        names = ["*tensors"] if self.variadic else [f"{n}=None" if n in self.optional else n for n in self.inputs]
        if self.metadata:
            names += ["*"] + [k if v is inspect.Parameter.empty else f"{k}={v!r}" for k, v in self.metadata.items()]
        return f"{self.name}({', '.join(names)})"

    def place(self, inputs: Sequence[Any]) -> devices.device:
        """The device that all tensors share; 0-dimensional CPU tensors go with any device."""
        found: devices.device | None = None
        scalar = False
        for value in inputs:
            if isinstance(value, Tensor):
                data = value._data
                where = devices.cpu if data.__class__ is ndarray else device_of(data)
                if where is devices.cpu and data.ndim == 0:
                    scalar = True
                elif found is None:
                    found = where
                elif found is not where:
                    self._refuse_mixed(inputs)
        if found is None and not scalar:
            raise ArgumentError(f"{self.name}(): at least one argument must be a Tensor")
        return devices.cpu if found is None else found

    def _refuse_mixed(self, inputs: Sequence[Any]) -> None:
        names = self.inputs if not self.variadic else [f"tensors[{i}]" for i in range(len(inputs))]
        tensors = [(name, value) for name, value in zip(names, inputs, strict=False) if isinstance(value, Tensor)]
        raise DeviceMismatchError(errors.mixed_devices(self.name, tensors))

    # ---- recording --------------------------------------------------------------------------------------------

    def record(
        self, outputs: tuple[Tensor, ...], inputs: Sequence[Any], metadata: dict[str, Any], alike: bool = False
    ) -> None:
        """Leave a node on the results if an input needs a gradient.

        `alike` says that all inputs have the shape and the dtype of the first result.
        """
        mask: tuple[bool, ...] = ()
        for value in inputs:  # no comprehension, which is a call before Python 3.12
            mask += (isinstance(value, Tensor) and value._needs,)
        if True in mask and dtypes.of(outputs[0]._data.dtype).category >= dtypes.FLOATING:
            backward = self.backwards.get(mask) or (self.backward_for(mask) if self.differentiable else None)
            if backward is not None:
                attach(backward, outputs[0], inputs, _getframe(1), alike, outputs, metadata)
            else:
                unknown(self, outputs, inputs)

    def backward_for(self, mask: tuple[bool, ...]) -> OperatorGradient | None:
        """The function that backward calls when the inputs in `mask` need a gradient; None if no gradient of these is
        declared."""
        if mask in self.backwards:
            return self.backwards[mask]
        for name, needed in zip(self.inputs, mask, strict=False):
            if needed and name in self.refuses:
                raise not_by(self.refuses[name], name)
        backward = OperatorGradient(self, mask)
        return self.backwards.setdefault(mask, backward if backward.positions else None)

    def __repr__(self) -> str:
        return f"<{self.family} operator {self.signature()}>"

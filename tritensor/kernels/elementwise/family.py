"""The elementwise family: any number of inputs and outputs, one generic kernel, methods with quick paths.

    @elementwise(FLOAT)
    def silu(x):
        '''x * sigmoid(x).'''
        return x / (1 + np.exp(-x))

    @silu.kernel
    def _(x):
        return x / (1 + tl.exp(-x))

    @silu.gradient
    def _(grad, out, x):
        s = x.sigmoid()
        return grad * (s + out * (1 - s))

The reference may be a NumPy ufunc: `exp = elementwise(FLOAT, np.exp, "e to the power x.")`. Keyword-only parameters are
numbers that the body takes after the inputs. The declaration makes `tritensor.silu`, `Tensor.silu` and, where the
result can take the input's place, `Tensor.silu_`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from types import EllipsisType
from typing import Any, overload

import numpy as np

from ...ground.public import publish
from ...host.threads import quietly
from ...memory import buffer
from ...memory.array import DeviceArray
from ...operators import Dtypes, Operator, Shapes, copy_into
from ...operators.autocasting import Policy
from ...operators.inplace import in_place_form
from ...operators.lifting.batching import Batch
from ...operators.operator import Rule
from ...operators.outputs import ELEMENTWISE
from ...runtime.call import Call
from ...runtime.choice import ALWAYS, HALVES, NEVER, Native
from ...runtime.reference import metadata_of, numbers_of
from ...tensors import Tensor
from ...types import devices, dtypes, formats, layout
from .methods import binary, function_of, in_place_method, member, plain, reflected, unary
from .reference import LARGE_DIRECT, evaluate, is_large

# dtypes in which NumPy gives the same results as PyTorch; half precision is computed in float32
_DIRECT = frozenset(entry.numpy for entry in dtypes.ALL if entry not in (dtypes.float16, dtypes.bfloat16))


def _in_rows(arrays: Sequence[Any], metadata: object) -> bool:
    """True of halves, and of arrays that broadcast or have gaps: NumPy's loop over each row takes twice the time."""
    first, *others = [array for array in arrays if array.__class__ is np.ndarray]  # a number may stand before it
    return (
        first.dtype in HALVES
        or not first.flags.c_contiguous
        or any(array.shape != first.shape or not array.flags.c_contiguous for array in others)
    )


#: `Operator.native` of what NumPy computes as fast but for halves; of functions that native code takes from the C
#: library element by element; of functions of several passes; and of ufuncs, for many rows.
HALVES_ONLY, LIBRARY, FUNCTIONS = Native(NEVER), Native(NEVER, (1, 10_000)), Native()
ROWS = Native((LARGE_DIRECT, ALWAYS[1]), suits=_in_rows)


class Elementwise(Operator):
    """An operator that computes each element of its results from one element of each input, after broadcasting.

    Attributes:
        methods: names of the Tensor methods, except those of Python's syntax; each is a public function too.
        method, method_in_place: the Tensor methods, as functions.
        whole: the reference, of one array, takes every dtype as it is and shares large arrays among threads itself.
        into: what the public functions accept as `out`.
        ordered: on a device a result is channels-last if the first input is; else always row-major.
        one_text: reference and kernel are made from one text, see the module of that name.
        half_body: the Triton body for results of 16 bits, where a shorter one than `body` is exact enough; or None.
    """

    family = "elementwise"
    about = "One kernel for all: dimensions are collapsed, operands broadcast by strides, 16 bytes a load."
    half_body: Any = None
    repeatable = takes_numbers = True
    methods: tuple[str, ...] = ()
    method: Any = None
    method_in_place: Any = None
    whole = one_text = False
    ordered = True
    into = ELEMENTWISE

    def __init__(
        self,
        name: str,
        reference: Callable[..., Any],
        rule: Rule,
        *,
        kinds: dict[str, dtypes.dtype] | None = None,
        **names: Any,
    ) -> None:
        super().__init__(name, reference, rule, **names)
        self.kinds = kinds or {}
        allowed = _DIRECT
        if rule.floating or rule.examines:
            allowed = frozenset(d for d in allowed if dtypes.of(d).category >= dtypes.FLOATING)
        if rule.narrows:
            allowed = frozenset(d for d in allowed if not dtypes.of(d).is_complex)
        # dtypes that the quick path may pass directly to the reference: the operands' dtype is the compute dtype
        self.direct = frozenset(d for d in allowed if rule.lowest <= dtypes.of(d).category <= rule.highest)
        self.fixed = None if rule.result is None else rule.result.numpy
        self.ufunc = isinstance(reference, np.ufunc)
        self.complex_body: Any = None
        self.by_parts: bool = False

    def complex_kernel(self, body: Callable[..., Any]) -> Any:
        """Declare the body for complex numbers: it takes and returns real and imaginary parts, of metadata too.

        `by_parts` is set where `kernel`'s body makes real parts of real parts, and imaginary ones of imaginary ones.
        Complex arrays then pass as real ones of twice the elements.
        """
        self.complex_body, self.on_pairs = body, True
        return body

    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """The reference, in blocks where the result is large."""
        reference, wanted = self.reference, [result.numpy for result in call.results]
        if self.whole:
            return lambda x: (reference(x),)
        if not is_large(call.arrays):
            run = super().on_host(call)
        else:
            kinds = [self.kinds.get(name, call.compute).numpy for name in self.inputs]
            metadata, numbers = metadata_of(call), numbers_of(call)

            def run(*arrays: Any) -> tuple[np.ndarray, ...]:
                operands = [value if number is None else number(value) for value, number in zip(arrays, numbers)]
                return evaluate(reference, operands, kinds, wanted, metadata)

        rounds = self.rule.rounds(call)
        if rounds is not None:
            return _with_roundings(run, *rounds)
        if not self.rule.examines or call.device is not devices.cpu:
            return run
        examine, form = self.rule.examine, Call(self, (), {}, call.device, call.compute, call.results)

        def examined(*arrays: Any) -> tuple[np.ndarray, ...]:
            examine(form, arrays)
            return run(*arrays)

        return examined

    def allocate(self, call: Call) -> Shapes:
        """Every output has the broadcast shape of the inputs, and is channels-last where the first of them is."""
        arrays = [array for array in call.arrays if array.__class__ is DeviceArray]
        shape = layout.broadcast_shapes(*(array.shape for array in arrays))
        if len(shape) > 3 and self.ordered:
            first = next((array for array in arrays if array.shape == shape), None)
            if first is not None and formats.is_channels_last(shape, first.strides):
                return [(shape, result.numpy, first.strides) for result in call.results]
        return [(shape, result.numpy) for result in call.results]

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """By the rule, from all inputs except those with a fixed dtype (`kinds`)."""
        ruled = [value for name, value in zip(self.inputs, call.inputs, strict=True) if name not in self.kinds]
        compute, result = self.rule(self.name, ruled)
        return compute, tuple([self.kinds.get(name, result) for name in self.outputs])

    def prepare(self, call: Call) -> None:
        """Check that the shapes broadcast."""
        layout.broadcast_shapes(*[value._data.shape for value in call.inputs if isinstance(value, Tensor)])

    def compute_in_place(self, inputs: tuple[Any, ...], metadata: dict[str, Any]) -> bool:
        """Launch with the first input's memory as the result; False where the result is of another shape or dtype."""
        x = inputs[0]._data

        def prepared() -> Call | None:
            call = self.prepared(inputs, metadata)
            call.arrays = self.arrays_of(call)
            shape = layout.broadcast_shapes(*[value._data.shape for value in call.inputs if isinstance(value, Tensor)])
            fits = shape == x.shape and call.results[0].numpy == x.dtype and call.device is x.device
            return call if fits and call.compute not in dtypes.FLOAT8 else None

        return self.compute_into(x, inputs, metadata, prepared)

    def half_kernel(self, body: Callable[..., Any]) -> Operator:
        """Declare the Triton body for results of 16 bits."""
        self.half_body = body
        return self

    def launch(self, call: Call) -> None:
        """Run the body over all elements with the family's kernel."""
        from .kernel import launch_elementwise

        rounds = self.rule.rounds(call)
        if rounds is not None:
            half, positions = rounds
            call.arrays = list(call.arrays)
            for position in positions:
                value = call.arrays[position]
                call.arrays[position] = buffer.empty(value.shape, half, call.device)
                copy_into(call.arrays[position], value)
        launch_elementwise(call)

    def calls(self, draw: Any) -> Iterator[tuple[Any, ...]]:
        """Every rank, empty tensors, and for several inputs shapes that are broadcast."""
        shapes: list[tuple[tuple[int, ...], ...]] = [((),), ((1,),), ((37,),), ((5, 7),), ((2, 3, 4),)]
        shapes += [((2, 1, 3, 2),), ((2, 2, 1, 3, 2),), ((0,),), ((3, 0, 2),)]
        if len(self.inputs) > 1:
            shapes += [((5, 7), (7,)), ((5, 1), (1, 7)), ((4, 1, 3), (2, 1)), ((3,), ()), ((2, 0, 3), (1, 1, 3))]
        for each in shapes:
            inputs = [draw.input(name, each[position % len(each)]) for position, name in enumerate(self.inputs)]
            yield inputs, self.metadata

    @staticmethod
    def batched(batch: Batch) -> tuple[Any, ...]:
        """The batch in front of the dimensions that the samples are broadcast to."""
        rank, inputs = max(batch.ranks), []
        for x, whole, own in zip(batch.x, batch.whole, batch.ranks, strict=True):
            inputs.append(x.reshape(batch.size, *(1,) * (rank - own), *x.shape[1:]) if whole and own < rank else x)
        found = batch(*inputs)
        if found[0].dtype is batch.kind:
            return found
        # a sample without dimensions counts less for the dtype of the result, and has a dimension here
        return batch(*[x.to(batch.kind) if isinstance(x, Tensor) else x for x in inputs])


def _with_roundings(
    run: Callable[..., tuple[np.ndarray, ...]], half: np.dtype, positions: Sequence[int]
) -> Callable[..., tuple[np.ndarray, ...]]:
    """`run` of arrays some of which are cast to half precision first."""

    def rounded(*arrays: Any) -> tuple[np.ndarray, ...]:
        cast = list(arrays)
        for position in positions:
            cast[position] = quietly(arrays[position].astype, half)
        return run(*cast)

    return rounded


@overload
def elementwise(
    rule: Rule, reference: None = None, doc: None = None, **options: Any
) -> Callable[[Callable[..., Any]], Elementwise]: ...
@overload
def elementwise(rule: Rule, reference: Callable[..., Any], doc: str | None = None, **options: Any) -> Elementwise: ...
def elementwise(  # type: ignore[misc] # the options, which the two kinds of call above share
    rule: Rule,
    reference: Callable[..., Any] | None = None,
    doc: str | None = None,
    *,
    name: str | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    kinds: dict[str, dtypes.dtype] | None = None,
    function: bool = True,
    in_place: bool | None = None,
    in_place_functions: Sequence[str] | None = None,
    out: str | None = None,
    autocast: Policy | None = None,
    native: Native | EllipsisType | None = ...,
) -> Any:
    """Declare an elementwise operator; a decorator for its reference, or a call with a ufunc.

    Args:
        rule: the dtype rule (`tritensor.operators.rules`: ANY, FLOAT, COMPARISON, ...).
        reference: a ufunc; leave it out to decorate a function.
        doc: the docstring, where the reference is a ufunc.
        name, inputs, outputs: names to use in place of the function's own, or of a ufunc's first method.
        methods: the names of the Tensor methods and of the public functions; the operator's name by default. Names of
            Python's syntax (`__add__`) are only methods, and add `__radd__` and `__iadd__` too.
        kinds: inputs and outputs with a fixed dtype, to which the rule does not apply: `where`'s condition is boolean.
        function: whether to make public functions; False where one with other parameters is written by hand.
        in_place: whether to make in-place methods; by default where the result has the inputs' dtype, and for two
            inputs with a boolean result.
        in_place_functions: those in-place methods that are functions, too; by default all of one input's.
        out: the dtypes of `out`, see `outputs.Into`; unless given "any" for a boolean result, "same" for one input that
            keeps its dtype, and "cast" for all others.
        autocast: what autocast casts the inputs to, by the type of device; None for nothing.
        native: see `Operator.native`; by default halves for a ufunc, and any for a function of several passes.
    """
    if reference is None:
        options = {key: value for key, value in locals().items() if key not in ("rule", "reference")}
        return functools.partial(elementwise, rule, **options)
    named = [reference.__name__]
    if isinstance(reference, np.ufunc):
        inputs = inputs or ("x", "y")[: reference.nin]
        named = [method for method in methods or () if not method.startswith("__")] or named
    operator = Elementwise(name or named[0], reference, rule, inputs=inputs, outputs=outputs, kinds=kinds)
    operator.__doc__ = doc or operator.__doc__
    if native is ...:
        native = ROWS if isinstance(reference, np.ufunc) else FUNCTIONS
    operator.native = native
    if autocast is not None:
        operator.autocasts(**autocast)
    names = (operator.name,) if methods is None else methods
    operator.methods = tuple([name for name in names if not name.startswith("__")])
    changes, count = rule.result is None, len(operator.inputs)
    if in_place_functions is None and not (function and count == 1):
        in_place_functions = ()
    _add_methods(operator, names, in_place, in_place_functions)
    keeps = count == 1 and changes and not rule.floating
    operator.into = ELEMENTWISE._replace(dtype=out or ("any" if not changes else "same" if keeps else "cast"))
    if function:
        for name in operator.methods:
            publish(name, function_of(operator, name))
    return operator


def _add_methods(
    operator: Elementwise, names: Sequence[str], in_place: bool | None, functions: Sequence[str] | None
) -> None:
    """Make the methods of these names, in place too where that is asked for, or by default fits.

    Args:
        functions: those in-place methods that are functions, too; None for all.
    """
    simple = len(operator.outputs) == 1 and not operator.metadata and not operator.kinds
    makers = {1: unary, 2: binary} if simple else {}
    count, result = len(operator.inputs), operator.rule.result
    operator.method = makers.get(count, plain)(operator)
    if in_place is None:
        fits = result is None or (result is dtypes.bool_ and count == 2)
        in_place = bool(names) and len(operator.outputs) == 1 and fits
    if in_place:
        operator.method_in_place = in_place_method(operator) if result is None else in_place_form(operator)
    syntax = [name for name in names if name.startswith("__")]
    if syntax:
        member(operator, binary(operator, syntax=True) if count == 2 else operator.method, *syntax)
        if count == 2 and result is None:
            stems = [name.strip("_") for name in syntax]
            member(operator, reflected(operator), *[f"__r{stem}__" for stem in stems])
            member(operator, in_place_method(operator, syntax=True), *[f"__i{stem}__" for stem in stems])
    if operator.methods:
        member(operator, operator.method, *operator.methods)
    if in_place:
        changing = [f"{name}_" for name in operator.methods or (operator.name,)]
        member(operator, operator.method_in_place, *changing, functions=changing if functions is None else functions)

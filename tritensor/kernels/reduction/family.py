"""The reduction family: one result from many elements, along any dimensions, by one generic kernel.

    @reduction(SUMS)
    def sum(x, *, dim=None, keepdim=False, dtype=None):
        '''The sum.'''
        return np.add.reduce(x, dim, keepdims=keepdim)

    sum.kernel(fold_sum, add, identity=lambda compute: ((0, compute),))
    sum.gradient(lambda grad, x_shape, dim, keepdim: spread(grad, x_shape, dim, keepdim))

The kernel computes a *state* of one or more values from each element (`start`), combines states pairwise, elementwise
over a tile (`combine`) and across it (`fold`), and computes the result from the last one (`finish`). `identity` is the
state of no elements. A fold names its combine function itself, because `tl.reduce` cannot take one from a constant.

Dimensions arrive in the reference, the gradient and the kernel as a sorted tuple without duplicates, () for a tensor
without dimensions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from ...errors import ArgumentError, RangeError, ShapeError
from ...ground.arguments import wrong_type
from ...ground.public import public
from ...host.threads import quietly
from ...operators import Dtypes, Operator, Shapes
from ...operators.autocasting import Policy
from ...operators.lifting.batching import Batch
from ...operators.outputs import SAME, Into
from ...operators.rules import FloatingOnly, Places, Rule, asked_dtype, compute_dtype
from ...runtime.call import Call
from ...runtime.choice import Native
from ...runtime.source import device_function
from ...tensors import Tensor
from ...types import dtypes, layout
from ..pairs import is_complex
from .functions import function_of, reduced_shape
from .reference import LARGE, in_parts, is_large, reduced_count

if TYPE_CHECKING:
    import triton.language as tl

ndarray, asarray = np.ndarray, np.asarray


@functools.cache
def folded(combine: Any) -> Any:
    """`(state, AXIS) -> state`, a tile's states combined along an axis by `combine`."""

    @device_function
    def fold(state, AXIS: tl.constexpr):
        return tl.reduce(state, AXIS, combine)

    return fold


class Parts(NamedTuple):
    """The device functions of the family's kernel; see `Reduction.kernel`."""

    fold: Any
    combine: Any
    identity: Callable[[dtypes.dtype], tuple[tuple[Any, dtypes.dtype], ...]]
    start: Any = None
    finish: Any = None
    numbers: tuple[float, ...] = ()
    shifted: bool = False


class Place(NamedTuple):
    """The start of a block in the array of `shape`, and `new(shape, dtype)` for what is computed on the way."""

    start: list[int]
    shape: tuple[int, ...]
    new: Any


class Stages(NamedTuple):
    """The stages by which a large array is reduced on the CPU, block by block; see `Reduction.in_parts`."""

    part: Callable[..., Any]
    whole: Callable[..., Any]
    read_once: bool


class Reduction(Operator):
    """An operator that computes each element of its results from all elements along the reduced dimensions.

    Attributes:
        refuses_empty: the reduction of no elements has no value, and raises PyTorch's error.
        parts: the kernel's parts, by metadata; see `kernel`.
        into: what the public function accepts as `out`.
    """

    family = "reduction"
    about = "Rows, columns or everything, in two stages where one does not fill the device; never by atomics."
    repeatable = True
    native = Native((1, 10_000), (1, 30_000))
    into: Into | Callable[..., Into] = SAME
    launch_complex: Any = None

    def __init__(
        self, name: str, reference: Callable[..., Any], rule: Rule, *, refuses_empty: bool = False, **names: Any
    ) -> None:
        super().__init__(name, reference, rule, **names)
        self.refuses_empty = refuses_empty
        #: `metadata -> Parts`; declared by `kernel`, or set where the parts depend on the metadata
        self.parts: Callable[[dict[str, Any]], Parts] | None = None
        self.stages: Stages | None = None

    def kernel(  # type: ignore[override]
        self,
        fold: Any,
        combine: Any,
        identity: Any,
        *,
        start: Any = None,
        finish: Any = None,
        numbers: Any = None,
        shifted: bool = False,
    ) -> Operator:
        """Declare the kernel's parts, device functions in Triton's language.

        Args:
            fold: `(state, AXIS) -> state`, a tile's states combined along one axis.
            combine: `(*state, *state) -> state`, as `tl.reduce` calls it.
            identity: `compute dtype -> ((value, dtype), ...)`, the state of no elements.
            start: `(values, index, numbers) -> state` of one element (`values` has one entry); by default the element.
            finish: `(state, count, numbers) -> results`; by default the state.
            numbers: `metadata -> numbers` for start and finish; by default there are none.
            shifted: a row's first element is a further entry of `values`, and the last of the state for finish.
        """
        self.body = fold
        self.parts = lambda metadata: Parts(
            fold, combine, identity, start, finish, numbers(metadata) if numbers else (), shifted
        )
        return self

    def complex_kernel(self, launch: Callable[[Any, Call], None]) -> None:
        """Declare what reduces complex numbers on a device: `(operator, call)`, see `complex_sums.py`."""
        self.on_pairs, self.launch_complex = True, lambda call: launch(self, call)

    def in_parts(self, part: Any = None, whole: Any = None, *, read_once: bool = True) -> None:
        """Declare that large arrays may be cut along reduced dimensions on the CPU; otherwise only others are cut.

        Args:
            part: `(block, place, dim, metadata) -> parts`, arrays with the reduced dimensions left in; see `Place`. By
                default the reference.
            whole: `(parts, metadata, count) -> results`; each of the parts has the blocks along its first dimension,
                and results do not. By default the reference, of the parts.
            read_once: `part` reads the block once, and has no arrays of its size; larger blocks are faster then.
        """
        self.stages = Stages(part or self._part, whole or self._whole, read_once)

    def _part(self, block: np.ndarray, place: Place, dim: tuple[int, ...], metadata: dict[str, Any]) -> Any:
        return self.reference(block, **{**metadata, "dim": dim, "keepdim": True})

    def _whole(self, parts: Sequence[np.ndarray], metadata: dict[str, Any], count: int) -> Any:
        return self.reference(parts[0], **{**metadata, "dim": (0,), "keepdim": False})

    def in_blocks(self, x: np.ndarray, dtype: np.dtype, metadata: dict[str, Any]) -> tuple[np.ndarray, ...]:
        """The reference of a large array, computed in blocks of the compute dtype."""
        dims, stages = metadata["dim"] or tuple(range(x.ndim)), self.stages
        part = self._part if stages is None else stages.part

        def reduce(block: np.ndarray, start: list[int], new: object) -> tuple[np.ndarray, ...]:
            return _as_tuple(part(block, Place(start, x.shape, new), dims, metadata))

        produced = in_parts(reduce, x, dims, dtype, stages is not None and stages.read_once, stages is None)
        with np.errstate(all="ignore"):
            if stages is None:
                results = tuple([each[0] for each in produced])
            else:
                results = _as_tuple(stages.whole(produced, metadata, reduced_count(x.shape, dims)))
        return results if metadata["keepdim"] else tuple([np.squeeze(each, dims) for each in results])

    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """The reference; in blocks for a large array."""
        x, kind, metadata = call.arrays[0], call.compute.numpy, call.metadata
        if x.size < LARGE or not is_large(x, self.stages is not None and self.stages.read_once and x.dtype == kind):
            return super().on_host(call)
        wanted = [result.numpy for result in call.results]

        def run(x: np.ndarray) -> tuple[np.ndarray, ...]:
            produced = self.in_blocks(x, kind, metadata)
            return tuple([quietly(each.astype, to, copy=False) for each, to in zip(produced, wanted, strict=True)])

        return run

    def prepare(self, call: Call) -> None:
        """Normalise the dimensions; raise if no elements are reduced and the operator has no value for that."""
        (x,) = call.inputs
        if not isinstance(x, Tensor):
            raise wrong_type(self.name, "input", "Tensor", x, 1)
        shape = x._data.shape
        dim = call.metadata["dim"]
        whole = dim is None
        if dim.__class__ is not int and dim is not None and not isinstance(dim, (tuple, list)):
            dim = _as_index(self.name, dim)
        try:
            dims = layout.normalize_dims(dim, len(shape))
        except RangeError:
            if isinstance(self.rule, (FloatingOnly, Places)):  # PyTorch looks at the dtypes of these first
                self.resolve_dtypes(call)
            raise
        call.metadata["dim"] = tuple(sorted(dims)) if shape else ()
        if self.refuses_empty and 0 in shape:
            refuse_empty(self.name, shape, call.metadata["dim"], whole)

    def reduce(self, input: Tensor, dim: tuple[int, ...] | int | None, keepdim: bool, **metadata: Any) -> Tensor:
        """The operator's call, with a key in few steps for one dimension or all."""
        if dim is not None and dim.__class__ is not int:
            return self(input, dim=dim, keepdim=keepdim, **metadata)
        more = (dim, keepdim, *metadata.values()) if metadata else (dim, keepdim)
        metadata["dim"], metadata["keepdim"] = dim, keepdim
        return self.call_one(input, more, metadata)

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """By the rule, or `dtype=`, to which the input is converted first."""
        wanted = asked_dtype(call)
        if wanted is None:
            compute, result = self.rule(self.name, call.inputs)
        else:
            if isinstance(self.rule, FloatingOnly):
                self.rule.check(wanted, self.rule.dtype_words)
            compute, result = compute_dtype(wanted), wanted
        return compute, (result, dtypes.int64)[: len(self.outputs)]

    def allocate(self, call: Call) -> Shapes:
        """The input's shape without the reduced dimensions, or with 1 in their place."""
        shape = reduced_shape(call.arrays[0].shape, call.metadata["dim"], call.metadata["keepdim"])
        return [(shape, result.numpy) for result in call.results]

    def launch(self, call: Call) -> None:
        """Reduce with the family's kernel, in two stages for few long rows."""
        from .kernel import launch_reduction

        if call.compute.is_complex or is_complex(call.arrays[0]):
            self.launch_complex(call)
            return
        launch_reduction(self, call.outs, call.arrays[0], call.compute, call.metadata)

    def calls(self, draw: Any) -> Iterator[tuple[Any, ...]]:
        """Every way to pass dimensions, and rows of several lengths."""
        for dim in (None, 0, 1, 2, -1, (0, 2), (1, 2), (0, 1, 2)):
            yield [draw.input(self.inputs[0], (3, 4, 5))], {"dim": dim}
        shapes: tuple[tuple[int, ...], ...] = ((7,), (1,), (2, 1, 300), (33, 65), (2, 3, 2, 2, 3))
        for shape in shapes:
            yield [draw.input(self.inputs[0], shape)], {"dim": len(shape) - 1}

    @staticmethod
    def batched(batch: Batch) -> tuple[Any, ...]:
        """Results for all samples, see `Operator.batched`."""
        (x,), dims = batch.x, batch.metadata["dim"]
        if not batch.ranks[0]:
            return batch(x.unsqueeze(1), dim=(1,), keepdim=False)
        return batch(x, dim=tuple([dim + 1 for dim in dims]))


def _as_tuple(produced: Any) -> tuple[Any, ...]:
    return produced if produced.__class__ is tuple else (produced,)


def _as_index(name: str, dim: Any) -> int:
    try:
        return dim.__index__()
    except AttributeError:
        raise ArgumentError(
            f"{name}() received an invalid combination of arguments - got ({dim.__class__.__name__})",
            "dim is an int or a tuple of ints",
        ) from None


def refuse_empty(name: str, shape: tuple[int, ...], dims: tuple[int, ...], whole: bool) -> None:
    """Raise PyTorch's error if a result would be the reduction of no elements.

    Raises:
        ShapeError, RangeError: `amax(): Expected reduction dim ...`.
    """
    name = name.removesuffix("_dim")
    if whole:
        words = f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
        if name.startswith("arg"):
            raise RangeError(words, f"the shape is {shape}")
        raise ShapeError(words + " Specify the reduction dim with the 'dim' argument.", f"the shape is {shape}")
    for dim in dims:
        if shape[dim] == 0:
            raise RangeError(f"{name}(): Expected reduction dim {dim} to have non-zero size.", f"the shape is {shape}")


def restore(result: Tensor, shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """A reduction's result (or its gradient) with the reduced dimensions back, of size 1."""
    return result if keepdim or not dims else result.reshape(reduced_shape(shape, dims, True))


def spread(grad: Tensor, shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """The gradient of a sum: every summand gets the sum's gradient."""
    return restore(grad, shape, dims, keepdim).expand(shape)


@overload
def reduction(rule: Rule, reference: None = None, **options: Any) -> Callable[[Callable[..., Any]], Reduction]: ...
@overload
def reduction(rule: Rule, reference: Callable[..., Any], **options: Any) -> Reduction: ...
def reduction(  # type: ignore[misc] # the options, which the two kinds of call above share
    rule: Rule,
    reference: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    outputs: Sequence[str] | None = None,
    refuses_empty: bool = False,
    one_dim: bool = False,
    quick: bool = False,
    function: bool = True,
    out: Into | Callable[..., Into] = SAME,
    autocast: Policy | None = None,
) -> Any:
    """Declare a reduction; a decorator for its reference.

    Args:
        rule: the dtype rule.
        reference: `(x, *, dim, keepdim, ...)`, NumPy; `dim` is a sorted tuple.
        name: the operator's name, if it is not the function's.
        outputs: names of the results where there are several; the second and later are int64.
        refuses_empty: the reduction of no elements has no value, as with `amax`.
        one_dim: the public function takes one dimension or none, not several.
        quick: `functions.quick_sum` computes it on the CPU.
        function: whether it is a public function and a method of Tensor; False where it is written by hand.
        out: what the function accepts as `out`.
        autocast: what autocast casts the inputs to, by the type of device; None for nothing.
    """
    if reference is None:
        options = {key: value for key, value in locals().items() if key not in ("rule", "reference")}
        return functools.partial(reduction, rule, **options)
    operator = Reduction(name or reference.__name__, reference, rule, outputs=outputs, refuses_empty=refuses_empty)
    operator.into = out
    if autocast is not None:
        operator.autocasts(**autocast)
    if function:
        public(method=True, guard=False)(function_of(operator, one_dim, quick))
    return operator

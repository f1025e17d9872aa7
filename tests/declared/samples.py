"""Arguments for every registered operator: what the derived tests and benchmarks call it with.

Elementwise operators and reductions get theirs from their declaration. Every other operator has an entry in `SPECIAL`;
`test_operators.py` fails for an operator without one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tritensor import dtypes
from tritensor.operator import Operator

RNG_SEED = 20_240_229


@dataclass
class Sample:
    """One call: arrays (or numbers, or None) for the inputs, metadata, and which inputs may be differentiated."""

    inputs: list[Any]
    metadata: dict[str, Any] = field(default_factory=dict)
    differentiate: tuple[int, ...] | None = None

    def floating(self) -> list[int]:
        """The positions of the inputs whose gradient is checked."""
        if self.differentiate is not None:
            return list(self.differentiate)
        return [i for i, value in enumerate(self.inputs) if isinstance(value, np.ndarray) and value.dtype.kind == "f"]


def values(
    shape: tuple[int, ...], dtype: dtypes.dtype, rng: np.random.Generator, domain: tuple[float, float] | None = None
) -> np.ndarray:
    """Random elements of a dtype within a domain, away from its ends."""
    low, high = domain if domain is not None else (-3.0, 3.0)
    low, high = max(low, -50.0), min(high, 50.0)
    if dtype is dtypes.bool_:
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.category == dtypes.INTEGER:
        first = max(int(np.ceil(low)), 0 if not dtype.is_signed else -6)
        return np.asarray(rng.integers(first, max(min(int(high), 7), first + 1) + 1, shape)).astype(dtype.numpy)
    margin = (high - low) * 0.02
    drawn = rng.uniform(low + margin, high - margin, shape)
    if dtype.is_complex:
        drawn = drawn + 1j * rng.uniform(low + margin, high - margin, shape)
    return np.asarray(drawn).astype(dtype.numpy)


# Where a function has jumps or ends, gradients are compared away from them: x / y stays between 2 and 3 below.
_BETWEEN_JUMPS = {"x": (2.1, 2.9), "y": (1.0, 1.02)}
GRADIENT_DOMAIN: dict[str, Any] = {
    "pow": {"x": (0.2, 3.0), "y": (-2.0, 2.0)},
    "remainder": _BETWEEN_JUMPS,
    "fmod": _BETWEEN_JUMPS,
    "trunc_divide": _BETWEEN_JUMPS,
    "floor_divide": _BETWEEN_JUMPS,
}


def domain_of(operator: Operator, name: str, gradient: bool = False) -> tuple[float, float] | None:
    """The interval in which an input is meant to lie; `operator.domain` is one for all inputs or a dict by name."""
    domain = getattr(operator, "domain", None)
    if gradient:
        domain = GRADIENT_DOMAIN.get(operator.name, domain)
    return domain.get(name) if isinstance(domain, dict) else domain


def metadata_of(operator: Operator) -> dict[str, Any]:
    """Metadata for the derived calls: the defaults, or `operator.example` where there are none."""
    return {**operator.metadata, **getattr(operator, "example", {})}


def elementwise_inputs(
    operator: Operator,
    shapes: list[tuple[int, ...]],
    dtype: dtypes.dtype,
    rng: np.random.Generator,
    gradient: bool = False,
) -> list[Any]:
    """An array of the dtype (or of the input's own one) for each input, in the given shapes in turn."""
    made = []
    for position, name in enumerate(operator.inputs):
        kind = operator.kinds.get(name, dtype)
        made.append(values(shapes[position % len(shapes)], kind, rng, domain_of(operator, name, gradient)))
    return made


def reduction_metadata(operator: Operator) -> Iterator[dict[str, Any]]:
    """Every way to name the dimensions of a (3, 4, 5) array that the operator takes."""
    dims: list[Any] = [0, 1, 2, -1]
    if getattr(operator, "one_dim", False):
        choices = dims
    else:
        choices = [None, *dims, (0, 2), (1, 2), (0, 1, 2)]
    for dim in choices:
        yield {"dim": dim, **getattr(operator, "example", {})}


SPECIAL: dict[str, Callable[[np.random.Generator, dtypes.dtype], Iterator[Sample]]] = {}


def special(*names: str) -> Callable[[Any], Any]:
    """Register a generator of samples for operators by name."""

    def register(function: Any) -> Any:
        for name in names:
            SPECIAL[name] = function
        return function

    return register


# Families whose results are not a function of their inputs, and where their tests are.
TESTED_ALONE = {
    "random": "tests/functional/test_random.py",
    "dropout": "tests/functional/test_random.py",
    "range": "tests/functional/test_creation.py",
}


def has_samples(operator: Operator) -> bool:
    """Whether the derived tests know how to call the operator."""
    return operator.family in ("elementwise", "reduction") or operator.name in SPECIAL


def samples(operator: Operator, dtype: dtypes.dtype, rng: np.random.Generator, gradient: bool = False) -> list[Sample]:
    """The calls of one operator in one dtype, on contiguous arrays; layouts are the tests' affair.

    With `gradient`, the elements lie where the operator has a derivative.
    """
    if operator.name in SPECIAL:
        return list(SPECIAL[operator.name](rng, dtype))
    if operator.family == "elementwise":
        shapes: list[list[tuple[int, ...]]] = [
            [()],
            [(1,)],
            [(37,)],
            [(5, 7)],
            [(2, 3, 4)],
            [(2, 1, 3, 2)],
            [(2, 2, 1, 3, 2)],
            [(0,)],
            [(3, 0, 2)],
        ]
        if len(operator.inputs) > 1:
            shapes += [[(5, 7), (7,)], [(5, 1), (1, 7)], [(4, 1, 3), (2, 1)], [(3,), ()], [(2, 0, 3), (1, 1, 3)]]
        return [
            Sample(elementwise_inputs(operator, each, dtype, rng, gradient), metadata_of(operator)) for each in shapes
        ]
    made = [
        Sample([values((3, 4, 5), dtype, rng, domain_of(operator, "x"))], metadata)
        for metadata in reduction_metadata(operator)
    ]
    shapes_of_rows: list[tuple[int, ...]] = [(7,), (1,), (2, 1, 300), (33, 65), (2, 3, 2, 2, 3)]
    for shape in shapes_of_rows:
        dim = len(shape) - 1
        made.append(
            Sample(
                [values(shape, dtype, rng, domain_of(operator, "x"))], {"dim": dim, **getattr(operator, "example", {})}
            )
        )
    return made


def dtypes_of(operator: Operator) -> list[dtypes.dtype]:
    """The dtypes that the derived tests run an operator in: one of each kind that its rule takes."""
    rule = operator.rule
    candidates = [
        dtypes.bool_,
        dtypes.uint8,
        dtypes.int32,
        dtypes.int64,
        dtypes.float16,
        dtypes.bfloat16,
        dtypes.float32,
        dtypes.float64,
    ]
    return [entry for entry in candidates if rule.lowest <= entry.category <= rule.highest]


# ---- products -----------------------------------------------------------------------------------------------------


@special("matmul")
def _(rng: np.random.Generator, dtype: dtypes.dtype) -> Iterator[Sample]:
    for x, y in (
        ((2, 3), (3, 4)),
        ((5,), (5,)),
        ((3,), (2, 3, 2)),
        ((2, 3, 4), (4,)),
        ((2, 1, 2, 3), (2, 3, 2)),
        ((33, 70), (70, 20)),
        ((3, 0), (0, 2)),
    ):
        yield Sample([values(x, dtype, rng), values(y, dtype, rng)])


@special("linear")
def _(rng: np.random.Generator, dtype: dtypes.dtype) -> Iterator[Sample]:
    for shape, bias in (((4, 5), (3,)), ((2, 2, 5), (3,)), ((5,), None), ((33, 70), (3,)), ((4, 5), (4, 3))):
        inputs = [values(shape, dtype, rng), values((3, shape[-1]), dtype, rng)]
        yield Sample([*inputs, None if bias is None else values(bias, dtype, rng)])


# ---- indexing and joining -----------------------------------------------------------------------------------------


def _places(rng: np.random.Generator, sizes: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
    """Coordinates of shape (k, *shape), some of them counted from the end."""
    return np.stack([rng.integers(-size, size, shape) for size in sizes]).reshape(len(sizes), *shape)


@special("index")
def _(rng: np.random.Generator, dtype: dtypes.dtype) -> Iterator[Sample]:
    for dims, places in (((0,), (6,)), ((1,), (2, 3)), ((0, 1), (4,)), ((0, 2), (3, 2)), ((2,), (0,)), ((0, 1, 2), ())):
        x = values((3, 4, 5), dtype, rng)
        yield Sample([x, _places(rng, tuple(x.shape[dim] for dim in dims), places)], {"dims": dims})


@special("index_put")
def _(rng: np.random.Generator, dtype: dtypes.dtype) -> Iterator[Sample]:
    dims: tuple[int, ...]
    shape: tuple[int, ...]
    for dims, shape in (((0,), (2, 4, 5)), ((1,), (5,)), ((0, 2), (2, 4)), ((0, 2), ())):
        # distinct coordinates: which of two equal ones counts is not the same everywhere
        positions = np.stack([rng.permutation(3)[:2] - 3 for _ in dims])
        yield Sample([values((3, 4, 5), dtype, rng), positions, values(shape, dtype, rng)], {"dims": dims})
    if dtype is not dtypes.bool_:
        for dims, shape in (((0,), (7, 4, 5)), ((1,), (5,)), ((0, 2), (7, 4)), ((0, 1, 2), ())):
            positions = _places(rng, tuple((3, 4, 5)[dim] for dim in dims), (7,))
            yield Sample(
                [values((3, 4, 5), dtype, rng), positions, values(shape, dtype, rng)],
                {"dims": dims, "accumulate": True},
            )


@special("gather")
def _(rng: np.random.Generator, dtype: dtypes.dtype) -> Iterator[Sample]:
    for dim, shape in ((0, (6, 4)), (1, (2, 7)), (-1, (3, 4)), (0, (0, 4))):
        yield Sample([values((3, 4), dtype, rng), rng.integers(0, (3, 4)[dim], shape)], {"dim": dim})
    yield Sample([values((), dtype, rng), np.zeros(3, np.int64)], {"dim": 0})


@special("scatter")
def _(rng: np.random.Generator, dtype: dtypes.dtype) -> Iterator[Sample]:
    distinct = np.argsort(rng.random((3, 4)), axis=0)[:2]
    yield Sample([values((3, 4), dtype, rng), distinct, values((2, 4), dtype, rng)], {"dim": 0})
    yield Sample([values((3, 4), dtype, rng), distinct[:, :3].copy(), values((2, 3), dtype, rng)], {"dim": 0})
    if dtype is not dtypes.bool_:
        for dim, shape in ((0, (6, 4)), (1, (2, 7)), (1, (3, 0))):
            yield Sample(
                [values((3, 4), dtype, rng), rng.integers(0, (3, 4)[dim], shape), values(shape, dtype, rng)],
                {"dim": dim, "accumulate": True},
            )


@special("cat")
def _(rng: np.random.Generator, dtype: dtypes.dtype) -> Iterator[Sample]:
    for dim, shapes in (
        (0, [(2, 3), (1, 3)]),
        (1, [(2, 3), (2, 1), (2, 2)]),
        (-1, [(4,), (0,), (2,)]),
        (0, [(0,), (2, 3)]),
    ):
        yield Sample([values(shape, dtype, rng) for shape in shapes], {"dim": dim})


def along_dims(rng: np.random.Generator, dtype: dtypes.dtype, count: int) -> Iterator[Sample]:
    """`count` inputs of one shape, and a dimension."""
    for dim, shape in ((-1, (4, 7)), (0, (5, 3)), (1, (2, 3, 4)), (0, ()), (-1, (3, 0)), (1, (0, 3)), (-1, (3, 1500))):
        yield Sample([values(shape, dtype, rng) for _ in range(count)], {"dim": dim})


@special("softmax", "log_softmax", "cumsum")
def _(rng: np.random.Generator, dtype: dtypes.dtype) -> Iterator[Sample]:
    return along_dims(rng, dtype, 1)


@special("softmax_backward", "log_softmax_backward")
def _(rng: np.random.Generator, dtype: dtypes.dtype) -> Iterator[Sample]:
    return along_dims(rng, dtype, 2)


@special("layer_norm")
def _(rng: np.random.Generator, dtype: dtypes.dtype) -> Iterator[Sample]:
    for shape, weight, bias in (
        ((4, 7), 1, 1),
        ((4, 7), 1, 0),
        ((4, 7), 0, 1),
        ((3, 1500), 0, 0),
        ((0, 3), 1, 1),
        ((3, 0), 1, 1),
    ):
        parameters = [values(shape[1:], dtype, rng) if there else None for there in (weight, bias)]
        yield Sample([values(shape, dtype, rng), *parameters], {})


@special("layer_norm_backward")
def _(rng: np.random.Generator, dtype: dtypes.dtype) -> Iterator[Sample]:
    for shape, weight in (
        ((4, 7), True),
        ((40, 7), False),
        ((3, 1500), True),
        ((2, 9000), True),
        ((0, 3), True),
        ((3, 0), True),
    ):
        rows = [values(shape[:1], dtype, rng, (0.5, 2.0)) for _ in range(2)]
        yield Sample(
            [
                values(shape, dtype, rng),
                values(shape, dtype, rng),
                *rows,
                values(shape[1:], dtype, rng) if weight else None,
            ],
            {},
        )


@special("rms_norm")
def _(rng: np.random.Generator, dtype: dtypes.dtype) -> Iterator[Sample]:
    for shape, weight in (((4, 7), True), ((4, 7), False), ((3, 1500), True), ((0, 3), True), ((3, 0), True)):
        yield Sample([values(shape, dtype, rng), values(shape[1:], dtype, rng) if weight else None], {"eps": 1e-5})


@special("rms_norm_backward")
def _(rng: np.random.Generator, dtype: dtypes.dtype) -> Iterator[Sample]:
    for shape, weight in (((4, 7), True), ((40, 7), False), ((3, 1500), True), ((2, 9000), True), ((0, 3), True)):
        yield Sample(
            [
                values(shape, dtype, rng),
                values(shape, dtype, rng),
                values(shape[:1], dtype, rng, (0.5, 2.0)),
                values(shape[1:], dtype, rng) if weight else None,
            ],
            {},
        )


def class_losses() -> Iterator[tuple[tuple[int, int], bool, dict[str, Any]]]:
    """Shapes, whether classes are weighted, and metadata."""
    for shape, weighted, reduction, ignored in (
        ((5, 4), False, "mean", -100),
        ((5, 4), True, "mean", 1),
        ((6, 3), True, "sum", -100),
        ((3, 1500), True, "none", 2),
        ((2000, 3), False, "mean", 0),
    ):
        yield shape, weighted, {"reduction": reduction, "ignore_index": ignored}


@special("nll_loss")
def _(rng: np.random.Generator, dtype: dtypes.dtype) -> Iterator[Sample]:
    for (rows, classes), weighted, metadata in class_losses():
        weight = values((classes,), dtype, rng, (0.5, 2.0)) if weighted else None
        yield Sample([values((rows, classes), dtype, rng), rng.integers(0, classes, rows), weight], metadata, (0,))


@special("cross_entropy")
def _(rng: np.random.Generator, dtype: dtypes.dtype) -> Iterator[Sample]:
    for (rows, classes), weighted, metadata in class_losses():
        for smoothing in (0.0, 0.25):
            weight = values((classes,), dtype, rng, (0.5, 2.0)) if weighted else None
            yield Sample(
                [values((rows, classes), dtype, rng), rng.integers(0, classes, rows), weight],
                {**metadata, "label_smoothing": smoothing},
                (0,),
            )


@special("cross_entropy_with_gradient")
def _(rng: np.random.Generator, dtype: dtypes.dtype) -> Iterator[Sample]:
    return (sample for sample in SPECIAL["cross_entropy"](rng, dtype) if sample.metadata["reduction"] != "none")


@special("cross_entropy_backward")
def _(rng: np.random.Generator, dtype: dtypes.dtype) -> Iterator[Sample]:
    for (rows, classes), weighted, metadata in class_losses():
        grad = values((rows,) if metadata["reduction"] == "none" else (), dtype, rng)
        weight = values((classes,), dtype, rng, (0.5, 2.0)) if weighted else None
        total, lse = values((), dtype, rng, (1.0, 5.0)), values((rows,), dtype, rng, (3.0, 5.0))
        yield Sample(
            [grad, values((rows, classes), dtype, rng), rng.integers(0, classes, rows), weight, total, lse],
            {**metadata, "label_smoothing": 0.25 if weighted else 0.0},
        )


@special("sort")
def _(rng: np.random.Generator, dtype: dtypes.dtype) -> Iterator[Sample]:
    for shape, dim in (((37,), 0), ((3, 4), 0), ((3, 4), -1), ((2, 5, 3), 1), ((0, 3), 1), ((), 0)):
        # distinct floating elements, so that differences of the gradient check do not change the order
        drawn = values(shape, dtype, rng)
        if dtype.is_floating_point:
            drawn = np.asarray((rng.permutation(drawn.size) - 5) / 4).reshape(shape).astype(dtype.numpy)
        for descending in (False, True):
            yield Sample([drawn], {"dim": dim, "descending": descending})

"""The namespace beside NumPy's own, which is of the same standard: dtypes, shapes and elements, on every device."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import array_api as xp

from . import standard

pytestmark = [
    pytest.mark.skipif(
        getattr(np, "__array_api_version__", "") < "2024.12", reason="NumPy has an older version of the standard"
    ),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS, COMPLEX = ["float32", "float64"], ["complex64", "complex128"]
REAL = INTEGERS + FLOATS
NUMERIC = REAL + COMPLEX
BITS = ["bool", *INTEGERS]


def named(names: list[str], kinds: list[str]) -> dict[str, list[str]]:
    """The same dtypes for all names."""
    return {name: kinds for name in names}  # noqa: C420


TAKES = {
    **named(["abs", "negative", "positive", "sign", "square", "add", "multiply", "subtract"], NUMERIC),
    **named(["isfinite", "isinf", "isnan"], NUMERIC),
    **named(["ceil", "floor", "trunc", "round", "floor_divide", "remainder", "maximum", "minimum"], REAL),
    **named(["greater", "greater_equal", "less", "less_equal"], REAL),
    **named(["equal", "not_equal"], ["bool", *NUMERIC]),
    **named(["bitwise_and", "bitwise_invert", "bitwise_or", "bitwise_xor"], BITS),
    **named(["bitwise_left_shift", "bitwise_right_shift"], INTEGERS),
    **named(["logical_and", "logical_not", "logical_or", "logical_xor"], ["bool"]),
    **named(["atan2", "copysign", "hypot", "logaddexp", "nextafter", "signbit"], FLOATS),
    **named(["conj", "imag", "real"], COMPLEX),
    "pow": REAL,
}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 0.5, -1.5]


def sample(kind: str, shape: tuple[int, ...], special: bool = True, low: int = -3) -> np.ndarray:
    """Numbers of a dtype, of floating ones also those that are not finite."""
    rng = np.random.default_rng(len(kind) + sum(shape))
    if kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in INTEGERS:
        found = rng.integers(max(low, 0 if kind[0] == "u" else low), 6, shape)
        return found.astype(kind)
    numbers = rng.uniform(low, 3, shape)
    if kind in COMPLEX:
        return (numbers + 1j * rng.uniform(-2, 2, shape)).astype(kind)
    if special and numbers.size >= len(SPECIAL):
        numbers.reshape(-1)[: len(SPECIAL)] = SPECIAL
    return numbers.astype(kind)


def compare(found: Any, expected: Any, said: str, size: float = 1.0) -> None:
    """Dtype, shape and elements; of several results each."""
    if isinstance(expected, (tuple, list)):
        assert len(found) == len(expected), said
        for one, other in zip(found, expected, strict=True):
            compare(one, other, said, size)
        return
    expected = np.asarray(expected)
    assert isinstance(found, xp.Array), said
    assert (found.dtype.name, tuple(found.shape)) == (expected.dtype.name, expected.shape), said
    digits = {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-12, "complex128": 1e-12}.get(expected.dtype.name, 0)
    np.testing.assert_allclose(found.cpu().numpy(), expected, digits, digits * size, err_msg=said)


@pytest.mark.sampled(15)
@pytest.mark.parametrize("name", standard.ONE.split())
def test_functions_of_one_array(name: str, device: torch.device) -> None:
    for kind in TAKES.get(name, FLOATS + COMPLEX):
        x = sample(kind, (3, 5), special=name not in ("reciprocal",))
        compare(getattr(xp, name)(xp.asarray(x, device=device)), getattr(np, name)(x), f"{name} of {kind}")


def pairs(kinds: list[str]) -> Iterator[tuple[str, str]]:
    """Dtypes that promote with one another."""
    for first, second in itertools.product(kinds, kinds):
        both = {np.dtype(first).kind, np.dtype(second).kind}
        if len(both) == 1 or (both == {"i", "u"} and "uint64" not in (first, second)) or both == {"c", "f"}:
            yield first, second


SHAPES = [((), (2, 7)), ((2, 7), ()), ((2, 7), (7,)), ((2, 7), (2, 7)), ((), ())]


@pytest.mark.sampled(11)
@pytest.mark.parametrize("name", standard.TWO.split())
def test_functions_of_two_arrays(name: str, device: torch.device) -> None:
    """Of all dtypes that promote, and with arrays of no dimensions, which count as others do."""
    found = list(pairs(TAKES.get(name, FLOATS + COMPLEX)))
    for place, (first, second) in enumerate(found if device.type == "cpu" else found[:: max(len(found) // 8, 1)]):
        shapes = SHAPES[place % len(SHAPES)]
        whole = first in INTEGERS
        x = sample(first, shapes[0])
        y = sample(second, shapes[1], low=0 if name in ("pow", "bitwise_left_shift", "bitwise_right_shift") else -3)
        if name in ("floor_divide", "remainder"):
            y = (
                np.where(y == 0, np.asarray(2, y.dtype), y)
                if whole
                else np.where(y - y == 0, y, np.asarray(2, y.dtype))
            )
            x = x if whole else np.where(x - x == 0, x, np.asarray(1, x.dtype))
        said = f"{name} of {first}{list(shapes[0])} and {second}{list(shapes[1])}"
        expected = getattr(np, name)(x, y)
        ours = xp.asarray(x, device=device), xp.asarray(y, device=device)
        compare(getattr(xp, name)(*ours), expected, said)
        if name in OPERATORS:
            compare(OPERATORS[name](*ours), expected, f"{said}, as an operator")


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "floor_divide": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "pow": lambda x, y: x**y,
    "bitwise_and": lambda x, y: x & y,
    "bitwise_or": lambda x, y: x | y,
    "bitwise_xor": lambda x, y: x ^ y,
    "bitwise_left_shift": lambda x, y: x << y,
    "bitwise_right_shift": lambda x, y: x >> y,
    "equal": lambda x, y: x == y,
    "not_equal": lambda x, y: x != y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
}

REDUCTIONS = {
    **named(["sum", "prod"], ["int8", "uint8", "uint32", "int64", "float32", "float64", "complex64"]),
    **named(["max", "min"], ["int16", "uint64", "float32", "float64"]),
    **named(["argmax", "argmin"], ["uint16", "float32"]),
    **named(["all", "any", "count_nonzero"], ["bool", "uint8", "float32", "complex64"]),
    **named(["mean"], ["float32", "float64", "complex64"]),
    **named(["std", "var"], FLOATS),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, device: torch.device) -> None:
    for kind in REDUCTIONS[name]:
        x = sample(kind, (2, 3, 4), special=False)
        ours = xp.asarray(x, device=device)
        many = [] if name.startswith("arg") else [(), (0, 2), (-1, 0, 1)]
        for axis, keepdims in itertools.product([None, 1, -1, *many], [False, True]):
            options = {"correction": 0.5} if name in ("std", "var") and axis == 1 else {}
            expected = getattr(np, name)(x, axis=axis, keepdims=keepdims, **options)
            compare(
                getattr(xp, name)(ours, axis=axis, keepdims=keepdims, **options),
                expected,
                f"{name} of {kind} along {axis}, {keepdims}",
                20,
            )
    assert getattr(xp, name)(xp.asarray(x[0, 0, 0])).shape == ()


def test_dtypes_promote_as_numpys() -> None:
    names = standard.DTYPES.split()
    for first, second in itertools.product(names, names):
        numpy = np.result_type(np.dtype(first), np.dtype(second)).name
        kinds = {np.dtype(first).kind, np.dtype(second).kind}
        ours = getattr(torch, first), getattr(torch, second)
        if kinds == {"i", "u"} and "uint64" in (first, second):
            assert not xp.can_cast(*ours)
            with pytest.raises(RuntimeError, match=r"Promotion for uint16.*"):
                xp.result_type(*ours)
        elif len(kinds) == 1 or kinds in ({"i", "u"}, {"f", "c"}):
            assert xp.result_type(*ours).name == numpy
            assert xp.can_cast(*ours) is (numpy == second)
            assert xp.result_type(xp.zeros((), dtype=ours[0]), xp.zeros(2, dtype=ours[1])).name == numpy
        assert xp.isdtype(*ours) is (first == second)
    for name, kind in itertools.product(
        names, [*("bool", "signed integer", "unsigned integer", "integral", "numeric")]
    ):
        assert xp.isdtype(getattr(torch, name), kind) is np.isdtype(np.dtype(name), kind)
    for name in FLOATS + COMPLEX:
        ours, numpy = xp.finfo(getattr(torch, name)), np.finfo(name)
        assert ours.dtype.name == numpy.dtype.name and ours.bits == numpy.bits
        assert (ours.eps, ours.max, ours.smallest_normal) == (numpy.eps, numpy.max, numpy.smallest_normal)
    for name in INTEGERS:
        ours, numpy = xp.iinfo(xp.zeros(1, dtype=getattr(torch, name))), np.iinfo(name)
        assert (ours.dtype.name, ours.bits, ours.min, ours.max) == (name, numpy.bits, numpy.min, numpy.max)


# Of a namespace and an array of shape (3, 4).
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "arange": lambda f, x: [f.arange(5), f.arange(1.0, 4, 0.5), f.arange(3, 0), f.arange(3.0, 1.0), f.arange(5, 0, -2)],
    "linspace": lambda f, x: [
        f.linspace(0, 1, 5, dtype=f.float32),
        f.linspace(0, 1, 4, endpoint=False, dtype=f.float64),
    ],
    "eye": lambda f, x: [f.eye(2, dtype=f.int8), *(f.eye(2, 3, k=k, dtype=f.float32) for k in (-2, -1, 1, 2, 3))],
    "full": lambda f, x: [f.full(3, 2), f.full((2, 2), True), f.full((), 1.5, dtype=f.float32)],
    "zeros": lambda f, x: [f.zeros(3, dtype=f.int8), f.ones((2, 1), dtype=f.bool), f.zeros((), dtype=f.uint16)],
    "empty": lambda f, x: [f.empty(3, dtype=f.int8) * 0, f.empty_like(x, dtype=f.int32) * 0],
    "likeness": lambda f, x: [f.zeros_like(x), f.ones_like(x, dtype=f.uint8), f.full_like(x, 7)],
    "asarray": lambda f, x: [
        f.asarray(x, dtype=f.float64),
        f.asarray([[1], [2]], dtype=f.uint64),
        f.asarray(x, copy=True),
    ],
    "asarray of arrays": lambda f, x: f.asarray([[f.asarray(2, dtype=f.uint64)], [3]], dtype=f.uint64),
    "tril": lambda f, x: [f.tril(x), f.tril(x, k=-1), f.triu(x, k=1), f.triu(x)],
    "meshgrid": lambda f, x: [*f.meshgrid(x[0], x[:, 0]), *f.meshgrid(x[0], x[:, 0], indexing="ij"), *f.meshgrid()],
    "astype": lambda f, x: [f.astype(x, f.uint8), f.astype(x, f.complex64), f.astype(x, x.dtype, copy=False)],
    "broadcast": lambda f, x: [*f.broadcast_arrays(x, x[0]), f.broadcast_to(x, (2, 3, 4))],
    "concat": lambda f, x: [
        f.concat([x, f.astype(x, f.float64)]),
        f.concat((x, x[0]), axis=None),
        f.concat([x, x], axis=-1),
    ],
    "stack": lambda f, x: [
        f.stack([f.astype(x, f.uint8), f.astype(x, f.int16)], axis=1),
        *f.unstack(x),
        *f.unstack(x, axis=-1),
    ],
    "expand_dims": lambda f, x: [f.expand_dims(x, axis=0), f.squeeze(f.expand_dims(x, axis=-1), axis=2)],
    "squeeze": lambda f, x: [f.squeeze(x[None, :, None], axis=(0, -2)), f.squeeze(x, axis=())],
    "flip": lambda f, x: [f.flip(x), f.flip(x, axis=1), f.flip(x, axis=(0, -1))],
    "axes": lambda f, x: [f.moveaxis(x, 0, -1), f.permute_dims(x, (1, 0)), f.permute_dims(x, axes=(1, 0))],
    "repeat": lambda f, x: [f.repeat(x, 2), f.repeat(x, f.asarray([1, 0, 2], dtype=f.int8), axis=0)],
    "reshape": lambda f, x: [
        f.reshape(x, (4, 3)),
        f.reshape(x, (-1,), copy=True),
        f.reshape(x, shape=(2, 6), copy=False),
    ],
    "roll": lambda f, x: [f.roll(x, 2), f.roll(x, -1, axis=0), f.roll(x, (1, 2), axis=(0, 1)), f.tile(x, (2, 1, 2))],
    "take": lambda f, x: [f.take(x, f.asarray([2, -1, 0]), axis=0), f.take(x[0], f.asarray([1], dtype=f.uint8))],
    "take_along_axis": lambda f, x: f.take_along_axis(x, f.asarray([[0, -1], [1, 1], [3, -4]]), axis=1),
    "nonzero": lambda f, x: [
        *f.nonzero(x > 1),
        f.where(x > 1, x, f.asarray(0.0, dtype=f.float64)),
        f.where(x > 1, 1.0, x),
    ],
    "sort": lambda f, x: (
        [f.sort(x), f.sort(x, axis=0, descending=True)] if f is xp else [np.sort(x), -np.sort(-x, axis=0)]
    ),
    "argsort": lambda f, x: [f.argsort(x), f.argsort(x, axis=0)],
    "searchsorted": lambda f, x: [
        f.searchsorted(f.sort(x[0]), f.astype(x, f.float64), side=s) for s in ("left", "right")
    ],
    "unique": lambda f, x: [
        *f.unique_all(f.astype(x, f.int8)),
        f.unique_values(x),
        *f.unique_counts(f.astype(x, f.int32)),
    ],
    "unique of NaN": lambda f, x: f.unique_counts(f.asarray([f.nan, 1.0, f.nan, 1.0], dtype=f.float64)),
    "unique of complex": lambda f, x: f.unique_inverse(f.astype(f.astype(x, f.int8), f.complex64) * 1j),
    "cumulative_sum": lambda f, x: [f.cumulative_sum(f.astype(x, f.uint8), axis=1), f.cumulative_sum(x[0])],
    "cumulative_prod": lambda f, x: f.cumulative_prod(x, axis=-1, include_initial=True, dtype=f.float64),
    "initial": lambda f, x: f.cumulative_sum(f.astype(x, f.int16), axis=0, include_initial=True),
    "diff": lambda f, x: [f.diff(x), f.diff(x, axis=0, n=2), f.diff(x, prepend=x[:, :1], append=x[:, 1:2])],
    "clip": lambda f, x: [
        f.clip(x, 0, 1),
        f.clip(x, max=x[0]),
        f.clip(x),
        f.clip(x, min=f.asarray(1.0, dtype=x.dtype)),
    ],
    "matmul": lambda f, x: [f.matmul(x, f.astype(x.T, f.float64)), x @ x[0], f.matrix_transpose(x), x.T, x.mT],
    "products": lambda f, x: [f.tensordot(x, x.T, axes=1), f.tensordot(x, x, axes=((0, 1), (0, 1))), f.vecdot(x, x[0])],
    "integers": lambda f, x: [f.vecdot(f.astype(x, f.uint8), f.astype(x, f.int8)), f.sum(f.astype(x, f.uint8))],
    "cross": lambda f, x: [
        f.linalg.cross(x[:, :3], x[0, :3]),
        f.linalg.cross(x, x, axis=0),
        f.linalg.outer(x[0], x[:, 0]),
    ],
    "linalg": lambda f, x: [
        getattr(f.linalg, name)(x @ x.T + f.eye(3, dtype=x.dtype)) for name in ("det", "inv", "cholesky")
    ],
    "upper": lambda f, x: f.linalg.cholesky(x @ x.T + f.eye(3, dtype=x.dtype), upper=True),
    "solve": lambda f, x: [f.linalg.solve(x[:, :3], x[:, 3]), f.linalg.solve(f.stack([x[:, :3]] * 2), x[:2, :3].mT)],
    "traces": lambda f, x: [
        f.linalg.trace(x),
        f.linalg.trace(f.astype(x, f.uint8), offset=1),
        f.linalg.diagonal(x, offset=-1),
    ],
    "norms": lambda f, x: [
        f.linalg.matrix_norm(x, keepdims=True),
        f.linalg.matrix_norm(x, ord=1),
        f.linalg.vector_norm(x),
    ],
    "vector_norm": lambda f, x: [
        f.linalg.vector_norm(x, axis=1, ord=3, keepdims=True),
        f.linalg.vector_norm(x, axis=(0, 1)),
    ],
    "ranks": lambda f, x: [
        f.linalg.matrix_rank(x),
        f.linalg.matrix_rank(x, rtol=0.9),
        f.linalg.pinv(x),
        f.linalg.svdvals(x),
    ],
    "powers": lambda f, x: [
        f.linalg.matrix_power(x[:, :3], 3),
        *f.linalg.slogdet(x[:, :3]),
        f.linalg.eigvalsh(x @ x.T),
    ],
    "fft": lambda f, x: [
        getattr(f.fft, name)(x, n=6, axis=0, norm="ortho") for name in ("fft", "ifft", "rfft", "hfft", "ihfft")
    ],
    "irfft": lambda f, x: [
        f.fft.irfft(f.fft.rfft(x)),
        f.fft.irfftn(f.fft.rfftn(x), axes=(0, 1)),
        f.fft.fftn(x, s=(2, 4), axes=(0, 1)),
    ],
    "frequencies": lambda f, x: (
        [f.fft.fftfreq(5, d=0.5), f.fft.rfftfreq(4)]
        if f is np
        else [f.fft.fftfreq(5, d=0.5, dtype=f.float64), f.fft.rfftfreq(4, dtype=f.float64)]
    ),
    "shifts": lambda f, x: [
        f.fft.fftshift(x),
        f.fft.ifftshift(x, axes=0),
        f.fft.fftshift(x, axes=(1,)),
        f.fft.ifftn(x),
    ],
}


@pytest.mark.sampled(20)
@pytest.mark.parametrize("call", CALLS)
def test_calls(call: str, device: torch.device) -> None:
    torch.set_default_dtype(torch.float64)  # as NumPy's
    try:
        for kind in FLOATS if device.type == "cpu" else FLOATS[:1]:
            x = np.asarray([[3, 1, 2, 0.5], [0, 1, 4, 2], [2, 5, 1, 1.5]], kind)
            with device:
                compare(CALLS[call](xp, xp.asarray(x)), CALLS[call](np, x), f"{call} of {kind}", 50)
    finally:
        torch.set_default_dtype(torch.float32)


COMPLEX_FUNCTIONS = "acos acosh asin asinh atan atanh cos cosh exp sin sinh tan tanh log sqrt"


def test_complex_numbers_that_are_not_finite(device: torch.device) -> None:
    """What C's standard says, which NumPy does, but for the signs of zeros and infinities that it leaves open."""
    parts = [0.0, 1.5, -2.5, 800.0, np.inf, -np.inf, np.nan]
    for kind in COMPLEX:
        x = np.asarray([complex(re, im) for re, im in itertools.product(parts, parts)], kind)
        for name in COMPLEX_FUNCTIONS.split():
            found = getattr(xp, name)(xp.asarray(x, device=device)).cpu().numpy()
            expected = getattr(np, name)(x)
            for one, other in ((found.real, expected.real), (found.imag, expected.imag)):
                endless = np.isinf(other)
                one, other = np.where(endless, abs(one), one), np.where(endless, abs(other), other)
                np.testing.assert_allclose(one, other, 1e-5, 1e-6, err_msg=name)
    assert xp.expm1(xp.asarray(complex(-np.inf, np.inf), device=device)).item() == -1
    assert xp.signbit(xp.asarray([-np.nan, np.nan, -0.0, 0.0], device=device)).tolist() == [True, False, True, False]

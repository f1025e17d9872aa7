"""Dtypes: their facts, the promotion table, weak numbers and zero-dimensional tensors, limits, the default dtype."""

from __future__ import annotations

import itertools
import pickle

import ml_dtypes
import numpy as np
import pytest

import tritensor as ours
from tritensor.errors import DtypeError
from tritensor.types import dtypes
from tritensor.types.dtypes import ALIASES, ALL, of, promote_types, result_dtype

NAMES = [entry.name for entry in ALL]
SIGNED = [ours.int8, ours.int16, ours.int32, ours.int64]
WIDE = [ours.uint16, ours.uint32, ours.uint64]
FLOATS = [ours.float16, ours.bfloat16, ours.float32, ours.float64]


# Where one of these meets a wide unsigned integer, PyTorch refuses and tritensor does not; it has no complex32.
BEYOND = {dtypes.bool_, ours.complex64, ours.complex128}


def promoted(first, second):
    try:
        return promote_types(first, second).name
    except ours.errors.DtypeError:
        return "error"


def test_facts() -> None:
    for entry in ALL:
        assert getattr(ours, entry.name) is entry and repr(entry) == f"tritensor.{entry.name}"
        assert not hasattr(entry, "kind")  # scikit-learn takes a dtype with a kind for one of NumPy's
        assert entry.itemsize == entry.numpy.itemsize and of(entry.numpy) is entry and of(entry) is entry
        assert entry.is_floating_point == ("float" in entry.name) and entry.is_complex == entry.name.startswith("c")
        assert entry.is_signed == (entry.name != "bool" and not entry.name.startswith("uint"))
        assert pickle.loads(pickle.dumps(entry)) is entry
    for alias, entry in ALIASES.items():
        assert getattr(ours, alias) is entry
    assert ours.bfloat16.numpy == ml_dtypes.bfloat16 and len({entry.triton for entry in ALL[:-2]}) == 13


def test_of_numpy_types() -> None:
    assert of(np.dtype(np.longlong)) is ours.int64 and of(np.dtype(">f4")) is ours.float32
    for odd in (np.dtype("U3"), np.dtype(object), np.dtype("M8[s]"), np.dtype(np.longdouble), "nothing", 3.5):
        with pytest.raises(TypeError, match=r"can't convert np\.ndarray of type .* The only supported types are: bool"):
            of(odd)


# A row for each first dtype in the order of NAMES ("-": refused; the letters are in SHORT). PyTorch 2.13 refuses
# wide unsigned integers with bool and complex as well; tritensor takes them, since nothing is lost.
GOLDEN = """
bool       bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 h b f d F C
uint8      uint8 uint8 - - - int16 int16 int32 int64 h b f d F C
uint16     uint16 - uint16 - - - - - - h b f d F C
uint32     uint32 - - uint32 - - - - - h b f d F C
uint64     uint64 - - - uint64 - - - - h b f d F C
int8       int8 int16 - - - int8 int16 int32 int64 h b f d F C
int16      int16 int16 - - - int16 int16 int32 int64 h b f d F C
int32      int32 int32 - - - int32 int32 int32 int64 h b f d F C
int64      int64 int64 - - - int64 int64 int64 int64 h b f d F C
float16    h h h h h h h h h h f f d F C
bfloat16   b b b b b b b b b f b f d F C
float32    f f f f f f f f f f f f d F C
float64    d d d d d d d d d d d d d C C
complex64  F F F F F F F F F F F F C F C
complex128 C C C C C C C C C C C C C C C
"""
SHORT = {
    "h": "float16",
    "b": "bfloat16",
    "f": "float32",
    "d": "float64",
    "F": "complex64",
    "C": "complex128",
    "-": "error",
}


def test_promotion_table_is_pytorchs() -> None:
    rows = [line.split() for line in GOLDEN.strip().splitlines()]
    assert [row[0] for row in rows] == NAMES
    for first, *cells in rows:
        for second, cell in zip(NAMES, cells, strict=True):
            assert promoted(getattr(ours, first), getattr(ours, second)) == SHORT.get(cell, cell), (first, second)


def test_promotion_commutes_and_refuses_with_a_remedy() -> None:
    for first, second in itertools.product(ALL, ALL):
        assert promoted(first, second) == promoted(second, first)
    with pytest.raises(RuntimeError, match="Promotion for uint16, uint32, uint64 types is not supported") as caught:
        promote_types(ours.uint16, ours.int8)
    assert "tritensor.uint16 and tritensor.int8" in str(caught.value) and ".to(" in str(caught.value)


@pytest.mark.parametrize(
    ("operands", "numbers", "expected"),
    [
        ([(ours.float32, True), (ours.float64, False)], [], ours.float32),
        ([(ours.int32, True), (ours.int64, False)], [], ours.int32),
        ([(ours.int32, True), (ours.float64, False)], [], ours.float64),
        ([(ours.float16, True), (ours.float32, False)], [], ours.float16),
        ([(dtypes.bool_, True), (ours.int64, False)], [], ours.int64),
        ([(ours.int64, False), (ours.uint8, True)], [], ours.uint8),
        ([(ours.float32, False), (ours.float64, False)], [], ours.float64),
        ([(ours.int8, True), (ours.int32, True)], [], ours.int32),
        ([(ours.float16, True)], [1.5], ours.float16),
        ([(ours.int8, True)], [1000], ours.int8),
        ([(ours.int8, True)], [1.5], ours.float32),
        ([(dtypes.bool_, True)], [1], ours.int64),
        ([(dtypes.bool_, True)], [True], dtypes.bool_),
        ([(dtypes.bool_, False)], [1.5], ours.float32),
        ([(ours.int32, False)], [1], ours.int32),
        ([(ours.float32, True)], [1j], ours.complex64),
        ([(ours.float64, True)], [1j], ours.complex128),
        ([(ours.float16, True)], [1j], ours.complex64),
        ([(ours.int64, True)], [1j], ours.complex64),
        ([(ours.complex64, True)], [1.5], ours.complex64),
        ([(ours.complex64, True), (ours.float64, False)], [], ours.complex64),
        ([(ours.complex64, True), (ours.float64, True)], [], ours.complex128),
        ([(ours.float32, True), (ours.complex128, False)], [], ours.complex64),
        ([(ours.float64, True), (ours.complex64, False)], [], ours.complex128),
        ([(ours.int64, True), (ours.complex128, False)], [], ours.complex128),
        ([], [1], ours.int64),
        ([], [True, 2.5], ours.float32),
    ],
)
def test_result_dtype(operands, numbers, expected) -> None:
    assert result_dtype(operands, numbers) is expected


def test_operators_follow_result_dtype() -> None:
    x, zero = ours.ones(2, dtype=ours.float16), ours.tensor(2.0, dtype=ours.float64)
    assert (x * zero).dtype is ours.float16 and (x * zero[None]).dtype is ours.float64
    assert (ours.ones(2, dtype=ours.int8) * zero).dtype is ours.float64
    assert (ours.ones(2, dtype=ours.int8) + 300).dtype is ours.int8
    assert (ours.ones(1, dtype=ours.uint8) / 2).dtype is ours.float32


@pytest.mark.parametrize("entry", [entry for entry in ALL if entry.category == dtypes.INTEGER], ids=repr)
def test_iinfo(entry) -> None:
    info, limits = ours.iinfo(entry), np.iinfo(entry.numpy)
    assert (info.min, info.max, info.bits, info.dtype) == (limits.min, limits.max, limits.bits, entry.name)
    assert repr(info) == f"iinfo(min={limits.min}, max={limits.max}, dtype={entry.name})"
    assert type(info.max) is int


@pytest.mark.parametrize("entry", FLOATS, ids=repr)
def test_finfo(entry) -> None:
    info, limits = ours.finfo(entry), ml_dtypes.finfo(entry.numpy)
    assert (info.max, info.min, info.eps) == (float(limits.max), float(limits.min), float(limits.eps))
    assert info.tiny == info.smallest_normal == float(limits.smallest_normal)
    assert info.bits == entry.itemsize * 8 and info.dtype == entry.name


def test_casts_go_to_no_lower_category() -> None:
    for below, above in itertools.combinations_with_replacement(("bool", "uint8", "float16", "complex64"), 2):
        lower, higher = getattr(ours, below), getattr(ours, above)
        assert ours.can_cast(lower, higher) and ours.can_cast(higher, lower) is (below == above)
    for kind in ("int8", "int64", "uint64"):  # whatever their sizes and signs
        assert ours.can_cast(getattr(ours, kind), ours.uint8) and ours.can_cast(ours.uint8, getattr(ours, kind))


@pytest.mark.parametrize("function", ["__add__", "__sub__", "__mul__", "__truediv__", "__floordiv__", "__pow__"])
@pytest.mark.parametrize(
    ("kind", "array", "expected"),
    [
        ("float32", np.array([1, 2]), "float64"),
        ("float32", np.array([1.0, 2]), "float64"),
        ("float32", np.array([1, 2], np.float32), "float32"),
        ("float32", np.array(2.0), "float64"),
        ("float16", np.array([1, 2], np.int8), "float16"),
        ("bfloat16", np.array([1, 2], np.float32), "float32"),
    ],
)
def test_numpy_decides_the_dtype_beside_an_array(function, kind, array, expected) -> None:
    x = ours.tensor([3.0, 4.0], dtype=getattr(ours, kind), requires_grad=True)
    made = getattr(x, function)(array)
    assert made.dtype is getattr(ours, expected)
    np.testing.assert_allclose(made.detach().numpy(), getattr(np.array([3.0, 4.0]), function)(array), rtol=1e-6)
    made.sum().backward()
    assert x.grad.dtype is x.dtype
    assert (x == array).dtype is ours.bool and (np.array([1, 2]) + x.detach()).dtype is not ours.int64


def test_resolutions_and_complex_limits() -> None:
    found = [ours.finfo(entry).resolution for entry in FLOATS]
    assert found == [0.001, 0.01, 1e-6, 1e-15]
    assert ours.finfo(ours.complex64).max == ours.finfo(ours.float32).max and ours.finfo().dtype == "float32"
    assert repr(ours.finfo(ours.float16)) == (
        "finfo(resolution=0.001, min=-65504, max=65504, eps=0.000976562, smallest_normal=6.10352e-05, "
        "tiny=6.10352e-05, dtype=float16)"
    )


def test_limits_of_the_wrong_kind() -> None:
    with pytest.raises(TypeError, match=r"iinfo\(\) requires an integer input type. Use .*finfo"):
        ours.iinfo(ours.float32)
    with pytest.raises(TypeError, match=r"finfo\(\) requires a floating point input type. Use .*iinfo"):
        ours.finfo(ours.int32)
    for wrong in (3, "float32", float):
        for limits in (ours.iinfo, ours.finfo):
            with pytest.raises(TypeError, match=r"argument 'type' must be tritensor\.dtype, not"):
                limits(wrong)


def test_default_dtype() -> None:
    assert ours.get_default_dtype() is ours.float32
    try:
        ours.set_default_dtype(ours.float64)
        assert ours.tensor(1.5).dtype is ours.zeros(1).dtype is ours.float64
        assert ours.tensor(1j).dtype is ours.complex128 and (ours.ones(2, dtype=ours.int8) / 2).dtype is ours.float64
        for wrong in (ours.int32, dtypes.bool_, ours.complex64, "float32", None, float):
            with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
                ours.set_default_dtype(wrong)
        assert ours.get_default_dtype() is ours.float64
    finally:
        ours.set_default_dtype(ours.float32)


@pytest.mark.peer
def test_promotion_and_limits_against_torch() -> None:
    torch = pytest.importorskip("torch")
    for first, second in itertools.product(ALL, ALL):
        try:
            expected = str(torch.promote_types(getattr(torch, first.name), getattr(torch, second.name))).split(".")[1]
        except RuntimeError:
            expected = "error"
        if expected == "error" and {first, second} & BEYOND:
            continue
        assert promoted(first, second) == expected, (first, second)
    for entry in ALL:
        theirs = getattr(torch, entry.name)
        assert (theirs.itemsize, theirs.is_floating_point, theirs.is_complex, theirs.is_signed) == (
            entry.itemsize,
            entry.is_floating_point,
            entry.is_complex,
            entry.is_signed,
        )
    for entry in FLOATS:
        assert repr(ours.finfo(entry)) == repr(torch.finfo(getattr(torch, entry.name)))


@pytest.mark.peer
def test_mixed_ranks_and_numbers_against_torch() -> None:
    """Every pair of dtypes with every pair of ranks, and every dtype with every kind of number."""
    torch = pytest.importorskip("torch")
    for first, second in itertools.product(ALL, ALL):
        for ranks in itertools.product((0, 1), (0, 1)):
            a, b = (
                torch.ones((1,) * rank, dtype=getattr(torch, entry.name))
                for rank, entry in zip(ranks, (first, second), strict=True)
            )
            try:
                expected = str(torch.result_type(a, b)).split(".")[1]
            except RuntimeError:
                expected = "error"
            try:
                found = result_dtype([(first, ranks[0] > 0), (second, ranks[1] > 0)], []).name
            except ours.errors.DtypeError:
                found = "error"
            if (expected == "error" and {first, second} & {*BEYOND, *WIDE}) or expected == "complex32":
                continue
            assert found == expected, (first, second, ranks)
    for entry, number, rank in itertools.product(ALL, (True, 1, 1.5, 1j), (0, 1)):
        expected = str(torch.result_type(torch.ones((1,) * rank, dtype=getattr(torch, entry.name)), number))
        if "complex32" in expected:
            continue
        assert result_dtype([(entry, rank > 0)], [number]).name == expected.split(".")[1], (entry, number, rank)


@pytest.mark.parametrize("place", ["cpu", "cuda"])
@pytest.mark.parametrize(
    "code",
    [
        "x & x",
        "x << 1",
        "torch.bitwise_not(x)",
        "i.softmax(0)",
        "x.softmax(0, dtype=torch.int64)",
        "torch.nn.functional.layer_norm(i, (2,))",
        "torch.nn.functional.gelu(i)",
        "torch.nn.functional.mse_loss(i, i)",
        "b @ b",
        "b % b",
        "b.floor()",
        "z > z",
        "z.max()",
        "z.floor()",
        "torch.rand(2, dtype=torch.int64)",
        "i.uniform_()",
        "torch.bernoulli(b)",
    ],
)
def test_an_operator_that_a_dtype_lacks_is_not_implemented(code: str, place: str) -> None:
    """NotImplementedError is a RuntimeError, and DtypeError the name here for both."""
    with ours.cuda.simulate(devices=1):
        made = {
            "x": ours.tensor([1.0, 2.0], device=place),
            "i": ours.tensor([1, 2], device=place),
            "b": ours.tensor([True, False], device=place),
            "z": ours.tensor([1 + 2j], device=place),
        }
        with pytest.raises(NotImplementedError, match=r"^\"\w+\" not implemented for '\w+'") as caught:
            eval(code, {"torch": ours, **made})
        assert isinstance(caught.value, DtypeError)
        assert made["i"].tolist() == [1, 2]

"""Making tensors: dtypes, devices, sharing, and what is refused before anything is made."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda, settings
from tritensor.kernels.random import ranges
from tritensor.runtime.launch import compile_ahead
from tritensor.types import dtypes

from ..needs import needs_triton


@pytest.fixture(params=["cpu", pytest.param("cuda:1", marks=needs_triton)])
def place(request):
    if request.param == "cpu":
        yield torch.device("cpu")
    else:
        with torch.cuda.simulate(devices=2):
            yield torch.device(request.param)


FACTORIES = {
    "zeros": lambda **kw: torch.zeros(2, 3, **kw),
    "ones": lambda **kw: torch.ones((2, 3), **kw),
    "full": lambda **kw: torch.full((2, 3), 1, **kw),
    "empty": lambda **kw: torch.empty([2, 3], **kw),
    "arange": lambda **kw: torch.arange(0, 6, **kw),
    "linspace": lambda **kw: torch.linspace(0, 5, 6, **kw),
    "logspace": lambda **kw: torch.logspace(0, 1, 6, **kw),
    "eye": lambda **kw: torch.eye(2, 3, **kw),
    "tensor": lambda **kw: torch.tensor([[0, 1, 1], [1, 0, 1]], **kw),
}
PLAIN = {
    "zeros": torch.float32,
    "ones": torch.float32,
    "full": torch.int64,
    "empty": torch.float32,
    "arange": torch.int64,
    "linspace": torch.float32,
    "logspace": torch.float32,
    "eye": torch.float32,
    "tensor": torch.int64,
}


@pytest.mark.parametrize("name", FACTORIES)
def test_every_factory_on_every_device(name: str, place) -> None:
    make = FACTORIES[name]
    plain = make(device=place)
    assert plain.dtype is PLAIN[name] and plain.device == place and not plain.requires_grad and plain.is_leaf
    assert plain.numel() == 6 and plain.is_contiguous()
    reference = make(device="cpu")
    if name != "empty":
        assert plain.tolist() == reference.tolist()
    for kind in dtypes.ALL:
        if place.type == "cuda" and kind.is_complex:
            continue
        made = make(dtype=kind, device=place)
        assert made.dtype is kind and made.device == place
        if name != "empty":
            assert made.tolist() == make(dtype=kind).tolist()
    grown = make(dtype=torch.float64, device=place, requires_grad=True)
    assert grown.requires_grad and grown.is_leaf
    with pytest.raises(RuntimeError, match="only Tensors of floating point and complex dtype can require gradients"):
        make(dtype=torch.int32, device=place, requires_grad=True)
    with torch.device(place):
        assert make().device == place


@pytest.mark.parametrize("name", FACTORIES)
def test_every_factory_refuses(name: str) -> None:
    for wrong in ("float32", 3, [torch.float32]):
        with pytest.raises(TypeError, match="argument 'dtype' must be tritensor"):
            FACTORIES[name](dtype=wrong)
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        FACTORIES[name](device="gpu")
    with pytest.raises(RuntimeError, match="Invalid device string"):
        FACTORIES[name](device="cuda:x")


@pytest.mark.parametrize(
    "make",
    [
        torch.zeros,
        torch.ones,
        torch.empty,
        lambda size: torch.full(size, 1),
        lambda size: torch.ones(1).new_zeros(size),
    ],
)
def test_sizes_that_are_none(make) -> None:
    with pytest.raises(RuntimeError, match=r"Trying to create tensor with negative dimension -1: \[2, -1\]"):
        make((2, -1))
    for wrong in ((2.0,), ("2",), (None,), ([1, 2], 3)):
        with pytest.raises(TypeError, match=r"argument 'size' must be tuple of ints, not (float|str|NoneType|list)"):
            make(wrong)
    assert make(()).shape == () and make([0, 3]).shape == (0, 3) and make((np.int64(2),)).shape == (2,)


@pytest.mark.parametrize(
    ("data", "kind", "shape"),
    [
        (1, torch.int64, ()),
        (1.0, torch.float32, ()),
        (True, dtypes.bool_, ()),
        (1j, torch.complex64, ()),
        ([], torch.float32, (0,)),
        ([[]], torch.float32, (1, 0)),
        ([1, 2.5], torch.float32, (2,)),
        ([True, 2], torch.int64, (2,)),
        (range(3), torch.int64, (3,)),
        (((1, 2), [3, 4]), torch.int64, (2, 2)),
        (np.float32(1), torch.float32, ()),
        (np.float64(1), torch.float64, ()),
        (np.arange(3, dtype=np.int8), torch.int8, (3,)),
        (np.zeros((2, 0), np.float16), torch.float16, (2, 0)),
    ],
)
def test_dtype_of_data(data, kind, shape) -> None:
    made = torch.tensor(data)
    assert made.dtype is kind and made.shape == shape
    assert torch.as_tensor(data).dtype is kind and torch.asarray(data).shape == shape


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ([300], "uint8"),
        ([-256], "uint8"),
        ([-129], "int8"),
        ([2**31], "int32"),
        ([1e10], "int32"),
        ([-1.5], "uint8"),
        ([float("nan")], "int64"),
        ([float("inf")], "int64"),
    ],
)
def test_numbers_that_do_not_fit(data, kind) -> None:
    with pytest.raises(RuntimeError, match=f"value cannot be converted to type {kind} without overflow"):
        torch.tensor(data, dtype=getattr(torch, kind))
    name = "int" if kind == "int32" else f"{kind}_t"
    with pytest.raises(RuntimeError, match=f"value cannot be converted to type {name} without overflow"):
        torch.full((2,), data[0], dtype=getattr(torch, kind))


@pytest.mark.parametrize(
    ("bounds", "kind", "expected"),
    [
        ((0, 3.7), "int64", [0, 1, 2]),
        ((0, 3.7), "int32", [0, 1, 2, 3]),
        ((-1.9, 2), "int64", [-1, 0, 1]),
        ((-1.9, 2), "uint8", [255, 0, 1, 2]),
        ((5, 0.5, -1.5), "int64", [5, 4, 3, 2, 1]),
        ((5, 0.5, -1.5), "int16", [5, 4, 3]),
        ((0, 10.5, 2.5), "int8", [0, 2, 4, 6, 8]),
        ((0, 3, 0.5), "int8", [0] * 6),
        ((0.9, 0.95), "int64", []),
        ((5.9, 5.2, -1), "int64", []),
        ((0, 3.7), "float16", [0, 1, 2, 3]),
        ((1 << 60, (1 << 60) + 2), "int64", [1 << 60, (1 << 60) + 1]),
        ((0, 300, 100), "int8", [0, 100, -56]),
    ],
)
def test_ranges_of_integers_with_fractional_bounds(bounds, kind, expected, place) -> None:
    made = torch.arange(*bounds, dtype=getattr(torch, kind), device=place)
    assert made.dtype is getattr(torch, kind) and made.tolist() == expected


@pytest.mark.parametrize(
    ("data", "kind", "expected"),
    [
        ([torch.tensor(1.5), 2], "float32", [1.5, 2]),
        ([torch.tensor(1.5).half(), 2], "float16", [1.5, 2]),
        ([torch.tensor(1.5).half(), 2.5], "float32", [1.5, 2.5]),
        ([torch.tensor(1, dtype=torch.int32), 2], "int64", [1, 2]),
        ([torch.tensor(1, dtype=torch.int32)] * 2, "int32", [1, 1]),
        ([torch.tensor(7).byte(), torch.tensor(-1, dtype=torch.int8)], "int16", [7, -1]),
        ([torch.tensor(1, dtype=torch.int8), 2.5], "float32", [1, 2.5]),
        ([[torch.tensor(1.5), 1], (2, torch.tensor(0.1).double())], "float64", None),
        ([torch.tensor([1.5]), torch.tensor([2.0])], "float32", [1.5, 2]),
        ([torch.ones(2), [2, 3]], "float32", [[1, 1], [2, 3]]),
        ([torch.tensor(True), False], "bool", [True, False]),
        ([torch.tensor(1j), 2], "complex64", [1j, 2]),
        ([2, np.float64(0.1)], "float64", [2, 0.1]),
        ([np.float32(1.5), 2], "float32", [1.5, 2]),
    ],
)
def test_sequences_with_tensors_and_numpys_numbers_promote(data, kind, expected) -> None:
    for made in (torch.tensor(data), torch.as_tensor(tuple(data))):
        assert made.dtype is getattr(torch, kind) and made.tolist() == (expected or [[1.5, 1], [2, np.float32(0.1)]])


@pytest.mark.parametrize(
    ("data", "kind", "expected"),
    [
        ([0.1 + 0.1j], "complex128", [0.1 + 0.1j]),
        (1e300j, "complex128", 1e300j),
        ([10**20], "float64", [1e20]),
        ([[10**20], [1]], "float16", [[float("inf")], [1]]),
        ([-(2**63) - 1, 1j], "complex128", [-(2.0**63), 1j]),
        ([10**400, 1j, 0], "bool", [True, True, False]),
        ([10**20, 1.5], None, [float(np.float32(1e20)), 1.5]),
    ],
)
def test_numbers_keep_their_precision_and_range(data, kind, expected) -> None:
    dtype = None if kind is None else getattr(torch, kind)
    assert torch.tensor(data, dtype=dtype).tolist() == torch.as_tensor(data, dtype=dtype).tolist() == expected


def test_integers_of_64_bits_without_a_sign() -> None:
    data = [[2**64 - 1, 0], [2**63, 7]]
    for made in (torch.tensor(data, dtype=torch.uint64), torch.as_tensor(data, dtype=torch.uint64)):
        assert made.dtype is torch.uint64 and made.tolist() == data
    assert torch.tensor([2**64 - 1, True], dtype=torch.uint64).tolist() == [2**64 - 1, 1]
    assert torch.tensor([1, 2**63, 1.5]).tolist() == [1, 2.0**63, 1.5] and torch.tensor([2, 3.5]).tolist() == [2, 3.5]


def test_a_single_element_of_half_precision_may_become_infinite(place) -> None:
    for kind in (torch.float16, torch.bfloat16):
        one, two = torch.ones(1, dtype=kind, device=place), torch.ones(2, dtype=kind, device=place)
        made = (torch.full((1, 1), 1e39, dtype=kind), torch.full_like(one, 1e39), one.new_full((), 1e39))
        for x in (*made, torch.scalar_tensor(1e39, dtype=kind), one.fill_(1e39)):
            assert x.item() == float("inf") and x.dtype is kind
        for call in (two.fill_, lambda v, x=two: torch.full_like(x, v), lambda v, x=two: x.new_full((0,), v)):
            with pytest.raises(RuntimeError, match=r"value cannot be converted to type c10::B?"):
                call(1e39)


def test_single_elements_as_python_numbers() -> None:
    z = torch.tensor([2.5 + 0j])
    assert float(z) == 2.5 and int(z) == 2 and complex(z) == 2.5
    for call, words in ((float, "type double"), (int, "type int64_t")):
        with pytest.raises(RuntimeError, match=f"value cannot be converted to {words} without overflow"):
            call(z + 1j)
    for x in (torch.tensor([1, 2]), torch.tensor([1.0])):
        with pytest.raises(TypeError, match="only integer tensors of a single element can be converted to an index"):
            x.__index__()


def test_numbers_that_wrap_or_round_as_in_pytorch() -> None:
    assert torch.tensor([-1, -255], dtype=torch.uint8).tolist() == [255, 1]
    assert torch.tensor(np.array([300]), dtype=torch.uint8).tolist() == [44]
    assert torch.tensor([1.7, -1.7], dtype=torch.int8).tolist() == [1, -1]
    assert torch.tensor([70000.0], dtype=torch.float16).tolist() == [float("inf")]
    assert torch.tensor([2**63], dtype=torch.uint64).tolist() == [2**63]
    assert torch.tensor([[1, 2**64 - 1], [0, 2**63]], dtype=torch.uint64).tolist() == [[1, 2**64 - 1], [0, 2**63]]
    assert torch.tensor([0.1], dtype=torch.float64).item() == 0.1


def test_tensor_copies_and_as_tensor_shares() -> None:
    array = np.arange(3.0)
    copied, shared, same_kind = torch.tensor(array), torch.as_tensor(array), torch.as_tensor(array, dtype=torch.float64)
    converted = torch.as_tensor(array, dtype=torch.float32)
    array[0] = 9
    assert [copied[0].item(), shared[0].item(), same_kind[0].item(), converted[0].item()] == [0, 9, 9, 0]
    x = torch.ones(2, requires_grad=True)
    assert torch.as_tensor(x) is x and torch.tensor(x) is not x and not torch.tensor(x).requires_grad
    y = torch.tensor(x)
    y[0] = 5
    assert x.tolist() == [1, 1] and torch.tensor([x.sum(), 2]).tolist() == [2.0, 2.0]


def test_from_numpy() -> None:
    array = np.arange(6.0).reshape(2, 3)
    x = torch.from_numpy(array)
    array[0, 0] = 7
    x[1, 2] = 8
    assert x[0, 0].item() == 7 and array[1, 2] == 8 and torch.from_numpy(array.T).stride() == (1, 3)
    assert torch.from_numpy(array[:, ::2]).tolist() == array[:, ::2].tolist()
    assert torch.from_numpy(np.array(3.5)).shape == () and torch.from_numpy(np.zeros((0, 2))).shape == (0, 2)
    for wrong, error, words in (
        ([1], TypeError, r"expected np\.ndarray \(got list\)"),
        (np.float32(1), TypeError, r"expected np\.ndarray \(got float32\)"),
        (array[::-1], ValueError, "At least one stride in the given numpy array is negative"),
        (np.array(["a"]), TypeError, r"can't convert np\.ndarray of type"),
    ):
        with pytest.raises(error, match=words):
            torch.from_numpy(wrong)


def test_likes_and_news(place) -> None:
    x = torch.ones(2, 3, dtype=torch.float64, device=place, requires_grad=True)
    for made, value in (
        (torch.zeros_like(x), 0),
        (torch.ones_like(x), 1),
        (torch.full_like(x, 3), 3),
        (torch.empty_like(x), None),
        (x.new_zeros(2, 3), 0),
        (x.new_ones((2, 3)), 1),
        (x.new_full((2, 3), 4), 4),
        (x.new_empty(2, 3), None),
        (x.new_tensor([[5] * 3] * 2), 5),
    ):
        assert made.dtype is torch.float64 and made.device == place and made.shape == (2, 3) and not made.requires_grad
        assert value is None or made.tolist() == [[value] * 3] * 2
    other = torch.zeros_like(x, dtype=torch.int8, device="cpu")
    assert other.dtype is torch.int8 and other.device.type == "cpu"
    assert (
        x.new_zeros(1, dtype=torch.int32).dtype is torch.int32 and torch.ones_like(x, requires_grad=True).requires_grad
    )
    for function in (torch.zeros_like, torch.ones_like, torch.empty_like, lambda y: torch.full_like(y, 1)):
        with pytest.raises(TypeError, match=r"argument 'input' .* must be Tensor, not list"):
            function([1])


def test_ranges() -> None:
    assert (
        torch.arange(3).tolist() == torch.arange(end=3).tolist() == torch.arange(torch.tensor(3)).tolist() == [0, 1, 2]
    )
    assert torch.arange(5, 1, -2).tolist() == [5, 3] and torch.arange(0, 1, 0.25).dtype is torch.float32
    assert torch.linspace(0, 1, 1).tolist() == [0] and torch.linspace(0, 1, 0).shape == (0,)
    assert torch.logspace(0, 3, 4, base=2).tolist() == [1, 2, 4, 8] and torch.eye(0).shape == (0, 0)
    for call, error, words in (
        (lambda: torch.arange(1, 5, 0), RuntimeError, "step must be nonzero"),
        (lambda: torch.arange(0, 3, 0.5, dtype=torch.int64), ValueError, "step must be nonzero"),
        (lambda: torch.arange(0, 3, float("nan")), RuntimeError, "step must be nonzero"),
        (lambda: torch.arange(2**63, 2**63 + 2), RuntimeError, "value cannot be converted to type int64_t without"),
        (lambda: torch.arange(10**20, dtype=torch.float64), OverflowError, "int too big to convert"),
        (lambda: torch.arange(5, 1), RuntimeError, "upper bound and lower bound inconsistent with step sign"),
        (lambda: torch.arange(float("nan")), RuntimeError, "unsupported range"),
        (lambda: torch.arange(0, float("inf")), RuntimeError, "unsupported range"),
        (lambda: torch.arange("a"), TypeError, r"arange\(\)"),
        (lambda: torch.linspace(0, 1, -1), RuntimeError, "number of steps must be non-negative"),
        (lambda: torch.logspace(0, 1, -1), RuntimeError, "number of steps must be non-negative"),
        (lambda: torch.eye(-1), RuntimeError, "n must be greater or equal to 0, got -1"),
        (lambda: torch.eye(2, -1), RuntimeError, "m must be greater or equal to 0, got -1"),
        (lambda: torch.full(2, 3), TypeError, r"full\(\): argument 'size'"),
        (lambda: torch.full((2,), "a"), TypeError, r"full\(\): argument 'fill_value'"),
        (lambda: torch.full((2,), None), TypeError, r"full\(\): argument 'fill_value'"),
    ):
        with pytest.raises(error, match=words):
            call()


def test_legacy_constructor() -> None:
    assert torch.Tensor([1, 2]).dtype is torch.float32 and torch.Tensor(2, 0).shape == (2, 0)
    assert torch.Tensor().shape == (0,) and torch.Tensor(torch.Size([0, 2])).shape == (0, 2)
    x = torch.tensor([1, 2])
    shared = torch.Tensor(x)
    shared[0] = 9
    assert x.tolist() == [9, 2] and shared.dtype is torch.int64
    for wrong in (1.5, "a", None, object()):
        with pytest.raises(TypeError, match=r"new\(\): data must be a sequence"):
            torch.Tensor(wrong)


def test_a_negative_zero_keeps_its_sign(place) -> None:
    for made in (torch.full((1,), -0.0, device=place), torch.ones(1, device=place).new_full((1,), -0.0)):
        assert str(made.item()) == "-0.0"
    assert str(torch.full((1,), 0.0, device=place).item()) == "0.0"


def test_scalar_tensor_and_pinned() -> None:
    assert torch.scalar_tensor(2).dtype is torch.float32 and torch.scalar_tensor(2, dtype=torch.int8).item() == 2
    assert torch.zeros(2, pin_memory=True).tolist() == [0, 0]


RANGES: list[Callable[..., torch.Tensor]] = [
    lambda **kw: torch.arange(0, **kw),
    lambda **kw: torch.arange(7, **kw),
    lambda **kw: torch.arange(100, -100, -3, **kw),
    lambda **kw: torch.arange(2**30, 2**30 + 50, **kw),
    lambda **kw: torch.linspace(-3, 11, 101, **kw),
    lambda **kw: torch.linspace(2, 2, 5, **kw),
    lambda **kw: torch.linspace(0.1, 0.3, 1, **kw),
    lambda **kw: torch.linspace(6e4, -1e-9, 3, **kw),
    lambda **kw: torch.eye(5, **kw),
    lambda **kw: torch.eye(3, 7, **kw),
    lambda **kw: torch.eye(7, 3, **kw),
    lambda **kw: torch.eye(0, 3, **kw),
]
FRACTIONS: list[Callable[..., torch.Tensor]] = [  # of int64 their step is 0
    lambda **kw: torch.arange(0.5, 100, 0.7, **kw),
    lambda **kw: torch.arange(-1, 1, 0.01, **kw),
]


@needs_triton
@pytest.mark.parametrize("dtype", [None, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32])
@pytest.mark.parametrize("block", [0, 16])
def test_ranges_are_made_on_the_device(dtype: torch.dtype | None, block: int) -> None:
    with torch.cuda.simulate(devices=2), settings.block(block), torch.cuda.transfers() as ledger:
        ranges = RANGES if dtype is torch.int64 else RANGES + FRACTIONS
        made = [make(dtype=dtype, device="cuda:1") for make in ranges]
        ledger.assert_at_most(h2d=0, d2d=0, syncs=0)
        for make, found in zip(ranges, made, strict=True):
            expected = make(dtype=dtype)
            assert (found.dtype, found.shape, str(found.device)) == (expected.dtype, expected.shape, "cuda:1")
            # a fused multiply-add rounds once where the host rounds twice
            assert torch.allclose(found.cpu().double(), expected.double(), rtol=4e-16, atol=1e-15)
            assert dtype is torch.float64 or torch.equal(found.cpu(), expected)


@needs_triton
def test_ranges_take_what_the_device_does_not_compute_from_the_host() -> None:
    with torch.cuda.simulate():
        assert torch.arange(2, dtype=torch.bool, device="cuda").tolist() == [False, True]
        assert torch.logspace(0, 3, 4, base=2, device="cuda").tolist() == [1, 2, 4, 8]
        assert torch.arange(3.0, device="cuda", requires_grad=True).requires_grad
        with settings.check(True):
            assert torch.arange(3, device="cuda").tolist() == [0, 1, 2]


@needs_triton
def test_a_range_is_made_anew_by_each_replay() -> None:
    with torch.cuda.simulate():
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            x = torch.arange(5, device="cuda")
            found = x * 2
            x += 10
        for _ in range(3):
            graph.replay()
            assert (found.tolist(), x.tolist()) == ([0, 2, 4, 6, 8], [10, 11, 12, 13, 14])


@pytest.mark.sampled(1)
@needs_triton
@pytest.mark.parametrize("target", [("cuda", 80), ("cuda", 90), ("cuda", 100), ("hip", "gfx942")], ids=str)
@pytest.mark.parametrize("dtype", ["int64", "fp32", "bf16"])
def test_ranges_compile_without_spills_and_store_vectors(target: Any, dtype: str) -> None:
    kind = {"int64": torch.int64, "fp32": torch.float32, "bf16": torch.bfloat16}[dtype]
    for whole in (True, False):
        constants = {"WHOLE": whole, "CLOSED": not whole, "OUT_DTYPE": kind, "INDEX64": False, "BLOCK": 1024}
        number = "i64" if whole else "fp64"
        signature = (f"*{kind.triton}:16", number, number, number, "i32:16")
        facts = compile_ahead(ranges.range_kernel, signature, constants, target)
        assert facts.local_bytes == 0
        assert target[0] != "cuda" or re.search(r"st\.global\.(v4\.b32|v2\.b64)", facts.asm["ptx"])


@pytest.mark.parametrize(
    ("start", "end", "steps", "kind", "expected"),
    [
        (7, 0.5, 6, torch.int64, [7, 5, 4, 2, 1, 0]),
        (0.3, 5.7, 5, torch.int32, [0, 1, 2, 3, 5]),
        (5, -3, 6, torch.int8, [5, 3, 1, 0, -1, -3]),
        (1.9, 3, 1, torch.int64, [1]),
        (0.1, 0.4, 4, torch.float64, [0.1, 0.2, 0.30000000000000004, 0.4]),
        (math.nan, 1, 2, torch.float32, [math.nan, math.nan]),
    ],
)
def test_linspace_counts_each_half_from_its_end(start, end, steps, kind, expected) -> None:
    with cuda.simulate(devices=1):
        for device in ("cpu", "cuda"):
            made = torch.linspace(start, end, steps, dtype=kind, device=device).tolist()
            assert made == pytest.approx(expected, rel=1e-15, nan_ok=True)

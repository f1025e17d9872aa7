"""float8: conversions on both sides, what moves its elements, and what is refused; beside PyTorch in the end."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.errors import ArgumentError, DtypeError, UnsupportedError
from tritensor.types import dtypes

NAMES = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
FIRST = torch.float8_e4m3fn
CODES = np.arange(256, dtype=np.uint8)
OTHERS = [kind.name for kind in dtypes.LATTICE]

MARKED = [pytest.param(name, marks=pytest.mark.thorough) if name[-1] == "z" else name for name in NAMES]
quick_or_thorough = pytest.mark.parametrize("name", MARKED)


def numbers(name: str, count: int = 3000) -> np.ndarray:
    """float32 numbers: all of the format's, the middles between them and their neighbours, the limits, random bits."""
    own = CODES.view(getattr(ml_dtypes, name)).astype(np.float32)
    own = np.unique(own[np.isfinite(own)])
    middles = (own[1:] + own[:-1]) / 2
    beside = [np.nextafter(middles, np.float32(way)) for way in (np.inf, -np.inf)]
    over = np.array([464, 465, 61439, 61440, 248, 247.9, 1e30, np.inf, np.nan, -0.0, 1e-45], np.float32)
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, count, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = (rng.standard_normal(count) * np.exp2(rng.integers(-20, 18, count))).astype(np.float32)
    return np.concatenate([own, middles, *beside, over, -over, bits, near])


def bits(x: torch.Tensor) -> Any:
    return x.cpu().view(torch.uint8).tolist()


def codes(name: str, device: Any = "cpu") -> torch.Tensor:
    return torch.tensor(CODES, device=device).view(getattr(torch, name))


@quick_or_thorough
def test_numbers_are_rounded_to_the_nearest(name: str, device: torch.device) -> None:
    kind, x = getattr(torch, name), numbers(name)
    found = torch.tensor(x, device=device).to(kind)
    limited = x.clip(-448, 448) if name == "float8_e4m3fn" else x  # where ml_dtypes makes NaN
    with np.errstate(all="ignore"):
        exact = limited.astype(getattr(ml_dtypes, name)).view(np.uint8)
    exact = np.where(np.isnan(x) & (exact != 0x80), exact | 0x7F, exact)
    np.testing.assert_array_equal(bits(found), exact)
    large = torch.tensor(np.resize(x, (520, 520)), device=device).T.to(kind)  # in blocks
    assert bits(large.T.reshape(-1)[: len(x)]) == exact.tolist()


@quick_or_thorough
def test_all_codes_as_other_dtypes_and_back(name: str, device: torch.device) -> None:
    kind, x = getattr(torch, name), codes(name, device)
    values = CODES.view(getattr(ml_dtypes, name)).astype(np.float64)
    np.testing.assert_array_equal(x.to(torch.float64).cpu().numpy(), values)
    assert x.to(torch.bool).tolist() == (values != 0).tolist()
    some = x[:0x40]
    for other in (getattr(torch, each) for each in OTHERS):
        assert some.to(other).tolist() == torch.tensor(values[:0x40]).to(other).tolist()
        whole = torch.tensor([0, 1, 1, 0], device=device).to(other).to(kind)
        assert whole.tolist() == [0, 1, 1, 0] and whole.to(other).dtype is other
    for other in (getattr(torch, each) for each in NAMES):
        single = x.to(torch.float32).to(other)
        assert bits(x.to(other)) == bits(x if other is kind else single)


def test_numbers_that_do_not_fit(device: torch.device) -> None:
    for value in (449.0, 1000.0, float("inf"), 10**5):
        with pytest.raises(DtypeError, match="value cannot be converted to type c10::Float8_e4m3fn without overflow"):
            torch.full((2,), value, dtype=FIRST, device=device)
        x = torch.zeros(3, dtype=FIRST, device=device)
        x[0] = value
        assert x.tolist() == [448, 0, 0] and torch.full((1,), value, dtype=FIRST, device=device).item() == 448
        x[torch.tensor([1, 2], device=device)] = value
        assert x.tolist() == [448] * 3 and torch.tensor([value], dtype=FIRST, device=device).tolist() == [448]
    x[:2] = torch.tensor([-1000.0, 1.05], device=device)
    assert x.tolist() == [-448, 1, 448]
    assert torch.full((2,), float("inf"), dtype=torch.float8_e5m2, device=device).tolist() == [float("inf")] * 2
    assert torch.zeros(2, dtype=torch.float8_e5m2, device=device).fill_(1.2).tolist() == [1.25] * 2


MOVED: dict[str, Callable[[Any, Any], Any]] = {
    "index": lambda x, at: x[at],
    "mask": lambda x, at: x[x.view(torch.uint8) > 100],
    "cat": lambda x, at: torch.cat([x, x[3:]]),
    "stack": lambda x, at: torch.stack([x, x], 1),
    "where": lambda x, at: torch.where(x.view(torch.uint8) > 100, x, x.flip(0)),
    "roll": lambda x, at: x.roll(5),
    "repeat": lambda x, at: x.repeat(2),
    "rows": lambda x, at: x.reshape(16, 16).T.contiguous(),
    "put": lambda x, at: x.clone().index_put_((at,), x[: len(at)]),
    "copy": lambda x, at: torch.empty_like(x).copy_(x),
    "select": lambda x, at: x.reshape(16, 16).index_select(1, at % 16),
    "pad": lambda x, at: torch.nn.functional.pad(x.reshape(16, 16), (1, 2)),
    "expand": lambda x, at: x.reshape(16, 16).T.expand(2, 16, 16),
    "expand nothing": lambda x, at: x[:0].expand(3, 0),
    "windows": lambda x, at: x.reshape(16, 16).T.unfold(0, 3, 2),
    "pickled": lambda x, at: pickle.loads(pickle.dumps(copy.deepcopy(x))),
}


@pytest.mark.parametrize("call", MOVED.values(), ids=MOVED)
def test_elements_move_as_bytes_do(call: Callable[[Any, Any], Any], device: torch.device) -> None:
    at = torch.tensor([200, 3, 127, 255], device=device)
    for name in NAMES:
        moved, plain = call(codes(name, device), at), call(torch.tensor(CODES, device=device), at)
        assert moved.dtype is getattr(torch, name) and bits(moved) == bits(plain)


def test_checked_mode_compares_what_moves(device: torch.device) -> None:
    with settings.check(True):
        x = codes("float8_e5m2", device)
        assert bits(torch.cat([x, x.clone()])) == 2 * CODES.tolist()
        with pytest.raises(UnsupportedError):
            x + x
        halves = x[:0x40].reshape(8, 8)
        assert (
            torch._scaled_mm(halves, halves.T, *[torch.ones((), device=device)] * 2, out_dtype=torch.float32).ndim == 2
        )


def test_what_is_computed_in_float32(device: torch.device) -> None:
    x = torch.tensor([1.0, -2.0, 0.5, -0.0], device=device).to(FIRST)
    assert (x * x).tolist() == [1, 4, 0.25, 0] and (x * x).dtype is FIRST and abs(x).tolist() == [1, 2, 0.5, 0]
    assert x.clone().mul_(x).tolist() == [1, 4, 0.25, 0] and (x == x[0]).tolist() == [True, False, False, False]
    assert (x != 1).tolist() == [False, True, True, True]
    assert (torch.tensor([400.0], device=device).to(FIRST) * x[1]).item() == -448
    assert x[3:].any().item() is False and x.all().item() is False and x.isnan().tolist() == [False] * 4
    assert torch.where(x.float() > 0, x, 0.3).tolist() == [1, 0.3125, 0.5, 0.3125]
    assert x.nonzero().tolist() == [[0], [1], [2]] and x.sum(dtype=torch.float32).item() == -0.5
    assert x.clone().index_put_((torch.tensor([0, 0], device=device),), x[:2], accumulate=True)[0].item() == 0
    m = x[:3].reshape(1, 3)
    assert (m @ m.T).item() == 5 and (m @ m.T).dtype is FIRST and torch.nn.functional.linear(m, m).item() == 5
    if device.type != "cpu":
        assert torch.where(x.float() > 0, x, torch.tensor(2.0).to(FIRST)).tolist() == [1, 2, 0.5, 2]
    y = torch.tensor([1.0, 2.0], device=device, requires_grad=True)
    (y.to(FIRST) * y.to(FIRST)[0]).float().sum().backward()
    assert y.grad is not None and y.grad.tolist() == [4.0, 1.0]
    layer = torch.nn.Linear(2, 2, device=device).to(torch.float8_e5m2)
    assert (
        layer.weight.dtype is torch.float8_e5m2 and layer(torch.ones(1, 2, device=device).to(layer.weight.dtype)).ndim
    )


REFUSED: dict[str, Callable[[Any], Any]] = {
    '"add_stub"': lambda x: x + x,
    '"add_stub" ': lambda x: x.add_(1),
    '"div_cpu"': lambda x: x / x,
    '"mul_cpu_reduced_float"': lambda x: x * 2,
    '"exp_vml_cpu"': lambda x: x.exp(),
    '"sum_cpu"': lambda x: x.sum(),
    '"lt_cpu"': lambda x: x < x,
    '"neg_cpu"': lambda x: -x,
    '"clamp_scalar_cpu"': lambda x: x.clamp(0, 1),
    '"arange_cpu"': lambda x: torch.arange(3, dtype=x.dtype, device=x.device),
    '"normal_kernel_cpu"': lambda x: torch.randn(3, dtype=x.dtype, device=x.device),
}


@pytest.mark.parametrize("words", REFUSED)
def test_arithmetic_is_refused(words: str, device: torch.device) -> None:
    x = torch.ones(3, device=device).to(FIRST)
    with pytest.raises(UnsupportedError, match=f"{words.strip()} not implemented for 'Float8_e4m3fn'"):
        REFUSED[words](x)
    assert x.tolist() == [1, 1, 1]


def test_there_is_no_promotion(device: torch.device) -> None:
    x = torch.ones(3, device=device).to(FIRST)
    words = "Promotion for Float8 Types is not supported, attempted to promote Float8_e4m3fn and"
    for call in (lambda: x + x.float(), lambda: x == x.half(), lambda: torch.cat([x, x.to(torch.float8_e5m2)])):
        with pytest.raises(DtypeError, match=words):
            call()
    assert torch.promote_types(FIRST, FIRST) is FIRST and torch.result_type(x, 1.0) is FIRST
    with pytest.raises(ArgumentError, match="couldn't find storage object Float8_e4m3fnStorage"):
        torch.set_default_dtype(FIRST)


# ---- beside PyTorch --------------------------------------------------------------------------------------------------


@pytest.fixture
def peer() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore:Casting complex values to real:UserWarning")
@quick_or_thorough
def test_conversions_are_those_of_torch(name: str, peer: Any, device: torch.device) -> None:
    wide = numbers(name, 200_000 if device.type == "cpu" else 20_000)
    whole = np.random.default_rng(1).integers(-70_000, 70_000, 3000)
    kind, theirs = getattr(torch, name), getattr(peer, name)
    for other in OTHERS:
        source = whole if "int" in other else wide
        with np.errstate(all="ignore"):
            x, y = torch.tensor(source).to(getattr(torch, other)), peer.from_numpy(source).to(getattr(peer, other))
        got, expected = x.to(device).to(kind).cpu().view(torch.uint8), y.to(theirs).view(peer.uint8)
        same = got.numpy() == expected.numpy()
        if other == "bfloat16":  # to which PyTorch rounds a NaN without its sign
            same |= np.isnan(wide)
        assert same.all(), other
    for other in NAMES:
        expected = peer.from_numpy(CODES).view(theirs).to(getattr(peer, other)).view(peer.uint8)
        assert bits(codes(name, device).to(getattr(torch, other))) == expected.tolist()
    np.testing.assert_array_equal(
        codes(name, device).to(torch.float32).cpu().numpy(), peer.from_numpy(CODES).view(theirs).float().numpy()
    )


@pytest.mark.peer
@pytest.mark.parametrize("name", NAMES)
def test_facts_and_texts_are_those_of_torch(name: str, peer: Any) -> None:
    ours, theirs = (repr(library.finfo(getattr(library, name))) for library in (torch, peer))
    assert ours == theirs
    for values in ([1.0, 2.0, 0.5], [400.0, 0.001953125, 1.0], [float("nan"), 1, -2.5], [], [[1.0, 17.0]] * 2, 1.5):
        texts = [
            repr(each.tensor(values).to(getattr(each, name))).replace("tritensor", "torch") for each in (torch, peer)
        ]
        assert texts[0] == texts[1]
    kind = getattr(torch, name)
    assert torch.ones(1).to(kind).type() == peer.ones(1).to(getattr(peer, name)).type() and kind in dtypes.STORED

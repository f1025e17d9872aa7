"""Random numbers: the published words of Philox, one sequence on every device, distributions, what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.kernels.random import philox as kernels
from tritensor.kernels.random import reference as host

F = torch.nn.functional
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
# From Random123's table of known answers: counter, key, result.
KNOWN = [
    ((0, 0, 0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, 0xFFFFFFFF_FFFFFFFF, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        0x299F31D0_A4093822,
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


# ---- Philox ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", KNOWN, ids=["zeros", "ones", "pi"])
def test_philox_gives_the_published_words(known) -> None:
    counter, key, expected = known
    even, odd = host.philox(counter[1] << 32 | counter[0], 1, key, counter[3] << 32 | counter[2])
    assert (*even[:, 0], *odd[:, 0]) == (expected[0], expected[2], expected[1], expected[3])


def test_words_come_in_order_whatever_the_pieces() -> None:
    count, offset = 4 * 16384 * 2 + 3, (7 << 32) + 9
    drawn = host.words(count, 5, offset)
    for position in (0, 5, 4 * 16384 - 1, 4 * 16384, count - 1):
        even, odd = host.philox(position // 4, 1, 5, offset)
        assert drawn[position] == (even, odd)[position % 2][position % 4 // 2, 0]
    assert (host.words(10, 5, offset) == drawn[:10]).all()
    assert host.words(0, 1, 2).shape == (0,)


@pytest.mark.parametrize("first", [0, 5, 2**32 - 2, 2**32 + 7, 2**50])
@pytest.mark.parametrize(("seed", "offset"), [(0, 0), (2**64 - 1, 2**62 + 3), (12345678901234567890, 17)])
def test_one_counter_gives_the_words_that_it_gives_among_others(first, seed, offset) -> None:
    """One counter is computed in another way than several."""
    several = [part.copy() for part in host.philox(first, 2, seed, offset)]
    for part, whole in zip(host.philox(first, 1, seed, offset), several, strict=True):
        np.testing.assert_array_equal(part[:, 0], whole[:, 0])


def test_numbers_do_not_depend_on_the_number_of_threads() -> None:
    generator, count = torch.Generator(), 4 * 16384 * 3 + 1

    def draw() -> list[bytes]:
        generator.manual_seed(1)
        torch.manual_seed(1)
        drawn = [
            *(make(count, generator=generator, dtype=dtype) for dtype in FLOATS for make in (torch.rand, torch.randn)),
            torch.randint(7, (count,), generator=generator),
            torch.randint(1 << 40, (count,), generator=generator),
            torch.randperm(count, generator=generator),
            *(F.dropout(torch.ones(2 * count, dtype=dtype), 0.5) for dtype in FLOATS),
        ]
        return [x.numpy().tobytes() if x.dtype is not torch.bfloat16 else x.float().numpy().tobytes() for x in drawn]

    before = torch.get_num_threads()
    try:
        found = []
        for number in (1, 3):
            torch.set_num_threads(number)
            found.append(draw())
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1]


def test_the_kernel_draws_the_published_words(simulated) -> None:
    from tritensor.memory import buffer, copies
    from tritensor.runtime.launch import Int64, launch

    # the counter (0, 0, 0, 0) of seed 0, as floats of 24 bits
    out = buffer.empty((4,), np.dtype(np.float32), simulated)
    arguments = (out, Int64(0), Int64(0), (), 4)
    for wide_index in (False, True):
        constants = {
            "BODY": kernels.uniform.device_body(),
            "OUT_DTYPE": torch.float32,
            "WIDE": False,
            "INDEX64": wide_index,
            "BLOCK": 1,
        }
        launch(kernels.random_kernel, (1,), arguments, constants, simulated)
        assert copies.to_host(out).tolist() == [(word >> 8) / 2**24 for word in KNOWN[0][2]]


DRAWS = {
    "rand": [lambda place, kind=kind: torch.rand(7, 3, device=place, dtype=kind) for kind in FLOATS],
    "rand of odd sizes": [lambda place, size=size: torch.rand(size, device=place) for size in (1, 2, 3, 5, 0, (2, 0))],
    "randint": [
        lambda place: torch.randint(-5, 5, (33,), device=place),
        lambda place: torch.randint(-5, 1 << 60, (33,), device=place),
        lambda place: torch.randint(1 << 16, (33,), device=place),
        lambda place: torch.randint((1 << 16) + 1, (33,), device=place, dtype=torch.int32),
        lambda place: torch.randint(3, (33,), device=place, dtype=torch.float16),
        lambda place: torch.randint_like(torch.zeros(4, device=place), 2, 9),
    ],
    "in place": [
        lambda place: torch.zeros(5, 5, device=place).uniform_(-0.3, 0.7),
        lambda place: torch.zeros(9, device=place, dtype=torch.int8).random_(),
        lambda place: torch.zeros(9, device=place).random_(),
        lambda place: torch.zeros(9, device=place, dtype=torch.int64).random_(10),
        lambda place: torch.zeros(9, device=place, dtype=torch.bool).random_(),
        lambda place: torch.zeros(4, 6, device=place).t()[1:4].uniform_(),
        lambda place: torch.zeros(9, device=place, dtype=torch.int64).bernoulli_(0.3),
        lambda place: torch.zeros(9, device=place, dtype=torch.float64).bernoulli_(torch.full((9,), 0.3, device=place)),
    ],
    "on the host": [
        lambda place: torch.randperm(100, device=place),
        lambda place: torch.multinomial(torch.ones(9, device=place), 4),
        lambda place: torch.multinomial(torch.ones(2, 9, device=place), 20, replacement=True),
        lambda place: torch.bernoulli(torch.full((9,), 0.4, device=place)),
        lambda place: torch.bernoulli(torch.zeros(9, device=place), 0.4),
    ],
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("block", [0, 2])
@pytest.mark.parametrize("group", DRAWS)
def test_one_seed_gives_the_same_bits_on_every_device(group, block, simulated) -> None:
    with settings.block(block):
        for draw in DRAWS[group]:
            torch.manual_seed(2**63 + 5)
            expected = draw(torch.device("cpu"))
            torch.manual_seed(2**63 + 5)
            drawn = draw(simulated)
            assert drawn.device == simulated and drawn.dtype is expected.dtype and drawn.shape == expected.shape
            assert drawn.cpu().tolist() == expected.tolist()


@pytest.mark.parametrize("kind", FLOATS, ids=str)
def test_normal_numbers_agree_to_rounding(kind, simulated) -> None:
    draws = [
        lambda place: torch.randn(7, 3, device=place, dtype=kind),
        lambda place: torch.randn(1, device=place, dtype=kind),
        lambda place: torch.randn(0, device=place, dtype=kind),
        lambda place: torch.randn_like(torch.zeros(5, device=place, dtype=kind)),
        lambda place: torch.zeros(5, 5, device=place, dtype=kind).normal_(2, 3),
        lambda place: torch.zeros(9, device=place, dtype=kind).exponential_(2.0),
        lambda place: torch.normal(torch.arange(4.0, device=place, dtype=kind), 0.5),
    ]
    rounding = torch.finfo(kind).eps * 8
    for draw in draws:
        torch.manual_seed(4)
        expected = draw(torch.device("cpu"))
        torch.manual_seed(4)
        drawn = draw(simulated).cpu().double().numpy()
        np.testing.assert_allclose(drawn, expected.double().numpy(), rounding, rounding)


def test_every_call_gives_other_numbers() -> None:
    torch.manual_seed(0)
    first, second = torch.rand(4), torch.rand(4)
    assert not torch.equal(first, second) and len(set(torch.cat([first, second]).tolist())) == 8
    torch.manual_seed(1)
    assert not torch.equal(first, torch.rand(4))


def test_checked_mode_accepts_the_kernels(simulated) -> None:
    with torch.testing.checked():
        torch.rand(50, device=simulated)
        torch.randn(51, device=simulated, dtype=torch.float64)
        torch.randint(5, (52,), device=simulated)
        F.dropout(torch.ones(5, 7, device=simulated).t(), 0.3)


# ---- distributions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FLOATS, ids=str)
def test_uniform_numbers_fill_the_interval(kind) -> None:
    torch.manual_seed(0)
    x = torch.rand(40_000, dtype=kind).double().numpy()
    assert x.min() >= 0 and x.max() < 1
    # 16 cells of 2,500 each, standard deviation 48
    assert np.abs(np.bincount((x * 16).astype(int), minlength=16) - 2500).max() < 250
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 0.02


@pytest.mark.parametrize("kind", FLOATS, ids=str)
def test_normal_numbers_have_their_moments(kind) -> None:
    torch.manual_seed(0)
    x = torch.randn(40_000, dtype=kind).double().numpy()
    assert abs(x.mean()) < 0.02 and abs(x.var() - 1) < 0.03
    assert abs((x**3).mean()) < 0.06 and abs((x**4).mean() - 3) < 0.2
    for bound in (-2, -1, 0, 1, 2):
        assert abs((x < bound).mean() - 0.5 * math.erfc(-bound / math.sqrt(2))) < 0.01
    assert abs(np.corrcoef(x[::2], x[1::2])[0, 1]) < 0.02 and 3.5 < np.abs(x).max() < 7


@pytest.mark.parametrize("bounds", [(0, 6), (-3, 3), (10, 10 + (1 << 16) + 6)])
def test_integers_are_evenly_distributed(bounds) -> None:
    torch.manual_seed(0)
    x = torch.randint(*bounds, (60_000,)).numpy()
    assert x.min() >= bounds[0] and x.max() < bounds[1]
    cells = np.bincount((x - bounds[0]) * 6 // (bounds[1] - bounds[0]), minlength=6)
    assert np.abs(cells - 10_000).max() < 500


def test_integers_of_all_bits() -> None:
    torch.manual_seed(0)
    x = torch.randint(-(1 << 63), (1 << 63) - 1, (1000,))
    assert x.min().item() < -(1 << 62) and x.max().item() > 1 << 62
    assert torch.zeros(100, dtype=torch.uint8).random_().max().item() > 200
    assert torch.zeros(1000, dtype=torch.int64).random_().max().item() > 1 << 62
    whole = torch.zeros(1000).random_()
    assert torch.equal(whole, whole.trunc()) and 2**23 < whole.max().item() <= 2**24


def test_permutations() -> None:
    torch.manual_seed(0)
    for count in (0, 1, 2, 1797):
        assert sorted(torch.randperm(count).tolist()) == list(range(count))
    orders = {tuple(torch.randperm(3).tolist()) for _ in range(100)}
    assert len(orders) == 6
    assert torch.randperm(5, dtype=torch.int32).dtype is torch.int32 and torch.randperm(2).dtype is torch.int64


def test_bernoulli_and_exponential() -> None:
    torch.manual_seed(0)
    p = torch.tensor([0.0, 0.25, 1.0]).expand(20_000, 3)
    drawn = torch.bernoulli(p)
    assert drawn.dtype is torch.float32 and abs(drawn[:, 1].sum().item() / 20_000 - 0.25) < 0.02
    assert drawn[:, 0].sum().item() == 0 and drawn[:, 2].sum().item() == 20_000
    assert abs(torch.zeros(20_000).exponential_(4.0).numpy().mean() - 0.25) < 0.01
    assert torch.zeros(1000).exponential_().numpy().min() >= 0
    assert torch.bernoulli(p.double()[:5]).dtype is torch.float64


def test_normal_of_means_and_deviations() -> None:
    torch.manual_seed(0)
    x = torch.normal(torch.tensor([1.0, 100.0]).expand(10_000, 2), torch.tensor([0.5, 10.0]))
    assert np.allclose(x.numpy().mean(0), [1, 100], rtol=0.02) and np.allclose(x.numpy().std(0), [0.5, 10], rtol=0.05)
    assert torch.normal(5.0, 0.0, (2, 2)).tolist() == [[5, 5], [5, 5]] and torch.normal(1.0, 0.0, 3).shape == (3,)
    assert torch.normal(2.0, torch.zeros(2)).tolist() == [2, 2] and torch.normal(2.0, 0.0).shape == ()
    assert torch.normal(0.0, 1.0, (2,), requires_grad=True).requires_grad


def test_multinomial() -> None:
    torch.manual_seed(0)
    weights = torch.tensor([[0.0, 1.0, 3.0, 0.0], [5.0, 0.0, 0.0, 5.0]])
    many = torch.multinomial(weights, 20_000, replacement=True).numpy()
    assert set(many[0]) == {1, 2} and set(many[1]) == {0, 3} and abs((many[0] == 2).mean() - 0.75) < 0.02
    for _ in range(20):
        assert sorted(torch.multinomial(weights[0], 2).tolist()) == [1, 2]
    firsts = [torch.multinomial(weights[0], 1).item() for _ in range(400)]
    assert abs(firsts.count(2) / 400 - 0.75) < 0.1
    assert torch.multinomial(weights, 2).shape == (2, 2) and weights[0].multinomial(1).dtype is torch.int64


# ---- bad input ------------------------------------------------------------------------------------------------

REFUSED = [
    (lambda: torch.manual_seed(2**64), RuntimeError, "Overflow when unpacking long"),
    (lambda: torch.rand(2, generator=5), TypeError, "argument 'generator' must be tritensor.Generator, not int"),
    (lambda: torch.rand(2, dtype=torch.int64), RuntimeError, "\"rand\" not implemented for 'int64'"),
    (lambda: torch.rand(-1), RuntimeError, "Trying to create tensor with negative dimension"),
    (lambda: torch.randint(5, 5, (2,)), RuntimeError, "random_ expects 'from' to be less than 'to', but got from=5 >="),
    (lambda: torch.randint(0, 2**64, (2,)), ValueError, "Overflow when unpacking long long"),
    (lambda: torch.randint(1 << 40, (2,), dtype=torch.int16), RuntimeError, "to - 1 is out of bounds for short int"),
    (lambda: torch.randint(-3, 4, (2,), dtype=torch.uint8), RuntimeError, "from is out of bounds for unsigned char"),
    (lambda: torch.randint(3, (2,), dtype=torch.bool), RuntimeError, "to - 1 is out of bounds for bool"),
    (lambda: torch.randint(65506, (2,), dtype=torch.float16), RuntimeError, "to - 1 is out of bounds for c10::Half"),
    (lambda: torch.randint(8, (2,), dtype=torch.complex64), RuntimeError, "check_random_bounds handles only integral"),
    (lambda: torch.zeros(2, dtype=torch.int8).random_(0, 300), RuntimeError, "to - 1 is out of bounds for signed char"),
    (lambda: torch.randint(5, 3), TypeError, r"randint\(\) takes"),
    (lambda: torch.randint(1, 2, 3, (4,)), TypeError, r"randint\(\) takes"),
    (lambda: torch.randperm(-1), RuntimeError, "n must be non-negative"),
    (lambda: torch.normal(0.0, -1.0, (2,)), RuntimeError, "normal expects std >= 0.0, but found std -1"),
    (lambda: torch.zeros(2).normal_(0, -1), RuntimeError, "normal expects std >= 0.0, but found std -1"),
    (lambda: torch.normal(0.0, torch.tensor([1, -1])), RuntimeError, r"normal expects all elements of std >= 0\.0"),
    (lambda: torch.normal(torch.zeros(1), torch.tensor(math.nan)), RuntimeError, "normal expects all elements of std"),
    (lambda: torch.normal(torch.zeros(1), math.nan), RuntimeError, r"normal expects std >= 0\.0, but found std nan"),
    (lambda: torch.normal(0.0, torch.tensor([1j])), RuntimeError, "normal expects standard deviation to be non-comp"),
    (lambda: torch.zeros(2).uniform_(1, 0), RuntimeError, r"uniform_ expects to return a \[from, to\) range"),
    (lambda: torch.zeros(2).exponential_(0), RuntimeError, "exponential_ expects lambda > 0.0, but found lambda=0"),
    (lambda: torch.zeros(2).bernoulli_(2), RuntimeError, r"bernoulli_ expects p to be in \[0, 1\], but got p=2"),
    (lambda: torch.zeros(2).bernoulli_(torch.tensor([0.5, 2.0])), RuntimeError, "Expected p_in >= 0 && p_in <= 1"),
    (lambda: torch.zeros(2).random_(3, 2), RuntimeError, "random_ expects 'from' to be less than 'to'"),
    (lambda: torch.zeros(2, dtype=torch.int64).uniform_(), RuntimeError, "\"uniform_\" not implemented for 'int64'"),
    (lambda: torch.bernoulli(torch.tensor([1.5])), RuntimeError, "Expected p_in >= 0 && p_in <= 1"),
    (lambda: torch.bernoulli(torch.tensor([1])), RuntimeError, "\"bernoulli\" not implemented for 'int64'"),
    (lambda: torch.bernoulli(torch.zeros(1), -1), RuntimeError, r"bernoulli expects p to be in \[0, 1\]"),
    (lambda: torch.multinomial(torch.ones(2, 2, 2), 1), RuntimeError, "prob_dist must be 1 or 2 dim"),
    (lambda: torch.multinomial(torch.ones(2), 0), RuntimeError, "cannot sample n_sample <= 0 samples"),
    (lambda: torch.multinomial(torch.ones(2), 3), RuntimeError, r"cannot sample n_sample > prob_dist.size\(-1\)"),
    (lambda: torch.multinomial(torch.tensor([1.0, -1.0]), 1), RuntimeError, "probability tensor contains either `inf`"),
    (
        lambda: torch.multinomial(torch.tensor([1.0, -1.0]), 2, replacement=True),
        RuntimeError,
        r"invalid multinomial distribution \(encountering probability entry < 0\)",
    ),
    (
        lambda: torch.multinomial(torch.tensor([1.0, float("inf")]), 2, replacement=True),
        RuntimeError,
        r"invalid multinomial distribution \(encountering probability entry = infinity or NaN\)",
    ),
    (lambda: torch.multinomial(torch.ones(2).long(), 1), RuntimeError, "multinomial only supports floating-point dty"),
    (lambda: torch.multinomial(torch.zeros(2), 1), RuntimeError, r"invalid multinomial distribution \(sum of"),
    (lambda: torch.multinomial(torch.tensor([1.0, 0.0]), 2), RuntimeError, "not enough non-negative category"),
    (lambda: torch.Generator().set_state(torch.zeros(16)), TypeError, "RNG state must be a torch.ByteTensor"),
    (lambda: torch.set_rng_state(torch.zeros(3, dtype=torch.uint8)), RuntimeError, "RNG state is wrong size"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case[2][:40])
def test_refused_in_pytorchs_words(case) -> None:
    call, kind, words = case
    state = torch.get_rng_state().tolist()
    with pytest.raises(kind, match=words):
        call()
    assert torch.get_rng_state().tolist() == state


def test_a_leaf_is_not_filled() -> None:
    x = torch.zeros(2, requires_grad=True)
    for fill in (x.uniform_, x.normal_, x.random_, x.bernoulli_, x.exponential_):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            fill()
    assert x.tolist() == [0, 0]
    with torch.no_grad():
        assert x.uniform_() is x and x.min().item() > 0
    assert torch.rand(2, requires_grad=True).requires_grad and torch.randint(2, (2,), dtype=torch.float32).is_leaf


def test_complex_numbers_have_two_parts() -> None:
    for kind, real in ((torch.complex64, torch.float32), (torch.complex128, torch.float64)):
        z = torch.randn(100, 200, dtype=kind)
        assert z.dtype is kind and z.shape == (100, 200)
        parts = torch.stack([torch.from_numpy(z.numpy().real.copy()), torch.from_numpy(z.numpy().imag.copy())])
        assert parts.dtype is real and abs(parts.var().item() - 0.5) < 0.02 and abs(parts.mean().item()) < 0.02
        u = torch.rand(1000, dtype=kind).numpy()
        assert u.real.min() >= 0 and u.imag.max() < 1 and abs(u.mean() - (0.5 + 0.5j)) < 0.05
    assert torch.randn((), dtype=torch.complex64).shape == () and torch.rand_like(z[:0]).shape == (0, 200)
    assert torch.normal(1.0, 0.0, (2,), dtype=torch.complex64).tolist() == [1, 1]


def test_normal_numbers_have_one_layout() -> None:
    assert torch.normal(0.0, 1.0, (2,), layout=torch.strided).shape == (2,)
    with pytest.raises(TypeError, match=r"must be torch[.]strided, not dense"):
        torch.normal(0.0, 1.0, (2,), layout="dense")

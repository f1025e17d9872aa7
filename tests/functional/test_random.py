"""Random numbers: the published words of Philox, one sequence on every device, distributions, generators, dropout."""

from __future__ import annotations

import copy
import math
import pickle
import re
import threading

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.kernels.random import philox as kernels
from tritensor.random import generator_of

F = torch.nn.functional

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


@pytest.fixture
def simulated():
    pytest.importorskip("triton")
    with torch.cuda.simulate(devices=2):
        yield torch.device("cuda:1")


# ---- Philox ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", KNOWN, ids=["zeros", "ones", "pi"])
def test_philox_gives_the_published_words(known) -> None:
    counter, key, expected = known
    assert kernels.philox(np.array([counter], np.uint32), key).tolist() == [list(expected)]


def test_words_come_in_order_whatever_the_pieces() -> None:
    count = 4 * 8192 * 2 + 3
    drawn = kernels.words(count, seed=5, offset=(7 << 32) + 9)
    for position in (0, 5, 4 * 8192 - 1, 4 * 8192, count - 1):
        counter = np.array([[position // 4, 0, 9, 7]], np.uint32)
        assert drawn[position] == kernels.philox(counter, 5)[0, position % 4]
    assert (kernels.words(10, 5, (7 << 32) + 9) == drawn[:10]).all()
    assert kernels.words(0, 1, 2).shape == (0,)


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


# ---- one sequence everywhere ----------------------------------------------------------------------------------

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
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


# ---- generators -----------------------------------------------------------------------------------------------


def test_manual_seed_returns_the_cpus_generator_and_seeds_all(simulated) -> None:
    assert torch.manual_seed(7) is torch.default_generator
    assert torch.initial_seed() == 7 and torch.cuda.initial_seed() == 7
    expected = torch.rand(3)
    assert torch.equal(torch.rand(3, device="cuda:0").cpu(), expected)
    assert torch.equal(torch.rand(3, device="cuda:1").cpu(), expected)  # a generator of its own
    assert torch.manual_seed(-1).initial_seed() == 2**64 - 1


def test_cuda_has_seeds_and_states_of_its_own(simulated) -> None:
    torch.manual_seed(1)
    before = torch.initial_seed()
    torch.cuda.manual_seed(5)
    assert torch.initial_seed() == before and torch.cuda.initial_seed() == 5
    state = torch.cuda.get_rng_state()
    first = torch.rand(2, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.rand(2, device="cuda"), first)
    torch.cuda.manual_seed_all(6)
    assert torch.equal(torch.rand(2, device="cuda:0").cpu(), torch.rand(2, device="cuda:1").cpu())
    assert torch.cuda.get_rng_state("cuda:1").dtype is torch.uint8


def test_a_state_brings_the_sequence_back() -> None:
    generator = torch.Generator().manual_seed(2**64 - 3)
    torch.rand(5, generator=generator)
    state = generator.get_state()
    assert state.dtype is torch.uint8 and state.shape == (16,)
    other = generator.clone_state()
    copies = [copy.deepcopy(generator), pickle.loads(pickle.dumps(generator)), other]
    expected = torch.randn(4, generator=generator)
    for again in copies:
        assert torch.equal(torch.randn(4, generator=again), expected)
    assert torch.equal(torch.randn(4, generator=generator.set_state(state)), expected)
    state = torch.get_rng_state()
    expected = torch.rand(2)
    torch.set_rng_state(state)
    assert torch.equal(torch.rand(2), expected)


def test_fork_rng_puts_the_generators_back() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    with torch.random.fork_rng():
        torch.manual_seed(9)
        torch.rand(2)
    assert torch.equal(torch.rand(2), expected)
    with torch.random.fork_rng(enabled=False):
        torch.manual_seed(9)
    assert torch.initial_seed() == 9


def test_seeds_that_nobody_can_foresee_differ() -> None:
    generator = torch.Generator()
    assert generator.initial_seed() == 67280421310721
    assert repr(generator) == "<tritensor.Generator on cpu, seed 67280421310721, 0 calls>"
    assert generator.seed() != generator.seed() and generator.seed() == generator.initial_seed()
    assert torch.seed() == torch.initial_seed() != torch.seed()


def test_threads_never_share_a_call() -> None:
    generator, calls = torch.Generator(), []
    threads = [threading.Thread(target=lambda: calls.extend(generator.advance() for _ in range(500))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(calls)) == len(calls) == 4000


def test_a_generator_of_another_device_is_refused(simulated) -> None:
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
        torch.rand(2, generator=torch.Generator("cuda:1"))
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        torch.zeros(2, device=simulated).normal_(generator=torch.Generator())
    assert torch.rand(2, generator=torch.Generator(device="cuda:1"), device=simulated).shape == (2,)
    assert torch.Generator("cuda").device == torch.device("cuda:0")


# ---- bad input ------------------------------------------------------------------------------------------------

REFUSED = [
    (lambda: torch.manual_seed(2**64), RuntimeError, "Overflow when unpacking long"),
    (lambda: torch.rand(2, generator=5), TypeError, "argument 'generator' must be tritensor.Generator, not int"),
    (lambda: torch.rand(2, dtype=torch.int64), RuntimeError, "\"rand\" not implemented for 'int64'"),
    (lambda: torch.randn(2, dtype=torch.complex64), RuntimeError, "\"randn\" not implemented for 'complex64'"),
    (lambda: torch.rand(-1), RuntimeError, "Trying to create tensor with negative dimension"),
    (lambda: torch.randint(5, 5, (2,)), RuntimeError, "random_ expects 'from' to be less than 'to', but got from=5 >="),
    (lambda: torch.randint(0, 2**64, (2,)), RuntimeError, "from and to - 1 are out of bounds for int64"),
    (lambda: torch.randint(5, 3), TypeError, r"randint\(\) takes"),
    (lambda: torch.randint(1, 2, 3, (4,)), TypeError, r"randint\(\) takes"),
    (lambda: torch.randperm(-1), RuntimeError, "n must be non-negative"),
    (lambda: torch.normal(0.0, -1.0, (2,)), RuntimeError, "normal expects std >= 0.0, but found std -1"),
    (lambda: torch.zeros(2).normal_(0, -1), RuntimeError, "normal_ expects std >= 0.0, but found std -1"),
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


# ---- dropout --------------------------------------------------------------------------------------------------


def test_dropout_drops_its_share_and_scales_the_rest() -> None:
    torch.manual_seed(0)
    x = torch.ones(200, 300)
    for p in (0.1, 0.5, 0.9):
        y = F.dropout(x, p)
        assert abs((y == 0).numpy().mean() - p) < 0.01
        assert set(np.unique(y.numpy())) == {np.float32(0), np.float32(1 / (1 - p))}
    assert not torch.equal(F.dropout(x, 0.5), F.dropout(x, 0.5))
    assert F.dropout(x, 1.0).sum().item() == 0 and (F.dropout(x, 1 - 1e-7) == 0).all()


def test_dropout_does_nothing_in_evaluation() -> None:
    x = torch.ones(3)
    assert F.dropout(x, 0.5, training=False) is x and F.dropout(x, 0.0) is x


@pytest.mark.parametrize("p", [-0.1, 1.5, math.nan])
def test_dropout_refuses_what_is_no_probability(p) -> None:
    with pytest.raises(ValueError, match=f"dropout probability has to be between 0 and 1, but got {p}"):
        F.dropout(torch.ones(2), p)


def test_dropout_refuses_integers() -> None:
    with pytest.raises(RuntimeError, match="\"dropout\" not implemented for 'Long'"):
        F.dropout(torch.ones(2, dtype=torch.int64), 0.5)


def test_the_gradient_of_dropout_has_the_same_mask_and_nothing_saved() -> None:
    x = torch.ones(50, requires_grad=True)
    y = F.dropout(x * 1, 0.4)
    assert not any(isinstance(value, torch.Tensor) for value in y.grad_fn.saved)
    (y * y).sum().backward()
    assert x.grad.tolist() == pytest.approx([2 / 0.36 if kept else 0 for kept in (y != 0).tolist()])


def test_dropout_has_second_derivatives() -> None:
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64, requires_grad=True)
    y = F.dropout(x, 0.5) ** 3
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    kept = (y != 0).double()
    assert second.tolist() == pytest.approx((6 * 8 * x.detach() * kept).tolist())


@pytest.mark.parametrize("kind", FLOATS, ids=str)
def test_dropout_is_the_same_on_every_device_and_layout(kind, simulated) -> None:
    base = torch.arange(1.0, 61.0).to(kind).view(3, 4, 5)
    for block in (0, 1, 4):
        for view in (
            lambda x: x,
            lambda x: x.permute(2, 0, 1),
            lambda x: x[:, ::2, 1:],
            lambda x: x[0, 0, 0],
            lambda x: x[:0],
            lambda x: x[:1].expand(4, 4, 5),
        ):
            with settings.block(block):
                torch.manual_seed(3)
                expected = F.dropout(view(base), 0.3)
                torch.manual_seed(3)
                assert F.dropout(view(base.to(simulated)), 0.3).cpu().tolist() == expected.tolist()
    torch.manual_seed(3)
    plain = F.dropout(base, 0.3)
    torch.manual_seed(3)
    assert torch.equal(F.dropout(base.transpose(0, 1).contiguous().transpose(0, 1), 0.3), plain)


def test_dropout_in_place_keeps_nan(simulated) -> None:
    for place in ("cpu", simulated):
        x = torch.full((100,), math.nan, device=place)
        assert F.dropout(x, 0.5, inplace=True) is x and torch.isnan(x).all()


# ---- compiled for devices that are not there ------------------------------------------------------------------

TARGETS = [("cuda", 80), ("cuda", 90), ("cuda", 100), ("hip", "gfx942")]


@pytest.fixture
def compile_ahead(tmp_path):
    pytest.importorskip("triton")
    from tritensor.runtime.launch import compile_ahead

    with settings.cache_dir(str(tmp_path)):
        yield compile_ahead


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_random_kernels_compile_and_store_whole_vectors(target, compile_ahead) -> None:
    cases = [
        (kernels.uniform, torch.float32, (), False),
        (kernels.normal, torch.float32, (), False),
        (kernels.uniform, torch.float64, (), True),
        (kernels.integers, torch.int64, ("i64", "i64"), True),
    ]
    for operator, kind, numbers, wide in cases:
        constants = {"BODY": operator.device_body(), "OUT_DTYPE": kind, "WIDE": wide, "INDEX64": False, "BLOCK": 128}
        signature = (f"*{kind.triton}:16", "i64", "i64", numbers, "i32:16")
        facts = compile_ahead(kernels.random_kernel, signature, constants, target, name=f"random_{operator.name}")
        assert facts.name == f"random_{operator.name}"
        # the library's sine has a table for huge angles on the stack, which ours never need
        assert facts.local_bytes <= (40 if operator is kernels.normal else 0)
        if target[0] == "cuda":
            assert set(re.findall(r"\bSTG\.E[\w.]*", facts.asm["sass"])) == {"STG.E.128"}


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_dropout_compiles_to_whole_vectors(target, compile_ahead) -> None:
    for kind in (torch.float32, torch.bfloat16):
        constants = {"OUT_DTYPE": kind, "COMPUTE": torch.float32, "RANK": 1, "INDEX64": False, "BLOCK": 128}
        pointer = f"*{kind.triton}:16"
        signature = (pointer, pointer, ("i32:1",), ("i32:16",), "i64", "i64", "i32", "fp32", "i32:16")
        facts = compile_ahead(kernels.dropout_kernel, signature, constants, target)
        assert facts.local_bytes == 0
        if target[0] == "cuda":
            assert set(re.findall(r"\b(?:STG|LDG)\.E[\w.]*", facts.asm["sass"])) <= {"STG.E.128", "LDG.E.128"}


def test_dropout_counts_in_64_bits_where_it_must(simulated) -> None:
    from tritensor.memory import buffer, copies
    from tritensor.runtime.launch import Int64, launch

    x = torch.ones(40, device=simulated)
    out = buffer.empty((40,), np.dtype(np.float32), simulated)
    constants = {"OUT_DTYPE": torch.float32, "COMPUTE": torch.float32, "RANK": 1, "INDEX64": True, "BLOCK": 2}
    arguments = (out, x._data, (1,), (40,), Int64(5), Int64(6), 32768, 2.0, 40)
    launch(kernels.dropout_kernel, (3,), arguments, constants, simulated)
    expected = kernels.dropout(torch.ones(40), p=0.5, seed=5, offset=6)
    assert copies.to_host(out).tolist() == expected.tolist()


def test_default_generators_are_made_once(simulated) -> None:
    torch.manual_seed(11)
    assert generator_of(simulated) is generator_of(simulated)
    assert generator_of(simulated).initial_seed() == 11
    assert generator_of(torch.device("cpu")) is torch.default_generator

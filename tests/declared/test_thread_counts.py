"""The number of threads decides nothing: every operator gives the same bits for each, above the sizes at which work is
shared among threads. So do random numbers, Fourier transforms, optimizers and training steps, which are no operators.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn, optim
from tritensor.errors import TritensorError
from tritensor.host.threads import ALONE
from tritensor.nn import functional as F
from tritensor.operators import Operator, registry
from tritensor.tensors import Tensor
from tritensor.types import dtypes

from ..sampling import some
from .samples import TESTED_ALONE, Sample, bits, called, dtypes_of, enlarged, has_samples, samples
from .test_operators import case_id, generator, on_cpu

pytestmark = pytest.mark.usefixtures("same_number_of_threads")

ELEMENTS = 1_500_000  # of the largest input; work on fewer than a million may be left to one thread
NUMBERS = (1, 2, 3, 7)
CASES = [(operator, dtype) for operator in registry.values() if has_samples(operator) for dtype in dtypes_of(operator)]
# what is worth a look in every run; the others take minutes
QUICK = (
    "add float32",
    "add bfloat16",
    "maximum float32",
    "sub int64",
    "copy float32",
    "exp float32",
    "tanh float32",
    "gelu bfloat16",
    "where float32",
    "sum float32",
    "sum float16",
    "amax int32",
    "argmax float32",
    "var float32",
    "cumsum float32",
    "softmax float32",
    "softmax_backward float32",
    "layer_norm bfloat16",
    "layer_norm_backward float32",
    "channel_norm float32",
    "channel_norm_backward bfloat16",
    "cross_entropy float32",
    "convolution float32",
    "convolution_weight float32",
    "gather float32",
    "index_put float32",
)


def same_for_every_number(call: Callable[[], Any]) -> None:
    """Fail unless `call` returns the same bits with each number of threads."""
    found = {}
    for number in NUMBERS:
        torch.set_num_threads(number)
        found[number] = bits(call())
        assert found[number], "nothing to compare"
        same = found[number] == found[NUMBERS[0]]  # megabytes, which an assertion would print
        assert same, f"with {number} threads other bits come out than with one"


def called_on_cpu(operator: Operator, sample: Sample, transposed: bool) -> list[Any]:
    inputs = on_cpu(sample)
    if transposed:
        inputs = [x.mT.contiguous().mT if isinstance(x, Tensor) and x.ndim > 1 else x for x in inputs]
    return called(operator, inputs, sample)


def large(operator: Operator, dtype: dtypes.dtype, elements: int = ELEMENTS) -> Iterator[tuple[Sample, bool]]:
    """Calls on inputs of so many elements, of dense arrays and of ones whose memory has another order."""
    rng = generator("threads", operator.name, dtype.name)
    found = [each for sample in samples(operator, dtype, rng) for each in enlarged(sample, elements, rng)]
    for position in rng.permutation(len(found)):
        for transposed in (False, True):
            try:
                called_on_cpu(operator, found[position], transposed)
            except TritensorError:  # sizes that were equal by chance
                continue
            yield found[position], transposed


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("operator", "dtype"),
    [case for case in CASES if f"{case[0].name} {case[1].name}" in QUICK],
    ids=case_id,
)
def test_every_number_of_threads_gives_the_same_bits(operator: Operator, dtype: dtypes.dtype) -> None:
    sample, transposed = next(large(operator, dtype))
    same_for_every_number(lambda: called_on_cpu(operator, sample, transposed))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("operator", some(dict(CASES), 4, ["matmul", "linear", "convolution"]), ids=case_id)
def test_products_within_operators_on_one_thread_give_the_same_bits(operator: Operator) -> None:
    """Above ALONE elements matrix products may share their work, and operators do not yet."""
    dtype = dtypes.float32 if dtypes.float32 in dtypes_of(operator) else dtypes_of(operator)[0]
    tried = 0
    for sample, transposed in large(operator, dtype, 2 * ALONE):
        same_for_every_number(lambda sample=sample, transposed=transposed: called_on_cpu(operator, sample, transposed))
        tried += 1
    assert tried, f"{operator.name}: no sample can be enlarged"


def test_names_are_of_operators() -> None:
    assert set(QUICK) <= {f"{operator.name} {dtype.name}" for operator, dtype in CASES}


@pytest.mark.slow
@pytest.mark.parametrize(("operator", "dtype"), CASES, ids=case_id)
def test_every_number_of_threads_gives_the_same_bits_for_every_sample(operator: Operator, dtype: dtypes.dtype) -> None:
    tried = 0
    for sample, transposed in large(operator, dtype):
        same_for_every_number(lambda sample=sample, transposed=transposed: called_on_cpu(operator, sample, transposed))
        tried += 1
        if tried == 2:
            break
    assert tried, f"{operator.name}: no sample can be enlarged"


def test_an_operator_whose_sums_depend_on_the_number_is_found() -> None:
    def total(x: np.ndarray) -> np.ndarray:
        parts = np.array_split(x.reshape(-1), torch.get_num_threads())
        return np.asarray(np.cumsum([np.cumsum(part)[-1] for part in parts])[-1])

    x = np.random.default_rng(0).standard_normal(ELEMENTS).astype(np.float32)
    with pytest.raises(AssertionError, match="with 2 threads other bits come out than with one"):
        same_for_every_number(lambda: [torch.from_numpy(total(x))])


# ---- what is no operator with samples -------------------------------------------------------------------------------

RANDOM: dict[str, Callable[[], Any]] = {
    "uniform": lambda: (torch.rand(ELEMENTS), torch.rand(1000, 1501, dtype=torch.float64)),
    "normal": lambda: (torch.randn(ELEMENTS), torch.empty(ELEMENTS, dtype=torch.bfloat16).normal_(1, 2)),
    "integers": lambda: (torch.randint(0, 1000, (ELEMENTS,)), torch.randint(-5, 1 << 40, (ELEMENTS,))),
    "dropout": lambda: (F.dropout(torch.ones(ELEMENTS), 0.3), F.dropout(torch.ones(1000, 1501).t(), 0.3)),
    "arange": lambda: (torch.arange(ELEMENTS), torch.arange(0, 1, 1 / ELEMENTS)),
    "linspace": lambda: (torch.linspace(-1, 1, ELEMENTS),),
    "fft_c2c": lambda: (torch.fft.fft2(torch.linspace(-1, 1, ELEMENTS).reshape(-1, 1000) + 0j),),
    "fft_r2c": lambda: (torch.fft.rfft(torch.linspace(-1, 1, ELEMENTS).reshape(-1, 1000)),),
    "fft_c2r": lambda: (torch.fft.irfft(torch.linspace(-1, 1, ELEMENTS).reshape(-1, 1000) + 0j),),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_are_the_same(name: str) -> None:
    def draw() -> Any:
        torch.manual_seed(3)
        return (*RANDOM[name](), torch.rand(5))  # the generator is as far afterwards

    same_for_every_number(draw)


def test_every_operator_without_samples_is_drawn() -> None:
    alone = {name for name, operator in registry.items() if not has_samples(operator) and operator.family != "hosted"}
    assert alone == set(RANDOM)
    assert {registry[name].family for name in alone} | {"hosted"} == set(TESTED_ALONE)


def drawn(*shape: int, seed: int = 0, dtype: Any = torch.float32) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape, np.float32)).to(dtype)


MAKERS: dict[str, Callable[[Any], optim.Optimizer]] = {
    "sgd": lambda given: optim.SGD(given, lr=0.1),
    "momentum": lambda given: optim.SGD(given, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda given: optim.Adam(given, lr=0.01, amsgrad=True),
    "adamw": lambda given: optim.AdamW(given, lr=0.01, weight_decay=0.1),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=case_id)
@pytest.mark.parametrize("name", MAKERS)
def test_optimizer_steps_are_the_same(name: str, dtype: dtypes.dtype) -> None:
    def train() -> Any:
        shapes = [(1500, 1000), (7,), (300, 301)]
        parameters = [nn.Parameter(drawn(*shape, seed=i, dtype=dtype)) for i, shape in enumerate(shapes)]
        optimizer = MAKERS[name](parameters)
        for step in range(2):
            for i, parameter in enumerate(parameters):
                parameter.grad = drawn(*parameter.shape, seed=10 * step + i + 3, dtype=dtype)
            nn.utils.clip_grad_norm_(parameters, 1.0)
            optimizer.step()
        return parameters

    same_for_every_number(train)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "rows": lambda: nn.Sequential(nn.LayerNorm(1000), nn.GELU(), nn.Dropout(0.1), nn.RMSNorm(1000), nn.Tanh()),
    "perceptron": lambda: nn.Sequential(nn.Linear(1000, 700), nn.GELU(), nn.LayerNorm(700), nn.Linear(700, 1000)),
    "embedding": lambda: nn.Sequential(nn.Embedding(3000, 1000), nn.Softmax(-1)),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", MODELS)
def test_training_steps_are_the_same(name: str) -> None:
    def train() -> Any:
        torch.manual_seed(0)
        model = MODELS[name]()
        optimizer = optim.AdamW(model.parameters(), lr=1e-3)
        rng = np.random.default_rng(1)
        x = torch.from_numpy(rng.integers(0, 3000, 1500)) if name == "embedding" else drawn(1500, 1000)
        target = torch.from_numpy(rng.integers(0, 1000, 1500))
        for _ in range(2):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), target)
            loss.backward()
            optimizer.step()
        return [loss, *model.parameters()]

    same_for_every_number(train)


PRODUCTS = [
    ((700, 800), (800, 900)),
    ((2048, 33), (33, 1024)),
    ((64, 4096), (4096, 64)),
    ((1, 4096), (4096, 1024)),
    ((3000, 500), (500,)),
    ((48, 128, 96), (48, 96, 128)),
    ((16, 200, 100), (100, 300)),
    ((1_500_000,), (1_500_000,)),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("x", "y"), PRODUCTS, ids=str)
def test_products_are_the_same(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    def multiply() -> Any:
        left, right = drawn(*x).requires_grad_(), drawn(*y, seed=1).requires_grad_()
        out = left @ right
        out.backward(torch.full_like(out, 0.75))
        return out, left.grad, right.grad

    same_for_every_number(multiply)


CLASS_LOSSES: list[dict[str, Any]] = [
    {},
    {"weight": drawn(1000, seed=2).exp(), "label_smoothing": 0.1},
    {"weight": drawn(1000, seed=2).exp(), "label_smoothing": 0.1, "reduction": "sum"},
    {"label_smoothing": 0.1, "reduction": "none"},
]


@pytest.mark.parametrize("options", CLASS_LOSSES, ids=lambda options: "-".join(options))
def test_cross_entropy_is_the_same(options: dict[str, Any]) -> None:
    def loss() -> Any:
        scores = drawn(1500, 1000).requires_grad_()
        out = F.cross_entropy(scores, torch.from_numpy(np.random.default_rng(1).integers(0, 1000, 1500)), **options)
        out.backward(torch.full_like(out, 0.75))
        return out, scores.grad

    same_for_every_number(loss)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_the_same(causal: bool) -> None:
    def attend() -> Any:
        leaves = [drawn(1, 8, 512, 32, seed=i).requires_grad_() for i in range(3)]
        out = F.scaled_dot_product_attention(*leaves, is_causal=causal)
        out.backward(torch.full_like(out, 0.75))
        return [out, *[leaf.grad for leaf in leaves]]

    assert math.prod((1, 8, 512, 512)) > ELEMENTS  # the weights
    same_for_every_number(attend)

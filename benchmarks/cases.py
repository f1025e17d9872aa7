"""What is measured on the CPU, one case a row, with the targets that it is measured against.

A statement is written in the vocabulary that tritensor, torch and, unless `numpy=` says otherwise, NumPy share; `lib`
is the library and the inputs are float32 arrays of random normal numbers, under their names. The same statement on
float64 NumPy arrays is the truth that results are compared with, unless `exact=` computes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

from benchmarks import optimizers
from benchmarks.attention import exact_attention, exact_gradients, training
from benchmarks.pictures import (
    channels_last,
    exact_batch_norm,
    exact_convolution,
    exact_maxima,
    exact_resnet,
    resnet,
)
from benchmarks.recurrent import exact_lstm, lstm
from benchmarks.training import (
    Arrays,
    Prepare,
    adamw,
    chain,
    exact_adamw,
    exact_chain,
    exact_perceptron,
    perceptron,
)
from benchmarks.transformers import encoder_layer, exact_encoder_layer, exact_gpt2_block, gpt2_block

ALL_THREADS = "torch_all"  # the peer torch with all threads, as many as tritensor has; the others have one
EPSILON = 2.0**-23  # of float32
_HALF = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}


@dataclass(frozen=True)
class Case:
    """One row: `targets` are times ours/theirs, by peer; a peer without a target is measured too.

    An error up to `rounding` is float32's own and allowed, whatever a peer's error is. The inputs hold numbers of
    `dtype`, in float32 arrays.
    """

    name: str
    title: str
    statement: str
    inputs: Mapping[str, tuple[int, ...]]
    targets: dict[str, float]
    numpy: str | None = "same"
    requires_grad: bool = False
    prepare: Prepare | None = None
    check: str | None = None
    exact: Callable[[Arrays], Any] | None = None
    nonfinite: bool = True
    positive: bool = False
    scale: float = 1.0
    rounding: float = EPSILON
    names: dict[str, object] = field(default_factory=dict)
    dtype: str = "float32"

    def arrays(self, nonfinite: bool = False) -> dict[str, np.ndarray]:
        """The inputs; with `nonfinite` each has a NaN and the infinities, in separate rows if it has rows."""
        generator = np.random.default_rng(0)
        arrays = {}
        for name, shape in self.inputs.items():
            array = self.numbers(generator, shape)
            if nonfinite:
                spread = min(shape) >= 3 and len(shape) == 2
                for place, value in enumerate((np.nan, np.inf, -np.inf)):
                    array[(place, place) if spread else np.unravel_index(place, shape)] = value
            arrays[name] = array
        return arrays

    def numbers(self, generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Random numbers for this case."""
        array = generator.standard_normal(shape, dtype=np.float32) * np.float32(self.scale)
        return rounded(np.abs(array) if self.positive else array, self.dtype)

    def statement_for(self, library: ModuleType) -> str | None:
        """The statement as `library` writes it; None if it cannot be written."""
        if library is np and self.numpy != "same":
            return self.numpy
        return self.statement

    def namespace(self, library: ModuleType, arrays: Arrays, device: str = "cpu") -> dict[str, object]:
        """The names that the statement needs: `arrays` as tensors of `library` on `device`."""
        if library is np:
            return {"lib": np, **self.names, **arrays}
        tensors = {name: library.from_numpy(array).to(device) for name, array in arrays.items()}
        if self.dtype != "float32":
            tensors = {name: tensor.to(getattr(library, self.dtype)) for name, tensor in tensors.items()}
        return self.names_for(library, tensors)

    def names_for(self, library: ModuleType, tensors: Mapping[str, Any]) -> dict[str, object]:
        """The names that the statement needs, for inputs that are tensors of `library` already."""
        if self.requires_grad:
            tensors = {name: tensor.requires_grad_() for name, tensor in tensors.items()}
        prepared = self.prepare(library, tensors) if self.prepare else {}
        return {"lib": library, "F": getattr(library.nn, "functional", None), **self.names, **tensors, **prepared}

    def answer(self, library: ModuleType, arrays: Arrays, device: str = "cpu") -> np.ndarray:
        """What `library` computes, flattened to one float64 vector."""
        statement = self.check or self.statement_for(library)
        assert statement is not None
        return flatten(eval(statement, self.namespace(library, arrays, device)))

    def truth(self, arrays: Arrays) -> np.ndarray:
        """The float64 answer, flattened."""
        if self.exact is not None:
            return flatten(self.exact(arrays))
        with np.errstate(all="ignore"):
            return self.answer(np, {name: array.astype(np.float64) for name, array in arrays.items()})


def rounded(array: np.ndarray, dtype: str) -> np.ndarray:
    """The numbers of `dtype` next to these, in a float32 array."""
    return array if dtype == "float32" else array.astype(_HALF[dtype]).astype(np.float32)


def flatten(result: Any) -> np.ndarray:
    if isinstance(result, (tuple, list)):
        return np.concatenate([flatten(part) for part in result])
    if hasattr(result, "detach"):
        result = result.detach().cpu().double().numpy()
    elif hasattr(result, "__cuda_array_interface__"):
        result = result.get()
    return np.asarray(result, dtype=np.float64).reshape(-1)


def naive_softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def naive_layer_norm(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)


def exact_gelu(arrays: Arrays) -> np.ndarray:
    x = arrays["x"].astype(np.float64)
    with np.errstate(invalid="ignore"):
        return x * (1 + np.fromiter(map(math.erf, x / math.sqrt(2)), np.float64, x.size)) / 2


def attention(shape: tuple[int, ...], target: float, causal: bool = False, backward: bool = False) -> Case:
    """A row of attention, with its gradients if `backward`."""
    what = ("_causal" if causal else "") + ("_backward" if backward else "")
    return Case(
        f"attention{what}",
        f"attention{what.replace('_', ' ')} {'x'.join(map(str, shape))}",
        "step()" if backward else f"F.scaled_dot_product_attention(q, k, v, is_causal={causal})",
        dict.fromkeys("qkvg" if backward else "qkv", shape),
        {ALL_THREADS: target},
        numpy=None,
        prepare=training(causal) if backward else None,
        exact=exact_gradients(causal) if backward else exact_attention(causal),
        nonfinite=False,
    )


SHARES = np.linspace(0, 1, 101)


def quantiles(drawn: Any) -> np.ndarray:
    """Those of numbers that a library drew: what can be known of them."""
    return np.quantile(drawn.numpy(), SHARES)


def optimizer_step(kind: str) -> Case:
    """A step of an optimizer."""
    return Case(
        f"optimizer_{kind.lower()}",
        f"{kind.replace('_', ' with ')} step, 100 tensors of 10,000",
        "step()",
        {"w": (100, 100, 100), "g": (100, 100, 100)},
        {ALL_THREADS: 1.0},
        numpy=None,
        prepare=partial(optimizers.prepared, kind),
        check="trained()",
        exact=partial(optimizers.exact, kind),
        nonfinite=False,
        scale=0.05,
        # Muon's products are of bfloat16; a step is what parameters change by, which for these is near their rounding
        rounding={"Muon": 2e-2, "ASGD": 5e-6, "RAdam": 5e-5, "SGD": 5e-5}.get(kind, EPSILON),
    )


def step_of(features: int, hidden: int, batch: int, target: float, optimizer: str = "Adam", rate: float = 1e-3) -> Case:
    shapes = {"x": (batch, features), "w0": (hidden, features), "b0": (hidden,), "w1": (10, hidden), "b1": (10,)}
    return Case(
        f"step_{hidden}" + ("" if optimizer == "Adam" else f"_{optimizer.lower()}"),
        f"training step {features}-{hidden}-10, batch {batch}, {optimizer}",
        "step()",
        {**shapes, "scores": (batch, 10)},
        {"torch": target},
        numpy=None,
        prepare=partial(perceptron, optimizer=optimizer, rate=rate),
        check="trained()",
        exact=partial(exact_perceptron, optimizer=optimizer, rate=rate),
        nonfinite=False,
        scale=0.05,
    )


def picture(
    name: str, title: str, statement: str, exact: Callable[[Arrays], Any], target: float, **options: Any
) -> Case:
    """A row of eight pictures with 64 channels of 56 x 56, and what else `inputs` names."""
    inputs = {"x": (8, 64, 56, 56), **options.pop("inputs", {})}
    return Case(name, title, statement, inputs, {ALL_THREADS: target}, numpy=None, exact=exact, **options)


def convolution(name: str, title: str, weight: tuple[int, ...], **options: Any) -> Case:
    """A row of a 2-D convolution that keeps the pictures' size."""
    prepare, groups = options.pop("prepare", None), options.pop("groups", 1)
    padding = weight[-1] // 2
    return picture(
        name,
        f"conv2d {title}, 8x64x56x56",
        f"F.conv2d(x, w, b, padding={padding}, groups={groups})",
        exact_convolution(1, padding, groups),
        2.0,
        inputs={"w": weight, "b": weight[:1]},
        prepare=prepare,
        nonfinite=False,
    )


TEN = {"a": (10,), "b": (10,)}
MILLION = 1_000_000
FOUR = 4 << 20
PAIR = {"a": (FOUR,), "b": (FOUR,)}
ROWS = {"x": (4096, 1024)}  # 4 M elements

CASES = (
    Case("add_10", "a + b, 10 elements", "a + b", TEN, {"numpy": 2.2, "torch": 0.54}),
    Case(
        "add_10_grad",
        "a + b, 10 elements, requires_grad",
        "a + b",
        TEN,
        {"numpy": 2.9, "torch": 0.60},
        requires_grad=True,
    ),
    Case("reshape", "x.reshape(2, 50)", "x.reshape(2, 50)", {"x": (10, 10)}, {"torch": 0.8}),
    Case("slice", "x[2:7]", "x[2:7]", {"x": (10, 10)}, {"torch": 0.8}),
    Case("transpose", "x.transpose(0, 1)", "x.transpose(0, 1)", {"x": (10, 10)}, {"torch": 0.8}, "x.transpose(1, 0)"),
    Case("diagonal", "x.diagonal()", "x.diagonal()", {"x": (10, 10)}, {"torch": 2.6}),
    Case("diff", "differences along rows, 4 M", "lib.diff(x)", ROWS, {ALL_THREADS: 1.3}),
    Case(
        "backward_1000",
        "backward of a chain of 1,000 small nodes",
        "backward()",
        {"h": (10,), "w": (10,), "b": (10,)},
        {"torch": 0.46},
        numpy=None,
        prepare=chain,
        exact=exact_chain,
        nonfinite=False,
    ),
    Case("add_1m", "a + b, 1 M", "a + b", {"a": (MILLION,), "b": (MILLION,)}, {"numpy": 0.7, "torch": 0.6}),
    Case("add_10m", "a + b, 10 M", "a + b", {"a": (10 * MILLION,), "b": (10 * MILLION,)}, {"numpy": 0.7, "torch": 0.6}),
    Case("exp_1m", "exp, 1 M", "lib.exp(x)", {"x": (MILLION,)}, {"numpy": 1.05, "torch": 0.9}),
    Case("tanh_1m", "tanh, 1 M", "lib.tanh(x)", {"x": (MILLION,)}, {"numpy": 1.05, "torch": 0.9}),
    Case(
        "cdist",
        "distances of 1,000 rows of 64 and 1,000",
        "lib.cdist(x, y)",
        {"x": (1000, 64), "y": (1000, 64)},
        {ALL_THREADS: 1.3},
        numpy="lib.sqrt(lib.maximum((x * x).sum(1)[:, None] + (y * y).sum(1) - 2 * (x @ y.T), 0))",
    ),
    Case("sqrt_1m", "sqrt, 1 M", "lib.sqrt(x)", {"x": (MILLION,)}, {"numpy": 1.05, "torch": 0.9}, positive=True),
    Case("sum_rows", "sum over rows, 4 M", "x.sum(1)", ROWS, {"numpy": 0.6, "torch": 1.5}),
    Case("sum_columns", "sum over columns, 4 M", "x.sum(0)", ROWS, {"numpy": 0.7, "torch": 0.4}),
    # One number, and a sum that cancels: which library comes closest is chance, so a larger rounding error is allowed.
    Case("sum_all", "sum of all, 4 M", "x.sum()", ROWS, {"numpy": 0.8, "torch": 2.2}, rounding=4 * EPSILON),
    Case(
        "softmax",
        "softmax 4096x1024",
        "F.softmax(x, dim=1)",
        ROWS,
        {"numpy": 0.6, "torch": 2.2, ALL_THREADS: 1.4},
        numpy="naive(x)",
        names={"naive": naive_softmax},
    ),
    Case(
        "layer_norm",
        "layer norm 4096x1024",
        "F.layer_norm(x, (1024,))",
        ROWS,
        {"numpy": 0.6, "torch": 1.8, ALL_THREADS: 1.4},
        numpy="naive(x)",
        names={"naive": naive_layer_norm},
    ),
    Case("add_4m", "a + b, 4 M", "a + b", PAIR, {ALL_THREADS: 1.1}),
    Case("exp_4m", "exp, 4 M", "lib.exp(x)", {"x": (FOUR,)}, {ALL_THREADS: 1.1}),
    Case("tanh_4m", "tanh, 4 M", "lib.tanh(x)", {"x": (FOUR,)}, {ALL_THREADS: 1.1}),
    Case("gelu_4m", "gelu, 4 M", "F.gelu(x)", {"x": (FOUR,)}, {ALL_THREADS: 6.0}, numpy=None, exact=exact_gelu),
    Case(
        "add_bfloat16_4m",
        "a + b in bfloat16, 4 M",
        "a + b",
        PAIR,
        {ALL_THREADS: 7.0},
        numpy=None,
        exact=lambda arrays: arrays["a"].astype(np.float64) + arrays["b"],
        dtype="bfloat16",
    ),
    Case(
        "transposed_copy",
        "x.t().contiguous(), 2048x2048",
        "x.t().contiguous()",
        {"x": (2048, 2048)},
        {ALL_THREADS: 0.6},
        numpy="lib.ascontiguousarray(x.T)",
    ),
    # Which numbers come is the generator's affair; the limit is eight times what quantiles of so many deviate by.
    Case(
        "rand_4m",
        "rand, 4 M",
        f"lib.rand({FOUR})",
        {},
        {ALL_THREADS: 1.2},
        numpy=None,
        check=f"quantiles(lib.rand({FOUR}))",
        exact=lambda arrays: SHARES,
        nonfinite=False,
        rounding=2e-3,
        names={"quantiles": quantiles},
    ),
    Case("cumsum", "cumsum along rows, 4 M", "x.cumsum(1)", ROWS, {ALL_THREADS: 1.3}),
    Case("sort", "sort of rows, 4 M", "x.sort(1)[0]", ROWS, {ALL_THREADS: 1.3}, "lib.sort(x, 1)"),
    Case("unique", "unique, 1 M", "lib.unique(x)", {"x": (MILLION,)}, {ALL_THREADS: 1.3}, nonfinite=False),
    Case(
        "median", "median of rows, 4 M", "x.median(1)[0]", {"x": (4096, 1023)}, {ALL_THREADS: 1.3}, "lib.median(x, 1)"
    ),
    Case("quantile", "quantile of rows, 4 M", "lib.quantile(x, 0.5, 1)", ROWS, {ALL_THREADS: 1.3}),
    Case(
        "searchsorted",
        "searchsorted in 1,000, 1 M",
        "lib.searchsorted(lib.linspace(-3, 3, 1000), x)",
        {"x": (MILLION,)},
        {ALL_THREADS: 1.3},
        nonfinite=False,
        rounding=1e-4,  # the edges are float32: an element may be in the bin beside
    ),
    attention((8, 8, 256, 64), 1.2),
    attention((8, 8, 256, 64), 1.2, backward=True),
    attention((2, 8, 512, 64), 1.2, causal=True),
    attention((2, 8, 512, 64), 1.2, causal=True, backward=True),
    Case(
        "adamw",
        "AdamW step of 16 parameters, together 4 M",
        "step()",
        {"w": (16, 512, 512), "g": (16, 512, 512)},
        {ALL_THREADS: 1.0},
        numpy=None,
        prepare=adamw,
        check="trained()",
        exact=exact_adamw,
        nonfinite=False,
        scale=0.05,
    ),
    *map(optimizer_step, optimizers.KINDS),
    step_of(784, 128, 32, 0.70),
    step_of(784, 512, 128, 1.0),
    step_of(784, 512, 128, 0.95, "SGD", 1.0),
    Case(
        "lstm",
        "LSTM 2x256, batch 64, 32 steps, forward and backward",
        "step()",
        dict.fromkeys("xg", (32, 64, 256)),
        {ALL_THREADS: 1.5},
        numpy=None,
        prepare=lstm,
        exact=exact_lstm,
        nonfinite=False,
        rounding=16 * EPSILON,  # of sums over 2,048 rows
    ),
    convolution("conv_3x3", "3x3 to 64", (64, 64, 3, 3)),
    convolution("conv_3x3_last", "3x3 to 64, channels-last", (64, 64, 3, 3), prepare=channels_last),
    convolution("conv_1x1", "1x1 to 64", (64, 64, 1, 1)),
    convolution("conv_depthwise", "3x3 depthwise", (64, 1, 3, 3), groups=64),
    convolution("conv_depthwise_last", "3x3 depthwise, channels-last", (64, 1, 3, 3), groups=64, prepare=channels_last),
    picture("max_pool", "max_pool2d(x, 3, 2, 1), 8x64x56x56", "F.max_pool2d(x, 3, 2, 1)", exact_maxima, 1.3),
    picture(
        "max_pool_last",
        "max_pool2d(x, 3, 2, 1), channels-last",
        "F.max_pool2d(x, 3, 2, 1)",
        exact_maxima,
        1.3,
        prepare=channels_last,
    ),
    picture(
        "batch_norm",
        "batch norm in training, 8x64x56x56",
        "F.batch_norm(x, None, None, w, b, training=True)",
        exact_batch_norm,
        1.3,
        inputs={"w": (64,), "b": (64,)},
        nonfinite=False,
    ),
    picture(
        "resnet18",
        "training step of a ResNet-18, 8x3x64x64",
        "step()",
        exact_resnet,
        2.0,
        inputs={"x": (8, 3, 64, 64)},
        prepare=resnet,
        check="scores()",
        nonfinite=False,
        rounding=64 * EPSILON,  # of sums behind each other in 20 layers
    ),
    Case(
        "encoder_layer",
        "transformer encoder layer 512x8x2048 over 32x128, forward and backward",
        "step()",
        dict.fromkeys("xg", (32, 128, 512)),
        {ALL_THREADS: 1.3},
        numpy=None,
        prepare=encoder_layer,
        check="out()",
        exact=exact_encoder_layer,
        nonfinite=False,
    ),
    *(
        Case(
            f"gpt2_block_{n}x{n}{suffix}",
            f"block of GPT-2, width 128, 4 heads, {n}x{n} tokens{', forward and backward' if suffix else ''}",
            "step()" if suffix else "out()",
            dict.fromkeys("xg", (n, n, 128)),
            {"torch": 1.1},
            numpy=None,
            prepare=gpt2_block,
            exact=exact_gpt2_block,
            nonfinite=False,
        )
        for n, suffix in ((1, ""), (1, "_grad"), (8, ""), (8, "_grad"))
    ),
    *(
        Case(
            f"{name}_256",
            f"{name} of 256x256",
            statement,
            {"x": (256, 256)},
            {ALL_THREADS: 1.3},
            nonfinite=False,
            rounding=16 * EPSILON,
        )
        for name, statement in (
            ("svd", "lib.linalg.svd(x, False)[1]"),
            ("eigh", "lib.linalg.eigh(x)[0]"),
            ("qr", "abs(lib.linalg.qr(x)[1])"),
        )
    ),
    Case("inv", "inv, 500x500", "lib.linalg.inv(x)", {"x": (500, 500)}, {ALL_THREADS: 1.3}, rounding=1e-2),
    Case("det", "det, 1,000 of 8x8", "lib.linalg.det(x)", {"x": (1000, 8, 8)}, {ALL_THREADS: 1.3}, rounding=1e-3),
    Case(
        "solve",
        "solve, 500x500 for 100 columns",
        "lib.linalg.solve(a, b)",
        {"a": (500, 500), "b": (500, 100)},
        {ALL_THREADS: 1.3},
        rounding=1e-2,
    ),
    Case(
        "fft",
        "rfft of 64 rows of 4,096",
        "abs(lib.fft.rfft(x))",
        {"x": (64, 4096)},
        {ALL_THREADS: 1.3},
        nonfinite=False,
        rounding=16 * EPSILON,
    ),
    Case(
        "einsum",
        "einsum of 16 products of 128x128",
        "lib.einsum('bij,bjk->bik', a, b)",
        {"a": (16, 128, 128), "b": (16, 128, 128)},
        {ALL_THREADS: 1.3},
        numpy=None,
        exact=lambda arrays: arrays["a"].astype(np.float64) @ arrays["b"].astype(np.float64),
        nonfinite=False,
        rounding=16 * EPSILON,
    ),
)

"""What native code is for on the CPU, as rows of `benchmarks.compare`: halves, functions, losses, steps in bfloat16.

`WANTED` has the targets with native code, on all threads: of these rows, and of rows that are measured without it too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.cases import ALL_THREADS, CASES, FOUR, PAIR, ROWS, Case, naive_layer_norm, naive_softmax
from benchmarks.training import Arrays
from benchmarks.transformers import encoder_layer, exact_encoder_layer


def wide(function: Callable[[np.ndarray], Any]) -> Callable[[Arrays], Any]:
    """A function of `x` in float64."""
    return lambda arrays: function(arrays["x"].astype(np.float64))


def pairwise(function: Callable[[np.ndarray, np.ndarray], Any]) -> Callable[[Arrays], Any]:
    """A function of `a` and `b` in float64."""
    return lambda arrays: function(arrays["a"].astype(np.float64), arrays["b"].astype(np.float64))


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def cross_entropy(arrays: Arrays) -> float:
    x = arrays["x"].astype(np.float64)
    labels = np.arange(len(x)) % x.shape[1]
    return float((np.log(np.exp(x).sum(1)) - x[np.arange(len(x)), labels]).mean())


def labelled(torch: Any, tensors: Mapping[str, Any]) -> dict[str, object]:
    """`step()` is the loss of rows with its gradient."""
    x = tensors["x"].detach().requires_grad_()
    labels = torch.arange(len(x)) % x.shape[1]

    def step() -> Any:
        x.grad = None
        loss = torch.nn.functional.cross_entropy(x, labels)
        loss.backward()
        return loss

    return {"step": step}


def perceptron(torch: Any, tensors: Mapping[str, Any]) -> dict[str, object]:
    """`step()` is a training step in the dtype of `x`; `out()` is what the layers give, plus 16."""
    F = torch.nn.functional
    x, *weights = (tensors[name].detach().clone() for name in ("x", "w0", "b0", "w1", "b1"))
    stepping = torch.optim.SGD([weight.requires_grad_() for weight in weights], lr=1e-5)
    labels = torch.arange(len(x)) % 10

    def scores() -> Any:
        w0, b0, w1, b1 = weights
        return F.linear(F.relu(F.linear(x, w0, b0)), w1, b1)

    def step() -> None:
        stepping.zero_grad()
        F.cross_entropy(scores(), labels).backward()
        stepping.step()

    return {"step": step, "out": lambda: scores().detach().double() + 16}


def exact_perceptron(arrays: Arrays) -> np.ndarray:
    x, w0, b0, w1, b1 = (arrays[name].astype(np.float64) for name in ("x", "w0", "b0", "w1", "b1"))
    return np.asarray(np.maximum(x @ w0.T + b0, 0) @ w1.T + b1 + 16)


def four_million(kind: str) -> Case:
    """A step of an optimizer for one parameter of 4 M elements."""
    made = next(case for case in CASES if case.name == f"optimizer_{kind.lower()}")
    inputs = {"w": (1, FOUR), "g": (1, FOUR)}
    title = made.title.partition(",")[0] + ", 4 M"
    return replace(made, name=f"{made.name}_4m", title=title, inputs=inputs)


def function(name: str, statement: str, exact: Callable[[np.ndarray], Any], dtype: str = "float32") -> Case:
    """A row of an operator on 4 M elements, or 4,096 rows, of numbers without NaN."""
    inputs = ROWS if "norm" in name or "softmax" in name else {"x": (FOUR,)}
    title = f"{name.replace('_', ' ')}, 4 M"
    return Case(name, title, statement, inputs, {}, None, exact=wide(exact), nonfinite=False, dtype=dtype)


MLP = {"x": (128, 784), "w0": (512, 784), "b0": (512,), "w1": (10, 512), "b1": (10,)}
NATIVE_CASES = (
    function("gelu_tanh", "F.gelu(x, approximate='tanh')", gelu_tanh),
    function("silu", "F.silu(x)", lambda x: x / (1 + np.exp(-x))),
    function("softplus", "F.softplus(x)", lambda x: np.log1p(np.exp(x))),
    function("gelu_bfloat16", "F.gelu(x, approximate='tanh')", gelu_tanh, "bfloat16"),
    function("softmax_bfloat16", "F.softmax(x, dim=1)", naive_softmax, "bfloat16"),
    function("layer_norm_bfloat16", "F.layer_norm(x, (1024,))", naive_layer_norm, "bfloat16"),
    *[
        Case(
            f"{name}_float16",
            f"a {sign} b in float16, 4 M",
            f"a {sign} b",
            PAIR,
            {},
            None,
            exact=pairwise(operation),
            nonfinite=False,
            dtype="float16",
        )
        for name, sign, operation in (("add", "+", np.add), ("mul", "*", np.multiply))
    ],
    Case(
        "cross_entropy",
        "cross entropy 4096x1024, forward and backward",
        "step()",
        ROWS,
        {},
        None,
        prepare=labelled,
        exact=cross_entropy,
        nonfinite=False,
    ),
    Case(
        "dropout",
        "dropout, 4 M",
        "F.dropout(x, 0.5)",
        {"x": (FOUR,)},
        {},
        None,
        check="F.dropout(x, 0.0)",  # which numbers come is the generator's affair
        exact=wide(lambda x: x),
        nonfinite=False,
    ),
    *map(four_million, ("SGD", "SGD_momentum")),
    Case(
        "step_512_bfloat16",
        "training step 784-512-10, batch 128, bfloat16",
        "step()",
        MLP,
        {},
        None,
        prepare=perceptron,
        check="out()",
        exact=exact_perceptron,
        nonfinite=False,
        scale=0.05,
        dtype="bfloat16",
    ),
    Case(
        "encoder_layer_bfloat16",
        "transformer encoder layer 512x8x2048 over 32x128 in bfloat16, forward and backward",
        "step()",
        {"x": (32, 128, 512), "g": (32, 128, 512)},
        {},
        None,
        prepare=encoder_layer,
        check="out()",
        exact=exact_encoder_layer,
        nonfinite=False,
        dtype="bfloat16",
    ),
)

_NAMES = {
    0.3: "dropout",
    0.5: "gelu_tanh cross_entropy",
    0.7: "add_bfloat16_4m step_128",
    0.8: "layer_norm_bfloat16 layer_norm adamw optimizer_adamw",
    0.9: "silu softplus softmax_bfloat16 encoder_layer step_512 step_512_sgd",
    1.0: "softmax optimizer_sgd optimizer_sgd_momentum optimizer_sgd_4m optimizer_sgd_momentum_4m "
    "max_pool_last cdist add_float16 mul_float16",
    1.1: "cumsum diff",
    1.2: "gelu_4m gelu_bfloat16 step_512_bfloat16 encoder_layer_bfloat16 lstm",
    1.3: "det resnet18",
    1.5: "conv_depthwise",
    2.0: "conv_depthwise_last",
}
WANTED = {name: target for target, names in _NAMES.items() for name in names.split()}


def with_native(case: Case) -> Case:
    """The case with the target that it has where native code is used."""
    wanted = WANTED.get(case.name)
    return case if wanted is None else replace(case, targets={**case.targets, ALL_THREADS: wanted})


ALL_CASES = (*CASES, *NATIVE_CASES)

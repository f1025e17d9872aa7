"""Functions and messages beside PyTorch's: samples of public functions under four transformations, and errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tritensor

from ..needs import needs_triton

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.peer

RNG = np.random.default_rng(0)
MATRICES = RNG.standard_normal((3, 4, 5))
ROWS = RNG.standard_normal((3, 5))
IMAGES = RNG.standard_normal((2, 2, 4, 6, 6))
KERNEL = RNG.standard_normal((6, 4, 3, 3))


def changed(x: Any, key: Any, value: Any) -> Any:
    x = x.clone()
    x[key] = value
    return x


# name: (the batch, f(library, its nn.functional, x))
FUNCTIONS: dict[str, Any] = {
    "flip": lambda m, F, x: x.flip(0),
    "flattened transposed": lambda m, F, x: x.permute(1, 0).reshape(-1),
    "expand": lambda m, F, x: x.expand(2, 4, 5),
    "slices": lambda m, F, x: x[1:, ::2],
    "none and ellipsis": lambda m, F, x: x[None, ..., 0],
    "list": lambda m, F, x: x[[0, 2]],
    "two lists": lambda m, F, x: x[m.tensor([0, 1]), m.tensor([1, 2])],
    "rows of each sample": lambda m, F, x: x[m.arange(4), x.argmax(1)],
    "one column of each sample": lambda m, F, x: x[:, x[0].argmax()],
    "write a row": lambda m, F, x: changed(x, 0, x[1]),
    "write a number": lambda m, F, x: changed(x, (slice(None), 0), 1.0),
    "write at places": lambda m, F, x: x.index_put((m.tensor([0, 1]),), x[:2] * 2),
    "in place": lambda m, F, x: x.clone().add_(1).mul_(x),
    "new_zeros": lambda m, F, x: x.new_zeros(2).add_(x[0, :2]),
    "cat": lambda m, F, x: m.cat([x, x * 2], 1),
    "stack": lambda m, F, x: m.stack([x, m.ones(4, 5, dtype=x.dtype)]),
    "split": lambda m, F, x: x.split(2, 1)[1],
    "unbind": lambda m, F, x: sum(x.unbind(1)),
    "softmax": lambda m, F, x: x.softmax(-1),
    "logsumexp": lambda m, F, x: x.logsumexp(1),
    "norm": lambda m, F, x: x.norm(),
    "var": lambda m, F, x: x.var(0),
    "mean": lambda m, F, x: x.mean((0, 1), keepdim=True),
    "max": lambda m, F, x: x.max(1)[0],
    "argmax": lambda m, F, x: x.argmax(),
    "cumsum": lambda m, F, x: x.cumsum(1),
    "sort": lambda m, F, x: x.sort(1)[0],
    "topk": lambda m, F, x: x.topk(2)[0],
    "einsum": lambda m, F, x: m.einsum("ij,kj->ik", x, x),
    "matrix and vector": lambda m, F, x: x @ x[0],
    "vector and matrix": lambda m, F, x: x[:, 0] @ x,
    "dot": lambda m, F, x: x[0].dot(x[1]),
    "constant matrix": lambda m, F, x: m.tensor(ROWS, dtype=x.dtype) @ x.T,
    "linear": lambda m, F, x: F.linear(x, m.tensor(ROWS, dtype=x.dtype)),
    "linear of each sample": lambda m, F, x: F.linear(m.tensor(ROWS, dtype=x.dtype), x, x[:, 0]),
    "gelu": lambda m, F, x: F.gelu(x),
    "layer_norm": lambda m, F, x: F.layer_norm(x, (5,), x[0], x[1]),
    "rms_norm": lambda m, F, x: F.rms_norm(x, (5,), x[0]),
    "batch_norm": lambda m, F, x: F.batch_norm(x, None, None, training=True),
    "group_norm": lambda m, F, x: F.group_norm(x.unsqueeze(0), 2),
    "cross_entropy": lambda m, F, x: F.cross_entropy(x, m.tensor([0, 1, 2, 3]), ignore_index=2),
    "cross_entropy, smooth": lambda m, F, x: F.cross_entropy(x, m.tensor([0, 1, 2, 3]), label_smoothing=0.1),
    "cross_entropy of probabilities": lambda m, F, x: F.cross_entropy(x, x.softmax(1).detach()),
    "logits": lambda m, F, x: F.binary_cross_entropy_with_logits(x, x.sigmoid().detach()),
    "pad": lambda m, F, x: F.pad(x, (1, 2)),
    "embedding": lambda m, F, x: F.embedding(m.tensor([1, 0, 1]), x),
    "one_hot": lambda m, F, x: F.one_hot(x.argmax(1), 5),
    "gather": lambda m, F, x: x.gather(1, m.tensor([[0, 1], [1, 2], [2, 3], [3, 4]])),
    "scatter_add": lambda m, F, x: m.zeros_like(x).scatter_add(1, m.tensor([[0, 0, 1, 2, 3]] * 4), x),
    "index_add": lambda m, F, x: x.index_add(1, m.tensor([0, 0]), x[:, :2]),
    "masked_fill": lambda m, F, x: x.masked_fill(x > 0, 0.0),
    "where": lambda m, F, x: m.where(x > 0, x, -x),
    "attention": lambda m, F, x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "casts": lambda m, F, x: x.to(m.float32).double(),
    "a number without dimensions": lambda m, F, x: x[0, 0] * x.float(),
    "two numbers without dimensions": lambda m, F, x: x[0, 0] * x[0, 1].float(),
    "comparison": lambda m, F, x: x == x.max(),
    "any": lambda m, F, x: (x > 0).any(1),
    "empty_like": lambda m, F, x: m.empty_like(x).copy_(x),
}
PICTURES: dict[str, Any] = {
    "conv2d": lambda m, F, x: F.conv2d(x, m.tensor(KERNEL, dtype=x.dtype), padding=1),
    "conv2d without a batch": lambda m, F, x: F.conv2d(x[0], m.tensor(KERNEL, dtype=x.dtype)),
    "conv2d of each sample": lambda m, F, x: F.conv2d(
        m.tensor(IMAGES[0], dtype=x.dtype), x[:, :, :3, :3], x[:, 0, 0, 0]
    ),
    "conv_transpose2d": lambda m, F, x: F.conv_transpose2d(x, m.tensor(KERNEL.swapaxes(0, 1).copy(), dtype=x.dtype)),
    "max_pool2d": lambda m, F, x: F.max_pool2d(x, 2),
    "avg_pool2d": lambda m, F, x: F.avg_pool2d(x, 2),
    "bilinear": lambda m, F, x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "unfold": lambda m, F, x: F.unfold(x, 3),
    "batch_norm of pictures": lambda m, F, x: F.batch_norm(x, None, None, training=True),
}
CASES = [(name, MATRICES, f) for name, f in FUNCTIONS.items()] + [(name, IMAGES, f) for name, f in PICTURES.items()]


def under(way: str, m: Any, f: Any, x: Any) -> Any:
    """What a library returns for a function under a transformation."""

    def call(y: Any) -> Any:
        return f(m, m.nn.functional, y)

    def number(y: Any) -> Any:
        return (call(y) * 1.5).sin().sum()

    if way == "vmap":
        return m.vmap(call)(x)
    if way == "jvp":
        return m.func.jvp(call, (x[0],), (x[0].cos(),))[1]
    if way == "vmap of grad":
        return m.vmap(m.func.grad(number))(x)
    return m.func.jvp(m.func.grad(number), (x[0],), (x[0].cos(),))[1]


def agree(name: str, way: str, batch: Any, f: Any, device: str = "cpu", kind: str = "float64") -> None:
    results = []
    for m in (tritensor, torch):
        x = m.tensor(batch, dtype=getattr(m, kind)).to(device if m is tritensor else "cpu")
        if way != "vmap" and not f(m, m.nn.functional, x[0]).is_floating_point():
            return
        with warnings.catch_warnings():
            warnings.simplefilter("error" if m is tritensor else "ignore")
            results.append(under(way, m, f, x))
    ours, theirs = results
    assert tuple(ours.shape) == tuple(theirs.shape)
    if kind == "float64":  # of float32 PyTorch's second derivative of cross entropy is float64
        assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    tolerance = 1e-4 if kind == "float32" else 1e-6 if "dimensions" in name else 1e-9
    np.testing.assert_allclose(ours.cpu().numpy(), theirs.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("way", ["vmap", "jvp", "vmap of grad", "jvp of grad"])
@pytest.mark.parametrize(("name", "batch", "f"), CASES, ids=[name for name, _, _ in CASES])
def test_a_function_is_pytorchs(name: str, batch: Any, f: Any, way: str) -> None:
    if (name, way) == ("one column of each sample", "vmap of grad"):
        pytest.skip("PyTorch reads the index as a number there")
    agree(name, way, batch, f)


ON_DEVICE = (
    "write a row",
    "softmax",
    "linear of each sample",
    "cross_entropy",
    "pad",
    "layer_norm",
    "max_pool2d",
)


@needs_triton
@pytest.mark.slow
@pytest.mark.parametrize("way", ["vmap", "jvp", "vmap of grad", "jvp of grad"])
@pytest.mark.parametrize("case", [case for case in CASES if case[0] in ON_DEVICE], ids=lambda case: case[0])
def test_a_function_on_a_device_is_pytorchs(case: Any, way: str) -> None:
    name, batch, f = case
    with tritensor.cuda.simulate(devices=1):
        agree(name, way, batch, lambda m, F, x: f(_on(m, x), F, x), "cuda", "float32")


class _on:
    """A library whose tensors are made on the device of another tensor."""

    def __init__(self, m: Any, x: Any) -> None:
        self.m, self.x = m, x

    def __getattr__(self, name: str) -> Any:
        made = getattr(self.m, name)
        if name not in ("tensor", "arange", "ones", "zeros"):
            return made
        return lambda *args, **options: made(*args, **options).to(self.x.device)


# ---- messages -------------------------------------------------------------------------------------------------------


def second(x: Any) -> Any:
    return x, x.clone()


ERRORS: dict[str, Any] = {
    "no inputs": lambda m, x: m.vmap(m.sin)(),
    "in_dims of another type": lambda m, x: m.vmap(m.sin, in_dims=[0])(x),
    "in_dims of another structure": lambda m, x: m.vmap(m.sin, in_dims=(0, 0))(x),
    "in_dims no integers": lambda m, x: m.vmap(m.sin, in_dims=(1.5,))(x),
    "a number to map over": lambda m, x: m.vmap(m.mul)(x, 2.0),
    "in_dims out of range": lambda m, x: m.vmap(m.sin, in_dims=3)(x),
    "nothing to map over": lambda m, x: m.vmap(m.sin, in_dims=None)(x),
    "nothing to map over, in a tuple": lambda m, x: m.vmap(m.sin, in_dims=(None,))(x),
    "different sizes": lambda m, x: m.vmap(m.add)(x, x[:2]),
    "out_dims no integers": lambda m, x: m.vmap(m.sin, out_dims=1.5)(x),
    "out_dims of another structure": lambda m, x: m.vmap(m.sin, out_dims=(0, 0))(x),
    "out_dims None": lambda m, x: m.vmap(m.sin, out_dims=None)(x),
    "no tensor": lambda m, x: m.vmap(lambda y: 1.0)(x),
    "an unknown randomness": lambda m, x: m.vmap(m.sin, randomness="x")(x),
    "a chunk of nothing": lambda m, x: m.vmap(m.sin, chunk_size=0)(x),
    "random numbers": lambda m, x: m.vmap(lambda y: y + m.rand(4))(x),
    "item": lambda m, x: m.vmap(lambda y: y * y.sum().item())(x),
    "a condition": lambda m, x: m.vmap(lambda y: y if y.sum() > 0 else -y)(x),
    "in place over what all samples share": lambda m, x: m.vmap(lambda y: m.zeros(4, dtype=m.float64).mul_(y))(x),
    "a mask": lambda m, x: m.vmap(lambda y: y[y > 0])(x),
    "nonzero": lambda m, x: m.vmap(lambda y: y.nonzero())(x),
    "a number from an element": lambda m, x: m.vmap(lambda y: float(y[0]))(x),
    "grad of no tensor": lambda m, x: m.func.grad(lambda y: 1.0)(x),
    "grad of a vector": lambda m, x: m.func.grad(m.sin)(x),
    "grad without aux": lambda m, x: m.func.grad(lambda y: y.sum(), has_aux=True)(x),
    "grad of a number": lambda m, x: m.func.grad(m.sin)(1.0),
    "argnums out of range": lambda m, x: m.func.grad(m.sum, argnums=1)(x),
    "argnums no integer": lambda m, x: m.func.grad(m.sum, argnums="x")(x),
    "argnums empty": lambda m, x: m.func.grad(m.sum, argnums=())(x),
    "argnums twice": lambda m, x: m.func.grad(lambda a, b: a.sum(), argnums=(0, 0))(x, x),
    "vjp of nothing": lambda m, x: m.func.vjp(lambda y: None, x),
    "vjp of a number": lambda m, x: m.func.vjp(lambda y: (y, 1.0), x),
    "vjp of integers": lambda m, x: m.func.vjp(lambda y: y.argmax(), x),
    "vjp without aux": lambda m, x: m.func.vjp(m.sin, x, has_aux=True),
    "cotangents of another structure": lambda m, x: m.func.vjp(m.sin, x)[1]((x, x)),
    "jvp of no tuple": lambda m, x: m.func.jvp(m.sin, x, (x,)),
    "tangents of another structure": lambda m, x: m.func.jvp(m.sin, (x,), (x, x)),
    "no primals": lambda m, x: m.func.jvp(m.sin, (), ()),
    "primals no tensors": lambda m, x: m.func.jvp(m.sin, (1.0,), (1.0,)),
    "jvp of a number": lambda m, x: m.func.jvp(lambda y: 1.0, (x,), (x,)),
    "jvp, strict": lambda m, x: m.func.jvp(lambda y: m.ones(2), (x,), (x,), strict=True),
    "jvp without aux": lambda m, x: m.func.jvp(m.sin, (x,), (x,), has_aux=True),
    "a chunk of no rows": lambda m, x: m.func.jacrev(m.sin, chunk_size=0)(x),
    "complex arguments": lambda m, x: m.func.jacrev(m.sin)(x.to(m.complex128)),
    "complex results": lambda m, x: m.func.jacfwd(lambda y: y.to(m.complex128))(x),
    "no models": lambda m, x: m.func.stack_module_state([]),
    "models of two modes": lambda m, x: m.func.stack_module_state([m.nn.Linear(1, 1), m.nn.Linear(1, 1).eval()]),
    "models of two classes": lambda m, x: m.func.stack_module_state([m.nn.Linear(1, 1), m.nn.ReLU()]),
    "parameters in a set": lambda m, x: m.func.functional_call(m.nn.ReLU(), 3, x),
    "no dicts": lambda m, x: m.func.functional_call(m.nn.ReLU(), (3,), x),
    "a name twice": lambda m, x: m.func.functional_call(m.nn.Linear(4, 1), ({"bias": x}, {"bias": x}), x),
    "names missing": lambda m, x: m.func.functional_call(m.nn.Linear(4, 1), {}, x, strict=True),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_begins_as_pytorchs(name: str) -> None:
    found = []
    for m in (tritensor, torch):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - PyTorch's own type
            ERRORS[name](m, m.ones(3, 4, dtype=m.float64))
        found.append(caught.value)
    ours, theirs = found
    assert isinstance(ours, type(theirs)), (ours, theirs)
    words = [str(each).replace("tritensor", "torch").replace("torch.Tensor", "Tensor").split() for each in found]
    assert words[0][:6] == words[1][:6], f"{ours}\n---\n{theirs}"

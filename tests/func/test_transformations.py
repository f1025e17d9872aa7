"""Transformations of functions: derivatives against formulas and against each other, nested, with trees and options."""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.autograd import forward_ad, functional
from tritensor.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)

from ..needs import needs_triton


def point(*shape: int, seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def close(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=tolerance, atol=tolerance)


def f(x: Any) -> Any:
    return (x.sin() * x).sum()


def slope(x: Any) -> Any:
    return x.cos() * x + x.sin()


def curve(x: Any) -> Any:
    return 2 * x.cos() - x * x.sin()


# ---- one transformation, and two ------------------------------------------------------------------------------------


def test_first_and_second_derivatives_are_those_of_the_formula() -> None:
    x = point(4)
    diagonal = curve(x).unsqueeze(1) * torch.eye(4, dtype=torch.float64)
    close(grad(f)(x), slope(x))
    close(grad(lambda y: grad(f)(y).sum())(x), curve(x))
    close(grad(lambda y: grad(lambda z: grad(f)(z).sum())(y).sum())(x), -3 * x.sin() - x * x.cos())
    for outer in (jacfwd, jacrev):
        for inner in (jacfwd, jacrev):
            close(outer(inner(f))(x), diagonal)
    close(hessian(f)(x), diagonal)
    ones = torch.ones(4, dtype=torch.float64)
    close(jvp(grad(f), (x,), (ones,))[1], curve(x))
    close(grad(lambda y: jvp(f, (y,), (ones,))[1])(x), curve(x))
    close(jvp(lambda y: jvp(f, (y,), (ones,))[1], (x,), (ones,))[1], curve(x).sum())
    close(vjp(grad(f), x)[1](ones)[0], curve(x))


@pytest.mark.parametrize(
    "inner", [grad(f), hessian(f), jacfwd(f), lambda x: jvp(f, (x,), (x,))[1], lambda x: vjp(f, x)[0]]
)
def test_a_batch_of_derivatives_is_that_of_the_samples(inner: Any) -> None:
    x = point(3, 4)
    close(vmap(inner)(x), torch.stack([inner(row) for row in x]))


def test_a_derivative_of_a_batch_is_that_of_a_loop() -> None:
    x, w = point(3, 4), point(4, 2, seed=1)

    def batched(w: Any) -> Any:
        return vmap(lambda row: (row @ w).tanh().sum())(x).square().sum()

    def looped(w: Any) -> Any:
        return torch.stack([(row @ w).tanh().sum() for row in x]).square().sum()

    for transformation in (grad, jacrev, jacfwd, hessian):
        close(transformation(batched)(w), transformation(looped)(w))


def test_levels_nest_in_each_order() -> None:
    x = point(2, 3)

    def inner(row: Any) -> Any:
        return vmap(lambda z: z * z * row.sum())(row)

    close(vmap(jacrev(inner))(x), vmap(jacfwd(inner))(x))
    close(vmap(vmap(grad(lambda z: z.sin()), in_dims=0))(x), x.cos())
    close(vmap(vmap(lambda a, b: a * b, (0, None)), (None, 0))(x[0], x[:, 0]), x[:, :1] * x[0])
    directions = torch.eye(3, dtype=torch.float64)
    ones = torch.ones(3, dtype=torch.float64)
    close(vmap(lambda e: jvp(lambda y: jvp(f, (y,), (e,))[1], (x[0],), (ones,))[1])(directions), curve(x[0]))
    close(vmap(lambda e: jvp(lambda y: jvp(f, (y,), (ones,))[1], (x[0],), (e,))[1])(directions), curve(x[0]))


def test_a_captured_argument_has_a_gradient_for_each_sample() -> None:
    x, w = point(3), point(2, 3, seed=1)
    close(vmap(lambda row: grad(lambda y: (y * row).sin().sum())(x))(w), w * (w * x).cos())


def test_gradients_reach_what_requires_grad_outside() -> None:
    x, w = point(3).requires_grad_(), point(3, seed=1).requires_grad_()
    found = grad(lambda y: (y * y * w).sum())(x)
    assert found.requires_grad
    found.sum().backward()
    close(x.grad, 2 * w)
    close(w.grad, 2 * x)
    plain = grad(f)(point(3))
    assert not plain.requires_grad
    with torch.no_grad():
        close(grad(f)(x), slope(x))
        assert not grad(f)(x).requires_grad
    close(grad(lambda y: (y - torch.no_grad()(lambda: y * y)()).sum())(x), torch.ones(3, dtype=torch.float64))


# ---- arguments ------------------------------------------------------------------------------------------------------


def test_argnums_and_aux() -> None:
    x, y = point(3), point(3, seed=1)

    def g(x: Any, y: Any) -> Any:
        return (x * y).sum(), {"sum": x + y}

    found, (value, aux) = grad_and_value(g, argnums=(0, 1), has_aux=True)(x, y)
    close(found[0], y)
    close(found[1], x)
    close(value, (x * y).sum())
    close(aux["sum"], x + y)
    close(grad(g, argnums=-1, has_aux=True)(x, y)[0], x)
    for transformation in (jacrev, jacfwd):
        found, aux = transformation(lambda x, y: (x * y, x), argnums=1, has_aux=True)(x, y)
        close(found, x.unsqueeze(1) * torch.eye(3, dtype=torch.float64))
        close(aux, x)
        pair = transformation(lambda x, y: x * y, argnums=(0, 1))(x, y)
        close(pair[0], y.unsqueeze(1) * torch.eye(3, dtype=torch.float64))
    value, pull, aux = vjp(lambda x: (x * 2, x), x, has_aux=True)
    close(pull(y)[0], 2 * y)
    value, tangent, aux = jvp(lambda x: (x * 2, x), (x,), (y,), has_aux=True)
    close(tangent, 2 * y)
    close(aux, x)


Pair = namedtuple("Pair", "first second")


def test_trees_go_in_and_out() -> None:
    tree = {"a": point(2), "b": [point(3, seed=1), (point(1, seed=2),)]}

    def g(tree: Any) -> Any:
        return (tree["a"].sum() * tree["b"][0].sum() * tree["b"][1][0]).sum()

    found = grad(g)(tree)
    assert list(found) == ["a", "b"]
    close(found["b"][1][0], (tree["a"].sum() * tree["b"][0].sum()).reshape(1))
    x = point(3, 2)
    out = vmap(lambda t: Pair(t["x"].sum(), OrderedDict(twice=[t["x"] * 2])), in_dims=({"x": 0},))({"x": x})
    assert isinstance(out, Pair)
    close(out.first, x.sum(1))
    close(out.second["twice"][0], 2 * x)
    jacobian = jacrev(lambda t: {"y": t["x"] * 2})({"x": x[0]})
    close(jacobian["y"]["x"], 2 * torch.eye(2, dtype=torch.float64))
    same = jacfwd(lambda t: {"y": t["x"] * 2})({"x": x[0]})
    close(same["y"]["x"], jacobian["y"]["x"])


def test_dimensions_of_inputs_and_outputs() -> None:
    x, y = point(2, 3, 4), point(4, 2, seed=1)
    found = vmap(lambda a, b: a @ b, in_dims=(2, 0), out_dims=1)(x, y.reshape(4, 2)[:, :1].expand(4, 3))
    close(found, torch.stack([x[:, :, i] @ y[i, :1].expand(3) for i in range(4)], 1))
    close(vmap(lambda a: a, in_dims=-1, out_dims=-1)(x), x)
    first, second = vmap(lambda a: (a * 2, torch.ones(2)), out_dims=(0, None))(x)
    close(first, x * 2)
    assert second.shape == (2,)
    close(vmap(lambda a: torch.ones(2))(x), torch.ones(2, 2))
    close(vmap(lambda a, scale: a * scale)(x, scale=3.0), x * 3)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_chunks(size: int) -> None:
    x = point(5, 3)
    close(vmap(grad(f), chunk_size=size)(x), slope(x))
    close(vmap(lambda a: (a, a.sum()), chunk_size=size, out_dims=(1, 0))(x)[0], x.T)
    close(jacrev(lambda a: a * a, chunk_size=size)(x[0]), 2 * x[0].unsqueeze(1) * torch.eye(3, dtype=torch.float64))
    torch.manual_seed(0)
    same = vmap(lambda a: a * 0 + torch.rand(3), randomness="same", chunk_size=size)(x)
    close(same, same[:1].expand(5, 3))


def test_random_numbers() -> None:
    x = torch.zeros(4, 50)
    different = vmap(lambda a: a + torch.rand(50), randomness="different")(x)
    same = vmap(lambda a: a + torch.rand(50), randomness="same")(x)
    assert (different[0] != different[1]).any() and (same[0] == same[1]).all()
    dropped = vmap(lambda a: torch.nn.functional.dropout(a + 1, 0.5), randomness="different")(x)
    assert (dropped[0] != dropped[1]).any() and set(dropped.flatten().tolist()) == {0.0, 2.0}
    dropped = vmap(lambda a: torch.nn.functional.dropout(a + 1, 0.5), randomness="same")(x)
    assert (dropped[0] == dropped[1]).all() and set(dropped.flatten().tolist()) == {0.0, 2.0}
    ones = vmap(lambda a: a + torch.nn.functional.dropout(torch.ones(50), 0.5), randomness="different")(x)
    assert (ones[0] != ones[1]).any()
    masks = vmap(lambda w: grad(lambda a: torch.nn.functional.dropout(a, 0.5).sum())(w), randomness="different")(x)
    assert (masks[0] != masks[1]).any()
    nested = vmap(vmap(lambda a: a + torch.randn(()), randomness="different"), randomness="same")(x)
    assert (nested[0] == nested[1]).all() and (nested[0, 0] != nested[0, 1]).item()
    filled = vmap(lambda a: torch.empty_like(a).uniform_(), randomness="different")(x)
    assert (filled[0] != filled[1]).any()


def test_a_sample_is_what_the_function_sees() -> None:
    seen = []

    def g(x: Any) -> Any:
        seen.append((tuple(x.shape), x.ndim, x.dim(), x.size(0), x.numel(), len(x), x.stride(), x.is_contiguous()))
        assert repr(x).startswith("BatchedTensor(lvl=") and "bdim=0, value=\n    tensor([[[" in repr(x)
        x = x.clone()
        x[0] = 7.0
        x.mul_(2)
        return x.new_zeros(2).add_(x.sum()), torch.zeros_like(x), sum(row for row in x)

    x = point(3, 4, 5)
    a, b, c = vmap(g)(x)
    assert seen == [((4, 5), 2, 2, 4, 20, 4, (5, 1), True)]
    y = x.clone()
    y[:, 0] = 7.0
    close(a, (2 * y).sum((1, 2)).unsqueeze(1).expand(3, 2))
    close(c, (2 * y).sum(1))
    assert b.shape == (3, 4, 5)


# ---- networks -------------------------------------------------------------------------------------------------------


def network() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3),
        torch.nn.GroupNorm(1, 2),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.LayerNorm(8),
        torch.nn.Linear(8, 3),
    ).double()


def check_per_sample_gradients(device: str) -> None:
    model = network().to(device).float() if device != "cpu" else network()
    weights = {name: value.detach() for name, value in model.named_parameters()}
    kind = next(iter(weights.values())).dtype
    x, y = point(4, 1, 6, 6).to(device, kind), torch.tensor([0, 2, 1, 1], device=device)

    def loss(weights: Any, x: Any, y: Any) -> Any:
        out = functional_call(model, weights, (x.unsqueeze(0),))
        return torch.nn.functional.cross_entropy(out, y.unsqueeze(0))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = vmap(grad(loss), in_dims=(None, 0, 0))(weights, x, y)
    for row in range(4):
        single = torch.autograd.grad(
            torch.nn.functional.cross_entropy(model(x[row : row + 1]), y[row : row + 1]), list(model.parameters())
        )
        for (name, each), wanted in zip(found.items(), single, strict=True):
            assert each.device == wanted.device, name
            close(each[row].cpu(), wanted.cpu(), 1e-9 if kind is torch.float64 else 1e-4)


def test_gradients_of_each_sample_of_a_network() -> None:
    check_per_sample_gradients("cpu")


@needs_triton
@pytest.mark.slow
def test_gradients_of_each_sample_of_a_network_on_a_device() -> None:
    with torch.cuda.simulate(devices=1):
        check_per_sample_gradients("cuda")


def test_an_ensemble() -> None:
    models = [
        torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 2)).eval()
        for _ in range(3)
    ]
    params, buffers = stack_module_state(models)
    assert params["0.weight"].shape == (3, 4, 3) and params["0.weight"].is_leaf and params["0.weight"].requires_grad
    x = torch.randn(5, 3)
    found = vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), (0, 0, None))(params, buffers, x)
    close(found, torch.stack([model(x) for model in models]), 1e-5)
    found.sum().backward()
    for number, model in enumerate(models):
        model(x).sum().backward()
        close(params["2.weight"].grad[number], model[2].weight.grad, 1e-5)


def test_functional_call_leaves_the_module_alone() -> None:
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(()))
            self.first = torch.nn.Linear(1, 1)
            self.second = self.first

        def forward(self, x: Any, scale: float = 1.0) -> Any:
            self.count = self.count + 1
            return self.second(x) * scale + self.count

    module = Counter()
    weight = module.first.weight
    given = {"count": torch.ones(()), "first.weight": torch.ones(1, 1), "first.bias": torch.zeros(1)}
    out = functional_call(module, given, torch.ones(1), {"scale": 3.0}, strict=False)
    assert out.item() == 5.0 and given["count"].item() == 2.0
    assert module.count.item() == 0.0 and module.first.weight is weight
    functional_call(module, given, torch.ones(1), strict=True)
    with pytest.raises(RuntimeError, match=r"Error\(s\) in reparametrizing for Counter:\n\tUnexpected key\(s\): 'x'."):
        functional_call(module, {**given, "x": weight}, torch.ones(1), strict=True)
    with pytest.raises(ValueError, match="functional_call got multiple values for keys"):
        functional_call(module, {"first.bias": torch.zeros(1), "second.bias": torch.ones(1)}, torch.ones(1))


# ---- forward mode ---------------------------------------------------------------------------------------------------


def test_dual_tensors() -> None:
    x, t = point(3), point(3, seed=1)
    with forward_ad.dual_level() as level:
        assert level == 0
        dual = forward_ad.make_dual(x, t)
        with torch.no_grad():  # has no effect on tangents
            value, tangent = forward_ad.unpack_dual(f(dual))
        close(value, f(x))
        close(tangent, (slope(x) * t).sum())
        buffer = torch.zeros(2, 3, dtype=torch.float64)
        buffer[0] = dual * 2
        close(forward_ad.unpack_dual(buffer).tangent[0], 2 * t)
        assert forward_ad.unpack_dual(buffer).tangent[1].tolist() == [0.0, 0.0, 0.0]
        assert forward_ad.unpack_dual(dual.detach()).tangent is None
        assert forward_ad.unpack_dual(x).tangent is None
        assert dual.tolist() == x.tolist()
    assert forward_ad.unpack_dual(dual) == (dual, None)
    close(dual * 2, x * 2)
    assert type((dual * 2)._data) is np.ndarray
    with pytest.raises(RuntimeError, match="Trying to create a dual Tensor for forward AD but no level exists"):
        forward_ad.make_dual(x, t)
    with pytest.raises(RuntimeError, match="Trying to exit a forward AD level that was not the last one"):
        forward_ad.exit_dual_level()
    assert forward_ad.dual_level()(lambda: forward_ad.unpack_dual(forward_ad.make_dual(x, t)).tangent is not None)()
    with forward_ad.dual_level():
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported at the moment"):
            forward_ad.enter_dual_level()
        with pytest.raises(RuntimeError, match="Trying to set a forward gradient that has a different size"):
            forward_ad.make_dual(x, t[:2])
        with pytest.raises(ValueError, match="Expected primal to be floating point or complex, but got: "):
            forward_ad.make_dual(torch.ones(2, dtype=torch.int64), t)
        dual = forward_ad.make_dual(point(2, 2), point(2, 2))
        with pytest.raises(RuntimeError, match="Trying to use forward AD with"):
            torch.heaviside(dual, dual)


def test_a_tangent_can_be_differentiated_backward() -> None:
    x, t = point(3).requires_grad_(), point(3, seed=1).requires_grad_()
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(f(forward_ad.make_dual(x, t))).tangent
        tangent.backward()
    close(x.grad, curve(x) * t)
    close(t.grad, slope(x))


def test_linearize() -> None:
    x, t, runs = point(3), point(3, seed=1), []

    def g(x: Any) -> Any:
        runs.append(1)
        return {"y": x.sin(), "n": x.detach()}

    value, push = linearize(g, x)
    for scale in (1, 2):
        found = push(t * scale)
        close(found["y"], x.cos() * t * scale)
        assert found["n"].tolist() == [0.0] * 3
    assert len(runs) == 1 and not value["y"].requires_grad
    with pytest.raises(RuntimeError, match="tangent:0 with shape"):
        push(t[:2])
    with pytest.raises(RuntimeError, match="Expected the tangents"):
        push(t, t)


# ---- torch.autograd.functional --------------------------------------------------------------------------------------


def test_products_with_jacobians_and_hessians() -> None:
    x, v = point(3), point(3, seed=1)
    close(functional.vjp(lambda y: y.sin(), x, v)[1], x.cos() * v)
    close(functional.jvp(lambda y: y.sin(), x, v)[1], x.cos() * v)
    close(functional.vhp(f, x, v)[1], curve(x) * v)
    close(functional.hvp(f, x, v)[1], curve(x) * v)
    for vectorize in (False, True):
        close(functional.hessian(f, x, vectorize=vectorize), hessian(f)(x))
        found = functional.jacobian(lambda a, b: (a * b, b.sum()), (x, v), vectorize=vectorize)
        close(found[0][1], x.unsqueeze(1) * torch.eye(3, dtype=torch.float64))
        assert found[1][0].tolist() == [0.0] * 3
    close(functional.jacobian(lambda a: a * a, x, vectorize=True, strategy="forward-mode"), jacfwd(lambda a: a * a)(x))
    close(functional.hessian(f, x, vectorize=True, outer_jacobian_strategy="forward-mode"), hessian(f)(x))
    x.requires_grad_()
    functional.vjp(f, x, create_graph=True)[1].sum().backward()
    close(x.grad, curve(x))
    assert not functional.jacobian(lambda a: a * a, x).requires_grad


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda x: functional.vjp(lambda y: y, x),
            "The vector v can only be None if the user-provided function",
        ),
        (lambda x: functional.jvp(lambda y: y, x), "The vector v can only be None if the input to the user-provided"),
        (lambda x: functional.vjp(lambda y: y, x, (x, x)), "The given v should contain a single Tensor."),
        (lambda x: functional.vjp(lambda y: (y, y), x, (x,)), "v is a tuple of invalid length: should be 2"),
        (lambda x: functional.jvp(lambda y: y, x, x[:2]), "v has invalid size: should be"),
        (
            lambda x: functional.vhp(lambda y: y, x, x),
            "The Tensor returned by the function given to vhp should contain",
        ),
        (lambda x: functional.hvp(lambda y: (y,), x, x), "The function given to hvp should return a single Tensor"),
        (lambda x: functional.jacobian(lambda y: x, x, strict=True), "Output 0 of the user-provided function does"),
        (
            lambda x: functional.jacobian(lambda a, b: a, (x, x.clone()), strict=True),
            "Output 0 of the user-provided function is independent of input 1. This is not allowed in strict mode.",
        ),
        (
            lambda x: functional.hessian(lambda y: y.sum(), x, strict=True),
            "While computing the hessian, found that the",
        ),
        (
            lambda x: functional.jacobian(f, x, strict=True, vectorize=True),
            "torch.autograd.functional.jacobian: `",
        ),
    ],
)
def test_what_does_not_fit(call: Any, words: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        call(point(3))
    assert str(caught.value).startswith(words)


def test_other_errors_of_functional() -> None:
    with pytest.raises(TypeError, match="The inputs given to vjp must be either a Tensor or a tuple of Tensors"):
        functional.vjp(f, 1.0)
    with pytest.raises(TypeError, match="the value at index 1 has type"):
        functional.jacobian(lambda x, y: x, (point(2), 1.0))
    with pytest.raises(AssertionError, match='Expected strategy to be either "forward-mode" or "reverse-mode"'):
        functional.jacobian(f, point(2), strategy="x")
    with pytest.raises(AssertionError, match='Expected strategy to be either "forward-mode" or "reverse-mode"'):
        functional.hessian(f, point(2), outer_jacobian_strategy="x")
    for options in ({}, {"create_graph": True}):
        with pytest.raises(NotImplementedError):
            functional.jacobian(f, point(2), strategy="forward-mode", **options)


def test_losses_and_attention_have_second_derivatives_in_each_mode() -> None:
    x, y, w = point(6, 4), torch.tensor([0, 2, 1, 1, 0, 2]), point(4, 3, seed=1)

    def loss(w: Any) -> Any:
        return torch.nn.functional.cross_entropy(x @ w, y)

    expected = jacrev(jacrev(loss))(w)
    close(hessian(loss)(w), expected)
    close(jacfwd(jacfwd(loss))(w), expected)
    close(vmap(hessian(loss))(torch.stack([w, w]))[1], expected)
    ones = torch.ones_like(w)
    close(jvp(lambda w: vjp(loss, w)[1](torch.ones((), dtype=w.dtype))[0], (w,), (ones,))[1], expected.sum((2, 3)))
    q = point(2, 128, 8)

    def attend(q: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, q, q).square().sum()

    step = 1e-6
    quotient = (grad(attend)(q + step * q) - grad(attend)(q - step * q)) / (2 * step)
    close(jvp(grad(attend), (q,), (q,))[1], quotient, 1e-5)
    rows = jacrev(lambda q: torch.nn.functional.scaled_dot_product_attention(q, q, q).sum((0, 1)))(q)
    close(rows.sum(0), grad(lambda q: torch.nn.functional.scaled_dot_product_attention(q, q, q).sum())(q))

"""`utils.checkpoint`: the same gradients from less memory, and what a function that changes its mind raises."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn
from tritensor.autograd import precision
from tritensor.utils import checkpoint as checkpointing
from tritensor.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential

from ..needs import needs_triton

BOTH = pytest.mark.parametrize("use_reentrant", [True, False])


def drawn(*shape: int, seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def model(dropout: float = 0.0) -> Any:
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Dropout(dropout), nn.LayerNorm(4)) for _ in range(4)]
    return nn.Sequential(*layers).double()


def gradients(run: Callable[[Any, Any], Any], dropout: float = 0.0, x: Any = None) -> list[Any]:
    """The output, and the gradients of the input and the parameters."""
    made, x = model(dropout), drawn(3, 4).requires_grad_() if x is None else x
    torch.manual_seed(1)
    out = run(made, x)
    (out * drawn(3, 4, seed=1)).sum().backward()
    return [each.detach().numpy() for each in (out, x.grad, *(parameter.grad for parameter in made.parameters()))]


def assert_equal(found: list[Any], expected: list[Any]) -> None:
    for mine, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@BOTH
def test_gradients_are_the_same_to_the_last_bit(use_reentrant: bool, dropout: float) -> None:
    def parts(made: Any, x: Any) -> Any:
        for layer in made:
            x = checkpoint(layer, x, use_reentrant=use_reentrant)
        return x

    def nested(made: Any, x: Any) -> Any:
        def inner(x: Any) -> Any:
            return made[1](checkpoint(made[0], x, use_reentrant=use_reentrant))

        def outer(x: Any) -> Any:
            return made[2](checkpoint(inner, x, use_reentrant=use_reentrant))

        return made[3](checkpoint(outer, x, use_reentrant=use_reentrant))

    def sequential(made: Any, x: Any) -> Any:
        return checkpoint_sequential(made, 2, x, use_reentrant=use_reentrant)

    def of_a_list(made: Any, x: Any) -> Any:
        return checkpoint_sequential(list(made), 3, x, use_reentrant=use_reentrant)

    expected = gradients(lambda made, x: made(x), dropout)
    for run in (parts, nested, sequential, of_a_list):
        assert_equal(gradients(run, dropout), expected)


@BOTH
def test_other_random_numbers_where_they_are_not_preserved(use_reentrant: bool) -> None:
    x = torch.ones(1000, requires_grad=True)
    out = checkpoint(
        lambda x: nn.functional.dropout(x, 0.5).exp(), x, use_reentrant=use_reentrant, preserve_rng_state=False
    )
    torch.rand(3)
    out.sum().backward()
    assert not torch.allclose(x.grad, torch.where(out == 1, 0, 2 * out))


@BOTH
def test_the_generator_goes_on_after_backward(use_reentrant: bool) -> None:
    torch.manual_seed(3)
    x = torch.ones(10, requires_grad=True)
    out = checkpoint(lambda x: nn.functional.dropout(x, 0.5), x, use_reentrant=use_reentrant)
    state = torch.get_rng_state()
    out.sum().backward()
    assert torch.equal(torch.get_rng_state(), state)


def counted(calls: list[int]) -> Callable[..., Any]:
    def function(x: Any, factor: Any = 1.0) -> Any:
        calls.append(1)
        return (x * factor).exp()

    return function


def test_the_function_is_run_once_more_for_each_pass() -> None:
    calls: list[int] = []
    x = drawn(3).requires_grad_()
    out = checkpoint(counted(calls), x, use_reentrant=False, factor=2.0)
    assert len(calls) == 1
    (first,) = torch.autograd.grad(out.sum(), x, retain_graph=True)
    assert len(calls) == 2
    out.sum().backward()
    assert len(calls) == 3
    np.testing.assert_array_equal(first.numpy(), x.grad.numpy())
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        out.sum().backward()
    assert len(calls) == 3


def test_second_derivatives() -> None:
    x = drawn(3).requires_grad_()
    weight = drawn(3, seed=1).requires_grad_()

    def function(x: Any) -> Any:
        return (x * weight).sin().exp() * x

    def through(x: Any, weight: Any) -> Any:
        return checkpoint(function, x, use_reentrant=False)

    assert torch.autograd.gradcheck(through, (x, weight))
    assert torch.autograd.gradgradcheck(through, (x, weight))


def test_what_a_function_reads_gets_gradients_too() -> None:
    layer = nn.Linear(2, 2)
    x = torch.ones(1, 2)
    checkpoint(layer, x, use_reentrant=False).sum().backward()
    assert layer.weight.grad.tolist() == [[1.0, 1.0]] * 2
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True. Gradients will be None"):
        out = checkpoint(layer, x, use_reentrant=True)
    assert not out.requires_grad


@BOTH
def test_several_results_and_arguments_that_are_no_tensors(use_reentrant: bool) -> None:
    x, y = (drawn(3, seed=seed).requires_grad_() for seed in range(2))

    def function(x: Any, number: float, y: Any, name: str) -> Any:
        assert name == "name"
        return x * y * number, (x + y).detach(), y.exp()

    one, two, three = checkpoint(function, x, 2.0, y, "name", use_reentrant=use_reentrant)
    assert not two.requires_grad or use_reentrant
    (one.sum() + three.sum()).backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * y.detach().numpy())
    np.testing.assert_allclose(y.grad.numpy(), 2 * x.detach().numpy() + y.detach().exp().numpy())


def test_results_in_a_dict_and_functions_of_ones_own() -> None:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            out = x**3
            ctx.save_for_backward(x, out)
            return out

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, out = ctx.saved_tensors
            return grad * 3 * out / x

    x = drawn(3).requires_grad_()
    found = checkpoint(lambda x: {"all": [Cube.apply(x * 2), Cube.apply(x)]}, x, use_reentrant=False)
    sum(part.sum() for part in found["all"]).backward()
    np.testing.assert_allclose(x.grad.numpy(), 27 * x.detach().numpy() ** 2)


def test_without_recording_the_function_is_just_called() -> None:
    calls: list[int] = []
    with torch.no_grad():
        out = checkpoint(counted(calls), torch.ones(2, requires_grad=True), use_reentrant=False)
    assert not out.requires_grad and calls == [1]


@pytest.mark.thorough
@needs_triton
@BOTH
def test_less_memory_is_held(use_reentrant: bool) -> None:
    size, steps = 1 << 12, 8

    def block(x: Any) -> Any:
        for _ in range(steps):
            x = x.sin()
        return x

    with torch.cuda.simulate():
        held = {}
        for name, wrapped in (
            ("plain", block),
            ("checkpoint", lambda x: checkpoint(block, x, use_reentrant=use_reentrant)),
            (
                "nested",
                lambda x: checkpoint(
                    lambda x: checkpoint(block, x, use_reentrant=use_reentrant), x, use_reentrant=use_reentrant
                ),
            ),
        ):
            x = torch.ones(size, device="cuda", requires_grad=True)
            before = torch.cuda.memory_allocated()
            out = wrapped(wrapped(wrapped(x)))
            held[name] = (torch.cuda.memory_allocated() - before) // (4 * size)
            torch.cuda.reset_peak_memory_stats()
            out.sum().backward()
            peak = (torch.cuda.max_memory_allocated() - before) // (4 * size)
            assert peak < held["plain"] + 4 if name == "plain" else peak < 2 * steps
            del out, x
    assert held["plain"] >= 3 * steps
    assert held["checkpoint"] <= 3 and held["nested"] <= 3


@needs_triton
def test_random_numbers_of_a_device_and_of_a_graph() -> None:
    with torch.cuda.simulate():
        x = torch.ones(200, device="cuda", requires_grad=True)

        def step() -> Any:
            x.grad = None
            out = checkpoint(lambda x: nn.functional.dropout(x, 0.5), x, use_reentrant=False)
            torch.rand(3, device="cuda")
            out.sum().backward()
            return out.detach()

        out = step()
        assert torch.equal(out, x.grad)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = step()
        seen = []
        for _ in range(2):
            graph.replay()
            assert torch.equal(captured, x.grad)
            seen.append(captured.cpu())
        assert not torch.equal(*seen)


def test_contexts_are_entered() -> None:
    entered: list[str] = []

    @contextlib.contextmanager
    def noted(name: str) -> Iterator[None]:
        entered.append(name)
        yield

    x = torch.ones(2, requires_grad=True)
    out = checkpoint(torch.exp, x, use_reentrant=False, context_fn=lambda: (noted("first"), noted("second")))
    assert entered == ["first"]
    out.sum().backward()
    assert entered == ["first", "second"]
    with checkpointing.set_checkpoint_early_stop(False):
        checkpoint(torch.exp, x, use_reentrant=False, debug=True, early_stop=False).sum().backward()

    def broken(x: Any) -> Any:
        raise KeyError

    with pytest.raises(RuntimeError, match="the forward context provided by context_fn suppressed an exception"):
        checkpoint(
            broken, x, use_reentrant=False, context_fn=lambda: (contextlib.suppress(KeyError), contextlib.nullcontext())
        )
    with pytest.raises(KeyError):
        checkpoint(broken, x, use_reentrant=False)


def test_functions_that_compute_something_else() -> None:
    calls: list[int] = []

    def longer(x: Any) -> Any:
        calls.append(1)
        return x.exp() if len(calls) == 1 else x.exp().sin().exp()

    def other(x: Any) -> Any:
        calls.append(1)
        return (x if len(calls) == 1 else smaller).exp().sum(1)

    x, smaller = torch.ones(2, 3, requires_grad=True), torch.ones(1, 3, requires_grad=True)
    out = checkpoint(longer, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="A different number of tensors was saved during the original forward"):
        out.sum().backward()
    calls.clear()
    out = checkpoint(other, x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="have different metadata than during the forward pass") as raised:
        out.sum().backward()
    assert "tensor at position 0:\nsaved metadata: {'shape': (2, 3)" in str(raised.value)
    calls.clear()
    out = checkpoint(lambda x: other(x) * 1, x, use_reentrant=False, determinism_check="none")
    out.sum().backward()


@BOTH
def test_arguments_that_were_changed(use_reentrant: bool) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    out = checkpoint(torch.exp, y, use_reentrant=use_reentrant)
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        out.sum().backward()


def test_the_first_form_needs_a_whole_backward_pass() -> None:
    x = torch.ones(2, requires_grad=True)
    out = checkpoint(torch.exp, x, use_reentrant=True).sum()
    words = "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad()"
    with pytest.raises(RuntimeError, match=words):
        torch.autograd.grad(out, x, retain_graph=True)
    with pytest.raises(RuntimeError, match=words):
        out.backward(inputs=[x], retain_graph=True)
    out.backward()
    assert x.grad.tolist() == pytest.approx([np.e] * 2)
    y = torch.ones(2, requires_grad=True)
    nothing = checkpoint(lambda x: x.detach(), y, use_reentrant=True)
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True, this checkpoint"):
        nothing.sum().backward()


def test_what_is_refused_and_told() -> None:
    x = torch.ones(2, requires_grad=True)
    for options, words in (
        ({"use_reentrant": True, "scale": 1}, "Unexpected keyword arguments: scale"),
        ({"use_reentrant": True, "debug": True}, "Passing `context_fn` or `debug` is only supported"),
        ({"use_reentrant": False, "determinism_check": "all"}, "determinism_check should be one of"),
        ({"use_reentrant": False, "debug": True, "context_fn": lambda: None}, "debug=True is incompatible"),
    ):
        with pytest.raises(ValueError, match=words):
            checkpoint(torch.exp, x, **options)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: debug"):
        checkpoint_sequential([torch.exp], 1, x, use_reentrant=False, debug=True)
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
        checkpoint(torch.exp, x)
    with pytest.warns(UserWarning, match="checkpoint.checkpoint_sequential: the use_reentrant parameter"):
        checkpoint_sequential([torch.exp, torch.sin], 2, x)


@pytest.mark.peer
@BOTH
def test_pytorch_gives_the_same(use_reentrant: bool) -> None:
    peer = pytest.importorskip("torch")
    from torch.utils.checkpoint import checkpoint as theirs

    found = []
    for library, function in ((torch, checkpoint), (peer, theirs)):
        x = library.tensor(drawn(3, 4).numpy(), requires_grad=True)
        w = library.tensor(drawn(4, 4, seed=1).numpy(), requires_grad=True)
        for _ in range(2):
            y = function(lambda x, w: (x @ w).tanh().exp(), x, w, use_reentrant=use_reentrant)
            y = function(lambda y: (y @ y.T).logsumexp(1), y, use_reentrant=use_reentrant)
            y.sum().backward()
        found.append([x.grad.numpy(), w.grad.numpy()])
    for mine, wanted in zip(*found, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-12)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_the_second_call_casts_as_the_first(use_reentrant: bool) -> None:
    """Also for a layer that is called twice, whose weight the first call has cast for the second."""
    layer = torch.nn.Linear(4, 4)
    x = torch.randn(3, 4, requires_grad=True)
    gradients = []
    for called in (lambda y: checkpoint(layer, y, use_reentrant=use_reentrant), layer):
        layer.zero_grad()
        with torch.autocast("cpu"):
            out = called(called(x))
        assert out.dtype is torch.bfloat16
        out.float().sum().backward()
        gradients.append(layer.weight.grad.clone())
    torch.testing.assert_close(*gradients, rtol=0.02, atol=0.02)
    assert (layer(x).dtype, torch.is_autocast_enabled("cpu")) == (torch.float32, False)


class _Keeping:
    """Keeps the results of products in the first run, which are not computed again in the second."""

    def __init__(self, kept, second):
        self.kept, self.second, self.computed = kept, second, []

    def __call__(self, call, arrays):
        self.computed.append(call.operator.name)
        if not self.second and call.operator.name == "matmul":
            self.kept.append(arrays)

    def instead(self, call):
        return self.kept.pop(0) if self.second and call.operator.name == "matmul" else None


def test_results_that_a_context_keeps_are_not_computed_again():
    x, w = (torch.randn(4, 4, requires_grad=True) for _ in range(2))
    kept = []
    watches = _Keeping(kept, False), _Keeping(kept, True)

    def function(x):
        return ((x @ w).sin() @ w).exp()

    function(x).sum().backward()
    wanted = x.grad, w.grad
    x.grad = w.grad = None
    given = checkpoint(
        function, x, use_reentrant=False, context_fn=lambda: tuple(precision.watching(each) for each in watches)
    )
    assert len(kept) == 2
    given.sum().backward()
    assert not kept
    for found, each in zip((x.grad, w.grad), wanted, strict=True):
        assert torch.equal(found, each)

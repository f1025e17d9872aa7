"""The tape: accumulation, modes, hooks, second order, and errors that name the forward line."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.autograd import Function

from ..needs import needs_triton
from .leaves import leaf


def test_gradients_accumulate_over_uses_and_passes() -> None:
    x = leaf(2.0, 3.0)
    (x * x + x).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [5.0, 7.0])
    (x * 1).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [6.0, 8.0])


def test_leaves_do_not_share_a_gradient() -> None:
    x, y = leaf(1.0), leaf(2.0)
    (x + y).sum().backward()
    x.grad.zero_()
    assert y.grad.item() == 1.0


def test_broadcast_inputs_get_the_sum() -> None:
    x, row, scalar = (
        torch.ones(3, 4, requires_grad=True),
        torch.ones(4, requires_grad=True),
        torch.ones((), requires_grad=True),
    )
    (x * row * scalar).sum().backward()
    assert (x.grad.shape, row.grad.shape, scalar.grad.shape) == ((3, 4), (4,), ())
    assert scalar.grad.item() == 12.0 and row.grad.tolist() == [3.0] * 4


def test_mixed_dtypes_give_each_leaf_its_own() -> None:
    x, y = torch.ones(2, requires_grad=True), leaf(1.0, 2.0)
    (x * y).sum().backward()
    assert x.grad.dtype is torch.float32 and y.grad.dtype is torch.float64


def test_modes() -> None:
    x = leaf(1.0)
    with torch.no_grad():
        assert not (x * 2).requires_grad and not torch.is_grad_enabled()
        with torch.enable_grad():
            assert (x * 2).requires_grad
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    with torch.inference_mode():
        assert not (x * 2).requires_grad and torch.is_inference_mode_enabled()
    with torch.inference_mode(False):
        assert (x * 2).requires_grad
    with torch.set_grad_enabled(False):
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad
    torch.set_grad_enabled(False)
    try:
        assert not (x * 2).requires_grad
    finally:
        torch.set_grad_enabled(True)


def test_modes_as_decorators_and_after_errors() -> None:
    x = leaf(1.0)

    @torch.no_grad()
    def first() -> bool:
        return (x * 2).requires_grad

    @torch.no_grad
    def second() -> bool:
        return (x * 2).requires_grad

    @torch.set_grad_enabled(False)
    def third() -> bool:
        return (x * 2).requires_grad

    assert torch.is_grad_enabled()
    assert [first(), second(), third()] == [False] * 3
    with pytest.raises(KeyError), torch.no_grad():
        raise KeyError
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    ("mode", "held"),
    [
        (torch.no_grad(), False),
        (torch.no_grad, False),
        (torch.inference_mode(), False),
        (torch.inference_mode, False),
        (torch.enable_grad(), True),
        (torch.enable_grad, True),
        (torch.set_grad_enabled(True), True),
    ],
)
def test_mode_holds_in_a_generator_and_not_at_its_yields(mode: Any, held: bool) -> None:
    seen = []

    @mode
    def body(first: str) -> Generator[str, str, str]:
        """Notes the mode each time it runs."""
        seen.append(torch.is_grad_enabled())
        try:
            while True:
                try:
                    first += yield first
                except KeyError as error:
                    first += str(error.args[0])
                seen.append(torch.is_grad_enabled())
                if len(first) > 4:
                    return first
        finally:
            seen.append(torch.is_grad_enabled())

    with torch.set_grad_enabled(not held):
        generator = body("a")
        assert body.__name__ == "body" and not seen
        assert next(generator) == "a" and torch.is_grad_enabled() is not held
        assert generator.send("bc") == "abc" and torch.is_grad_enabled() is not held
        assert generator.throw(KeyError("d")) == "abcd" and torch.is_grad_enabled() is not held
        with pytest.raises(StopIteration, match=r"^abcde$"):
            generator.send("e")
        assert torch.is_grad_enabled() is not held
        assert seen == [held] * 5
        closed = body("a")
        next(closed)
        closed.close()
        failed = body("a")
        next(failed)
        with pytest.raises(ValueError, match=r"^outside$"):
            failed.throw(ValueError("outside"))
        assert torch.is_grad_enabled() is not held
        assert seen == [held] * 9


def test_set_grad_enabled_sets_its_mode_again_when_it_is_entered() -> None:
    off = torch.set_grad_enabled(False)
    torch.set_grad_enabled(True)
    with off:
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    with pytest.raises(
        TypeError, match=r"^set_grad_enabled\(\): argument 'enabled' \(position 1\) must be bool, not str"
    ):
        torch.set_grad_enabled("no")
    assert torch.is_grad_enabled()


def test_mode_belongs_to_the_thread() -> None:
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_detach_and_data() -> None:
    x = leaf(1.0, 2.0)
    assert not x.detach().requires_grad and not x.data.requires_grad
    (x * x.detach()).sum().backward()
    assert x.grad.tolist() == [1.0, 2.0]
    y = x * 2
    y.detach_()
    assert y.is_leaf and not y.requires_grad


def test_data_that_cannot_require_a_gradient_are_refused() -> None:
    x = torch.ones(2, requires_grad=True)
    for target in (x, x * 2, torch.nn.Parameter(x.detach().clone())):
        before = target.data
        for wrong in (torch.tensor([1, 2]), torch.tensor([True])):
            with pytest.raises(
                RuntimeError, match="data set to a tensor that requires gradients must be floating point"
            ):
                target.data = wrong
        assert target.data_ptr() == before.data_ptr()
        target.data = torch.zeros(3, dtype=torch.float64)
        assert target.dtype is torch.float64
    x = torch.ones(2)
    x.data = torch.tensor([1, 2])
    assert x.dtype is torch.int64


def test_second_order_and_retained_graphs() -> None:
    x = leaf(2.0)
    y = x**3
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x, create_graph=True)
    (third,) = torch.autograd.grad(second, x)
    assert (first.item(), second.item(), third.item()) == (12.0, 12.0, 6.0)
    z = x.exp()
    z.backward(retain_graph=True)
    z.backward()
    assert x.grad.item() == pytest.approx(2 * np.exp(2.0))


def test_grad_returns_and_leaves_grad_alone() -> None:
    x, unused = leaf(1.0), leaf(1.0)
    y = x * 2
    (middle,) = torch.autograd.grad((y * y).sum(), y, retain_graph=True)
    assert middle.item() == 4.0 and x.grad is None
    with pytest.raises(RuntimeError, match="The differentiated Tensor at index 1 appears to not have been used"):
        torch.autograd.grad((x * 2).sum(), (x, unused))
    assert torch.autograd.grad((x * 2).sum(), (x, unused), allow_unused=True)[1] is None
    assert torch.autograd.grad((x * 2).sum(), (x, unused), materialize_grads=True)[1].item() == 0.0
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.autograd.grad((x * 2).sum(), torch.ones(1))


def test_grad_runs_only_what_leads_to_its_inputs() -> None:
    x, w = leaf(3.0), leaf(2.0)
    ran = []
    h = x * 2
    h.register_hook(lambda g: ran.append("h"))
    side = (w * w).sum()
    torch.autograd.grad(h.sum() + side, w)
    assert ran == []
    h.sum().backward()
    assert ran == ["h"] and x.grad.item() == 2.0


def test_backward_to_chosen_inputs() -> None:
    x, y = leaf(1.0), leaf(1.0)
    (x * y).sum().backward(inputs=[x])
    assert x.grad.item() == 1.0 and y.grad is None


def test_hooks_see_and_replace_gradients() -> None:
    x = leaf(1.0)
    y = x * 3
    seen = []
    handle = y.register_hook(lambda g: seen.append(g.item()))
    y.register_hook(lambda g: g * 10)
    x.register_hook(lambda g: g + 1)
    y.sum().backward(retain_graph=True)
    assert seen == [1.0] and x.grad.item() == 31.0
    handle.remove()
    handle.remove()
    x.grad = None
    y.sum().backward()
    assert seen == [1.0]
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(1).register_hook(print)


def test_hook_after_accumulation() -> None:
    x = leaf(1.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.item()))
    (x * 2 + x).sum().backward()
    assert seen == [3.0]
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(print)


def test_retain_grad_and_the_warning_without_it() -> None:
    x = leaf(1.0)
    y = x * 2
    y.retain_grad()
    (y * y).sum().backward()
    assert y.grad.item() == 4.0 and y.retains_grad and not x.retains_grad
    with pytest.warns(UserWarning, match=r"The .grad attribute of a Tensor that is not a leaf Tensor"):
        assert (x * 2).grad is None


def test_a_long_chain_needs_no_stack() -> None:
    x = leaf(1.0)
    h = x
    for _ in range(20_000):
        h = h + 1
    h.backward()
    assert x.grad.item() == 1.0


def test_intermediate_values_are_freed() -> None:
    """An intermediate result that no gradient reads goes when its name goes, and no cycle holds a saved output."""
    gc.disable()
    try:
        x = leaf(1.0)
        hidden = x + 1
        gone = weakref.ref(hidden)
        y = hidden + 1
        del hidden
        assert gone() is None
        z = y.exp()
        out = weakref.ref(z)
        del z
        assert out() is None
    finally:
        gc.enable()


# ---- errors ---------------------------------------------------------------------------------------------------


def test_backward_twice_names_the_forward_line() -> None:
    x = leaf(1.0)
    y = (x * x).sum()  # the forward line
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time") as caught:
        y.backward()
    assert "test_autograd.py" in str(caught.value) and "test_backward_twice" in str(caught.value)
    assert x.grad.item() == 2.0


def test_saved_tensor_changed_in_place() -> None:
    x = leaf(1.0)
    w = torch.ones(1, dtype=torch.float64)
    y = x * w
    w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation") as caught:
        y.sum().backward()
    assert "is at version 1; expected version 0" in str(caught.value) and "test_autograd.py" in str(caught.value)
    assert x.grad is None
    out = x.exp()
    out.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_what_is_not_saved_may_change() -> None:
    x = leaf(1.0)
    w = torch.ones(1, dtype=torch.float64)
    y = x + w
    w.add_(1)
    y.sum().backward()
    assert x.grad.item() == 1.0


def test_backward_of_what_cannot() -> None:
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (leaf(1.0, 2.0) * 2).backward()
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        torch.ones(1).backward()
    with pytest.raises(RuntimeError, match="Mismatch in shape: grad_output"):
        (leaf(1.0, 2.0) * 2).backward(torch.ones(3))
    with pytest.raises(RuntimeError, match="only Tensors of floating point and complex dtype can require gradients"):
        torch.tensor([1], requires_grad=True)
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        (leaf(1.0) * 2).requires_grad = False


def test_grad_is_checked_on_assignment() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="assigned grad has data of a different size"):
        x.grad = torch.ones(3)
    with pytest.raises(RuntimeError, match="assigned grad has data of a different type"):
        x.grad = torch.ones(2, dtype=torch.float64)
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None"):
        x.grad = 1
    x.grad = torch.ones(2)
    del x.grad
    assert x.grad is None


@needs_triton
def test_grad_of_another_device_is_refused_with_the_remedy() -> None:
    with torch.cuda.simulate():
        x = torch.ones(2, device="cuda", requires_grad=True)
        with pytest.raises(RuntimeError, match=r"different device: cpu, (?s:.*)move the gradient with .to\('cuda:0'\)"):
            x.grad = torch.ones(2)
        x.grad = torch.ones(2).to("cuda:0")


def test_error_in_a_gradient_names_the_forward_line() -> None:
    class Broken(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise KeyError("broken")

    y = Broken.apply(leaf(1.0))
    with pytest.raises(KeyError) as caught:
        y.sum().backward()
    assert any("BrokenBackward" in note and "test_autograd.py" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("size", [(), (3,), (1000,)])
@pytest.mark.parametrize("uses", [1, 2, 31, 32, 33, 70])
def test_a_leaf_that_is_used_many_times(size: tuple[int, ...], uses: int) -> None:
    """Small contributions are summed in groups, large ones in place, in the order in which they come."""
    rng = np.random.default_rng(uses)
    factors = rng.standard_normal((uses, *size)).astype(np.float32)
    x = torch.ones(*size, requires_grad=True)
    y = torch.ones(*size, requires_grad=True)
    out = sum(
        (x * torch.from_numpy(np.asarray(f)) for f in factors[1:]), start=x * torch.from_numpy(np.asarray(factors[0]))
    )
    (out * y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), factors.astype(np.float64).sum(0), rtol=1e-4, atol=1e-4)
    kept = x.grad.clone()
    y.grad.zero_()
    assert x.grad.tolist() == kept.tolist()


def test_an_overflow_in_a_leaf_is_silent() -> None:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for size in (3, 1000):
            x = torch.ones(size, requires_grad=True)
            big = torch.full((size,), 3e38)
            (x * big + x * big + x * big).backward(torch.ones(size))
            assert x.grad[0].item() == float("inf")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_triton)])
def test_leaves_take_over_gradients_that_nobody_else_holds(device: str) -> None:
    with torch.cuda.simulate():
        x, y = (torch.ones(3, device=device, requires_grad=True) for _ in range(2))
        held: list[torch.Tensor] = []
        product = x * y
        product.register_hook(lambda gradient: held.append(gradient))
        (product * 2).sum().backward()
        assert x.grad.data_ptr() != y.grad.data_ptr()
        x.grad.fill_(9)
        assert (y.grad.tolist(), held[0].tolist()) == ([2] * 3, [2] * 3)

        # one gradient for two leaves, one that a hook holds, one that is a view, one that was given, one expanded
        a, b, c, d, e, f = (torch.ones(3, device=device, requires_grad=True) for _ in range(6))
        ((a + b) * 3).sum().backward()
        c.register_hook(lambda gradient: held.append(gradient))
        (c * 3).sum().backward()
        (torch.cat((d, torch.ones(2, device=device))) * 3).sum().backward()
        given = torch.full((3,), 3.0, device=device)
        (e + 0).backward(given)
        f.sum().backward()
        leaves = (a, b, c, d, e, f)
        for leaf in leaves:
            leaf.grad.mul_(2)
        assert [leaf.grad.tolist() for leaf in leaves] == [[6.0] * 3] * 5 + [[2.0] * 3]
        assert held[1].tolist() == given.tolist() == [3.0] * 3
        assert len({leaf.grad.data_ptr() for leaf in leaves}) == 6


@pytest.mark.parametrize("make", [lambda x: x.sub(x, alpha=4), lambda x: x.sum(), lambda x: x + 1, lambda x: x[:1]])
def test_a_graph_without_saved_tensors_runs_twice(make: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = make(x).sum()
    y.backward()
    first = x.grad.clone()
    y.backward()
    assert x.grad.tolist() == (2 * first).tolist()

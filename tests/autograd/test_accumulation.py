"""`.grad` is one tensor from pass to pass: whoever holds it, or the buffer that it views, sees the sums. And hooks."""

from __future__ import annotations

import pytest

import tritensor as torch


def test_a_gradient_keeps_its_identity(device):
    x = torch.ones(2, device=device, requires_grad=True)
    x.sum().backward()
    held = x.grad
    (x * 2).sum().backward()
    assert x.grad is held and held.tolist() == [3.0, 3.0] and held._version == 1


def test_a_view_of_a_flat_buffer_gets_the_sum(device):
    flat = torch.zeros(4, device=device)
    x = torch.ones(2, device=device, requires_grad=True)
    x.grad = flat[1:3]
    x.sum().backward()
    (x * 2).sum().backward()
    assert flat.tolist() == [0.0, 3.0, 3.0, 0.0]


def test_the_memory_is_that_of_numpy():
    x = torch.ones(2, requires_grad=True)
    x.sum().backward()
    array = x.grad.numpy()
    (x * 2).sum().backward()
    assert array.tolist() == [3.0, 3.0]


def test_inputs_of_backward_keep_it_too():
    x = torch.ones(2, requires_grad=True)
    x.sum().backward(inputs=[x])
    held = x.grad
    (x * 2).sum().backward(inputs=x)
    assert x.grad is held and held.tolist() == [3.0, 3.0]
    assert not held.requires_grad and torch.is_grad_enabled()


def test_a_recorded_sum_is_a_new_tensor():
    x = torch.ones(2, requires_grad=True)
    x.sum().backward()
    held = x.grad
    (x * x).sum().backward(create_graph=True)
    assert held.tolist() == [1.0, 1.0] and x.grad.tolist() == [3.0, 3.0] and x.grad.requires_grad


def test_retained_gradients_are_new_tensors():
    x = torch.ones(2, requires_grad=True)
    h = x * 2
    h.retain_grad()
    total = h.sum()
    total.backward(retain_graph=True)
    held = h.grad
    total.backward()
    assert held.tolist() == [1.0, 1.0] and h.grad.tolist() == [2.0, 2.0]


def test_a_graph_that_reads_a_gradient_notices_the_change():
    x = torch.ones(2, requires_grad=True)
    x.sum().backward()
    y = (x.grad * x).sum()
    (x * 2).sum().backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_gradient_whose_elements_share_memory_is_refused():
    x = torch.ones(2, requires_grad=True)
    x.grad = torch.ones(1).expand(2)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


HOOKS = {
    "size": (lambda g: g[:1], RuntimeError, r"hook '<lambda>' has changed the size of value"),
    "dtype": (
        lambda g: g.double(),
        RuntimeError,
        r"has changed the type of value \(was torch.FloatTensor got torch.Do",
    ),
    "number": (lambda g: 3, TypeError, "expected Variable, but hook returned 'int'"),
}


@pytest.mark.parametrize("leaf", [True, False], ids=["leaf", "node"])
@pytest.mark.parametrize(("hook", "kind", "words"), HOOKS.values(), ids=HOOKS)
def test_what_a_hook_may_not_return(hook, kind, words, leaf):
    x = torch.ones(2, requires_grad=True)
    y = x if leaf else x * 2
    y.register_hook(hook)
    with pytest.raises(kind, match=words):
        y.sum().backward()
    assert x.grad is None


def test_a_hook_of_one_of_several_results_may_not_change_its_size():
    x = torch.ones(2, 2, requires_grad=True)
    values = x.max(0)[0]
    values.register_hook(lambda g: g[:1])
    with pytest.raises(RuntimeError, match="has changed the size of value"):
        values.sum().backward()


def test_a_view_that_a_function_returns_is_taken_over_unless_its_memory_is_shared():
    """Kernels of libraries return `grad.view(shape)`; a copy of it took 0.4 of the time of such a kernel."""
    kept, kinds, where = [], [], []

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, kind):
            ctx.kind = kind
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            made = grad if ctx.kind == "given" else (grad * 2).view(-1)
            where.append(made.data_ptr())
            if ctx.kind == "kept":
                kept.append(made)
            return made.view(grad.shape), None

    with torch.cuda.simulate(1):
        for kind in ("own", "kept", "given"):
            x = torch.ones(2, 3, device="cuda", requires_grad=True)
            grad = torch.ones(2, 3, device="cuda")
            Doubled.apply(x, kind).backward(grad)
            kinds.append(x.grad.data_ptr() == where.pop())
            for each in (*kept, grad):
                each.zero_()
            assert x.grad.tolist() == [[1.0 if kind == "given" else 2.0] * 3] * 2
    assert kinds == [True, False, False]

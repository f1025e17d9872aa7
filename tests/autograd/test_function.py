"""Functions with a gradient of one's own: contexts, several outputs, marks, and what is refused."""

from __future__ import annotations

import pytest

import tritensor as torch
from tritensor.autograd import Function

from .leaves import leaf


class Scale(Function):
    """Two outputs, a number among the arguments, a saved tensor."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        ctx.save_for_backward(x)
        return x * factor, x + 1

    @staticmethod
    def backward(ctx, first, second):
        (x,) = ctx.saved_tensors
        return first * ctx.factor + second + x * 0, None


def test_function_with_several_outputs() -> None:
    x = leaf(1.0, 2.0)
    a, b = Scale.apply(x, 3.0)
    assert a.grad_fn is b.grad_fn and (a.output_nr, b.output_nr) == (0, 1)
    (a + 10 * b).sum().backward()
    assert x.grad.tolist() == [13.0, 13.0]
    x.grad = None
    Scale.apply(x, 3.0)[1].sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
    assert torch.autograd.gradcheck(lambda t: Scale.apply(t, 2.0), leaf(0.5, -0.5))


def test_function_checks_what_backward_returns() -> None:
    class Wrong(Function):
        result: object = None

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return Wrong.result

    x = leaf(1.0, 2.0)
    Wrong.result = torch.ones(3, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="returned an invalid gradient at index 0"):
        Wrong.apply(x).sum().backward()
    Wrong.result = (torch.ones(2), torch.ones(2))
    with pytest.raises(RuntimeError, match="returned an incorrect number of gradients"):
        Wrong.apply(x).sum().backward()
    Wrong.result = "text"
    with pytest.raises(TypeError, match="expected Variable or None"):
        Wrong.apply(x).sum().backward()
    Wrong.result = None
    Wrong.apply(x).sum().backward()
    assert x.grad is None


def test_function_with_setup_context_and_marks() -> None:
    class Split(Function):
        @staticmethod
        def forward(x):
            return x * 2, (x > 0)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(output[1])
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(output[0])

        @staticmethod
        def backward(ctx, grad, none):
            assert none is None
            return grad * 2 + ctx.saved_tensors[0] * 0

    x = leaf(1.0)
    doubled, positive = Split.apply(x)
    assert not positive.requires_grad
    doubled.sum().backward()
    assert x.grad.item() == 2.0
    with pytest.raises(RuntimeError, match="second time"):
        doubled.sum().backward()


def test_function_returning_its_input() -> None:
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 5

    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x and x.is_leaf
    y.sum().backward()
    assert x.grad.item() == 5.0
    with torch.no_grad():
        assert Same.apply(x) is x


def test_function_without_its_methods() -> None:
    class Empty(Function):
        pass

    class Forward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    with pytest.raises(NotImplementedError, match="You must implement the forward function"):
        Empty.apply(leaf(1.0))
    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp method"):
        Forward.apply(leaf(1.0)).sum().backward()


def test_gradcheck_finds_a_wrong_gradient() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return grad

    with pytest.raises(RuntimeError, match="Jacobian mismatch for output 0 with respect to input 0"):
        torch.autograd.gradcheck(Wrong.apply, leaf(2.0))
    assert not torch.autograd.gradcheck(Wrong.apply, leaf(2.0), raise_exception=False)
    with pytest.raises(ValueError, match="gradcheck expects at least one input"):
        torch.autograd.gradcheck(lambda x: x, torch.ones(1))
    assert torch.autograd.gradgradcheck(lambda x: x**3, leaf(1.0, 2.0))

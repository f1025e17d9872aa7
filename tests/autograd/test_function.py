"""Functions with a gradient of one's own: contexts, several outputs, marks, and what is refused."""

from __future__ import annotations

from typing import Any

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


def test_backward_gets_none_for_each_output_that_is_no_tensor() -> None:
    for materialize in (True, False):
        seen: list[Any] = []

        class Several(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, seen=seen, materialize=materialize):
                ctx.set_materialize_grads(materialize)
                kept = x.exp()
                ctx.save_for_backward(kept, None)
                return 3, kept, None, x + 1, x.long(), "a"

            @staticmethod
            def backward(ctx, *gradients, seen=seen):
                seen.append([None if each is None else each.tolist() for each in gradients])
                kept, nothing = ctx.saved_tensors
                assert nothing is None and kept.requires_grad
                return gradients[1] * kept

        x = torch.zeros(2, requires_grad=True)
        made = Several.apply(x)
        assert [each if not isinstance(each, torch.Tensor) else each.requires_grad for each in made] == [
            *(3, True, None, True, False, "a")
        ]
        assert made[1].output_nr == 1 and made[3].output_nr == 3
        (first,) = torch.autograd.grad(made[1].sum(), x, create_graph=True)
        zeros = [0, 0] if materialize else None
        assert seen == [[None, [1, 1], None, zeros, zeros, None]]
        assert torch.autograd.grad(first.sum(), x)[0].tolist() == [1, 1]


def test_functions_as_torch_takes_them() -> None:
    class Named(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor=2):
            ctx.factor = factor
            return x * factor

        @staticmethod
        def vjp(ctx, gradient):
            return (gradient * ctx.factor).double()

    x = torch.ones(2, requires_grad=True)
    Named.apply(x, factor=5).sum().backward()
    assert x.grad.tolist() == [5, 5] and x.grad.dtype is torch.float32

    class Wrong(Named):
        @staticmethod
        def vjp(ctx, gradient):
            return gradient, gradient

    with pytest.raises(RuntimeError, match="returned a gradient different than None at position 2, but the corresp"):
        Wrong.apply(x, 3).sum().backward()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda ctx: ctx.save_for_backward(None, 3),
            TypeError,
            "can only save variables, but argument 1 is of type int",
        ),
        (lambda ctx: ctx.mark_non_differentiable(3), RuntimeError, "only accepts variable arguments, but got int"),
        (lambda ctx: ctx.set_materialize_grads(0), TypeError, "received an invalid combination of arguments - got"),
    ],
)
def test_a_context_refuses(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(torch.autograd.function.FunctionCtx())


def test_a_gradient_that_is_once_differentiable() -> None:
    from tritensor.autograd.function import once_differentiable

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x, "no tensor"

        @staticmethod
        @once_differentiable
        def backward(ctx, gradient, nothing):
            (x,) = ctx.saved_tensors
            return 2 * x * gradient

    x = torch.tensor([3.0], requires_grad=True)
    (first,) = torch.autograd.grad(Square.apply(x)[0].sum(), x, create_graph=True)
    assert first.item() == 6 and not first.requires_grad
    (first,) = torch.autograd.grad((Square.apply(x)[0] ** 2).sum(), x, create_graph=True)
    assert first.item() == 108 and first.requires_grad
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked with @once"):
        first.sum().backward()

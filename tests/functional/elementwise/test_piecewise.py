"""Activations of lines and gates: bounds, slopes of channels, drawn slopes, halves, in place, and what they refuse."""

from __future__ import annotations

import pytest

import tritensor as torch

from .values import F, inf, nan, of

UNREFUSED = [2.0, -0.5, -3.0]


def test_the_bounds_of_shrinks_and_thresholds_themselves_are_0_and_have_no_gradient(place) -> None:
    for function in (F.hardshrink, F.softshrink):
        x = of([-0.5, 0.5, -0.75, nan], place).requires_grad_()
        out = function(x)
        out.backward(of([1.0, nan, 3.0, 4.0], place))
        assert out[:2].tolist() == [0, 0] and x.grad.tolist() == [0, 0, 3, 4]
    x = of([2.0, 2.5, nan], place).requires_grad_()
    out = F.threshold(x, 2, 7)
    out.backward(of([nan, 2.0, 3.0], place))
    assert out.tolist() == pytest.approx([7, 2.5, nan], nan_ok=True) and x.grad.tolist() == [0, 2, 3]
    assert str(1 / F.softshrink(of([-0.25, 0.25], place))) == str(of([-inf, inf], place))  # zeros keep their sign


def test_a_bound_has_the_precision_of_halves_in_hardshrink_alone(place) -> None:
    x = of([0.3], place, torch.float16)  # 0.30005
    assert F.hardshrink(x, 0.3).item() == 0
    assert F.threshold(x, 0.3, 9).item() == F.softshrink(x, 0.0).item() == x.item()


def test_hard_slopes_at_the_bounds(place) -> None:
    x = of([-3.0, 3.0, 0.0, nan], place).requires_grad_()
    F.hardsigmoid(x).sum().backward()
    assert x.grad.tolist() == pytest.approx([0, 0, 1 / 6, 0])
    x.grad = None
    F.hardswish(x).sum().backward()
    assert x.grad.tolist() == pytest.approx([0, 1, 0.5, 1])


def test_integers_have_thresholds(place) -> None:
    assert F.threshold(of([-2, 0, 3], place), 0.5, -2.7).tolist() == [-2, -2, 3]
    assert F.threshold(of([0, 7, 255], place, torch.uint8), -1, 3).tolist() == [3, 3, 3]  # -1 wraps to 255


def test_slopes_of_channels(place) -> None:
    x = of([[[-1.0, 1.0], [-2.0, 2.0]], [[-3.0, 3.0], [-4.0, 4.0]]], place).requires_grad_()
    weight = of([0.5, 0.25], place).requires_grad_()
    out = F.prelu(x, weight)
    assert out.tolist() == [[[-0.5, 1.0], [-0.5, 2.0]], [[-1.5, 3.0], [-1.0, 4.0]]]
    out.sum().backward()
    assert weight.grad.tolist() == [-4, -6] and x.grad.tolist() == [[[0.5, 1], [0.25, 1]]] * 2
    assert out.grad_fn.name() == "PreluKernelBackward0"
    assert torch.prelu(of(-2.0, place), of([0.5], place)).item() == of(-2.0, place).prelu(of(0.5, place)).item() == -1
    assert F.prelu(of([], place).reshape(0, 2), weight).shape == (0, 2)
    assert F.prelu(of([-2.0, 2.0], place), of([0.5], place)).tolist() == [-1, 2]


def test_slopes_and_their_gradients_have_both_derivatives() -> None:
    x = torch.tensor([[-1.5, 0.5], [2.5, -0.7]], dtype=torch.float64, requires_grad=True)
    weight = torch.tensor([0.5, -0.25], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(F.prelu, (x, weight)) and torch.autograd.gradgradcheck(F.prelu, (x, weight))
    assert torch.autograd.gradcheck(F.glu, x) and torch.autograd.gradgradcheck(F.glu, x)


@pytest.mark.parametrize("inplace", [False, True])
def test_drawn_slopes_are_those_of_the_gradient(place, inplace) -> None:
    torch.manual_seed(0)
    x = torch.full((1000,), -2.0, device=place).requires_grad_()
    out = F.rrelu(x * 1, 0.25, 0.75, training=True, inplace=inplace)
    out.sum().backward()
    slopes = out.detach() / -2
    assert torch.equal(x.grad, slopes) and out.grad_fn.name() == "RreluWithNoiseBackward0"
    assert 0.25 <= slopes.min() < 0.27 and 0.73 < slopes.max() < 0.75 and abs(slopes.mean() - 0.5) < 0.02
    assert torch.equal(F.rrelu(out.abs(), training=True), out.abs())
    assert torch.allclose(F.rrelu(x, 0.25, 0.75), x / 2)


def test_slopes_are_drawn_from_the_generator() -> None:
    x = -torch.ones(5)
    drawn = [torch.rrelu(x, training=True, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert torch.equal(drawn[0], drawn[1]) and not torch.equal(drawn[0], drawn[2])


def test_the_gate_is_the_second_half(place) -> None:
    x = of([[1.0, 2.0, 0.0, 0.0], [3.0, 4.0, inf, -inf]], place)
    assert F.glu(x).tolist() == [[0.5, 1], [3, 0]]
    assert F.glu(x, 0)[0].tolist() == pytest.approx([0.95257413, 1.9640275, 0, 0])
    assert F.glu(x.requires_grad_()).grad_fn.name() == "GluBackward0"


def test_functions_that_end_with_a_line_change_their_input(place) -> None:
    for function, args in (
        (F.relu_, ()),
        (torch.celu_, (1.5,)),
        (torch.selu_, ()),
        (torch.rrelu_, (0.25, 0.25, True)),
        (F.threshold_, (0.5, 2)),
        (F.elu_, (1.5,)),
        (F.leaky_relu_, (0.2,)),
        (F.hardtanh_, (-0.5, 0.5)),
    ):
        x = of(UNREFUSED, place)
        expected = getattr(F, function.__name__[:-1])(x, *args)
        assert function(x, *args) is x and torch.equal(x, expected)
        with pytest.raises(torch.errors.AutogradError, match="a leaf Variable that requires grad"):
            function(x.requires_grad_(), *args)
    assert not hasattr(torch, "elu_")


def test_functions_in_place_show_what_they_take() -> None:
    import inspect

    assert str(inspect.signature(F.celu_)) == "(input: 'Tensor', alpha: 'float' = 1.0) -> 'Tensor'"
    assert str(inspect.signature(torch.celu)) == "(input: 'Tensor', alpha: 'float' = 1.0) -> 'Tensor'"
    assert "inplace" in inspect.signature(F.celu).parameters
    for function in (F.celu_, torch.celu):
        with pytest.raises(TypeError):
            function(torch.ones(2), inplace=False)
        with pytest.raises(TypeError):
            function(torch.ones(2), 1.0, False)


def test_a_sample_of_the_gumbel_softmax(place) -> None:
    torch.manual_seed(0)
    logits = of([[0.0, 1.0, 2.0]] * 2000, place).requires_grad_()
    soft, hard = F.gumbel_softmax(logits, 0.5), F.gumbel_softmax(logits, hard=True)
    assert torch.allclose(soft.sum(-1), of(1.0, place)) and hard.sum(0).sum().item() == 2000
    assert torch.allclose(hard.detach().mean(0), logits[0].softmax(0), atol=0.04)
    hard[:, 2].sum().backward()
    assert logits.grad.any() and abs(logits.grad.sum().item()) < 1e-2  # softmax's, whose rows sum to 0
    assert F.gumbel_softmax(logits, dim=0, hard=True).sum(0).tolist() == [1, 1, 1]


REFUSED = {
    "F.celu(x, 0)": (ZeroDivisionError, "ZeroDivisionError: alpha cannot be 0 for CELU"),
    "F.rrelu(x, 0.5, 0.25)": (RuntimeError, "Lower bound should be less than or equal to the upper bound"),
    "F.rrelu(x, 0.5, inf)": (RuntimeError, "rrelu: upper bound must be finite, got inf"),
    "F.rrelu(x, nan)": (RuntimeError, "rrelu: lower bound must be finite, got nan"),
    "F.rrelu(i, training=True)": (NotImplementedError, '"leaky_relu" not implemented for'),
    "F.softshrink(x, -1)": (RuntimeError, r"lambda must be in range \[0, 3.40282e\+38\] for input dtype Float, but"),
    "F.softshrink(x.half(), 7e4)": (RuntimeError, r"lambda must be in range \[0, 65504\] for input dtype Half, but"),
    "F.softshrink(i)": (NotImplementedError, '"softshrink" not implemented for'),
    "F.hardshrink(x.half(), 1e6)": (RuntimeError, "value cannot be converted to type c10::Half without overflow"),
    "F.threshold(x > 0, 0, 1)": (NotImplementedError, '"threshold" not implemented for'),
    "F.threshold(x.half(), 0, 1e6)": (RuntimeError, "value cannot be converted to type c10::Half without overflow"),
    "F.threshold(x, 'a', 1)": (TypeError, "threshold"),
    "F.glu(x)": (RuntimeError, "Halving dimension must be even, but dimension 0 is size 3"),
    "F.glu(x[0])": (RuntimeError, "glu does not support scalars because halving size must be even"),
    "F.glu(x, 1)": (IndexError, "Dimension out of range"),
    "F.glu([1.0])": (TypeError, "glu"),
    "F.prelu(x[None], x[:2])": (
        RuntimeError,
        "Mismatch of parameter numbers and input channel size. Found parameter numbers = 2 and channel size = 3.",
    ),
    "F.prelu(x, x)": (RuntimeError, "Mismatch of parameter numbers and input channel size"),
    "F.prelu(x[0], x)": (RuntimeError, "Not allow zero-dim input tensor."),
    "F.prelu(x, x[None])": (RuntimeError, "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = 2"),
    "F.prelu(x, x.double())": (RuntimeError, "prelu: Type promoting not supported. Got Float and Double"),
    "F.prelu(x, 0.5)": (TypeError, "prelu"),
    "F.prelu(i, i[:1])": (NotImplementedError, '"prelu_kernel" not implemented for'),
    "torch.nn.Softmax2d()(x)": (ValueError, "Softmax2d: expected input to be 3D or 4D, got 1D instead"),
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_refused(place, call) -> None:
    x, (kind, words) = of(UNREFUSED, place), REFUSED[call]
    with pytest.raises(kind, match=words):
        eval(call, {"F": F, "torch": torch, "inf": inf, "nan": nan, "x": x, "i": x.long()})
    assert x.tolist() == UNREFUSED


def test_softmax_over_the_channels_of_pictures() -> None:
    x = torch.tensor([[[0.0, 1.0]], [[0.0, 3.0]]])
    expected = [[[0.5, 0.11920292]], [[0.5, 0.880797]]]
    for pictures in (x, x[None]):
        assert torch.allclose(torch.nn.Softmax2d()(pictures), torch.tensor(expected))


def test_a_layers_slopes_are_reset() -> None:
    layer = torch.nn.PReLU(3, init=0.5)
    assert repr(layer) == "PReLU(num_parameters=3)" and list(layer.state_dict()) == ["weight"]
    assert layer.weight.tolist() == [0.5] * 3
    with torch.no_grad():
        layer.weight.zero_()
    layer.reset_parameters()
    assert layer.weight.tolist() == [0.5] * 3

"""The nonlinearities of neural networks, with PyTorch's parameters; most accept `inplace=True`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..arguments import check_tensor
from ..autograd.gradients import called
from ..errors import DtypeError, ShapeError, explain
from ..generators import generator_of
from ..inplace import in_place
from ..kernels.elementwise import activations
from ..kernels.elementwise import maximum as bounds
from ..kernels.random.philox import dropout as dropout_operator
from ..outputs import takes_out
from ..public import public
from ..scalars import converted
from ..tensor import Tensor

_quick_relu: Any = activations.relu.method
_quick_silu: Any = activations.silu.method
_GELU: dict[str, Any] = {"none": activations.gelu.method, "tanh": activations.gelu_tanh.method}


def _apply(operator: Callable[..., Tensor], input: Tensor, inplace: bool, **metadata: Any) -> Tensor:
    return in_place(input, operator, **metadata) if inplace else operator(input, **metadata)


@public(guard=False)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """input where it is positive, else 0; NaN stays NaN.

    >>> import tritensor as torch
    >>> torch.nn.functional.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    if inplace:
        check_tensor("relu_", "input", 1, input)
        return input.relu_()
    return _quick_relu(input)  # type: ignore[no-any-return]


@public(package=False)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """input where it is positive, else negative_slope * input."""
    return _apply(activations.leaky_relu, input, inplace, negative_slope=negative_slope)


@public(package=False)
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """input where it is positive, else alpha * (exp(input) - 1)."""
    return _apply(activations.elu, input, inplace, alpha=alpha)


@public(package=False, out=takes_out())
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """input times the standard normal CDF of input; `approximate="tanh"` for the cheaper formula.

    >>> import tritensor as torch
    >>> torch.nn.functional.gelu(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.1587,  0.0000,  0.8413])

    Raises:
        ShapeError: another `approximate`.
    """
    operator = _GELU.get(approximate)
    if operator is None:
        raise ShapeError(f"approximate argument must be either none or tanh. It is {approximate!r}")
    return operator(input)


@public(package=False)
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """input * sigmoid(input)."""
    return _apply(_quick_silu, input, inplace)


@public(package=False, out=takes_out())
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * input)) / beta, and input itself where beta * input is above threshold."""
    return activations.softplus(input, beta=beta, threshold=threshold)


@public(package=False)
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """input, clamped to min_val and max_val, which are cut to integers where input has them.

    >>> import tritensor as torch
    >>> torch.nn.functional.hardtanh(torch.tensor([-7, 0, 7]), -1.0, 2.5)
    tensor([-1,  0,  2])

    Raises:
        DtypeError: booleans, a bound that the dtype does not hold, or negative ones of an unsigned dtype.
        ValueError: min_val is above max_val.
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    kind = input.dtype
    if kind is dtypes.bool_:
        raise DtypeError(explain("Bool inputs not supported for hardtanh", remedy="convert the tensor with .to(dtype)"))
    if kind.category == dtypes.INTEGER:
        if not kind.is_signed and min(min_val, max_val) < 0:
            raise DtypeError("cannot do hardtanh on an unsigned type with negative limits")
        min_val, max_val = converted(min_val, kind), converted(max_val, kind)
    made = in_place(input, bounds.hardtanh, min_val, max_val) if inplace else bounds.hardtanh(input, min_val, max_val)
    return called("HardtanhBackward0", made)


@public(package=False)
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """input, clamped to 0 and 6."""
    return hardtanh(input, 0.0, 6.0, inplace)


@public(package=False)
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """input * tanh(softplus(input))."""
    return called("MishBackward0", _apply(lambda x: x * softplus(x).tanh(), input, inplace))


@public(package=False, out=takes_out())
def logsigmoid(input: Tensor) -> Tensor:
    """log(sigmoid(input)), without overflow."""
    return called("LogSigmoidBackward0", -softplus(-input, threshold=40.0))


@public(package=False)
def softsign(input: Tensor) -> Tensor:
    """input / (1 + |input|)."""
    return input / (1 + input.abs())


@public(package=False)
def tanhshrink(input: Tensor) -> Tensor:
    """input - tanh(input)."""
    return input - input.tanh()


@public(package=False)
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """While training, input with each element set to 0 with probability `p` and the others divided by 1 - p.

    The default generator of the input's device selects the elements. Two integers are saved for the gradient, which
    draws the same numbers again.

    >>> import tritensor as torch
    >>> torch.nn.functional.dropout(torch.ones(2, 3), p=0.5, training=False)
    tensor([[1., 1., 1.],
            [1., 1., 1.]])

    Raises:
        ValueError: a probability outside 0 to 1. DtypeError: integers.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    check_tensor("dropout", "input", 1, input)
    if not training or p == 0:
        return input
    seed, offset = generator_of(input.device).draw()
    return _apply(dropout_operator, input, inplace, p=p, seed=seed, offset=offset)

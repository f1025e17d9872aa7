"""Elementwise nonlinearities and softmax as modules."""

from __future__ import annotations

from .. import functional as F
from ..tensor import Tensor
from .module import Module

__all__ = [
    "ELU",
    "GELU",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softplus",
    "Softsign",
    "Tanh",
    "Tanhshrink",
]


class _MayBeInPlace(Module):
    """A nonlinearity that can overwrite its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Whether it works in place."""
        return "inplace=True" if self.inplace else ""

    def _after(self, options: str) -> str:
        return f"{options}, inplace=True" if self.inplace else options


class ReLU(_MayBeInPlace):
    """`max(x, 0)`."""

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.relu(input, self.inplace)


class SiLU(_MayBeInPlace):
    """`x * sigmoid(x)`."""

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.silu(input, self.inplace)


class Mish(_MayBeInPlace):
    """`x * tanh(softplus(x))`."""

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.mish(input, self.inplace)


class LeakyReLU(_MayBeInPlace):
    """`x` where positive, `negative_slope * x` elsewhere."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """The slope and whether it works in place."""
        return self._after(f"negative_slope={self.negative_slope}")


class ELU(_MayBeInPlace):
    """`x` where positive, `alpha * (exp(x) - 1)` elsewhere."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        """The scale and whether it works in place."""
        return self._after(f"alpha={self.alpha}")


class Hardtanh(_MayBeInPlace):
    """`x`, held between `min_val` and `max_val`.

    Raises:
        AssertionError: `max_val` is not above `min_val`.
    """

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__(inplace)
        if not max_val > min_val:
            raise AssertionError(f"max_val must be larger than min_val, got {max_val} and {min_val}")
        self.min_val = min_val
        self.max_val = max_val

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """The bounds and whether it works in place."""
        return self._after(f"min_val={self.min_val}, max_val={self.max_val}")


class ReLU6(Hardtanh):
    """`x`, held between 0 and 6."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """Whether it works in place."""
        return "inplace=True" if self.inplace else ""


class GELU(Module):
    """`x` times the normal distribution's share below it; `approximate="tanh"` for the cheaper formula."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """Which formula."""
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """`log(1 + exp(beta * x)) / beta`, and `x` itself where `beta * x` is above `threshold`."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """The two parameters."""
        return f"beta={self.beta}, threshold={self.threshold}"


class Sigmoid(Module):
    """`1 / (1 + exp(-x))`."""

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.tanh(input)


class Tanhshrink(Module):
    """`x - tanh(x)`."""

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.tanhshrink(input)


class LogSigmoid(Module):
    """The logarithm of the sigmoid, computed without overflow."""

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.logsigmoid(input)


class Softsign(Module):
    """`x / (1 + |x|)`."""

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.softsign(input)


class _AlongDim(Module):
    """Softmax and its logarithm, along one dimension; without one, PyTorch's old choice and its warning."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        """The dimension."""
        return f"dim={self.dim}"


class Softmax(_AlongDim):
    """exp(x), scaled to add up to 1 along `dim`."""

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.softmax(input, self.dim)


class LogSoftmax(_AlongDim):
    """The logarithm of softmax along `dim`, computed without overflow."""

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.log_softmax(input, self.dim)

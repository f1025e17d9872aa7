"""Elementwise nonlinearities and softmax as modules."""

from __future__ import annotations

from .layer import Layer

__all__ = ["ELU", "GELU", "Hardtanh", "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish", "ReLU", "ReLU6", "SiLU"]
__all__ += ["Sigmoid", "Softmax", "Softplus", "Softsign", "Tanh", "Tanhshrink"]


class ReLU(Layer, function="relu"):
    """`max(x, 0)`."""

    inplace: bool = False


class SiLU(Layer, function="silu"):
    """`x * sigmoid(x)`."""

    inplace: bool = False


class Mish(Layer, function="mish"):
    """`x * tanh(softplus(x))`."""

    inplace: bool = False


class LeakyReLU(Layer, function="leaky_relu"):
    """`x` where positive, `negative_slope * x` elsewhere."""

    negative_slope: float = 0.01
    inplace: bool = False


class ELU(Layer, function="elu"):
    """`x` where positive, `alpha * (exp(x) - 1)` elsewhere."""

    alpha: float = 1.0
    inplace: bool = False


class Hardtanh(Layer, function="hardtanh"):
    """`x`, held between `min_val` and `max_val`.

    Raises:
        AssertionError: `max_val` is not above `min_val`.
    """

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False

    def _prepare(self) -> None:
        if not self.max_val > self.min_val:
            raise AssertionError(f"max_val must be larger than min_val, got {self.max_val} and {self.min_val}")


class ReLU6(Hardtanh):
    """`x`, held between 0 and 6."""

    _shown = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class GELU(Layer, function="gelu"):
    """`x` times the normal distribution's share below it; `approximate="tanh"` for the cheaper formula."""

    approximate: str = "none"


class Softplus(Layer, function="softplus"):
    """`log(1 + exp(beta * x)) / beta`, and `x` itself where `beta * x` is above `threshold`."""

    beta: float = 1.0
    threshold: float = 20.0


class Sigmoid(Layer, function="sigmoid"):
    """`1 / (1 + exp(-x))`."""


class Tanh(Layer, function="tanh"):
    """The hyperbolic tangent."""


class Tanhshrink(Layer, function="tanhshrink"):
    """`x - tanh(x)`."""


class LogSigmoid(Layer, function="logsigmoid"):
    """The logarithm of the sigmoid, computed without overflow."""


class Softsign(Layer, function="softsign"):
    """`x / (1 + |x|)`."""


class Softmax(Layer, function="softmax"):
    """exp(x), scaled to add up to 1 along `dim`; without it, PyTorch's old choice and its warning."""

    dim: int | None = None


class LogSoftmax(Layer, function="log_softmax"):
    """The logarithm of softmax along `dim`, computed without overflow; without it as for `Softmax`."""

    dim: int | None = None

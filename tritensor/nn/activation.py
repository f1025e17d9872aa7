"""Elementwise nonlinearities and softmax as modules."""

from __future__ import annotations

from .layer import Layer, declared

__all__ = ["ELU", "GELU", "Hardtanh", "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish", "ReLU", "ReLU6", "SiLU"]
__all__ += ["Sigmoid", "Softmax", "Softplus", "Softsign", "Tanh", "Tanhshrink"]


@declared("relu")
class ReLU(Layer):
    """`max(x, 0)`."""

    inplace: bool = False


@declared("silu")
class SiLU(Layer):
    """`x * sigmoid(x)`."""

    inplace: bool = False


@declared("mish")
class Mish(Layer):
    """`x * tanh(softplus(x))`."""

    inplace: bool = False


@declared("leaky_relu")
class LeakyReLU(Layer):
    """`x` where positive, `negative_slope * x` elsewhere."""

    negative_slope: float = 0.01
    inplace: bool = False


@declared("elu")
class ELU(Layer):
    """`x` where positive, `alpha * (exp(x) - 1)` elsewhere."""

    alpha: float = 1.0
    inplace: bool = False


@declared("hardtanh")
class Hardtanh(Layer):
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


@declared("gelu")
class GELU(Layer):
    """`x` times the normal distribution's share below it; `approximate="tanh"` for the cheaper formula."""

    approximate: str = "none"


@declared("softplus")
class Softplus(Layer):
    """`log(1 + exp(beta * x)) / beta`, and `x` itself where `beta * x` is above `threshold`."""

    beta: float = 1.0
    threshold: float = 20.0


@declared("sigmoid")
class Sigmoid(Layer):
    """`1 / (1 + exp(-x))`."""


@declared("tanh")
class Tanh(Layer):
    """The hyperbolic tangent."""


@declared("tanhshrink")
class Tanhshrink(Layer):
    """`x - tanh(x)`."""


@declared("logsigmoid")
class LogSigmoid(Layer):
    """The logarithm of the sigmoid, computed without overflow."""


@declared("softsign")
class Softsign(Layer):
    """`x / (1 + |x|)`."""


@declared("softmax")
class Softmax(Layer):
    """exp(x), scaled to add up to 1 along `dim`; without it, PyTorch's old choice and its warning."""

    dim: int | None = None


@declared("log_softmax")
class LogSoftmax(Layer):
    """The logarithm of softmax along `dim`, computed without overflow; without it as for `Softmax`."""

    dim: int | None = None

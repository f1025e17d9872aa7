"""Trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...operators.rules import FLOAT, FLOATING, REAL_FLOAT
from .arithmetic import where
from .family import elementwise

if TYPE_CHECKING:
    from triton.language.extra import libdevice

sin = elementwise(FLOAT, np.sin, "The sine of x.")
sin.gradient(lambda grad, x: grad * x.cos())


@sin.kernel
def _(x):
    return libdevice.sin(x)


cos = elementwise(FLOAT, np.cos, "The cosine of x.")
cos.gradient(lambda grad, x: -grad * x.sin())


@cos.kernel
def _(x):
    return libdevice.cos(x)


tan = elementwise(FLOAT, np.tan, "The tangent of x.", autocast={"cuda": "float32"})
tan.gradient(lambda grad, out: grad * (1 + out * out))


@tan.kernel
def _(x):
    return libdevice.tan(x)


asin = elementwise(
    FLOAT,
    np.arcsin,
    "The arcsine (inverse sine) of x, in [-pi/2, pi/2].",
    name="asin",
    methods=["asin", "arcsin"],
    autocast={"cuda": "float32"},
)
asin.gradient(lambda grad, x: grad * (1 - x * x).rsqrt())
asin.domain = (-1, 1)


@asin.kernel
def _(x):
    return libdevice.asin(x)


acos = elementwise(
    FLOAT,
    np.arccos,
    "The arccosine (inverse cosine) of x, in [0, pi].",
    name="acos",
    methods=["acos", "arccos"],
    autocast={"cuda": "float32"},
)
acos.gradient(lambda grad, x: -grad * (1 - x * x).rsqrt())
acos.domain = (-1, 1)


@acos.kernel
def _(x):
    return libdevice.acos(x)


atan = elementwise(
    FLOAT,
    np.arctan,
    "The arctangent (inverse tangent) of x, in [-pi/2, pi/2].",
    name="atan",
    methods=["atan", "arctan"],
)
atan.gradient(lambda grad, x: grad / (1 + x * x))


@atan.kernel
def _(x):
    return libdevice.atan(x)


atan2 = elementwise(
    REAL_FLOAT,
    np.arctan2,
    "The arctangent of y / x in the quadrant of the point (y, x); the first operand is the height.",
    name="atan2",
    methods=["atan2", "arctan2"],
    autocast={"cuda": "widest"},
)


def _per_square(x: Any, y: Any) -> Any:
    """1 / (x * x + y * y); 0 at the origin, where there is no slope."""
    square = x * x + y * y
    return where(square == 0, 0, square.reciprocal())


atan2.gradients(
    x=lambda grad, x, y: grad * (y * _per_square(x, y)), y=lambda grad, x, y: -grad * (x * _per_square(x, y))
)


@atan2.kernel
def _(x, y):
    return libdevice.atan2(x, y)


hypot = elementwise(REAL_FLOAT, np.hypot, "The hypotenuse of a right triangle: sqrt(x * x + y * y), without overflow.")
hypot.gradients(x=lambda grad, out, x: grad * x / out, y=lambda grad, out, y: grad * y / out)


@hypot.kernel
def _(x, y):
    return libdevice.hypot(x, y)


sinh = elementwise(FLOAT, np.sinh, "The hyperbolic sine of x.", autocast={"cuda": "float32"})
sinh.gradient(lambda grad, x: grad * x.cosh())


@sinh.kernel
def _(x):
    return libdevice.sinh(x)


cosh = elementwise(FLOAT, np.cosh, "The hyperbolic cosine of x.", autocast={"cuda": "float32"})
cosh.gradient(lambda grad, x: grad * x.sinh())


@cosh.kernel
def _(x):
    return libdevice.cosh(x)


tanh = elementwise(FLOAT, np.tanh, "The hyperbolic tangent of x.")


@tanh.kernel
def _(x):
    return libdevice.tanh(x)


@elementwise(FLOATING, methods=())
def tanh_gradient(grad, result):
    """grad times the slope of tanh where its result was `result`."""
    return grad * (1 - result * result)


tanh.gradient(lambda grad, out: grad * (1 - out * out), on_device=tanh_gradient)
tanh_gradient.gradients(
    grad=lambda again, result: again * (1 - result * result),
    result=lambda again, grad, result: again * grad * result * -2,
)


@tanh_gradient.kernel
def _(grad, result):
    return grad * (1.0 - result * result)


asinh = elementwise(FLOAT, np.arcsinh, "The inverse hyperbolic sine of x.", name="asinh", methods=["asinh", "arcsinh"])
asinh.gradient(lambda grad, x: grad * (x * x + 1).rsqrt())


@asinh.kernel
def _(x):
    return libdevice.asinh(x)


def _inverse_root(x: Any) -> Any:
    """1 / sqrt(x * x - 1), for complex numbers on the branch of acosh's derivative."""
    return (x - 1).rsqrt() * (x + 1).rsqrt() if x.dtype.is_complex else (x * x - 1).rsqrt()


acosh = elementwise(
    FLOAT,
    np.arccosh,
    "The inverse hyperbolic cosine of x, which is not negative.",
    name="acosh",
    methods=["acosh", "arccosh"],
)
acosh.gradient(lambda grad, x: grad * _inverse_root(x))
acosh.domain = (1, 100)


@acosh.kernel
def _(x):
    return libdevice.acosh(x)


atanh = elementwise(
    FLOAT, np.arctanh, "The inverse hyperbolic tangent of x.", name="atanh", methods=["atanh", "arctanh"]
)
atanh.gradient(lambda grad, x: grad / (1 - x * x))
atanh.domain = (-1, 1)


@atanh.kernel
def _(x):
    return libdevice.atanh(x)

"""The mathematics library of simulated kernels against NumPy's and Python's."""

from __future__ import annotations

import math

import numpy as np
import pytest

language = pytest.importorskip("triton.language")

from triton.language.extra import libdevice as on_the_device  # noqa: E402

from tritensor.runtime.interpreter import libdevice  # noqa: E402
from tritensor.runtime.interpreter.builder import block  # noqa: E402


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_library_functions_agree_with_numpy(dtype):
    x, y = np.array([0.3, 1.7, -0.6, 2.5], dtype), np.array([1.25, -0.5, 2.0, 0.75], dtype)
    other = {
        **{f"a{name}": f"arc{name}" for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh", "tan2")},
        "pow": "power",
        "nearbyint": "rint",
        "div_rn": "divide",
    }
    names = [name for name, value in vars(libdevice).items() if callable(value) and value.__name__ == "call"]
    compared = 0
    for name in names:
        assert hasattr(on_the_device, name), name
        reference = getattr(np, other.get(name, name), None)
        if isinstance(reference, np.ufunc) and name not in ("remainder", "ldexp"):
            blocks = [library_block(value) for value in (x, y)[: reference.nin]]
            with np.errstate(all="ignore"):
                got = getattr(libdevice, name)(*blocks)
                expected = reference(*(x, y)[: reference.nin])
            np.testing.assert_array_equal(got.handle.data, expected, err_msg=name)
            assert str(got.dtype) in {"fp32", "fp64", "int1", "int32"}
            compared += 1
    assert compared >= 25


def library_block(value):
    return block(value, {4: language.float32, 8: language.float64}[value.itemsize])


def test_library_functions_that_numpy_lacks():
    x = np.array([0.5, -0.5, 2.5, 200.0])
    y = np.array([1.0, 3.0, -3.0, 0.0])

    def values(name, *args):
        with np.errstate(all="ignore"):
            return getattr(libdevice, name)(*map(library_block, args)).handle.data.tolist()

    assert values("round", x) == [1.0, -1.0, 3.0, 200.0]
    assert values("llrint", x) == [0, 0, 2, 200]
    assert values("erf", x) == [math.erf(value) for value in x]
    assert values("erfc", x) == [math.erfc(value) for value in x]
    assert values("lgamma", x) == [math.lgamma(value) for value in x]
    assert values("lgamma", y)[2:] == [math.inf, math.inf]
    assert values("tgamma", x) == [math.gamma(0.5), math.gamma(-0.5), math.gamma(2.5), math.inf]
    assert math.isnan(values("tgamma", y)[2])
    assert values("exp10", x)[2] == pytest.approx(10**2.5)
    assert values("rsqrt", x)[2] == pytest.approx(2.5**-0.5)
    assert values("remainder", x, y)[2] == 2.5 - round(2.5 / -3.0) * -3.0
    assert values("fma", x, x, x)[2] == 2.5 * 2.5 + 2.5
    assert values("signbit", x) == [0, 1, 0, 0]

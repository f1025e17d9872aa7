"""tritensor: tensors with PyTorch's vocabulary, NumPy on the CPU and Triton kernels on the GPU.

    import tritensor as torch

makes ordinary PyTorch model code of the common subset run, without PyTorch.
"""

from __future__ import annotations

import importlib
import math
import warnings
from typing import Any

from . import autograd
from .ground import index as _index
from .ground.imports import after as _after
from .ground.public import PACKAGE as _PACKAGE
from .host import heap as _heap  # noqa: F401 - keeps freed memory
from .operators import function as _function  # noqa: F401 - puts Function into `autograd`
from .operators import gradcheck as _gradcheck  # noqa: F401 - puts itself into `autograd`
from .version import __version__

_index.complete()
_declared, _ = _index.namespace(__name__, _PACKAGE)
e, inf, nan, pi = math.e, math.inf, math.nan, math.pi
newaxis = None

# NumPy's floating-point warnings (overflow, division by zero) would point to lines of our modules and do not help a
# user: PyTorch returns inf and nan silently. The filter applies to our modules only, not to the user's own NumPy code.
warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"tritensor\.")

# Imported on first access, so that importing the package stays light.
_LATER = (
    "accelerator",
    "amp",
    "array_api",
    "backends",
    "compiler",
    "cpu",
    "cuda",
    "distributed",
    "distributions",
    "fft",
    "func",
    "functional",
    "futures",
    "hub",
    "jit",
    "library",
    "linalg",
    "masked",
    "multiprocessing",
    "nn",
    "onnx",
    "optim",
    "overrides",
    "profiler",
    "quasirandom",
    "random",
    "return_types",
    "serialization",
    "settings",
    "signal",
    "sklearn",
    "sparse",
    "special",
    "testing",
    "utils",
    "version",
    "vision",
)
_FROM = {
    "load": "serialization",
    "save": "serialization",
    "set_anomaly_enabled": "autograd.anomaly_mode",
    "compile": "compiler",
    "is_anomaly_check_nan_enabled": "autograd.anomaly_mode",
    "is_anomaly_enabled": "autograd.anomaly_mode",
    "ops": "library.definitions",
    "plot": "tensors.drawing",
    "vmap": "func",
}

__all__ = ["__version__", "accelerator", "amp", "array_api", "autograd", "backends", "compile", "compiler", "cpu"]
__all__ += ["cuda", "distributed", "distributions", "e", "fft", "func", "functional", "futures", "hub", "inf", "jit"]
__all__ += ["library", "linalg", "load", "masked", "multiprocessing", "nan", "newaxis", "nn", "onnx", "ops", "optim"]
__all__ += ["overrides", "pi", "plot", "profiler", "quasirandom", "random", "return_types", "save", "serialization"]
__all__ += ["settings", "signal", "sparse", "special", "testing", "utils", "version", "vision", "vmap"]
__all__ = sorted([*__all__, *_PACKAGE.listed()])


def __getattr__(name: str) -> Any:
    """Import a module of `_LATER`, or the one that a name comes from, on first access."""
    if name in _LATER:
        return importlib.import_module(f".{name}", __name__)
    if name in _FROM:
        return getattr(importlib.import_module(f".{_FROM[name]}", __name__), name)
    return _declared(name)


def __dir__() -> list[str]:
    return __all__


# Plain `@triton.jit` kernels take our tensors from the moment that both packages are imported.
_after("triton", lambda: importlib.import_module(".cuda.plain_kernels", __name__).open_runtime())

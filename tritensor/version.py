"""The version of tritensor, and of the CUDA that it runs on (`tritensor.version.cuda`, None without cuda-bindings).

`hip` and `xpu` are None, as they are in a PyTorch that was built for CUDA.
"""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.2.0"
hip = xpu = None


def __getattr__(name: str) -> str | None:
    """`cuda`, looked up on each access: "13.0" for cuda-bindings 13.0.x."""
    if name != "cuda":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib.metadata  # here, because it would take a quarter of the time of `import tritensor`

    try:
        return ".".join(importlib.metadata.version("cuda-bindings").split(".")[:2])
    except importlib.metadata.PackageNotFoundError:
        return None

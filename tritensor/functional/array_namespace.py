"""The two methods by which other libraries treat a tensor as an array of the Python array API standard."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import ArgumentError, explain
from ..public import method
from ..tensor import Tensor

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")  # each contains those before it


@method()
def __array_namespace__(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """`tritensor.array_api`, the functions of the Python array API standard.

    >>> import tritensor as torch
    >>> xp = torch.tensor([[1.0, 2.0]]).__array_namespace__()
    >>> xp.sum(xp.ones((2, 3)), axis=(0, 1), keepdims=True)
    tensor([[6.]])

    Raises:
        ValueError: `api_version` is none of 2021.12, 2022.12, 2023.12 and 2024.12.
    """
    if api_version not in (None, *_VERSIONS):
        raise ValueError(
            explain(f"__array_namespace__: no version {api_version!r}", f"there are {', '.join(_VERSIONS)}")
        )
    return importlib.import_module("tritensor.array_api")


@method()
def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """The tensor on a device, itself if it is there, as by `to`; of the array API.

    Raises:
        ArgumentError: `stream` is not None.
    """
    if stream is not None:
        raise ArgumentError(explain("to_device: takes no stream", remedy="use `with tritensor.cuda.stream(stream):`"))
    return self.to(device)  # type: ignore[no-any-return]

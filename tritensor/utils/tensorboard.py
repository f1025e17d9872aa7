"""`SummaryWriter` for TensorBoard: tensorboardX's, which is passed tensors as NumPy arrays."""

from __future__ import annotations

import importlib
from types import TracebackType
from typing import Any

from ..errors import explain
from ..tensors import Tensor

__all__ = ["SummaryWriter"]


def _plain(value: Any) -> Any:
    """Tensors as NumPy arrays, within lists and dictionaries too."""
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        return (value.float() if value.dtype.is_floating_point else value).numpy()
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value


class SummaryWriter:
    """Writes events for TensorBoard, with the arguments and methods of `torch.utils.tensorboard.SummaryWriter`.

    Raises:
        ModuleNotFoundError: tensorboardX is not installed.
    """

    def __init__(self, log_dir: str | None = None, *args: Any, **kwargs: Any) -> None:
        try:
            written = importlib.import_module("tensorboardX")
        except ModuleNotFoundError as error:
            words = explain("No module named 'tensorboardX'", remedy="pip install tensorboardX")
            raise ModuleNotFoundError(words, name=error.name) from None
        self._writer = written.SummaryWriter(log_dir, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.__dict__["_writer"], name)
        if not name.startswith("add_"):
            return found
        return lambda *args, **kwargs: found(*map(_plain, args), **_plain(kwargs))

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

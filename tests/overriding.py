"""Functions get their own code back after a test with `__torch_function__`: others count what a call costs without."""

from __future__ import annotations

from types import FunctionType

from tritensor.ground import index, overriding
from tritensor.tensors import tensor


def remove() -> None:
    """Undo `overriding.install`."""
    index.watching.clear()
    for function, own in overriding.owns.items():
        function.__code__, function.__kwdefaults__ = own.__code__, own.__kwdefaults__
        function.__name__ = own.__name__
        if function.__dict__.get("__wrapped__") is own:
            del function.__wrapped__  # type: ignore[attr-defined]
    first: dict[object, FunctionType] = {}  # of the members that were one object under several names
    for name, value in [*vars(tensor.Tensor).items()]:
        if isinstance(value, FunctionType):
            key = value.__code__, value.__name__, tuple(map(id, value.__closure__ or ()))
            setattr(tensor.Tensor, name, first.setdefault(key, value))
    for table in (overriding.owns, overriding.known, overriding._plain, tensor._kinds):
        table.clear()

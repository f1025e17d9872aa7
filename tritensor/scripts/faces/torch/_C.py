"""torch._C: what libraries ask PyTorch's own code; nothing is traced, scripted or fused by a compiler here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ....ground.overriding import Off, unasked
from ....operators.generators import Generator
from ....tensors import Tensor
from ....types import devices, dtypes

__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "Generator"]

DisableTorchFunctionSubclass, _disabled_torch_function_impl = Off, unasked


class DisableTorchFunction(Off):
    """Calls functions without asking modes or classes of arguments."""

    level = 2


def _log_api_usage_once(event: str) -> None:
    """Nothing: no use is counted."""


def _are_functorch_transforms_active() -> bool:
    return False


def _get_tracing_state() -> None:
    return None


def _is_tracing() -> bool:
    return False


def _get_privateuse1_backend_name() -> str:
    return "privateuseone"


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """The device, the dtype, `non_blocking` and the memory format of a call of `to`."""
    found: dict[str, Any] = {"device": None, "dtype": None, **kwargs}
    flags = []
    for each in args:
        if isinstance(each, Tensor):
            found |= {"device": each.device, "dtype": each.dtype}
        elif isinstance(each, dtypes.dtype):
            found["dtype"] = each
        elif isinstance(each, bool):
            flags.append(each)
        elif each is not None:
            found["device"] = each
    place = found["device"]
    place = place if place is None else devices.device(place)
    return place, found["dtype"], bool(found.get("non_blocking", flags and flags[0])), found.get("memory_format")


class DispatchKeySet(frozenset[str]):
    """The names of PyTorch's dispatch keys, for programs that build such a set to call past a kernel of their own."""

    def __new__(cls, *keys: str) -> DispatchKeySet:
        return super().__new__(cls, keys)


class _Keys:
    def __getattr__(self, name: str) -> str:
        return name


DispatchKey = _Keys()
_nn = SimpleNamespace(_parse_to=_parse_to)


def __getattr__(name: str) -> Any:
    if name.startswith(("_jit_set_", "_jit_override_")):
        return lambda *settings: None  # switches of a compiler that is not there
    raise AttributeError(name)

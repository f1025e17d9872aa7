"""Calling several modules at once, a thread for each device."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from ... import cuda
from ...autograd.mode import recording
from ...autograd.precision import state, turn
from ...errors import DeviceError
from ...tensors import Tensor
from ...types import Device
from .scatter_gather import cuda_device

__all__ = ["parallel_apply"]


def parallel_apply(
    modules: Sequence[Any],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Call each module with its arguments on its device, all at once, each in its own thread.

    A thread works on the stream that is current on its device for the caller, and records gradients, and casts for
    autocast, if the caller does.

    >>> import tritensor as torch
    >>> torch.nn.parallel.parallel_apply([torch.exp, torch.abs], [torch.zeros(2), torch.tensor([-3.0])])
    [tensor([1., 1.]), tensor([3.])]

    Args:
        modules: modules or functions.
        inputs: for each, its one argument, or a list or tuple of its positional arguments.
        kwargs_tup: for each, its keyword arguments.
        devices: for each, the CUDA device to make current; None takes that of the first tensor among the arguments.

    Raises:
        AssertionError: the sequences have different lengths.
        DeviceError: a device is not there, or it is None and there is no tensor among the arguments.
        Exception: of the type that a module raised; the message begins with the replica and its device.
    """
    count = len(modules)
    kwargs_tup = ({},) * count if kwargs_tup is None else kwargs_tup
    devices = (None,) * count if devices is None else devices
    for name, values in (("inputs", inputs), ("kwargs_tup", kwargs_tup), ("devices", devices)):
        if len(values) != count:
            raise AssertionError(f"The number of modules {count} is not equal to the number of {name} {len(values)}")
    calls = [
        _Call(position, module, arguments if isinstance(arguments, (list, tuple)) else (arguments,), kwargs, device)
        for position, (module, arguments, kwargs, device) in enumerate(
            zip(modules, inputs, kwargs_tup, devices, strict=True)
        )
    ]
    if count == 1:
        calls[0].run()
    else:
        # a copy of the context for each: NumPy's error state and the caller's context variables apply in the threads
        threads = [threading.Thread(target=contextvars.copy_context().run, args=(call.run,)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    failed = [call for call in calls if call.error is not None]
    if failed:
        raise _carried(failed) from failed[0].error
    return [call.output for call in calls]


class _Call:
    """One module with its arguments and device, and its result or error."""

    def __init__(self, position: int, module: Any, arguments: Any, kwargs: dict[str, Any], device: Device) -> None:
        self.position, self.module, self.arguments, self.kwargs = position, module, arguments, kwargs
        if device is not None:
            self.device = cuda_device(device)
        else:
            first = _first_tensor((arguments, kwargs))
            if first is None:
                raise DeviceError(
                    f"in replica {position}, no device was provided and no tensor input was found; device cannot "
                    "be resolved",
                    remedy="pass devices=[...]",
                )
            self.device = first.device
        self.stream = cuda.current_stream(self.device) if self.device.type == "cuda" else None
        self.mode = bool(recording.enabled), recording.inference
        self.casts, self.lower = state.types, dict(state.lower)
        self.output: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        """Call the module under the caller's modes on its own device; keep what it raises."""
        before = recording.enabled, recording.inference
        casts, lower = state.types, dict(state.lower)
        recording.enabled, recording.inference = self.mode
        turn(self.casts)
        state.lower.update(self.lower)
        try:
            with ExitStack() as stack:
                if self.stream is not None:
                    stack.enter_context(cuda.device(self.device))
                    stack.enter_context(cuda.stream(self.stream))
                self.output = self.module(*self.arguments, **self.kwargs)
        except BaseException as error:  # every exception is raised again in the caller's thread
            self.error = error
        finally:
            recording.enabled, recording.inference = before
            turn(casts)
            state.lower.update(lower)
            del self  # the error's traceback holds this frame: no cycle of the call and its error

    def where(self) -> str:
        return f"in replica {self.position} on device {self.device}"


def _first_tensor(value: object) -> Tensor | None:
    if isinstance(value, Tensor):
        return value
    entries = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return next((found for entry in entries if (found := _first_tensor(entry)) is not None), None)


class _Message(str):
    """A message that prints as it is where Python shows an exception's repr, as for KeyError."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _carried(failed: list[_Call]) -> BaseException:
    """An exception of the type that the first failed call raised, whose message names the replica and its device."""
    error: Any = failed[0].error
    text = _Message(f"Caught {type(error).__name__} {failed[0].where()}.\n{error}")
    try:
        carried: BaseException = type(error)(text)
    except Exception:  # a type with a constructor of its own
        carried = RuntimeError(text)
    for call in failed[1:]:
        carried.add_note(f"also {call.where()}: {type(call.error).__name__}: {call.error}")
    return carried

"""Dividing gradients by the scale of a loss, with a look for infinities and NaN, and the choice of the next scale.

Everything is computed where the gradients are: the scale is read there, and what was found stays there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ...host.threads import blas_on_one_thread, quietly
from ...memory.array import DeviceArray
from ...operators.inplace import check_writable
from ...runtime.launch import Float64, kernel, launch
from ...tensors import Tensor
from .clipping import Gathered, share

if TYPE_CHECKING:
    import triton.language as tl

_MOST = (1 << 16) - 1  # tensors of one launch: the second dimension of its grid


@kernel
def unscale_kernel(
    table,
    scale_ptr,
    found_ptr,
    KIND: tl.constexpr,
    COMPUTE: tl.constexpr,
    ALIGNED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Divide every element of every tensor by the number at `scale_ptr`; set that at `found_ptr` to 1 if one was not
    finite. The rest is as for `norm_kernel`."""
    place, count, first, step, whole = share(table, KIND, ALIGNED, BLOCK)
    factor = (1.0 / tl.load(scale_ptr).to(tl.float64)).to(tl.float32).to(COMPUTE)
    finite = tl.full((BLOCK,), 1, tl.int32)
    for start in range(first, whole, step):
        block = place + start + tl.arange(0, BLOCK)
        x = tl.load(block).to(COMPUTE)
        finite = finite & (tl.abs(x) < float("inf")).to(tl.int32)
        tl.store(block, (x * factor).to(KIND))
    if tl.program_id(0) == 0:
        index = whole + tl.arange(0, BLOCK)
        x = tl.load(place + index, mask=index < count, other=0).to(COMPUTE)
        finite = finite & (tl.abs(x) < float("inf")).to(tl.int32)
        tl.store(place + index, (x * factor).to(KIND), mask=index < count)
    # several programs may store it, all the same number
    tl.store(found_ptr, 1.0, mask=tl.min(finite, 0) == 0)


@kernel
def update_kernel(scale_ptr, tracker_ptr, found_ptr, growth, backoff, interval):
    """The next scale: smaller where something was found, larger after `interval` steps in which nothing was."""
    scale = tl.load(scale_ptr)
    found = tl.load(found_ptr) != 0
    steps = tl.load(tracker_ptr) + 1
    grown = (scale.to(tl.float64) * growth).to(tl.float32)
    due = steps == interval
    larger = tl.where(due & (tl.abs(grown) < float("inf")), grown, scale)
    tl.store(scale_ptr, tl.where(found, (scale.to(tl.float64) * backoff).to(tl.float32), larger))
    tl.store(tracker_ptr, tl.where(found | due, 0, steps))


def unscale(gradients: Iterable[Tensor], scale: Tensor, found: Tensor) -> None:
    """Divide gradients of one device in place by `scale`; set `found` to 1 if an element was infinite or NaN.

    One launch for all that have the same dtype; the host waits for none.
    """
    groups: dict[object, list[Tensor]] = {}
    on_host: list[Tensor] = []
    seen = set()
    for gradient in gradients:
        check_writable(gradient)
        data = gradient._data
        if not data.size:
            continue
        if data.__class__ is not DeviceArray:
            on_host.append(gradient)
        elif not data.is_contiguous():
            packed = gradient.contiguous()
            _launch([packed], scale, found)
            gradient.copy_(packed)
        elif data.buffer.address in seen:
            _launch([gradient], scale, found)
        else:
            seen.add(data.buffer.address)
            groups.setdefault(data.dtype, []).append(gradient)
    if on_host:
        _unscale_on_host(on_host, scale, found)
    for group in groups.values():
        for start in range(0, len(group), _MOST):
            _launch(group[start : start + _MOST], scale, found)


def _launch(gradients: list[Tensor], scale: Tensor, found: Tensor) -> None:
    Gathered(gradients).launch(unscale_kernel, "unscale", scale._data, found._data)
    for gradient in gradients:
        gradient._count_change()


def _unscale_on_host(gradients: list[Tensor], scale: Tensor, found: Tensor) -> None:
    with np.errstate(all="ignore"), blas_on_one_thread:
        factor = np.float32(1 / np.float64(scale._host_array()))
        for gradient in gradients:
            x = gradient._host_array()
            wide = x if x.itemsize > 2 else x.astype(np.float32)
            # a sum of squares is finite if they all are, but for large ones; 1 us for 10,000, where looking takes 5
            if not (np.isfinite(np.dot(flat := wide.reshape(-1), flat)) or np.isfinite(wide).all()):
                found._host_array()[...] = 1
            if wide is x:
                np.multiply(x, factor, x)
            else:
                x[...] = wide * factor
            gradient._count_change()


def update(scale: Tensor, tracker: Tensor, found: Tensor, growth: float, backoff: float, interval: int) -> None:
    """Change a scale and the count of steps since something was found, where they are."""
    if scale._data.__class__ is DeviceArray:
        arguments = scale._data, tracker._data, found._data, Float64(growth), Float64(backoff), interval
        launch(update_kernel, (1,), arguments, {}, scale.device, name="update_scale")
    else:
        value, steps = scale._host_array(), tracker._host_array()
        if found._host_array():
            value[...], steps[...] = float(value) * backoff, 0
        elif steps + 1 == interval:
            grown = quietly(np.float64(float(value) * growth).astype, np.float32)
            value[...], steps[...] = (grown if math.isfinite(grown) else value), 0
        else:
            steps += 1
    scale._count_change()
    tracker._count_change()

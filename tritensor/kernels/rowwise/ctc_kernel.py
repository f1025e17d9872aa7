"""Connectionist temporal classification on a device, see `ctc.py`: a program goes through the steps of a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...memory import buffer
from ...memory.array import DeviceArray
from ...runtime.launch import kernel, launch
from ...runtime.source import device_function
from ...types import dtypes
from ..blocks import power_of_two
from .kernel import contiguous

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice


@device_function
def total_of(x, y, z):
    """The logarithm of the sum of three exponentials."""
    top = tl.maximum(x, tl.maximum(y, z))
    top = tl.where(top == float("-inf"), tl.zeros_like(top), top)
    return top + libdevice.log(libdevice.exp(x - top) + libdevice.exp(y - top) + libdevice.exp(z - top))


@kernel
def ctc_kernel(
    alpha_ptr,
    loss_ptr,
    x_ptr,
    target_ptr,
    steps_ptr,
    labels_ptr,
    strides,
    length,
    most,
    blank,
    COMPUTE: tl.constexpr,
    WAY: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Loss and alpha of one sequence; with WAY -1 beta in place of alpha, from the last step and label to the first.

    Neighbouring states are read back from alpha, after a barrier.

    Args:
        alpha_ptr, loss_ptr: contiguous, (N, length, 2 * most + 1) and (N,).
        x_ptr: logarithms (length, N, C), with three strides.
        target_ptr, steps_ptr, labels_ptr: contiguous, (N, most), (N,) and (N,).
    """
    row = tl.program_id(0).to(tl.int64)
    s = tl.arange(0, BLOCK)
    steps, labels = tl.load(steps_ptr + row), tl.load(labels_ptr + row)
    width = 2 * most + 1
    inside, odd = s < 2 * labels + 1, s % 2 == 1
    place = target_ptr + row * most + (s // 2 if WAY == 1 else labels - 1 - s // 2)
    label = tl.load(place, mask=inside & odd, other=blank)
    jumps = inside & odd & (s > 2)
    jumps = jumps & (label != tl.load(place - WAY, mask=jumps, other=blank))
    nothing = tl.full((BLOCK,), float("-inf"), COMPUTE)
    first = 0 if WAY == 1 else steps - 1
    alpha_ptr += (row * length + first) * width + (s if WAY == 1 else 2 * labels - s)
    x_ptr += first * strides[0] + row * strides[1] + label * strides[2]
    state = tl.where(s < 2, tl.zeros_like(nothing), nothing)
    for t in range(length):
        here = s < tl.where(t < steps, 2 * labels + 1, 0)
        if t > 0:
            old = alpha_ptr - WAY * width
            one = tl.load(old - WAY, mask=here & (s > 0), other=float("-inf"))
            two = tl.load(old - 2 * WAY, mask=here & jumps, other=float("-inf"))
            state = total_of(state, one, two)
        state = tl.where(here, state + tl.load(x_ptr, mask=here, other=0), nothing)
        tl.store(alpha_ptr, state, mask=s < width if WAY == 1 else here)
        tl.debug_barrier()
        alpha_ptr += WAY * width
        x_ptr += WAY * strides[0]
    if WAY == 1:
        ends = (s < tl.where(steps > 0, 2 * labels + 1, 0)) & (s >= 2 * labels - 1)
        last = tl.load(alpha_ptr + (steps - 1 - length) * width, mask=ends, other=float("-inf"))
        top = tl.max(last, 0)
        top = tl.where(top == float("-inf"), tl.zeros_like(top), top)
        loss = -(top + libdevice.log(tl.sum(libdevice.exp(last - top), 0)))
        tl.store(loss_ptr + row, tl.where((steps == 0) & (labels == 0), tl.zeros_like(loss), loss))


@kernel
def ctc_change_kernel(
    change_ptr,
    grad_ptr,
    alpha_ptr,
    beta_ptr,
    loss_ptr,
    x_ptr,
    target_ptr,
    steps_ptr,
    labels_ptr,
    grad_stride,
    strides,
    length,
    batch,
    classes,
    most,
    blank,
    zero_infinity,
    BLOCK_T: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    """The gradient at a block of steps of one sequence: first that of softmax, then the states' shares one by one.

    States of one class are subtracted by the same threads, in their order. The grid is (N * blocks of steps,).
    """
    blocks = tl.cdiv(length, BLOCK_T)
    row = (tl.program_id(0) // blocks).to(tl.int64)
    t = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK_T + tl.arange(0, BLOCK_T)
    steps, labels = tl.load(steps_ptr + row), tl.load(labels_ptr + row)
    grad, loss = tl.load(grad_ptr + row * grad_stride), tl.load(loss_ptr + row)
    lost = loss == float("inf")
    grad = tl.where(lost, 0.0 if zero_infinity else float("nan"), grad)
    place = change_ptr + (t * batch + row) * classes
    x_ptr += t * strides[0] + row * strides[1]
    inside = t < steps
    for first in range(0, classes, BLOCK_C):
        c = first + tl.arange(0, BLOCK_C)
        mask = inside[:, None] & (c < classes)[None, :]
        x = tl.load(x_ptr[:, None] + (c * strides[2])[None, :], mask=mask, other=0)
        change = tl.where(mask, libdevice.exp(x) * grad, 0.0)
        tl.store(place[:, None] + c[None, :], change, mask=(t < length)[:, None] & (c < classes)[None, :])
    tl.debug_barrier()
    for s in range(tl.where(lost, 0, 2 * labels + 1)):
        label = tl.load(target_ptr + row * most + s // 2, mask=s % 2 == 1, other=blank)
        state = (row * length + t) * (2 * most + 1) + s
        both = tl.load(alpha_ptr + state, mask=inside, other=float("-inf"))
        both += tl.load(beta_ptr + state, mask=inside, other=float("-inf"))
        share = libdevice.exp(both + loss - tl.load(x_ptr + label * strides[2], mask=inside, other=0))
        share = tl.where(both == float("-inf"), tl.zeros_like(both), share)
        found = tl.load(place + label, mask=inside, other=0)
        tl.store(place + label, found - share * grad, mask=inside)


def _launch_walk(alpha: DeviceArray, loss: DeviceArray, arrays: Sequence[Any], way: int, metadata: Any) -> None:
    x, (length, batch, _), most = arrays[0], arrays[0].shape, arrays[1].shape[1]
    constants = {"COMPUTE": dtypes.of(x.dtype), "WAY": way, "BLOCK": power_of_two(2 * most + 1)}
    arguments = (alpha, loss, *arrays, x.strides, length, most, metadata["blank"])
    launch(ctc_kernel, (batch,), arguments, constants, x.device, name="ctc_alpha" if way == 1 else "ctc_beta")


def launch_ctc(outs: Sequence[DeviceArray], arrays: Sequence[Any], metadata: dict[str, Any]) -> None:
    """Losses and alpha: one launch."""
    _launch_walk(outs[1], outs[0], [arrays[0], *map(contiguous, arrays[1:])], 1, metadata)


def launch_ctc_backward(outs: Sequence[DeviceArray], arrays: Sequence[Any], metadata: dict[str, Any]) -> None:
    """The gradient of the logarithms: two launches."""
    grad, x, *places = arrays[0], arrays[1], *map(contiguous, arrays[2:])
    *places, loss, alpha = places
    beta = buffer.empty(tuple(alpha.shape), alpha.dtype, x.device)
    _launch_walk(beta, loss, (x, *places), -1, metadata)
    (length, batch, classes), most = x.shape, places[0].shape[1]
    blocks = {"BLOCK_T": min(power_of_two(length), 32), "BLOCK_C": min(power_of_two(classes), 64)}
    sizes = (length, batch, classes, most, metadata["blank"], metadata["zero_infinity"])
    arguments = (*outs, grad, alpha, beta, loss, x, *places, grad.strides[0], x.strides, *sizes)
    grid = (batch * -(-length // blocks["BLOCK_T"]),)
    launch(ctc_change_kernel, grid, arguments, blocks, x.device, name="ctc_backward")

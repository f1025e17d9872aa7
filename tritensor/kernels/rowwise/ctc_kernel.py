"""Connectionist temporal classification on a device, see `ctc.py`: a program goes through the steps of a sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ... import dtypes
from ...memory import buffer
from ...memory.array import DeviceArray
from ...runtime.launch import kernel, launch
from ...runtime.source import device_function
from ..blocks import power_of_two
from .kernel import contiguous

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice

__all__ = ["launch_ctc", "launch_ctc_backward"]


@device_function
def total_of(x, y, z):
    """The logarithm of the sum of three exponentials."""
    top = tl.maximum(x, tl.maximum(y, z))
    top = tl.where(top == float("-inf"), tl.zeros_like(top), top)
    return top + libdevice.log(libdevice.exp(x - top) + libdevice.exp(y - top) + libdevice.exp(z - top))


@kernel
def ctc_kernel(
    loss_ptr,
    alpha_ptr,
    x_ptr,
    target_ptr,
    steps_ptr,
    labels_ptr,
    strides,
    length,
    most,
    blank,
    COMPUTE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Loss and alpha of one sequence. Neighbouring states are read back from alpha, after a barrier.

    Args:
        loss_ptr, alpha_ptr: contiguous, (N,) and (N, length, 2 * most + 1).
        x_ptr: logarithms (length, N, C), with three strides.
        target_ptr, steps_ptr, labels_ptr: contiguous, (N, most), (N,) and (N,).
    """
    row = tl.program_id(0).to(tl.int64)
    s = tl.arange(0, BLOCK)
    steps, labels = tl.load(steps_ptr + row), tl.load(labels_ptr + row)
    width = 2 * most + 1
    stored, inside, odd = s < width, s < 2 * labels + 1, s % 2 == 1
    place = target_ptr + row * most + s // 2
    label = tl.load(place, mask=inside & odd, other=blank)
    before = tl.load(place - 1, mask=inside & odd & (s > 2), other=blank)
    jumps = inside & odd & (s > 2) & (label != before)
    nothing = tl.full((BLOCK,), float("-inf"), COMPUTE)
    alpha_ptr += row * length * width
    x_ptr += row * strides[1] + label * strides[2]
    state = tl.where(s < 2, tl.zeros_like(nothing), nothing)
    for t in range(length):
        here = s < tl.where(t < steps, 2 * labels + 1, 0)
        if t > 0:
            one = tl.load(alpha_ptr - width + s - 1, mask=here & (s > 0), other=float("-inf"))
            two = tl.load(alpha_ptr - width + s - 2, mask=here & jumps, other=float("-inf"))
            state = total_of(state, one, two)
        state = tl.where(here, state + tl.load(x_ptr, mask=here, other=0), nothing)
        tl.store(alpha_ptr + s, state, mask=stored)
        tl.debug_barrier()
        alpha_ptr += width
        x_ptr += strides[0]
    ends = (s < tl.where(steps > 0, 2 * labels + 1, 0)) & (s >= 2 * labels - 1)
    last = tl.load(alpha_ptr + (steps - 1 - length) * width + s, mask=ends, other=float("-inf"))
    top = tl.max(last, 0)
    top = tl.where(top == float("-inf"), tl.zeros_like(top), top)
    loss = -(top + libdevice.log(tl.sum(libdevice.exp(last - top), 0)))
    loss = tl.where((steps == 0) & (labels == 0), tl.zeros_like(loss), loss)
    tl.store(loss_ptr + row, loss)


@kernel
def ctc_shares_kernel(
    shares_ptr,
    beta_ptr,
    loss_ptr,
    alpha_ptr,
    x_ptr,
    target_ptr,
    steps_ptr,
    labels_ptr,
    strides,
    length,
    most,
    blank,
    COMPUTE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The share of each state in the ways of a sequence, at each step; the arguments are those of `ctc_kernel`.

    Args:
        shares_ptr: of alpha's shape.
        beta_ptr: contiguous, (N, 2, 2 * most + 1): that of the steps that are even, and odd.
    """
    row = tl.program_id(0).to(tl.int64)
    s = tl.arange(0, BLOCK)
    steps, labels = tl.load(steps_ptr + row), tl.load(labels_ptr + row)
    loss = tl.load(loss_ptr + row)
    width = 2 * most + 1
    inside, odd = s < 2 * labels + 1, s % 2 == 1
    place = target_ptr + row * most + s // 2
    label = tl.load(place, mask=inside & odd, other=blank)
    jumps = odd & (s + 2 < 2 * labels)
    jumps = jumps & (label != tl.load(place + 1, mask=jumps, other=blank))
    nothing = tl.full((BLOCK,), float("-inf"), COMPUTE)
    alpha_ptr += (row * length + steps - 1) * width + s
    shares_ptr += (row * length + steps - 1) * width + s
    beta_ptr += row * 2 * width + s
    x_ptr += row * strides[1] + label * strides[2] + (steps - 1) * strides[0]
    state = nothing
    for back in range(steps):
        old = beta_ptr + (back + 1) % 2 * width
        follows = s < tl.where(back > 0, 2 * labels, 0)
        one = tl.load(old + 1, mask=follows, other=float("-inf"))
        two = tl.load(old + 2, mask=follows & jumps, other=float("-inf"))
        begun = tl.where(s >= 2 * labels - 1, tl.zeros_like(nothing), nothing)
        state = tl.where(back > 0, total_of(state, one, two), begun)
        both = state + tl.load(alpha_ptr, mask=inside, other=float("-inf")) + loss
        share = tl.where(both == float("-inf"), tl.zeros_like(both), libdevice.exp(both))
        tl.store(shares_ptr, share, mask=inside)
        state = tl.where(inside, state + tl.load(x_ptr, mask=inside, other=0), nothing)
        tl.store(beta_ptr + back % 2 * width, state, mask=inside)
        tl.debug_barrier()
        alpha_ptr -= width
        shares_ptr -= width
        x_ptr -= strides[0]


@kernel
def ctc_change_kernel(
    change_ptr,
    grad_ptr,
    shares_ptr,
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
    COMPUTE: tl.constexpr,
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
    inside = t < steps
    for first in range(0, classes, BLOCK_C):
        c = first + tl.arange(0, BLOCK_C)
        mask = inside[:, None] & (c < classes)[None, :]
        x = tl.load(
            x_ptr + (t * strides[0] + row * strides[1])[:, None] + (c * strides[2])[None, :], mask=mask, other=0
        )
        change = tl.where(mask, libdevice.exp(x) * grad, 0.0)
        tl.store(place[:, None] + c[None, :], change, mask=(t < length)[:, None] & (c < classes)[None, :])
    tl.debug_barrier()
    for s in range(tl.where(lost, 0, 2 * labels + 1)):
        label = tl.load(target_ptr + row * most + s // 2, mask=s % 2 == 1, other=blank)
        share = tl.load(shares_ptr + (row * length + t) * (2 * most + 1) + s, mask=inside, other=0)
        found = tl.load(place + label, mask=inside, other=0)
        tl.store(place + label, found - share * grad, mask=inside)


def launch_ctc(
    outs: Sequence[DeviceArray], arrays: Sequence[Any], compute: dtypes.dtype, metadata: dict[str, Any]
) -> None:
    """Losses and alpha: one launch."""
    x, *places = arrays[0], *map(contiguous, arrays[1:])
    most = places[0].shape[1]
    launch(
        ctc_kernel,
        (x.shape[1],),
        (*outs, x, *places, x.strides, x.shape[0], most, metadata["blank"]),
        {"COMPUTE": compute, "BLOCK": power_of_two(2 * most + 1)},
        x.device,
        name="ctc_loss",
    )


def launch_ctc_backward(
    outs: Sequence[DeviceArray], arrays: Sequence[Any], compute: dtypes.dtype, metadata: dict[str, Any]
) -> None:
    """The gradient of the logarithms: two launches."""
    grad, x, *places = arrays[0], arrays[1], *map(contiguous, arrays[2:])
    *places, loss, alpha = places
    (length, batch, classes), most, blank = x.shape, places[0].shape[1], metadata["blank"]
    shares = buffer.empty(tuple(alpha.shape), compute.numpy, x.device)
    beta = buffer.empty((batch, 2, 2 * most + 1), compute.numpy, x.device)
    launch(
        ctc_shares_kernel,
        (batch,),
        (shares, beta, loss, alpha, x, *places, x.strides, length, most, blank),
        {"COMPUTE": compute, "BLOCK": power_of_two(2 * most + 1)},
        x.device,
        name="ctc_shares",
    )
    blocks = {"BLOCK_T": min(power_of_two(length), 32), "BLOCK_C": min(power_of_two(classes), 64)}
    sizes = (length, batch, classes, most, blank, metadata["zero_infinity"])
    launch(
        ctc_change_kernel,
        (batch * -(-length // blocks["BLOCK_T"]),),
        (*outs, grad, shares, loss, x, *places, grad.strides[0], x.strides, *sizes),
        {"COMPUTE": compute, **blocks},
        x.device,
        name="ctc_backward",
    )

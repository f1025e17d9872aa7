"""The steps on a device: one launch a step, of a kernel that multiplies by the weights and computes the gates.

A program computes a tile of a step's rows and units. It goes along the states once for all gates of its units, so that
what the gates need never leaves registers. Projected states take a second launch, of the same kernel in mode "linear".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...memory.array import DeviceArray
from ...runtime.launch import device_function, kernel, launch
from ...types import dtypes
from ..blocks import forced_block, power_of_two
from ..matmul.kernel import sum_of_products
from ..matmul.launch import arithmetic
from ..matmul.precision import product_for

if TYPE_CHECKING:
    import triton.language as tl
    from triton.language.extra import libdevice

# Rows and units of a tile, and its depth by bytes of an element: four products of tf32x3 spilled 160 bytes with 64, and
# 8 with 32.
_ROWS, _UNITS, _DEPTH = 32, 16, {2: 64, 4: 16, 8: 16}
# Triton's products have at least so many rows, columns and depth.
_LEAST = 16

_sigmoid = device_function(lambda x: 1 / (1 + libdevice.exp(-x)))


@device_function
def _added(total, ptr, place, mask):
    return total + tl.load(ptr + place, mask=mask, other=0).to(total.dtype)


@device_function
def _stored(value, ptr, place, mask):
    tl.store(ptr + place, value.to(ptr.dtype.element_ty), mask=mask)


@kernel
def step_kernel(
    outs,
    x_ptr,
    state_ptr,
    first_ptr,
    cells,
    weight_ptr,
    biases,
    sizes,
    MODE: tl.constexpr,
    GATES: tl.constexpr,
    TOTAL: tl.constexpr,
    PRODUCT: tl.constexpr,
    ROWS: tl.constexpr,
    UNITS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """A step: gates of x + state @ weight.T + bias, and the new states.

    Args:
        outs: pointers to the step's rows of the results: states; the cells, or what the reset gate multiplies; gates.
        x_ptr: the step's rows of the gates' part that the input gives.
        state_ptr, first_ptr: the states before, for the first `known` of `count` rows and for the others.
        cells: for LSTM the same two pointers to cells.
        weight_ptr: (GATES * units, depth), contiguous.
        biases: a pointer to the bias, if there is one.
        MODE: "lstm", "gru", "tanh", "relu", or "linear" for state @ weight.T alone.
    """
    count, known, units, depth = sizes
    tiles = tl.cdiv(units, UNITS)
    row = (tl.program_id(0) // tiles).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    col = ((tl.program_id(0) % tiles) * UNITS + tl.arange(0, UNITS))[None, :]
    inner = tl.arange(0, DEPTH)
    mask = (row < count) & (col < units)
    gate_step = tl.cast(units, tl.int64) * depth
    sum0 = tl.zeros((ROWS, UNITS), TOTAL)
    sum1 = tl.zeros((ROWS, UNITS), TOTAL)
    sum2 = tl.zeros((ROWS, UNITS), TOTAL)
    sum3 = tl.zeros((ROWS, UNITS), TOTAL)
    for start in range(0, depth, DEPTH):
        k = start + inner
        inside = k[None, :] < depth
        place = row * depth + k[None, :]
        state = tl.load(state_ptr + place, mask=inside & (row < known), other=0)
        state += tl.load(first_ptr + place, mask=inside & (row >= known) & (row < count), other=0)
        block = weight_ptr + col.to(tl.int64) * depth + k[:, None]
        there = (k[:, None] < depth) & (col < units)
        sum0 = sum_of_products(state, tl.load(block, mask=there, other=0), sum0, PRODUCT)
        if GATES > 1:
            sum1 = sum_of_products(state, tl.load(block + gate_step, mask=there, other=0), sum1, PRODUCT)
            sum2 = sum_of_products(state, tl.load(block + 2 * gate_step, mask=there, other=0), sum2, PRODUCT)
        if GATES > 3:
            sum3 = sum_of_products(state, tl.load(block + 3 * gate_step, mask=there, other=0), sum3, PRODUCT)
    if len(biases) > 0:
        sum0 = _added(sum0, biases[0], col, col < units)
        if GATES > 1:
            sum1 = _added(sum1, biases[0], units + col, col < units)
            sum2 = _added(sum2, biases[0], 2 * units + col, col < units)
        if GATES > 3:
            sum3 = _added(sum3, biases[0], 3 * units + col, col < units)
    here, wide = row * units + col, row * (GATES * units) + col
    out = sum0
    if MODE == "tanh":
        out = libdevice.tanh(_added(sum0, x_ptr, wide, mask))
    elif MODE == "relu":
        out = _added(sum0, x_ptr, wide, mask)
        out = tl.where(out <= 0, tl.zeros_like(out), out)  # NaN stays
    elif MODE == "gru":
        reset = _sigmoid(_added(sum0, x_ptr, wide, mask))
        update = _sigmoid(_added(sum1, x_ptr, wide + units, mask))
        new = libdevice.tanh(_added(reset * sum2, x_ptr, wide + 2 * units, mask))
        old = _added(tl.zeros_like(new), state_ptr, here, mask & (row < known))
        old = _added(old, first_ptr, here, mask & (row >= known))
        out = new + update * (old - new)
        _stored(sum2, outs[1], here, mask)
        _stored(reset, outs[2], wide, mask)
        _stored(update, outs[2], wide + units, mask)
        _stored(new, outs[2], wide + 2 * units, mask)
    elif MODE == "lstm":
        i = _sigmoid(_added(sum0, x_ptr, wide, mask))
        f = _sigmoid(_added(sum1, x_ptr, wide + units, mask))
        g = libdevice.tanh(_added(sum2, x_ptr, wide + 2 * units, mask))
        o = _sigmoid(_added(sum3, x_ptr, wide + 3 * units, mask))
        cell = _added(tl.zeros_like(i), cells[0], here, mask & (row < known))
        cell = f * _added(cell, cells[1], here, mask & (row >= known)) + i * g
        out = o * libdevice.tanh(cell)
        _stored(cell, outs[1], here, mask)
        _stored(i, outs[2], wide, mask)
        _stored(f, outs[2], wide + units, mask)
        _stored(g, outs[2], wide + 2 * units, mask)
        _stored(o, outs[2], wide + 3 * units, mask)
    _stored(out, outs[0], here, mask)


@kernel
def step_backward_kernel(
    outs,
    grads,
    product_ptr,
    weight_ptr,
    kept,
    carried_ptr,
    sizes,
    MODE: tl.constexpr,
    GATES: tl.constexpr,
    TOTAL: tl.constexpr,
    PRODUCT: tl.constexpr,
    ROWS: tl.constexpr,
    UNITS: tl.constexpr,
    DEPTH: tl.constexpr,
):
    """A step's gradients: those of its states, which are grad + product @ weight, then those of its gates.

    Args:
        outs: pointers to the step's rows of the results: the gradients of the gates; of GRU also those of the product.
        grads: a pointer to the step's rows of the gradients of the states, if there are any.
        product_ptr: the gradients of what was computed from these states by `depth` rows of the weight, for the first
            `known` of `count` rows; the others have none.
        weight_ptr: (depth, units), contiguous.
        kept: pointers to the step's rows of gates (or, with one gate, of states); of cells, or what is reset; of the
            cells or states before; and of the gradients of cells, if there are any.
        carried_ptr: what goes to the step before without the product; zeros at first.
        MODE: "lstm", "gru", "tanh", "relu", or "linear" for the states' gradients alone.
    """
    count, known, units, depth = sizes
    tiles = tl.cdiv(units, UNITS)
    row = (tl.program_id(0) // tiles).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    col = ((tl.program_id(0) % tiles) * UNITS + tl.arange(0, UNITS))[None, :]
    inner = tl.arange(0, DEPTH)
    mask = (row < count) & (col < units)
    total = tl.zeros((ROWS, UNITS), TOTAL)
    for start in range(0, depth, DEPTH):
        k = start + inner
        x = tl.load(product_ptr + row * depth + k[None, :], mask=(k[None, :] < depth) & (row < known), other=0)
        there = (k[:, None] < depth) & (col < units)
        y = tl.load(weight_ptr + k[:, None].to(tl.int64) * units + col, mask=there, other=0)
        total = sum_of_products(x, y, total, PRODUCT)
    here, wide = row * units + col, row * (GATES * units) + col
    nothing = tl.zeros_like(total)
    if len(grads) > 0:
        total = _added(total, grads[0], here, mask)
    part = total
    if MODE == "tanh":
        out = _added(nothing, kept[0], here, mask)
        part = total * (1 - out * out)
    elif MODE == "relu":
        part = tl.where(_added(nothing, kept[0], here, mask) > 0, total, nothing)
    elif MODE == "gru":
        total = _added(total, carried_ptr, here, mask)
        r = _added(nothing, kept[0], wide, mask)
        z = _added(nothing, kept[0], wide + units, mask)
        n = _added(nothing, kept[0], wide + 2 * units, mask)
        stays = total * z
        of_n = (total - stays) * (1 - n * n)
        part = of_n * _added(nothing, kept[1], here, mask) * r * (1 - r)
        of_z = (_added(nothing, kept[2], here, mask) - n) * stays * (1 - z)
        _stored(part, outs[1], wide, mask)
        _stored(of_z, outs[0], wide + units, mask)
        _stored(of_z, outs[1], wide + units, mask)
        _stored(of_n, outs[0], wide + 2 * units, mask)
        _stored(of_n * r, outs[1], wide + 2 * units, mask)
        _stored(stays, carried_ptr, here, mask)
    elif MODE == "lstm":
        i = _added(nothing, kept[0], wide, mask)
        f = _added(nothing, kept[0], wide + units, mask)
        g = _added(nothing, kept[0], wide + 2 * units, mask)
        o = _added(nothing, kept[0], wide + 3 * units, mask)
        t = libdevice.tanh(_added(nothing, kept[1], here, mask))
        cell = _added(total * o * (1 - t * t), carried_ptr, here, mask)
        if len(kept) > 3:
            cell = _added(cell, kept[3], here, mask)
        part = cell * g * i * (1 - i)
        _stored(cell * _added(nothing, kept[2], here, mask) * f * (1 - f), outs[0], wide + units, mask)
        _stored(cell * i * (1 - g * g), outs[0], wide + 2 * units, mask)
        _stored(total * t * o * (1 - o), outs[0], wide + 3 * units, mask)
        _stored(cell * f, carried_ptr, here, mask)
    _stored(part, outs[0], wide, mask)


def launch_step(
    step: Any, mode: str, gates: int, arguments: tuple[Any, ...], count: int, known: int, weight: DeviceArray
) -> None:
    """Launch one of the kernels for the rows of a step.

    Args:
        arguments: those before `sizes`.
        weight: forward (gates * units, depth), backward (depth, units).
    """
    forward = step is step_kernel
    units, depth = (weight.shape[0] // gates, weight.shape[1]) if forward else weight.shape[::-1]
    driver, index = weight.buffer.driver, weight.device.index or 0
    _, total, product = arithmetic(dtypes.of(weight.dtype), product_for(driver.capability(index)))
    sizes = ((count, _ROWS), (units, _UNITS), (depth, _DEPTH[weight.itemsize]))
    forced = forced_block() // 8 or 1 << 10
    blocks = [
        driver.pick(min(max(power_of_two(size), _LEAST), most), min(power_of_two(size), forced)) for size, most in sizes
    ]
    constants = {"MODE": mode, "GATES": gates, "TOTAL": total, "PRODUCT": product}
    constants |= dict(zip(("ROWS", "UNITS", "DEPTH"), blocks, strict=True))
    programs = -(-count // blocks[0]) * -(-units // blocks[1])
    name = f"recurrent_{mode}{'' if forward else '_backward'}"
    launch(step, (programs,), (*arguments, (count, known, units, depth)), constants, weight.device, name=name)

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
def _at(ptr: tl.tensor, place: tl.tensor, mask: tl.tensor, TOTAL: tl.constexpr):
    return tl.load(ptr + place, mask=mask, other=0).to(TOTAL)


@device_function
def _stored(value, ptr, place, mask):
    tl.store(ptr + place, value.to(ptr.dtype.element_ty), mask=mask)


@device_function
def state_inputs(
    x_ptr: tl.tensor,
    states: tl.tuple,
    cells: tl.tuple,
    biases: tl.tuple,
    own: tl.tuple,
    known: tl.tensor,
    units: tl.tensor,
    TOTAL: tl.constexpr,
    MODE: tl.constexpr,
    GATES: tl.constexpr,
):
    """What new states need beside the products of those before: each gate's part of the input, each gate's bias, and
    the cells or states before. All is read before anything is computed, so that it is waited for once.

    Args:
        own: the states' rows and columns, and which of them there are.
    """
    row, col, mask = own
    here, wide = row * units + col, row * (GATES * units) + col
    x0 = _at(x_ptr, wide, mask, TOTAL)
    x1, x2, x3 = x0, x0, x0
    if GATES > 1:
        x1 = _at(x_ptr, wide + units, mask, TOTAL)
        x2 = _at(x_ptr, wide + 2 * units, mask, TOTAL)
    if GATES > 3:
        x3 = _at(x_ptr, wide + 3 * units, mask, TOTAL)
    d0 = tl.zeros_like(x0)
    d1, d2, d3 = d0, d0, d0
    if len(biases) > 0:
        d0 = _at(biases[0], col, col < units, TOTAL)
        if GATES > 1:
            d1 = _at(biases[0], units + col, col < units, TOTAL)
            d2 = _at(biases[0], 2 * units + col, col < units, TOTAL)
        if GATES > 3:
            d3 = _at(biases[0], 3 * units + col, col < units, TOTAL)
    old, first = x0, x0
    if MODE == "gru":
        old = _at(states[0], here, mask & (row < known), TOTAL)
        first = _at(states[1], here, mask & (row >= known), TOTAL)
    elif MODE == "lstm":
        old = _at(cells[0], here, mask & (row < known), TOTAL)
        first = _at(cells[1], here, mask & (row >= known), TOTAL)
    return (x0, x1, x2, x3), (d0, d1, d2, d3), (old, first)


@device_function
def state_gates(
    sums: tl.tuple,
    inputs: tl.tuple,
    outs: tl.tuple,
    own: tl.tuple,
    units: tl.tensor,
    MODE: tl.constexpr,
    GATES: tl.constexpr,
):
    """Write the gates and the new states of rows of a step, from the products of the states before."""
    x, d, before = inputs
    row, col, mask = own
    here, wide = row * units + col, row * (GATES * units) + col
    out = sums[0] + d[0]
    if MODE == "tanh":
        out = libdevice.tanh(out + x[0])
    elif MODE == "relu":
        out += x[0]
        out = tl.where(out <= 0, tl.zeros_like(out), out)  # NaN stays
    elif MODE == "gru":
        resettable = sums[2] + d[2]
        reset = _sigmoid(out + x[0])
        update = _sigmoid(sums[1] + d[1] + x[1])
        new = libdevice.tanh(reset * resettable + x[2])
        out = new + update * (before[0] + before[1] - new)  # one of the two is 0
        _stored(resettable, outs[1], here, mask)
        _stored(reset, outs[2], wide, mask)
        _stored(update, outs[2], wide + units, mask)
        _stored(new, outs[2], wide + 2 * units, mask)
    elif MODE == "lstm":
        i = _sigmoid(out + x[0])
        f = _sigmoid(sums[1] + d[1] + x[1])
        g = libdevice.tanh(sums[2] + d[2] + x[2])
        o = _sigmoid(sums[3] + d[3] + x[3])
        cell = f * (before[0] + before[1]) + i * g  # one of the two is 0
        out = o * libdevice.tanh(cell)
        _stored(cell, outs[1], here, mask)
        _stored(i, outs[2], wide, mask)
        _stored(f, outs[2], wide + units, mask)
        _stored(g, outs[2], wide + 2 * units, mask)
        _stored(o, outs[2], wide + 3 * units, mask)
    _stored(out, outs[0], here, mask)


@device_function
def gradient_inputs(
    grads: tl.tuple,
    kept: tl.tuple,
    carried_ptr: tl.tensor,
    own: tl.tuple,
    units: tl.tensor,
    TOTAL: tl.constexpr,
    MODE: tl.constexpr,
    GATES: tl.constexpr,
):
    """What the gates' gradients need beside the product: the states' gradients, what was carried, and what was kept."""
    row, col, mask = own
    here, wide = row * units + col, row * (GATES * units) + col
    grad = tl.zeros_like((here + units).to(TOTAL))
    if len(grads) > 0:
        grad = _at(grads[0], here, mask, TOTAL)
    if MODE == "linear":
        return (grad,)
    elif GATES == 1:
        return grad, _at(kept[0], here, mask, TOTAL)
    else:
        carried = _at(carried_ptr, here, mask, TOTAL)
        first = _at(kept[0], wide, mask, TOTAL)
        second = _at(kept[0], wide + units, mask, TOTAL)
        third = _at(kept[0], wide + 2 * units, mask, TOTAL)
        cell = _at(kept[1], here, mask, TOTAL)
        old = _at(kept[2], here, mask, TOTAL)
        if MODE == "gru":
            return grad, carried, first, second, third, cell, old
        else:
            fourth = _at(kept[0], wide + 3 * units, mask, TOTAL)
            more = tl.zeros_like(cell)
            if len(kept) > 3:
                more = _at(kept[3], here, mask, TOTAL)
            return grad, carried, first, second, third, fourth, cell, old, more


@device_function
def state_gradients(
    total: tl.tensor,
    inputs: tl.tuple,
    outs: tl.tuple,
    carried_ptr: tl.tensor,
    own: tl.tuple,
    units: tl.tensor,
    MODE: tl.constexpr,
    GATES: tl.constexpr,
):
    """Write the gradients of the gates of rows of a step, from the product for those of their states."""
    row, col, mask = own
    here, wide = row * units + col, row * (GATES * units) + col
    total += inputs[0]
    part = total
    if MODE == "tanh":
        part = total * (1 - inputs[1] * inputs[1])
    elif MODE == "relu":
        part = tl.where(inputs[1] > 0, total, tl.zeros_like(total))
    elif MODE == "gru":
        _, carried, r, z, n, resettable, old = inputs
        total += carried
        stays = total * z
        of_n = (total - stays) * (1 - n * n)
        part = of_n * resettable * r * (1 - r)
        of_z = (old - n) * stays * (1 - z)
        _stored(part, outs[1], wide, mask)
        _stored(of_z, outs[0], wide + units, mask)
        _stored(of_z, outs[1], wide + units, mask)
        _stored(of_n, outs[0], wide + 2 * units, mask)
        _stored(of_n * r, outs[1], wide + 2 * units, mask)
        _stored(stays, carried_ptr, here, mask)
    elif MODE == "lstm":
        _, carried, i, f, g, o, cell, old, more = inputs
        t = libdevice.tanh(cell)
        cell = total * o * (1 - t * t) + carried + more
        part = cell * g * i * (1 - i)
        _stored(cell * old * f * (1 - f), outs[0], wide + units, mask)
        _stored(cell * i * (1 - g * g), outs[0], wide + 2 * units, mask)
        _stored(total * t * o * (1 - o), outs[0], wide + 3 * units, mask)
        _stored(cell * f, carried_ptr, here, mask)
    _stored(part, outs[0], wide, mask)


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
    if MODE == "linear":
        _stored(sum0, outs[0], row * units + col, mask)
    else:
        states, sums = (state_ptr, first_ptr), (sum0, sum1, sum2, sum3)
        inputs = state_inputs(x_ptr, states, cells, biases, (row, col, mask), known, units, TOTAL, MODE, GATES)
        state_gates(sums, inputs, outs, (row, col, mask), units, MODE, GATES)


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
    own = row, col, mask
    inputs = gradient_inputs(grads, kept, carried_ptr, own, units, TOTAL, MODE, GATES)
    state_gradients(total, inputs, outs, carried_ptr, own, units, MODE, GATES)


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

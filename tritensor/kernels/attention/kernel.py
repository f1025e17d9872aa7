"""The kernels of attention: a program keeps a block of queries, or of keys, and passes over all blocks of the others.

Scores are powers of two: `scale` holds log2(e), because exp2 is one instruction. A program of the first kernel carries
the largest score of each query, the sum of the exponentials, and their product with the values ("online softmax",
Milakov and Gimelshein, 2018; "FlashAttention", Dao and others, 2022). The other two compute the weights again from the
logarithms of the sums. Blocks that no query of the program sees are skipped, and only those on the edges are compared
with the diagonal and with the number of keys: loops of their own. The sums over queries of the third kernel need no
second comparison, because what it computes for keys beyond the last one is not stored.

What the functions of one block share is their `view`: where the mask of the batch begins, its steps from row to row and
from column to column, arguments of the kernels, and the sources of keys and values, or of queries and gradients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...runtime.launch import device_function, kernel
from ..addressing import offset_of
from ..matmul.kernel import sum_of_products
from ..random.philox import present
from ..random.words import in_order, philox_words

if TYPE_CHECKING:
    import triton.language as tl


@device_function
def matrix(start, row, col, steps, row_mask, col_mask, ROWS: tl.constexpr, COLS: tl.constexpr):
    """A block of a matrix; zeros outside of it where ROWS, or COLS, says that it may end within the block."""
    address = start + row * steps[0] + col * steps[1]
    if ROWS and COLS:
        return tl.load(address, mask=row_mask & col_mask, other=0)
    elif ROWS:
        return tl.load(address, mask=row_mask, other=0)
    elif COLS:
        return tl.load(address, mask=col_mask, other=0)
    else:
        return tl.load(address)


@device_function
def placed(start, batch, strides, shape, RANK: tl.constexpr):
    """The start of a batch, and the steps from row to row and from column to column."""
    return start + offset_of(batch, strides, shape, RANK), (strides[RANK], strides[RANK + 1])


@device_function
def source_of(
    start: tl.tensor,
    steps: tl.tuple,
    count: tl.tensor,
    width: tl.tensor,
    DESCRIBED: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """A matrix that is read by blocks of ROWS: where it begins and its steps, or, if DESCRIBED, a tensor descriptor."""
    if DESCRIBED:
        return tl.make_tensor_descriptor(start, [count, width], [steps[0].to(tl.int64), 1], [ROWS, COLS])
    else:
        return (start, steps)


@device_function
def rows_of(
    source,
    start,
    across,
    count,
    width,
    DESCRIBED: tl.constexpr,
    EDGE: tl.constexpr,
    PART: tl.constexpr,
    N: tl.constexpr,
):
    """N rows of a matrix from `start` on; zeros beyond its end if EDGE, and beyond its width if that is a PART."""
    if DESCRIBED:
        return source.load([start, 0])
    else:
        first, steps = source
        near, inside = tl.arange(0, N).to(across.dtype)[:, None], (start + tl.arange(0, N) < count)[:, None]
        begin = first + tl.cast(start, tl.int64) * steps[0]
        return matrix(begin, near, across[None, :], steps, inside, (across < width)[None, :], EDGE, PART)


@device_function
def power(scores: tl.tensor, base: tl.tensor, scale: tl.tensor, FOLDED: tl.constexpr):
    """2 to the scores less a base; if FOLDED the scores are products yet, and their factor is part of one fma."""
    if FOLDED:
        return tl.exp2(scores * scale - base)
    else:
        return tl.exp2(scores - base)


@device_function
def scored(products, row: tl.tensor, col: tl.tensor, view: tl.tuple, EDGE: tl.constexpr, FLAGS: tl.constexpr):
    """Scores, as powers of two (without their factor where it is part of the exponent), of queries and keys, one a row
    and one a column.

    EDGE: 1 if some keys may lie beyond the last one, 2 if some may lie behind the diagonal, or not be kept, too.
    """
    start, steps, sizes, masks, numbers = view[:5]
    scores = products
    if FLAGS[9]:
        scores = FLAGS[14](scores * numbers[0], *view[7], row, col) * 1.4426950408889634
        # what the function made of the queries beyond the last one may be NaN
        scores = tl.where((row < sizes[0]) & (col < sizes[1]), scores, float("-inf"))
    elif not FLAGS[7]:
        scores = products * numbers[1]
    for position in tl.static_range(len(masks)):
        address = masks[position] + start + row.to(tl.int64) * steps[0] + col.to(tl.int64) * steps[1]
        value = tl.load(address, mask=(row < sizes[0]) & (col < sizes[1]), other=0)
        if value.dtype.is_int():
            scores = tl.where(value != 0, scores, float("-inf"))
        else:
            scores += value.to(scores.dtype) * 1.4426950408889634
    if EDGE:
        seen = col < sizes[1]
        if EDGE == 2 and FLAGS[0]:
            seen = seen & (col <= row + numbers[2])
        if EDGE == 2 and FLAGS[10]:
            seen = seen & FLAGS[16](*view[7], row, col)
        scores = tl.where(seen, scores, float("-inf"))
    return scores


@device_function
def read_by(flexible: tl.tuple, batch: tl.tensor):
    """What functions of scores take beside these and their places: what they read, the sample and the head."""
    if len(flexible):
        return (flexible[1], (batch // flexible[0]).to(tl.int32), (batch % flexible[0]).to(tl.int32))
    else:
        return ()


@device_function
def before(change, products, weights, row: tl.tensor, col: tl.tensor, view: tl.tuple, FLAGS: tl.constexpr):
    """The gradient of products times their factor, from that of the scores that a function made of them."""
    if not FLAGS[9]:
        return change
    else:
        slope = FLAGS[15](products * view[4][0], *view[7], row, col)
        return tl.where(weights > 0, change * slope, 0.0)


@device_function
def start_of(index: tl.tensor, places: tl.tensor, SIZE: tl.constexpr):
    """Where a step begins: at `index`, or, if SIZE is not 0, there in the sequence of the blocks in `places`."""
    if SIZE:
        return tl.load(places + index // SIZE) * SIZE + index % SIZE
    else:
        return index


@device_function
def listed(
    lists: tl.tuple,
    batch: tl.tensor,
    first: tl.tensor,
    heads: tl.tensor,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
):
    """Where the blocks are listed of which all scores are kept, where others are, and how many columns either have.

    Args:
        lists: the numbers of blocks and the blocks, those of which some scores are kept first, and steps: from sample
            to sample, head to head and row to row of the blocks.
        first: a row; ROWS and COLS are those of each block.
    """
    counts, blocks, full_counts, full_blocks, steps = lists
    place = (batch // heads) * steps[0] + (batch % heads) * steps[1] + first // ROWS
    some, whole = tl.load(counts + place), tl.load(full_counts + place)
    return full_blocks + place * steps[2], blocks + place * steps[2], whole * COLS, some * COLS


@device_function
def kept(row, start, view, COLS: tl.constexpr, DROPOUT: tl.constexpr):
    """0 for the weights that dropout sets to zero, and what it multiplies the others by.

    They are those of the operator `dropout` for weights whose rows are a multiple of 8 long, 16 random bits each.
    """
    sizes, batch = view[2], view[5]
    seed, offset, threshold, factor = view[6]
    key, call = present(seed, offset, DROPOUT == 2)
    group = start // 8 + tl.arange(0, COLS // 8)
    counter = (batch * sizes[0] + row)[:, None] * tl.cdiv(sizes[1], 8) + group[None, :]
    word0, word1, word2, word3 = philox_words(counter, key, call)
    word = in_order(word0, word1, word2, word3)
    half = tl.interleave(word & 0xFFFF, word >> 16).to(tl.int32)
    return tl.where(half >= threshold, factor, 0.0)


@device_function
def result_step(
    carried,
    q,
    start,
    row,
    across,
    view,
    PRODUCT: tl.constexpr,
    EDGE: tl.constexpr,
    FLAGS: tl.constexpr,
    N: tl.constexpr,
):
    """The running product with the values, the largest scores and their sums, after the keys from `start` on."""
    total, top, sums = carried
    sizes, scale, sources = view[2], view[4][1], view[8]
    k = rows_of(sources[0], start, across[0], sizes[1], sizes[2], FLAGS[8], EDGE, FLAGS[3], N)
    products = sum_of_products(q, tl.trans(k), tl.zeros((q.shape[0], N), dtype=FLAGS[5]), PRODUCT)
    scores = scored(products, row[:, None], (start + tl.arange(0, N))[None, :], view, EDGE, FLAGS)
    highest = tl.maximum(top, tl.max(scores, 1))
    base = highest
    if FLAGS[1]:  # of queries that have seen no key yet
        base = tl.where(highest == float("-inf"), 0.0, highest)
    change = power(top - base, 0.0, scale, FLAGS[7])
    if FLAGS[7]:
        base = base * scale
    weights = power(scores, base[:, None], scale, FLAGS[7])
    sums = sums * change + tl.sum(weights, 1)
    if FLAGS[2]:
        weights *= kept(row, start, view, N, FLAGS[2])
    v = rows_of(sources[1], start, across[1], sizes[1], sizes[3], FLAGS[8], EDGE, FLAGS[4], N)
    return sum_of_products(weights.to(v.dtype), v, total * change[:, None], PRODUCT), highest, sums


@device_function
def query_step(
    total,
    fixed,
    start,
    row,
    across,
    view,
    PRODUCT: tl.constexpr,
    EDGE: tl.constexpr,
    FLAGS: tl.constexpr,
    N: tl.constexpr,
):
    """The gradient of queries, with the part of the keys from `start` on."""
    q, grad, logs, delta = fixed
    sizes, scale, sources = view[2], view[4][1], view[8]
    none = tl.zeros((q.shape[0], N), dtype=FLAGS[5])
    k = rows_of(sources[0], start, across[0], sizes[1], sizes[2], FLAGS[8], EDGE, FLAGS[3], N)
    products = sum_of_products(q, tl.trans(k), none, PRODUCT)
    col = start + tl.arange(0, N)
    scores = scored(products, row[:, None], col[None, :], view, EDGE, FLAGS)
    weights = power(scores, logs[:, None], scale, FLAGS[7])
    v = rows_of(sources[1], start, across[1], sizes[1], sizes[3], FLAGS[8], EDGE, FLAGS[4], N)
    change = sum_of_products(grad, tl.trans(v), none, PRODUCT)
    if FLAGS[2]:
        change *= kept(row, start, view, N, FLAGS[2])
    change = (change - delta[:, None]) * weights
    change = before(change, products, weights, row[:, None], col[None, :], view, FLAGS)
    return sum_of_products(change.to(k.dtype), k, total, PRODUCT)


@kernel
def attention_kernel(
    outs: tl.tuple,
    operands: tl.tuple,
    masks: tl.tuple,
    sizes: tl.tuple,
    batch_shape,
    strides: tl.tuple,
    numbers: tl.tuple,
    dropout,
    flexible,
    PRODUCT: tl.constexpr,
    RANK: tl.constexpr,
    FLAGS: tl.constexpr,
    BACKWARD: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_V: tl.constexpr,
):
    """The results of a block of queries, with the logarithms of the sums of their exponentials; or, if BACKWARD, their
    gradient, with the sums of results times the results' gradient, and the logarithms again as powers of two.

    Args:
        outs: results, and logarithms, infinite for a query that sees no key; or gradient, sums and logarithms, which
            are written for `pitch` queries of each of the batch, so that the kernel of keys needs no masks.
        operands: queries, keys and values; if BACKWARD, then the results' gradient, results, logarithms.
        masks: a tuple of one pointer, or of none.
        sizes: the number of queries and keys, and the widths of keys and values.
        batch_shape: RANK sizes.
        strides: of the first of `outs`, queries, keys, values, mask, and if BACKWARD the results' gradient and results;
            for each RANK of the batch, a row and a column stride.
        numbers: the factor of the scores, this times log2(e), the diagonal (query i sees the keys up to i + diagonal,
            if FLAGS say so), and the pitch: how many queries of each of the batch have programs.
        dropout: seed, offset, threshold and factor, see `kept`; or nothing.
        flexible: the number of heads, what functions of scores read, and lists of blocks, see `listed`; or nothing.
        PRODUCT: how to multiply, as for products of matrices.
        FLAGS: there is a diagonal; there may be queries that see no key of the first blocks; there is dropout, or 2 if
            its seed is in memory; the width of keys is less than BLOCK_E; that of values than BLOCK_V; the dtype to sum
            in; that of offsets in a block; the factor is above zero and nothing is added, so that it is part of the
            exponent; what passes is read by descriptors; a function changes scores; one says what is kept; the queries
            and keys of a listed block, 0 for no lists; a block that is kept as a whole may reach beyond the last key;
            and these functions: of a score, of its slope, of what is kept.
    """
    rows, _, width, v_width = sizes
    factor, scale, diagonal, pitch = numbers
    blocks = tl.cdiv(pitch, BLOCK_M)
    block = tl.program_id(0) % blocks
    if FLAGS[0]:  # the longest first
        block = blocks - 1 - block
    batch, first = (tl.program_id(0) // blocks).to(tl.int64), block * BLOCK_M
    row, far = first + tl.arange(0, BLOCK_M), (first + tl.arange(0, BLOCK_M)).to(tl.int64)[:, None]
    inner, outer = tl.arange(0, BLOCK_E).to(FLAGS[6]), tl.arange(0, BLOCK_V).to(FLAGS[6])
    inside, wide, v_wide = (row < rows)[:, None], (inner < width)[None, :], (outer < v_width)[None, :]
    q_start, q_steps = placed(operands[0], batch, strides[1], batch_shape, RANK)
    k_start, k_steps = placed(operands[1], batch, strides[2], batch_shape, RANK)
    v_start, v_steps = placed(operands[2], batch, strides[3], batch_shape, RANK)
    mask_start, mask_steps = placed(0, batch, strides[4], batch_shape, RANK)
    q = matrix(q_start, far, inner[None, :], q_steps, inside, wide, True, FLAGS[3])
    sources = (
        source_of(k_start, k_steps, sizes[1], width, FLAGS[8], BLOCK_N, BLOCK_E),
        source_of(v_start, v_steps, sizes[1], v_width, FLAGS[8], BLOCK_N, BLOCK_V),
    )
    across = (inner, outer)
    view = (mask_start, mask_steps, sizes, masks, numbers, batch, dropout, read_by(flexible, batch), sources)
    # where the blocks of keys that all of the queries see end, and those that any sees
    begin, whole, last, places = 0, sizes[1] // BLOCK_N * BLOCK_N, sizes[1], (0, 0)
    if FLAGS[12]:
        places = listed(flexible[2], batch, first, flexible[0], FLAGS[11], FLAGS[12])
        whole, last = places[2], places[3]
    else:
        if FLAGS[0]:
            whole = tl.minimum(whole, tl.maximum(first + diagonal + 1, 0) // BLOCK_N * BLOCK_N)
            last = tl.minimum(last, first + BLOCK_M + diagonal)
        begin = whole
    out_start, out_steps = placed(outs[0], batch, strides[0], batch_shape, RANK)
    if BACKWARD:
        grad_start, grad_steps = placed(operands[3], batch, strides[5], batch_shape, RANK)
        result_start, result_steps = placed(operands[4], batch, strides[6], batch_shape, RANK)
        grad = matrix(grad_start, far, outer[None, :], grad_steps, inside, v_wide, True, FLAGS[4])
        result = matrix(result_start, far, outer[None, :], result_steps, inside, v_wide, True, FLAGS[4])
        delta = tl.sum(grad.to(FLAGS[5]) * result.to(FLAGS[5]), 1)
        # of queries beyond the last one the logarithm is infinite, so that their weights are zeros
        logs = tl.load(operands[5] + batch * rows + row, mask=row < rows, other=float("inf")).to(FLAGS[5])
        logs *= 1.4426950408889634
        tl.store(outs[1] + batch * pitch + row, delta)
        tl.store(outs[2] + batch * pitch + row, logs)
        fixed = (q, grad, logs, delta)
        total = tl.zeros((BLOCK_M, BLOCK_E), dtype=FLAGS[5])
        for index in range(0, whole, BLOCK_N):
            start = start_of(index, places[0], FLAGS[12])
            total = query_step(total, fixed, start, row, across, view, PRODUCT, FLAGS[13], FLAGS, BLOCK_N)
        for index in range(begin, last, BLOCK_N):
            start = start_of(index, places[1], FLAGS[12])
            total = query_step(total, fixed, start, row, across, view, PRODUCT, 2, FLAGS, BLOCK_N)
        address = out_start + far * out_steps[0] + inner[None, :] * out_steps[1]
        tl.store(address, (total * factor).to(outs[0].dtype.element_ty), mask=inside & wide)
    else:
        total = tl.zeros((BLOCK_M, BLOCK_V), dtype=FLAGS[5])
        top, sums = tl.full((BLOCK_M,), float("-inf"), dtype=FLAGS[5]), tl.zeros((BLOCK_M,), dtype=FLAGS[5])
        for index in range(0, whole, BLOCK_N):
            start, carried = start_of(index, places[0], FLAGS[12]), (total, top, sums)
            total, top, sums = result_step(carried, q, start, row, across, view, PRODUCT, FLAGS[13], FLAGS, BLOCK_N)
        for index in range(begin, last, BLOCK_N):
            start, carried = start_of(index, places[1], FLAGS[12]), (total, top, sums)
            total, top, sums = result_step(carried, q, start, row, across, view, PRODUCT, 2, FLAGS, BLOCK_N)
        blind = sums == 0
        if FLAGS[7]:
            top = top * scale
        logs = tl.where(blind, float("inf"), (top + tl.log2(sums)) * 0.6931471805599453)
        tl.store(outs[1] + batch * rows + row, logs, mask=row < rows)
        total = total / tl.where(blind, 1.0, sums)[:, None]
        address = out_start + far * out_steps[0] + outer[None, :] * out_steps[1]
        tl.store(address, total.to(outs[0].dtype.element_ty), mask=inside & v_wide)


@device_function
def key_step(
    grad_k,
    grad_v,
    k,
    v,
    of_rows,
    start,
    first,
    across,
    view,
    PRODUCT: tl.constexpr,
    EDGE: tl.constexpr,
    FLAGS: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
):
    """The gradients of keys and of values, with the part of the queries from `start` on."""
    sizes, scale, sources = view[2], view[4][1], view[8]
    row, col = start + tl.arange(0, M), first + tl.arange(0, N)
    q = rows_of(sources[0], start, across[0], sizes[0], sizes[2], FLAGS[8], True, FLAGS[3], M)
    logs, none = tl.load(of_rows[1] + row), tl.zeros((N, M), dtype=grad_k.dtype)
    products = sum_of_products(k, tl.trans(q), none, PRODUCT)
    scores = scored(products, row[None, :], col[:, None], view, EDGE, FLAGS)
    weights = power(scores, logs[None, :], scale, FLAGS[7])
    grad = rows_of(sources[1], start, across[1], sizes[0], sizes[3], FLAGS[8], True, FLAGS[4], M)
    delta = tl.load(of_rows[0] + row)
    change = sum_of_products(v, tl.trans(grad), none, PRODUCT)
    if FLAGS[2]:
        factors = tl.trans(kept(row, first, view, N, FLAGS[2]))
        change *= factors
        grad_v = sum_of_products((weights * factors).to(grad.dtype), grad, grad_v, PRODUCT)
    else:
        grad_v = sum_of_products(weights.to(grad.dtype), grad, grad_v, PRODUCT)
    change = (change - delta[None, :]) * weights
    change = before(change, products, weights, row[None, :], col[:, None], view, FLAGS)
    return sum_of_products(change.to(q.dtype), q, grad_k, PRODUCT), grad_v


@kernel
def attention_keys_kernel(
    outs: tl.tuple,
    operands: tl.tuple,
    masks: tl.tuple,
    sizes: tl.tuple,
    batch_shape,
    strides: tl.tuple,
    numbers: tl.tuple,
    dropout,
    flexible,
    repeats,
    PRODUCT: tl.constexpr,
    RANK: tl.constexpr,
    FLAGS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_E: tl.constexpr,
    BLOCK_V: tl.constexpr,
):
    """The gradients of a block of keys and of their values.

    Args: as of `attention_kernel`, but
        outs: the two gradients.
        operands: queries, keys, values, the results' gradient, logarithms, and the sums that `attention_kernel` found.
        strides: of the keys' gradient, queries, keys, values, mask, the results' gradient, the values' gradient.
        repeats: so many neighbours in the batch share keys and values.
    """
    rows, cols, width, v_width = sizes
    factor, _, diagonal, pitch = numbers
    blocks = tl.cdiv(cols, BLOCK_N)
    program = tl.program_id(0)
    first = program % blocks * BLOCK_N
    lead = (program // blocks).to(tl.int64) * repeats
    col, far = first + tl.arange(0, BLOCK_N), (first + tl.arange(0, BLOCK_N)).to(tl.int64)[:, None]
    inner, outer = tl.arange(0, BLOCK_E).to(FLAGS[6]), tl.arange(0, BLOCK_V).to(FLAGS[6])
    inside, wide, v_wide = (col < cols)[:, None], (inner < width)[None, :], (outer < v_width)[None, :]
    k_start, k_steps = placed(operands[1], lead, strides[2], batch_shape, RANK)
    v_start, v_steps = placed(operands[2], lead, strides[3], batch_shape, RANK)
    k = matrix(k_start, far, inner[None, :], k_steps, inside, wide, True, FLAGS[3])
    v = matrix(v_start, far, outer[None, :], v_steps, inside, v_wide, True, FLAGS[4])
    grad_k, grad_v = tl.zeros((BLOCK_N, BLOCK_E), dtype=FLAGS[5]), tl.zeros((BLOCK_N, BLOCK_V), dtype=FLAGS[5])
    # the first block in which a query sees a key, and the first of those whose queries see all of these keys
    begin, whole = 0, 0
    if FLAGS[0]:
        begin = tl.minimum(tl.maximum(first - diagonal, 0), rows) // BLOCK_M * BLOCK_M
        whole = tl.minimum(tl.cdiv(tl.maximum(first + BLOCK_N - 1 - diagonal, 0), BLOCK_M) * BLOCK_M, rows)
    # one loop for both of float32, or of a part of BLOCK_E, read by pointers: two would spill up to 336 bytes a thread
    SIMPLE: tl.constexpr = operands[0].dtype.element_ty.primitive_bitwidth == 16 and not FLAGS[3]
    ONE: tl.constexpr = FLAGS[0] and not FLAGS[8] and not SIMPLE
    if ONE:
        whole = rows
    across = (inner, outer)
    for repeat in range(repeats):
        batch = lead + repeat
        q_start, q_steps = placed(operands[0], batch, strides[1], batch_shape, RANK)
        mask_start, mask_steps = placed(0, batch, strides[4], batch_shape, RANK)
        grad_start, grad_steps = placed(operands[3], batch, strides[5], batch_shape, RANK)
        sources = (
            source_of(q_start, q_steps, rows, width, FLAGS[8], BLOCK_M, BLOCK_E),
            source_of(grad_start, grad_steps, rows, v_width, FLAGS[8], BLOCK_M, BLOCK_V),
        )
        view = (mask_start, mask_steps, sizes, masks, numbers, batch, dropout, read_by(flexible, batch), sources)
        of_rows = (operands[4] + batch * pitch, operands[5] + batch * pitch)
        if FLAGS[12]:
            places = listed(flexible[2], batch, first, flexible[0], FLAGS[12], FLAGS[11])
        else:
            places = (0, 0, rows, whole)
        if FLAGS[0] or FLAGS[12]:
            for index in range(begin, places[3], BLOCK_M):
                start = start_of(index, places[1], FLAGS[11])
                grad_k, grad_v = key_step(
                    grad_k, grad_v, k, v, of_rows, start, first, across, view, PRODUCT, 2, FLAGS, BLOCK_M, BLOCK_N
                )
        if not ONE:
            for index in range(whole, places[2], BLOCK_M):
                start = start_of(index, places[0], FLAGS[11])
                grad_k, grad_v = key_step(
                    grad_k, grad_v, k, v, of_rows, start, first, across, view, PRODUCT, 0, FLAGS, BLOCK_M, BLOCK_N
                )
    k_start, k_steps = placed(outs[0], lead, strides[0], batch_shape, RANK)
    v_start, v_steps = placed(outs[1], lead, strides[6], batch_shape, RANK)
    address = k_start + far * k_steps[0] + inner[None, :] * k_steps[1]
    tl.store(address, (grad_k * factor).to(outs[0].dtype.element_ty), mask=inside & wide)
    address = v_start + far * v_steps[0] + outer[None, :] * v_steps[1]
    tl.store(address, grad_v.to(outs[1].dtype.element_ty), mask=inside & v_wide)

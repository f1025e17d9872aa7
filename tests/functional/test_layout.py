"""Shape-and-stride arithmetic against NumPy's."""

from __future__ import annotations

from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tritensor import Size
from tritensor.errors import ArgumentError, RangeError, ShapeError
from tritensor.types import layout

shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
full_shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=4)


def numbered(shape):
    """An array whose value at each place is its position in memory."""
    return np.arange(int(np.prod(shape))).reshape(shape)


def view(memory, shape, strides, offset):
    """What a layout selects from a flat array, element by element."""
    flat = memory.reshape(-1)
    result = np.empty(shape, memory.dtype)
    for place in np.ndindex(*shape):
        result[place] = flat[offset + sum(i * s for i, s in zip(place, strides, strict=True))]
    return result


def element_strides(array):
    return tuple(s // array.itemsize for s in array.strides)


@st.composite
def strided(draw):
    """A NumPy view with permuted, sliced, reversed and repeated dimensions, and its layout in elements."""
    base = numbered(draw(full_shapes))
    array = base.transpose(draw(st.permutations(range(base.ndim))))
    key = draw(hnp.basic_indices(array.shape, allow_newaxis=True, allow_ellipsis=False))
    array = array[(*key, ...) if isinstance(key, tuple) else (key, ...)]  # the ellipsis keeps a scalar a view
    if draw(st.booleans()):
        array = np.broadcast_to(array, (draw(st.integers(1, 3)), *array.shape))
    offset = (array.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // base.itemsize
    return base, array, element_strides(array), offset if array.size else 0


@given(full_shapes)
def test_contiguous_strides_are_numpys(shape):
    assert layout.contiguous_strides(shape) == element_strides(np.empty(shape, np.int64))


def test_a_dimension_of_size_zero_counts_as_one_in_strides():
    assert layout.contiguous_strides((2, 0, 3)) == (3, 3, 1)


@given(strided())
def test_is_contiguous_is_numpys_flag(case):
    _, array, strides, _ = case
    assert layout.is_contiguous(array.shape, strides) == array.flags.c_contiguous


@pytest.mark.parametrize(("shape", "strides"), [((0, 3), (9, 9)), ((2, 0, 3), (1, 5, 7)), ((3, 0), (5, 5))])
def test_nothing_is_always_contiguous(shape, strides):
    assert layout.is_contiguous(shape, strides)


@given(hnp.mutually_broadcastable_shapes(num_shapes=3, min_side=0, max_side=3, max_dims=4))
def test_broadcast_shapes_is_numpys(case):
    assert layout.broadcast_shapes(*case.input_shapes) == case.result_shape
    for shape in case.input_shapes:
        strides = layout.broadcast_strides(shape, layout.contiguous_strides(shape), case.result_shape)
        memory = numbered(shape)
        expected = np.broadcast_to(memory, case.result_shape)
        np.testing.assert_array_equal(view(memory, case.result_shape, strides, 0), expected)


@given(shapes, shapes)
def test_broadcast_shapes_refuses_what_numpy_refuses(first, second):
    try:
        expected = np.broadcast_shapes(first, second)
    except ValueError:
        with pytest.raises(ShapeError, match="The size of tensor a"):
            layout.broadcast_shapes(first, second)
    else:
        assert layout.broadcast_shapes(first, second) == expected


def test_broadcast_errors_begin_as_pytorchs():
    with pytest.raises(RuntimeError) as error:
        layout.broadcast_shapes((2, 3), (2, 4))
    assert str(error.value).startswith(
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1"
    )
    with pytest.raises(ShapeError, match=r"^The expanded size of the tensor \(4\) must match the existing size \(2\)"):
        layout.broadcast_strides((2, 3), (3, 1), (4, 3))
    with pytest.raises(ShapeError, match="the number of sizes provided"):
        layout.broadcast_strides((2, 3), (3, 1), (3,))
    with pytest.raises(ShapeError, match="expanded size"):
        layout.broadcast_strides((0, 3), (3, 1), (2, 3))


@pytest.mark.thorough
@settings(max_examples=300)
@given(strided(), st.data())
def test_reshape_is_a_view_exactly_when_numpy_can(case, data):
    base, array, strides, offset = case
    divisors = [n for n in range(1, array.size + 1) if array.size % n == 0] or [0, 1, 2]
    first = data.draw(st.sampled_from(divisors))
    rest = array.size // first if first else 3
    second = data.draw(st.sampled_from([n for n in range(1, rest + 1) if rest and rest % n == 0] or [1]))
    target = data.draw(st.permutations([first, second, rest // second if rest else 0, 1][: 4 if array.size else 3]))
    target = tuple(target)
    if int(np.prod(target)) != array.size:
        return
    expected = array.reshape(target)
    shares = array.size == 0 or np.shares_memory(expected, base)
    try:
        new = layout.reshape_strides(array.shape, strides, target)
    except layout.NotViewable:
        assert not shares
    else:
        np.testing.assert_array_equal(view(base, target, new, offset), expected)
        assert shares


def test_a_shape_that_needs_a_copy_is_refused_in_pytorchs_words():
    with pytest.raises(RuntimeError, match=r"^view size is not compatible with input tensor's size and stride"):
        layout.reshape_strides((2, 3), (1, 2), (6,))


def test_infer_shape_fills_in_what_is_left():
    assert layout.infer_shape((2, -1), 6) == (2, 3)
    assert layout.infer_shape((-1,), 1) == (1,)
    assert layout.infer_shape((), 1) == ()
    assert layout.infer_shape((-1, 2), 0) == (0, 2)
    assert layout.infer_shape((0, 5), 0) == (0, 5)


@pytest.mark.parametrize(
    ("shape", "size", "words"),
    [
        ((4,), 6, "shape '[4]' is invalid for input of size 6"),
        ((-1, 4), 6, "shape '[-1, 4]' is invalid for input of size 6"),
        ((-1, 0), 6, "shape '[-1, 0]' is invalid for input of size 6"),
        ((), 6, "shape '[]' is invalid for input of size 6"),
        ((-1, -1), 6, "only one dimension can be inferred"),
        ((-2, 3), 6, "invalid shape dimension -2 at index 0 of shape [-2, 3]"),
        ((-1, 0), 0, "cannot reshape tensor of 0 elements into shape [-1, 0]"),
    ],
)
def test_infer_shape_refuses_in_pytorchs_words(shape, size, words):
    with pytest.raises(ShapeError) as error:
        layout.infer_shape(shape, size)
    assert str(error.value).startswith(words)


@pytest.mark.thorough
@settings(max_examples=300)
@given(strided(), st.data())
def test_basic_indexing_is_numpys(case, data):
    base, array, strides, offset = case
    key = data.draw(hnp.basic_indices(array.shape, allow_newaxis=True, allow_ellipsis=True))
    shape, steps, start = layout.index(array.shape, strides, offset, key)
    expected = array[key]
    assert shape == np.shape(expected)
    np.testing.assert_array_equal(view(base, shape, steps, start), expected)
    low, high = layout.span(shape, steps, start)
    assert 0 <= low <= high <= max(base.size, 1) or 0 in shape


def test_index_takes_numpy_integers_and_a_second_ellipsis():
    assert layout.index((2, 3), (3, 1), 0, (np.int64(1), 2)) == ((), (), 5)
    assert layout.index((2, 3), (3, 1), 0, (..., ...)) == ((2, 3), (3, 1), 0)
    assert layout.index((), (), 4, ...) == ((), (), 4)
    assert layout.index((), (), 4, None) == ((1,), (0,), 4)


@pytest.mark.parametrize(
    ("shape", "key", "error", "words"),
    [
        ((2, 3), 5, RangeError, "index 5 is out of bounds for dimension 0 with size 2"),
        ((2, 3), -3, IndexError, "index -3 is out of bounds for dimension 0 with size 2"),
        ((2, 3), (0, 3), RangeError, "index 3 is out of bounds for dimension 1 with size 3"),
        ((0, 3), 0, RangeError, "index 0 is out of bounds for dimension 0 with size 0"),
        ((2, 3), (0, 0, 0), RangeError, "too many indices for tensor of dimension 2"),
        ((), 0, RangeError, "invalid index of a 0-dim tensor"),
        ((2, 3), "a", ArgumentError, "only integers, slices (`:`), ellipsis (`...`), None"),
        ((2, 3), 1.0, TypeError, "only integers, slices (`:`), ellipsis (`...`), None"),
        ((2, 3), True, ArgumentError, "only integers, slices (`:`), ellipsis (`...`), None"),
    ],
)
def test_index_refuses_in_pytorchs_words(shape, key, error, words):
    with pytest.raises(error) as raised:
        layout.index(shape, layout.contiguous_strides(shape), 0, key)
    assert str(raised.value).startswith(words)


def test_dims_are_counted_from_the_front():
    assert layout.normalize_dims((-1, 0), 3) == (2, 0)
    assert layout.normalize_dims([-1], 3) == (2,)
    assert layout.normalize_dims(-2, 3) == (1,)
    assert layout.normalize_dims(None, 2) == (0, 1)
    assert layout.normalize_dim(-1, 0) == 0
    assert layout.normalize_dim(np.int64(1), 2) == 1


@pytest.mark.parametrize(
    ("dim", "ndim", "words"),
    [
        (2, 2, "Dimension out of range (expected to be in range of [-2, 1], but got 2)"),
        (-3, 2, "Dimension out of range (expected to be in range of [-2, 1], but got -3)"),
        (1, 0, "Dimension out of range (expected to be in range of [-1, 0], but got 1)"),
    ],
)
def test_dims_out_of_range_are_refused_in_pytorchs_words(dim, ndim, words):
    with pytest.raises(IndexError) as error:
        layout.normalize_dim(dim, ndim)
    assert str(error.value) == words


def test_dims_that_make_no_sense_are_refused():
    with pytest.raises(ShapeError, match=r"^dim 1 appears multiple times in the list of dims"):
        layout.normalize_dims((1, -1), 2)
    with pytest.raises(ArgumentError, match="must be an int, not float"):
        layout.normalize_dim(1.0, 2)
    with pytest.raises(ShapeError, match=r"^permute.*input.dim\(\) = 2 is not equal to len\(dims\) = 1"):
        layout.permutation((0,), 2)
    with pytest.raises(ShapeError, match=r"^permute\(\): duplicate dims are not allowed"):
        layout.permutation((0, -2), 2)
    with pytest.raises(RangeError, match=r"^Dimension out of range"):
        layout.permutation((0, 2), 2)


@given(strided(), st.data())
def test_permute_is_numpys_transpose_and_has_an_inverse(case, data):
    base, array, strides, offset = case
    order = layout.permutation(data.draw(st.permutations(range(-array.ndim, 0))), array.ndim)
    shape, steps = layout.permute(array.shape, strides, order)
    np.testing.assert_array_equal(view(base, shape, steps, offset), array.transpose(order))
    assert layout.permute(shape, steps, layout.invert(order)) == (array.shape, strides)


@given(strided())
def test_collapse_walks_the_same_elements_in_the_same_order(case):
    base, array, strides, offset = case
    shape, (steps,) = layout.collapse(array.shape, strides)
    np.testing.assert_array_equal(view(base, shape, steps, offset).reshape(-1), array.reshape(-1))
    assert 1 not in shape
    if array.flags.c_contiguous and array.size:
        assert len(shape) <= 1
    # an array of the same shape beside it can only leave more dimensions
    second = layout.contiguous_strides(array.shape)
    both, _ = layout.collapse(array.shape, strides, second)
    assert len(both) >= len(shape)


def test_collapse_joins_only_what_every_array_allows():
    assert layout.collapse((2, 3, 4), (12, 4, 1)) == ((24,), ((1,),))
    assert layout.collapse((2, 3, 4), (12, 4, 1), (0, 4, 1)) == ((2, 12), ((12, 1), (0, 1)))
    assert layout.collapse((2, 3), (0, 0)) == ((6,), ((0,),))
    assert layout.collapse((1, 1), (5, 5)) == ((), ((),))
    assert layout.collapse((2, 0, 3), (3, 3, 1))[0] == (2, 0)


def test_span_is_half_open_and_follows_negative_strides():
    assert layout.span((2, 3), (3, 1), 0) == (0, 6)
    assert layout.span((2, 3), (-3, -1), 5) == (0, 6)
    assert layout.span((5, 1), (0, 9), 2) == (2, 3)
    assert layout.span((0, 3), (3, 1), 7) == (7, 7)
    assert layout.span((), (), 7) == (7, 8)


def test_check_shape_takes_integers_only():
    assert layout.check_shape("zeros", "size", ([2, np.int32(3)],)) == (2, 3)
    with pytest.raises(ShapeError, match=r"^Trying to create tensor with negative dimension -1"):
        layout.check_shape("zeros", "size", (2, -1))
    with pytest.raises(ArgumentError, match=r"^zeros\(\): argument 'size' must be tuple of ints, not float"):
        layout.check_shape("zeros", "size", (np.int32(2), 1.5))


SHAPE = Size((1, 2))


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (add(SHAPE, (3,)), (1, 2, 3)),
        (add((3,), SHAPE), (3, 1, 2)),
        (add(SHAPE, SHAPE), (1, 2, 1, 2)),
        (add((), SHAPE), (1, 2)),
        (add(SHAPE, (np.int64(3),)), (1, 2, 3)),
        (SHAPE * 2, (1, 2, 1, 2)),
        (2 * SHAPE, (1, 2, 1, 2)),
        (SHAPE * -1, ()),
        (SHAPE[1:], (2,)),
        (sum([SHAPE, (4,)], ()), (1, 2, 4)),
        (add(SHAPE, np.array([1, 2])), [2, 4]),
        (SHAPE * np.array([3, 4]), [3, 8]),
    ],
)
def test_a_size_joined_with_tuples_is_a_size_and_with_arrays_an_array(made, expected):
    assert type(made) is (Size if type(expected) is tuple else np.ndarray)
    np.testing.assert_array_equal(made, np.array(expected))
    assert type(expected) is list or all(type(extent) is int for extent in made)


@pytest.mark.parametrize(
    ("join", "words"),
    [
        (lambda: add(SHAPE, [3]), r"can only concatenate tuple \(not list\) to torch\.Size"),
        (lambda: add(SHAPE, 3), r"can only concatenate tuple \(not int\) to torch\.Size"),
        (lambda: add([3], SHAPE), "can only concatenate list"),
        (lambda: add(SHAPE, (1.5,)), r"torch\.Size\(\) takes an iterable of 'int' \(item 2 is 'float'\)"),
        (lambda: add(("a",), SHAPE), r"torch\.Size\(\) takes an iterable of 'int' \(item 0 is 'str'\)"),
        (lambda: add(None, SHAPE), "unsupported operand type"),
        (lambda: SHAPE * 1.5, "can't multiply sequence by non-int of type 'float'"),
    ],
)
def test_what_a_size_cannot_be_joined_with(join, words):
    with pytest.raises(TypeError, match=f"^{words}"):
        join()

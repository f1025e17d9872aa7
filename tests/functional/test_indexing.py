"""Reading and writing named places: what `x[...]` means, bounds, duplicates, gradients, on every device."""

from __future__ import annotations

import copy
import importlib.util
import pickle
import warnings
from contextlib import ExitStack

import numpy as np
import pytest

import tritensor as torch
from tritensor import dtypes, settings
from tritensor.errors import BoundsError
from tritensor.kernels.indexing import family as family
from tritensor.kernels.indexing import host as host_indexing
from tritensor.kernels.indexing import segments as segment_kernels
from tritensor.nn.functional import embedding, one_hot

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="simulated kernels need Triton")
T = torch.tensor
X = np.arange(3 * 4 * 5, dtype=np.float32).reshape(3, 4, 5) - 7


@pytest.fixture(
    params=["cpu", pytest.param("cuda", marks=needs_triton), pytest.param("cuda small blocks", marks=needs_triton)]
)
def device(request):
    """Where the tests run; with small blocks every kernel has several programs and a tail."""
    with ExitStack() as stack:
        if request.param != "cpu":
            stack.enter_context(torch.cuda.simulate(devices=1))
            stack.enter_context(settings.block(4 if "small" in request.param else 0))
        yield request.param.split()[0]


def on(device, value):
    """Arrays as tensors on a device, wherever they are in a tuple."""
    if isinstance(value, tuple):
        return tuple(on(device, part) for part in value)
    return torch.from_numpy(value).to(device) if isinstance(value, np.ndarray) else value


def same(result, wanted):
    found = result.detach().cpu().numpy()
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def alike(result, wanted):
    """The same sums up to rounding: a device adds them in an order of its own."""
    found = result.detach().cpu().numpy()
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def pytorch_index(array, key):
    """`array[key]` by PyTorch's rules: the basic parts make a view, then the arrays index that."""
    key = list(key) if isinstance(key, tuple) else [key]
    masks = [isinstance(part, np.ndarray) and part.dtype == np.bool_ for part in key]
    taken = sum(
        part.ndim if mask else part is not None and part is not Ellipsis for part, mask in zip(key, masks, strict=True)
    )
    at = next((i for i, part in enumerate(key) if part is Ellipsis), len(key))
    key[at : at + 1] = [slice(None)] * (array.ndim - taken)
    basic, advanced = [], []
    for part in key:
        if isinstance(part, np.ndarray):
            whole = part.ndim if part.dtype == np.bool_ else 1
            basic += [slice(None)] * whole
            advanced.append(part)
        else:
            basic.append(part)
            if not isinstance(part, int):
                advanced.append(slice(None))
    return array[tuple(basic)][tuple(advanced)]


R, J, K = np.array([2, 0, -1, 1]), np.array([[0], [3], [-4]]), np.array([4, 0])
# coordinates of which no two mean the same place
P, Q = np.array([2, 0, -2]), np.array([[0], [3], [-2]])
M, M2 = np.array([True, False, True]), X[:, :, 0] % 3 == 0
KEYS = [
    R,
    R.astype(np.int32),
    J % 3,
    (slice(None), J),
    (Ellipsis, K),
    (R, R),
    (J % 3, slice(None), K),
    (0, slice(None), K),
    (slice(1, None), J, K),
    (R, 0),
    (None, R),
    (R, None),
    (slice(None), None, K % 4),
    (slice(None, None, 2), R),
    (Ellipsis, R, 1),
    (1, Ellipsis, K),
    (R[:2], slice(None), K),
    M,
    M2,
    (M2, 1),
    (M2, K[:1]),
    (slice(None), M2[0]),
    (M, slice(None), np.array([3, 1])),
    X > 0,
    np.zeros(0, np.int64),
    (R[:1], R[:1], K[:1]),
    (np.array(1), R),
    np.zeros(3, bool),
]


def name(key):
    return "-".join(
        f"{part.dtype}{list(part.shape)}" if isinstance(part, np.ndarray) else str(part)
        for part in (key if isinstance(key, tuple) else (key,))
    )


# ---- reading ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", KEYS, ids=name)
def test_arrays_index(device, key):
    x = on(device, X)
    wanted = pytorch_index(X, key)
    same(x[on(device, key)], wanted)
    same(x[on("cpu", key)], wanted)  # an index on the CPU may index any tensor
    same(x[key], wanted)  # NumPy arrays too
    same(on(device, np.ascontiguousarray(X.transpose(2, 0, 1))).permute(1, 2, 0)[on(device, key)], wanted)


def test_integers_are_taken_before_arrays_as_in_pytorch():
    """NumPy would put the array's dimension first: shape (2, 4)."""
    x = torch.from_numpy(X)
    assert x[0, :, T([0, 1])].shape == (4, 2)
    assert x[[0, 1], :, [0, 1]].shape == (2, 4)
    assert x[:, [0, 1], None].shape == (3, 2, 1, 5)
    assert x[[0, 1], None, [0, 1]].shape == (2, 1, 5)


def test_every_kind_of_key():
    x = torch.from_numpy(X)
    with pytest.warns(UserWarning, match="non-tuple sequence"):
        same(x[[1, [2, 0]]], X[1, [2, 0]])
    same(x[[2, 0]], X[[2, 0]])
    same(x[range(2)], X[:2])
    same(x[[]], X[:0])
    same(x[T(1)], X[1])
    same(x[np.int64(1)], X[1])
    same(x[True], X[None])
    same(x[False], X[None][:0])
    same(x[np.True_], X[None])
    same(x[T(True)], X[None])
    same(x[T(False)], X[None][:0])
    same(x[True, [0, 1]], X[[0, 1]])
    same(x[(0, 1),], X[[0, 1]])
    same(x[((0, 1), (1, 2))], X[[0, 1], [1, 2]])
    assert x[...].data_ptr() == x.data_ptr()
    same(T(5.0)[None], np.array([5.0], np.float32))
    same(T(5.0)[T(True)], np.array([5.0], np.float32))


def test_a_basic_index_is_a_view_and_an_array_a_copy(device):
    x = on(device, X.copy())
    x[1][0] = 100.0
    x[R][0] = 200.0
    assert x[1, 0, 0].item() == 100
    assert x[2, 0, 0].item() == X[2, 0, 0]


def test_lists_of_lists_stand_for_tuples_with_a_warning():
    x = torch.from_numpy(X)
    with pytest.warns(UserWarning, match="non-tuple sequence for multidimensional indexing"):
        same(x[[[0, 1], [1, 0]]], X[[0, 1], [1, 0]])
    with pytest.warns(UserWarning, match="non-tuple sequence"):
        same(x[[slice(0, 1), 0]], X[0:1, 0])


def test_bytes_are_masks_with_a_warning():
    with pytest.warns(UserWarning, match=r"indexing with dtype torch\.uint8 is now deprecated"):
        same(torch.from_numpy(X)[T([1, 0, 1], dtype=torch.uint8)], X[[0, 2]])


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (5, r"index 5 is out of bounds for dimension 0 with size 3"),
        (T([0, 5]), r"index 5 is out of bounds for dimension 0 with size 3"),
        (T([-4]), r"index -4 is out of bounds for dimension 0 with size 3"),
        ((slice(None), [4]), r"index 4 is out of bounds for dimension 1 with size 4"),
        ((T([0]),) * 4, "too many indices for tensor of dimension 3"),
        ((0, 0, 0, 0), "too many indices for tensor of dimension 3"),
        (T([0.5]), "tensors used as indices must be long, int, byte or bool tensors"),
        (T([1], dtype=torch.int16), "tensors used as indices must be long, int, byte or bool tensors"),
        (0.5, r"only integers, slices \(`:`\), ellipsis \(`...`\), None and long or byte Variables are valid indices"),
        ("a", "only integers, slices"),
        (
            T([True, False]),
            r"The shape of the mask \[2\] at index 0 does not match the shape of the indexed tensor \[3, 4, 5\] at "
            r"index 0",
        ),
        ((slice(None), T([[True] * 5] * 3)), r"The shape of the mask \[3, 5\] at index 0 does not match"),
        ((T([0, 1]), T([0, 1, 2])), r"indexing tensors could not be broadcast together with shapes \[2\], \[3\]"),
    ],
)
def test_bad_indices_are_refused_in_pytorchs_words(device, key, message):
    x = on(device, X)
    with pytest.raises(IndexError, match=message):
        x[key]
    with pytest.raises(IndexError, match=message):
        x[key] = 0.0
    same(x, X)


def test_a_tensor_without_dimensions_has_no_indices():
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        T(5)[T([0])]
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        T(5)[0]


@needs_triton
def test_indices_of_a_device_are_checked_there():
    with torch.cuda.simulate(devices=2):
        x = torch.from_numpy(X).cuda()
        bad = T([0, 3]).cuda()
        for call in (
            lambda: x[bad],
            lambda: x.__setitem__(bad, 0.0),
            lambda: x.gather(0, bad.reshape(2, 1, 1)),
            lambda: x.index_select(0, bad),
            lambda: x.scatter_add(0, bad.reshape(2, 1, 1), x[:2, :1, :1]),
            lambda: x.index_add_(0, bad, x[:2]),
        ):
            with pytest.raises(BoundsError):
                call()
        same(x, X)
        with pytest.raises(
            RuntimeError, match=r"indices should be either on cpu or on the same device as the indexed tensor \(cpu\)"
        ):
            torch.from_numpy(X)[T([0]).cuda()]
        with pytest.raises(
            RuntimeError, match="indices should be either on cpu or on the same device as the indexed tensor"
        ):
            x[T([0]).cuda(1)]
        with pytest.raises(RuntimeError, match=r"(?s)Expected all tensors to be on the same device.*index.*on cpu"):
            x.gather(0, T([[[0]]]))


@needs_triton
def test_an_index_is_checked_once_for_each_version(monkeypatch):
    from tritensor.kernels.indexing import kernel as indexing_kernels

    read = []
    look = indexing_kernels.device_range
    monkeypatch.setattr(indexing_kernels, "device_range", lambda array: read.append(array.shape) or look(array))
    with torch.cuda.simulate(devices=1):
        weight = torch.zeros(5, 2).cuda().requires_grad_()
        numbers = T([0, 4, 4]).cuda()
        for _ in range(3):
            embedding(numbers, weight).sum().backward()
        assert read == [(3,)]
        numbers += 1
        with pytest.raises(BoundsError):
            embedding(numbers, weight)
        assert len(read) == 2


@needs_triton
def test_what_is_known_of_an_index_stays_with_its_elements():
    """Copies, views and pickles start anew, and so does a tensor that is given other memory."""
    with torch.cuda.simulate(devices=1):
        weight = torch.zeros(5, 2).cuda()
        numbers = T([0, 4, 4]).cuda()
        embedding(numbers, weight)
        assert numbers._recall("range") == (0, 4)
        again = [
            copy.copy(numbers),
            copy.deepcopy(numbers),
            pickle.loads(pickle.dumps(numbers)),
            numbers[:],
            numbers.detach(),
        ]
        assert [each._recall("range") for each in again] == [None] * 5
        numbers.data = T([0, 5, 4]).cuda()
        with pytest.raises(BoundsError):
            embedding(numbers, weight)


# ---- writing ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [
        P,
        (slice(None), Q),
        (P.reshape(3, 1), slice(None), K),
        (0, slice(None), K),
        M,
        M2,
        (M2, 1),
        X > 0,
        (slice(1, None), R % 4, 2),
        1,
        (slice(None), slice(1, 3)),
        Ellipsis,
        None,
        (Ellipsis, -1),
        np.zeros(0, np.int64),
        (None, P),
        (P, P),
    ],
    ids=name,
)
def test_values_are_written_where_reading_would_find_them(device, key):
    places = pytorch_index(np.arange(X.size).reshape(X.shape), key if isinstance(key, tuple) else (key,))
    value = np.arange(places.size, dtype=np.float32).reshape(places.shape) / 4
    for written in (value, value[..., :1] if value.ndim else value, np.float32(9)):
        wanted = X.copy()
        wanted.reshape(-1)[places] = np.broadcast_to(written, places.shape)
        x = on(device, X.copy())
        # the places of these keys are distinct, so that every device writes the same
        assert len(np.unique(places)) == places.size
        x[on(device, key)] = on(device, written) if isinstance(written, np.ndarray) else float(written)
        same(x, wanted)


def test_of_equal_coordinates_the_last_counts_on_the_cpu():
    x = torch.zeros(2)
    x[[0, 0, 1]] = T([1.0, 2.0, 3.0])
    assert x.tolist() == [2.0, 3.0]


def test_assignment_broadcasts_and_converts(device):
    x = on(device, np.zeros((2, 3), np.float32))
    x[0] = torch.ones(1, 1, 3, dtype=torch.float64).to(device)
    x[T([1])] = torch.full((1, 1, 1, 3), 2.0).to(device)
    assert x.tolist() == [[1, 1, 1], [2, 2, 2]]
    x[::2] = 1.0
    x[0, 0] = T([5.0])
    x[0, 1] = 7
    x[:, T([2])] = T(9.0)
    assert x.tolist() == [[5, 7, 9], [2, 2, 9]]
    whole = on(device, np.zeros(3, np.int64))
    whole[T([0])] = 1.7
    whole[1] = 2.7
    assert whole.tolist() == [1, 2, 0]
    flags = on(device, np.zeros(3, bool))
    flags[T([1])] = True
    assert flags.tolist() == [False, True, False]


def test_a_value_in_the_memory_it_is_written_to_is_read_first(device):
    x = on(device, np.arange(6.0))
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    x[T([5, 4, 3])] = x[:3]
    assert x.tolist() == [0, 0, 1, 1, 0, 0]


def test_bad_values_are_refused(device):
    x = on(device, X.copy())
    for value in ([1, 2], np.ones(5), "a", None):
        with pytest.raises(TypeError, match=r"can't assign a .* to a torch\.(cuda\.)?FloatTensor"):
            x[0] = value
    with pytest.raises(
        RuntimeError, match=r"shape mismatch: value tensor of shape \[3\] cannot be broadcast to indexing result"
    ):
        x[T([0, 1])] = torch.ones(3).to(device)
    with pytest.raises(RuntimeError, match=r"The expanded size of the tensor \(5\) must match the existing size \(3\)"):
        x[0] = torch.ones(3).to(device)
    message = "Index put requires the source and destination dtypes match, got Float for the destination and Double"
    with pytest.raises(RuntimeError, match=message):
        x[T([0])] = torch.ones(5, dtype=torch.float64).to(device)
    same(x, X)


def test_writing_follows_the_rules_for_changes_in_place():
    x = torch.ones(3, requires_grad=True)
    for key in (0, T([0])):
        with pytest.raises(
            RuntimeError, match="leaf Variable that requires grad is being used in an in-place operation"
        ):
            x[key] = 0.0
    y = x * 2
    squared = y * y
    y[T([0])] = 0.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        squared.sum().backward()
    row = torch.zeros(2, 3)
    view = row[1]
    view[T([0, 2])] = T([1.0, 2.0])
    assert row.tolist() == [[0, 0, 0], [1, 0, 2]]
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        torch.zeros(1).expand(3)[T([0])] = 1.0


def test_gradients_pass_what_was_not_overwritten(device):
    x = on(device, np.ones(4)).requires_grad_()
    value = on(device, np.array([5.0, 6.0])).requires_grad_()
    y = x * 3
    y[T([0, 2])] = value
    (y * on(device, np.array([1.0, 10.0, 100.0, 1000.0]))).sum().backward()
    assert x.grad.tolist() == [0, 30, 0, 3000]
    assert value.grad.tolist() == [1, 100]
    z = on(device, np.ones((2, 3))).requires_grad_()
    w = z * 1
    w[:, 1] = 0.0
    w[w > 0.5] = 2.0
    w.sum().backward()
    assert (z.grad == 0).all()


# ---- gradients ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key", [R, (slice(None), J), (J % 3, slice(None), K), (0, slice(None), K), M2, (R, R)], ids=name
)
def test_gradient_of_reading_adds_up(key):
    x = torch.from_numpy(np.random.default_rng(0).standard_normal(X.shape)).requires_grad_()
    index = on("cpu", key)
    assert torch.autograd.gradcheck(lambda x: x[index], (x,))
    assert torch.autograd.gradgradcheck(lambda x: x[index] ** 2, (x,))


def test_gradient_of_reading_is_the_same_on_every_device(device):
    x = on(device, X).requires_grad_()
    x[on(device, J % 3), :, on(device, K)].pow(2).sum().backward()
    wanted = np.zeros_like(X)
    np.add.at(wanted, (J % 3, slice(None), K), 2 * X[J % 3, :, K])
    same(x.grad, wanted)


# ---- named operators ----------------------------------------------------------------------------------------------


def test_gather_and_scatter(device):
    rng = np.random.default_rng(0)
    index = rng.integers(0, 4, (2, 6, 3))
    x = on(device, X)
    same(x.gather(1, on(device, index)), np.take_along_axis(X[:2, :, :3], index, 1))
    same(x.gather(-2, on(device, index.astype(np.int32))), np.take_along_axis(X[:2, :, :3], index, 1))
    source = rng.standard_normal((3, 6, 5)).astype(np.float32)
    added = X.copy()
    np.add.at(added, (np.arange(2)[:, None, None], index, np.arange(3)), source[:2, :, :3])
    alike(x.scatter_add(1, on(device, index), on(device, source)), added)
    alike(x.scatter(1, on(device, index), on(device, source), reduce="add"), added)
    alike(x.clone().scatter_add_(1, on(device, index), on(device, source)), added)
    distinct = np.argsort(rng.random((3, 4, 5)), axis=1)
    put = X.copy()
    np.put_along_axis(put, distinct, source[:, :4], 1)
    same(x.scatter(1, on(device, distinct), on(device, source)), put)
    same(x.scatter(1, on(device, distinct[:, :2]), value=3.0), filled(distinct[:, :2], 3))
    same(x.clone().scatter_(1, on(device, distinct), on(device, source)), put)


def filled(index, value):
    out = X.copy()
    np.put_along_axis(out, index, value, 1)
    return out


def test_tensors_without_dimensions_are_gathered(device):
    x = on(device, np.array(2.0))
    assert x.gather(0, on(device, np.array([0, 0]))).tolist() == [2, 2]
    assert x.gather(0, on(device, np.array(0))).item() == 2
    assert x.scatter_add(0, on(device, np.array([0, 0])), on(device, np.ones(2))).item() == 4
    assert x.index_select(0, on(device, np.array([0]))).item() == 2


def test_slices_by_number(device):
    x, rows = on(device, X), on(device, np.array([2, 0, 2]))
    same(x.index_select(1, rows), X[:, [2, 0, 2]])
    same(x.index_select(0, on(device, np.array(1))), X[[1]])
    source = np.random.default_rng(0).standard_normal((3, 3, 5)).astype(np.float32)
    added = X.copy()
    np.add.at(added, (slice(None), [2, 0, 2]), source)
    alike(x.index_add(1, rows, on(device, source)), added)
    alike(x.clone().index_add_(1, rows, on(device, source)), added)
    doubled = X.copy()
    np.add.at(doubled, (slice(None), [2, 0, 2]), 2 * source)
    alike(x.index_add(1, rows, on(device, source), alpha=2), doubled)
    put = X.copy()
    put[:, [2, 0]] = source[:, :2]
    same(x.index_copy(1, rows[:2], on(device, source[:, :2])), put)
    same(x.clone().index_copy_(1, rows[:2], on(device, source[:, :2])), put)
    put[:, [2, 0]] = 4
    same(x.index_fill(1, rows, 4), put)
    same(x.index_fill_(1, rows, T(4.0)), put)


def test_index_put(device):
    x, value = on(device, X), on(device, np.full((5,), 2.0, np.float32))
    added = X.copy()
    np.add.at(added, (R,), 2)
    same(x.index_put((on(device, R),), value, accumulate=True), added)
    same(x.index_put((on(device, M2),), T(0.0)), np.where(M2[..., None], 0, X).astype(np.float32))
    twice = x.clone()
    assert twice.index_put_((on(device, R), on(device, R)), on(device, np.zeros(5, np.float32))) is twice
    put = X.copy()
    put[R, R] = 0
    same(twice, put)
    same(family.index_put(x, on(device, R[None]), 2.0, dims=(0,), accumulate=True), added)
    same(x.index_add(0, on(device, R[:0]), x[:0]), X)
    same(x.clone().index_put_((), T(1.0)), np.ones_like(X))
    same(x.clone().index_put_((), T(1.0), accumulate=True), X + 1)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "float16", "bfloat16", "float64"])
def test_sums_in_every_dtype(device, dtype):
    kind = getattr(dtypes, dtype).numpy
    index = np.random.default_rng(0).integers(0, 5, 40)
    value = (np.arange(40) % 7).astype(kind)
    wanted = np.zeros(5, np.float64)
    np.add.at(wanted, index, np.arange(40) % 7)
    result = on(device, np.zeros(5, kind)).scatter_add(0, on(device, index), on(device, value))
    assert result.dtype is getattr(dtypes, dtype)
    np.testing.assert_array_equal(result.cpu().numpy().astype(np.float64), wanted)


@needs_triton
def test_sums_do_not_depend_on_the_order_that_programs_run_in():
    """Values far apart in size, whose sum shows in which order they were added."""
    rng = np.random.default_rng(0)
    index = rng.integers(0, 7, 200)
    value = (rng.standard_normal((200, 3)) * 10.0 ** rng.integers(-3, 4, (200, 1))).astype(np.float32)
    wanted = np.zeros((7, 3))
    np.add.at(wanted, index, value.astype(np.float64))
    with torch.cuda.simulate(devices=1):
        for block in (0, 16):
            found = []
            for order in ("forward", "reverse", "shuffle"):
                with settings.grid_order(order), settings.block(block):
                    found.append(torch.zeros(7, 3).cuda().index_add(0, T(index).cuda(), T(value).cuda()).cpu().numpy())
            np.testing.assert_allclose(found[0], wanted, rtol=1e-5, atol=1e-3)
            assert all(np.array_equal(each, found[0]) for each in found)


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 1), (0, 2), (2,)])
@pytest.mark.parametrize("repeats", [1, 40])
def test_sums_of_wide_rows_have_the_bits_of_the_reference(dims, repeats):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((6, 7, 8)).astype(np.float32)
    positions = np.stack([rng.integers(-x.shape[dim], x.shape[dim], (repeats, 20)) for dim in dims])
    value = rng.standard_normal(x[family._key(positions, 3, dims)].shape).astype(np.float32)
    for source in (value, value[..., :1], np.float32(0.3)):
        wanted = family.index_put.reference(x, positions, source, dims=dims, accumulate=True)
        given = torch.from_numpy(source) if source.ndim else float(source)
        same(family.index_put(torch.from_numpy(x), T(positions), given, dims=dims, accumulate=True), wanted)


def test_many_rows_for_few_places():
    rng = np.random.default_rng(0)
    out, keys = np.ones((300, 64), np.float32), rng.integers(0, 300, 400)
    rows = rng.standard_normal((400, 64)).astype(np.float32)
    wanted = out.copy()
    np.add.at(wanted, keys, rows)
    host_indexing.add_rows(out, keys, rows)
    assert (out == wanted).all()
    out, keys = np.zeros((2, 8), np.float32), np.zeros(1000, np.int64)
    host_indexing.add_rows(out, keys, np.ones((1000, 8), np.float32))
    assert (out == [[1000] * 8, [0] * 8]).all()
    host_indexing.add_rows(out, keys[:0], np.ones((0, 8), np.float32))
    assert out[0, 0] == 1000


def test_take_and_take_along_dim(device):
    x, index = on(device, X), np.array([[0, -1], [59, 7]])
    same(x.take(on(device, index)), X.reshape(-1)[index])
    rows = np.argsort(X, axis=1)[:, :, :1]
    same(x.take_along_dim(on(device, rows), 1), np.take_along_axis(X, rows, 1))
    same(x.take_along_dim(on(device, rows - 4), 1), np.take_along_axis(X, rows, 1))
    same(x.take_along_dim(on(device, index)), X.reshape(-1)[index.reshape(-1)])


def test_masks(device):
    x, mask = on(device, X), on(device, M2)
    same(x.masked_fill(mask.unsqueeze(-1), 0), np.where(M2[..., None], 0, X).astype(np.float32))
    same(x.masked_fill(mask.unsqueeze(-1), T(2.0)), np.where(M2[..., None], 2, X).astype(np.float32))
    same(x.clone().masked_fill_(mask.unsqueeze(-1), 1), np.where(M2[..., None], 1, X).astype(np.float32))
    same(x.masked_select(mask.unsqueeze(-1)), X[M2].reshape(-1))
    whole = on(device, np.zeros((2, 3), np.int64))
    same(whole.masked_fill(on(device, M), 2.5), np.array([[2, 0, 2]] * 2))
    same((whole == 0).masked_fill(on(device, M), 0), np.array([[False, True, False]] * 2))
    with pytest.raises(RuntimeError, match="value cannot be converted to type"):
        whole.masked_fill(on(device, M), 1j)


@pytest.mark.parametrize(
    "array",
    [
        X > 0,
        X,
        np.array(3.0),
        np.array(0),
        np.zeros((0, 3)),
        np.zeros((2, 3)),
        np.arange(40) % 3,
        X.transpose(2, 0, 1) > 4,
    ],
    ids=lambda array: str(array.shape),
)
def test_nonzero(device, array):
    x = on(device, np.array(array, order="C"))
    wanted = np.argwhere(array) if array.ndim else np.empty((int(array != 0), 0), np.int64)
    same(x.nonzero(), wanted)
    same(torch.argwhere(x), wanted)
    for found, coordinates in zip(torch.nonzero(x, as_tuple=True), np.nonzero(np.atleast_1d(array)), strict=True):
        same(found, coordinates)
    for found, coordinates in zip(torch.where(x), np.nonzero(np.atleast_1d(array)), strict=True):
        same(found, coordinates)


def test_cat_and_stack(device):
    a, b = on(device, X), on(device, X[:, :2])
    same(torch.cat([a, b], 1), np.concatenate([X, X[:, :2]], 1))
    same(torch.cat((a, a.to(torch.float64)), -1), np.concatenate([X, X.astype(np.float64)], -1))
    same(torch.cat([torch.zeros(0).to(device), a]), X)
    same(torch.cat([torch.zeros(0).to(device)] * 2), np.zeros(0, np.float32))
    for dim in (0, 1, -1):
        same(torch.stack([a, a + 1], dim), np.stack([X, X + 1], dim))
    same(torch.hstack([T(1.0), T([2.0])]), np.array([1, 2], np.float32))
    same(torch.hstack([a, b]), np.hstack([X, X[:, :2]]))
    same(torch.vstack([T([1.0]), T([[2.0]])]), np.array([[1], [2]], np.float32))
    same(torch.dstack([T([1.0, 2.0]), T([3.0, 4.0])]), np.array([[[1, 3], [2, 4]]], np.float32))
    same(torch.column_stack([T([1.0, 2.0]), T([[3.0], [4.0]])]), np.array([[1, 3], [2, 4]], np.float32))


def test_gradients_of_cat_reach_every_part():
    parts = [torch.ones(2, 2, requires_grad=True), torch.zeros(0, requires_grad=True), torch.ones(2, 1)]
    torch.cat(parts, 1).mul(T([1.0, 2.0, 3.0])).sum().backward()
    assert parts[0].grad.tolist() == [[1, 2], [1, 2]]
    assert parts[1].grad.shape == (0,)
    assert parts[2].grad is None


# ---- rearranging --------------------------------------------------------------------------------------------------


def test_rearranged_elements(device):
    x = on(device, X)
    for dims in ((0,), (1, 2), (0, -1), ()):
        same(torch.flip(x, dims), np.flip(X, dims))
    same(x.flip(0, 1), np.flip(X, (0, 1)))
    same(torch.fliplr(x), np.fliplr(X))
    same(torch.flipud(x), np.flipud(X))
    for shift, dims in ((1, 0), (-4, None), (9, 1), ((1, 2), (0, 2)), ((1, 1), (1, 1))):
        same(torch.roll(x, shift, dims), np.roll(X, shift, dims))
    same(torch.zeros(0, 3).to(device).roll(1, 0), np.zeros((0, 3), np.float32))
    same(x.repeat(2, 1, 3), np.tile(X, (2, 1, 3)))
    same(x.repeat((1, 2, 0, 1, 1)), np.tile(X, (1, 2, 0, 1, 1)))
    same(torch.tile(x, (2,)), np.tile(X, (2,)))
    same(x.repeat_interleave(2, 1), np.repeat(X, 2, 1))
    same(x.repeat_interleave(2), np.repeat(X, 2))
    same(torch.repeat_interleave(x, on(device, np.array([0, 2, 1])), 0), np.repeat(X, [0, 2, 1], 0))
    same(torch.repeat_interleave(x, T([2]), 0), np.repeat(X, 2, 0))
    same(torch.repeat_interleave(on(device, np.array([1, 0, 2]))), np.array([0, 2, 2]))
    for diagonal in (-2, 0, 1, 9):
        same(x.tril(diagonal), np.tril(X, diagonal))
        same(x.triu(diagonal), np.triu(X, diagonal))
    infinite = on(device, np.full((2, 2), np.inf))
    assert infinite.triu().tolist() == [[np.inf, np.inf], [0, np.inf]]
    same(on(device, np.ones((2, 2), bool)).tril(), np.tril(np.ones((2, 2), bool)))


def test_a_repeat_is_a_copy():
    x = torch.zeros(2)
    x.repeat(1)[0] = 1.0
    x.repeat_interleave(1)[0] = 1.0
    x.flip()[0] = 1.0
    assert x.tolist() == [0, 0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.flip(x, [0]),
        lambda x: torch.roll(x, 2, 1),
        lambda x: x.repeat(2, 2),
        lambda x: x.repeat_interleave(2, 0),
        lambda x: x.tril(),
        lambda x: torch.sort(x, 1).values,
        lambda x: torch.topk(x, 2).values,
        lambda x: torch.stack([x, x]),
        lambda x: x.index_add(0, T([1, 1]), x * 2),
        lambda x: x.scatter_add(1, T([[0, 0], [2, 1]]), x[:, :2] * x[:, 1:]),
        lambda x: x.index_copy(0, T([1]), x[:1] * 3),
        lambda x: x.masked_fill(T([True, False, True]), 1.0),
        lambda x: x.take(T([0, 0, 5])),
        lambda x: x.take_along_dim(T([[0], [1]]), 1),
        lambda x: x.index_put((T([0, 0]),), x * x, accumulate=True),
    ],
)
def test_gradients_of_the_rest(function):
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 3))).requires_grad_()
    assert torch.autograd.gradcheck(function, (x,))
    assert torch.autograd.gradgradcheck(lambda x: function(x) ** 2, (x,))


# ---- order --------------------------------------------------------------------------------------------------------


def test_sorting(device):
    values = np.array([3.0, np.nan, -1.0, 0.0, -0.0, np.inf, -np.inf, 3.0], np.float32)
    x = on(device, values)
    for descending, order in ((False, [6, 2, 3, 4, 0, 7, 5, 1]), (True, [1, 5, 0, 7, 3, 4, 2, 6])):
        found = torch.sort(x, descending=descending)
        assert found.indices.tolist() == order
        same(found.values, values[order])
        assert torch.argsort(x, descending=descending).tolist() == order
    for dim in (0, 1, 2):
        found = on(device, X % 7).sort(dim)
        order = np.argsort(X % 7, dim, kind="stable")
        same(found.indices, order)
        same(found.values, np.take_along_axis(X % 7, order, dim))
    assert on(device, np.zeros((0, 2))).sort(0).indices.shape == (0, 2)
    turned = on(device, np.ascontiguousarray((X % 7).transpose(2, 0, 1))).permute(1, 2, 0)
    same(turned.sort(0).indices, np.argsort(X % 7, 0, kind="stable"))


@pytest.mark.parametrize(
    "dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float64"]
)
def test_sorting_every_dtype(device, dtype):
    kind = dtypes.bool_ if dtype == "bool" else getattr(dtypes, dtype)
    drawn = np.random.default_rng(0).integers(-100, 100, 50)
    values = (drawn if kind.is_signed or kind is dtypes.bool_ else drawn + 100).astype(kind.numpy)
    found = on(device, values).sort(descending=True)
    order = 49 - np.argsort(values[::-1].astype(np.float64), kind="stable")[::-1]
    assert found.indices.tolist() == order.tolist()
    same(found.values, values[order])


def test_topk(device):
    x = on(device, X % 7)
    found = x.topk(2)
    same(found.values, np.flip(np.sort(X % 7, -1), -1)[..., :2])
    same(x.gather(-1, found.indices), np.flip(np.sort(X % 7, -1), -1)[..., :2])
    same(x.topk(2, 0, largest=False).values, np.sort(X % 7, 0)[:2])
    assert on(device, np.array(3.0)).topk(1).values.item() == 3
    assert x.topk(0, 1).values.shape == (3, 0, 5)


# ---- tables -------------------------------------------------------------------------------------------------------


def test_embedding(device):
    weight = on(device, X[0]).requires_grad_()
    numbers = on(device, np.array([[0, 3], [3, 1]]))
    out = embedding(numbers, weight, padding_idx=-1)
    same(out, X[0][[[0, 3], [3, 1]]])
    out.sum().backward()
    assert weight.grad[:, 0].tolist() == [1, 1, 0, 0]
    assert embedding(on(device, np.array(2)), weight).shape == (5,)
    with torch.no_grad():
        same(embedding(numbers, weight), X[0][[[0, 3], [3, 1]]])
    plain = on(device, X[0]).requires_grad_()
    embedding(numbers, plain).sum().backward()
    assert plain.grad[:, 0].tolist() == [1, 1, 0, 2]
    often = on(device, X[0]).requires_grad_()
    embedding(numbers, often, scale_grad_by_freq=True).sum().backward()
    assert often.grad[:, 0].tolist() == [1, 1, 0, 1]


def test_embedding_shortens_the_rows_that_it_reads(device):
    weight = on(device, np.array([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]], np.float32)).requires_grad_()
    out = embedding(on(device, np.array([0, 1, 0])), weight, max_norm=1.0)
    expected = [[0.6, 0.8], [0.3, 0.4], [0.6, 0.8]]
    assert np.allclose(out.detach().cpu().numpy(), expected, atol=1e-6)
    assert np.allclose(weight.detach().cpu().numpy(), [*expected[:2], [6, 8]], atol=1e-6)
    out.sum().backward()
    assert weight.grad.tolist() == [[2, 2], [1, 1], [0, 0]]
    with pytest.raises(TypeError, match="no sparse gradients"):
        embedding(on(device, np.array([0])), weight, sparse=True)


@needs_triton
def test_offsets_of_64_bits_reach_the_same_elements():
    from tritensor.kernels.indexing.kernel import move_kernel
    from tritensor.runtime.launch import Int64, launch

    with torch.cuda.simulate(devices=1):
        x, rows, out = on("cuda", X[0]), on("cuda", R), torch.zeros(4, 5).cuda()
        constants = {"INTO": False, "OUT_DTYPE": dtypes.float32, "RANK": 2, "WIDE": True, "BLOCK": 16}
        strides = ((5, 1), (0, 1), (1, 0))
        launch(
            move_kernel,
            (2,),
            (out._data, rows._data, x._data, 0, (4, 5), *strides, (Int64(4),), (5,), 20),
            constants,
            out.device,
        )
        same(out, X[0][R])


def test_cost_counts_what_is_moved():
    x, positions, out = np.zeros((9, 4), np.float32), np.zeros((1, 3), np.int64), np.zeros((3, 4), np.float32)
    assert family.index.cost([out], [x, positions], {"dims": (0,)}) == (24 + 2 * 48, 0)


def test_one_hot(device):
    numbers = on(device, np.array([[0], [2]]))
    assert one_hot(numbers).tolist() == [[[1, 0, 0]], [[0, 0, 1]]]
    assert one_hot(numbers, 4).shape == (2, 1, 4)
    assert one_hot(numbers[:0], 3).shape == (0, 1, 3)


# ---- what is refused ----------------------------------------------------------------------------------------------


Z = torch.zeros(2, 3)


@pytest.mark.parametrize(
    ("kind", "call", "message"),
    [
        (RuntimeError, lambda: Z.gather(0, T([[5]])), "index 5 is out of bounds for dimension 0 with size 2"),
        (RuntimeError, lambda: Z.gather(0, T([[-1]])), "index -1 is out of bounds for dimension 0 with size 2"),
        (RuntimeError, lambda: Z.gather(0, T([[0.0]])), r"gather\(\): Expected dtype int32/int64 for index"),
        (
            RuntimeError,
            lambda: Z.gather(0, T([0])),
            "Index tensor must have the same number of dimensions as input tensor",
        ),
        (
            RuntimeError,
            lambda: Z.gather(0, torch.zeros(1, 5, dtype=torch.int64)),
            r"Size does not match at dimension 1 expected index",
        ),
        (TypeError, lambda: Z.gather(0, 1), "argument 'index' must be Tensor, not int"),
        (RuntimeError, lambda: Z.scatter(0, T([[5]]), 1.0), "index 5 is out of bounds for dimension 0 with size 2"),
        (
            RuntimeError,
            lambda: Z.scatter(0, T([[1]]), T([[1]])),
            r"scatter\(\): Expected self.dtype to be equal to src.dtype",
        ),
        (
            RuntimeError,
            lambda: Z.scatter(0, T([0]), 1.0),
            "Index tensor must have the same number of dimensions as self tensor",
        ),
        (
            RuntimeError,
            lambda: Z.scatter(0, T([[0]]), T([1.0])),
            "Index tensor must have the same number of dimensions as src tensor",
        ),
        (
            RuntimeError,
            lambda: Z.scatter(0, torch.zeros(1, 5, dtype=torch.int64), 1.0),
            r"Expected index \[1, 5\] to be no larger than self",
        ),
        (
            RuntimeError,
            lambda: Z.scatter_add(0, torch.zeros(2, 3, dtype=torch.int64), torch.ones(1, 3)),
            "and to be no larger size than src",
        ),
        (TypeError, lambda: Z.scatter(0, T([[0]]), 1.0, reduce="max"), "reduce argument must be either None or 'add'"),
        (IndexError, lambda: Z.index_select(0, T([5])), "index out of range in self"),
        (IndexError, lambda: Z.index_select(0, T([-1])), "index out of range in self"),
        (IndexError, lambda: Z.index_select(0, T([[1]])), r"index_select\(\): Index is supposed to be a vector"),
        (IndexError, lambda: Z.index_select(2, T([1])), "Dimension out of range"),
        (
            RuntimeError,
            lambda: Z.index_select(0, T([1.0])),
            r"index_select\(\): Expected dtype int32 or int64 for index",
        ),
        (
            RuntimeError,
            lambda: Z.index_add(0, T([5]), torch.ones(1, 3)),
            "index 5 is out of bounds for dimension 0 with size 2",
        ),
        (
            RuntimeError,
            lambda: Z.index_add(0, T([0]), torch.ones(2, 3)),
            r"Number of indices \(1\) should be equal to source.size\(dim\): \(2\)",
        ),
        (
            RuntimeError,
            lambda: Z.index_add(0, T([0]), torch.ones(1, 4)),
            "source tensor shape must match self tensor shape",
        ),
        (
            RuntimeError,
            lambda: Z.index_add(0, T([0]), torch.ones(1, 3, dtype=torch.float64)),
            "must have the same scalar type",
        ),
        (
            IndexError,
            lambda: Z.index_add(0, T([[0]]), torch.ones(1, 3)),
            "Index is supposed to be a vector, but got dim: 2",
        ),
        (
            RuntimeError,
            lambda: Z.index_fill(0, T([0]), T([1.0])),
            "index_fill_ only supports a 0-dimensional value tensor",
        ),
        (
            RuntimeError,
            lambda: Z.masked_fill(T([1, 0, 1]), 2),
            "masked_fill_ only supports boolean masks, but got mask with dtype",
        ),
        (
            RuntimeError,
            lambda: Z.masked_fill(T([True]), T([1.0])),
            "masked_fill_ only supports a 0-dimensional value tensor",
        ),
        (RuntimeError, lambda: torch.zeros(3).masked_fill_(torch.zeros(2, 3).bool(), 1.0), "output with shape"),
        (RuntimeError, lambda: Z.masked_select(T([1, 0, 1])), "masked_select: expected BoolTensor for mask"),
        (IndexError, lambda: Z.take(T([6])), "out of range: tried to access"),
        (
            RuntimeError,
            lambda: Z.take_along_dim(T([0]), 0),
            "input and indices should have the same number of dimensions",
        ),
        (ValueError, lambda: torch.cat([]), "expected a non-empty list of Tensors"),
        (
            TypeError,
            lambda: torch.cat(Z),
            r"cat\(\): argument 'tensors' \(position 1\) must be tuple of Tensors, not Tensor",
        ),
        (TypeError, lambda: torch.cat([Z, 1]), "expected Tensor as element 1 in argument 0, but got int"),
        (
            RuntimeError,
            lambda: torch.cat([Z, torch.zeros(2, 4)]),
            "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4",
        ),
        (
            RuntimeError,
            lambda: torch.cat([Z, torch.zeros(2)]),
            "Tensors must have same number of dimensions: got 2 and 1",
        ),
        (
            RuntimeError,
            lambda: torch.cat([T(1.0)]),
            r"zero-dimensional tensor \(at position 0\) cannot be concatenated",
        ),
        (IndexError, lambda: torch.cat([Z], 2), "Dimension out of range"),
        (RuntimeError, lambda: torch.stack([]), "stack expects a non-empty TensorList"),
        (RuntimeError, lambda: torch.stack([Z, Z[0]]), "stack expects each tensor to be equal size"),
        (RuntimeError, lambda: torch.flip(Z, [0, 0]), "dim 0 appears multiple times in the list of dims"),
        (TypeError, lambda: torch.flip(Z, ["a"]), "expected integers"),
        (RuntimeError, lambda: torch.fliplr(Z[0]), "Input must be >= 2-d."),
        (RuntimeError, lambda: torch.flipud(T(1.0)), "Input must be >= 1-d."),
        (RuntimeError, lambda: torch.roll(Z, (1, 2), (0,)), "shifts and dimensions must align. shifts: 2, dims:1"),
        (RuntimeError, lambda: torch.roll(Z, ()), "`shifts` required"),
        (RuntimeError, lambda: Z.repeat(2), "Number of dimensions of repeat dims can not be smaller"),
        (RuntimeError, lambda: Z.repeat(-1, 1), "Trying to create tensor with negative dimension -2"),
        (RuntimeError, lambda: Z.repeat_interleave(-1), "Repeats must be non-negative"),
        (RuntimeError, lambda: Z.repeat_interleave(T([1, -1]), 0), "repeats can not be negative"),
        (
            RuntimeError,
            lambda: Z.repeat_interleave(T([1, 1, 1]), 0),
            "repeats must have the same size as input along dim",
        ),
        (RuntimeError, lambda: Z.repeat_interleave(T([[1]]), 0), "repeats must be 0-dim or 1-dim tensor"),
        (RuntimeError, lambda: Z.repeat_interleave(T([1.0]), 0), "not implemented for"),
        (RuntimeError, lambda: torch.zeros(2).tril(), "tril: input tensor must have at least 2 dimensions"),
        (RuntimeError, lambda: torch.topk(Z, 4), "selected index k out of range"),
        (RuntimeError, lambda: torch.topk(T(1.0), 2), "selected index k out of range"),
        (IndexError, lambda: torch.sort(Z, 2), "Dimension out of range"),
        (IndexError, lambda: embedding(T([2]), Z), "index out of range in self"),
        (IndexError, lambda: embedding(T([-1]), Z), "index out of range in self"),
        (RuntimeError, lambda: embedding(T([0.0]), Z), "Expected tensor for argument #1 'indices'"),
        (RuntimeError, lambda: embedding(T([0]), Z[0]), "'weight' must be 2-D"),
        (AssertionError, lambda: embedding(T([0]), Z, padding_idx=2), "Padding_idx must be within num_embeddings"),
        (RuntimeError, lambda: one_hot(T([0, 2]), 2), "Class values must be smaller than num_classes."),
        (RuntimeError, lambda: one_hot(T([-1]), 2), "Class values must be non-negative."),
        (RuntimeError, lambda: one_hot(T([0.0])), "one_hot is only applicable to index tensor of type LongTensor."),
        (
            RuntimeError,
            lambda: one_hot(torch.zeros(0, dtype=torch.int64)),
            "Can not infer total number of classes from empty tensor.",
        ),
        (RuntimeError, lambda: family.check_bounds(T([0.5]), 2, 0), "index tensors must be of an integer dtype"),
        (RuntimeError, lambda: family.index_put(Z, T([[0]]), T([1]), dims=(0,)), "index_put"),
    ],
)
def test_bad_arguments_are_refused_in_pytorchs_words(kind, call, message):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(kind, match=message):
            call()
    assert (Z == 0).all()


def test_coordinates_that_nobody_checked_are_checked():
    """The operators take coordinates that `x[...]` has checked; called by themselves they check them."""
    with pytest.raises(BoundsError, match="index 2 is out of bounds for dimension 0 with size 2"):
        family.index(Z, T([[0, 2]]), dims=(0,))
    positions = T([[0, 1]])
    assert family.index(Z, positions, dims=(0,)).shape == (2, 3)
    positions += 1
    with pytest.raises(BoundsError):
        family.index(Z, positions, dims=(0,))


@pytest.mark.parametrize("order", ["forward", "shuffle"])
@pytest.mark.parametrize("block", [0, 4])
@pytest.mark.parametrize(
    ("places", "rows", "width"),
    [(1, 1, 1), (37, 3, 1), (90, 1, 3), (40, 2, 5), (64, 50, 1), (30, 8, 7), (33, 1, 1), (200, 1, 1)],
)
def test_sums_at_equal_places_join_over_blocks(places, rows, width, block, order):
    """Destinations within a block, over two blocks and over more than are joined at once; integers, so exactly."""
    rng = np.random.default_rng(places)
    keys = rng.integers(0, rows, places)
    source, x = rng.integers(-3, 4, (places, width)), rng.integers(-3, 4, (rows, width))
    wanted = x.copy()
    np.add.at(wanted, keys, source)
    for kind in (np.float32, np.float16, np.int64):
        with torch.cuda.simulate(devices=1), settings.block(block), settings.grid_order(order):
            arrays = (torch.from_numpy(array).cuda() for array in (x.astype(kind), keys, source.astype(kind)))
            out, index, values = arrays
            assert np.array_equal(out.index_add(0, index, values).cpu().numpy(), wanted.astype(kind))


def test_sums_at_equal_places_take_steps_with_the_number_of_blocks(monkeypatch):
    """A destination with all places is added up in blocks side by side, not one place after another."""
    found = []
    launch = segment_kernels.launch
    monkeypatch.setattr(
        segment_kernels, "launch", lambda *args, **options: found.append(args) or launch(*args, **options)
    )
    with torch.cuda.simulate(devices=1), settings.block(4):
        out = torch.zeros(3, 1, device="cuda").index_add(
            0, torch.ones(50, dtype=torch.int64, device="cuda"), torch.ones(50, 1, device="cuda")
        )
        assert out.cpu().flatten().tolist() == [0, 50, 0]
    grids = {kernel.__name__: grid for kernel, grid, *_ in found}
    assert grids["segment_sums_kernel"] == grids["join_segments_kernel"] == (13,)

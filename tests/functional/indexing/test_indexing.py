"""Reading and writing by `x[...]`: every kind of key, bounds, duplicates and gradients."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor.errors import BoundsError
from tritensor.kernels.indexing import family
from tritensor.nn.functional import embedding
from tritensor.runtime.call import Call
from tritensor.types import dtypes

from ...needs import needs_triton
from .arrays import KEYS, M2, J, K, M, P, Q, R, T, X, name, on, pytorch_index, same

Z = torch.zeros(2, 3)


# ---- reading ------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(16)
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


# PyTorch reads no index of a result without elements, so any number is allowed in it.
@pytest.mark.parametrize(
    ("shape", "key", "wanted"),
    [
        ((3, 0), T([5]), (1, 0)),
        ((3, 0), T([5, -7]), (2, 0)),
        ((3, 0), [5], (1, 0)),
        ((0, 3), (slice(None), T([5])), (0, 1)),
        ((3, 3), (T([], dtype=torch.int64), T([5])), (0,)),
        ((3, 3), (T([7]), torch.zeros(2, 0, dtype=torch.int64)), (2, 0)),
        ((3, 3), (T([7]), slice(0, 0)), (1, 0)),
        ((0, 0, 2), (T([5]), T([], dtype=torch.int64)), (0, 2)),
    ],
)
def test_no_index_of_an_empty_result_is_out_of_bounds(device, shape, key, wanted):
    x = torch.zeros(shape, device=device, requires_grad=True)
    found = x[key]
    assert tuple(found.shape) == wanted
    found.sum().backward()
    assert x.grad.tolist() == torch.zeros(shape).tolist()
    y = x.detach().clone()
    y[key] = 1.0
    y[key] = torch.ones(wanted, device=device)
    same(y, np.zeros(shape, np.float32))
    same(y.index_put(tuple(key) if isinstance(key, tuple) else (T(key),), T(1.0), accumulate=True), y.cpu().numpy())


def test_no_index_of_empty_slices_is_out_of_bounds(device):
    x, far = torch.zeros(3, 0, device=device), T([5]).to(device)
    value = torch.zeros(1, 0, device=device, requires_grad=True)
    for written in (x.index_fill(0, far, 1), x.index_add(0, far, value), x.index_copy(0, far, value)):
        assert tuple(written.shape) == (3, 0)
    x.index_add(0, far, value).sum().backward()
    assert tuple(value.grad.shape) == (1, 0)
    assert tuple(torch.take_along_dim(x, far.reshape(1, 1), 0).shape) == (1, 0)


@pytest.mark.parametrize(("shape", "key"), [((0, 3), T([0])), ((0, 0), T([5])), ((0, 0), (slice(None), T([5])))])
def test_a_dimension_of_size_0_has_no_index(device, shape, key):
    x = torch.zeros(shape, device=device)
    with pytest.raises(IndexError, match="index is out of bounds for dimension with size 0"):
        x[key]
    with pytest.raises(IndexError, match="index is out of bounds for dimension with size 0"):
        x[key] = 1.0


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
        numbers = T([0, 4, 4]).cuda() * 1  # of the copy itself the host knows the bounds
        for _ in range(3):
            embedding(numbers, weight).sum().backward()
        assert read == [(3,)]
        numbers += 1
        with pytest.raises(BoundsError):
            embedding(numbers, weight)
        assert len(read) == 2


# ---- writing ------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(10)
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


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        (T([True, False]), [[7, 7], [3, 4]]),
        ([True, False], [[7, 7], [3, 4]]),
        (T([[True, False], [False, True]]), [[7, 2], [3, 7]]),
        ((slice(None), T([False, True])), [[1, 7], [3, 7]]),
        ((T([False, True]), slice(1, None)), [[1, 2], [3, 7]]),
        ((0, T([True, False])), [[7, 2], [3, 4]]),
        (T([False, False]), [[1, 2], [3, 4]]),
        (True, [[7, 7], [7, 7]]),
    ],
)
@pytest.mark.parametrize("value", [T(7), T(7.0, dtype=torch.float64), T([7]), T([[7]], dtype=torch.float16)])
def test_a_mask_converts_a_value_of_one_element(device, key, value, wanted):
    for there in {"cpu", device}:
        x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)
        x[key] = value.to(there)
        assert x.tolist() == wanted
        assert x.dtype is torch.float32
    whole = torch.tensor([[1, 2], [3, 4]], device=device)
    whole[key] = value + 0.75
    assert whole.tolist() == wanted


def test_a_converted_value_gets_its_gradient(device):
    x = torch.ones(2, 3, device=device)
    value = torch.tensor(2.0, dtype=torch.float64, device=device, requires_grad=True)
    x[torch.tensor([True, False], device=device)] = value
    x.sum().backward()
    assert (value.grad.item(), value.grad.dtype) == (3, torch.float64)


def test_a_mask_refuses_what_it_cannot_convert(device):
    x, mask = torch.ones(2, device=device), torch.tensor([True, False], device=device)
    with pytest.raises(RuntimeError, match="value cannot be converted to type float without overflow"):
        x[mask] = T(1 + 2j)
    with pytest.raises(RuntimeError, match="value cannot be converted to type float without overflow"):
        x.masked_fill(mask, T(1 + 2j))
    with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match"):
        x[mask, ...] = torch.tensor([1, 2], device=device)
    with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match"):
        x.index_put_((mask,), torch.tensor(1, device=device), accumulate=True)
    assert x.tolist() == [1, 1]
    x[mask] = T(5 + 0j)
    assert x.tolist() == [5, 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.float16])
def test_a_complex_number_is_written_if_it_is_real(device, dtype):
    x = torch.ones(2, dtype=dtype, device=device)
    mask = torch.tensor([True, False], device=device)
    writes = [lambda value, key=key: x.__setitem__(key, value) for key in (0, slice(1), T([0]), mask)]
    for write in (*writes, x.fill_, lambda value: torch.full((2,), value, dtype=dtype, device=device)):
        with pytest.raises(RuntimeError, match=r"value cannot be converted to type .* without overflow"):
            write(1 + 2j)
        assert x.tolist() == [1, 1]
        write(1 + 0j)
        assert x.tolist() == [1, 1]
    x[T([1])] = 3 + 0j
    assert x.tolist() == [1, 3]


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
        torch.zeros(1).expand(3)[:] = 1.0


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


def test_cost_counts_what_is_moved():
    x, positions, out = np.zeros((9, 4), np.float32), np.zeros((1, 3), np.int64), np.zeros((3, 4), np.float32)
    call = Call(family.index, (), {"dims": (0,)})
    call.outs, call.arrays = [out], [x, positions]
    assert family.index.cost(call) == (24 + 2 * 48, 0)


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


def test_coordinates_that_nobody_checked_are_checked():
    """The operators take coordinates that `x[...]` has checked; called by themselves they check them."""
    with pytest.raises(BoundsError, match="index 2 is out of bounds for dimension 0 with size 2"):
        family.index(Z, T([[0, 2]]), dims=(0,))
    positions = T([[0, 1]])
    assert family.index(Z, positions, dims=(0,)).shape == (2, 3)
    positions += 1
    with pytest.raises(BoundsError):
        family.index(Z, positions, dims=(0,))

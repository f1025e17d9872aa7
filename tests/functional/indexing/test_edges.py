"""Reading and writing where there is little to read or write: single elements, no elements, the tensor itself."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch

from .arrays import T


@pytest.mark.parametrize(
    "key",
    [[1.0], [1.7], [-1.2], (slice(None), [0.5, -1]), [True, 0.0], np.array([1.0]), np.array([1], dtype=np.int16)],
    ids=repr,
)
def test_lists_and_arrays_of_floats_are_truncated(device, key):
    x = torch.arange(6.0, device=device).reshape(2, 3)
    parts = key if isinstance(key, tuple) else (key,)
    whole = tuple([part if isinstance(part, slice) else np.array(part).astype(np.int64) for part in parts])
    wanted = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    assert x[key].tolist() == wanted[whole].tolist()
    x[key] = 7
    wanted[whole] = 7
    assert x.tolist() == wanted.tolist()


@pytest.mark.parametrize(("key", "kind"), [([float("nan")], RuntimeError), ([1j], TypeError)])
def test_lists_of_what_is_no_place_are_refused(device, key, kind):
    with pytest.raises(kind):
        torch.zeros(2, 3, device=device)[key]


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        (True, T([[7, 8]]), [7.0, 8.0]),
        (True, T(3), [3.0, 3.0]),
        (True, 2, [2.0, 2.0]),
        (False, T([[7, 8, 9]]), [0.0, 0.0]),
        (False, 2, [0.0, 0.0]),
    ],
    ids=str,
)
def test_a_truth_value_writes_everything_or_nothing(device, key, value, wanted):
    x = torch.zeros(2, device=device)
    x[key] = value.to(device) if isinstance(value, torch.Tensor) else value
    assert x.tolist() == wanted


WRITES_OF_ITSELF = {
    "[...]": lambda x: x.__setitem__(..., x),
    "[a:b]": lambda x: x.__setitem__(slice(0, 3), x),
    "copy_": lambda x: x.copy_(x),
    "another part in the same memory": lambda x: x.__setitem__(slice(0, 2), x[1:]),
}


@pytest.mark.parametrize("write", WRITES_OF_ITSELF.values(), ids=WRITES_OF_ITSELF)
def test_an_expanded_tensor_is_copied_onto_itself(device, write):
    x = T([5.0]).to(device).expand(3)
    write(x)
    assert x.tolist() == [5.0, 5.0, 5.0]
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        x.copy_(torch.zeros(3, device=device))


@pytest.mark.parametrize("index", [T(1), T([1]), T([[1]])], ids=str)
def test_what_was_taken_has_its_own_memory(device, index):
    x = torch.arange(3.0, device=device)
    taken = x.take(index.to(device))
    assert taken.shape == index.shape
    taken.fill_(9)
    assert x.tolist() == [0.0, 1.0, 2.0]


def test_the_gradient_of_one_element(device):
    x = torch.arange(3.0, device=device, requires_grad=True)
    taken = x.take(T(-1).to(device))
    assert taken.grad_fn.name() == "TakeBackward0"
    taken.backward()
    assert x.grad.tolist() == [0.0, 0.0, 1.0]


def test_nothing_is_added_to_a_tensor_without_elements(device):
    far = T([0, 5]).to(device)
    for shape, dim, source in (((0, 3), 0, (2, 3)), ((3, 0), -1, (3, 2)), ((3, 0, 2), 1, (3, 2, 2))):
        x = torch.zeros(shape, device=device)
        assert x.index_add(dim, far, torch.ones(source, device=device)).shape == shape
        assert x.index_add_(dim, far, torch.ones(source, device=device)) is x
    with pytest.raises(IndexError):
        torch.zeros(0, device=device).index_add(0, far, torch.ones(2, device=device))


@pytest.mark.parametrize("value", [torch.ones(1), torch.ones(4, 1, 1), 5], ids=["vector", "cube", "number"])
@pytest.mark.parametrize("places", [(2, 0), (0, 9), (0, 9, 3), (0,)])
def test_an_empty_index_scatters_nothing(device, places, value):
    index = torch.zeros(places, dtype=torch.int64, device=device)
    value = value.to(device) if isinstance(value, torch.Tensor) else value
    x = torch.ones(2, 3, device=device)
    assert x.scatter(1, index, value).tolist() == x.tolist()
    assert x.scatter_(0, index, value).tolist() == [[1.0] * 3] * 2
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.scatter(2, index, value)
    if isinstance(value, torch.Tensor):
        assert x.scatter_add(-1, index, value).tolist() == x.tolist()
        with pytest.raises(RuntimeError, match="to be equal to src"):
            x.scatter(0, index, value.long())


def test_no_dimension_is_out_of_range_where_there_is_nothing_to_join_or_move(device):
    nothing = torch.zeros(0, device=device)
    assert torch.cat([nothing, nothing.long()], 7).shape == (0,)
    assert nothing.roll(1, 5).shape == (0,)
    assert torch.zeros(0, 3, device=device).roll((1, 2), (5, -7)).shape == (0, 3)
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.cat([nothing, torch.zeros(1, 2, device=device)], 2)
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.zeros(2, device=device).roll(1, 5)
    with pytest.raises(RuntimeError, match="shifts and dimensions must align"):
        nothing.roll((1, 2), (5,))


@pytest.mark.parametrize("number", [-1, 2**63, 2**64 - 1])
def test_large_unsigned_numbers_are_written(device, number):
    places = T([0, 2]).to(device)
    for write in (
        lambda x: x.scatter(0, places, number),
        lambda x: x.index_fill(0, places, number),
        lambda x: x.masked_fill(T([True, False, True]).to(device), number),
    ):
        assert write(torch.zeros(3, dtype=torch.uint64, device=device)).tolist() == [number % 2**64, 0, number % 2**64]
    if number < 2**63:
        x = torch.zeros(3, dtype=torch.uint64, device=device)
        x[places] = number
        assert x.tolist() == [2**64 - 1, 0, 2**64 - 1]


def test_a_slice_that_is_filled_twice_counts_once(device: str) -> None:
    x, number = torch.zeros(2, 3, device=device), torch.tensor(2.0, device=device, requires_grad=True)
    for place in (1, -2):
        filled = x.index_fill(1, torch.tensor([1, place, 0], device=device), number)
        assert filled.tolist() == [[2, 2, 0], [2, 2, 0]]
        assert torch.autograd.grad(filled.sum(), number)[0].item() == 4


def test_an_index_without_elements_may_be_of_any_dtype() -> None:
    x, nothing = torch.ones(3), torch.zeros(0)
    assert x.gather(0, nothing).shape == (0,)
    assert x.scatter(0, nothing, 5.0).tolist() == x.scatter_add(0, nothing, nothing).tolist() == [1, 1, 1]

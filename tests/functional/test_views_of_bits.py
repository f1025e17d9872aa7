"""`x.view(dtype)`: the memory of a tensor as elements of another dtype."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch

ONE, TWO = 0x3F800000, 0x40000000  # the bits of 1.0 and 2.0 in float32


def test_the_same_bits_in_the_same_memory(device) -> None:
    x = torch.tensor([[1.0, 2.0], [0.0, -1.0]], device=device)
    bits = x.view(torch.int32)
    assert bits.tolist() == [[ONE, TWO], [0, ONE - 2**31]] and bits.device == device
    assert bits.data_ptr() == x.data_ptr() and x.view(torch.float32) is not x
    bits[1, 0] = ONE
    assert x.tolist() == [[1.0, 2.0], [1.0, -1.0]] and x._version == bits._version == 1
    assert x.view(dtype=torch.int32).tolist() == x.T.view(torch.int32).T.tolist() == bits.tolist()
    assert x.T.view(torch.int32).stride() == (1, 2)
    assert bits.view(torch.float32).tolist() == x.tolist()


def test_elements_of_another_size(device) -> None:
    x = torch.tensor([[1.0, 2.0, 0.0, 1.0]] * 3, device=device)
    halves = x.view(torch.int16)
    assert halves.shape == (3, 8) and halves.stride() == (8, 1)
    assert halves[0].tolist() == [0, 0x3F80, 0, 0x4000, 0, 0, 0, 0x3F80]
    wide = x.view(torch.int64)
    assert wide.tolist() == [[ONE + (TWO << 32), ONE << 32]] * 3
    assert halves.view(torch.float32).tolist() == x.tolist() == wide.view(torch.float32).tolist()
    part = x[1:, 2:]
    assert part.view(torch.int64).tolist() == [[ONE << 32]] * 2 and part.view(torch.int64).stride() == (2, 1)
    assert part.view(torch.int64).storage_offset() == 3 and part.view(torch.int16).storage_offset() == 12
    assert x[:1].expand(2, 4).view(torch.float64).stride() == (0, 1)
    wide[0, 0] = 0
    assert x[0].tolist() == [0.0, 0.0, 0.0, 1.0]


def test_classes_of_numbers_name_dtypes() -> None:
    x = torch.zeros(4)
    assert x.view(float).dtype is torch.float64 and x.view(int).dtype is torch.int64 and x.view(bool).shape == (16,)
    assert torch.ones(2, dtype=torch.complex64).view(torch.float32).tolist() == [1.0, 0.0, 1.0, 0.0]
    assert torch.ones(1, dtype=torch.bfloat16).view(torch.int16).tolist() == [0x3F80]
    assert torch.from_numpy(np.array([1], np.int64)).view(torch.uint8).tolist() == [1, 0, 0, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("make", "dtype", "words"),
    [
        (lambda: torch.zeros(2, 3), torch.float64, r"self\.size\(-1\) must be divisible by 2 to view Float as Double"),
        (lambda: torch.zeros(3, 2).T, torch.int16, r"self\.stride\(-1\) must be 1 to view Float as Short"),
        (lambda: torch.zeros(2, 4)[:, ::2], torch.int64, r"self\.stride\(-1\) must be 1 to view Float as Long"),
        (lambda: torch.zeros(2, 4)[:, 1:3], torch.int64, r"self\.storage_offset\(\) must be divisible by 2"),
        (lambda: torch.zeros(3, 3)[:, :2], torch.float64, r"self\.stride\(0\) must be divisible by 2 to view"),
        (lambda: torch.tensor(1.0), torch.int16, r"self\.dim\(\) cannot be 0 to view Float as Short \(different"),
        (lambda: torch.zeros(3, 0), torch.float64, r"self\.stride\(0\) must be divisible by 2"),
        (lambda: torch.zeros(2, 1).expand(2, 4), torch.int16, r"self\.stride\(-1\) must be 1 .*, but got 0"),
    ],
)
def test_sizes_that_do_not_divide(make, dtype, words: str, device) -> None:
    with torch.device(device), pytest.raises(RuntimeError, match=words):
        make().view(dtype)


def test_no_elements(device) -> None:
    assert torch.zeros(0, 3, device=device).view(torch.int16).shape == (0, 6)
    assert torch.zeros(0, device=device).view(torch.float64).shape == (0,)
    assert torch.tensor(1.0, device=device).view(torch.int32).item() == ONE


def test_other_arguments() -> None:
    x = torch.zeros(2)
    for call in (
        lambda: x.view("float32"),
        lambda: x.view(np.int32),
        lambda: x.view(torch.int32, 2),
        lambda: x.view(dtype=torch.int32, size=(2,)),
        lambda: x.view(2, dtype=torch.int32),
    ):
        with pytest.raises(TypeError, match=r"view\(\)"):
            call()


def test_complex_numbers(device) -> None:
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], device=device)
    z = x.view(torch.complex64)
    assert z.tolist() == [1 + 2j, 3 + 4j] and z.data_ptr() == x.data_ptr()
    assert z.view(torch.float32).tolist() == x.tolist()


def test_no_gradient_passes_through(device) -> None:
    w = torch.tensor([1.0, 2.0], device=device, requires_grad=True)
    for kind in (torch.int32, torch.float32, torch.float16):
        bits = w.view(kind)
        assert not bits.requires_grad and bits.is_leaf and bits.grad_fn is None
    y = w * 2
    loss = (y * y).sum()
    y.view(torch.int32).zero_()  # y's history is as it was, but what it saved has changed
    assert y.tolist() == [0.0, 0.0] and y.grad_fn is not None
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        loss.backward()
    y.sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]

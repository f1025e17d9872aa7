"""Complex tensors on devices: made, moved, viewed as real numbers, and computed with as pairs of them."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import tritensor as torch

from ..needs import needs_triton

pytestmark = needs_triton

KINDS = [torch.complex64, torch.complex128]


def drawn(*shape: int, dtype: Any = torch.complex64, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return torch.from_numpy(np.asarray(rng.uniform(-3, 3, shape) + 1j * rng.uniform(-3, 3, shape)).astype(dtype.numpy))


def same(found: Any, wanted: Any, tolerance: float = 0.0) -> None:
    assert found.is_cuda and not wanted.is_cuda
    found, wanted = found.detach().cpu().numpy(), wanted.detach().numpy()
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found, wanted, tolerance, tolerance)


MOVED = {
    "clone": lambda x, at: x.clone(),
    "transposed": lambda x, at: x.t().contiguous(),
    "sliced": lambda x, at: x[1:, ::2].clone(),
    "cat": lambda x, at: torch.cat([x, x[:, :2]], 1),
    "stack": lambda x, at: torch.stack([x, x.flip(0)]),
    "index": lambda x, at: x[at([2, 0, 2])],
    "index_select": lambda x, at: x.index_select(1, at([4, 1])),
    "gather": lambda x, at: x.gather(0, at([[0, 1], [2, 3]])),
    "scatter": lambda x, at: x.scatter(1, at([[0, 1], [2, 3]]), x[2:, 2:4]),
    "put numbers": lambda x, at: x.index_fill(0, at([1, 3]), 2 - 1j),
    "sums at places": lambda x, at: x.scatter_add(0, at([[0, 0], [2, 0]]), x[2:, :2]),
    "masked": lambda x, at: x[x.real > 0],
    "masked fill": lambda x, at: x.masked_fill(x.imag > 0, 5j),
    "where": lambda x, at: torch.where(x.real > 0, x, 1j),
    "nonzero": lambda x, at: (x * (x.real > 0)).nonzero(),
    "real": lambda x, at: x.real + 0,
    "imag": lambda x, at: x.imag.contiguous(),
    "to float": lambda x, at: x.float(),
    "to bool": lambda x, at: (x * (x.real > 0)).bool(),
    "to the other": lambda x, at: x.to(torch.complex64 if x.dtype is torch.complex128 else torch.complex128),
    "from real": lambda x, at: x.real.to(x.dtype),
    "from bool": lambda x, at: (x.real > 0).to(x.dtype),
    "filled": lambda x, at: x.clone().fill_(3 - 1j),
    "written": lambda x, at: x.clone().index_put_((at([0, 2]),), x[1]),
    "copied": lambda x, at: x.clone().copy_(x.real),
}


@pytest.mark.parametrize("dtype", KINDS, ids=str)
@pytest.mark.parametrize("name", MOVED)
def test_what_moves_elements_moves_pairs(name: str, dtype: Any) -> None:
    x, move = drawn(4, 5, dtype=dtype), MOVED[name]
    with torch.cuda.simulate(devices=1):
        same(move(x.cuda(), lambda places: torch.tensor(places).cuda()), move(x, torch.tensor))


@pytest.mark.parametrize("dtype", KINDS, ids=str)
def test_tensors_are_made_and_copied(dtype: Any) -> None:
    with torch.cuda.simulate(devices=2):
        x = drawn(3, 4, dtype=dtype)
        for moved in (x.cuda(), x.to("cuda:1"), x.cuda().to("cuda:1"), x.t().cuda().t(), x.cuda().t().to("cuda:1").t()):
            same(moved, x)
        assert torch.zeros(2, dtype=dtype, device="cuda").tolist() == [0, 0]
        assert torch.full((2,), 1 - 2j, dtype=dtype, device="cuda").tolist() == [1 - 2j] * 2
        assert torch.ones(2, dtype=dtype, device="cuda").tolist() == [1, 1]
        assert torch.arange(3, dtype=dtype, device="cuda").tolist() == [0, 1, 2]
        assert torch.tensor([1j, 2], dtype=dtype, device="cuda")[0].item() == 1j
        assert torch.eye(2, dtype=dtype, device="cuda").tolist() == [[1, 0], [0, 1]]
        assert x.real.to("cuda", dtype).tolist() == x.real.tolist()
        assert repr(torch.tensor([1 + 2j], device="cuda")) == "tensor([1.+2.j], device='cuda:0')"
        file = io.BytesIO()
        torch.save(x.cuda(), file)
        file.seek(0)
        same(torch.load(file), x)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_real_and_imaginary_parts_are_views(device: str) -> None:
    with torch.cuda.simulate(devices=1):
        z = torch.tensor([1 + 2j, 3 - 4j], device=device)
        pairs = torch.view_as_real(z)
        assert pairs.tolist() == [[1, 2], [3, -4]] and (pairs.stride(), pairs.dtype) == ((2, 1), torch.float32)
        assert torch.view_as_complex(pairs).tolist() == z.tolist()
        assert z.imag.storage_offset() == 1 and z[1:].imag.storage_offset() == 3
        z.real[1] = 7
        z.imag = torch.tensor([0.0, 5.0], device=device)
        torch.view_as_real(z)[0, 0] += 1
        assert z.tolist() == [2, 7 + 5j]
        assert torch.real(pairs) is pairs and pairs.real is pairs
        assert torch.view_as_real(torch.tensor(1j, device=device)).tolist() == [0, 1]
        assert torch.view_as_real(z.reshape(2, 1)[:, :0]).shape == (2, 0, 2)
        padded = torch.zeros(1, 3, device=device)[:, :2]
        assert torch.view_as_complex(padded).tolist() == [0]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_gradients_of_parts(device: str) -> None:
    with torch.cuda.simulate(devices=1):
        z = torch.tensor([1 + 2j, 3 - 4j], device=device, requires_grad=True)
        (z.real * 2 + z.imag * 3).backward(torch.tensor([1.0, 10.0], device=device))
        assert z.grad.tolist() == [2 + 3j, 20 + 30j]
        assert z.real.grad_fn.name() == "SelectBackward0"
        assert torch.view_as_real(z).grad_fn.name() == "ViewAsRealBackward0"
        x = torch.tensor([[1.0, 2.0]], device=device, requires_grad=True)
        made = torch.view_as_complex(x)
        assert made.grad_fn.name() == "ViewAsComplexBackward0"
        made.backward(torch.tensor([5 - 6j], device=device))
        assert x.grad.tolist() == [[5, -6]]
        changed = torch.tensor([1 + 1j, 2j], device=device, requires_grad=True)
        out = changed * 1
        out.real.zero_()
        out.backward(torch.tensor([1 + 2j, 3 + 4j], device=device))
        assert changed.grad.tolist() == [2j, 4j]


def test_what_is_no_pair_is_refused() -> None:
    flat = torch.ones(12)
    for call, words in (
        (lambda: torch.view_as_real(flat), "view_as_real is only supported for complex tensors"),
        (lambda: torch.view_as_complex(flat.int()), "view_as_complex is only supported for half, float and double"),
        (lambda: torch.view_as_complex(flat[0]), "Input tensor must have one or more dimensions"),
        (lambda: torch.view_as_complex(flat), "Tensor must have a last dimension of size 2"),
        (lambda: torch.view_as_complex(flat.view(3, 4)[:, ::2]), "Tensor must have a last dimension with stride 1"),
        (lambda: torch.view_as_complex(flat.view(4, 3)[:, :2]), "Tensor must have a stride divisible by 2 for all but"),
        (lambda: torch.view_as_complex(flat[1:3]), "Tensor must have a storage_offset divisible by 2"),
        (lambda: flat.imag, "imag is not implemented for tensors with non-complex dtypes."),
        (lambda: torch.imag(flat), "imag is not implemented for tensors with non-complex dtypes."),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()


def test_what_has_no_kernel_says_so_before_it_changes_anything() -> None:
    with torch.cuda.simulate(devices=1):
        z = drawn(1, 2, 4).cuda()
        before = torch.cuda.memory_allocated()
        with pytest.raises(RuntimeError, match="convolution: complex tensors have no kernel, got tritensor") as raised:
            torch.nn.functional.conv1d(z, z)
        assert "move the operands with .cpu()" in str(raised.value)
        assert torch.cuda.memory_allocated() == before

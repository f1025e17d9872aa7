"""Fourier transforms against the sums that define them, frames and windows, and what the host computes for a device."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda, fft
from tritensor.errors import HostComputationWarning
from tritensor.kernels.hosted import family

from ..needs import needs_triton


def by_sums(x: np.ndarray, sizes: list[int], dims: list[int], sign: int, power: float) -> np.ndarray:
    """sum_j x[j] exp(sign 2 pi i j k / n) / n^power along each dimension, zeros or cuts as the sizes ask."""
    found = x.astype(complex)
    for size, dim in zip(sizes, dims, strict=True):
        moved = np.moveaxis(found, dim, -1)[..., :size]
        moved = np.concatenate([moved, np.zeros((*moved.shape[:-1], size - moved.shape[-1]))], -1)
        places = np.arange(size)
        matrix = np.exp(sign * 2j * np.pi * np.outer(places, places) / size)
        found = np.moveaxis(moved @ matrix / size**power, -1, dim)
    return found


def drawn(*shape: int, complex_: bool = False) -> np.ndarray:
    rng = np.random.default_rng(3)
    return rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if complex_ else 0)


POWERS = {"backward": (0, 1), None: (0, 1), "ortho": (0.5, 0.5), "forward": (1, 0)}


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward", None])
@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize(("s", "dim"), [(None, None), ((3, 6), (0, 2)), ((4,), (-2,)), ((5, -1), None)])
def test_transforms_are_the_sums(s: Any, dim: Any, complex_: bool, norm: str | None) -> None:
    x = drawn(3, 4, 5, complex_=complex_)
    dims = [each % 3 for each in dim] if dim else list(range(0 if s is None else 3 - len(s), 3))
    sizes = [x.shape[d] if n == -1 else n for n, d in zip(s or (-1,) * len(dims), dims, strict=True)]
    forward, backward = POWERS[norm]
    t = torch.from_numpy(x)
    np.testing.assert_allclose(fft.fftn(t, s, dim, norm).numpy(), by_sums(x, sizes, dims, -1, forward), atol=1e-12)
    np.testing.assert_allclose(fft.ifftn(t, s, dim, norm).numpy(), by_sums(x, sizes, dims, 1, backward), atol=1e-12)
    if complex_:
        return
    half = [slice(None)] * 3
    half[dims[-1]] = slice(sizes[-1] // 2 + 1)
    whole = by_sums(x, sizes, dims, -1, forward)
    found = fft.rfftn(t, s, dim, norm)
    np.testing.assert_allclose(found.numpy(), whole[tuple(half)], atol=1e-12)
    cut = by_sums(x, sizes, dims, 1, backward)[tuple(half)]
    np.testing.assert_allclose(fft.ihfftn(t, s, dim, norm).numpy(), cut, atol=1e-12)
    again = fft.irfftn(found, sizes, dims, norm).numpy()
    wanted = by_sums(whole, sizes, dims, 1, backward)
    np.testing.assert_allclose(again, wanted.real, atol=1e-12)
    np.testing.assert_allclose(
        fft.hfftn(torch.from_numpy(cut), sizes, dims, norm).numpy(),
        by_sums(by_sums(x, sizes, dims, 1, backward), sizes, dims, -1, forward).real,
        atol=1e-12,
    )


def test_one_and_two_dimensions_are_cases_of_any() -> None:
    x = torch.from_numpy(drawn(3, 4, 6))
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        of_any = getattr(fft, f"{name}n")
        assert torch.equal(getattr(fft, name)(x, 5, 1), of_any(x, (5,), (1,)))
        assert torch.equal(getattr(fft, f"{name}2")(x), of_any(x, dim=(-2, -1)))
    assert fft.fft(torch.arange(4)).dtype is torch.complex64
    assert fft.rfft(torch.ones(3, dtype=torch.bool)).tolist() == [3, 0]
    assert fft.fftn(torch.tensor(2.0)).item() == 2 and fft.irfft(torch.ones(3)).shape == (4,)
    out = torch.zeros(4, dtype=torch.complex64)
    assert fft.fft(torch.ones(4), out=out) is out and out.tolist() == [4, 0, 0, 0]


def test_frequencies_and_shifts() -> None:
    assert fft.fftfreq(5, 0.5).tolist() == pytest.approx([0, 0.4, 0.8, -0.8, -0.4])
    assert fft.fftfreq(4).tolist() == [0, 0.25, -0.5, -0.25] and fft.fftfreq(0).tolist() == []
    assert fft.rfftfreq(5, 0.5).tolist() == pytest.approx([0, 0.4, 0.8])
    x = torch.arange(15).reshape(3, 5)
    assert torch.equal(fft.fftshift(x), torch.from_numpy(np.fft.fftshift(x.numpy())))
    assert torch.equal(fft.ifftshift(fft.fftshift(x, 1), 1), x) and fft.fftshift(torch.tensor(1)).item() == 1
    assert fft.fftfreq(2, dtype=torch.float64, requires_grad=True).requires_grad


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: fft.fft(x, norm="x"), RuntimeError, 'Invalid normalization mode: "x"'),
        (lambda x: fft.fft(x, 0), RuntimeError, r"Invalid number of data points \(0\) specified"),
        (lambda x: fft.irfft(x, 0), RuntimeError, r"Invalid number of data points \(0\) specified"),
        (lambda x: fft.irfftn(x[:, :1]), RuntimeError, r"Invalid number of data points \(0\) specified"),
        (lambda x: fft.fftn(x, (0,)), RuntimeError, r"Invalid number of data points \(0\) specified"),
        (lambda x: fft.fft(x, -1), RuntimeError, r"Invalid number of data points \(-1\) specified"),
        (lambda x: fft.fft(x, dim=2), IndexError, "Dimension out of range"),
        (lambda x: fft.fft(x.sum()), IndexError, "Dimension specified as -1 but tensor has no dimensions"),
        (lambda x: fft.fftn(x, dim=(0, -2)), RuntimeError, "FFT dims must be unique"),
        (lambda x: fft.fftn(x, (1, 2), (0,)), RuntimeError, "When given, dim and shape arguments must have the same"),
        (lambda x: fft.fftn(x, (1, 2, 3)), RuntimeError, "Got shape with 3 values but input tensor only has 2"),
        (lambda x: fft.rfftn(x.sum()), RuntimeError, "rfftn must transform at least one axis"),
        (lambda x: fft.hfftn(x, dim=()), RuntimeError, "hfftn must transform at least one axis"),
        (lambda x: fft.rfft(x + 1j), RuntimeError, "rfft expects a real input tensor, but got ComplexFloat"),
        (lambda x: fft.ihfftn(x + 1j), RuntimeError, "ihfftn expects a real-valued input tensor, but got ComplexFloat"),
        (lambda x: fft.fft(x.half()), RuntimeError, "Unsupported dtype Half"),
        (lambda x: fft.fft(x, 2.5), TypeError, r"fft_fft\(\): argument 'n' must be int, not float"),
        (lambda x: fft.fft([1.0]), TypeError, "argument 'input'"),
    ],
)
def test_what_is_refused(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(torch.ones(2, 3))


@needs_triton
def test_the_host_computes_for_a_device_which_is_counted_and_said_once() -> None:
    x = drawn(3, 8).astype(np.float32)
    family._said.discard("fft_r2c")
    with cuda.simulate(devices=1), cuda.transfers() as ledger:
        on_device = torch.from_numpy(x).cuda()
        with pytest.warns(HostComputationWarning, match="fft_r2c is computed on the host, for tensors on cuda:0"):
            found = fft.rfft(on_device)
        before = len(ledger.entries)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fft.rfft(on_device)
        assert found.device == torch.device("cuda:0")
        assert [entry.kind for entry in ledger.entries[before:]] == ["d2h", "sync", "h2d"]
        np.testing.assert_array_equal(found.cpu().numpy(), fft.rfft(torch.from_numpy(x)).numpy())


def test_scipy_and_numpy_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    from tritensor.kernels.hosted import fourier

    x = torch.from_numpy(drawn(2, 200, 100))
    libraries = {fourier._scipy(), None}
    found = []
    for library in libraries:
        monkeypatch.setattr(fourier, "_scipy", lambda library=library: library)
        found.append((fft.fft2(x), fft.ifft(x, 7), fft.irfft(fft.rfft(x), 100)))
    for one, other in itertools.pairwise(found):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), atol=1e-12)


TRANSFORMS = {
    "fft": lambda x: fft.fft(x, 5, norm="ortho"),
    "ifft2": lambda x: fft.ifft2(x + 0j),
    "rfftn": lambda x: fft.rfftn(x),
    "rfft of an odd size": lambda x: fft.rfft(x, 5),
    "irfft": lambda x: fft.irfft(x + 1j * (x * x)),
    "irfft of an odd size": lambda x: fft.irfft(x + 1j * (x * x), 5),
    "hfft2": lambda x: fft.hfft2(x + 1j * (x * x), norm="forward"),
    "ihfftn": lambda x: fft.ihfftn(x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_gradients_are_those_of_differences(name: str) -> None:
    x = torch.from_numpy(drawn(2, 4)).requires_grad_()

    def numbers(x: Any) -> Any:
        found = TRANSFORMS[name](x)
        return (torch.view_as_real(found) if found.is_complex() else found).square()

    assert torch.autograd.gradcheck(numbers, x)
    assert torch.autograd.gradgradcheck(numbers, x)
    batch = torch.from_numpy(drawn(3, 2, 4))
    found = torch.vmap(numbers)(batch)
    assert torch.allclose(found, torch.stack([numbers(each) for each in batch]))


def test_a_dimension_that_is_there_twice_is_shifted_twice() -> None:
    x = torch.arange(5)
    assert torch.fft.fftshift(x, (0, -1)).tolist() == torch.fft.fftshift(torch.fft.fftshift(x)).tolist()
    assert torch.fft.ifftshift(x, (0, 0)).tolist() == torch.fft.ifftshift(torch.fft.ifftshift(x)).tolist()


def test_a_wrong_dimension_is_told_before_a_wrong_length() -> None:
    with pytest.raises(IndexError, match=r"^Dimension out of range"):
        torch.fft.fft(torch.ones(2), n=0, dim=3)

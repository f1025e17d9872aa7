"""Frames of signals and their transforms, and windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.signal import windows


def signal(*shape: int, complex_: bool = False) -> Any:
    rng = np.random.default_rng(5)
    return torch.from_numpy(rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if complex_ else 0))


@pytest.mark.filterwarnings("ignore:A window was not provided")
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("complex_", [False, True])
def test_frames_are_transformed_one_by_one(center: bool, complex_: bool) -> None:
    x, window = signal(2, 30, complex_=complex_), torch.hann_window(6, dtype=torch.float64)
    found = torch.stft(x, 8, 3, 6, window, center, normalized=True, return_complex=True)
    padded = np.pad(x.numpy(), ((0, 0), (4, 4)), "reflect") if center else x.numpy()
    shape = np.concatenate([[0], window.numpy(), [0]])
    starts = range(0, padded.shape[1] - 7, 3)
    frames = np.stack([np.fft.fft(padded[:, i : i + 8] * shape, norm="ortho") for i in starts], -1)
    np.testing.assert_allclose(found.numpy(), frames if complex_ else frames[:, :5], atol=1e-12)
    one = torch.stft(x[1], 8, 3, 6, window, center, normalized=True, return_complex=True)
    assert torch.allclose(one, found[1])
    two_sided = torch.stft(x, 8, 3, 6, window, center, normalized=True, onesided=False, return_complex=True)
    np.testing.assert_allclose(two_sided.numpy(), frames, atol=1e-12)
    if not complex_:
        parts = torch.stft(x, 8, 3, 6, window, center, normalized=True, return_complex=False)
        assert parts.shape == (*found.shape, 2) and torch.equal(torch.view_as_complex(parts), found)


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("length", [None, 25, 40])
def test_the_inverse_gives_the_signal_back(length: int | None, normalized: bool) -> None:
    x, window = signal(2, 28), torch.hamming_window(8, dtype=torch.float64)
    frames = torch.stft(x, 8, 2, window=window, normalized=normalized, return_complex=True)
    found = torch.istft(frames, 8, 2, window=window, normalized=normalized, length=length) if length != 40 else None
    if length == 40:
        with pytest.warns(UserWarning, match="The length of signal is shorter than the length parameter"):
            found = torch.istft(frames, 8, 2, window=window, normalized=normalized, length=length)
        assert found.shape == (2, 40) and not found[:, 33:].any()
        found = found[:, :28]
    wanted = x if length is None else x[:, : found.shape[1]]
    assert torch.allclose(found, wanted)
    assert torch.allclose(torch.istft(frames[1], 8, 2, window=window, normalized=normalized), x[1])
    both = torch.stft(x, 8, 2, window=window, onesided=False, normalized=normalized, return_complex=True)
    again = torch.istft(both, 8, 2, window=window, normalized=normalized, onesided=False)
    assert torch.allclose(again, x)
    complex_ = torch.istft(both, 8, 2, window=window, normalized=normalized, onesided=False, return_complex=True)
    assert complex_.is_complex() and torch.allclose(complex_, x + 0j)


@pytest.mark.filterwarnings("ignore:A window was not provided")
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, y: torch.stft(x, 4), "stft requires the return_complex parameter be given for real inputs"),
        (lambda x, y: torch.stft(x, 4, 0, return_complex=True), "expected hop_length > 0, but got hop_length=0"),
        (lambda x, y: torch.stft(x, 4, 2, 5, return_complex=True), "expected 0 < win_length <= n_fft, but got"),
        (lambda x, y: torch.stft(x, 4, 2, 3, torch.ones(2), return_complex=True), "expected a 1D window tensor of"),
        (lambda x, y: torch.stft(x[None, None], 4, return_complex=True), "expected a 1D or 2D tensor"),
        (lambda x, y: torch.stft(x.long(), 4, return_complex=True), "expected a tensor of floating point or complex"),
        (lambda x, y: torch.stft(x, 40, center=False, return_complex=True), "expected 0 < n_fft < 12, but got n_fft="),
        (lambda x, y: torch.stft(x + 0j, 4, onesided=True), "Cannot have onesided output if window or input is"),
        (lambda x, y: torch.stft(x, 4, align_to_window=True), "align_to_window should only be set when center = false"),
        (lambda x, y: torch.istft(x, 4), "istft requires a complex-valued input tensor matching the output from stft"),
        (lambda x, y: torch.istft(y[:, :0], 4), "input tensor cannot be empty."),
        (lambda x, y: torch.istft(y[0], 4), "expected a tensor with 2 or 3 dimensions, but got 1"),
        (lambda x, y: torch.istft(y, 4, onesided=False), "to match n_fft when onesided=False, but got 3"),
        (lambda x, y: torch.istft(y, 6, onesided=True), "to match n_fft / 2 [+] 1 when onesided=True, but got 3"),
        (lambda x, y: torch.istft(y, 4, 2, 1), "expected 0 < hop_length <= win_length"),
        (lambda x, y: torch.istft(y, 4, 2, 5), "expected 0 < win_length <= n_fft"),
        (lambda x, y: torch.istft(y, 4, window=torch.ones(3)), "Invalid window shape. window has to be 1D"),
        (lambda x, y: torch.istft(y, 4, onesided=True, return_complex=True), "Cannot have onesided output if"),
        (lambda x, y: torch.istft(y, 4, window=torch.ones(4) + 0j), "Complex windows are incompatible with return_co"),
        (lambda x, y: torch.istft(y, 4, window=torch.zeros(4)), "window overlap add min: 1"),
    ],
)
def test_what_is_refused(call: Any, words: str) -> None:
    x = torch.arange(12.0)
    y = torch.stft(x, 4, return_complex=True)
    with pytest.raises(RuntimeError, match=words):
        call(x, y)


def test_a_window_that_is_not_given_is_warned_of_and_aligned_frames_begin_with_it() -> None:
    x = signal(12)
    with pytest.warns(UserWarning, match="A window was not provided. A rectangular window will be applied,which"):
        found = torch.stft(x, 8, 2, 4, center=False, align_to_window=True, return_complex=True)
    first = np.fft.rfft(np.concatenate([[0, 0], x.numpy()[:4], [0, 0]]))
    np.testing.assert_allclose(found.numpy()[:, 0], first, atol=1e-12)
    with pytest.warns(UserWarning, match="Please provide the same window used by stft"):
        torch.istft(torch.ones(3, 4) + 0j, 4)


# Values of the formulas in the literature: Harris (1978), and Kaiser's by the power series of I0.
VALUES = {
    "hann": [0, 0.5, 1, 0.5, 0],
    "hamming": [0.08, 0.54, 1, 0.54, 0.08],
    "blackman": [0, 0.34, 1, 0.34, 0],
    "bartlett": [0, 0.5, 1, 0.5, 0],
    "nuttall": [0.0003628, 0.2269824, 1, 0.2269824, 0.0003628],
    "cosine": [0.309017, 0.809017, 1, 0.809017, 0.309017],
    "exponential": [0.1353353, 0.3678794, 1, 0.3678794, 0.1353353],
    "gaussian": [0.1353353, 0.6065307, 1, 0.6065307, 0.1353353],
    "kaiser": [5.277353e-05, 0.2156727, 1, 0.2156727, 5.277353e-05],
}


@pytest.mark.parametrize("name", VALUES)
def test_windows(name: str) -> None:
    made = getattr(windows, name)
    assert made(5).tolist() == pytest.approx(VALUES[name], abs=1e-6)
    periodic = made(4, sym=False)
    assert periodic.tolist() == pytest.approx(VALUES[name][:4], abs=1e-6) and periodic.dtype is torch.float32
    assert made(0).shape == (0,) and made(1, dtype=torch.float64).tolist() == [1]
    assert made(3, requires_grad=True).requires_grad
    of_torch = getattr(torch, f"{name}_window", None)
    if of_torch is not None:
        assert torch.equal(of_torch(4), periodic) and torch.equal(of_torch(5, False), made(5))
        assert of_torch(1, dtype=torch.float16).dtype is torch.float16
        for wrong, words in (((-1,), "requires non-negative window_length, got window_length=-1"),):
            with pytest.raises(RuntimeError, match=f"{name}_window {words}"):
                of_torch(*wrong)
        with pytest.raises(RuntimeError, match=f"{name}_window expects floating point dtypes"):
            of_torch(3, dtype=torch.int64)
    with pytest.raises(ValueError, match="requires non-negative window length, got M=-1"):
        made(-1)
    with pytest.raises(ValueError, match="expects float32 or float64 dtypes, got: "):
        made(3, dtype=torch.int64)
    assert torch.equal(made(3, layout=torch.strided), made(3))
    with pytest.raises(ValueError, match="is implemented for strided tensors only, got: dense"):
        made(3, layout="dense")
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'period'"):
        made(3, period=1)


def test_options_of_windows() -> None:
    assert windows.general_cosine(5, a=[0.5, 0.5]).tolist() == windows.hann(5).tolist()
    assert windows.general_hamming(5, alpha=0.5).tolist() == windows.hann(5).tolist()
    assert windows.exponential(3, center=0, sym=False, tau=2).tolist() == pytest.approx([1, np.exp(-0.5), np.exp(-1)])
    assert torch.hamming_window(3, False, 0.5, 0.5).tolist() == torch.hann_window(3, False).tolist()
    for call, words in (
        (lambda: windows.general_cosine(3, a=[]), "Coefficients cannot be empty"),
        (lambda: windows.exponential(3, tau=0), "Tau must be positive, got: 0 instead."),
        (lambda: windows.exponential(3, center=1), "Center must be None for symmetric windows"),
        (lambda: windows.gaussian(3, std=0), "Standard deviation must be positive, got: 0 instead."),
        (lambda: windows.kaiser(3, beta=-1), "beta must be non-negative, got: -1 instead."),
    ):
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match="Coefficients must be a list/tuple"):
        windows.general_cosine(3, a=1)

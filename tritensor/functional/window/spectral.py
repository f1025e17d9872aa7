"""stft and istft: Fourier transforms of a signal's overlapping frames, and their inverse."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DtypeError, ShapeError, warn
from ...ground.arguments import whole
from ...ground.public import public
from ...kernels.hosted.fourier import COMPLEX_OF, fft_c2c, fft_c2r, fft_r2c
from ...tensors import Tensor
from ...types import dtypes
from ...types.dtypes import FLOATING
from ..creation.creation import place
from ..views.complex_views import view_as_real
from .filling import pad

_RECTANGLE = (
    "A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. Other "
    "windows such as torch.hann_window or torch.hamming_window are recommended to reduce spectral leakage.To suppress "
    "this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`."
)
_RECTANGLE_OF_INVERSE = (
    "A window was not provided. A rectangular window will be applied.Please provide the same window used by stft to "
    "make the inversion lossless.To suppress this warning and use a rectangular window, explicitly set "
    "`window=torch.ones(n_fft, device=<device>)`."
)

_SHORTER = (
    "The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail. "
    "Please check your center and hop_length settings."
)
_ONESIDED = "Cannot have onesided output if window or input is complex"


def _written(x: Tensor | None) -> str:
    return f"torch.{x.dtype.legacy}Tensor{list(x.shape)}" if isinstance(x, Tensor) else "None"


class _Frames:
    """The arguments that `stft` and `istft` share, checked."""

    def __init__(
        self, call: str, input: Tensor, n_fft: int, hop_length: Any, win_length: Any, window: Tensor | None, rest: str
    ) -> None:
        self.size = whole(call, "n_fft", n_fft)
        self.hop = self.size // 4 if hop_length is None else whole(call, "hop_length", hop_length)
        self.length = self.size if win_length is None else whole(call, "win_length", win_length)
        self.head = (
            f"{call}({_written(input)}, n_fft={self.size}, hop_length={self.hop}, win_length={self.length}, "
            f"window={_written(window)}, {rest}) : "
        )

    def check(self, good: bool, words: str, remedy: str = "") -> None:
        """Raise a ShapeError unless an argument is good."""
        if not good:
            raise ShapeError(self.head + words, remedy=remedy)

    def window(self, window: Tensor | None, like: Tensor, kind: dtypes.dtype) -> Tensor:
        """The window in the middle of a frame, zeros beside it."""
        window = like.new_ones(self.length, dtype=kind) if window is None else window
        left = (self.size - self.length) // 2
        return pad(window, (left, self.size - self.length - left)) if self.length < self.size else window


@public(method=True, functional=False, autocast={"cpu": "float32"})
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The short-time Fourier transform (STFT): that of overlapping frames of a signal, or of a batch of signals.

    Args:
        input: (length,) or (batch, length), real or complex.
        n_fft: samples in a frame. hop_length: from one frame's start to the next; a quarter of `n_fft` unless given.
        win_length, window: of `n_fft` or fewer samples, in the middle of the frame; all ones unless given.
        center: whether frames are centred at multiples of `hop_length`: the signal is padded, as `pad_mode` says.
        normalized: divide by the root of `n_fft`. onesided: half of the frequencies, the default for real numbers.
        return_complex: otherwise real and imaginary part are in a last dimension of two.
        align_to_window: without `center`, the first window (not the first frame) begins where the signal does.

    Returns:
        (batch, frequencies, frames).

    Raises:
        ShapeError: lengths that do not fit. DtypeError: integers.
    """
    complex_ = input.is_complex() or (window is not None and window.is_complex())
    shown = "None" if align_to_window is None else int(align_to_window)
    rest = f"normalized={int(normalized)}, onesided={'None' if onesided is None else int(onesided)}, "
    rest += f"return_complex={'None' if return_complex is None else int(return_complex)}, align_to_window={shown}"
    if center and align_to_window is not None:
        raise ShapeError("stft align_to_window should only be set when center = false", "center is True")
    if center and input.ndim in (1, 2) and n_fft > 0:
        around, batched = whole("stft", "n_fft", n_fft) // 2, input.reshape(1, -1, input.shape[-1])
        input = pad(batched, (around, around), pad_mode).reshape(*input.shape[:-1], -1)
    frames = _Frames("stft", input, n_fft, hop_length, win_length, window, rest)
    if return_complex is None and not complex_:
        raise ShapeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release.",
            remedy="pass return_complex=True",
        )
    if window is None:
        warn(_RECTANGLE)
    if input.dtype.category < FLOATING:
        raise DtypeError(frames.head + "expected a tensor of floating point or complex values")
    frames.check(input.ndim in (1, 2), "expected a 1D or 2D tensor")
    x = input if input.ndim == 2 else input.unsqueeze(0)
    frames.check(0 < frames.size <= x.shape[1], f"expected 0 < n_fft < {x.shape[1]}, but got n_fft={frames.size}")
    frames.check(frames.hop > 0, f"expected hop_length > 0, but got hop_length={frames.hop}")
    fits = 0 < frames.length <= frames.size
    frames.check(fits, f"expected 0 < win_length <= n_fft, but got win_length={frames.length}")
    if window is not None:
        words = f"expected a 1D window tensor of size equal to win_length={frames.length}, but got window with size "
        frames.check(tuple(window.shape) == (frames.length,), f"{words}{list(window.shape)}")
    onesided = not complex_ if onesided is None else onesided
    if onesided and complex_:
        raise ShapeError(_ONESIDED)
    if align_to_window and frames.length < frames.size:
        left = (frames.size - frames.length) // 2
        x = pad(x, (left, left))
    cut = x.unfold(-1, frames.size, frames.hop)
    if window is not None or frames.length < frames.size:
        cut = cut * frames.window(window, x, x.dtype)
    transform, kind = (fft_c2c, {}) if complex_ else (fft_r2c, {"onesided": onesided})
    found = transform(cut, dim=(2,), normalization=int(normalized), **kind).transpose(1, 2)
    found = found.squeeze(0) if input.ndim == 1 else found
    return found if return_complex or (return_complex is None and complex_) else view_as_real(found)


@public(method=True, functional=False)
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The inverse short-time Fourier transform: the signal whose `stft` is nearest to the input, by overlap-add.

    The method of Griffin and Lim (1984). Arguments as for `stft`; `length` is that of the result.

    Raises:
        ShapeError: shapes that do not fit, or windows that leave a sample out. DtypeError: a real input.
    """
    rest = f"center={int(center)}, normalized={int(normalized)}, "
    rest += f"onesided={'None' if onesided is None else int(onesided)}, length={length}, "
    frames = _Frames(
        "istft", input, n_fft, hop_length, win_length, window, f"{rest}return_complex={int(return_complex)}"
    )
    if window is None:
        warn(_RECTANGLE_OF_INVERSE)
    if not input.is_complex():
        words = "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        raise DtypeError(words, f"input is {input.dtype}")
    size, hop = frames.size, frames.hop
    frames.check(input.numel() > 0, "input tensor cannot be empty.")
    words = f"expected a tensor with 2 or 3 dimensions, but got {input.ndim}"
    frames.check(input.ndim in (2, 3), words)
    x = input if input.ndim == 3 else input.unsqueeze(0)
    half, count = size // 2 + 1, x.shape[-1]
    onesided = x.shape[-2] != size if onesided is None else onesided
    wanted = half if onesided else size
    kind = "onesided=True" if onesided else "onesided=False"
    words = "expected the frequency dimension (3rd to the last) of the input tensor to match n_fft"
    words += f"{' / 2 + 1' * onesided} when {kind}, but got {x.shape[-2]}"
    frames.check(x.shape[-2] == wanted, words)
    frames.check(0 < hop <= frames.length, "expected 0 < hop_length <= win_length")
    frames.check(0 < frames.length <= size, "expected 0 < win_length <= n_fft")
    good = window is None or tuple(window.shape) == (frames.length,)
    frames.check(good, "Invalid window shape. window has to be 1D and length of `win_length`")
    if return_complex and onesided:
        raise ShapeError(_ONESIDED)
    if window is not None and window.is_complex() and not return_complex:
        raise ShapeError("Complex windows are incompatible with return_complex=False")
    real = next(real for real, kind in COMPLEX_OF.items() if kind is x.dtype)
    shape = frames.window(window, x, x.dtype if return_complex else real)
    x, scale = x.transpose(1, 2), 1 if normalized else 2
    if return_complex:
        parts = fft_c2c(x, dim=(2,), normalization=scale, forward=False)
    else:
        x = x if onesided else x.narrow(-1, 0, half)
        parts = fft_c2r(x, dim=(2,), normalization=scale, last=size)
    parts = parts * shape
    total = size + hop * (count - 1)
    places = (np.arange(count)[:, None] * hop + np.arange(size)).reshape(-1)
    index = place(places, x.device)
    signal = parts.new_zeros((len(x), total)).index_add(1, index, parts.flatten(1))
    weight = (shape * shape).expand(count, size).reshape(-1)
    weight = weight.new_zeros(total).index_add(0, index, weight)
    start = size // 2 if center else 0
    end = total - start if length is None and center else total if length is None else start + length
    signal, weight = signal[:, start:end], weight[start:end]
    least = weight.abs().min().item()
    if not least > 1e-11:
        raise ShapeError(
            f"{frames.head.rstrip(': ')} window overlap add min: 1", f"the least sum of squares is {least:g}"
        )
    signal = signal / weight
    signal = signal.squeeze(0) if input.ndim == 2 else signal
    if end > total:
        warn(_SHORTER)
        signal = pad(signal, (0, end - total))
    return signal

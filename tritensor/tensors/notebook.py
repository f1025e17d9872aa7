"""The display of tensors in notebooks: facts, elements as `repr` elides them, and a picture or a histogram of them.

No more than `_MOST` elements are looked at and copied from a device. The colours of text and background are the page's.
"""

from __future__ import annotations

import base64
import struct
import zlib
from html import escape
from math import prod
from typing import Any

import numpy as np

from ..drivers.allocator import readable
from ..memory.lifted import Lifted
from ..types import dtypes
from .printing import elements_text, format_tensor, history_of, options

_MOST = 1 << 16
_NAN, _INFINITE = (214, 39, 40), (255, 152, 0)  # their colours in pictures


def preformatted(text: str) -> str:
    """Text as it is, in the page's colours."""
    return f'<pre style="margin:0;color:inherit;background:none;overflow:auto;max-height:20em">{escape(text)}</pre>'


def tensor_html(tensor: Any) -> str:
    """The HTML of a tensor, of at most 20 kB; inside of a transformation that of its `repr`."""
    if isinstance(tensor._data, Lifted):
        return preformatted(format_tensor(tensor))
    kind = f"{tuple(tensor.shape)} · {tensor.dtype.name} · {tensor.device}"
    line = escape(" · ".join([kind, readable(tensor.nbytes), *history_of(tensor)]))
    statistics, shown = "", preformatted(_values(tensor))
    if tensor.numel() > 1:
        counts = list(tensor.shape)
        while (size := prod(counts)) > _MOST:
            longest = counts.index(max(counts))
            counts[longest] = max(counts[longest] // 2, _MOST * counts[longest] // size)
        sample = _spaced(tensor, counts)
        note = "" if sample.size == tensor.numel() else f" (of {sample.size:,} elements)"
        statistics = f'<div style="opacity:.7">{_statistics(sample, tensor.is_complex())}{note}</div>'
        shown = f"{_picture(tensor) or _histogram(sample)}{shown}"
    name = f'<b>{escape(type(tensor).__name__)}</b> <span style="opacity:.7">{line}</span>'
    style = "display:flex;flex-wrap:wrap;gap:1.5em;margin-top:.4em"
    return f'<div style="color:inherit">{name}{statistics}<div style="{style}">{shown}</div></div>'


def _taken(tensor: Any, chosen: list[list[int]]) -> np.ndarray:
    """The elements at some places along each dimension, on the host."""
    x, shape = tensor.data, tensor.shape
    # where the most is left out first, so that little is copied
    for dim in sorted(range(len(shape)), key=lambda dim: len(chosen[dim]) / max(shape[dim], 1)):
        if len(chosen[dim]) < shape[dim]:
            x = x.index_select(dim, x.new_tensor(chosen[dim], dtype=dtypes.int64))
    array: np.ndarray = x._to_host()
    return array.astype(np.float32) if tensor.is_floating_point() and array.itemsize < 4 else array


def _spaced(tensor: Any, counts: list[int]) -> np.ndarray:
    """So many elements along each dimension, evenly spaced, of complex ones the magnitudes."""
    ends = [np.linspace(0, extent - 1, count) for extent, count in zip(tensor.shape, counts, strict=True)]
    array = _taken(tensor, [each.astype(int).tolist() for each in ends])
    with np.errstate(all="ignore"):
        return np.abs(array) if array.dtype.kind == "c" else array


def _values(tensor: Any) -> str:
    """The elements as `repr` writes them; of many dimensions, those of the first part that is short enough."""
    x, edge, lead = tensor.data, options.edgeitems, []
    cut = tensor.numel() > min(options.threshold, 1000)

    def chosen(extent: int) -> list[int]:
        whole = not cut or extent <= 2 * edge
        return [*range(extent)] if whole else [*range(edge + 1), *range(extent - edge, extent)]

    while x.ndim and prod(len(chosen(extent)) for extent in x.shape) > 2000:
        x = x[0]
        lead.append("0")
    text = elements_text(_taken(x, [chosen(extent) for extent in x.shape]), 0, cut) if tensor.numel() else "[]"
    text = text if len(text) <= 6000 else text[:6000].rpartition("\n")[0] + "\n..."
    return f"at [{', '.join(lead)}]:\n{text}" if lead else text


def _statistics(sample: np.ndarray, magnitudes: bool) -> str:
    """Extremes, mean, and how many elements are not finite, in a line."""
    finite, texts = sample[np.isfinite(sample)], ["magnitudes:"] * magnitudes
    if finite.size:
        with np.errstate(all="ignore"):
            texts += [f"min {float(finite.min()):.5g}", f"mean {finite.mean():.5g}", f"max {float(finite.max()):.5g}"]
    for name, lost, colour in (("NaN", np.isnan(sample), _NAN), ("inf", np.isinf(sample), _INFINITE)):
        texts += [f'<span style="color:rgb{colour}">■</span> {lost.sum():,} {name}'] * bool(lost.any())
    return " · ".join(texts).replace(": ·", ":")


def _fractions(values: np.ndarray, finite: np.ndarray) -> np.ndarray:
    """From 0 to 1 between the least and the greatest finite value."""
    halves = np.where(finite, values, 0).astype(np.float64) / 2  # whose distances do not overflow
    low, high = (halves[finite].min(), halves[finite].max()) if finite.any() else (0.0, 0.0)
    return np.clip((halves - low) / max(high - low, 1e-300), 0, 1)


def _picture(tensor: Any) -> str:
    """An image of a matrix, or of 1, 3 or 4 channels, of which the fourth is left out; empty for other tensors."""
    shape = list(tensor.shape)
    channels = next((dim for dim in (0, 2) if len(shape) == 3 and shape[dim] in (1, 3, 4)), None)
    plane = [extent for dim, extent in enumerate(shape) if dim != channels]
    if len(plane) != 2 or min(plane) < 4 or max(plane) > 16 * min(plane):
        return ""
    for side in (96, 72, 48):  # noise fits into 9 kB: in grey with the first, in colours with the last
        step = max(1, max(plane) / side)
        array = _spaced(tensor, [each if dim == channels else int(each / step) for dim, each in enumerate(shape)])
        array = (np.moveaxis(array, 0, -1) if channels == 0 else array)[..., : 3 if channels is not None else None]
        if len(data := _png(_pixels(array[..., 0] if channels is not None and array.shape[2] == 1 else array))) < 9000:
            break
    height, width = (round(160 * extent / max(plane)) for extent in plane)
    style = "image-rendering:pixelated;outline:1px solid rgba(128,128,128,.5)"
    source = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    return f'<img alt="the elements" width="{width}" height="{height}" style="{style}" src="{source}">'


def _pixels(array: np.ndarray) -> np.ndarray:
    """Bytes for a PNG: of a matrix indices into the palette, else colours."""
    finite, lost = np.isfinite(array), np.isnan(array)
    if array.ndim == 2:
        return np.where(finite, _fractions(array, finite) * 253, np.where(lost, 254, 255)).astype(np.uint8)
    top = 255 if array.dtype == np.uint8 else 1
    seen = array[finite]
    ranged = seen.size and seen.min() >= 0 and seen.max() <= top
    fractions = np.where(finite, array, 0) / top if ranged else _fractions(array, finite)
    pixels = (fractions * 255).round().astype(np.uint8)
    pixels[~finite.all(-1)], pixels[lost.any(-1)] = _INFINITE, _NAN
    return pixels


def _png(pixels: np.ndarray) -> bytes:
    """A PNG file: of a matrix, greys up to 253 and then the colours of NaN and infinity."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 3 if pixels.ndim == 2 else 2, 0, 0, 0)
    greys = np.linspace(0, 255, 254).astype(np.uint8).repeat(3).tobytes()
    palette = chunk(b"PLTE", greys + bytes([*_NAN, *_INFINITE])) if pixels.ndim == 2 else b""
    lines = zlib.compress(b"".join(b"\0" + row.tobytes() for row in pixels), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + palette + chunk(b"IDAT", lines) + chunk(b"IEND", b"")


def _histogram(sample: np.ndarray) -> str:
    """Bars for the finite values of a sample."""
    finite = np.isfinite(sample)
    if not finite.any():
        return ""
    low, high = sample[finite].min(), sample[finite].max()
    bars = min(int(high) - int(low) + 1, 40) if sample.dtype.kind in "iub" else 40
    counts, wide = np.histogram(_fractions(sample, finite)[finite], bars, (0, 1))[0], 240 / bars
    heights = counts * (56 / counts.max())
    path = "".join(f"M{at * wide:.4g} 60v-{height:.3g}h{wide * 0.9:.3g}V60z" for at, height in enumerate(heights))
    labels = "".join(f"<span>{float(value):.4g}</span>" for value in (low, high))
    return (
        '<div style="width:240px"><svg width="240" height="61" fill="currentColor" role="img" aria-label="histogram">'
        f'<path opacity=".65" d="{path}"/><path d="M0 60h240v1h-240z"/></svg>'
        f'<div style="display:flex;justify-content:space-between;font-size:85%;opacity:.7">{labels}</div></div>'
    )

"""Printing of tensors in PyTorch's format, with its options."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..autograd import leaves
from ..errors import AutogradError
from ..ground.public import public
from ..memory.lifted import Batched
from ..memory.sparse import Sparse
from ..types import dtypes


class _Options:
    precision = 4
    threshold = 1000
    edgeitems = 3
    linewidth = 80
    sci_mode: bool | None = None


options = _Options()
_PROFILES = {"default": (4, 1000, 3, 80), "short": (2, 1000, 2, 80), "full": (4, math.inf, 3, 80)}


@public(functional=False)
def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors print, with PyTorch's options and profiles ("default", "short", "full")."""
    if profile is not None:
        chosen = _PROFILES[profile]
        options.precision, options.threshold, options.edgeitems, options.linewidth = chosen  # type: ignore[assignment]
    for name, value in (
        ("precision", precision),
        ("threshold", threshold),
        ("edgeitems", edgeitems),
        ("linewidth", linewidth),
    ):
        if value is not None:
            setattr(options, name, value)
    options.sci_mode = sci_mode


class _Formatter:
    """One width and one notation for all printed elements, by PyTorch's rules."""

    def __init__(self, values: np.ndarray) -> None:
        self.floating = values.dtype.kind == "f"
        self.whole, self.scientific = self.floating, False
        if not self.floating:
            self.width = max((len(str(value)) for value in values.ravel().tolist()), default=1)
            return
        finite = values[np.isfinite(values) & (values != 0)].astype(np.float64)
        if finite.size:
            sizes = np.abs(finite)
            low, high = float(sizes.min()), float(sizes.max())
            self.whole = bool((finite == np.ceil(finite)).all())
            too_wide = high / low > 1000.0 or high > 1.0e8
            self.scientific = too_wide or (not self.whole and low < 1.0e-4)
            if self.whole:
                self.scientific = too_wide
            if options.sci_mode is not None:  # zeros alone are written as 0. in either mode
                self.scientific = options.sci_mode
        self.width = 1
        if finite.size:  # zeros, infinities and nan do not count: [1., inf], but [0.5000,    inf]
            self.width = max(len(self.text(value)) for value in finite.tolist())

    def text(self, value: float) -> str:
        """One element, right-aligned."""
        if not self.floating:
            return str(value).rjust(self.width)
        if not math.isfinite(value):
            return ("nan" if math.isnan(value) else "inf" if value > 0 else "-inf").rjust(self.width)
        if self.scientific:
            return f"{value:.{options.precision}e}".rjust(self.width)
        if self.whole:
            return f"{value:.0f}.".rjust(self.width)
        return f"{value:.{options.precision}f}".rjust(self.width)


class _ComplexFormatter:
    def __init__(self, values: np.ndarray) -> None:
        self.real, self.imag = _Formatter(values.real), _Formatter(values.imag)

    @property
    def width(self) -> int:
        """The width of an element."""
        return self.real.width + self.imag.width + 1

    def text(self, value: complex) -> str:
        """One element as `a+bj`."""
        imag = self.imag.text(value.imag).strip()
        return f"{self.real.text(value.real)}{'' if imag.startswith('-') else '+'}{imag}j"


def _summary(array: np.ndarray, more: int = 0) -> np.ndarray:
    """The elements of a large array that are printed, and `more` of each dimension that is cut."""
    edge, last = options.edgeitems, options.edgeitems + more
    ends = [
        range(extent) if extent <= edge + last else [*range(edge), *range(extent - last, extent)]
        for extent in array.shape
    ]
    return array[np.ix_(*ends)]  # in one step: an expanded array may be larger than memory in all but the last


def _lines(array: np.ndarray, indent: int, summarize: bool, formatter: Any) -> str:
    edge = options.edgeitems
    if array.ndim == 0:
        return str(formatter.text(array.item()))
    cut = summarize and array.shape[0] > 2 * edge
    if array.ndim == 1:
        per_line = max(1, (options.linewidth - indent) // (formatter.width + 2))
        if cut:
            words = [formatter.text(v) for v in array[:edge].tolist()] + [" ..."]
            words += [formatter.text(v) for v in array[-edge:].tolist()]
        else:
            words = [formatter.text(v) for v in array.tolist()]
        rows = [", ".join(words[start : start + per_line]) for start in range(0, len(words), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(rows) + "]"
    parts = array if not cut else array[:edge]
    texts = [_lines(part, indent + 1, summarize, formatter) for part in parts]
    if cut:
        texts.append("...")
        texts += [_lines(part, indent + 1, summarize, formatter) for part in array[-edge:]]
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(texts) + "]"


def format_tensor(tensor: Any, prefix: str = "tensor(", part: bool = False) -> str:
    """The text of `repr(tensor)`; of a `part` of a sparse tensor without device and dtype."""
    if isinstance(tensor._data, Batched):
        text = format_tensor(leaves.wrap(tensor._data.array)).replace("\n", "\n    ")
        return f"{tensor._data!r}, value=\n    {text}\n)"
    if tensor._data.__class__ is Sparse:
        data, lines = tensor._data, ",\n" + " " * len(prefix)
        names = zip(("indices=tensor(", "values=tensor("), (data.indices, data.array), strict=True)
        texts = [format_tensor(leaves.wrap(array), " " * len(prefix) + name, True) for name, array in names]
        suffixes = [f"device='{tensor.device}'"] if tensor._off_host else []
        suffixes += [f"size={data.shape}", f"nnz={data.indices.shape[1]}"]
        suffixes += [] if tensor.dtype in _implied() else [f"dtype={tensor.dtype!r}"]
        suffixes += ["layout=tritensor.sparse_coo", *history_of(tensor)]
        text = prefix + lines.join([each.lstrip() for each in texts])
        return _with_suffixes(text, suffixes, len(prefix), True) + ")"
    if tensor.is_meta:
        suffixes = [f"device='{tensor.device}'", f"size={tuple(tensor.shape)}"]
        suffixes += [f"dtype={tensor.dtype!r}"] if tensor.dtype is not dtypes.get_default_dtype() else []
        return _with_suffixes(prefix + "...", suffixes + history_of(tensor), len(prefix)) + ")"
    shown = tensor.detach()
    if tensor._off_host and 0 in shown.stride():  # what is expanded is not copied as often as it is seen
        shown = shown[tuple([slice(1) if step == 0 else slice(None) for step in shown.stride()])]
    array = np.broadcast_to(shown._to_host(), tensor.shape)
    dtype = tensor.dtype
    summarize = array.size > options.threshold
    if summarize:
        array = _summary(array, 1)
    if dtype is dtypes.bfloat16 or dtype in dtypes.FLOAT8:
        array = array.astype(np.float32)
    suffixes = []
    if tensor._off_host and not part:
        suffixes.append(f"device='{tensor.device}'")
    if array.size == 0:
        text = "[]"
        if array.ndim != 1 or part:
            suffixes.append(f"size={tuple(array.shape)}")
    else:
        text = elements_text(array, len(prefix), summarize)
    if not part and (dtype not in _implied() or (array.size == 0 and dtype is not dtypes.get_default_dtype())):
        suffixes.append(f"dtype={dtype!r}")
    suffixes += history_of(tensor)
    return _with_suffixes(prefix + text, suffixes, len(prefix)) + ")"


def _implied() -> tuple[dtypes.dtype, ...]:
    """The dtypes that are not printed."""
    return dtypes.get_default_dtype(), dtypes.int64, dtypes.bool_, dtypes.of_scalar(0j)


def elements_text(array: np.ndarray, indent: int, summarize: bool) -> str:
    """The elements alone; to be summarized, long dimensions may be cut to their ends and one element more."""
    shown = _summary(array) if summarize else array
    formatter = _ComplexFormatter(shown) if array.dtype.kind == "c" else _Formatter(shown)
    return _lines(array, indent, summarize, formatter)


def aligned(table: Sequence[Sequence[str]], right: Sequence[int] = (), widest: int = 1000) -> list[str]:
    """The lines of a table, whose columns are as wide as their widest cells; numbers stand in the columns `right`."""
    widths = [min(widest, max(map(len, column))) for column in zip(*table, strict=True)]
    sides = [f"{{:{'><'[at not in right]}{width}}}" for at, width in enumerate(widths)]
    return ["  ".join(sides).format(*row).rstrip() for row in table]


def history_of(tensor: Any) -> list[str]:
    """The suffix about the tensor's gradient, if there is one."""
    try:
        node = tensor.grad_fn
    except AutogradError:  # a view that was made without recording, whose base has changed since
        return ["grad_fn=<Invalid>"]
    if node is not None:
        return [f"grad_fn=<{type(node).__name__}>"]
    return ["requires_grad=True"] if tensor.requires_grad else []


def _with_suffixes(text: str, suffixes: list[str], indent: int, apart: bool = False) -> str:
    """Dtype, device and gradient after the elements, on a new line if the last one would become too long.

    Args:
        apart: they begin on a new line.
    """
    length = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        wide = len(suffix.replace("tritensor.", "torch."))  # lines break where PyTorch's do
        if length + wide + 2 > options.linewidth or apart:
            apart = False
            text += ",\n" + " " * indent + suffix
            length = indent + wide
        else:
            text += ", " + suffix
            length += wide + 2
    return text

"""Discrete Fourier transforms by PyTorch's names: of one dimension, of two, and of any; of complex and real numbers.

`norm` is "backward" (the inverse is divided by the number of points), "ortho" (both by its root) or "forward". Sizes
`n` and `s` cut the input, or fill it with zeros. On a device the transforms are computed on the host, see
`tritensor.kernels.hosted`. Half precision is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .errors import DtypeError, ShapeError, require
from .functional.creation.ranges import arange
from .functional.window.filling import pad
from .ground.arguments import check_tensor, whole
from .kernels.hosted.fourier import COMPLEX_OF, fft_c2c, fft_c2r, fft_r2c
from .operators.autocasting import casting
from .operators.outputs import MADE, Into, takes_out
from .operators.rules import is_half
from .tensors import Tensor
from .types import Device, Dtype, layout
from .types.dtypes import FLOATING, get_default_dtype

__all__ = [
    *("fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift"),
    *("ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"),
]

_BACKWARD, _FORWARD = {"backward": 2, "ortho": 1, "forward": 0}, {"backward": 0, "ortho": 1, "forward": 2}


def _promoted(call: str, input: Tensor, to_complex: bool = False) -> Tensor:
    """The input as floating numbers, or as complex ones.

    Raises:
        DtypeError: half precision.
    """
    check_tensor(f"fft_{call}", "input", 1, input)
    kind = input.dtype
    if is_half(kind):
        raise DtypeError(f"Unsupported dtype {kind.legacy}", f"{call} takes float32 and float64", remedy="x.float()")
    if kind.category < FLOATING:
        kind = get_default_dtype()
    return input.to(COMPLEX_OF.get(kind, kind) if to_complex else kind)


def _real(call: str, input: Tensor) -> Tensor:
    if isinstance(input, Tensor) and input.is_complex():
        words = f"{call} expects a real{'-valued' * call.endswith('n')} input tensor, but got {input.dtype.legacy}"
        raise DtypeError(words, remedy="pass its real part")
    return _promoted(call, input)


def _normalization(norm: str | None, forward: bool) -> int:
    known = _FORWARD if forward else _BACKWARD
    if norm is not None and norm not in known:
        raise ShapeError(f'Invalid normalization mode: "{norm}"', 'norm is "backward", "ortho" or "forward"')
    return known[norm or "backward"]


def _sized(x: Tensor, dims: Sequence[int], sizes: Sequence[int]) -> Tensor:
    """The input cut, or filled with zeros, to sizes of dimensions."""
    missing = [0] * x.ndim
    for dim, size in zip(dims, sizes, strict=True):
        if size < 1:
            raise ShapeError(f"Invalid number of data points ({size}) specified", f"input of shape {list(x.shape)}")
        missing[dim] = max(0, size - x.shape[dim])
        if size < x.shape[dim]:
            x = x.narrow(dim, 0, size)
    if any(missing):
        x = pad(x, [part for each in reversed(missing) for part in (0, each)])
    return x


def _places(call: str, x: Tensor, s: Any, dim: Any) -> tuple[list[int], list[int]]:
    """The dimensions that are transformed, and their sizes."""
    if dim is not None:
        found = [dim] if isinstance(dim, int) else list(dim)
        dims = [_dimension(each, x.ndim) for each in found]
        if len(set(dims)) < len(dims):
            raise ShapeError("FFT dims must be unique", f"dim={tuple(found)}")
    if s is None:
        dims = dims if dim is not None else list(range(x.ndim))
        return dims, [x.shape[each] for each in dims]
    sizes = [whole(f"fft_{call}", "s", each) for each in ([s] if isinstance(s, int) else s)]
    if dim is not None and len(dims) != len(sizes):
        raise ShapeError("When given, dim and shape arguments must have the same length", f"s={s}, dim={dim}")
    if len(sizes) > x.ndim:
        raise ShapeError(f"Got shape with {len(sizes)} values but input tensor only has {x.ndim} dimensions.")
    if dim is None:
        dims = list(range(x.ndim - len(sizes), x.ndim))
    return dims, [x.shape[each] if size == -1 else size for size, each in zip(sizes, dims, strict=True)]


def _dimension(dim: int, ndim: int) -> int:
    require(ndim, IndexError, "Dimension specified as {} but tensor has no dimensions", dim)
    return layout.normalize_dim(dim, ndim)


def _some(call: str, dims: list[int]) -> None:
    if not dims:
        raise ShapeError(f"{call} must transform at least one axis", "dim is empty, or input has no dimensions")


# ---- of any dimensions; `forward` tells a transform from its inverse -------------------------------------------------


def _of_complex(call: str, forward: bool, input: Tensor, s: tuple[int, ...], dim: Any, norm: str | None) -> Tensor:
    real = isinstance(input, Tensor) and not input.is_complex() and call in ("fft", "ifft")
    x = _promoted(call, input, not real)
    dims, sizes = _places(call, x, s, dim)
    x, scale = _sized(x, dims, sizes), _normalization(norm, forward)
    if not dims:
        return x.clone()
    if real:
        found = fft_r2c(x, dim=tuple(dims), normalization=scale, onesided=False)
        return found if forward else found.conj()
    return fft_c2c(x, dim=tuple(dims), normalization=scale, forward=forward)


def _of_real(call: str, forward: bool, input: Tensor, s: tuple[int, ...], dim: tuple[int, ...], norm: str) -> Tensor:
    x = _real(call, input)
    dims, sizes = _places(call, x, s, dim)
    _some(call, dims)
    x, scale = _sized(x, dims, sizes), _normalization(norm, forward)
    if forward:
        return fft_r2c(x, dim=tuple(dims), normalization=scale)
    found = fft_r2c(x, dim=tuple(dims[-1:]), normalization=scale).conj()
    return fft_c2c(found, dim=tuple(dims[:-1]), normalization=scale, forward=False) if dims[1:] else found


def _to_real(call: str, forward: bool, input: Tensor, s: list[int], dim: list[int] | int, norm: str | None) -> Tensor:
    x = _promoted(call, input, True)
    dims, sizes = _places(call, x, s, dim)
    _some(call, dims)
    given = s is not None and (s if isinstance(s, int) else s[-1]) != -1
    last = sizes[-1] if given else 2 * (x.shape[dims[-1]] - 1)
    if last < 1:
        raise ShapeError(f"Invalid number of data points ({last}) specified", f"input of shape {list(x.shape)}")
    x, scale = _sized(x, dims, [*sizes[:-1], last // 2 + 1]), _normalization(norm, forward)
    if forward:
        if dims[1:]:
            x = fft_c2c(x, dim=tuple(dims[:-1]), normalization=scale)
        return fft_c2r(x.conj(), dim=tuple(dims[-1:]), normalization=scale, last=last)
    return fft_c2r(x, dim=tuple(dims), normalization=scale, last=last)


_WHAT = {
    "fft": (_of_complex, True, "The discrete Fourier transform (FFT)", "complex"),
    "ifft": (_of_complex, False, "The inverse discrete Fourier transform", "complex"),
    "rfft": (_of_real, True, "The Fourier transform of real numbers, half of it", "complex"),
    "irfft": (_to_real, False, "The inverse of `rfft{}`, of half a spectrum", "real"),
    "hfft": (_to_real, True, "The (real) Fourier transform of half a Hermitian signal", "real"),
    "ihfft": (_of_real, False, "The inverse of `hfft{}`, half of it", "complex"),
}
_DOC = """{what}, along {along}.

    Args:
        {sizes}
        norm: see the module.
        out: receives the result.

    Returns:
        A {kind} tensor of the input's precision.

    Raises:
        ShapeError: a size below 1, dimensions that occur twice, another `norm`. DtypeError: half precision{real}.
    """


def _declare(name: str, ending: str) -> Any:
    """The function of one dimension (no ending), of two ("2") or of any ("n")."""
    compute, forward, what, kind = _WHAT[name]
    call = name + (ending and "n")

    if not ending:

        def function(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
            sizes = None if n is None else [whole(f"fft_{name}", "n", n)]
            if sizes and sizes[0] < 1:  # -1 is the input's size in those of many dimensions alone
                layout.normalize_dim(whole(f"fft_{name}", "dim", dim), input.ndim)  # a wrong one is told first
                raise ShapeError(f"Invalid number of data points ({n}) specified", "n is at least 1")
            return compute(name, forward, input, sizes, whole(f"fft_{name}", "dim", dim), norm)

    elif ending == "2":

        def function(  # type: ignore[misc]
            input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None
        ) -> Tensor:
            return compute(call, forward, input, s, dim, norm)

    else:

        def function(  # type: ignore[misc]
            input: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None
        ) -> Tensor:
            return compute(call, forward, input, s, dim, norm)

    function.__name__ = function.__qualname__ = name + ending
    function.__doc__ = _DOC.format(
        what=what.format(ending),
        kind=kind,
        along={
            "": "one dimension",
            "2": "two dimensions",
            "n": "the dimensions `dim`, the last ones that `s` has, or all",
        }[ending],
        sizes="n: the number of points."
        if not ending
        else "s: the number of points along each dimension; -1 for the input's.",
        real=", or a complex input" if compute is _of_real else "",
    )
    return takes_out(_CAST)(casting(function, f"fft_{name}{ending}", {"cpu": "float32"}))


_CAST = Into("cast")
fft, fft2, fftn = (_declare("fft", ending) for ending in ("", "2", "n"))
ifft, ifft2, ifftn = (_declare("ifft", ending) for ending in ("", "2", "n"))
rfft, rfft2, rfftn = (_declare("rfft", ending) for ending in ("", "2", "n"))
irfft, irfft2, irfftn = (_declare("irfft", ending) for ending in ("", "2", "n"))
hfft, hfft2, hfftn = (_declare("hfft", ending) for ending in ("", "2", "n"))
ihfft, ihfft2, ihfftn = (_declare("ihfft", ending) for ending in ("", "2", "n"))


# ---- frequencies -----------------------------------------------------------------------------------------------------


@takes_out(MADE)
def fftfreq(
    n: int, d: float = 1.0, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """The sample frequencies of an `fft` of `n` numbers, in cycles per unit of the sample distance `d`.

    >>> import tritensor as torch
    >>> torch.fft.fftfreq(5, 0.5)
    tensor([ 0.0000,  0.4000,  0.8000, -0.8000, -0.4000])
    """
    places = arange(n, dtype=dtype or get_default_dtype(), device=device)
    places[(n + 1) // 2 :] -= n
    return (places * (1.0 / (n * d) if n else 1.0)).requires_grad_(bool(requires_grad))


@takes_out(MADE)
def rfftfreq(
    n: int, d: float = 1.0, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False
) -> Tensor:
    """The sample frequencies of an `rfft` of `n` numbers, `n // 2 + 1` of them; see `fftfreq`."""
    places = arange(n // 2 + 1, dtype=dtype or get_default_dtype(), device=device)
    return (places * (1.0 / (n * d))).requires_grad_(bool(requires_grad))


def _rolled(input: Tensor, dim: int | None, extra: int) -> Tensor:
    dims = tuple(range(input.ndim)) if dim is None else layout.integers("fft_fftshift", "dim", (dim,))
    dims = tuple([layout.normalize_dim(each, input.ndim) for each in dims])  # one that is there twice is shifted twice
    return input.roll([(input.shape[each] + extra) // 2 for each in dims], dims) if dims else input.clone()


def fftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Shifts the zero frequency to the middle of the dimensions `dim`, or of all."""
    check_tensor("fft_fftshift", "input", 1, input)
    return _rolled(input, dim, 0)


def ifftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`."""
    check_tensor("fft_ifftshift", "input", 1, input)
    return _rolled(input, dim, 1)

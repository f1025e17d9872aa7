"""Resizing of signals, pictures and volumes: `interpolate`, and its older names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...autograd.gradients import called
from ...autograd.names import node_name
from ...autograd.precision import casts
from ...errors import ArgumentError, ShapeError, UnsupportedError, require, warn
from ...ground.arguments import check_tensor, wrong_type
from ...ground.public import public
from ...kernels.window.resampling import resampled
from ...kernels.window.resampling_maps import Map, rule
from ...operators.autocasting import cast
from ...tensors import Tensor
from ...types import dtypes
from ...types.formats import contiguous_format, suggested
from ..views.view_operators import standing_alone

# The modes and the number of dimensions that they resize, 0 for any.
_MODES = {"nearest": 0, "nearest-exact": 0, "area": 0, "linear": 1, "bilinear": 2, "bicubic": 2, "lanczos": 2}
_MODES["trilinear"] = 3
AREAS_AUTOCAST = {"cpu": "float32"}  # of averages in three dimensions
_SPATIAL = "Please provide input tensor in (N, C, d1, d2, ...,dK) format and"


@public(package=False)
def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes (up- or downsamples) an input (N, C, *sizes), of one to three sizes, to `size` or by `scale_factor`.

    >>> import tritensor as torch
    >>> torch.nn.functional.interpolate(torch.tensor([[[1.0, 3.0]]]), size=4, mode="linear")
    tensor([[[1.0000, 1.5000, 2.5000, 3.0000]]])

    Args:
        size: the new sizes, one for all dimensions or one for each.
        scale_factor: the same as factors; new sizes are rounded down.
        mode: "nearest", "nearest-exact" (which rounds as Pillow does), "area" (means), and by the number of sizes
            "linear"; "bilinear" and "bicubic" (Keys' with a = -0.75), "lanczos"; "trilinear".
        align_corners: whether the centres of the first and the last elements stay in place, or their outer edges; for
            the linear and cubic modes.
        recompute_scale_factor: whether coordinates follow from the rounded sizes, or from `scale_factor`.
        antialias: whether pictures that become smaller are filtered first, as Pillow's are: "bilinear", "bicubic" (with
            a = -0.5) and "lanczos".

    Raises:
        ValueError: options that do not go together, or sizes that do not match the input's. ShapeError: sizes below 1,
            or no channels. NotImplementedError: a rank that the mode does not have, or no such mode. DtypeError:
            integers, but uint8 in the modes other than "area".
    """
    return _interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)


@public(package=False)
def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate` under its older name, with a warning."""
    _warn_of("upsample", input)
    return _interpolate(input, size, scale_factor, mode, align_corners)


@public(package=False)
def upsample_nearest(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """`interpolate` with `mode="nearest"` under its older name, with a warning."""
    _warn_of("upsample_nearest", input)
    return _interpolate(input, size, scale_factor, "nearest", None)


@public(package=False)
def upsample_bilinear(
    input: Tensor, size: int | Sequence[int] | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """`interpolate` with `mode="bilinear"` and `align_corners=True` under its older name, with a warning."""
    _warn_of("upsample_bilinear", input)
    return _interpolate(input, size, scale_factor, "bilinear", True)


def resized(x: Tensor, maps: Sequence[Map], name: str, keeps_format: bool = True) -> Tensor:
    """`x` resampled by maps of dimensions after the channels, in its memory format, with an operator's name."""
    if not keeps_format or suggested(tuple(x.shape), x.stride()) is contiguous_format:
        return called(name if name == "CopySlices" else node_name(name), resampled(x, maps))
    rank = x.ndim
    last = resampled(x.permute(0, *range(2, rank), 1), [each._replace(dim=each.dim - 1) for each in maps])
    return standing_alone(last.permute(0, rank - 1, *range(1, rank - 1)), name)


def _warn_of(name: str, input: Tensor) -> None:
    check_tensor(name, "input", 1, input)
    warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.")


def _interpolate(
    x: Tensor,
    size: Any,
    scale_factor: Any,
    mode: str,
    corners: bool | None,
    recompute: Any = None,
    smooth: bool = False,
) -> Tensor:
    if mode in ("nearest", "area", "nearest-exact") and corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    rank = x.ndim - 2
    sizes, scales = _sizes(x, size, scale_factor, bool(recompute), mode)
    if smooth and not (mode in ("bilinear", "bicubic", "lanczos") and rank == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    _check_mode(mode, rank, bool(corners), smooth)
    words = "adaptive_avg_pool" if mode == "area" else f"upsample_{mode.replace('-', '_')}"
    words = f"{words}{rank}d"
    if casts.on:
        (x,) = cast(_policy(mode, rank), x)
    if not (x.dtype.is_floating_point or (x.dtype is dtypes.uint8 and mode != "area")):
        raise UnsupportedError(
            f"\"{words}\" not implemented for '{x.dtype.legacy}'",
            f"interpolate takes floating dtypes{' and uint8' * (mode != 'area')}, got {x.dtype}",
            remedy="convert the input with .to(dtype)",
        )
    _check_sizes(tuple(x.shape), sizes, words)
    kind = "float64" if x.dtype is dtypes.float64 else "float32"
    maps = []
    by_sizes = mode == "nearest" and _goes_by_sizes(x, sizes)
    for dim, (old, new, scale) in enumerate(zip(x._data.shape[2:], sizes, scales, strict=True), 2):
        how = rule("linear", bool(corners), scale, kind)
        if mode.startswith("nearest"):
            how = rule("nearest", None if by_sizes and new in (old, 2 * old) else scale, mode == "nearest-exact")
        elif mode == "area":
            how = rule("area")
        elif smooth:
            how = rule("filtered", mode, bool(corners), scale, kind)
        elif mode == "bicubic":
            how = rule("cubic", bool(corners), scale, kind)
        maps.append(Map(dim, old, new, how))
    if x.dtype is dtypes.uint8 and not mode.startswith("nearest"):
        for each in reversed([each for each in maps if each.source != each.size]):
            # PyTorch and Pillow round to bytes in between
            x = resized(x.float(), [each], words).add(0.5).floor().clamp(0, 255)
        return x.to(dtypes.uint8)
    if mode == "nearest-exact":
        words = f"upsample_nearest{'_exact'}{rank}d"
    if mode == "area" and rank == 1:
        words = "squeeze.1"  # as PyTorch's, which takes its means in two dimensions
    return resized(x, maps, f"{words}_aa" if smooth else words)


def _policy(mode: str, rank: int) -> dict[str, str]:
    """What autocast casts the input to: PyTorch lists the functions of all modes but lanczos, and areas in 3-D."""
    if mode == "area":
        return AREAS_AUTOCAST if rank == 3 else {}
    return {} if mode == "lanczos" else {"cuda": "float32"}


def _goes_by_sizes(x: Tensor, sizes: list[int]) -> bool:
    """True if PyTorch's "nearest" leaves the factor of an equal or a doubled size aside: some of its kernels do."""
    if x.shape[1] > 3 and suggested(tuple(x.shape), x.stride()) is not contiguous_format:
        return True
    return len(sizes) == 2 and sum(sizes) <= 128


def _sizes(x: Tensor, size: Any, factor: Any, recompute: bool, mode: str) -> tuple[list[int], list[float | None]]:
    """The new sizes, and the factors that coordinates follow from, None where these are the ratios of sizes."""
    shape = list(x._data.shape[2:])
    require(size is None or factor is None, ValueError, "only one of size or scale_factor should be defined")
    require(size is not None or factor is not None, ValueError, "either size or scale_factor should be defined")
    got = f"but got input with spatial dimensions of {shape} and"
    if size is not None:
        require(not recompute, ValueError, "recompute_scale_factor is not meaningful with an explicit size.")
        if not isinstance(size, (list, tuple)):
            if isinstance(size, bool) or not hasattr(type(size), "__index__"):
                raise wrong_type("interpolate", "size", "int or a sequence of ints", size, 2)
            size = [size] * len(shape)
        if len(size) != len(shape):
            raise ValueError(
                f"Input and output must have the same number of spatial dimensions, {got} output size of {size}. "
                f"{_SPATIAL} output size in (o1, o2, ...,oK) format."
            )
        if not all(hasattr(type(each), "__index__") for each in size):
            raise ArgumentError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size "
                f"with types {[type(each) for each in size]}"
            )
        return [each.__index__() for each in size], [None] * len(shape)
    factors = list(factor) if isinstance(factor, (list, tuple)) else [factor] * len(shape)
    if len(factors) != len(shape):
        raise ValueError(
            f"Input and scale_factor must have the same number of spatial dimensions, {got} scale_factor of shape "
            f"{factor}. {_SPATIAL} scale_factor in (s1, s2, ...,sK) format."
        )
    if not all(isinstance(each, (int, float)) for each in factors):
        raise wrong_type("interpolate", "scale_factor", "float or a sequence of floats", factor, 3)
    rounded = [int(old * each) for old, each in zip(shape, factors, strict=True)]
    recompute = recompute or mode == "area"
    return rounded, [None if recompute or each <= 0 else float(each) for each in factors]


def _check_mode(mode: str, rank: int, corners: bool, smooth: bool) -> None:
    wanted = _MODES.get(mode, -1)
    if 1 <= rank <= 3 and wanted in (0, rank):
        require(mode != "lanczos" or not corners, ValueError, "Lanczos mode does not support align_corners=True")
        require(mode != "lanczos" or smooth, ValueError, "Lanczos mode requires antialias=True")
        return
    if 1 <= rank <= 3 and mode.endswith("linear"):
        raise NotImplementedError(f"Got {rank + 2}D input, but {mode} mode needs {wanted + 2}D input")
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {rank + 2}D) for the modes: nearest | linear | "
        f"bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
    )


def _check_sizes(shape: tuple[int, ...], sizes: list[int], words: str) -> None:
    """Raise unless there is something to resize, and to make."""
    if words.startswith("adaptive"):
        if min(sizes) < 0:
            got = "{" + ", ".join(map(str, sizes)) + "}"
            raise ShapeError(f"{words}: elements of output_size must be greater than or equal to 0 but received {got}")
        empty = [dim for dim in range(2, len(shape)) if not shape[dim]]
        if empty:
            raise ShapeError(
                f"{words}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(shape)} with dimension {empty[0]} being empty"
            )
        return
    if min(*shape[2:], *sizes) <= 0:
        letters = "DHW"[-len(sizes) :]
        old, new = (
            ", ".join(f"{letter}: {size}" for letter, size in zip(letters, each, strict=True))
            for each in (shape[2:], sizes)
        )
        joint = "and output" if len(sizes) == 1 else "output"
        raise ShapeError(f"Input and output sizes should be greater than 0, but got input ({old}) {joint} ({new})")
    if not shape[1]:
        raise ShapeError(f"Non-empty {len(shape)}D data tensor expected but got a tensor with sizes {list(shape)}")

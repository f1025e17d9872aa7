"""Layers that resize signals, pictures and volumes."""

from __future__ import annotations

from collections.abc import Sequence

from .layer import Layer, declared

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


@declared("interpolate")
class Upsample(Layer):
    """Upsamples (resizes) inputs (N, C, *sizes) to `size` or by `scale_factor`; see `functional.interpolate`.

    >>> import tritensor as torch
    >>> torch.nn.Upsample(scale_factor=2)(torch.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    """

    size: int | Sequence[int] | None = None
    scale_factor: float | tuple[float, ...] | None = None
    mode: str = "nearest"
    align_corners: bool | None = None
    recompute_scale_factor: bool | None = None

    def _prepare(self) -> None:
        self.name, factor = type(self).__name__, self.scale_factor
        if isinstance(factor, tuple):
            self.scale_factor = tuple(map(float, factor))
        else:
            self.scale_factor = float(factor) if factor else None

    def extra_repr(self) -> str:
        """The factor or the size, and the mode."""
        wanted = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{wanted}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsamples images (N, C, H, W) by copying the nearest pixel."""

    def __init__(
        self, size: int | Sequence[int] | None = None, scale_factor: float | tuple[float, float] | None = None
    ) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Upsamples images (N, C, H, W) by bilinear interpolation, with the corners' centres in place."""

    def __init__(
        self, size: int | Sequence[int] | None = None, scale_factor: float | tuple[float, float] | None = None
    ) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)

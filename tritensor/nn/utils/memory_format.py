"""Weights of convolutions in another memory format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..convolution import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _declare(dims: int, *kinds: Any) -> Callable[[Module, Any], Module]:
    def convert(module: Module, memory_format: Any) -> Module:
        """Convert the weights of all Conv{dims}d and ConvTranspose{dims}d in a module to a memory format; the module.

        Unlike `module.to(memory_format=...)` other weights stay as they are.

        >>> import tritensor as torch
        >>> layer = torch.nn.Conv{dims}d(8, 4, 3)
        >>> _ = torch.nn.utils.convert_conv{dims}d_weight_memory_format(layer, torch.{last})
        >>> layer.weight.is_contiguous(memory_format=torch.{last})
        True
        """
        for each in module.modules():
            if isinstance(each, kinds):
                each.weight.data = each.weight.detach().clone(memory_format=memory_format)
        return module

    convert.__name__ = convert.__qualname__ = f"convert_conv{dims}d_weight_memory_format"
    convert.__doc__ = (convert.__doc__ or "").format(dims=dims, last="channels_last" + "_3d" * (dims > 2))
    return convert


convert_conv2d_weight_memory_format = _declare(2, Conv2d, ConvTranspose2d)
convert_conv3d_weight_memory_format = _declare(3, Conv3d, ConvTranspose3d)

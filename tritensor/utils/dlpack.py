"""DLPack under PyTorch's names: capsules, and the numbers of its kinds of devices."""

from __future__ import annotations

from enum import IntEnum

from ..functional.creation.exchange import from_dlpack, to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]

_NAMES = """CPU=1 CUDA=2 CUDAHost=3 OpenCL=4 Vulkan=7 Metal=8 VPI=9 ROCM=10 ROCMHost=11 ExtDev=12 CUDAManaged=13
    OneAPI=14 WebGPU=15 Hexagon=16 MAIA=17"""
DLDeviceType = IntEnum("DLDeviceType", [(f"kDL{n}", int(v)) for n, v in (e.split("=") for e in _NAMES.split())])  # type: ignore[misc]

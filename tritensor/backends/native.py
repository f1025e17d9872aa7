"""Native code for tensors of the CPU: calls that repeat run the kernels of devices, where that is quicker than NumPy.

Kernels are made in the background by Triton and LLVM (`pip install 'tritensor[native]'`), and kept on disk.

>>> import tritensor
>>> tritensor.backends.native.enabled = False
>>> tritensor.backends.native.enabled
False
"""

from __future__ import annotations

import sys
from types import ModuleType

from .. import settings
from ..runtime.choice import available

__all__ = ["is_available"]

#: whether native code is used where it is quicker; set it to False for NumPy's results, bit for bit
enabled: bool


def is_available() -> bool:
    """Whether kernels can be made here: on Linux and x86-64, where Triton and llvmlite are installed."""
    return available()


class _Module(ModuleType):
    @property
    def enabled(self) -> bool:
        return settings.native_cpu.value != "0"

    @enabled.setter
    def enabled(self, value: bool) -> None:
        settings.native_cpu.value = "" if value else "0"


sys.modules[__name__].__class__ = _Module

"""`python -m tritensor doctor`: what is installed, what is missing, and how to install it."""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import sys
from collections.abc import Sequence

from .. import cuda, settings
from ..drivers import active
from ..drivers import doctor as missing
from ..drivers.selection import engine_of, lacks_native
from ..runtime import tuned
from ..runtime.choice import available

_PACKAGES = ("numpy", "ml_dtypes", "safetensors", "tqdm", "triton", "llvmlite", "cuda-core", "cuda-bindings")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns 0."""
    argparse.ArgumentParser(
        prog="python -m tritensor doctor", description="Say what is installed, what is missing and how to install it."
    ).parse_args(arguments)
    print(report())
    return 0


def report() -> str:
    """The state of this installation, as text.

    >>> "numpy" in report()
    True
    """
    lines = [
        f"tritensor {_version('tritensor')}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}",
        "",
    ]
    lines += [f"  {package:<14} {_version(package)}" for package in _PACKAGES]
    driver = active()
    lines.append("")
    if driver is None:
        lines.append("No CUDA device is available:")
        lines += [f"  {line}" for line in missing()]
        lines.append("  Simulated ones need no GPU: TRITENSOR_SIMULATE_CUDA=1, or tritensor.cuda.simulate()")
    else:
        lines.append(f"{driver.device_count()} CUDA device(s), {driver.kind}:")
        for index in range(driver.device_count()):
            free, total = cuda.mem_get_info(index)
            major, minor = cuda.get_device_capability(index)
            lines.append(
                f"  cuda:{index}  {cuda.get_device_name(index)}, capability {major}.{minor}, "
                f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB free"
            )
    if _version("triton") == "not installed":
        hint = 'Fix: pip install "tritensor[triton]"' if sys.platform == "linux" else "It is published for Linux only"
        lines += ["", f"Simulating CUDA devices needs Triton. {hint}"]
    else:
        lack = lacks_native()
        lines += ["", f"Kernels on simulated devices are run by: {engine_of()}" + (f" ({lack})" if lack else "")]
    if available():
        found = tuned.ranges()
        where = f"measured here, {len(found)} operators, {tuned.path()}" if found else "those of the declarations"
        lines += [f"Sizes of CPU tensors that native code computes: {where} (python -m tritensor tune)"]
    lines += ["", "Settings (environment variable, value now, meaning):"]
    chosen = [value for value in vars(settings).values() if isinstance(value, settings.Setting)]
    lines += [f"  {setting.variable:<24} {setting.value!r:<10} {setting.meaning}" for setting in chosen]
    return "\n".join(lines)

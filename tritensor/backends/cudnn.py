"""The flags of `torch.backends.cudnn`, which programs set. Convolutions are Triton kernels here: no flag changes them,
they are deterministic always, and tuned by their tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

enabled, benchmark, benchmark_limit, deterministic, allow_tf32 = True, False, 10, False, True


def is_available() -> bool:
    """False: cuDNN is not used."""
    return False


def version() -> int | None:
    """None: cuDNN is not used."""
    return None


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """Set the flags for a block."""
    wanted = dict(locals())
    before = {name: globals()[name] for name in wanted}
    globals().update(wanted)
    try:
        yield
    finally:
        globals().update(before)

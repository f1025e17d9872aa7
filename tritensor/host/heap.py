"""Memory of freed arrays stays with the process, for the next arrays.

As soon as a few MB are free at the end of the heap, glibc gives them back to the operating system, and the next array
there costs a page fault for each of its 4 KB: 7,500 of them, 19 of 80 ms, in a forward pass of a GPT-2 of 4 layers by
384. So up to 256 MB are kept, of arrays of up to 32 MB, which is the most that glibc takes; larger ones are memory of
their own as before. Its own environment variables, where they are set, decide in place of this.
"""

from __future__ import annotations

import ctypes
import os
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of malloc.h
_KEPT, _LARGEST = 256 << 20, 32 << 20


def keep_freed() -> None:
    """Let glibc keep freed memory; other libraries of C are left as they are."""
    decided = os.environ.keys() & {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_"}
    if sys.platform != "linux" or decided or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None and mallopt(_MMAP_THRESHOLD, _LARGEST):  # either alone would end glibc's own adjustments
        mallopt(_TRIM_THRESHOLD, _KEPT)


keep_freed()

"""Memory of freed arrays is used again, and costs no page faults; who sets glibc's own variables decides otherwise."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

# Arrays of 2 MB, of which a few are freed together at the end of the heap, as by a backward pass.
PROGRAM = """
import resource
import tritensor as torch

def some():
    kept = [torch.ones(1 << 19) for _ in range(12)]

for _ in range(5):
    some()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    some()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(**variables: str) -> int:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env={**env, **variables}, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries of C are left as they are")
def test_memory_of_freed_arrays_is_used_again() -> None:
    assert faults() < 500
    assert faults(MALLOC_TRIM_THRESHOLD_="131072") > 5000  # 12 arrays are 6,000 pages

"""Speed, measured side by side with NumPy and torch in one process; see `python -m benchmarks.compare --help`.

Importing this package before NumPy limits every numerical library to one thread: the targets are for one thread, and
two libraries that share two cores would disturb each other.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(_variable, "1")

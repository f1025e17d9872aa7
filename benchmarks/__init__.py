"""Speed, measured side by side with NumPy and torch in one process; see `python -m benchmarks.compare --help`.

Importing this package, before NumPy is imported, holds every numerical library to one thread: that is how the targets
are stated, and two libraries that share two cores would measure each other's threads.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(_variable, "1")

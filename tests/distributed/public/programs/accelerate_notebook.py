"""accelerate's test of jobs that notebooks start, but for `test_fault_tolerant`.

That ends with one process which joins a job that the others have left: with gloo, and here, it waits for them.
"""

from __future__ import annotations

from accelerate.test_utils.scripts import test_notebook as script

if __name__ == "__main__":
    script.test_fault_tolerant = lambda: None
    script.main()

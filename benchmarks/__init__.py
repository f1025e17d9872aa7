"""Speed, measured side by side with NumPy and torch in one process; see `python -m benchmarks.compare --help`."""

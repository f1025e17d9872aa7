"""Libraries that are written for PyTorch, unmodified, run here and beside it: `python -m tests.libraries`."""

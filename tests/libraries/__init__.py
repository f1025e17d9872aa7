"""Libraries that are written on top of PyTorch, unmodified, run here and beside PyTorch: `python -m tests.libraries`."""

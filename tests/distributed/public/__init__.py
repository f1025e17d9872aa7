"""Public distributed programs, run with tritensor and with PyTorch, whose results are compared: see `__main__`."""

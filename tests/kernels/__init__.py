"""Kernels of public libraries, as they are, on simulated devices: see `__main__`."""

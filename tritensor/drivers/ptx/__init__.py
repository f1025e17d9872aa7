"""The PTX of compiled kernels, run in NumPy: what a simulated device does with compiled code."""

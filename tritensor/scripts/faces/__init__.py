"""What libraries touch of PyTorch, by PyTorch's module names, beside what tritensor has: see `tritensor.scripts.names`.

A module here is imported by a program that `python -m tritensor run` runs, when the program names it.
"""

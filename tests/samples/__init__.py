"""PyTorch's own sample inputs of its modules and operators, run with PyTorch and with tritensor side by side.

    python -m tests.samples modules 'Conv*' --device simulated
    python -m tests.samples operators 'nn.functional.*pool*'

A sample is a case: it runs with a `Side`, which is a library and the way its values come there, and says what can be
seen of it. Whatever differs is a `Difference` as of random programs (`tests.programs`), whose table of the differences
that are meant is used here, too.
"""

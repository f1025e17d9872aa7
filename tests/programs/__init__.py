"""Random programs, run with PyTorch and with tritensor statement by statement: whatever differs is found and told.

    python -m tests.programs --family views --count 20000 --seed 0

A family draws a program from a seed. A program is Python source with `torch.` in it, so that one that fails can be
pasted and run with either library.
"""

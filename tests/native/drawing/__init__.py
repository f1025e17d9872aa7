"""Draws Triton kernels and runs each natively and interpreted.

A kernel is drawn so that both have to find the same bits: floats are whole numbers where they are summed, and functions
that round differently are stored at once, to be compared within a tolerance.
"""

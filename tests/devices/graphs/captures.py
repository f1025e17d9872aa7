"""A graph of what a function does."""

from __future__ import annotations

from tritensor import cuda

NOT_PERMITTED = r"^CUDA error: operation not permitted when stream is capturing"


def captured(work, **options):
    """A graph of what a function does, and what it returned."""
    graph = cuda.CUDAGraph()
    with cuda.graph(graph, **options):
        result = work()
    return graph, result

"""Functions that are called when a backward pass has ended."""

from __future__ import annotations

import tritensor as torch
from tritensor.autograd.backward import queue_callback


def test_functions_at_the_end_of_the_outermost_pass():
    order = []

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            inner = torch.ones(1, requires_grad=True)
            with torch.enable_grad():
                inner.register_hook(lambda _: queue_callback(lambda: order.append("end")))
                (inner * 3).sum().backward()
            order.append("inside")
            return gradient * 2

    x = torch.ones(1, requires_grad=True)
    x.register_hook(lambda _: order.append("after"))
    Inner.apply(x).sum().backward()
    assert order == ["inside", "after", "end"]
    x.sum().backward()
    assert order.count("end") == 1

"""torch.autograd.Variable: what a tensor with a gradient was before PyTorch 0.4, in programs of that time."""

from __future__ import annotations

from ....tensors import Tensor

__all__ = ["Variable"]


class _Kind(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Tensor, requires_grad: bool = False) -> Tensor:
        """The tensor's values, in the same memory, without what they were computed from."""
        return data.detach().requires_grad_(requires_grad)


class Variable(metaclass=_Kind):
    """`Variable(x)` is a tensor, and all tensors are instances of it."""

"""Attention whose kernels call functions of scores and pass over lists of blocks, on a device."""

from __future__ import annotations

from ...autograd.backward import grad as differentiated
from ...autograd.mode import recording
from ...errors import AutogradError
from ...operators.rules import FLOATING
from ...runtime.call import Call
from ...tensors import Tensor
from .family import Attention
from .launch import launch_attention, launch_backward
from .plan import Plan


class Flexible(Attention):
    """Attention with a plan, or its gradients."""

    about = "Attention that calls functions of scores, and passes over lists of blocks."
    repeatable = False

    def launch(self, call: Call) -> None:
        """As attention's, with a plan."""
        found = {**self.operands(call.arrays), "mask": None}
        scale, plan = call.metadata["scale"], call.metadata["plan"]
        run = launch_attention if self is flexible else launch_backward
        run(call.outs, found, scale=scale, diagonal=None, p=0.0, seed=0, offset=0, plan=plan)


def _flexible(query: Tensor, key: Tensor, value: Tensor, *, scale: float, plan: Plan) -> Tensor:
    """softmax(score(query @ key.T * scale)) @ value, and the logarithms of the sums of the softmax."""
    raise NotImplementedError  # on the CPU other operators compute it


def _flexible_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    *,
    scale: float,
    plan: Plan,
) -> Tensor:
    """The gradients of flexible attention by queries, keys and values."""
    raise NotImplementedError


flexible = Flexible("flex_attention", _flexible, FLOATING, outputs=("out", "logsumexp"), register=False)
_backward_names = ("query_grad", "key_grad", "value_grad")
flexible_backward = Flexible(
    "flex_attention_backward", _flexible_backward, FLOATING, outputs=_backward_names, register=False
)


def _gradient(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    scale: float,
    plan: Plan,
    needs: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """By the kernels; of other operators where it is recorded."""
    if tuple([x._version for x in plan.captured]) != plan.versions:
        words = "one of the variables needed for gradient computation has been modified by an inplace operation"
        raise AutogradError(words, "a function of scores or of a mask reads it", remedy="change a copy of it")
    if not recording.enabled:
        return (*flexible_backward(grad, query, key, value, out, logsumexp, scale=scale, plan=plan),)
    again = plan.again(query.flatten(1, 2), key.squeeze(2), value.squeeze(2)).reshape(out.shape)
    found = iter(differentiated(again, [x for x, need in zip((query, key, value), needs) if need], grad, None, True))
    return tuple([next(found) if need else None for need in needs[:3]])


flexible.gradient(_gradient)

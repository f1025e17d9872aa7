"""The hosted family: NumPy computes the operator wherever its tensors are.

For tensors of a device their elements are copied to the host, and the results back. Both copies are in the ledger
(`cuda.transfers`), and the first call of each operator on a device says so by a warning. While a graph is captured the
copy is refused, as every other one.

Inputs are stacks: what a call computes are their last dimensions, or those of its metadata `dim`, and all others are
independent, so that `vmap` puts its batch in front.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import devices
from ...errors import HostComputationWarning, explain, warn
from ...memory.array import DeviceArray
from ...memory.copies import from_host, to_host
from ...operator import Operator
from ...rules import Rule
from ...runtime.call import Call

__all__ = ["Hosted", "hosted"]

_said: set[str] = set()


class Hosted(Operator):
    """An operator without a kernel. Its gradient functions are PyTorch's formulas, conjugations included."""

    family = "hosted"
    holomorphic = False

    def compute(self, call: Call) -> Sequence[Any]:
        """Call the reference, with copies from and to the device where the tensors are on one."""
        if call.device is devices.cpu:
            return self.on_host(call)(*call.arrays)
        if self.name not in _said:
            _said.add(self.name)
            warn(
                explain(
                    f"{self.name} is computed on the host, for tensors on {call.device} as well",
                    "it has no kernel; each call waits for its operands and copies them and the results",
                    remedy="cuda.transfers() counts the copies; call it on .cpu() tensors to keep the results there",
                ),
                HostComputationWarning,
            )
        operands = [to_host(value) if isinstance(value, DeviceArray) else value for value in call.arrays]
        return [from_host(found, call.device) for found in self.on_host(call)(*operands)]


def hosted(
    rule: Rule, *, name: str | None = None, outputs: Sequence[str] | None = None
) -> Callable[[Callable[..., Any]], Hosted]:
    """Declare an operator whose NumPy reference is all there is of it; a decorator.

    The reference takes stacks and keyword-only metadata, and returns an array or a tuple of arrays named by `outputs`.
    """

    def declare(reference: Callable[..., Any]) -> Hosted:
        return Hosted(name or reference.__name__, reference, rule, outputs=outputs)

    return declare

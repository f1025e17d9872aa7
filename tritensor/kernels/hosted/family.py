"""The hosted family: NumPy computes the operator wherever its tensors are.

For tensors of a device their elements are copied to the host, and the results back. Both copies are in the ledger
(`cuda.transfers`), and the first call of each operator on a device says so by a warning. While a graph is captured the
copy is refused, as every other one.

Inputs are stacks: what a call computes are their last dimensions, or those of its metadata `dim`, and all others are
independent, so that `vmap` puts its batch in front.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...autograd.tape import Slot
from ...errors import HostComputationWarning, explain, warn
from ...memory import buffer
from ...memory.array import DeviceArray
from ...memory.copies import from_host, to_host
from ...operators import Dtypes, Operator
from ...operators.autocasting import Policy
from ...operators.lifting.batching import in_front
from ...operators.rules import Rule
from ...runtime.call import Call
from ...tensors import Tensor
from ...types import devices, dtypes

_said: set[str] = set()
_SMALL = 16  # sizes up to it stay as they are where shapes of results are found
_REAL = {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}
_COMPLEX = {real: kind for kind, real in _REAL.items()}


class Hosted(Operator):
    """An operator without a kernel. Its gradient functions are PyTorch's formulas, conjugations included.

    Of several floating results, the gradient function gets a list of gradients: one for each, None where there is none.
    """

    family = "hosted"
    about = "NumPy computes it on the host, for tensors of a device too, and the first call there says so."
    repeatable = "cpu"
    batched = staticmethod(in_front)
    holomorphic = False
    result_kinds: Sequence[Any] = ()

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """The rule is for the inputs of no fixed dtype; results may have their own dtypes."""
        ruled = [value for name, value in zip(self.inputs, call.inputs) if name not in self.kinds]
        compute, result = self.rule(self.name, ruled)
        ways = {"real": _REAL.get(result, result), "complex": _COMPLEX.get(result, result)}
        found = [result if kind is None else ways.get(kind, kind) for kind in self.result_kinds]
        return compute, tuple(found) or (result,) * len(self.outputs)

    def record(
        self, outputs: tuple[Tensor, ...], inputs: Sequence[Any], metadata: dict[str, Any], alike: bool = False
    ) -> None:
        """Leave a node that gradients go to from every floating result."""
        super().record(outputs, inputs, metadata, alike)
        node = outputs[0]._node
        floating = [index for index, out in enumerate(outputs) if out.dtype.category >= dtypes.FLOATING]
        if node is not None and len(floating) > 1:
            node.outputs = len(outputs)
            for index in floating:
                outputs[index]._node, outputs[index]._needs = Slot(node, index), True

    def compute(self, call: Call) -> Sequence[Any]:
        """Call the reference, with copies from and to the device where the tensors are on one."""
        if call.device is devices.cpu:
            return self.on_host(call)(*call.arrays)
        if call.device is devices.meta:
            return self._on_meta(call)
        if self.name not in _said:
            _said.add(self.name)
            warn(
                explain(
                    f"{self.name} is computed on the host, for tensors on {call.device} as well",
                    "it has no kernel; each call waits for its operands and copies them and the results",
                    remedy="call it on .cpu() tensors to keep the results there; cuda.transfers() counts the copies",
                ),
                HostComputationWarning,
            )
        operands = [to_host(value) if isinstance(value, DeviceArray) else value for value in call.arrays]
        return [from_host(found, call.device) for found in self.on_host(call)(*operands)]

    def _on_meta(self, call: Call) -> Sequence[Any]:
        """Results without elements. The reference runs on small matrices whose sizes are in the order of the operands',
        of which the sizes of results are; large ones would be factorised for nothing."""
        operands = [value for value in call.arrays if isinstance(value, DeviceArray)]
        large = sorted({size for array in operands for size in array.shape if size > _SMALL})
        places: dict[int, int] = {} if {"dim", "size"} & self.metadata.keys() else dict(enumerate(large, _SMALL + 1))
        small = {size: place for place, size in places.items()}
        found = self.on_host(call)(*[_alike(value, small) for value in call.arrays])
        shapes: Any = [tuple([places.get(size, size) for size in array.shape]) for array in found]
        return [buffer.empty(shape, x.dtype, call.device) for shape, x in zip(shapes, found, strict=True)]


def _alike(value: Any, sizes: Mapping[int, int]) -> Any:
    """For a meta tensor's array one of the host that every reference accepts: of identities, in the memory of one.

    Args:
        sizes: what its dimensions have in place of theirs.
    """
    if not isinstance(value, DeviceArray):
        return value
    shape = [sizes.get(size, size) for size in value.shape]
    matrices = len(shape) > 1 and value.dtype.kind in "fc"
    one = np.eye(*shape[-2:], dtype=value.dtype) if matrices else np.ones((), value.dtype)
    return np.broadcast_to(one, shape)


def hosted(
    rule: Rule,
    *,
    name: str | None = None,
    outputs: Sequence[str] | Mapping[str, Any] | None = None,
    kinds: Mapping[str, dtypes.dtype] | None = None,
    autocast: Policy | None = None,
) -> Callable[[Callable[..., Any]], Hosted]:
    """Declare an operator whose NumPy reference is all there is of it; a decorator.

    The reference takes stacks and keyword-only metadata, and returns an array or a tuple of arrays named by `outputs`.

    Args:
        outputs: the names of the results; a dict from them to their dtypes, which may also be "real" or "complex" for
            the counterpart of the rule's, and None for that itself.
        kinds: the dtypes of inputs to which the rule does not apply.
        autocast: what autocast casts the inputs to, by the type of device; None for nothing.
    """

    def declare(reference: Callable[..., Any]) -> Hosted:
        made = Hosted(name or reference.__name__, reference, rule, outputs=tuple(outputs) if outputs else None)
        made.result_kinds = tuple(outputs.values()) if isinstance(outputs, Mapping) else ()
        made.kinds.update(kinds or {})
        if autocast is not None:
            made.autocasts(**autocast)
        return made

    return declare

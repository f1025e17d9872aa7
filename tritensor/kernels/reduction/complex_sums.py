"""Reductions of complex numbers on a device, by the family's kernel on their parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...memory import buffer
from ...operators import copy_into
from ...runtime.call import Call
from ...types import dtypes
from ..elementwise.arithmetic import complex_mul
from ..pairs import as_real, in_dtype, parts
from .family import Parts, folded
from .kernel import launch_reduction, reduce_arrays

if TYPE_CHECKING:
    pass


def by_parts(operator: Any, call: Call) -> None:
    """Real numbers with a last dimension of two, which is kept."""
    x, out, kind = in_dtype(call.arrays[0], call.compute), call.outs[0], call.compute
    if kind.is_complex:
        x, out, kind = as_real(x), as_real(out), dtypes.real_of(kind)
    launch_reduction(operator, [out], x, kind, call.metadata)


def of_truth(operator: Any, call: Call) -> None:
    """Booleans: whether an element is not zero."""
    launch_reduction(operator, call.outs, in_dtype(call.arrays[0], dtypes.bool_), dtypes.bool_, call.metadata)


def _one(kind: dtypes.dtype) -> tuple[tuple[Any, dtypes.dtype], ...]:
    return (1, kind), (0, kind)


def by_pairs(operator: Any, call: Call) -> None:
    """States of two values, the parts of a product."""
    x, out, kind = in_dtype(call.arrays[0], call.compute), call.outs[0], dtypes.real_of(call.compute)
    if not call.compute.is_complex:
        launch_reduction(operator, [out], x, kind, call.metadata)
        return
    made = [buffer.empty(out.shape, kind.numpy, out.device) for _ in range(2)]
    reduce_arrays(
        Parts(folded(complex_mul), complex_mul, _one), made, parts(x), call.metadata["dim"], kind, operator.name
    )
    if out.size:
        for part, source in zip(parts(out), made, strict=True):
            copy_into(part, source)

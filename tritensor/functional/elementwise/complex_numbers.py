"""complex, polar, isreal and conj_physical: complex numbers of two parts, and conjugates.

Conjugates are computed when they are asked for; no tensor has a conjugation or a sign that is pending.
"""

from __future__ import annotations

from ...autograd.gradients import called
from ...errors import DtypeError
from ...ground.arguments import check_tensor
from ...ground.composing import shown_as
from ...ground.public import public
from ...kernels.elementwise.arithmetic import conj as conjugate
from ...operators.inplace import in_place_form
from ...operators.outputs import Into, takes_out
from ...tensors import Tensor
from ...types import dtypes
from ..views.complex_views import _view_as_complex
from ..views.joining import stack
from ..views.view_operators import standing_alone
from ..views.views import broadcast_tensors


@public(method=True)
def isreal(input: Tensor) -> Tensor:
    """Tests if each element is real: its imaginary part is 0.

    >>> import tritensor as torch
    >>> torch.isreal(torch.tensor([1 + 0j, 1j]))
    tensor([ True, False])
    """
    check_tensor("isreal", "input", 1, input)
    if input.dtype.is_complex:
        return input.imag == 0
    return input.new_ones(input.shape, dtype=dtypes.bool_)


def _of_parts(name: str, first: Tensor, second: Tensor) -> Tensor:
    return standing_alone(_view_as_complex(stack(broadcast_tensors(first, second), -1)), name)


def _check_parts(first: Tensor, second: Tensor) -> None:
    """Raise unless both are tensors of the same floating dtype."""
    if not first.dtype.is_floating_point or not second.dtype.is_floating_point:
        found = f"{first.dtype.legacy} and {second.dtype.legacy}"
        raise DtypeError(f"Expected both inputs to be Half, Float or Double tensors but got {found}")
    if first.dtype is not second.dtype:
        words = f"Expected object of scalar type {first.dtype.legacy} but got scalar type {second.dtype.legacy}"
        raise DtypeError(f"{words} for second argument", remedy="convert one of them with .to(dtype)")
    if first.dtype.itemsize < 4:
        raise DtypeError("ComplexHalf is not supported", remedy="convert both with .float()")


@public(functional=False, out=takes_out(Into("object", "partly")))
def complex(real: Tensor, imag: Tensor) -> Tensor:
    """A complex tensor of real and imaginary parts, two tensors of float32 or of float64 that broadcast.

    >>> import tritensor as torch
    >>> torch.complex(torch.tensor([1.0]), torch.tensor([2.0]))
    tensor([1.+2.j])

    Raises:
        DtypeError: other dtypes, or two of them.
    """
    check_tensor("complex", "real", 1, real)
    check_tensor("complex", "imag", 2, imag)
    _check_parts(real, imag)
    return _of_parts("complex", real, imag)


@public(functional=False, out=takes_out(Into("object", "partly")), autocast={"cpu": "float32"})
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers of polar coordinates, magnitudes and angles; dtypes and errors are those of `complex`.

    >>> import tritensor as torch
    >>> torch.polar(torch.tensor([2.0]), torch.tensor([0.0]))
    tensor([2.+0.j])
    """
    check_tensor("polar", "abs", 1, abs)
    check_tensor("polar", "angle", 2, angle)
    _check_parts(abs, angle)
    return _of_parts("polar", abs * angle.cos(), abs * angle.sin())


@public(method=True, in_place=in_place_form, in_place_function=True, out=takes_out(Into("same", "partly")))
def conj_physical(input: Tensor) -> Tensor:
    """The conjugate of a complex tensor, in new memory; a real tensor itself."""
    check_tensor("conj_physical", "input", 1, input)
    return called("ConjPhysicalBackward0", conjugate(input)) if input.dtype.is_complex else input


def _not_pending(what: str, name: str) -> None:
    def resolve(input: Tensor) -> Tensor:
        check_tensor(f"resolve_{name}", "input", 1, input)
        return input

    def pending(input: Tensor) -> bool:
        check_tensor(f"is_{name}", "input", 1, input)
        return False

    for function, label, doc in (
        (resolve, f"resolve_{name}", f"The input itself: no {what} is ever pending."),
        (pending, f"is_{name}", f"Always False: no {what} is ever pending."),
    ):
        public(method=True)(shown_as(function, label, doc))


_not_pending("conjugation", "conj")
_not_pending("negation", "neg")

"""Predicates of tensors (is_cpu, is_nonzero, is_same_size, ...), most of which are always false here, and its
layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import ArgumentError, AutogradError, ShapeError
from ...ground.arguments import check_tensor, wrong_type
from ...ground.public import method, public
from ...host.scalars import representable
from ...memory.array import DeviceArray
from ...memory.sparse import Sparse
from ...operators.rules import Number
from ...tensors import Tensor
from ...types import dtypes, formats


def _layout(self: Tensor) -> formats.Layout:
    """`tritensor.strided`: elements lie in memory by strides; or `tritensor.sparse_coo`."""
    return formats.sparse_coo if _is_sparse(self) else formats.strided


def _is_sparse(self: Tensor) -> bool:
    """True if coordinates and values of the elements that are not zero are stored."""
    return self._data.__class__ is Sparse


def _never(name: str) -> Callable[[Tensor], bool]:
    def call(self: Tensor) -> bool:
        return False

    call.__name__, call.__doc__ = name, f"Always False: there are no {name.removeprefix('is_')} tensors here."
    return call


_NEVER = "ipu maia mkldnn mps mtia nested quantized sparse_csr vulkan xla xpu"
for _name in _NEVER.split():
    method(f"is_{_name}")(property(_never(f"is_{_name}")))
for _name in ("distributed", "inference"):
    method(f"is_{_name}")(_never(f"is_{_name}"))


def _is_cpu(self: Tensor) -> bool:
    """True if the elements are in the host's memory."""
    return not self._off_host


method("is_cpu")(property(_is_cpu))
method("is_sparse")(property(_is_sparse))
method("layout")(property(_layout))


@method()
def is_nonzero(self: Tensor) -> bool:
    """True if the only element is not zero.

    Raises:
        ShapeError: there is not one element.
    """
    return bool(self)


@method()
def is_same_size(self: Tensor, other: Tensor) -> bool:
    """True if both have the same shape."""
    check_tensor("is_same_size", "other", 1, other)
    return self.shape == other.shape


@method()
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """True if both are the same elements in the same memory."""
    check_tensor("is_set_to", "tensor", 1, tensor)
    same = self.shape == tensor.shape and self.stride() == tensor.stride() and self.device == tensor.device
    return same and self.data_ptr() == tensor.data_ptr()


@public(functional=False)
def typename(obj: Any) -> str:
    """The name of a tensor's type, or of the type of anything else, or of a function or type.

    >>> import tritensor as torch
    >>> torch.typename(torch.ones(1)), torch.typename(1)
    ('torch.FloatTensor', 'int')
    """
    if isinstance(obj, Tensor):
        return str(obj.type())
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", None)
    return named.__qualname__ if module in (None, "", "builtins") else f"{module}.{named.__qualname__}"


# ---- functions of Python, element by element ---------------------------------------------------------------------


def _by_element(name: str, x: Tensor, others: tuple[Tensor, ...], function: Callable[..., Any]) -> Tensor:
    """Write what the function makes of each element, and of those of others at its place, to a tensor on the CPU."""
    for each in (x, *others):
        check_tensor(name, "tensor", 1, each)
        if each._needs:
            raise AutogradError(
                f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead."
            )
        if each._data.__class__ is DeviceArray or each.dtype is not x.dtype:
            words = "is only implemented on CPU tensors" if each._off_host else "takes tensors of one dtype"
            raise ArgumentError(f"{name}() {words}")
        if each.numel() != x.numel():
            raise ShapeError(f"{name}(): the number of elements differs: {x.numel()} and {each.numel()}")
    lists = [each.reshape(-1).tolist() for each in (x, *others)]
    made = [function(*values) for values in zip(*lists, strict=True)]
    return x.copy_(x.new_tensor(made).reshape(x.shape))


@method()
def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Apply a Python function to each element of a CPU tensor in place, one after the other.

    Raises:
        AutogradError: the tensor requires a gradient. ArgumentError: it is on a device.
    """
    return _by_element("apply_", self, (), callable)


@method()
def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Apply a Python function of two numbers, the element and that of `tensor` at its place, in place; see `apply_`."""
    return _by_element("map_", self, (tensor.expand(self.shape),), callable)


@method()
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Apply a Python function of three numbers to each element in place; see `apply_`."""
    return _by_element("map2_", self, (x.expand(self.shape), y.expand(self.shape)), callable)


def _tensor(name: str, value: Tensor) -> Tensor:
    if not isinstance(value, Tensor):
        raise ArgumentError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(value).__name__}")
    return value


@public(guard=False)
def numel(input: Tensor) -> int:
    """The number of elements."""
    return _tensor("numel", input).numel()


@public(guard=False)
def is_floating_point(input: Tensor) -> bool:
    """True if the dtype is a floating one."""
    return _tensor("is_floating_point", input).is_floating_point()


@public(guard=False)
def is_complex(input: Tensor) -> bool:
    """True if the dtype is a complex one."""
    return _tensor("is_complex", input).is_complex()


@public(guard=False)
def clone(input: Tensor, *, memory_format: formats.memory_format | None = None) -> Tensor:
    """A copy of the tensor that gradients pass through."""
    return _tensor("clone", input).clone(memory_format=memory_format)


@public(guard=False)
def detach(input: Tensor) -> Tensor:
    """Detaches from the graph: a tensor on the same memory without history."""
    return _tensor("detach", input).detach()


@public()
def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The dtype of an arithmetic result of two tensors or numbers, by type promotion.

    >>> import tritensor as torch
    >>> torch.result_type(torch.ones(2, dtype=torch.int32), 1.5)
    tritensor.float32
    """
    pair = (tensor1, tensor2)
    for value in pair:
        if not isinstance(value, (Tensor, *Number)):
            given = ", ".join(type(each).__name__ for each in pair)
            raise ArgumentError(f"result_type() received an invalid combination of arguments - got ({given})")
        if isinstance(value, int):
            representable(value)
    tensors = [(value.dtype, value.ndim > 0) for value in pair if isinstance(value, Tensor)]
    return dtypes.result_dtype(tensors, [value for value in pair if not isinstance(value, Tensor)])


@public()
def can_cast(from_: dtypes.dtype, to: dtypes.dtype) -> bool:
    """True if a result of one dtype may be stored in the other, not in a lower kind: bool, integer, floating, complex.

    >>> import tritensor as torch
    >>> torch.can_cast(torch.int64, torch.float16), torch.can_cast(torch.float32, torch.int64)
    (True, False)
    """
    for position, (name, value) in enumerate((("from_", from_), ("to", to)), 1):
        if dtypes.of_argument(value) is None:
            raise wrong_type("can_cast", name, "tritensor.dtype", value, position)
    source, target = dtypes.of_argument(from_), dtypes.of_argument(to)
    return source is not None and target is not None and source.category <= target.category

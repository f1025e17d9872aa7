"""The names that a checkpoint may use, and what each of them builds.

`ALLOWED` is the whole list. A name maps to a function of this package that checks its arguments, never to the Python
object of that name: nothing in a file can import or call anything.
"""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import TritensorError
from ..memory.buffer import empty
from ..types import devices, dtypes, formats, layout
from ..types.size import Size
from . import numpy_objects
from .builder import StorageRecord, StorageType, StorageView, StoredTensor
from .geometry import LARGEST, check_geometry
from .malformed import Malformed
from .numpy_objects import is_one_of


@dataclass(frozen=True, slots=True)
class Global:
    """A name that can be called: `build(unpickler, arguments)` makes the value; `cost` is about its size in bytes."""

    name: str
    build: Callable[[Any, tuple[Any, ...]], Any]
    cost: int = 64


@dataclass(frozen=True, slots=True)
class Refused:
    """In place of a refused name, when all refused names are to be listed."""

    name: str


def find_global(module: str, name: str) -> Any:
    """Finds the meaning of a name: a `Global`, a dtype, a storage type, or the `Malformed` to raise for it."""
    module = {"__builtin__": "builtins", "torch.tensor": "torch._tensor"}.get(module, module)
    full = f"{module}.{name}"
    found = ALLOWED.get(full)
    if found is not None:
        return found
    shown = full if full.isprintable() else ascii(full)
    if module in ("torch", "torch.cuda") and name.endswith("Storage"):
        return Malformed(f"Weights only load failed. {shown} holds elements of a type that tritensor does not have")
    reason = next((text for start, text in REASONS.items() if full.startswith(start)), "")
    return Malformed(
        f"Weights only load failed. Unsupported global: GLOBAL {shown} was not an allowed global by default.",
        "tritensor never runs code that a file names",
        remedy=reason,
    )


REASONS = {
    "torch._utils._rebuild_qtensor": "save tensor.dequantize() instead of the quantized tensor",
    "torch._utils._rebuild_nested": "save the list of the nested tensor's parts: tensor.unbind()",
    "torch.float": "save it as a dtype that both have, such as torch.bfloat16",
    "torch.q": "save it as a dtype that both have, such as torch.int8",
    "torch.complex32": "save it as torch.complex64",
    "numpy": "save NumPy arrays and scalars of numbers only",
}


def wrong_arguments(name: str, arguments: tuple[Any, ...]) -> Malformed:
    """The error for a call whose arguments are not those that PyTorch writes."""
    kinds = ", ".join(type(argument).__name__ for argument in arguments[:9])
    return Malformed(f"the pickle calls {name} with arguments that it does not take", f"they are ({kinds})")


def _ordered_dict(unpickler: Any, arguments: tuple[Any, ...]) -> OrderedDict[Any, Any]:
    made: OrderedDict[Any, Any] = OrderedDict()
    if arguments:  # as Python 2 writes it: one list of pairs
        if len(arguments) != 1 or type(arguments[0]) is not list:
            raise wrong_arguments("OrderedDict", arguments)
        for pair in arguments[0]:
            if type(pair) not in (list, tuple) or len(pair) != 2:
                raise wrong_arguments("OrderedDict", arguments)
            made[unpickler.hashable([pair[0]])[0]] = pair[1]
    return made


def _counter(unpickler: Any, arguments: tuple[Any, ...]) -> Counter[Any]:
    made: Counter[Any] = Counter()
    if arguments:
        if len(arguments) != 1 or type(arguments[0]) is not dict:
            raise wrong_arguments("Counter", arguments)
        unpickler.charge(sys.getsizeof(arguments[0]))
        dict.update(made, arguments[0])
    return made


def _set(unpickler: Any, arguments: tuple[Any, ...]) -> set[Any]:
    if len(arguments) != 1 or type(arguments[0]) is not list:
        raise wrong_arguments("set", arguments)
    return set(unpickler.hashable(arguments[0]))


def _frozenset(unpickler: Any, arguments: tuple[Any, ...]) -> frozenset[Any]:
    if len(arguments) != 1 or type(arguments[0]) is not list:
        raise wrong_arguments("frozenset", arguments)
    return frozenset(unpickler.hashable(arguments[0]))


def _encode(unpickler: Any, arguments: tuple[Any, ...]) -> bytes:
    if len(arguments) != 2 or type(arguments[0]) is not str or not is_one_of(arguments[1], "latin1", "latin-1"):
        raise wrong_arguments("_codecs.encode", arguments)
    unpickler.charge(len(arguments[0]))
    return arguments[0].encode("latin-1")


def _bytes(unpickler: object, arguments: tuple[Any, ...]) -> bytes:
    if arguments:  # protocol 2 writes b"" as bytes() and all others through _codecs.encode
        raise wrong_arguments("bytes", arguments)
    return b""


def _bytearray(unpickler: Any, arguments: tuple[Any, ...]) -> bytearray:
    if not arguments:
        return bytearray()
    data = arguments[0] if len(arguments) == 1 else _encode(unpickler, arguments)
    if type(data) is not bytes:
        raise wrong_arguments("bytearray", arguments)
    unpickler.charge(len(data))
    return bytearray(data)


def _complex(unpickler: object, arguments: tuple[Any, ...]) -> complex:
    if len(arguments) != 2 or any(type(part) is not float for part in arguments):
        raise wrong_arguments("complex", arguments)
    return complex(*arguments)


def _is_int64(number: int) -> bool:
    return type(number) is int and -LARGEST - 1 <= number <= LARGEST


def _size(unpickler: Any, arguments: tuple[Any, ...]) -> Any:
    if len(arguments) != 1 or type(arguments[0]) is not tuple or any(not _is_int64(n) for n in arguments[0]):
        raise wrong_arguments("torch.Size", arguments)
    unpickler.charge(8 * len(arguments[0]))
    return Size(arguments[0])


def _device(unpickler: object, arguments: tuple[Any, ...]) -> devices.device:
    kinds = tuple(type(argument) for argument in arguments)
    if kinds not in ((str,), (str, int)) or not _is_int64(arguments[-1] if len(arguments) == 2 else 0):
        raise wrong_arguments("torch.device", arguments)
    try:
        return devices.device(*arguments)
    except TritensorError as error:
        raise Malformed(str(error).split("\n", 1)[0]) from None


def _tensor(unpickler: Any, arguments: tuple[Any, ...]) -> Any:
    """`_rebuild_tensor`, `_v2` and `_v3`: storage, offset, size, stride, requires_grad, hooks, dtype, metadata."""
    everything = [*arguments, *(False, {}, None, None)[len(arguments) - 4 :]]
    storage, offset, size, stride, requires_grad, hooks, dtype, metadata = everything
    if type(storage) is not StorageView or type(requires_grad) is not bool or not _is_empty(hooks):
        raise wrong_arguments("_rebuild_tensor", arguments)
    conjugate, negative = _read_metadata(metadata)
    stored = StoredTensor(
        storage.record, dtype or storage.dtype, offset, size, stride, requires_grad, conjugate, negative
    )
    return unpickler.builder.tensor(stored)


def _layout(unpickler: object, arguments: tuple[Any, ...]) -> formats.Layout:
    if len(arguments) != 1 or not is_one_of(arguments[0], "torch.sparse_coo", "torch.strided"):
        raise Malformed(f"the pickle names a layout that there is not here: {arguments!r:.60}")
    return formats.strided if arguments[0] == "torch.strided" else formats.sparse_coo


def _sparse(unpickler: Any, arguments: tuple[Any, ...]) -> Any:
    """`_rebuild_sparse_tensor(layout, (indices, values, size, coalesced))`, of older files without the last."""
    parts: Any = arguments[1] if len(arguments) == 2 and arguments[0] is formats.sparse_coo else None
    if type(parts) is not tuple or len(parts) not in (3, 4) or type(parts[2]) is not Size:
        raise wrong_arguments("_rebuild_sparse_tensor", arguments)
    made = unpickler.builder.sparse(*parts[:3], parts[3:] == (True,))
    if made is None:
        raise wrong_arguments("_rebuild_sparse_tensor", arguments)
    return made


def _is_empty(hooks: object) -> bool:
    """True if a tensor has no hooks, as PyTorch writes it; types are checked first, because the truth of a tensor is an
    operator."""
    return hooks is None or (type(hooks) in (dict, OrderedDict) and not hooks)


def _tensor_v1(unpickler: object, arguments: tuple[Any, ...]) -> Any:
    if len(arguments) != 4:
        raise wrong_arguments("_rebuild_tensor", arguments)
    return _tensor(unpickler, arguments)


def _tensor_v2(unpickler: object, arguments: tuple[Any, ...]) -> Any:
    if len(arguments) not in (6, 7):
        raise wrong_arguments("_rebuild_tensor_v2", arguments)
    return _tensor(unpickler, (*arguments[:6], None, *arguments[6:]))


def _tensor_v3(unpickler: object, arguments: tuple[Any, ...]) -> Any:
    if len(arguments) not in (7, 8) or type(arguments[6]) is not dtypes.dtype:
        raise wrong_arguments("_rebuild_tensor_v3", arguments)
    return _tensor(unpickler, arguments)


def _meta_tensor(unpickler: Any, arguments: tuple[Any, ...]) -> Any:
    """`_rebuild_meta_tensor_no_storage`: dtype, size, stride, requires_grad; on meta wherever others are loaded to."""
    if len(arguments) != 4 or type(arguments[0]) is not dtypes.dtype or type(arguments[3]) is not bool:
        raise wrong_arguments("_rebuild_meta_tensor_no_storage", arguments)
    kind, size, stride, requires_grad = arguments
    check_geometry(LARGEST, kind.itemsize, 0, size, stride)
    nbytes = kind.itemsize * layout.span(size, stride, 0)[1]
    memory = empty((nbytes,), dtypes.uint8.numpy, devices.meta)
    record = StorageRecord("", nbytes, "meta", StorageType("Untyped", dtypes.uint8, typed=False), memory)
    return unpickler.builder.tensor(StoredTensor(record, kind, 0, size, stride, requires_grad))


def _read_metadata(metadata: object) -> tuple[bool, bool]:
    """PyTorch's two lazy bits of a tensor: conjugated, negated."""
    if metadata is None:
        return False, False
    if type(metadata) is not dict or any(
        not is_one_of(name, "conj", "neg") or type(flag) is not bool for name, flag in metadata.items()
    ):
        raise Malformed("a tensor has metadata that tritensor does not know")
    return metadata.get("conj", False), metadata.get("neg", False)


def _parameter(unpickler: Any, arguments: tuple[Any, ...]) -> Any:
    if len(arguments) not in (3, 4) or type(arguments[1]) is not bool or not _is_empty(arguments[2]):
        raise wrong_arguments("_rebuild_parameter", arguments)
    made = unpickler.builder.parameter(arguments[0], arguments[1])
    if made is None:
        raise wrong_arguments("_rebuild_parameter", arguments)
    return made


def _from_type(unpickler: object, arguments: tuple[Any, ...]) -> Any:
    """`_rebuild_from_type_v2(function, type, arguments, state)`: a tensor on which Python attributes were set."""
    if (
        len(arguments) != 4
        or type(arguments[0]) is not Global
        or arguments[0].build not in (_tensor_v2, _tensor_v3, _parameter)
        or not (arguments[1] is TENSOR or arguments[1] is PARAMETER)
        or type(arguments[2]) is not tuple
    ):
        raise wrong_arguments("_rebuild_from_type_v2", arguments)
    return arguments[0].build(unpickler, arguments[2])


def _not_callable(name: str) -> Global:
    def build(unpickler: object, arguments: tuple[Any, ...]) -> Any:
        raise wrong_arguments(name, arguments)

    return Global(name, build)


TENSOR, PARAMETER = _not_callable("torch.Tensor"), _not_callable("torch.nn.parameter.Parameter")

_CALLABLE = {
    "collections.OrderedDict": (_ordered_dict, 250),
    "collections.Counter": (_counter, 64),
    "builtins.set": (_set, 64),
    "builtins.frozenset": (_frozenset, 64),
    "builtins.bytes": (_bytes, 40),
    "builtins.bytearray": (_bytearray, 64),
    "builtins.complex": (_complex, 40),
    "_codecs.encode": (_encode, 40),
    "torch.Size": (_size, 64),
    "torch.device": (_device, 120),
    # The size of a tensor object with its array, shape and strides.
    "torch._utils._rebuild_tensor": (_tensor_v1, 700),
    "torch._utils._rebuild_tensor_v2": (_tensor_v2, 700),
    "torch._utils._rebuild_tensor_v3": (_tensor_v3, 700),
    "torch._utils._rebuild_meta_tensor_no_storage": (_meta_tensor, 700),
    "torch._utils._rebuild_parameter": (_parameter, 400),
    "torch._utils._rebuild_parameter_with_state": (_parameter, 400),
    "torch._tensor._rebuild_from_type_v2": (_from_type, 700),
    "torch._utils._rebuild_sparse_tensor": (_sparse, 700),
    "torch.serialization._get_layout": (_layout, 0),
    **numpy_objects.CALLABLE,
}
BY_NAME = {entry.name: entry for entry in dtypes.STORED}

ALLOWED: dict[str, Any] = {
    **{name: Global(name, build, cost) for name, (build, cost) in _CALLABLE.items()},
    "torch.Tensor": TENSOR,
    "torch.nn.parameter.Parameter": PARAMETER,
    **{f"torch.{name}": entry for name, entry in BY_NAME.items()},
    **{
        f"{module}.{entry.legacy}Storage": StorageType(entry.legacy, entry, typed=True)
        for entry in dtypes.LATTICE  # PyTorch has no storage classes for unsigned integers of more than 8 bits
        for module in ("torch", "torch.cuda")
    },
    "torch.storage.UntypedStorage": StorageType("Untyped", dtypes.uint8, typed=False),
    **numpy_objects.TYPES,
}


def set_state(target: object, state: object) -> None:
    """The BUILD opcode: it is accepted for NumPy's objects and for the `_metadata` of a state dict."""
    if isinstance(target, Refused):
        return
    if type(target) is OrderedDict:
        if type(state) is not dict or any(
            type(name) is not str or not name.isidentifier() or hasattr(OrderedDict, name) for name in state
        ):
            raise Malformed("the pickle sets attributes of an OrderedDict that are not its own")
        modules = state.get("_metadata", {})
        if type(modules) not in (dict, OrderedDict) or any(
            type(facts) not in (dict, OrderedDict) or not (facts.get("version") is None or _is_int64(facts["version"]))
            for facts in modules.values()
        ):
            raise Malformed("the pickle holds a state dict whose _metadata is not that of modules")
        target.__dict__.update(state)
    elif not numpy_objects.set_state(target, state):
        raise Malformed(f"the pickle sets the state of a {type(target).__name__}")

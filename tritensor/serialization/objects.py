"""Objects of classes in a checkpoint: which names of a file may be looked up, and what is done with them.

PyTorch's `load(weights_only=False)` runs what a file says. This one executes nothing that a file chooses: a name is
looked up among what the program has imported already, an object is made without its class's `__new__` and `__init__`,
and its attributes are set without its `__setstate__`. These are called only of what the program allowed itself
(`add_safe_globals`) and of the library's own modules.
"""

from __future__ import annotations

import _compat_pickle
import collections
import datetime
import decimal
import enum
import fractions
import functools
import importlib
import pathlib
import sys
import types
import uuid
from collections import OrderedDict, deque
from typing import Any, cast

from ..nn import linear
from ..nn.module import Module
from ..tensors import Tensor
from .allowlist import Global
from .malformed import Malformed
from .safe import by_name
from .tree import LEAVES

# PyTorch's files of the classes of a file here, where they have other names; and of classes by how their names begin.
FILES = {
    "batch_normalization": "batchnorm",
    "containers": "container",
    "convolution": "conv",
    "embedding": "sparse",
    "lazy_normalization": "batchnorm",
    "multi_head": "activation",
    "parameter_containers": "container",
    "recurrent": "rnn",
    "shape": "flatten",
    "sync_batch_normalization": "batchnorm",
}
BEGINNINGS = {
    "ChannelShuffle": "channelshuffle",
    "Fold": "fold",
    "InstanceNorm": "instancenorm",
    "LazyInstanceNorm": "instancenorm",
    "Pixel": "pixelshuffle",
    "Unfold": "fold",
}
# Of Python's own library: classes whose constructors do nothing but keep their arguments, and others that may be named.
CONSTRUCTORS = (
    *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone),
    *(decimal.Decimal, fractions.Fraction, uuid.UUID, types.SimpleNamespace, functools.partial, range, slice),
    *(collections.defaultdict, deque, pathlib.PurePath, pathlib.PurePosixPath, pathlib.PureWindowsPath),
    *(pathlib.Path, pathlib.PosixPath, pathlib.WindowsPath),
)
NAMEABLE = (int, float, str, bool, bytes, list, dict, tuple, set, frozenset, complex, object, OrderedDict)
STANDARD = {f"{each.__module__}.{each.__qualname__}": each for each in (*CONSTRUCTORS, *NAMEABLE, uuid.SafeUUID)}


class Objects:
    """What the names in one file mean, besides those of data.

    Args:
        imported: whether names are looked up among what the program has imported; only what it allowed otherwise.
    """

    def __init__(self, imported: bool) -> None:
        self._imported = imported
        self._allowed = by_name()
        self._trusted = {id(each) for each in self._allowed.values()}
        self._named: dict[int, Any] = {}

    def find(self, module: str, name: str, refusal: Malformed) -> Any:
        """The class or function that a name means, or the refusal of one that may not be looked up."""
        found = self._allowed.get(f"{module}.{name}")
        if found is None:
            module, name = _compat_pickle.NAME_MAPPING.get((module, name), (module, name))
            module = _compat_pickle.IMPORT_MAPPING.get(module, module)
            found = _own(module, name) or STANDARD.get(f"{module}.{name}")
            if not self._imported and id(found) not in self._trusted:
                found = None
            elif found is None and module.split(".")[0] not in ("torch", "tritensor"):
                found = _imported(module, name)
        if found is not None:
            self._named[id(found)] = found
        elif self._imported and not refusal.remedy:
            refusal.facts = ("it is not what the program has imported", *refusal.facts[1:])
            refusal.remedy = f"import {module} before the file is loaded, if you trust it"
        return refusal if found is None else found

    def knows(self, value: object) -> bool:
        """True for what `find` found."""
        return id(value) in self._named

    def call(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """What REDUCE makes: of what the program allowed, of members of an enumeration, and of plain constructors."""
        arguments = tuple(map(_itself, arguments))
        if id(function) in self._trusted or (function in CONSTRUCTORS and all(map(self._is_plain, arguments))):
            return function(*arguments)
        if type(function) is enum.EnumMeta and len(arguments) == 1 and self._is_plain(arguments[0]):
            return function._value2member_map_[arguments[0]]  # no `_missing_` of the program's is asked
        if isinstance(function, type) and not arguments:
            return self.new(function, ())
        raise _untrusted(function, "call {}")

    def _is_plain(self, value: object) -> bool:
        """True for data without methods of the program's, which a constructor would call."""
        if type(value) in (list, tuple):
            return all(map(self._is_plain, cast("list[object]", value)))
        return type(value) in (*LEAVES, *CONSTRUCTORS) or self.knows(value) or any(value is each for each in NAMEABLE)

    def new(self, kind: object, arguments: tuple[Any, ...]) -> Any:
        """What NEWOBJ makes: an object whose constructor did not run."""
        if not isinstance(kind, type):
            raise Malformed(f"the pickle would make an object of a {type(kind).__name__}")
        if id(kind) in self._trusted or (kind in CONSTRUCTORS and all(map(self._is_plain, arguments))):
            return kind.__new__(kind, *arguments)
        if hasattr(kind, "__del__") or issubclass(kind, (Tensor, type)):
            raise _untrusted(kind, "make a {}, which is not plain data")
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):  # a named one, whose `__new__` takes its items
            return tuple.__new__(kind, arguments)
        base: Any
        for base in (OrderedDict, dict, list, set, tuple, str, int, float):
            given = arguments[:1] if base in (tuple, str, int, float) else ()
            if issubclass(kind, base) and kind.__new__ is base.__new__ and all(type(each) is base for each in given):
                return base.__new__(kind, *given)
        if kind.__new__ is not object.__new__ or arguments:
            raise _untrusted(kind, "call the constructor of {}")
        return object.__new__(kind)

    def set_state(self, target: Any, state: Any) -> None:
        """What BUILD does: attributes are set as they are."""
        kind = type(target)
        if type(state) is dict:
            left_out = _NOT_KEPT if isinstance(target, Module) else ()
            state = {name: _itself(value) for name, value in state.items() if name not in left_out}
        setter = getattr(kind, "__setstate__", None)
        if setter is not None:
            written_in = getattr(setter, "__module__", None) or ""
            ours = written_in == "dataclasses" or written_in.startswith("tritensor.") or kind in CONSTRUCTORS
            if not ours and id(kind) not in self._trusted:
                raise _untrusted(kind, "call {}.__setstate__")
            target.__setstate__(state)
            return
        plain, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
        for part in (plain, slots):
            if part is not None and (type(part) is not dict or any(type(name) is not str for name in part)):
                raise Malformed(f"the pickle sets the state of a {kind.__name__} that is no dict of attributes")
        if plain:
            target.__dict__.update(plain)
        for name, value in (slots or {}).items():
            if not isinstance(getattr(kind, name, None), types.MemberDescriptorType):
                raise Malformed(f"the pickle sets {name} of a {kind.__name__}, which has no such slot")
            getattr(kind, name).__set__(target, value)


def _own(module: str, name: str) -> Any:
    """The class or function here that a name of PyTorch means: of layers, optimizers, data sets, distributions."""
    if module in ("torch.nn.functional", "torch._C._nn"):
        found = getattr(importlib.import_module("tritensor.nn.functional"), name, None)
        return found if callable(found) and not isinstance(found, type) else None
    for room in ("nn", "optim.lr_scheduler", "optim", "utils.data", "utils.hooks", "distributions"):
        if f"{module}.".startswith(f"torch.{room}."):  # in whichever of PyTorch's files it is
            found = getattr(importlib.import_module(f"tritensor.{room}"), name, None)
            if name == "NonDynamicallyQuantizableLinear":  # which PyTorch has there and lists nowhere
                found = linear.NonDynamicallyQuantizableLinear
            return found if isinstance(found, type) else None
    return None


def _imported(module: str, name: str) -> Any:
    """A class or function that a module which was imported defines, or a class there; of Python's library none."""
    found: Any = sys.modules.get(module)
    if found is None or module.split(".")[0] in sys.stdlib_module_names:
        return None
    for part in name.split("."):
        found = vars(found).get(part) if isinstance(found, (types.ModuleType, type)) else None
    own = isinstance(found, (type, types.FunctionType)) and (found.__module__, found.__qualname__) == (module, name)
    return found if own else None  # and not what the module has from elsewhere, such as `shutil.rmtree`


def _itself(value: object) -> Any:
    """The class that a name of data stands for, where it is not called but kept."""
    return STANDARD.get(value.name, value) if type(value) is Global else value


def _untrusted(thing: object, words: str) -> Malformed:
    """The refusal of what a pickle would do with a class or function."""
    name = getattr(thing, "__qualname__", None)
    shown = f"{getattr(thing, '__module__', '')}.{name or type(thing).__name__}"
    remedy = f"if you trust the file: with torch.serialization.safe_globals([{name or 'it'}]): torch.load(...)"
    return Malformed(f"the pickle would {words.format(shown)}", remedy=remedy)


# ---- writing --------------------------------------------------------------------------------------------------------


def name_of(thing: Any) -> str:
    """The name by which a file knows a class or function, PyTorch's for one of this library.

    Raises:
        LookupError: it is not found by that name.
    """
    module, name = thing.__module__, thing.__qualname__
    if module is None or "<" in name:
        raise LookupError(f"{name} is not at the top of a module")
    if module.split(".")[0] == "tritensor":
        return _theirs(thing, module, name)
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not thing:
        raise LookupError(f"it's not the same object as {module}.{name}")
    return f"{module}.{name}"


def _theirs(thing: object, module: str, name: str) -> str:
    if _own("torch.nn.functional", name) is thing:
        return f"torch.nn.functional.{name}"
    parts = module.split(".")
    if parts[1:2] == ["nn"] and isinstance(thing, type) and issubclass(thing, Module) and len(parts) == 3:
        beginning = next((file for start, file in BEGINNINGS.items() if name.startswith(start)), None)
        return f"torch.nn.modules.{beginning or FILES.get(parts[2], parts[2])}.{name}"
    for length in range(1, len(parts) + 1):
        package = ".".join(["torch", *parts[1:length]])
        if _own(package, name) is thing:
            return f"{package}.{name}"
    raise LookupError(f"{module}.{name} is no public name of a class")


_NOT_KEPT = {"_flat_weights", "_flat_weights_names", "_flat_weight_refs", "_is_full_backward_hook"}


def state_of(thing: object, state: object) -> Any:
    """The state that is written: of a module with the attributes that PyTorch's has besides."""
    if not isinstance(thing, Module) or type(state) is not dict:
        return state
    more: dict[str, Any] = {"_is_full_backward_hook": None}
    if "output_padding" in state:
        spans = [step * (size - 1) for step, size in zip(state["dilation"], state["kernel_size"], strict=True)]
        sides = {"same": [(span // 2, span - span // 2) for span in spans], "valid": [(0, 0)] * len(spans)}
        padding = state["padding"]
        pairs = sides[padding] if isinstance(padding, str) else [(size, size) for size in padding]
        twice = [size for pair in reversed(pairs) for size in pair]
        more |= {"transposed": "Transpose" in type(thing).__name__, "_reversed_padding_repeated_twice": twice}
    if "_all_weights" in state:
        names = [name for group in state["_all_weights"] for name in group]
        more |= {"_flat_weights_names": names, "_flat_weights": [getattr(thing, name) for name in names]}
    if type(thing).__name__ == "TransformerEncoderLayer":
        chosen = state.get("activation") or thing.activation  # a function, or a module
        short = getattr(chosen, "__name__", type(chosen).__name__).lower()
        more["activation_relu_or_gelu"] = {"relu": 1, "gelu": 2}.get(short, 0)
    return {**more, **state}

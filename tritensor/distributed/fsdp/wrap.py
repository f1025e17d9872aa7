"""Which modules of a model are wrapped by themselves: policies that are asked for each, and `wrap` for single ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from ..modules import Module

__all__ = ["CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy"]
__all__ += ["size_based_auto_wrap_policy", "transformer_auto_wrap_policy", "wrap"]

# By their names: classes of modules are above this room.
_NO_FORWARD, _LEAVES = ("ModuleList", "ModuleDict"), ("MultiheadAttention",)


class ModuleWrapPolicy:
    """Wrap each module of certain classes.

    >>> from tritensor import nn
    >>> policy = ModuleWrapPolicy({nn.Linear})
    >>> policy(nn.Linear(2, 2), recurse=False), policy(nn.ReLU(), recurse=False)
    (True, False)
    """

    def __init__(self, module_classes: Iterable[type]) -> None:
        self._module_classes = tuple(set(module_classes))

    def __call__(self, module: Module, recurse: bool, nonwrapped_numel: int = -1) -> bool:
        """Whether to look below a module (`recurse`), or else to wrap it."""
        return recurse or isinstance(module, self._module_classes)


class CustomPolicy:
    """Wrap modules for which a function returns True, or a dict of options of their own.

    Raises:
        ValueError: it returns something else.
    """

    def __init__(self, lambda_fn: Callable[[Any], bool | dict[str, Any]]) -> None:
        self._lambda_fn = lambda_fn

    def __call__(self, module: Module, recurse: bool, nonwrapped_numel: int = -1) -> bool | dict[str, Any]:
        """Whether to look below a module (`recurse`), or else to wrap it, with options if it returns some."""
        found = recurse or self._lambda_fn(module)
        if not isinstance(found, (dict, bool)):
            raise ValueError(f"The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict: {found}")
        return found


def always_wrap_policy(*args: object, **kwargs: object) -> bool:
    """Wrap each module."""
    return True


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Any], bool]
) -> bool:
    """Wrap modules for which a function is true; used with `functools.partial`."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: Iterable[type]
) -> bool:
    """Wrap the blocks of a transformer, by their classes; used with `functools.partial`."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def _or_policy(module: Module, recurse: bool, nonwrapped_numel: int, policies: Iterable[Callable[..., bool]]) -> bool:
    """Wrap what one of several policies wraps."""
    return any(each(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for each in policies)


def size_based_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: Iterable[type] | None = None,
    exclude_wrap_modules: Iterable[type] | None = None,
) -> bool:
    """Wrap modules with so many elements in parameters that are not wrapped below them.

    Args:
        module, recurse, nonwrapped_numel: given by what wraps.
        min_num_params: how many.
        force_leaf_modules: classes below which nothing is wrapped; `MultiheadAttention` unless given.
        exclude_wrap_modules: classes that are not wrapped; `ModuleList` and `ModuleDict` unless given.
    """
    given = force_leaf_modules if recurse else exclude_wrap_modules
    if given is None:
        barred = type(module).__name__ in (_LEAVES if recurse else _NO_FORWARD)
    else:
        barred = isinstance(module, tuple(given))
    return nonwrapped_numel >= min_num_params and not barred


def wrap_below(
    module: Module,
    policy: Callable[..., Any],
    make: Callable[..., Any],
    ignored: set[int],
    known: dict[int, Any],
    root: bool = True,
) -> tuple[Any, int]:
    """Wrap modules below one as a policy says, from the inside out.

    Args:
        module: whose children are replaced.
        policy: asked for each module.
        make: wraps a module, with options of its own.
        ignored: of modules and parameters that are left out, their `id`s.
        known: wrappers by the `id` of what is inside, for modules that are in several places.
        root: the module itself is not wrapped.

    Returns:
        What stands in its place, and how many elements of parameters are wrapped.
    """
    size = sum(p.numel() for p in module.parameters() if id(p) not in ignored)
    if not policy(module=module, recurse=True, nonwrapped_numel=size):
        return module, 0
    done = 0
    for name, child in list(module._modules.items()):
        if child is None or id(child) in ignored:
            continue
        if id(child) not in known:
            known[id(child)] = wrap_below(child, policy, make, ignored, known, False)
        made, wrapped = known[id(child)]
        module._modules[name] = made
        done += wrapped
    options = not root and policy(module=module, recurse=False, nonwrapped_numel=size - done)
    if options is False:
        return module, done
    return make(module, **(options if isinstance(options, dict) else {})), size


_wrapping: list[tuple[Callable[..., Any], dict[str, Any]]] = []


@contextmanager
def enable_wrap(*, wrapper_cls: Callable[..., Any], **wrapper_kwargs: Any) -> Iterator[None]:
    """Let `wrap` within the block wrap modules by a class, with options."""
    _wrapping.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _wrapping.pop()


def wrap(module: Module, **wrap_overrides: Any) -> Any:
    """Wrap a module as the `enable_wrap` around it says; the module itself outside of such a block."""
    if not _wrapping:
        return module
    wrapper, options = _wrapping[-1]
    return wrapper(module, **{**options, **wrap_overrides})

"""Parameters that are computed from others before each call of a module, by a forward pre-hook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...tensors import Tensor
from ..module import Module
from ..parameter import Parameter


class Computed:
    """Base of the hooks: `compute` returns the value of the attribute that `_tensor_name` names."""

    _tensor_name: str

    def compute(self, module: Module) -> Tensor:
        """The value for this call."""
        raise NotImplementedError

    def __call__(self, module: Module, inputs: object) -> None:
        """Compute the value anew."""
        setattr(module, self._tensor_name, self.compute(module))

    def replace(
        self, module: Module, parameters: dict[str, Any], buffers: dict[str, Any], first: Tensor | None = None
    ) -> None:
        """Put parameters and buffers, named by what follows the attribute's name, in the parameter's place.

        Args:
            first: the value up to the first call, which is computed unless given.
        """
        name = self._tensor_name
        del module._parameters[name]
        for suffix, value in parameters.items():
            module.register_parameter(name + suffix, value)
        for suffix, value in buffers.items():
            module.register_buffer(name + suffix, value)
        setattr(module, name, self.compute(module) if first is None else first)
        module.register_forward_pre_hook(self)

    def restore(self, module: Module, value: Parameter, *suffixes: str) -> None:
        """Make a value the parameter again, in place of those of these suffixes."""
        for name in (self._tensor_name, *(self._tensor_name + suffix for suffix in suffixes)):
            if hasattr(module, name):
                delattr(module, name)
        module.register_parameter(self._tensor_name, value)


def hooks_of(module: Module, kind: type[Computed], name: str) -> Iterator[tuple[int, Any]]:
    """The hooks of a kind that compute an attribute, and their keys."""
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, kind) and hook._tensor_name == name:
            yield key, hook


def remove_hook(module: Module, kind: type[Computed], name: str, words: str) -> Module:
    """Let a hook make its parameter an ordinary one, and drop it; the module.

    Raises:
        ValueError: there is no such hook; with these words.
    """
    for key, hook in hooks_of(module, kind, name):
        hook.remove(module)
        del module._forward_pre_hooks[key]
        return module
    raise ValueError(words)

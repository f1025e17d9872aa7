"""What `compile` makes of a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .module import Module


class OptimizedModule(Module):
    """A module whose calls are compiled; parameters, names and attributes are those of `_orig_mod`, the module itself.

    >>> import tritensor as torch
    >>> model = torch.compile(torch.nn.Linear(2, 1))
    >>> list(model.state_dict())
    ['_orig_mod.weight', '_orig_mod.bias']
    """

    _orig_mod: Module

    def __init__(
        self,
        module: Module,
        compiled: Callable[[Callable[..., Any]], Callable[..., Any]],
        compile: Callable[[Module], Any],
    ) -> None:
        super().__init__()
        self._orig_mod = module
        # `dynamo_ctx` is PyTorch's name of what compiles another function of the module
        self.__dict__.update(_call=compiled(module.__call__), dynamo_ctx=compiled, _compile=compile)
        self.training = module.training

    def forward(self, *args: Any, **named: Any) -> Any:
        """The module's results, computed by the kernels of its plan."""
        return self._call(*args, **named)

    def train(self, mode: bool = True) -> OptimizedModule:
        """Set the mode of the module."""
        self._orig_mod.train(mode)
        self.training = mode
        return self

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *dir(self._orig_mod)]

    def __reduce__(self) -> Any:
        return self._compile, (self._orig_mod,)

"""PyTorch's `checkpoint_wrapper`: a module in another one, which computes it again for its gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any

from tritensor.nn import Module, Parameter
from tritensor.tensors import Tensor
from tritensor.utils.checkpoint import checkpoint

__all__ = ["CheckpointImpl", "CheckpointWrapper", "apply_activation_checkpointing", "checkpoint_wrapper"]

_PREFIX = "_checkpoint_wrapped_module."


class CheckpointImpl(Enum):
    """The two forms of `torch.utils.checkpoint`."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class CheckpointWrapper(Module):
    """Calls a module by `torch.utils.checkpoint`; parameters and state dicts have its names.

    Args:
        mod: the module.
        checkpoint_impl: the form; NO_REENTRANT unless given.
        checkpoint_fn: what is called in place of `torch.utils.checkpoint.checkpoint`.
        checkpoint_fn_kwargs: its further arguments.
    """

    def __init__(
        self,
        mod: Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        options: dict[str, Any] = {}
        if checkpoint_fn is None:
            options["use_reentrant"] = checkpoint_impl is CheckpointImpl.REENTRANT
        self.checkpoint_fn = partial(checkpoint_fn or checkpoint, **options, **checkpoint_fn_kwargs)
        self.register_state_dict_post_hook(_plain_names)
        self.register_load_state_dict_pre_hook(_own_names)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_checkpoint_wrapped_module"), name)

    def __getitem__(self, key: int) -> Any:
        return self._checkpoint_wrapped_module[key]  # type: ignore[index]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Parameter]]:
        """The parameters, by the names that they have in the module."""
        for name, param in super().named_parameters(*args, **kwargs):
            yield name.replace(_PREFIX, ""), param


def _plain_names(module: Module, state: dict[str, Any], prefix: str, *metadata: object) -> None:
    for name in [name for name in state if name.startswith(prefix + _PREFIX)]:
        state[prefix + name.removeprefix(prefix + _PREFIX)] = state.pop(name)


def _own_names(module: Module, state: dict[str, Tensor], prefix: str, *more: object) -> None:
    for name in [name for name in state if name.startswith(prefix)]:
        state[prefix + _PREFIX + name.removeprefix(prefix)] = state.pop(name)


def checkpoint_wrapper(
    module: Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: Any,
) -> CheckpointWrapper:
    """Let a module be computed again for its gradients; see `CheckpointWrapper`."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda module: True,
    auto_wrap_policy: Callable[[Module, bool, int], bool] | None = None,
) -> None:
    """Wrap the modules below a model that `check_fn`, or a policy of what FSDP wraps, chooses.

    Args:
        model: it is changed in place.
        checkpoint_wrapper_fn: makes the module that takes another's place.
        check_fn: true for those that are wrapped.
        auto_wrap_policy: asked instead, with the module, False and its number of parameters.
    """
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            size = sum(p.numel() for p in child.parameters())
            if check_fn(child) if auto_wrap_policy is None else auto_wrap_policy(child, False, size):
                setattr(parent, name, checkpoint_wrapper_fn(child))

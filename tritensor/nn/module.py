"""The Module: calling, training mode, conversion, hooks and state."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from ..functional.creation.likeness import empty_like
from ..ground.arguments import check_flag
from ..tensors import Tensor
from ..types import Device, Dtype, devices
from ..utils.hooks import RemovableHandle
from . import conversion
from .hooks import call_with_hooks, of_all, register
from .paths import remember
from .state_dict import IncompatibleKeys, check_own, load, save_own
from .summary import Summary, module_html, summarize
from .tree import GivesWay, ModuleTree

__all__ = ["Module"]


def _missing_forward(self: Module, *input: Any, **kwargs: Any) -> Any:
    """The computation of a call; every subclass defines it."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


# The tables of hooks that every module has, by attribute name.
_HOOK_TABLES = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class Module(ModuleTree):
    """The base class of all layers and models.

    A `Parameter` or a module that is assigned to an attribute is registered: it is found by `parameters()`, moved by
    `to()` and saved by `state_dict()`.

    >>> import tritensor as torch
    >>> class Scale(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = torch.nn.Parameter(torch.tensor(2.0))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> [name for name, _ in Scale().named_parameters()]
    ['factor']
    """

    # Written into state dicts beside the values; a subclass whose entries change increments it and reads old entries in
    # `_load_from_state_dict`.
    _version = 1
    call_super_init = False

    if TYPE_CHECKING:  # type checkers know no other form

        def __setattr__(self, name: str, value: object) -> None: ...
    else:
        __setattr__ = ModuleTree._set_attribute

    _backward_pre_hooks: OrderedDict[int, Any]
    _backward_hooks: OrderedDict[int, Any]
    _forward_hooks: OrderedDict[int, Any]
    _forward_hooks_with_kwargs: OrderedDict[int, Any]
    _forward_hooks_always_called: OrderedDict[int, Any]
    _forward_pre_hooks: OrderedDict[int, Any]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, Any]
    _state_dict_hooks: OrderedDict[int, Any]
    _state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_post_hooks: OrderedDict[int, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            what = (
                f"got an unexpected keyword argument '{next(iter(kwargs))}'"
                if kwargs
                else f"takes 1 positional argument but {len(args) + 1} were given"
            )
            raise TypeError(f"{type(self).__name__}.__init__() {what}")
        # directly into __dict__: __setattr__ would check each for a parameter or module
        own = self.__dict__
        own["training"] = True
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistent_buffers_set"] = set()
        own["_modules"] = {}
        for table in _HOOK_TABLES:
            own[table] = OrderedDict()
        remember(self)
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        remember(self)

    # ---- calling ----------------------------------------------------------------------------------------------

    forward: Callable[..., Any] = _missing_forward

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run forward, with the hooks around it."""
        if self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks or of_all:
            return call_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before forward; what it returns (if not None) replaces the arguments.

        Args:
            hook: with `with_kwargs` it is `hook(module, args, kwargs)` and returns both or None.
            prepend: run it before the hooks that are registered already.
            with_kwargs: whether it gets the keyword arguments.
        """
        also = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return register(self._forward_pre_hooks, hook, prepend, also)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after forward; what it returns (if not None) replaces the output.

        Args:
            hook: with `with_kwargs` it is `hook(module, args, kwargs, output)`.
            prepend: run it before the hooks that are registered already.
            with_kwargs: whether it gets the keyword arguments.
            always_call: run it also when forward raised.
        """
        also = [self._forward_hooks_with_kwargs] if with_kwargs else []
        also += [self._forward_hooks_always_called] if always_call else []
        return register(self._forward_hooks, hook, prepend, also)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` when the gradients of the outputs are known; it may return others."""
        return register(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the inputs are known.

        Both are tuples, with None for values that are not tensors or need no gradient; what the hook returns (if not
        None) replaces `grad_input`. Only positional arguments are counted as inputs.
        """
        return register(self._backward_hooks, hook, prepend)

    # ---- showing ----------------------------------------------------------------------------------------------

    _repr_html_ = module_html

    @GivesWay
    def summary(self, *inputs: Any, depth: int | None = None, file: Any = None, **named: Any) -> Summary:
        """Summarises the module and the cost of one call: a table with a line for each module in it.

        The call is made without gradients. Afterwards, also if it raised, buffers, attributes and the states of default
        generators are what they were. A parameter, buffer or submodule of the name `summary` comes before this method,
        which is then `nn.Module.summary(module, ...)`.

        Counted are operations of products, two for each multiplication: 2 m n k for an (m, k) by a (k, n) matrix,
        2 (elements of the result, or of the input if transposed) (elements of a channel's kernel) for a convolution,
        2 (queries) (keys) (E + Ev) for attention, 2 (rows) (elements of weights) for recurrent layers.

        >>> from tritensor import nn
        >>> nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU()).summary((2, 1, 8, 8))
        module  class       inputs        outputs       parameters      bytes  FLOPs  notes
        -       Sequential  (2, 1, 8, 8)  (2, 4, 6, 6)          40  160 bytes  5,184
          0     Conv2d      (2, 1, 8, 8)  (2, 4, 6, 6)          40  160 bytes  5,184
          1     ReLU        (2, 4, 6, 6)  (2, 4, 6, 6)           0    0 bytes      0
        40 parameters of 160 bytes, 40 trainable; 0 in buffers; 5,184 FLOPs, activations of 2.25 KiB

        Args:
            inputs: of `forward`; a tuple or list of ints is the shape of random numbers, which are made on the device
                and of the dtype of the first floating parameter or buffer, or of int64 zeros where `forward` fails with
                these: a model of words takes integers.
            depth: how many levels below the module are listed.
            file: where to print the table to.
            named: other arguments of `forward`.

        Raises:
            ArgumentError: a depth of less than 0. RuntimeError: a lazy layer. Whatever `forward` raises.
        """
        found = summarize(self, inputs, named, depth)
        if file is not None:
            print(found, file=file)
        return found

    # ---- mode and gradients -----------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Put the module and all below it into training mode (or, with false, into evaluation mode)."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Put the module and all below it into evaluation mode."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of all parameters, for freezing part of a model."""
        check_flag("requires_grad_", "requires_grad", requires_grad, 1)
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros."""
        for param in self.parameters():
            clear_gradient(param, set_to_none)

    # ---- conversion -------------------------------------------------------------------------------------------

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        conversion.convert(self, fn, recurse)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move and cast the module in place, and return it.

        It is called as `to(device=None, dtype=None, non_blocking=False)`, `to(dtype)` or `to(tensor)`, each with a
        `memory_format` for parameters and buffers of four and five dimensions.

        Parameters stay the same objects. Their gradients are converted with them, an optimizer's state at its next
        step. Only floating and complex tensors are cast, all are moved. Tensors that the module holds without having
        registered them stay where they are, and a warning names them. If the device has not enough memory, the module
        is unchanged.

        Raises:
            ArgumentError: arguments of no form.
            TypeError: a dtype that is neither floating nor complex.
            OutOfMemoryError: the device has not enough memory; nothing has changed.
        """
        return self._convert(*conversion.parse(args, **kwargs))

    def _convert(self, device: Device, dtype: Dtype, non_blocking: bool, memory_format: Any) -> Self:
        self._apply(conversion.converter(device, dtype, non_blocking, memory_format))
        conversion.warn_unregistered(self, device, dtype)
        return self

    def to_empty(self, *, device: Device, recurse: bool = True) -> Self:
        """Give the module uninitialised memory on a device, and return it: a model that was made on `meta`, above all.

        >>> from tritensor import nn
        >>> nn.Linear(2, 3, device="meta").to_empty(device="cpu").weight.shape
        tritensor.Size([3, 2])

        Args:
            recurse: the modules below as well.
        """
        return self._apply(lambda tensor: empty_like(tensor, device=device), recurse)

    def share_memory(self) -> Self:
        """Move the parameters and buffers to memory that other processes share, see `Tensor.share_memory_`."""
        return self._apply(lambda tensor: tensor.share_memory_())

    def cuda(self, device: Device = None) -> Self:
        """Move the module to a CUDA device, the current one unless another is named."""
        return self._convert(*conversion.parse((devices.device("cuda", devices.ordinal(device)),)))

    def cpu(self) -> Self:
        """Move the module to the CPU."""
        return self._convert(*conversion.parse(("cpu",)))

    def type(self, dst_type: Any) -> Self:
        """Cast all parameters and buffers, those of integers too."""
        return self._apply(lambda tensor: tensor.type(dst_type))

    def float(self) -> Self:
        """Cast floating parameters and buffers to float32."""
        return self._cast("float32")

    def double(self) -> Self:
        """Cast floating parameters and buffers to float64."""
        return self._cast("float64")

    def half(self) -> Self:
        """Cast floating parameters and buffers to float16."""
        return self._cast("float16")

    def bfloat16(self) -> Self:
        """Cast floating parameters and buffers to bfloat16."""
        return self._cast("bfloat16")

    def _cast(self, name: str) -> Self:
        from ..types import dtypes

        dtype = getattr(dtypes, name)
        # unlike `to`, these leave complex tensors as they are
        self._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)
        conversion.warn_unregistered(self, None, dtype)
        return self

    # ---- state ------------------------------------------------------------------------------------------------

    def get_extra_state(self) -> Any:
        """Other state to put into the state dict; a subclass defines it together with `set_extra_state`."""
        raise RuntimeError(f"{type(self).__name__} defines no get_extra_state()")

    def set_extra_state(self, state: Any) -> None:
        """Restore what `get_extra_state` returned when the state dict was made."""
        raise RuntimeError(f"{type(self).__name__} defines no set_extra_state()")

    def state_dict(
        self, *, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """The parameters and persistent buffers by path; they share memory with the module.

        Args:
            destination: the mapping to put them into, a new ordered one unless given.
            prefix: put in front of every path.
            keep_vars: return the parameters themselves and not detached tensors.
        """
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()  # type: ignore[attr-defined]
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            if hook(self, destination, prefix, metadata) is not None:
                raise RuntimeError("state_dict post-hook must return None")
        return destination

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        extra = type(self).get_extra_state is not Module.get_extra_state
        save_own(self, destination, prefix, keep_vars, extra)

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy a state dict's values into the module. Everything is checked before anything is changed.

        Args:
            state_dict: tensors by path, on any device.
            strict: raise for missing and unexpected keys.
            assign: make the state dict's tensors the module's own, with their dtype and device, in place of copying. An
                optimizer has to be made after that.

        Returns:
            The missing and the unexpected keys.

        Raises:
            CheckpointError: keys or shapes do not fit; the message lists all, and what they may have been renamed from.
            TypeError: `state_dict` is no mapping.
        """
        return load(self, state_dict, strict, assign)

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Check the module's own entries; a subclass may rename entries of `state_dict` before calling this."""
        findings = (missing_keys, unexpected_keys, error_msgs)
        for hook in self._load_state_dict_pre_hooks.values():
            hook(self, state_dict, prefix, local_metadata, strict, *findings)
        extra = type(self).set_extra_state is not Module.set_extra_state
        check_own(self, state_dict, prefix, local_metadata, *findings, extra)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before the module's state is read."""
        return register(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after it was read; it may change `state_dict`."""
        return register(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors)` first."""
        return register(self._load_state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        """The same by its first name; the hook is called without the module, unless it is asked for."""
        return register(self._load_state_dict_pre_hooks, hook if with_module else partial(_without_module, hook))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after loading; keys that it removes are no longer an error."""
        return register(self._load_state_dict_post_hooks, hook)


def _without_module(hook: Callable[..., Any], module: Module, *args: Any) -> None:
    """Call a hook that does not take the module; a function of its own, so that copies of a module copy its hooks."""
    hook(*args)


def clear_gradient(tensor: Tensor, set_to_none: bool) -> None:
    """Drop a tensor's gradient, or fill it with zeros."""
    grad = tensor._grad
    if grad is None:
        return
    if set_to_none:
        tensor._grad = None
    else:
        grad.detach_() if grad.grad_fn is not None else grad.requires_grad_(False)
        grad.zero_()

"""torch.library: a program's own operators. They are Python functions here, and are called as they are."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ....autograd import Function
from . import ops

__all__ = ["CustomOpDef", "Library", "custom_op", "define", "impl", "opcheck", "register_autograd", "register_fake"]
__all__ += ["register_kernel", "triton_op", "wrap_triton"]


class CustomOpDef:
    """An operator of a program: what it computes on each kind of device, and its gradient."""

    def __init__(
        self, name: str, fn: Callable[..., Any] | None = None, device_types: str | Sequence[str] | None = None
    ) -> None:
        self.name = name
        self.kernels: dict[str | None, Any] = {None: fn}
        self.backward: Callable[..., Any] | None = None
        self.setup: Any = None
        if fn is not None:
            functools.update_wrapper(self, fn)
        for kind in _kinds(device_types):
            self.register_kernel(kind, fn)
        namespace, _, short = name.rpartition("::")
        if namespace:
            setattr(ops.namespace(namespace), short, self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute it, and record it if it has a gradient."""
        if self.backward is None:
            return self._compute(*args, **kwargs)
        bound = inspect.signature(self.kernels[None] or self._compute).bind(*args, **kwargs)
        bound.apply_defaults()
        return self._function().apply(*bound.args)

    def _compute(self, *args: Any, **kwargs: Any) -> Any:
        places = [each.device.type for each in (*args, *kwargs.values()) if hasattr(each, "device")]
        kernel = self.kernels.get(places[0] if places else "cpu") or self.kernels[None]
        if kernel is None:
            raise NotImplementedError(f"{self.name} has no kernel for {places[0] if places else 'cpu'}")
        return kernel(*args, **kwargs)

    def _function(self) -> Any:
        operator = self

        class Recorded(Function):
            @staticmethod
            def forward(ctx: Any, *args: Any) -> Any:
                found = operator._compute(*args)
                if operator.setup is not None:
                    operator.setup(ctx, args, found)
                return found

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                assert operator.backward is not None
                return operator.backward(ctx, *grads)

        Recorded.__name__ = f"GeneratedBackwardFor_{self.name.replace('::', '_')}_default"
        return Recorded

    @property
    def default(self) -> CustomOpDef:
        """The operator; it has one overload."""
        return self

    def register_kernel(
        self, device_types: str | Sequence[str] | None, func: Callable[..., Any] | None = None, /
    ) -> Any:
        """What it computes on one kind of device, or on several; a decorator without the function."""
        return _kept(func, lambda fn: self.kernels.update(dict.fromkeys(_kinds(device_types), fn)))

    def register_fake(self, fn: Callable[..., Any] | None = None, /) -> Any:
        """Not needed: nothing is traced."""
        return _kept(fn, lambda fn: None)

    register_vmap = register_fake

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """The gradients of the inputs, `backward(ctx, *grads)`, and what `ctx` keeps of a call."""
        self.backward, self.setup = backward, setup_context


def _kinds(device_types: str | Sequence[str] | None) -> Sequence[str]:
    return (device_types,) if isinstance(device_types, str) else tuple(device_types or ())


def _kept(fn: Callable[..., Any] | None, keep: Callable[[Any], Any]) -> Any:
    def decorated(fn: Callable[..., Any]) -> Any:
        keep(fn)
        return fn

    return decorated if fn is None else decorated(fn)


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Any = (),
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    **_: Any,
) -> Any:
    """An operator that a Python function computes; a decorator without the function."""
    return CustomOpDef(name, fn, device_types) if fn is not None else lambda fn: CustomOpDef(name, fn, device_types)


triton_op = custom_op


def wrap_triton(triton_kernel: Any, /) -> Any:
    """The kernel itself."""
    return triton_kernel


def _found(op: CustomOpDef | str) -> CustomOpDef:
    if isinstance(op, CustomOpDef):
        return op
    namespace, _, name = op.partition("::")
    found = getattr(ops.namespace(namespace), name.partition(".")[0], None)
    return found if isinstance(found, CustomOpDef) else CustomOpDef(op.partition(".")[0])


def define(qualname: str, schema: Any = None, *, lib: Any = None, tags: Any = ()) -> None:
    """An operator, whose kernels are registered later."""
    _found(qualname.partition("(")[0])


def impl(qualname: str, types: str | Sequence[str], func: Callable[..., Any] | None = None, *, lib: Any = None) -> Any:
    """What an operator computes on a kind of device, or on all: "default"."""
    kinds = [None if kind in ("default", "CompositeImplicitAutograd") else kind.lower() for kind in _kinds(types)]
    return _kept(func, lambda fn: _found(qualname).kernels.update(dict.fromkeys(kinds, fn)))


def register_kernel(
    op: CustomOpDef | str, device_types: str | Sequence[str] | None, func: Callable[..., Any] | None = None, /, **_: Any
) -> Any:
    """What an operator computes on a kind of device."""
    return _found(op).register_kernel(device_types, func)


def register_fake(op: CustomOpDef | str, func: Callable[..., Any] | None = None, /, **_: Any) -> Any:
    """Not needed: nothing is traced."""
    return _kept(func, lambda fn: None)


impl_abstract = register_vmap = register_fake


def register_autograd(
    op: CustomOpDef | str,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Any = None,
) -> None:
    """The gradient of an operator."""
    _found(op).register_autograd(backward, setup_context=setup_context)


def opcheck(op: CustomOpDef | str, args: Any, kwargs: Any = None, **_: Any) -> dict[str, str]:
    """Call the operator."""
    _found(op)(*args, **(kwargs or {}))
    return {}


class Library:
    """A namespace in which a program defines operators."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, *args: Any, **kwargs: Any) -> str:
        """An operator, whose kernels are registered later."""
        name = schema.partition("(")[0].strip()
        define(f"{self.ns}::{name}")
        return name

    def impl(self, op_name: str, fn: Callable[..., Any], dispatch_key: str = "", **_: Any) -> None:
        """What an operator computes."""
        impl(f"{self.ns}::{op_name.rpartition('::')[2]}", dispatch_key or self.dispatch_key or "default", fn)

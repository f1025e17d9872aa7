"""Custom operators: their kernels for each device, gradients, and shapes on meta tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..errors import AutogradError, require
from .checks import OpCheckError, opcheck
from .definitions import CustomOpDef, defined, found_by, kept
from .schemas import Schema, infer_schema

__all__ = ["CustomOpDef", "Library", "OpCheckError", "custom_op", "define", "impl", "infer_schema", "opcheck"]
__all__ += ["register_autograd", "register_fake", "register_kernel", "register_vmap", "triton_op", "wrap_triton"]


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: object = None,
) -> Any:
    """Make an operator of a Python function; a decorator without the function.

    >>> import tritensor as torch
    >>> @torch.library.custom_op("mylib::scale", mutates_args=())
    ... def scale(x: torch.Tensor, by: float) -> torch.Tensor:
    ...     return torch.from_numpy(x.numpy() * by)
    >>> scale.register_autograd(
    ...     lambda ctx, grad: (grad * ctx.by, None),
    ...     setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]),
    ... )
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.ops.mylib.scale(x, 3.0).sum().backward()
    >>> x.grad
    tensor([3., 3.])

    Args:
        name: with a namespace, `mylib::scale`.
        mutates_args: the names of the arguments that the function changes in place; a call counts as a change of them.
        device_types: the kinds of devices whose kernel the function is, such as "cpu"; all of them by default.
        schema: arguments and results, in place of those that the annotations say (`infer_schema`).
        tags: accepted.

    Raises:
        ValueError: no schema can be inferred, or it says that other arguments change.
    """

    def made(fn: Callable[..., Any]) -> CustomOpDef:
        found = CustomOpDef(name, schema or infer_schema(fn, mutates_args=mutates_args), fn)
        if schema is not None and set(found._mutated) != set(mutates_args):
            raise ValueError(
                f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={schema}. The schema "
                f"suggests that the op mutates {set(found._mutated)}which is different from what was provided to us in "
                "`mutates_args`. Please make these consistent."
            )
        found.register_kernel(device_types, fn)
        return found

    return made if fn is None else made(fn)


triton_op = custom_op


def wrap_triton(triton_kernel: Callable[..., Any], /) -> Callable[..., Any]:
    """The kernel itself."""
    return triton_kernel


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: object = ()) -> None:
    """Define an operator by its schema; its kernels are registered later.

    Raises:
        RuntimeError: there is one of this name.
    """
    if defined(qualname):
        words = f"Tried to register an operator ({qualname}{schema}) with the same name and overload name"
        raise AutogradError(f"{words} multiple times.")
    CustomOpDef(qualname, schema)


def impl(
    qualname: str | Library,
    types: str | Sequence[str],
    func: str | Callable[..., Any] | None = None,
    *,
    lib: Library | None = None,
) -> Any:
    """Implement an operator on kinds of devices, "default" for all of them; a decorator without the function.

    `impl(lib, name, dispatch_key)` is the older form.
    """
    if isinstance(qualname, Library):
        library, key = qualname, func if isinstance(func, str) else ""
        return kept(None, lambda fn: library.impl(str(types), fn, key))
    kinds = [types] if isinstance(types, str) else list(types)

    def keep(fn: Callable[..., Any]) -> None:
        found = found_by(qualname)
        for kind in kinds:
            if kind.startswith("Autograd"):
                found.through = fn
            elif kind.startswith("CompositeImplicit"):
                found.composed = fn
            else:
                everywhere = kind in ("default", "BackendSelect") or kind.startswith("Composite")
                found.kernels[None if everywhere else kind.lower()] = fn

    return kept(None if isinstance(func, str) else func, keep)


def _of_operator(name: str) -> Callable[..., Any]:
    """A method of an operator as a function of the operator, or of its name."""
    method = getattr(CustomOpDef, name)

    def call(op: CustomOpDef | str, /, *args: Any, lib: Library | None = None, **named: Any) -> Any:
        return method(found_by(op), *args, **named)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`CustomOpDef.{name}` of an operator, or of the one of a name: {method.__doc__}"
    return call


register_autograd = _of_operator("register_autograd")
register_fake = impl_abstract = _of_operator("register_fake")
register_kernel = _of_operator("register_kernel")
register_vmap = _of_operator("register_vmap")


class Library:
    """A namespace in which a program defines operators by their schemas.

    >>> import tritensor as torch
    >>> lib = torch.library.Library("halves", "DEF")
    >>> lib.define("half(Tensor x) -> Tensor")
    'half'
    >>> lib.impl("half", lambda x: x / 2, "CompositeImplicitAutograd")
    >>> torch.ops.halves.half(torch.ones(2))
    tensor([0.5000, 0.5000])

    Args:
        ns: the namespace.
        kind: "DEF", "FRAGMENT" or "IMPL".
        dispatch_key: the kind of device of `impl` where it says none.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        require(kind in ("IMPL", "DEF", "FRAGMENT"), ValueError, "Unsupported kind: {}", kind)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: object = ()) -> str:
        """Define an operator, `half(Tensor x) -> Tensor`, and return its name."""
        name = Schema(schema).name
        define(f"{self.ns}::{name}", schema[schema.index("(") :])
        return name

    def impl(self, op_name: str | CustomOpDef, fn: Callable[..., Any], dispatch_key: str = "", **more: object) -> None:
        """Implement an operator."""
        name = op_name._name if isinstance(op_name, CustomOpDef) else op_name.rpartition("::")[2]
        impl(f"{self.ns}::{name}", dispatch_key or self.dispatch_key or "CompositeImplicitAutograd", fn)

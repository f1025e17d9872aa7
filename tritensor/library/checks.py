"""Checks of a program's operator: that it does what its schema, its fake and its gradient say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.mode import no_grad
from ..errors import AutogradError
from ..tensors import Tensor, tensors_in
from .definitions import CustomOpDef, found_by


class OpCheckError(Exception):
    """Raised by `opcheck`."""


_USUAL = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


def opcheck(
    op: CustomOpDef,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = _USUAL,
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Check that an operator does what its schema, its fake and its gradient say, for arguments of a call.

    Args:
        test_utils: "test_schema" looks for changes in place that the schema does not say, "test_faketensor" compares
            shapes and dtypes of the fake's results with those that are computed, "test_aot_dispatch_dynamic" runs a
            backward pass; "test_autograd_registration" and "test_aot_dispatch_static" are parts of the last.
        raise_exception: False to return the errors.
        atol, rtol: accepted.

    Returns:
        "SUCCESS", or the error, by the name of the test.

    Raises:
        OpCheckError: something differs. ValueError: there is no such test.
    """
    wanted = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if not set(wanted) <= {*_TESTS}:
        words = f"opcheck(op, ..., test_utils={wanted}), expected test_utils to be subset of"
        raise ValueError(f"{words} {tuple(_TESTS)} but it was not")
    results: dict[str, Any] = {}
    for each in wanted:
        try:
            _TESTS[each](found_by(op), args, kwargs or {})
            results[each] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                words = f"opcheck(op, ...): {each} failed with {error} (scroll up for stack trace)"
                raise OpCheckError(words) from error
            results[each] = error
    return results


def _copied(value: object, meta: bool = False) -> Any:
    """Arguments with copies of their tensors, of those on meta shapes and dtypes alone."""
    if isinstance(value, Tensor):
        copy = value.detach().to("meta" if meta else value.device, copy=True)
        return copy.requires_grad_(value.requires_grad)
    return type(value)([_copied(each, meta) for each in value]) if isinstance(value, (list, tuple)) else value


def _check_schema(op: CustomOpDef, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    positional, named = op.schema.bind(_copied(args), kwargs)
    given = dict(zip([each.name for each in op.schema.arguments], positional)) | named
    before = {name: _copied(value) for name, value in given.items()}
    op(*positional, **named)
    for name, value in given.items():
        pairs = zip(tensors_in([value]), tensors_in([before[name]]), strict=True)
        if name not in op._mutated and not all(x.equal(y) or bool(x.isnan().any()) for x, y in pairs):
            raise AutogradError(f"Argument {name} is not defined as mutable but was mutated")


def _check_fake(op: CustomOpDef, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    with no_grad():
        found = list(tensors_in([op.compute(*op.schema.bind(_copied(args), kwargs))]))
        faked = list(tensors_in([op.faked(*op.schema.bind(_copied(args, meta=True), kwargs))]))
    words = f"When comparing the output of {op.overload} on FakeTensor and concrete Tensors, found"
    if len(found) != len(faked):
        raise AutogradError(f"{words} {len(faked)} tensors in place of {len(found)}")
    for x, y in zip(found, faked, strict=True):
        for what, one, other in (("Shapes", x.shape, y.shape), ("Dtypes", x.dtype, y.dtype)):
            if one != other:
                raise AutogradError(f"{words} mismatched tensor metadata: {what} {one} and {other} are not equal!")


def _check_gradient(op: CustomOpDef, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    for x in tensors_in([op(*_copied(args), **kwargs)]):
        if x.requires_grad:
            x.sum().abs().backward(retain_graph=True)


_TESTS: dict[str, Callable[[CustomOpDef, tuple[Any, ...], dict[str, Any]], None]] = {
    "test_schema": _check_schema,
    "test_autograd_registration": lambda op, args, kwargs: None,
    "test_faketensor": _check_fake,
    "test_aot_dispatch_static": _check_gradient,
    "test_aot_dispatch_dynamic": _check_gradient,
}

"""One expression of tensors, evaluated with PyTorch and with tritensor: results, gradients of both orders, errors."""

from __future__ import annotations

import re
import warnings
from functools import partial
from typing import Any

import numpy as np

import tritensor


def evaluated(library: Any, text: str, arrays: dict[str, np.ndarray], last: bool, orders: int) -> dict[str, Any]:
    """What the expression gives: the facts about its result, and gradients; or the error.

    Args:
        arrays: the tensors by name; floating ones require a gradient.
        last: whether those of four dimensions are in the memory format channels_last.
    """
    scope: dict[str, Any] = {"torch": library, "nn": library.nn, "F": library.nn.functional}
    for name, array in arrays.items():
        tensor = library.from_numpy(array.copy())
        if last and tensor.ndim == 4:
            tensor = tensor.contiguous(memory_format=library.channels_last)
        scope[name] = tensor.requires_grad_(array.dtype.kind == "f")
    leaves = [scope[name] for name, array in arrays.items() if array.dtype.kind == "f"]
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            out = eval(text, scope)
    except Exception as error:
        kind = next(each for each in KINDS if isinstance(error, each))
        return {"error": kind.__name__, "words": str(error).split("\n")[0]}
    facts = {"shape": tuple(out.shape), "dtype": str(out.dtype).split(".")[1], "strides": out.stride(), "value": out}
    facts["warnings"] = [str(each.message)[:60] for each in told]
    if out.requires_grad and out.numel():
        facts["node"] = name_of(out.grad_fn)
        facts |= gradients(library, [out], leaves, orders)
    return {key: plain(value) for key, value in facts.items()}


def name_of(node: Any) -> str:
    """The name of a result's node, without PyTorch's namespace."""
    name = node.name() if callable(node.name) else node.name
    return str(name).replace("torch::autograd::", "")


def gradients(library: Any, outs: list[Any], leaves: list[Any], orders: int) -> dict[str, list[Any]]:
    """The gradients of `outs` by `leaves`, and for two orders those of these by leaves and cotangents."""
    several = [
        library.from_numpy(np.asarray(cotangents(tuple(out.shape)) * (1 - 0.5j if out.is_complex() else 1)))
        .to(out.dtype)
        .to(out.device)
        for out in outs
    ]
    several = [cotangent.requires_grad_(orders > 1) for cotangent in several]
    grad = partial(library.autograd.grad, allow_unused=True)
    facts = {"first": list(grad(outs, leaves, several, create_graph=orders > 1))}
    parts = [part for part in facts["first"] if part is not None and part.requires_grad]
    if orders > 1 and parts:
        parts = [library.view_as_real(part * 1) if part.is_complex() else part for part in parts]  # of no pending sign
        sums = [(part * library.from_numpy(cotangents(tuple(part.shape))).to(part.device)).sum() for part in parts]
        leaves = [*leaves, *several]
        second = grad(sum(sums), leaves)
        facts["second"] = [
            library.zeros_like(leaf) if part is None else part for part, leaf in zip(second, leaves, strict=True)
        ]
    return facts


KINDS = (IndexError, TypeError, ValueError, NotImplementedError, AssertionError, RuntimeError, AttributeError)


def cotangents(shape: tuple[int, ...]) -> np.ndarray:
    """Numbers that differ between neighbours, the same in every call."""
    return np.cos(np.arange(np.prod(shape, dtype=int)) * 1.7).reshape(shape)


def plain(value: Any) -> Any:
    """Tensors as arrays."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.detach().double().cpu().numpy() if hasattr(value, "detach") else value


def assert_alike(
    text: str,
    arrays: dict[str, np.ndarray],
    *,
    last: bool = False,
    orders: int = 2,
    tolerance: float = 1e-6,
    **skip: bool,
) -> None:
    """Fail unless both libraries give the same; `strides=False`, `node=False` and the like leave a fact out."""
    import torch

    wanted = evaluated(torch, text, arrays, last, orders)
    found = evaluated(tritensor, text, arrays, last, orders)
    assert found.keys() == wanted.keys(), (text, found, wanted)
    for key, value in wanted.items():
        if not skip.get(key, True) or (key == "strides" and 0 in wanted["shape"]):
            continue
        if key == "words":
            ours, theirs = (re.sub(r" \(position \d+\)", "", each)[:70] for each in (found[key], value))
            assert ours == theirs, text
        elif key in ("value", "first", "second"):
            for ours, theirs in zip(*([each] if key == "value" else each for each in (found[key], value)), strict=True):
                np.testing.assert_allclose(ours, theirs, tolerance, tolerance, err_msg=f"{text}: {key}")
        else:
            assert found[key] == value, (text, key)

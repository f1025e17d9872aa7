"""Modules as functions of their parameters: `functional_call`, and `stack_module_state` for ensembles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import AutogradError, require
from ..functional.views.joining import stack
from ..tensors import Tensor

_MISSING: Any = object()


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: tuple[Tensor, ...] | None = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers than its own.

    >>> import tritensor as torch
    >>> layer = torch.nn.Linear(1, 1, bias=False)
    >>> torch.func.functional_call(layer, {"weight": torch.tensor([[3.0]])}, torch.tensor([2.0]))
    tensor([6.])

    Values that the call assigns to them are in the dict afterwards, and not in the module.

    Args:
        parameter_and_buffer_dicts: tensors by their paths, or several such dicts; the others are the module's own.
        args, kwargs: of the call; a value that is no tuple is the only argument.
        tie_weights: whether a tensor that the module holds under several names is replaced under all of them.
        strict: whether the dicts have to hold all parameters and buffers, and no other names.

    Raises:
        ValueError: a name in several dicts, or different tensors for one that is tied. RuntimeError: see `strict`.
        AttributeError: there is no such submodule.
    """
    found = _merged(parameter_and_buffer_dicts)
    named = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    given = _tied(named, found) if tie_weights else dict(found)
    if strict:
        _check_names(module, named, given)
    places = {name: _place(module, name) for name in given}
    own = {name: table.get(key, _MISSING) for name, (table, key) in places.items()}
    try:
        for name, (table, key) in places.items():
            table[key] = given[name]
        arguments = () if args is None else args if isinstance(args, tuple) else (args,)
        return module(*arguments, **(kwargs or {}))
    finally:
        for name, (table, key) in places.items():
            if name in found:
                found[name] = table.get(key, found[name])
            if own[name] is _MISSING:
                table.pop(key, None)
            else:
                table[key] = own[name]


def _merged(dicts: Any) -> dict[str, Any]:
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    if not all(isinstance(each, dict) for each in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for each in dicts for name in each]
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for each in dicts for name, value in each.items()}


def _tied(named: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """What is given, under all names that the module has for each."""
    groups: dict[int, list[str]] = {}
    for name, tensor in named.items():
        groups.setdefault(id(tensor), []).append(name)
    given = dict(found)
    for names in groups.values():
        values = {id(found[name]): found[name] for name in names if name in found}
        if len(values) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(names)}, which are tied. Consider using "
                "tie_weights=False"
            )
        for value in values.values():
            given.update(dict.fromkeys(names, value))
    return given


def _check_names(module: Any, named: dict[str, Any], given: dict[str, Any]) -> None:
    lists = {
        "Unexpected": [name for name in given if name not in named],
        "Missing": [name for name in named if name not in given],
    }
    lines = [f"{kind} key(s): {', '.join(map(repr, names))}." for kind, names in lists.items() if names]
    if lines:
        raise AutogradError("Error(s) in reparametrizing for {}:\n\t{}".format(module._get_name(), "\n\t".join(lines)))


def _place(module: Any, path: str) -> tuple[dict[str, Any], str]:
    """The table of a module, and the key, in which the tensor of a path is."""
    owner, _, key = path.rpartition(".")
    holder = module.get_submodule(owner)
    for table in (holder._parameters, holder._buffers):
        if key in table:
            return table, key
    return holder.__dict__, key


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Stack the parameters and buffers of modules of one class along a new first dimension, for `vmap` (ensembles).

    >>> import tritensor as torch
    >>> models = [torch.nn.Linear(2, 3) for _ in range(4)]
    >>> params, buffers = torch.func.stack_module_state(models)
    >>> params["weight"].shape
    tritensor.Size([4, 3, 2])

    The stacked parameters are leaves of their own.

    Raises:
        RuntimeError: no modules, or modules of different classes, modes or flags `requires_grad`.
    """
    words = "stack_module_state: Expected"
    require(len(models), AutogradError, "{} at least one model, got 0.", words)
    if len({model.training for model in models}) > 1:
        raise AutogradError(f"{words} all models to have the same training/eval mode.")
    require(len({type(model) for model in models}) <= 1, AutogradError, "{} all models to be of the same class.", words)
    found = []
    for members in ("named_parameters", "named_buffers"):
        tables = [dict(getattr(model, members)()) for model in models]
        found.append({name: _stacked([table[name] for table in tables], name) for name in tables[0]})
    return found[0], found[1]


def _stacked(tensors: list[Any], name: str) -> Tensor:
    flags = {tensor.requires_grad for tensor in tensors}
    require(len(flags) <= 1, AutogradError, "Expected {} from each model to have the same .requires_grad", name)
    joined = stack(tensors)
    return joined.detach().requires_grad_() if flags.pop() else joined

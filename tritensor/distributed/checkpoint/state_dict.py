"""State dicts by the names of parameters: without what wrappers add to names, for optimizers too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ...autograd import no_grad
from ...errors import CheckpointError, UnsupportedError
from ...func.trees import tree_map
from ...functional.creation.likeness import empty_like, zeros_like
from ...tensors import Tensor
from ..collectives import broadcast
from ..groups import get_rank

if TYPE_CHECKING:
    Module = Any  # the rooms of these two are above this one
    Optimizer = Any

__all__ = ["StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict"]
__all__ += ["set_model_state_dict", "set_optimizer_state_dict", "set_state_dict"]

State = dict[str, Any]
Optimizers: TypeAlias = "Optimizer | Iterable[Optimizer]"


@dataclass
class StateDictOptions:
    """How state dicts are made and loaded.

    Attributes:
        full_state_dict: accepted; values are whole here in any case.
        cpu_offload: whether values that are returned are moved to the CPU.
        ignore_frozen_params: whether parameters that do not require grad are left out.
        strict: whether a name that is missing or not expected raises.
        broadcast_from_rank0: whether process 0 has the values, and the others get them from it.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"

    def __post_init__(self) -> None:
        if self.flatten_optimizer_state_dict:
            raise UnsupportedError("flatten_optimizer_state_dict is not supported", remedy="leave it False")
        if self.broadcast_from_rank0 and not self.full_state_dict:
            raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> State:
    """The state dict of a model, by names as if nothing wrapped it (`DistributedDataParallel`, `compile`).

    >>> import tritensor as torch
    >>> model = torch.nn.DataParallel(torch.nn.Linear(2, 1))
    >>> sorted(model.state_dict()), sorted(get_model_state_dict(model))
    (['module.bias', 'module.weight'], ['bias', 'weight'])
    """
    options = options or StateDictOptions()
    if submodules:
        raise UnsupportedError("submodules is not supported", remedy="pass the submodule as the model")
    frozen = {name for name, p in model.named_parameters() if not p.requires_grad and options.ignore_frozen_params}
    state = {_plain(name): value for name, value in model.state_dict().items() if name not in frozen}
    return _moved(state) if options.cpu_offload else state


@no_grad()
def set_model_state_dict(
    model: Module, model_state_dict: State, *, options: StateDictOptions | None = None
) -> tuple[list[str], list[str]]:
    """Load a state dict by names as if nothing wrapped the model; the names that are missing and not expected.

    Raises:
        RuntimeError: such a name, if the options are strict; nothing has changed then.
    """
    options = options or StateDictOptions()
    own, given = model.state_dict(), dict(model_state_dict)
    if options.broadcast_from_rank0:
        for name, value in own.items():
            if isinstance(value, Tensor):
                first = given[_plain(name)].to(value.device) if get_rank() == 0 else empty_like(value)
                given[_plain(name)] = first
                broadcast(first, 0)
    wrapped = {_plain(name): name for name in own}
    named = {wrapped.get(name, name): value for name, value in given.items()}
    meta = any(isinstance(value, Tensor) and value.device.type == "meta" for value in own.values())
    return model.load_state_dict(named, strict=options.strict, assign=meta)


def get_optimizer_state_dict(
    model: Module,
    optimizers: Optimizers,
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> State:
    """The state of optimizers by the names of a model's parameters instead of their numbers.

    An optimizer that has made no step makes one of zero gradients and a learning rate of 0, so that it has a state.
    """
    options = options or StateDictOptions()
    found: State = {"state": {}, "param_groups": []}
    for optimizer, names in _named(model, optimizers):
        _start(optimizer)
        plain = optimizer.state_dict()
        found["state"] |= {names[number]: value for number, value in plain["state"].items()}
        found["param_groups"] += [
            {**each, "params": [names[x] for x in each["params"]]} for each in plain["param_groups"]
        ]
    return _moved(found) if options.cpu_offload else found


def set_optimizer_state_dict(
    model: Module, optimizers: Optimizers, optim_state_dict: State, *, options: StateDictOptions | None = None
) -> None:
    """Load the state that `get_optimizer_state_dict` returned.

    Raises:
        CheckpointError: it lacks a parameter of an optimizer.
    """
    states, given = optim_state_dict["state"], optim_state_dict["param_groups"]
    for optimizer, names in _named(model, optimizers):
        groups = []
        for group in optimizer.state_dict()["param_groups"]:
            first = [names[number] for number in group["params"]][:1]
            other = next((each for each in given if set(first) <= set(each["params"])), None)
            if other is None:
                raise CheckpointError(f"the optimizer's state has no group with {first[0]}")
            groups.append({**other, "params": group["params"]})
        _start(optimizer)
        state = {number: states[name] for number, name in names.items() if name in states}
        optimizer.load_state_dict({"state": state, "param_groups": groups})


def get_state_dict(
    model: Module,
    optimizers: Optimizers,
    *,
    submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[State, State]:
    """The state dicts of a model and of its optimizers, see `get_model_state_dict` and `get_optimizer_state_dict`."""
    state = get_model_state_dict(model, submodules=submodules, options=options)
    return state, get_optimizer_state_dict(model, optimizers, options=options)


def set_state_dict(
    model: Module,
    optimizers: Optimizers,
    *,
    model_state_dict: State,
    optim_state_dict: State,
    options: StateDictOptions | None = None,
) -> tuple[list[str], list[str]]:
    """Load the state dicts of a model and of its optimizers."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)


def _plain(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in ("module", "_orig_mod"))


def _named(model: Module, optimizers: Optimizers) -> Iterator[tuple[Optimizer, dict[int, str]]]:
    """Each optimizer, with the names of its parameters by their numbers."""
    names = {id(parameter): _plain(name) for name, parameter in model.named_parameters()}
    for optimizer in optimizers if isinstance(optimizers, Iterable) else [optimizers]:
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        yield optimizer, {number: names[id(parameter)] for number, parameter in enumerate(parameters)}


def _start(optimizer: Optimizer) -> None:
    """Make the state of an optimizer that has made no step yet."""
    groups = optimizer.param_groups
    parameters = [p for group in groups for p in group["params"] if p.requires_grad]
    if optimizer.state or any(p.grad is not None for p in parameters):
        return
    rates = [group["lr"] for group in groups]
    for parameter in parameters:
        parameter.grad = zeros_like(parameter)
    for group in groups:
        group["lr"] = 0.0
    optimizer.step()
    for group, rate in zip(groups, rates, strict=True):
        group["lr"] = rate
    optimizer.zero_grad()


def _moved(state: State) -> State:
    """The state with its tensors on the CPU."""
    moved: State = tree_map(lambda value: value.cpu() if isinstance(value, Tensor) else value, state)
    return moved

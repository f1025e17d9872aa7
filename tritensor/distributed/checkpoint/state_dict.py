"""State dicts by the names of parameters: without what wrappers add to names, for optimizers too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...autograd import no_grad
from ...errors import CheckpointError, UnsupportedError
from ...func.trees import tree_map
from ...functional.creation.creation import empty
from ...tensors import Tensor
from ...types import devices
from ..collectives import broadcast
from ..groups import default_group, get_rank, is_initialized
from ..modules import Module
from ..objects import broadcast_object_list
from ..tensor.dtensor import DTensor, distribute_tensor

Optimizer: TypeAlias = Any  # whose room is above this one, as that of modules is

__all__ = ["StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict"]
__all__ += ["set_model_state_dict", "set_optimizer_state_dict", "set_state_dict"]

# What wrappers put into names.
_WRAPPERS = ("module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")

State = dict[str, Any]
Optimizers: TypeAlias = "Optimizer | Iterable[Optimizer]"


@dataclass
class StateDictOptions:
    """How state dicts are made and loaded.

    Attributes:
        full_state_dict: whether values are whole tensors, and not DTensors; all ranks call the functions then.
        cpu_offload: whether values that are returned are moved to the CPU; whole ones are those of rank 0 alone then.
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
    return _given(state, options)


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
    if options.broadcast_from_rank0:  # which may lack names of the model, or have others
        known = [[*given]]
        broadcast_object_list(known, 0)
        given = {name: given.get(name) for name in known[0]}
    for name, value in own.items():
        if isinstance(value, Tensor) and _plain(name) in given:
            given[_plain(name)] = _fitting(given.get(_plain(name)), value, options.broadcast_from_rank0)
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
    return _given(found, options)


def set_optimizer_state_dict(
    model: Module, optimizers: Optimizers, optim_state_dict: State, *, options: StateDictOptions | None = None
) -> None:
    """Load the state that `get_optimizer_state_dict` returned.

    Raises:
        CheckpointError: it lacks a parameter of an optimizer.
    """
    options = options or StateDictOptions()
    if options.broadcast_from_rank0:
        optim_state_dict = _shown_by_first(optim_state_dict)
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
        own = optimizer.state_dict()["state"]
        state = {
            number: {
                key: _fitting(value, own.get(number, {}).get(key), options.broadcast_from_rank0)
                for key, value in states[name].items()
            }
            for number, name in names.items()
            if name in states
        }
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
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)


def _named(model: Module, optimizers: Optimizers) -> Iterator[tuple[Optimizer, dict[int, str]]]:
    """Each optimizer, with the names of its parameters by their numbers."""
    for each in model.modules():  # after a forward pass without backward one may have whole parameters
        if hasattr(each, "_fsdp_state"):
            each._fsdp_state.reshard()
    names = {id(parameter): _plain(name) for name, parameter in model.named_parameters()}
    for optimizer in optimizers if isinstance(optimizers, Iterable) else [optimizers]:
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        yield optimizer, {number: names[id(parameter)] for number, parameter in enumerate(parameters)}


def _init_optim_state(optim: Optimizer) -> None:
    """PyTorch's name of what makes the state of an optimizer that has made no step."""
    _start(optim)


def _start(optimizer: Optimizer) -> None:
    """Make the state of an optimizer that has made no step yet."""
    groups = optimizer.param_groups
    parameters = [p for group in groups for p in group["params"] if p.requires_grad]
    if optimizer.state or any(p.grad is not None for p in parameters):
        return
    rates = [group["lr"] for group in groups]
    for parameter in parameters:
        parameter.grad = parameter.detach() * 0
    for group in groups:
        group["lr"] = 0.0
    optimizer.step()
    for group, rate in zip(groups, rates, strict=True):
        group["lr"] = rate
    optimizer.zero_grad()


def _given(state: State, options: StateDictOptions) -> State:
    """The state as the options want it."""
    kept = get_rank() == 0 if is_initialized() else True

    def change(value: object) -> Any:
        if options.full_state_dict and isinstance(value, DTensor):
            value = value.full_tensor()
        return value.cpu() if options.cpu_offload and isinstance(value, Tensor) else value

    changed: State = tree_map(change, state)
    return changed if kept or not (options.full_state_dict and options.cpu_offload) else {}


def _fitting(value: Any, own: object, broadcasts: bool) -> Any:
    """A value that is loaded, as the one in whose place it comes: divided if that is, and rank 0's if it broadcasts."""
    if not isinstance(own, Tensor):
        return value
    if broadcasts:
        sent_on = own.device_mesh.device_type if isinstance(own, DTensor) else own.device.type
        place = devices.resolve("cuda" if default_group().lacks_cpu else sent_on.replace("meta", "cpu"))
        first = (
            value.to(place, own.dtype) if get_rank() == 0 else empty(tuple(own.shape), dtype=own.dtype, device=place)
        )
        broadcast(first, 0)
        value = first if isinstance(own, DTensor) or own.is_meta else first.to(own.device)
    if isinstance(own, DTensor) and isinstance(value, Tensor) and not isinstance(value, DTensor):
        return distribute_tensor(value, own.device_mesh, own.placements, src_data_rank=None)
    return value


def _shown_by_first(state: State) -> State:
    """Rank 0's optimizer state on all ranks, with None for tensors, which follow one by one."""
    shown = [tree_map(lambda value: None if isinstance(value, Tensor) else value, state)]
    broadcast_object_list(shown, 0)
    return state if get_rank() == 0 else shown[0]

"""Tensor parallelism: styles that divide a module's parameters, and let its inputs and outputs lie as they have to.

A parallel module computes with this rank's parts as plain tensors: hooks around its forward exchange the parameters for
their parts, and redistribute what goes in and comes out. Only the layouts at its border are the user's to choose.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from typing import Any

from ....errors import UnsupportedError, require, warn
from ....tensors import Tensor
from ...device_mesh import DeviceMesh, init_device_mesh
from ...groups import get_world_size
from ...modules import Module
from ..dtensor import DTensor, distribute_tensor, over
from ..placements import Partial, Placement, Replicate, Shard, Spec

__all__ = ["ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput"]
__all__ += ["RowwiseParallel", "SequenceParallel", "parallelize_module"]

Layouts = Placement | Sequence[Placement | None] | None


class ParallelStyle(ABC):
    """How a module of `parallelize_module` is divided."""

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Any:
        """Divide the module."""


def parallelize_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | Mapping[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Any:
    """Divide modules among the ranks of a mesh by tensor parallelism, and return the module.

    Args:
        module: any module.
        device_mesh: ranks of one dimension; all of the job unless given.
        parallelize_plan: a style for the module itself, or one for each path of modules below it, in which `*` stands
            for any name: {"layers.*.attention.wq": ColwiseParallel()}.
        src_data_rank: the rank of the mesh whose parameters are divided; None if each rank takes its own.

    Raises:
        ValueError: a mesh of several dimensions. TypeError: a plan that is neither.
    """
    mesh = device_mesh or init_device_mesh("cpu", (get_world_size(),))
    text = "Tensor parallelism takes a mesh of one dimension, but got {}: take one of a mesh by mesh['tp']"
    require(mesh.ndim == 1, ValueError, text, mesh)
    if parallelize_plan is None:
        warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the moment, so this API is a no-op."
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    require(isinstance(parallelize_plan, Mapping), TypeError, "Expect parallelize_plan to be a ParallelStyle or a dict")
    for path, style in parallelize_plan.items():
        found = _matching(module, path.split(".") if path else [])
        if not found:
            warn(f"Parallelize plan key '{path}' could not be resolved: no submodule matches it")
        for each in found:
            parallelize_module(each, mesh, style, src_data_rank=src_data_rank)
    return module


def _matching(module: Module, path: Sequence[str]) -> list[Any]:
    if not path:
        return [module]
    below = [child for name, child in module.named_children() if fnmatch(name, path[0])]
    return [each for child in below for each in _matching(child, path[1:])]


# ---- what goes in and comes out -----------------------------------------------------------------------------------


def _placed(x: object, mesh: DeviceMesh, given: Placement | None, wanted: Placement | None) -> Any:
    """A tensor as a DTensor that lies as it is wanted; itself without a layout."""
    if given is None or not isinstance(x, Tensor):
        return x
    made = x if isinstance(x, DTensor) else DTensor.from_local(x, mesh, (given,))
    return made if wanted is None else made.redistribute(mesh, (wanted,))


def _left(x: object, local: bool) -> Any:
    return x.to_local() if local and isinstance(x, DTensor) else x


def _divided(module: Module, mesh: DeviceMesh, places: Mapping[str, Placement], source: int | None) -> None:
    """Make parameters of a module DTensors that lie as the mapping says, replicated where it does not."""
    for name, param in module._parameters.items():
        if param is not None and not isinstance(param, DTensor):
            made = distribute_tensor(param, mesh, (places.get(name, Replicate()),), src_data_rank=source)
            made._is_param = True
            module._parameters[name] = made.requires_grad_(param.requires_grad)


class _Computing:
    """The hooks of a module that computes with parts.

    Args:
        enter: makes of the positional arguments those of the parts.
        leave: makes of the parts' result that of the module.
        terms: parameters that all ranks have, whose gradients are terms of a sum.
        without: parameters that are not there while forward runs.
    """

    def __init__(
        self,
        module: Module,
        enter: Callable[[tuple[Any, ...]], tuple[Any, ...]],
        leave: Callable[[Any], Any],
        terms: Sequence[str] = (),
        without: Sequence[str] = (),
    ) -> None:
        self._enter, self._leave, self._terms, self._without = enter, leave, terms, without
        self._kept: list[dict[str, Any]] = []
        module.register_forward_pre_hook(self._before)
        module.register_forward_hook(self._after, always_call=True)

    def _before(self, module: Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        args = self._enter(args)
        self._kept.append(dict(module._parameters))
        for name, param in module._parameters.items():
            if isinstance(param, DTensor):
                lies = (Partial(),) if name in self._terms else None
                module._parameters[name] = None if name in self._without else param.to_local(grad_placements=lies)
        return args

    def _after(self, module: Module, args: tuple[Any, ...], result: object) -> Any:
        if self._kept:
            module._parameters.update(self._kept.pop())
        return None if result is None else self._leave(result)


def _is_embedding(module: Module, style: object) -> bool:
    """Whether a module is an embedding, and not a linear layer."""
    if hasattr(module, "num_embeddings"):
        return True
    known = hasattr(module, "in_features") and getattr(module, "weight", None) is not None and module.weight.ndim == 2
    text = f"{type(style).__name__} currently only support nn.Linear and nn.Embedding!"
    require(known, NotImplementedError, text)
    return False


class _Divided(ParallelStyle):
    """A style that divides the parameters of a layer; `_layouts` are those of inputs and outputs unless given."""

    _layouts: tuple[Placement, Placement]

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = (input_layouts or self._layouts[0],)
        self.output_layouts = (output_layouts or self._layouts[1],)
        self.use_local_output = use_local_output


class ColwiseParallel(_Divided):
    """Divides a linear layer by its output features, an embedding by its width; used before `RowwiseParallel`.

    Args:
        input_layouts: how inputs that are plain tensors lie; replicated unless given.
        output_layouts: how outputs shall lie; divided along the last dimension unless given.
        use_local_output: return this rank's part as a plain tensor, and not a DTensor.
    """

    _layouts = Replicate(), Shard(-1)

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Any:
        dim = 1 if _is_embedding(module, self) else 0
        _divided(module, device_mesh, {"weight": Shard(dim), "bias": Shard(0)}, self.src_data_rank)

        def enter(args: tuple[Any, ...]) -> tuple[Any, ...]:
            x = _placed(args[0], device_mesh, self.input_layouts[0], Replicate())
            return (x.to_local(grad_placements=(Partial(),)), *args[1:])

        def leave(result: Tensor) -> Any:
            placed = DTensor.from_local(result, device_mesh, (Shard(-1),), shape=_wide(result, module, dim))
            return _left(placed.redistribute(placements=self.output_layouts), self.use_local_output)

        _Computing(module, enter, leave)
        return module


def _wide(result: Tensor, module: Module, dim: int) -> tuple[int, ...]:
    """The shape of all of a result, of which this rank has some columns: the parameter knows how many there are."""
    return (*result.shape[:-1], module.weight.shape[dim])


class RowwiseParallel(_Divided):
    """Divides a linear layer by its input features, an embedding by its words, and adds up the ranks' results.

    Args:
        input_layouts: how inputs that are plain tensors lie; divided along the last dimension unless given.
        output_layouts: how outputs shall lie; replicated unless given.
        use_local_output: return this rank's part as a plain tensor, and not a DTensor.
    """

    _layouts = Shard(-1), Replicate()

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Any:
        words = _is_embedding(module, self)
        if words and (module.padding_idx is not None or module.max_norm is not None):
            raise UnsupportedError(
                "RowwiseParallel of an embedding with padding_idx or max_norm is not supported",
                remedy="use ColwiseParallel",
            )
        _divided(module, device_mesh, {"weight": Shard(0 if words else 1)}, self.src_data_rank)
        absent: list[Tensor] = []

        def enter(args: tuple[Any, ...]) -> tuple[Any, ...]:
            x = _placed(args[0], device_mesh, self.input_layouts[0], Replicate() if words else Shard(-1)).to_local()
            if words:
                (first, *_), rows = module.weight._spec.local()[1], module.weight._spec.local()[0][0]
                absent.append((x < first) | (x >= first + rows))
                x = (x - first).masked_fill(absent[-1], 0)
            return (x, *args[1:])

        def leave(result: Tensor) -> Any:
            if words:
                result = result.masked_fill(absent.pop().unsqueeze(-1), 0)
            total = over(result, Spec(device_mesh, (Partial(),), tuple(result.shape)))
            total = total.redistribute(placements=[_dim_of(each, result.ndim) for each in self.output_layouts])
            if not words and module.bias is not None:
                total = total + module.bias
            return _left(total, self.use_local_output)

        _Computing(module, enter, leave, without=("bias",))
        return module


def _dim_of(place: Placement, ndim: int) -> Placement:
    return Shard(place.dim % ndim) if isinstance(place, Shard) else place


class SequenceParallel(ParallelStyle):
    """Lets a module compute on this rank's part of a sequence: `LayerNorm`, `RMSNorm`, `Dropout`.

    Args:
        sequence_dim: the dimension of inputs and outputs that is divided.
        use_local_output: return this rank's part as a plain tensor, and not a DTensor.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Any:
        _divided(module, device_mesh, {}, self.src_data_rank)
        (place,) = self.sequence_sharding
        lengths: list[int] = []

        def enter(args: tuple[Any, ...]) -> tuple[Any, ...]:
            x = _placed(args[0], device_mesh, place, place)
            lengths.append(x.shape[place.dim])
            return (x.to_local(), *args[1:])

        def leave(result: Tensor) -> Any:
            shape = list(result.shape)
            shape[place.dim] = lengths.pop()
            return _left(DTensor.from_local(result, device_mesh, (place,), shape=shape), self.use_local_output)

        _Computing(module, enter, leave, terms=[name for name, _ in module.named_parameters(recurse=False)])
        return module


def _listed(layouts: Layouts) -> tuple[Placement | None, ...]:
    return (layouts,) if isinstance(layouts, Placement) or layouts is None else tuple(layouts)


class PrepareModuleInput(ParallelStyle):
    """Lets the inputs of a module lie as it needs them.

    Args:
        input_layouts: how positional inputs that are plain tensors lie; None for those that are left alone.
        desired_input_layouts: how they shall lie.
        input_kwarg_layouts, desired_input_kwarg_layouts: the same for keyword arguments, by name.
        use_local_output: pass plain tensors, and not DTensors.
    """

    def __init__(
        self,
        *,
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: Mapping[str, Placement] | None = None,
        desired_input_kwarg_layouts: Mapping[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts, self.desired_input_layouts = _listed(input_layouts), _listed(desired_input_layouts)
        self.input_kwarg_layouts = dict(input_kwarg_layouts or {})
        self.desired_input_kwarg_layouts = dict(desired_input_kwarg_layouts or {})
        self.use_local_output = use_local_output
        same = len(self.input_layouts) == len(self.desired_input_layouts)
        require(same, AssertionError, "input_layouts and desired_input_layouts should have same length!")

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Any:
        pairs = list(zip(self.input_layouts, self.desired_input_layouts, strict=True))

        def before(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
            if pairs != [(None, None)]:
                require(len(args) == len(pairs), ValueError, "module inputs and input_layouts should have same length!")
                args = tuple([self._one(x, device_mesh, *pair) for x, pair in zip(args, pairs, strict=True)])
            for name, given in self.input_kwarg_layouts.items():
                if name in kwargs:
                    wanted = self.desired_input_kwarg_layouts.get(name)
                    kwargs = {**kwargs, name: self._one(kwargs[name], device_mesh, given, wanted)}
            return args, kwargs

        module.register_forward_pre_hook(before, with_kwargs=True)
        return module

    def _one(self, x: object, mesh: DeviceMesh, given: Placement | None, wanted: Placement | None) -> Any:
        return x if given is None else _left(_placed(x, mesh, given, wanted), self.use_local_output)


class PrepareModuleOutput(ParallelStyle):
    """Lets the outputs of a module lie as what follows needs them.

    Args:
        output_layouts: how outputs that are plain tensors lie; None for those that are left alone.
        desired_output_layouts: how they shall lie.
        use_local_output: return plain tensors, and not DTensors.
    """

    def __init__(
        self, *, output_layouts: Layouts, desired_output_layouts: Layouts, use_local_output: bool = True
    ) -> None:
        self.output_layouts, self.desired_output_layouts = _listed(output_layouts), _listed(desired_output_layouts)
        self.use_local_output = use_local_output
        same = len(self.output_layouts) == len(self.desired_output_layouts)
        require(same, AssertionError, "output_layouts and desired_output_layouts should have same length!")

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Any:
        def after(module: Module, args: tuple[Any, ...], result: object) -> Any:
            results = result if isinstance(result, tuple) else (result,)
            same = len(results) == len(self.output_layouts)
            require(same, ValueError, "module outputs and output_layouts should have same length!")
            layouts = zip(results, self.output_layouts, self.desired_output_layouts, strict=True)
            found = [
                _left(_placed(x, device_mesh, given, wanted), self.use_local_output) for x, given, wanted in layouts
            ]
            return tuple(found) if isinstance(result, tuple) else found[0]

        module.register_forward_hook(after)
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` of one module, with their arguments."""

    def __init__(
        self,
        *,
        use_local_input: bool = False,
        use_local_output: bool = True,
        output_layouts: Layouts = None,
        desired_output_layouts: Layouts = None,
        **inputs: Any,
    ) -> None:
        self.inputs = PrepareModuleInput(use_local_output=use_local_input, **inputs)
        layouts = {"output_layouts": output_layouts, "desired_output_layouts": desired_output_layouts}
        self.outputs = PrepareModuleOutput(use_local_output=use_local_output, **layouts)

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Any:
        return self.outputs._apply(self.inputs._apply(module, device_mesh), device_mesh)

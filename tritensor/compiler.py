"""`torch.compile` and `torch.compiler`: the calls inside of a compiled function are noted and computed together."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

import numpy as np

from .autograd.mode import recording
from .autograd.precision import watching
from .errors import UnsupportedError
from .ground.arguments import wrong_type
from .kernels.fused.explained import Explanation, explanation
from .kernels.fused.plans import Plan
from .memory.deferred import Deferred
from .memory.lifted import open_levels
from .operators import deferring
from .tensors import Tensor, tensors_in

__all__ = ["allow_in_graph", "compile", "cudagraph_mark_step_begin", "disable", "explain", "is_compiling"]
__all__ += ["is_dynamo_compiling", "is_exporting", "list_backends", "reset"]

T = TypeVar("T")
ndarray = np.ndarray


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Callable[..., Any] = "inductor",
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    disable: bool = False,
) -> Any:
    """Make a function or module faster: its operators are noted while Python runs it, and computed in fused kernels.

    Args:
        fullgraph: refuse to read elements inside of it, and repeat calls without gradients without running Python.
        mode: "reduce-overhead" and "max-autotune" repeat calls where that is possible, on a GPU as CUDA graphs.
        dynamic, options: accepted for PyTorch's signature; `backend` is one kind, but for "eager", which does nothing.
        disable: return the function or module itself.

    Raises:
        UnsupportedError: no such mode; when it is called, elements are read with `fullgraph`.

    >>> import tritensor as torch
    >>> @torch.compile
    ... def scaled(x):
    ...     return (x * 2 + 1).relu()
    >>> scaled(torch.tensor([-3.0, 1.0]))
    tensor([0., 3.])
    """
    if mode not in _MODES:
        words = f"Unrecognized mode={mode}, should be one of the following: {', '.join(filter(None, _MODES))}"
        raise UnsupportedError(words)
    if model is None:
        return lambda decorated: compile(
            decorated,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
        )
    if disable or backend == "eager":
        return model
    if not callable(model):
        raise wrong_type("compile", "model", "Module or function", model, 1)
    from .nn import Module

    graphs = mode in ("reduce-overhead", "max-autotune")
    replayed = fullgraph or graphs
    if isinstance(model, Module):
        from .nn.compiled import OptimizedModule

        made = functools.partial(compiled, whole=fullgraph, replayed=replayed, graphs=graphs)
        return OptimizedModule(model, made, compile)
    return compiled(model, fullgraph, replayed, graphs)


_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")


def compiled(
    function: Callable[..., T], whole: bool = False, replayed: bool = False, graphs: bool = False
) -> Callable[..., T]:
    """The function, of which each call is a run of noted calls.

    Args:
        whole: refuse to read elements inside of it.
        replayed: repeat calls without Python, where that is possible; with `graphs` as CUDA graphs.
    """
    memory = deferring.Memory(Plan, whole)

    def noted(
        args: tuple[Any, ...],
        named: dict[str, Any],
        captured: Sequence[Tensor] = (),
        trace: deferring.Trace | None = None,
    ) -> T:
        if open_levels.stack or deferring.current.region is not None:
            return function(*args, **named)
        tensors: list[Tensor] = []
        forms: list[Any] = [recording.enabled]
        _forms(args, tensors, forms)
        if named:
            _forms(named.items(), tensors, forms)
        key = tuple(forms)
        gain: Any = memory.gains.get(key)
        if gain is not None and gain < deferring.LEAST and trace is None:
            return function(*args, **named)
        region, before = deferring.enter(memory, [*tensors, *captured], (key, len(captured)))
        region.trace = trace
        try:
            with watching(trace.watch) if trace is not None else nullcontext():
                found = function(*args, **named)
            region.close()
        finally:
            deferring.leave(region, before)
        if recording.enabled:
            for each in {id(x): x for x in tensors_in(found)}.values():
                deferring.record_passing(each, memory.of_backward())
        if gain is None:
            memory.gains[key] = region.gain
        return found

    replays: Callable[[tuple[Any, ...], dict[str, Any]], T] | None = None
    if replayed:
        from .nn.replayed import Replays

        replays = Replays(function, memory, noted, graphs)

    @functools.wraps(function)
    def run(*args: Any, **named: Any) -> T:
        if replays is not None:
            return replays(args, named)
        if not Deferred.used and not open_levels.stack:  # what calls that spare too little take: 1.1 us
            forms: list[Any] = [recording.enabled]
            _forms(args, [], forms)
            if named:
                _forms(named.items(), [], forms)
            if memory.gains.get(tuple(forms), deferring.LEAST) < deferring.LEAST:
                return function(*args, **named)
        return noted(args, named)

    run._torchdynamo_orig_callable = function  # type: ignore[attr-defined]
    return run


def _forms(values: Iterable[Any], tensors: list[Tensor], found: list[Any]) -> None:
    """Append what a call depends on, of its arguments; all tensors among them are appended to `tensors`."""
    for value in values:
        kind = value.__class__
        data = value._data if kind is Tensor else None
        if data.__class__ is ndarray:
            tensors.append(value)
            found += data.dtype, data.shape
        elif isinstance(value, Tensor):
            tensors.append(value)
            found.append(getattr(value._data, "form", None) or (value.dtype, value.shape))
        elif kind in _PLAIN:
            found.append(value)
        elif isinstance(value, (tuple, list)):
            _forms(value, tensors, found)
        elif isinstance(value, dict):
            _forms(value.items(), tensors, found)
        else:
            found.append(kind)


_PLAIN = frozenset((bool, str, type(None)))  # a number changes from call to call: its class is enough


def explain(fn: Callable[..., Any], card: str = "") -> Callable[..., Explanation]:
    """Explain what `compile` makes of a call: kernels, their texts, memory traffic, and where it computes early.

    Args:
        card: "a100", "h100" or "h200", to divide the traffic by the bandwidth of its data sheet: `predicted` of the
            result. No more than a prediction: arithmetic, launches and caches are not counted, nothing is measured.

    >>> import tritensor as torch
    >>> def scaled(x):
    ...     return (x * 2 + 1).relu()
    >>> print(torch.compiler.explain(scaled)(torch.ones(500, 200)))
    3 operators become 1; they move 0.8 MB, one by one 2.4 MB
      one kernel          500x200  1 in, 1 out  mul, add, relu
    """

    on: tuple[Any, ...] = ()
    if card:
        from .cuda.profiling.cards import card as card_of

        on = card, card_of(card).dram

    def run(*args: Any, **named: Any) -> Explanation:
        plans: list[Plan] = []

        def plan(*given: Any) -> Plan:
            plans.append(Plan(*given))
            return plans[-1]

        with deferring.running(deferring.Memory(plan), list(tensors_in((args, named)))) as region:
            region.cuts = cuts = list[str]()
            found = fn(*args, **named)
            region.close()
        del found
        return explanation(plans, cuts, region.gain, *on)

    return run


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function, of which nothing is noted where a compiled function calls it; without one, a decorator."""
    if fn is None:
        return lambda decorated: disable(decorated, recursive, reason=reason)

    @functools.wraps(fn)
    def run(*args: Any, **named: Any) -> Any:
        if deferring.current.region is None:
            return fn(*args, **named)
        deferring.settle_all(tensors_in((args, named)))
        with deferring.paused():
            return fn(*args, **named)

    return run


def allow_in_graph(fn: T) -> T:
    """The function itself."""
    return fn


def is_compiling() -> bool:
    """True inside of a compiled function."""
    return deferring.current.region is not None


is_dynamo_compiling = is_compiling


def cudagraph_mark_step_begin() -> None:
    """Does nothing: results of one call are never overwritten by the next."""


def list_backends(exclude_tags: tuple[str, ...] = ("debug", "experimental")) -> list[str]:
    """The names of compilers: one, of the fused kernels, under PyTorch's name of its own."""
    return ["inductor"]


def is_exporting() -> bool:
    """False: programs are not exported."""
    return False


def reset() -> None:
    """Reset the compiler: forget the plans of all compiled functions."""
    from .runtime.replay import forget

    forget()

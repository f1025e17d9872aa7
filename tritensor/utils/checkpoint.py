"""Activation checkpointing: intermediate values are not kept for the backward pass, but computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from ..autograd import backward, enable_grad, precision, saving
from ..autograd.mode import recording
from ..autograd.tape import Gradient, Node, Slot, next_age, record
from ..errors import AutogradError, require, warn
from ..operators import generators
from ..operators.function import Function
from ..tensors import Tensor, tensors_in

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "checkpoint",
    "checkpoint_sequential",
    "noop_context_fn",
    "set_checkpoint_early_stop",
]


class CheckpointError(AutogradError):
    """Raised when a checkpointed function records something else when it is run again."""


def noop_context_fn() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Contexts for both runs that do nothing."""
    return nullcontext(), nullcontext()


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Accepted: functions are always run again to their end, where PyTorch stops after the last value that it needs."""
    yield


@contextmanager
def _drawing_again(states: Any) -> Iterator[None]:
    """Draw the random numbers again that follow these states; None for others."""
    with generators.fork_rng(enabled=states is not None):
        if states is not None:
            generators.set_states(states)
        yield


def _recorded(outputs: Any, since: int) -> list[Node]:
    """The nodes that lead to outputs, saved something and are newer than the age `since`, in the order of their making.

    Others do not count: a cast of a parameter that autocast keeps is made in one of two calls.
    """
    found: set[Node] = set()
    edges: list[Any] = [each._edge() for each in tensors_in(outputs) if each.requires_grad]
    while edges:
        edge = edges.pop()
        node = edge.node if edge.__class__ is Slot else edge
        if node.__class__ is Node and node.age > since and node not in found:
            found.add(node)
            edges += node.next
    return sorted((node for node in found if node.saved), key=lambda node: node.age)


def _facts(nodes: Iterable[Node]) -> list[dict[str, Any]]:
    """Shape, dtype and device of each tensor that nodes saved; a parameter of `fully_shard` may have been freed."""
    return [
        {"shape": tuple(each.shape), "dtype": each.dtype, "device": getattr(each, "_gathered_on", each.device)}
        for node in nodes
        for each in tensors_in(node.saved)
    ]


class _Arguments(Gradient):
    """Stands for the arguments of a function, which must not be changed before it is run again."""

    name = "CheckpointBackward"


class _Frame:
    """One call: how to repeat it, and what its nodes saved, from a repetition on until they have read it."""

    def __init__(self, call: Callable[..., Any], args: Any, kwargs: Any, preserve: bool, context: Any) -> None:
        # tensors that are arguments themselves come first: hooks on saved tensors pack these for us, too
        places = [place for place, each in enumerate(args) if isinstance(each, Tensor)]
        rest = [each for each in args if not isinstance(each, Tensor)]
        tensors = (*(args[place] for place in places), *tensors_in([rest, kwargs]))
        self.arguments = record(_Arguments(), (), tensors, tuple([each._version for each in tensors]))
        self.packed = {place: x for place, x in zip(places, self.arguments.saved) if isinstance(x, saving.Packed)}
        args = tuple([None if place in self.packed else each for place, each in enumerate(args)])
        self.call, self.args, self.kwargs, self.context = call, args, kwargs, context
        self.states = generators.states() if preserve else None
        self.casts = precision.current()
        self.since = next_age()

    def release(self, outputs: dict[str, Any] | Tensor, check: bool) -> None:
        """Let the nodes of the call's outputs forget what they saved."""
        nodes = _recorded(outputs, self.since)
        self.count, self.facts, self.check = len(nodes), _facts(nodes), check
        self.saved: dict[int, Any] = {}
        for index, node in enumerate(nodes):
            if node.saved and node.backward.frees:
                node.backward, node.saved, node.versions = _Repeated(node, index), (self,), None

    def saved_by(self, index: int) -> Any:
        """The values that a node saved, and the versions; the call is repeated if they are not there, or were read
        before."""
        if index not in self.saved:
            self._repeat()
        return self.saved.pop(index)

    def _repeat(self) -> None:
        self.arguments.check_saved()
        since = next_age()
        with _drawing_again(self.states), precision.within(self.casts), self.context, enable_grad(), saving.paused:
            held = self.packed
            args = [held[i].of(self.arguments) if i in held else each for i, each in enumerate(self.args)]
            nodes = _recorded(self.call(*args, **self.kwargs), since)
        facts = _facts(nodes)
        if len(nodes) != self.count or len(facts) != len(self.facts):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.facts)}\nNumber of tensors "
                f"saved during recomputation: {len(facts)}.",
                f"{self.count} operators were recorded at first, then {len(nodes)}",
                remedy="let the function compute the same whenever it is called",
            )
        differ = [
            f"tensor at position {place}:\nsaved metadata: {was}\nrecomputed metadata: {now}"
            for place, (was, now) in enumerate(zip(self.facts, facts, strict=True))
            if was != now and self.check
        ]
        if differ:
            words = "Recomputed values for the following tensors have different metadata than during the forward pass."
            raise CheckpointError("\n".join([f"torch.utils.checkpoint: {words}", *differ]))
        self.saved = {index: (node.saved, node.versions) for index, node in enumerate(nodes)}


class _Repeated(Gradient):
    """The gradient of a node that reads what a repetition saved."""

    def __init__(self, node: Node, index: int) -> None:
        self.name, self.backward, self.index = node.name(), node.backward, index
        self.ours = node.backward.ours

    def run(self, node: Node, gradient: Any) -> Any:
        """Computes the node's own gradient."""
        (frame,) = node.saved
        node.saved, node.versions = frame.saved_by(self.index)
        try:
            return self.backward.run(node, gradient)
        finally:
            node.saved, node.versions = (frame,), None


class CheckpointFunction(Function):
    """The form of `checkpoint(use_reentrant=True)`: a function that runs a backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        """Calls the function without recording it."""
        if not any(each.requires_grad for each in args if isinstance(each, Tensor)):
            warn("None of the inputs have requires_grad=True. Gradients will be None")
        ctx.run_function, ctx.states = run_function, generators.states() if preserve_rng_state else None
        ctx.casts = precision.current()
        ctx.others = [None if isinstance(each, Tensor) else each for each in args]
        ctx.save_for_backward(*(each if isinstance(each, Tensor) else None for each in args))
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Run the function again, and backward through it."""
        if recording.selective:
            raise AutogradError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        inputs = [
            other if saved is None else saved.detach().requires_grad_(saved.requires_grad)
            for saved, other in zip(ctx.saved_tensors, ctx.others, strict=True)
        ]
        with _drawing_again(ctx.states), precision.within(ctx.casts), enable_grad():
            found = ctx.run_function(*inputs)
        outputs = [each for each in (found if isinstance(found, tuple) else (found,)) if isinstance(each, Tensor)]
        pairs = [pair for pair in zip(outputs, gradients, strict=True) if pair[0].requires_grad]
        require(pairs, AutogradError, "none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([out for out, _ in pairs], [gradient for _, gradient in pairs])
        return None, None, *(each.grad if isinstance(each, Tensor) else None for each in inputs)


def _checked_mode(use_reentrant: bool | None, name: str) -> bool:
    if use_reentrant is None:
        warn(
            f"torch.utils.{name}: the use_reentrant parameter should be passed explicitly. use_reentrant=False is "
            "recommended, but if you need to preserve the current default behavior, you can pass use_reentrant=True."
        )
    return use_reentrant is None or use_reentrant


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Activation checkpointing: calls `function(*args, **kwargs)` and keeps only its arguments for the backward pass.

    The backward pass calls the function again, with the same random numbers, and has the values in between then: less
    memory for more time. The function has to compute the same both times.

    >>> import tritensor as torch
    >>> from tritensor.utils.checkpoint import checkpoint
    >>> x = torch.ones(2, requires_grad=True)
    >>> checkpoint(lambda x: (x * 3).exp().log(), x, use_reentrant=False).sum().backward()
    >>> x.grad
    tensor([3., 3.])

    Args:
        use_reentrant: False is recommended: everything that the function reads gets gradients, and `autograd.grad`
            works. With True, PyTorch's first form, one of the arguments has to require a gradient, and only tensors in
            a tuple get one. True, with a warning, unless given.
        context_fn: returns the contexts of the first call and of its repetition.
        determinism_check: "default" compares shapes, dtypes and devices of what both calls saved, "none" does not.
        debug, early_stop: accepted. The message about a difference tells the same with and without `debug`.
        preserve_rng_state: False to draw other random numbers.

    Raises:
        ValueError: an option that does not fit `use_reentrant`, or no such check. CheckpointError: in backward, the
            calls differ. AutogradError: in backward, an argument was changed in place.
    """
    if _checked_mode(use_reentrant, "checkpoint"):
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    first, second = context_fn()
    if not recording.enabled:
        return function(*args, **kwargs)
    frame, done = _Frame(function, args, kwargs, preserve_rng_state, second), False
    with first, saving.paused:
        found, done = function(*args, **kwargs), True
    if not done:
        raise RuntimeError(
            "torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised during "
            "the checkpointed forward. This is not supported because checkpoint cannot return a value for a failed "
            "forward."
        )
    frame.release(found, determinism_check == "default")
    return found


def checkpoint_sequential(
    functions: Sequence[Any] | Any, segments: int, input: object, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Calls functions, or the modules of a `Sequential`, one after another, in segments with `checkpoint`.

    Args:
        segments: how many parts the list is cut into; the last one is not a checkpoint.
        kwargs: `preserve_rng_state`.

    Raises:
        ValueError: another option.
    """
    reentrant = _checked_mode(use_reentrant, "checkpoint.checkpoint_sequential")
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    listed = list(functions.children() if hasattr(functions, "children") else functions)

    def segment(start: int, stop: int) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for function in listed[start:stop]:
                x = function(x)
            return x

        return run

    size = len(listed) // segments
    last = size * (segments - 1)
    for start in range(0, last, size):
        input = checkpoint(segment(start, start + size), input, use_reentrant=reentrant, preserve_rng_state=preserve)
    return segment(last, len(listed))(input)

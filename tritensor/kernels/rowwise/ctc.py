"""Connectionist temporal classification: the loss of a sequence of labels, summed over all ways to spell it.

A. Graves et al., "Connectionist Temporal Classification", ICML 2006. The labels of a sequence with blanks between them,
before and after are its 2 * S + 1 states. alpha[t, s] is the logarithm of the probability of all ways that are in state
s at step t, from the first step to t; beta that of the ways from t to the last step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd.gradients import no_derivative
from ...errors import ShapeError, UnsupportedError
from ...host.threads import quietly
from ...operators import Dtypes, Operator, Shapes
from ...operators.rules import Floating, is_half
from ...runtime.call import Call
from ...tensors import Tensor
from ...types import dtypes


class Wide(Floating):
    """No half precision, as in PyTorch."""

    halves = False

    def check(self, operator: str, kind: dtypes.dtype) -> None:
        """Raise unless the dtype is float32 or float64."""
        if is_half(kind):
            raise UnsupportedError(f"\"{self.words}\" not implemented for '{kind.legacy}'")
        super().check(operator, kind)


class Ctc(Operator):
    """An operator of logarithms x (T, N, C), target (N, S), steps and labels (N,), the lengths of both."""

    family = "loss"
    repeatable = True
    deferrable = False

    def __init__(self, name: str, reference: Callable[..., Any], outputs: tuple[str, ...] = ("out",)) -> None:
        super().__init__(name, reference, Wide("floating", "ctc_loss_cpu"), outputs=outputs)
        self.kinds = dict.fromkeys(("target", "steps", "labels"), dtypes.int64)

    def prepare(self, call: Call) -> None:
        """Check that the shapes fit together."""
        of = {name: value.shape for name, value in zip(self.inputs, call.inputs)}
        length, batch, _ = of["x"]
        fit = len(of["target"]) == 2 and all(size[0] == batch for name, size in of.items() if name != "x")
        if not fit or of.get("alpha", (length,) * 3)[1:] not in ((length,) * 2, (length, 2 * of["target"][1] + 1)):
            raise ShapeError(f"{self.name}: shapes {of} do not fit together")

    def resolve_dtypes(self, call: Call) -> Dtypes:
        """The logarithms' dtype."""
        compute, result = self.rule(self.name, call.inputs[self.inputs.index("x") :][:1])
        return compute, (result,) * len(self.outputs)

    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """The reference, where the logarithm of 0 is no error."""
        run = super().on_host(call)
        return lambda *arrays: quietly(run, *arrays)

    def allocate(self, call: Call) -> Shapes:
        """Losses (N,) and alpha (N, T, 2 * S + 1), or the gradient of x."""
        x, target = (call.arrays[self.inputs.index(name)] for name in ("x", "target"))
        of_states = (x.shape[1], x.shape[0], 2 * target.shape[1] + 1)
        shapes = [(x.shape[1],), of_states] if len(self.outputs) == 2 else [tuple(x.shape)]
        return [(shape, result.numpy) for shape, result in zip(shapes, call.results)]

    def launch(self, call: Call) -> None:
        """A program for each sequence; for the gradient then one for each block of steps of a sequence."""
        from .ctc_kernel import launch_ctc, launch_ctc_backward

        launch = launch_ctc if len(self.outputs) == 2 else launch_ctc_backward
        launch(call.outs, call.arrays, call.metadata)


def _total(*logs):
    """The logarithm of the sum of the exponentials."""
    top = np.maximum.reduce(logs)
    top = np.where(top == -np.inf, 0, top)
    return top + np.log(sum(np.exp(each - top) for each in logs))


def _walk(x: np.ndarray, target: np.ndarray, steps: np.ndarray, labels: np.ndarray, blank: int):
    """alpha (T, N, 2 * S + 1), what each state emits at each step, and the class of each state."""
    classes = np.full((len(target), 2 * target.shape[1] + 1), blank)
    classes[:, 1::2] = target
    place = np.arange(classes.shape[1])
    inside = place < 2 * labels[:, None] + 1
    classes = np.where(inside, classes, blank)
    jumps = (place % 2 == 1)[2:] & (classes[:, 2:] != classes[:, :-2])
    emitted = np.take_along_axis(x, classes[None], 2)
    alpha = np.full(emitted.shape, -np.inf, x.dtype)
    state = np.where(place < 2, 0, np.full(classes.shape, -np.inf, x.dtype))
    for t in range(len(x)):
        if t:
            one, two = np.full_like(state, -np.inf), np.full_like(state, -np.inf)
            one[:, 1:], two[:, 2:] = state[:, :-1], np.where(jumps, state[:, :-2], -np.inf)
            state = _total(state, one, two)
        alpha[t] = state = np.where(inside & (t < steps)[:, None], state + emitted[t], -np.inf)
    return alpha, emitted, classes


def _ctc(x: np.ndarray, target: np.ndarray, steps: np.ndarray, labels: np.ndarray, *, blank: int, zero_infinity=False):
    """The negative logarithm of the probability of each sequence of labels, and alpha."""
    alpha, rows = _walk(x, target, steps, labels, blank)[0], np.arange(len(target))
    ends = alpha[steps - 1, rows, 2 * labels], alpha[steps - 1, rows, np.maximum(2 * labels - 1, 0)]
    loss = -_total(ends[0], np.where(labels > 0, ends[1], -np.inf))
    return np.where(steps > 0, loss, np.where(labels > 0, np.inf, 0)), alpha.swapaxes(0, 1)


ctc_loss = Ctc("ctc_loss", _ctc, ("out", "alpha"))
ctc_loss.autocasts(cpu="float32")


def _ctc_backward(grad: np.ndarray, x: np.ndarray, target, steps, labels, loss, alpha, *, blank: int, zero_infinity):
    """The gradient of the logarithms; softmax is taken to be where they come from, as in PyTorch.

    beta is the alpha of the steps and labels from the last to the first.
    """
    rows, time = np.arange(len(target)), steps - 1 - np.arange(len(x))[:, None]
    back = labels[:, None] - 1 - np.arange(target.shape[1])
    beta = _walk(x[time % len(x), rows], target[rows[:, None], back % max(back.shape[1], 1)], steps, labels, blank)[0]
    _, _, classes = _walk(x[:0], target, steps, labels, blank)
    emitted, place = np.take_along_axis(x, classes[None], 2), 2 * labels[:, None] - np.arange(classes.shape[1])
    both = alpha.swapaxes(0, 1) + beta[time[:, :, None] % len(x), rows[:, None], place % classes.shape[1]]
    inside = (time >= 0)[:, :, None] & (place >= 0) & (both != -np.inf)
    shares = np.where(inside, np.exp(both + loss[:, None] - emitted), 0)
    change = np.exp(x)
    for s in range(classes.shape[1]):
        change[:, rows, classes[:, s]] -= shares[:, :, s]
    change = np.where((loss == np.inf)[:, None], 0 if zero_infinity else np.nan, change * grad[:, None])
    return np.where((time >= 0)[:, :, None], change, 0)


ctc_backward = Ctc("ctc_backward", _ctc_backward)


@ctc_loss.gradient
def _(grad: Tensor, x: Tensor, target: Tensor, steps: Tensor, labels: Tensor, out, alpha, blank, zero_infinity, needs):
    return (
        ctc_backward(grad, x, target, steps, labels, out, alpha, blank=blank, zero_infinity=zero_infinity),
        None,
        None,
        None,
    )


def _no_second(again: Tensor, x: Tensor):
    raise no_derivative("_ctc_loss_backward")


def _of_losses(again, grad: Tensor, x, target, steps, labels, loss, alpha, blank: int, zero_infinity: bool):
    metadata = {"blank": blank, "zero_infinity": zero_infinity}
    ones = ctc_backward(grad.detach() * 0 + 1, x, target, steps, labels, loss, alpha, **metadata)
    return (again * ones).sum((0, 2))


ctc_backward.gradients(grad=_of_losses, x=_no_second)
ctc_loss.first_order_only = True  # type: ignore[attr-defined]


@ctc_loss.samples
def _(draw):
    for length, batch, most in ((4, 2, 1), (8, 3, 4), (1, 1, 0)):
        target = draw.rng.integers(1, length + 1, (batch, most)) % max(length, 2)
        steps, labels = (draw.rng.integers(0, size + 1, batch) for size in (length, most))
        # not probabilities, but so small that their sum, which the gradient takes to be 1, adds nothing to it
        x = draw((length, batch, max(length, 2)), (-30.0, -20.0))
        yield [x, target, steps * 0 + length if draw.gradient else steps, labels], {"blank": 0}


@ctc_backward.samples
def _(draw):
    for inputs, metadata in ctc_loss.calls(draw):
        x, target, steps, labels = inputs
        loss, alpha = quietly(_ctc, x.astype(np.float64), target, steps, labels, **metadata)
        more = [loss.astype(x.dtype), alpha.astype(x.dtype)]
        yield [draw(x.shape[1:2]), *inputs, *more], {**metadata, "zero_infinity": len(x) == 8}, (0,)

"""Losses over rows of class scores.

`cross_entropy` and `nll_loss` take scores as rows, (N, C), and class indices, (N,); the public functions reshape other
shapes to that. A target outside of the classes is an IndexError on the CPU. On a CUDA device the kernel asserts it, as
PyTorch's does, and the host does not wait for the result: a simulated device raises "device-side assert triggered". On
a real device, where assertions are compiled only for debugging, that row's loss is NaN; checked mode finds the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...autograd.mode import enable_grad, recording
from ...autograd.tape import Gradient, Node, record
from ...errors import DtypeError, RangeError
from ...host.threads import dot, quietly
from ...memory.deferred import Deferred
from ...operators import Operator, Shapes
from ...operators.lifting.batching import Batch, loop
from ...operators.rules import Floating
from ...runtime.call import Call
from ...runtime.choice import Native, wins
from ...tensors import Tensor, wrap
from ...types import dtypes
from ..bounds import operator
from ..elementwise.arithmetic import where
from ..reduction.sums import sum
from ..scratch import ones
from .family import softmax
from .reference import LARGE, cross_entropy_backward_rows, cross_entropy_rows, picked, scaled, shares_and_losses

ndarray, asarray, uint64 = np.ndarray, np.asarray, np.uint64
exp, log, add_reduce, maximum_reduce = np.exp, np.log, np.add.reduce, np.maximum.reduce
INT64 = dtypes.int64.numpy


class ClassLoss(Operator):
    """A loss of rows of scores against class indices: inputs x (N, C), target (N,), weight (C,) or None.

    The second output, `total`, is the divisor of a mean: the sum of the weights of the targets that are not ignored.
    """

    family = "loss"
    about = "Scores become losses in one pass; gradients come out of the same pass when they are needed."
    repeatable = True
    deferrable = False  # the elements of the targets are checked
    native = Native()
    main = 0  # the further outputs, for the gradient, have the compute dtype

    def __init__(self, name: str, reference: Callable[..., Any], words: str, outputs: Sequence[str]) -> None:
        super().__init__(name, reference, Floating("floating", words), outputs=outputs)
        self.kinds = {"target": dtypes.int64}
        self.refuses = {"weight": "nll_loss_forward"}
        #: `(*arrays, **metadata, dtype) -> losses, share, ...`, a number per row each
        self.rows: Callable[..., tuple[np.ndarray, ...]] | None = None

    def prepare(self, call: Call) -> None:
        """Check the dtypes."""
        x, target, weight = call.inputs
        check_target_dtype(target)
        if weight is not None and weight.dtype is not x.dtype:
            names = [each.dtype.legacy for each in (x, weight)]
            raise DtypeError(
                f"expected scalar type {names[0]} but found {names[1]}",
                f"{self.name}: input is {x.dtype}, weight is {weight.dtype}",
                remedy="bring weight to the input's dtype with .to(dtype)",
            )

    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """The reference, in pieces, after checking the class indices."""
        reference, rows, metadata, kind = super().on_host(call), self.rows, call.metadata, call.compute.numpy
        wanted = [result.numpy for result in call.results]

        def in_rows(*arrays: Any) -> tuple[np.ndarray, ...]:
            losses, share, *more = rows(*arrays, **metadata, dtype=kind)  # type: ignore[misc]
            total = share.sum()
            produced = _reduce(losses, total, metadata["reduction"]), total, *more
            return tuple([asarray(each).astype(to, copy=False) for each, to in zip(produced, wanted)])

        def run(x: Any, target: Any, *rest: Any) -> tuple[np.ndarray, ...]:
            check_classes(target, x.shape[1], metadata["ignore_index"])
            if rows is None or not x.size:
                return reference(x, target, *rest)
            return quietly(in_rows, x, target, *rest)

        return run

    def allocate(self, call: Call) -> Shapes:
        """The loss: of shape (N,) when it is not reduced; the total; for cross entropy also a number per row."""
        rows = tuple(call.arrays[0].shape[:1])
        shapes = (rows if call.metadata["reduction"] == "none" else (), (), rows)
        return [(shape, result.numpy) for shape, result in zip(shapes, call.results)]

    def launch(self, call: Call) -> None:
        """One pass over the rows, then a sum over them."""
        from .loss_kernels import launch_cross_entropy, launch_nll

        launch = launch_cross_entropy if self.name == "cross_entropy" else launch_nll
        launch(call.outs, call.arrays, call.compute, call.metadata)


def check_target_dtype(target: Tensor) -> None:
    """Raise unless class indices are int64 or uint8, as in PyTorch."""
    if target.dtype is not dtypes.int64 and target.dtype is not dtypes.uint8:
        raise DtypeError(
            f"expected target dtype to be Long or Byte, but got {target.dtype.legacy}",
            f"the target has dtype {target.dtype}",
            remedy="convert it with .long()",
        )


def check_classes(target: np.ndarray, classes: int, ignore_index: int) -> None:
    """Raise for the first class index that is neither a class nor `ignore_index`.

    Raises:
        RangeError: `Target 7 is out of bounds.`
    """
    wrong = ((target < 0) | (target >= classes)) & (target != ignore_index)
    if wrong.any():
        position = int(np.argmax(wrong))
        raise RangeError(
            f"Target {target[position]} is out of bounds.",
            f"{operator()}: it is number {position} of the targets; there are {classes} classes",
        )


def _reduce(losses: np.ndarray, total: np.ndarray, reduction: str) -> np.ndarray:
    if reduction == "none":
        return losses
    summed = losses.sum()
    return summed if reduction == "sum" else summed / total


def _cross_entropy(x: np.ndarray, target, weight=None, *, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    """The negative logarithm of the target class's probability in softmax(x), for rows of scores."""
    safe, share = picked(target, weight, ignore_index, x.dtype)
    top = np.maximum.reduce(x, 1, keepdims=True) if x.shape[1] else np.zeros((len(x), 1), x.dtype)
    top = np.where(top == -np.inf, 0, top).astype(x.dtype)  # a row of -inf: its sum is 0, its logarithm -inf
    lse = top + np.log(np.exp(x - top).sum(1, keepdims=True))
    logp = x - lse
    losses = np.where(share == 0, 0, -logp[np.arange(len(x)), safe] * share)
    if label_smoothing:
        smooth = -(logp if weight is None else logp * weight).sum(1) / x.shape[1]
        smooth = np.where(target == ignore_index, 0, smooth)
        losses = losses * (1 - label_smoothing) + smooth * label_smoothing
    total = share.sum()
    return _reduce(losses, total, reduction), total, lse[:, 0]


cross_entropy = ClassLoss("cross_entropy", _cross_entropy, "log_softmax_lastdim_kernel_impl", ("out", "total", "lse"))
cross_entropy.node = "nll_loss"
cross_entropy.autocasts(cpu="float32", cuda="float32")


def _cross_entropy_rows(x: np.ndarray, target: np.ndarray, weight, *, reduction: str, **metadata):
    return cross_entropy_rows(x, target, weight, **metadata)


cross_entropy.rows = _cross_entropy_rows


def _class_losses(draw: Any) -> Iterator[tuple[tuple[int, int], Any, dict[str, Any]]]:
    """Shapes of scores, the classes' weights or None, and metadata."""
    for rows, classes, weighted, reduction, ignored in (
        (5, 4, False, "mean", -100),
        (5, 4, True, "mean", 1),
        (6, 3, True, "sum", -100),
        (3, 1500, True, "none", 2),
        (2000, 3, False, "mean", 0),
    ):
        weight = draw((classes,), (0.5, 2.0)) if weighted else None
        yield (rows, classes), weight, {"reduction": reduction, "ignore_index": ignored}


@cross_entropy.samples
def _(draw):
    for shape, weight, metadata in _class_losses(draw):
        for smoothing in (0.0, 0.25):
            inputs = [draw(shape), draw.rng.integers(0, shape[1], shape[0]), weight]
            yield inputs, {**metadata, "label_smoothing": smoothing}, (0,)


@cross_entropy.gradient
def _(grad: Tensor, x: Tensor, target: Tensor, weight, total, lse, ignore_index, reduction, label_smoothing, needs):
    if not recording.enabled:
        options = {"ignore_index": ignore_index, "reduction": reduction, "label_smoothing": label_smoothing}
        return cross_entropy_backward(grad, x, target, weight, total, lse, **options), None, None
    picked = _one_hot(target, x.shape[1])
    counts = (target != ignore_index).unsqueeze(1)
    shares = softmax(x, dim=1)
    change = where(picked, shares - 1, shares)
    if weight is None:
        smooth = shares * x.shape[1] - 1
    else:
        change = change * sum(where(picked, weight, 0), dim=1, keepdim=True)
        smooth = shares * sum(weight) - weight
    if label_smoothing:
        change = change * (1 - label_smoothing) + smooth * (label_smoothing / x.shape[1])
    # both where no row counts, and the gradient is divided by 0: nor is there then a gradient of this one
    of_rows = where(counts, _row_gradient(grad, total, reduction), 0)
    return where(counts, change * of_rows, 0), None, None


def _one_hot(target: Tensor, classes: int) -> Tensor:
    """A mask of shape (N, C): whether a class is the row's target."""
    return wrap(np.arange(classes)).to(target.device) == target.unsqueeze(1)


def _row_gradient(grad: Tensor, total: Tensor, reduction: str) -> Tensor:
    """The gradient of each row's loss, of a shape that broadcasts with (N, C)."""
    if reduction == "none":
        return grad.unsqueeze(1)
    return grad / total.detach() if reduction == "mean" else grad


@lru_cache(maxsize=256)
def _row_starts(rows: int, classes: int) -> np.ndarray:
    return np.arange(0, rows * classes, classes)


class _QuickGradient(Gradient):
    """The backward of `quick_cross_entropy`: from saved exponentials, unless backward itself is recorded."""

    __slots__ = ()

    arithmetic = True
    name = "NllLossBackward0"

    def run(self, node: Node, gradient: Tensor) -> Any:
        """The scores' gradient composed of tensor operators, for create_graph."""
        noted = gradient._data.__class__ is Deferred
        if not recording.enabled and (noted or type(gradient._data) is ndarray):
            parts = [wrap(part) for part in self.run_on_arrays(node.saved, gradient._host_array())]
            return list(map(Deferred.rules.entered, parts)) if noted else parts
        x, target, _, _, _, divisor, reduction = node.saved
        total = wrap(asarray(divisor, x._data.dtype))
        gradient_of: Any = cross_entropy.joint_gradient
        x = x if recording.enabled else x.detach()
        with enable_grad():
            return gradient_of(gradient, x, target, None, total, None, -1, reduction, 0.0, None)[:1]

    def run_on_arrays(self, saved: tuple[Any, ...], array: np.ndarray) -> list[np.ndarray]:
        """The scores' gradient in seven steps."""
        _, _, shares, totals, places, divisor, _ = saved
        scale = array / divisor
        if shares.size < LARGE:
            change = shares * (scale / totals)
        else:
            change = scaled(shares, scale / totals)
        change.put(places, change.take(places) - scale)
        return [change]


_quick = _QuickGradient()


def quick_cross_entropy(input: Tensor, target: Tensor, reduction: str) -> Tensor | None:
    """Cross entropy of CPU rows of float32 or float64, where every target is a class; None in all other cases.

    Training on small batches calls it in each step, where the number of NumPy calls determines the time.
    """
    x, t = getattr(input, "_data", None), getattr(target, "_data", None)
    noted = x.__class__ is Deferred
    if noted or t.__class__ is Deferred:  # targets are looked at, so both are needed now
        x, t = input._host_array(), target._host_array()
    if x.__class__ is not ndarray or t.__class__ is not ndarray or x.ndim != 2 or x.dtype.char not in "fd":
        return None
    if t.dtype is not INT64 or t.shape != x.shape[:1] or (reduction != "mean" and reduction != "sum"):
        return None
    if x.size >= LARGE and wins(cross_entropy, x.dtype, x.size):
        return None
    count, classes = x.shape
    # as unsigned numbers, negative targets are large, so one comparison finds all invalid ones
    if count == 0 or maximum_reduce(t.view(uint64)) >= classes:
        return None
    places = _row_starts(count, classes) + t
    divisor = count if reduction == "mean" else 1
    try:
        if x.size >= LARGE:
            shares, totals, losses = shares_and_losses(x, t)
            loss = add_reduce(losses) / divisor
        else:
            shares = x - maximum_reduce(x, 1, keepdims=True)
            best = shares.take(places)
            exp(shares, shares)
            totals = dot(shares, ones((classes, 1), x.dtype))
            losses = log(totals[:, 0])
            losses -= best
            loss = add_reduce(losses) / divisor
    except (RuntimeWarning, FloatingPointError):
        return None  # NumPy raises for warnings here; the operator ignores them
    result = wrap(asarray(loss, x.dtype))
    if input._needs and recording.enabled:
        saved = (input, target, shares, totals, places, divisor, reduction)
        versions = (input._version, target._version, None, None, None, None, None)
        result._node = record(_quick, (input._edge(),), saved, versions)
        result._needs = True
    return Deferred.rules.entered(result) if noted else result


class ClassLossBackward(Operator):
    """The scores' gradient of a class loss in one pass."""

    family = "loss"
    repeatable = True
    native = Native()
    main = 1

    def __init__(self, name: str, reference: Callable[..., Any]) -> None:
        super().__init__(name, reference, Floating("floating", name))
        self.kinds, self.optional = {"target": dtypes.int64}, {"weight"}

    def on_host(self, call: Call) -> Callable[..., tuple[np.ndarray, ...]]:
        """The reference, in pieces."""
        if not call.arrays[1].size:
            return super().on_host(call)
        kind, result, reduction = call.compute.numpy, call.results[0].numpy, call.metadata["reduction"]
        more = {key: call.metadata[key] for key in ("ignore_index", "label_smoothing")}

        def in_rows(grad: Any, x: np.ndarray, target: Any, weight: Any, total: Any, lse: Any) -> tuple[np.ndarray, ...]:
            scale = asarray(grad).astype(kind)
            scale = np.broadcast_to(scale / total if reduction == "mean" else scale, x.shape[:1]).astype(kind)
            return (cross_entropy_backward_rows(scale, x, target, weight, lse, **more, dtype=kind, result=result),)

        return lambda *arrays: quietly(in_rows, *arrays)

    def launch(self, call: Call) -> None:
        """One pass over the rows."""
        from .loss_kernels import launch_cross_entropy_backward

        launch_cross_entropy_backward(call.outs, call.arrays, call.compute, call.metadata)


def _cross_entropy_backward(grad: Tensor, x, target, weight, total, lse, *, ignore_index, reduction, label_smoothing):
    """The gradient of cross_entropy's scores."""
    safe, share = picked(target, weight, ignore_index, x.dtype)
    rows, classes = x.shape
    shares = np.exp(x - lse[:, None])
    change = shares * (share * (1 - label_smoothing))[:, None]
    change[np.arange(rows), safe] -= share * (1 - label_smoothing)
    if label_smoothing:
        weights = np.ones(classes, x.dtype) if weight is None else weight
        change += (shares * weights.sum() - weights) * x.dtype.type(label_smoothing / classes)
    scale = grad if reduction == "none" else np.broadcast_to(grad / total if reduction == "mean" else grad, (rows,))
    return np.where((target == ignore_index)[:, None], 0, change * scale[:, None])


cross_entropy_backward = ClassLossBackward("cross_entropy_backward", _cross_entropy_backward)


@cross_entropy_backward.samples
def _(draw):
    for shape, weight, metadata in _class_losses(draw):
        grad = draw(shape[:1] if metadata["reduction"] == "none" else ())
        total, lse = draw((), (1.0, 5.0)), draw(shape[:1], (3.0, 5.0))
        inputs = [grad, draw(shape), draw.rng.integers(0, shape[1], shape[0]), weight, total, lse]
        yield inputs, {**metadata, "label_smoothing": 0.0 if weight is None else 0.25}


def _nll_loss(x: np.ndarray, target: np.ndarray, weight=None, *, ignore_index: int = -100, reduction: str = "mean"):
    """The negative of the target class's value in each row of log-probabilities."""
    safe, share = picked(target, weight, ignore_index, x.dtype)
    losses = np.where(target == ignore_index, 0, -x[np.arange(len(x)), safe] * share)
    total = share.sum()
    return _reduce(losses, total, reduction), total


nll_loss = ClassLoss("nll_loss", _nll_loss, "nll_loss_out_frame", ("out", "total"))
nll_loss.autocasts(cpu="float32", cuda="float32")


def _nll_rows(x: np.ndarray, target: np.ndarray, weight: np.ndarray | None, *, ignore_index: int, reduction, dtype):
    weight = weight if weight is None else weight.astype(dtype)
    safe, share = picked(target, weight, ignore_index, dtype)
    return np.where(target == ignore_index, 0, -x[np.arange(len(x)), safe].astype(dtype) * share), share


nll_loss.rows = _nll_rows


@nll_loss.samples
def _(draw):
    for shape, weight, metadata in _class_losses(draw):
        yield [draw(shape), draw.rng.integers(0, shape[1], shape[0]), weight], metadata, (0,)


@nll_loss.gradient
def _(grad: Tensor, x_shape: tuple[int, ...], target: Tensor, weight, total: Tensor, ignore_index, reduction, needs):
    change = -_row_gradient(grad, total, reduction)
    if weight is not None:
        change = change * weight
    picked = _one_hot(target, x_shape[1]) & (target != ignore_index).unsqueeze(1)
    return where(picked, change, 0), None, None


# ---- inside of vmap --------------------------------------------------------------------------------------------------


def _losses_of_samples(batch: Batch) -> tuple[Any, ...]:
    """More rows, with a reduction of each sample's own."""
    if batch.whole[2]:
        return loop(batch)
    weight, reduction = batch.x[2], batch.metadata["reduction"]
    losses, total, *more = batch(batch.merged(0), batch.merged(1), weight, reduction="none")
    target = batch.all_of(1)
    counted = target != batch.metadata["ignore_index"]
    share = counted.to(total.dtype)
    if weight is not None:
        share = share * weight[(target * counted).flatten()].reshape(target.shape).to(total.dtype)
    totals = share.sum(1)
    losses = losses.reshape(batch.size, -1)
    if reduction != "none":
        losses = losses.sum(1)
    out = losses / totals.to(losses.dtype) if reduction == "mean" else losses
    return out, totals, *[each.reshape(batch.size, -1) for each in more]


def _backward_of_samples(batch: Batch) -> tuple[Any, ...]:
    """The gradient of more rows, each sample's with its own share."""
    if batch.whole[3]:
        return loop(batch)
    grad, x, target, _, total, lse = (batch.all_of(position) for position in range(6))
    if batch.metadata["reduction"] != "none":
        grad = (grad / total if batch.metadata["reduction"] == "mean" else grad).unsqueeze(1)
    rows = grad.expand(batch.size, x.shape[1]).flatten().to(x.dtype)
    inputs = (rows, x.flatten(0, 1), target.flatten(), batch.x[3], total.flatten()[:1].squeeze(0), lse.flatten())
    return (batch.split(batch(*inputs, reduction="none")[0]),)


cross_entropy.batched = nll_loss.batched = _losses_of_samples
cross_entropy_backward.batched = _backward_of_samples

"""Recurrent layers as functions: `lstm`, `gru`, `rnn_tanh` and `rnn_relu` of all layers, and a cell's step of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import ArgumentError, DtypeError, ShapeError, require
from ...ground.arguments import check_tensor
from ...ground.public import public
from ...kernels.recurrent.family import RECURRENT, Recurrent
from ...kernels.recurrent.order import ends
from ...tensors import Tensor
from ..elementwise.activations import dropout as dropout_of
from ..views.joining import cat, stack

_PADDED = ("input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")
_PACKED = ("data", "batch_sizes", *_PADDED[1:-1])


def _layers(
    operator: Recurrent,
    rows: Tensor,
    sizes: tuple[int, ...],
    first: Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> tuple[Tensor, ...]:
    """The last layer's states of all steps, and the last states, and cells, of each layer and direction."""
    require(sizes, ShapeError, "Expected sequence length to be larger than 0 in RNN")
    directions = 1 + bidirectional
    each = 2 + 2 * has_biases + (first[0].shape[-1] != first[-1].shape[-1])
    if len(params) != each * num_layers * directions:
        fact = f"{num_layers} layers and {directions} directions have {each} each, got {len(params)}"
        raise ShapeError("got an incorrect number of RNN parameters", fact)
    _check_dtypes(rows, (*first, *params))
    last: list[list[Tensor]] = [[] for _ in first]
    for layer in range(num_layers):
        outs = []
        for number in range(layer * directions, (layer + 1) * directions):
            w, u, *more = params[number * each : (number + 1) * each]
            b, d = more[:2] if has_biases else (None, None)
            cells = [] if len(first) == 1 else [first[1][number], more[-1] if each % 2 else None]
            reverse = number % directions == 1
            found = operator(rows, first[0][number], w, u, b, d, *cells, sizes=sizes, reverse=reverse)
            outs.append(found[0])
            for states, kept in zip(found, last):
                kept.append(states[ends(sizes, reverse)].to(rows.dtype))
        rows = outs[0] if directions == 1 else cat(outs, 1)
        if layer < num_layers - 1 and train and dropout:
            rows = dropout_of(rows, dropout)
    return rows, *[stack(states) for states in last]


def _check_dtypes(input: Tensor, others: Sequence[Tensor | None]) -> None:
    for each in others:
        if each is not None and each.dtype is not input.dtype:
            words = f"mat1 and mat2 must have the same dtype, but got {input.dtype.legacy} and {each.dtype.legacy}"
            raise DtypeError(words, remedy="bring input, states and weights to one dtype with .to(dtype)")


def _check_step(input: Tensor, first: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor) -> None:
    """Raise if a cell's input and states do not fit together or to the weights."""
    if input.shape[1] != w_ih.shape[1]:
        raise ShapeError(f"input has inconsistent input_size: got {input.shape[1]} expected {w_ih.shape[1]}")
    for number, state in enumerate(first):
        if len(input) != len(state):
            raise ShapeError(f"Input batch size {len(input)} doesn't match hidden{number} batch size {len(state)}")
        if state.shape[1] != w_hh.shape[1]:
            words = f"hidden{number} has inconsistent hidden_size: got {state.shape[1]}, expected {w_hh.shape[1]}"
            raise ShapeError(words)


def _declare(name: str, mode: str, layer: str, cpu: str) -> None:
    """A function of all layers, and one of a step."""
    operator, several = RECURRENT[mode], mode == "lstm"

    def layers(input: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        # of packed rows the argument before `params` is a tensor, of LSTM the one before that
        packed = "batch_sizes" in kwargs or any(isinstance(each, Tensor) for each in args[not several : 2 - several])
        names = _PACKED if packed else _PADDED
        given = dict(zip(names, (input, *args)), **kwargs)
        if len(args) >= len(names) or given.keys() != set(names):
            fact = f"it takes ({', '.join(_PADDED)}) or ({', '.join(_PACKED)})"
            raise ArgumentError(f"{name}() received an invalid combination of arguments", fact)
        input, hx = (given.pop(key) for key in (names[0], "hx"))
        require(not several or len(hx) == 2, ShapeError, "{} expects two hidden states", name)
        first = tuple(hx) if several else (hx,)
        if packed:
            sizes = tuple(given.pop("batch_sizes").tolist())
            return _layers(operator, input[: sum(sizes)], sizes, first, **given)
        batch_first = given.pop("batch_first")
        steps = input.transpose(0, 1) if batch_first else input
        sizes = (steps.shape[1],) * steps.shape[0]
        rows, *last = _layers(operator, steps.flatten(0, 1), sizes, first, **given)
        out = rows.unflatten(0, tuple(steps.shape[:2]))
        return out.transpose(0, 1) if batch_first else out, *last

    def cell(
        input: Tensor, hx: Any, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
    ) -> Any:
        check_tensor(f"{name}_cell", "input", 1, input)
        if several and not isinstance(hx, (tuple, list)):
            words = f"{name}_cell(): argument 'hx' (position 2) must be tuple of Tensors, not {type(hx).__name__}"
            raise ArgumentError(words)
        first = list(hx) if several else [hx]
        _check_step(input, first, w_ih, w_hh)
        _check_dtypes(input, (*first, w_ih, w_hh, b_ih, b_hh))
        out, kept, _ = operator(input, first[0], w_ih, w_hh, b_ih, b_hh, *first[1:])
        return (out, kept.to(out.dtype)) if several else out

    raised = "\n\n    Raises:\n        ShapeError, DtypeError: sizes or dtypes that do not fit together.\n    "
    layers.__doc__ = (
        f"Applies an {layer}: the states of all steps, and the last ones of each layer and direction.\n\n    Called "
        f"as `{name}({', '.join(_PADDED)})`,\n    or with packed rows `{name}({', '.join(_PACKED)})`.{raised}"
    )
    cell.__doc__ = f"Applies an {layer} cell for one step: the new states{', and the cells' * several}.{raised}"
    layers.__name__, cell.__name__ = layers.__qualname__, cell.__qualname__ = name, f"{name}_cell"
    autocast = {"cpu": cpu, "cuda": "lower"}
    public(functional=False, autocast=autocast)(layers)
    public(functional=False, autocast={**autocast, "cpu": "widest"} if several else autocast)(cell)


_declare("lstm", "lstm", "LSTM", "lower")
_declare("gru", "gru", "GRU", "widest")
_declare("rnn_tanh", "tanh", "RNN", "lower")
_declare("rnn_relu", "relu", "RNN", "lower")

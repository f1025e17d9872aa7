"""Recurrent layers, LSTM, GRU and RNN, over whole sequences; and cells, which compute one step."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Number
from typing import Any

from ..autograd import precision
from ..errors import ShapeError, require, warn
from ..functional.creation.creation import zeros
from ..ground.public import PACKAGE
from ..tensors import Tensor
from ..types import Device, Dtype
from . import init
from .layer import add_parameters
from .module import Module
from .parameter import Parameter
from .utils.rnn import PackedSequence

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """Base of `RNN`, `LSTM` and `GRU`: several layers, in one direction or in both.

    Layer k has the parameters `weight_ih_lk` and `weight_hh_lk`, `bias_ih_lk` and `bias_hh_lk` with `bias`, and
    `weight_hr_lk` with `proj_size`; those of the other direction end in `_reverse`. All start uniform in
    +-1/sqrt(hidden_size).

    Args:
        mode: "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".
        batch_first: inputs and outputs are (B, T, *) instead of (T, B, *); states are not concerned.
        dropout: while training, the share of the states between layers that is set to zero.
        bidirectional: other weights go through the steps from the end; their states follow in the last dimension.
        proj_size: of LSTM, the size that states are projected to; 0 for none.

    Raises:
        TypeError, ValueError: an option of another type, or out of range.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Device = None,
        dtype: Dtype = None,
    ) -> None:
        super().__init__()
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, dropout
        self.bidirectional, self.proj_size = bidirectional, proj_size
        self._check_options()
        self.dropout = float(dropout)
        self._all_weights: list[list[str]] = []
        wide, states, directions = _GATES[mode] * hidden_size, proj_size or hidden_size, 1 + bool(bidirectional)
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[:directions]:
                width = states * directions if layer else input_size
                shapes: dict[str, Any] = {"weight_ih": (wide, width), "weight_hh": (wide, states)}
                shapes |= {"bias_ih": (wide,), "bias_hh": (wide,)} if bias else {}
                shapes |= {"weight_hr": (proj_size, hidden_size)} if proj_size else {}
                named = {f"{name}_l{layer}{suffix}": shape for name, shape in shapes.items()}
                add_parameters(self, device, dtype, **named)
                self._all_weights.append(list(named))
        self.reset_parameters()

    def _check_options(self) -> None:
        """Raise for an option of another type or out of range, with PyTorch's words."""
        rate: Any = self.dropout
        if not isinstance(rate, Number) or isinstance(rate, bool) or not 0 <= rate <= 1:  # type: ignore[operator]
            words = "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            raise ValueError(words)
        if rate > 0 and self.num_layers == 1:  # type: ignore[operator]
            warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={rate} and num_layers=1"
            )
        for name, kind in {"bias": bool, "batch_first": bool, "input_size": int, "hidden_size": int}.items():
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
        for wrong, words in (
            (self.input_size <= 0, "input_size must be greater than zero"),
            (self.hidden_size <= 0, "hidden_size must be greater than zero"),
            (self.num_layers <= 0, "num_layers must be greater than zero"),
            (self.proj_size and self.mode != "LSTM", "proj_size argument is only supported for LSTM, not RNN or GRU"),
            (self.proj_size < 0, "proj_size should be a positive integer or zero to disable projections"),
            (self.proj_size >= self.hidden_size, "proj_size has to be smaller than hidden_size"),
            (self.mode not in _GATES, f"Unrecognized RNN mode: {self.mode}"),
        ):
            if wrong:
                raise ValueError(words)

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self) -> list[Parameter]:
        return [weight for weights in self.all_weights for weight in weights]

    def flatten_parameters(self) -> None:
        """Does nothing: weights need not lie one after the other here. For programs that call it."""

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        _draw(self)

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """The states of all steps, and the last ones (of LSTM a pair of states and cells) of each layer and direction.

        Args:
            input: (T, B, input_size), with `batch_first` (B, T, input_size); (T, input_size) of one sequence; or a
                PackedSequence, for which one is returned.
            hx: the first states, (num_layers * directions, B, size), of LSTM a pair with cells; zeros unless given.

        Raises:
            ShapeError, ValueError: sizes, ranks or dtypes that do not fit.
        """
        several, packed, batch_dim = self.mode == "LSTM", isinstance(input, PackedSequence), 1 - self.batch_first
        data, sizes, order, back = input if packed else (input, None, None, None)
        first = None if hx is None else tuple(hx) if several else (hx,)
        single = not packed and not self._is_batched(data, first)
        if single:
            data, first = data.unsqueeze(batch_dim), _each(first, lambda x: x.unsqueeze(1))
        elif order is not None:
            first = _each(first, lambda x: x.index_select(1, order))
        weights = self._flat_weights
        sequences = data._data.shape[batch_dim] if sizes is None else int(sizes[0])
        first = self._checked(data, first, sequences, weights[0].dtype)
        options = (self.bias, self.num_layers, self.dropout, self.training, bool(self.bidirectional))
        place, last = ((sizes,), ()) if packed else ((), (self.batch_first,))
        states = first if several else first[0]
        out, *found = PACKAGE[self.mode.lower()](data, *place, states, weights, *options, *last)
        if packed:
            out = PackedSequence(out, sizes, order, back)
            found = found if back is None else _each(found, lambda x: x.index_select(1, back))
        elif single:
            out, found = out.squeeze(batch_dim), _each(found, lambda x: x.squeeze(1))
        return out, tuple(found) if several else found[0]

    def _is_batched(self, input: Tensor, first: Sequence[Tensor] | None) -> bool:
        """True if there is a dimension of sequences; raises if input and states disagree."""
        several, name = self.mode == "LSTM", self.mode.partition("_")[0]
        if input.ndim not in (2, 3):
            kind = "D" if several else "D tensor"
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.ndim}{kind} instead")
        if any(each.ndim != input.ndim for each in first or ()):
            which = "batched 3-D" if input.ndim == 3 else "unbatched 2-D"
            ranks = ", ".join([f"{each.ndim}-D" for each in first or ()])
            states, got = ("hx and cx", f"({ranks}) tensors") if several else ("hx", f"{ranks} tensor")
            raise ShapeError(f"For {which} input, {states} should also be {input.ndim}-D but got {got}")
        return input.ndim == 3

    def _checked(self, data: Tensor, first: tuple[Tensor, ...] | None, sequences: int, kind: Any) -> Any:
        """The first states, zeros where none are given; raises if they or the input do not fit."""
        count = self.num_layers * (1 + bool(self.bidirectional))
        if data.dtype is not kind and not precision.state.types:
            raise ValueError(
                f"RNN input dtype ({data.dtype}) does not match weight dtype ({kind}). Convert input: "
                f"input.to({kind}), or convert model: model.to({data.dtype})"
            )
        if data.shape[-1] != self.input_size:
            raise ShapeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {data.shape[-1]}"
            )
        shapes = [(count, sequences, self.proj_size or self.hidden_size)]
        shapes += [(count, sequences, self.hidden_size)] * (self.mode == "LSTM")
        if first is None:
            return [zeros(shape, dtype=kind, device=data.device) for shape in shapes]
        for number, (each, shape) in enumerate(zip(first, shapes)):
            if tuple(each.shape) != shape:
                which = f"hidden[{number}]" if len(shapes) > 1 else "hidden"
                raise ShapeError(f"Expected {which} size {shape}, got {list(each.shape)}")
        return first

    def extra_repr(self) -> str:
        """The sizes, and the options that are not the defaults."""
        plain = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        given = [f"{name}={getattr(self, name)}" for name, value in plain.items() if getattr(self, name) != value]
        return ", ".join([str(self.input_size), str(self.hidden_size), *given])


def _each(values: Any, change: Callable[[Tensor], Tensor]) -> Any:
    return None if values is None else tuple([change(value) for value in values])


def _draw(module: Module) -> None:
    bound = 1 / math.sqrt(module.hidden_size) if module.hidden_size > 0 else 0
    for parameter in module.parameters():
        init.uniform_(parameter, -bound, bound)


class RNN(RNNBase):
    """Recurrent neural network (RNN): h' = tanh(x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh), or relu.

    `RNN(input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, ...)`, and as `RNNBase`.

    >>> import tritensor as torch
    >>> states, last = torch.nn.RNN(10, 20, num_layers=2)(torch.ones(5, 3, 10))
    >>> states.shape, last.shape
    (tritensor.Size([5, 3, 20]), tritensor.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        nonlinearity = args[3] if len(args) > 3 else kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", *args[:3], *args[4:], **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory (LSTM): gates decide what of each cell is kept, added and shown.

    i, f, g, o = the four parts of x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh;
    c' = sigmoid(f) * c + sigmoid(i) * tanh(g); h' = sigmoid(o) * tanh(c'), times weight_hr.T with `proj_size`.

    The options are those of `RNNBase`.

    >>> import tritensor as torch
    >>> states, (last, cells) = torch.nn.LSTM(10, 20, bidirectional=True)(torch.ones(5, 3, 10))
    >>> states.shape, last.shape
    (tritensor.Size([5, 3, 40]), tritensor.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent unit (GRU): gates decide what of the state is reset and what is kept.

    r, z, n = the three parts of x @ weight_ih.T + bias_ih; with those of h @ weight_hh.T + bias_hh added to r and z,
    n' = tanh(n + sigmoid(r) * its part); h' = (1 - sigmoid(z)) * n' + sigmoid(z) * h.

    The options are those of `RNNBase`.

    >>> import tritensor as torch
    >>> states, last = torch.nn.GRU(10, 20, batch_first=True)(torch.ones(3, 5, 10))
    >>> states.shape, last.shape
    (tritensor.Size([3, 5, 20]), tritensor.Size([1, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """Base of the cells: the parameters `weight_ih` and `weight_hh`, and with `bias` `bias_ih` and `bias_hh`."""

    weight_ih: Parameter
    weight_hh: Parameter

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Device = None, dtype: Dtype = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        wide = num_chunks * hidden_size
        biases = (wide,) if bias else None
        shapes: dict[str, Any] = {"weight_ih": (wide, input_size), "weight_hh": (wide, hidden_size)}
        add_parameters(self, device, dtype, **shapes, bias_ih=biases, bias_hh=biases)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew."""
        _draw(self)

    def extra_repr(self) -> str:
        """The sizes, and the options that are not the defaults."""
        found = f"{self.input_size}, {self.hidden_size}{'' if self.bias is True else f', bias={self.bias}'}"
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return found if nonlinearity == "tanh" else f"{found}, nonlinearity={nonlinearity}"

    def _step(self, mode: str, input: Tensor, first: Any, count: int = 1) -> Any:
        """The new states; of one sequence where the input is a vector."""
        name = type(self).__name__
        if input.ndim not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        for number, each in enumerate(first or ()):
            if each.ndim not in (1, 2):
                which = f"hx[{number}]" if count > 1 else "hidden"
                raise ValueError(f"{name}: Expected {which} to be 1D or 2D, got {each.ndim}D instead")
        single = input.ndim == 1
        rows = input.unsqueeze(0) if single else input
        if first is None:
            first = [zeros(len(rows), self.hidden_size, dtype=input.dtype, device=input.device)] * count
        elif single:
            first = _each(first, lambda x: x.unsqueeze(0))
        hx = first if count > 1 else first[0]
        found = PACKAGE[f"{mode}_cell"](rows, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        if not single:
            return found
        return _each(found, lambda x: x.squeeze(0)) if count > 1 else found.squeeze(0)


class RNNCell(RNNCellBase):
    """One step of `RNN`: states of (B, hidden_size) from inputs of (B, input_size), or vectors of one sequence.

    >>> import tritensor as torch
    >>> torch.nn.RNNCell(10, 20)(torch.ones(3, 10)).shape
    tritensor.Size([3, 20])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Device = None,
        dtype: Dtype = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The new states; zeros come before unless `hx` is given."""
        require(self.nonlinearity in ("tanh", "relu"), RuntimeError, "Unknown nonlinearity: {}", self.nonlinearity)
        return self._step(f"rnn_{self.nonlinearity}", input, None if hx is None else (hx,))


class _GatedCell(RNNCellBase):
    _chunks = 0

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Device = None, dtype: Dtype = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, self._chunks, device, dtype)


class LSTMCell(_GatedCell):
    """One step of `LSTM`: a pair of states and cells, (B, hidden_size) each, or vectors of one sequence.

    >>> import tritensor as torch
    >>> state, cell = torch.nn.LSTMCell(10, 20)(torch.ones(3, 10))
    >>> state.shape, cell.shape
    (tritensor.Size([3, 20]), tritensor.Size([3, 20]))
    """

    _chunks = 4

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """The new states and cells; zeros come before unless `hx` is given."""
        return self._step("lstm", input, hx, 2)


class GRUCell(_GatedCell):
    """One step of `GRU`: states of (B, hidden_size) from inputs of (B, input_size), or vectors of one sequence."""

    _chunks = 3

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The new states; zeros come before unless `hx` is given."""
        return self._step("gru", input, None if hx is None else (hx,))

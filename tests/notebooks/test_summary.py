"""`Module.summary`, and what a notebook shows of a module."""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

import tritensor as torch
from tritensor import nn
from tritensor.autograd.precision import casts, state

from ..needs import needs_triton
from .test_tensor_html import Checked

F = nn.functional


def network() -> nn.Sequential:
    shared = nn.Linear(8, 8, bias=False)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, groups=1),
        nn.BatchNorm2d(8),
        nn.ReLU(inplace=True),
        nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), shared),
        nn.Dropout(0.5),
        shared,
    )
    model[0].weight.requires_grad_(False)
    model.unused = nn.Linear(2, 2)
    model.forward = lambda x: nn.Sequential(*list(model)[:-1])(x)
    return model


TABLE = """\
module    class              inputs        outputs       parameters      bytes   FLOPs  notes
-         Sequential         (2, 3, 4, 4)  (2, 8)               310   1.21 KiB  14,336  216 frozen
  0       Conv2d             (2, 3, 4, 4)  (2, 8, 4, 4)         224  896 bytes  13,824  216 frozen
  1       BatchNorm2d        (2, 8, 4, 4)  (2, 8, 4, 4)          16   64 bytes       0
  2       ReLU               (2, 8, 4, 4)  (2, 8, 4, 4)           0    0 bytes       0
  3       Sequential         (2, 8, 4, 4)  (2, 8)                64  256 bytes     256
    0     AdaptiveAvgPool2d  (2, 8, 4, 4)  (2, 8, 1, 1)           0    0 bytes       0
    1     Flatten            (2, 8, 1, 1)  (2, 8)                 0    0 bytes       0
    2     Linear             (2, 8)        (2, 8)                64  256 bytes     512  2 calls
  4       Dropout            (2, 8)        (2, 8)                 0    0 bytes       0
  5       Linear             -             -                      -          -       -  shared with 3.2
  unused  Linear             -             -                      6   24 bytes       -
310 parameters of 1.21 KiB, 94 trainable; 17 in buffers; 14,336 FLOPs, activations of 2.25 KiB"""


def test_the_table() -> None:
    model = network()
    found = model.summary((2, 3, 4, 4))
    assert str(found) == repr(found) == TABLE
    # of the modules that call no others: two of the convolution's, not ReLU's in place, not the view of Flatten
    assert found.activations == 4 * (2 * 2 * 8 * 16 + 4 * 2 * 8)
    row = found.rows[7]
    assert (row.path, row.level, row.calls, row.inputs, row.trainable) == ("3.2", 2, 2, [(2, 8)], 64)
    assert found.rows[9].shared == "3.2" and found.buffers == 17


def test_depth_and_file() -> None:
    model, file = network(), io.StringIO()
    found = model.summary((2, 3, 4, 4), depth=1, file=file)
    assert file.getvalue() == f"{found}\n" and len(found.rows) == 8
    assert model.summary((2, 3, 4, 4), depth=0).rows == found.rows[:1] and found.rows[0].flops == 14_336
    for depth in (-1, 1.0, True):
        with pytest.raises(TypeError, match="summary: depth must be an int of at least 0 or None"):
            model.summary((2, 3, 4, 4), depth=depth)


class Counting(nn.Module):
    """Changes all that a forward pass may change, and raises where it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("seen", torch.zeros(1))
        self.register_buffer("nothing", None)
        self.alias, self.calls = self.norm, 0

    def forward(self, x: torch.Tensor, fail: bool = False) -> torch.Tensor:
        self.calls += 1
        self.seen += 1
        self.seen = self.seen + 1
        self.extra, self.late = x, nn.Linear(1, 1)
        self.norm.eval()
        y = F.dropout(self.norm.train()(x), 0.5)
        if fail:
            raise ValueError("told to")
        return y


@pytest.mark.parametrize("fail", [False, True])
def test_nothing_changes(fail: bool) -> None:
    model = Counting()
    model.norm.register_forward_hook(lambda module, args, out: out * 2)
    before = {name: (value, value._version, value.clone()) for name, value in model.state_dict(keep_vars=True).items()}
    own = [(module, dict(module.__dict__), dict(module._modules)) for module in model.modules()]
    hooks = [dict(module._forward_hooks) for module in model.modules()]
    generator = torch.get_rng_state()
    if fail:
        with pytest.raises(ValueError, match="told to"):
            model.summary((4, 3), fail=True)
    else:
        assert model.summary(torch.ones(4, 3)).rows[1].calls == 1
    assert torch.equal(torch.get_rng_state(), generator) and torch.is_grad_enabled()
    for name, value in model.state_dict(keep_vars=True).items():
        same, version, values = before[name]
        assert value is same and value._version == version and torch.equal(value, values)
    assert [(module, dict(module.__dict__), dict(module._modules)) for module in model.modules()] == own
    assert [dict(module._forward_hooks) for module in model.modules()] == hooks
    assert not any(module._forward_pre_hooks or module._forward_hooks_always_called for module in model.modules())
    assert model.calls == 0 and not hasattr(model, "extra") and casts.on == 0 and state.watch is None


def test_inputs() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 2, dtype=torch.float64)

        def forward(self, x: torch.Tensor, pair: Any, *, scale: torch.Tensor | None = None) -> Any:
            assert x.dtype is torch.float64 and pair[1] == "text"
            out = self.inner(x) * scale
            return {"out": out, "more": [out, (pair[0],)]}

    found = Two().summary([5, 3], (torch.ones(7), "text"), scale=torch.ones(2))
    assert found.rows[0].inputs == [(5, 3), (7,), (2,)] and found.rows[0].outputs == [(5, 2), (5, 2), (7,)]
    assert nn.Embedding(4, 2).summary(torch.tensor([1, 2])).rows[0].outputs == [(2, 2)]
    assert nn.ReLU().summary(()).rows[0].inputs == [()]


def test_a_lazy_layer_is_refused() -> None:
    model = nn.Sequential(nn.LazyLinear(2))
    with pytest.raises(RuntimeError, match=r"lazy layer has no parameters yet\n.*call the module once"):
        model.summary((1, 3))
    model(torch.ones(1, 3))
    assert model.summary((1, 3)).rows[0].flops == 12


def test_a_call_that_fails_and_is_caught() -> None:
    class Catching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(3, 2), nn.Linear(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            try:
                return self.first(x)
            except RuntimeError:
                return self.second(x)

    found = Catching().summary((1, 4))
    assert [row.flops for row in found.rows] == [16, 0, 16] and found.rows[1].outputs == []


# What is computed, and how many operations that is.
COUNTED: list[tuple[Callable[..., Any], list[tuple[int, ...]], int]] = [
    (torch.matmul, [(5, 2, 3), (3, 4)], 240),
    (torch.matmul, [(3,), (3,)], 6),
    (lambda a, b: a @ b, [(2, 3), (3, 4)], 48),
    (torch.addmm, [(4,), (2, 3), (3, 4)], 48),
    (torch.bmm, [(5, 2, 3), (5, 3, 4)], 240),
    (lambda a, b: torch.einsum("bij,bjk->bik", a, b), [(5, 2, 3), (5, 3, 4)], 240),
    (F.linear, [(2, 3), (4, 3)], 48),
    (F.linear, [(5, 2, 3), (4, 3)], 240),
    (lambda x, w: F.conv1d(x, w, groups=2), [(1, 4, 6), (2, 2, 3)], 2 * 8 * 6),
    (lambda x, w: F.conv_transpose1d(x, w), [(1, 4, 6), (4, 2, 3)], 2 * 24 * 6),
    (F.scaled_dot_product_attention, [(2, 5, 4), (2, 6, 4), (2, 6, 3)], 2 * 2 * 5 * 6 * 7),
    (lambda q: F.scaled_dot_product_attention(q, q, q, dropout_p=0.5), [(2, 50, 4)], 2 * 2 * 50 * 50 * 8),
    (lambda a, b: torch.vmap(torch.mv)(a, b), [(5, 2, 3), (5, 3)], 60),
    (lambda x: (x.exp() * 2).softmax(-1).sum(), [(5, 6)], 0),
]


@pytest.mark.parametrize("case", range(len(COUNTED)))
def test_functions_count(case: int) -> None:
    class Calls(nn.Module):
        def forward(self, *args: torch.Tensor) -> Any:
            return COUNTED[case][0](*args)

    _, shapes, operations = COUNTED[case]
    model = Calls()
    for _ in range(2):  # not less where calls are remembered
        assert model.summary(*shapes).rows[0].flops == operations


@needs_triton
def test_on_a_device() -> None:
    with torch.cuda.simulate():
        model = nn.Sequential(nn.Conv1d(2, 3, 3), nn.Flatten(), nn.Linear(12, 2), nn.BatchNorm1d(2)).cuda()
        found = model.summary((2, 2, 6))
        assert found.rows[0].flops == 2 * 24 * 6 + 96
        x = torch.ones(2, 2, 6, device="cuda")
        assert model.summary(x).rows[0].flops == found.rows[0].flops  # a call that is remembered
        lstm = nn.LSTM(3, 4, proj_size=2).cuda()
        assert lstm.summary((5, 2, 3)).rows[0].flops == 2 * 10 * (16 * 3 + 16 * 2 + 4 * 2)


# ---- the name `summary` belongs to the user ------------------------------------------------------------------------


def test_a_users_summary_comes_first() -> None:
    class Head(nn.Module):
        def __init__(self, value: Any) -> None:
            super().__init__()
            self.summary = value

    layer, parameter = nn.Linear(2, 2), nn.Parameter(torch.ones(1))
    for value in (layer, parameter, torch.nn.Buffer(torch.ones(1)), "text", None):
        assert Head(value).summary is value
    model = Head(layer)
    assert model.get_submodule("summary") is layer
    assert nn.Module.summary(layer, (3, 2)).rows[0].flops == 24
    assert list(model.state_dict()) == ["summary.weight", "summary.bias"]
    del model.summary
    assert model.summary.__func__ is nn.Module.summary and "summary" in dir(model)

    class Own(nn.Module):
        def summary(self) -> str:
            return "own"

    assert Own().summary() == "own"


def test_the_name_can_be_registered() -> None:
    layer = nn.Linear(2, 2)
    for register, value in (
        (nn.Module.add_module, layer),
        (nn.Module.register_module, layer),
        (nn.Module.register_buffer, torch.ones(1)),
        (nn.Module.register_parameter, nn.Parameter(torch.ones(1))),
    ):
        module = nn.Module()
        register(module, "summary", value)
        assert module.summary is value
        for other in (nn.Module.register_buffer, nn.Module.register_parameter, nn.Module.add_module):
            if other is not register and register is not nn.Module.register_module:
                with pytest.raises(KeyError, match="attribute 'summary' already exists"):
                    other(module, "summary", None)
        with pytest.raises(KeyError, match="attribute 'forward' already exists"):
            register(module, "forward", value)
    assert nn.Sequential(OrderedDict(summary=layer)).summary is layer
    assert nn.ModuleDict({"summary": layer}).summary is layer
    module = nn.Module()
    with pytest.raises(AttributeError, match="has no attribute `summary`"):
        module.set_submodule("summary", layer, strict=True)
    module.set_submodule("summary", layer)
    assert module.summary is layer


# ---- notebooks -----------------------------------------------------------------------------------------------------


def test_html() -> None:
    model = network()
    html = model._repr_html_()
    found = Checked(html).found
    assert found.count("details") == 2 and html.count("<details open") == 1
    assert "310 parameters · float32 on cpu · training" in html
    assert "<b>0</b> Conv2d(3, 8, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))" in html
    assert html.count("listed above") == 1 and "<b>unused</b>" in html
    assert "<b>2</b> ReLU(inplace=True) <span style='opacity:.7'>evaluation</span>" in model.eval()._repr_html_()
    model[0].half()
    assert "float16 on cpu · float32 on cpu" in model._repr_html_()
    summary = model.float().summary((2, 3, 4, 4))
    assert Checked(summary._repr_html_()).found == ["pre"] and "Conv2d" in summary._repr_html_()


def test_html_is_escaped() -> None:
    class Odd(nn.Module):
        def extra_repr(self) -> str:
            return "<script>\n&"

    model = nn.Sequential()
    model.add_module("<i>", Odd())
    html = model._repr_html_()
    assert "<b>&lt;i&gt;</b> Odd(&lt;script&gt; &amp;)" in html and "<script>" not in html


# ---- beside PyTorch ------------------------------------------------------------------------------------------------


def _convolutional(nn: Any) -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1),
        nn.BatchNorm2d(8),
        nn.Conv2d(8, 8, 3, groups=4, dilation=2),
        nn.ConvTranspose2d(8, 4, 2, stride=2),
        nn.Flatten(),
        nn.Linear(4 * 8 * 8, 10),
    )


MODELS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "convolutional": (_convolutional, (2, 3, 16, 16)),
    "encoder": (lambda nn: nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), (2, 5, 16)),
    "lstm": (lambda nn: nn.LSTM(8, 16, 2, bidirectional=True), (5, 2, 8)),
    "lstm with projections": (lambda nn: nn.LSTM(8, 16, 2, proj_size=3), (5, 2, 8)),
    "gru": (lambda nn: nn.GRU(8, 16, batch_first=True), (5, 2, 8)),
    "rnn": (lambda nn: nn.RNN(8, 16), (5, 2, 8)),
    "lstm cell": (lambda nn: nn.LSTMCell(8, 16), (5, 8)),
}


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore:TF32")
@pytest.mark.parametrize("name", MODELS)
def test_operations_are_those_that_pytorch_counts(name: str) -> None:
    reference = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    build, shape = MODELS[name]
    with reference.backends.mkldnn.flags(enabled=False), FlopCounterMode(display=False) as counter:
        build(reference.nn)(reference.randn(shape, requires_grad=True))
    assert build(nn).summary(shape).rows[0].flops == counter.get_total_flops() > 0


class Words(nn.Module):
    """Takes words, numbers beside them, and words again, which a function and not a layer makes of integers."""

    def __init__(self) -> None:
        super().__init__()
        self.rows, self.join = nn.Embedding(7, 3), nn.Linear(8, 2)

    def forward(self, words: torch.Tensor, numbers: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
        return self.join(torch.cat([self.rows(words), self.join.weight.t()[:2] @ numbers, F.one_hot(kinds, 3)], -1))


@pytest.mark.parametrize(
    ("model", "shapes", "outputs"),
    [
        (nn.Sequential(nn.Embedding(7, 3), nn.Flatten(), nn.Linear(12, 2)), [(5, 4)], (5, 2)),
        (nn.EmbeddingBag(7, 3), [(5, 4)], (5, 3)),
        (nn.Embedding(7, 3, padding_idx=0, max_norm=1.0).double(), [(4,)], (4, 3)),
        (Words(), [(2,), (2, 2), (2,)], (2, 2)),
    ],
    ids=["embedding", "bag", "shortened", "words and numbers"],
)
def test_a_shape_is_of_integers_where_the_model_takes_integers(model, shapes, outputs) -> None:
    before = {name: value.clone() for name, value in model.state_dict().items()}
    generator = torch.get_rng_state()
    found = model.summary(*shapes)
    assert found.rows[0].inputs == shapes and found.rows[0].outputs == [outputs] and found.rows[0].calls == 1
    assert torch.equal(torch.get_rng_state(), generator)
    if not isinstance(model, nn.Embedding):  # whose rows a call shortens
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_the_error_of_a_wrong_shape_is_that_of_numbers() -> None:
    with pytest.raises(RuntimeError, match=r"^mat1 and mat2 shapes cannot be multiplied"):
        nn.Linear(3, 2).summary((2, 4))

"""The graph as users see it: PyTorch's names of nodes, and the leaves at its ends."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import tritensor as torch
from tritensor.nn import functional as F

from .leaves import leaf

NAMES = {
    "x * 2": "MulBackward0",
    "x + y": "AddBackward0",
    "x.add(y, alpha=2)": "AddBackward0",
    "x.log1p()": "Log1PBackward0",
    "x.exp2()": "Exp2Backward0",
    "x.round()": "RoundBackward0",
    "x.square()": "PowBackward0",
    "x ** 2": "PowBackward0",
    "x ** y": "PowBackward1",
    "2 ** x": "PowBackward2",
    "x.clamp(0, 1)": "ClampBackward1",
    "x.clamp(y, y)": "ClampBackward0",
    "x.lerp(y, 0.5)": "LerpBackward0",
    "x.lerp(y, y)": "LerpBackward1",
    "x.clone()": "CloneBackward0",
    "x.sum()": "SumBackward0",
    "x.sum(0)": "SumBackward1",
    "x.mean()": "MeanBackward0",
    "x.mean(1, True)": "MeanBackward1",
    "x.max()": "MaxBackward1",
    "x.max(0)[0]": "MaxBackward0",
    "x.norm()": "LinalgVectorNormBackward0",
    "x.topk(1)[0]": "TopkBackward0",
    "x[0]": "SelectBackward0",
    "x[0, 1]": "SelectBackward0",
    "x[:1]": "SliceBackward0",
    "x[:, None]": "UnsqueezeBackward0",
    "x[torch.tensor([0, 1])]": "IndexBackward0",
    "x.transpose(0, 1)": "TransposeBackward0",
    "x.squeeze()": "SqueezeBackward0",
    "x.squeeze(0)": "SqueezeBackward1",
    "x.squeeze((0, 1))": "SqueezeBackward2",
    "F.pad(x, (1, 1))": "ConstantPadNdBackward0",
    "F.pad(x, (0, -1))": "ConstantPadNdBackward0",
    "F.layer_norm(x, x.shape)": "NativeLayerNormBackward0",
    "F.dropout1d(x, 0.0)": "SqueezeBackward1",
    "F.rms_norm(x, (2,))": "MulBackward0",
    "F.interpolate(x[None], 1, mode='area')": "SqueezeBackward1",
    "F.nll_loss(x, torch.tensor([0, 1]), reduction='none')": "NllLossBackward0",
    "F.nll_loss(x[None], torch.zeros(1, 2, dtype=torch.int64))": "NllLoss2DBackward0",
    "F.cross_entropy(x[None], torch.zeros(1, 2, dtype=torch.int64), reduction='none')": "NllLoss2DBackward0",
    "F.fractional_max_pool2d(x[None], 1, 1)": "FractionalMaxPool2DBackward0",
    "F.max_unpool1d(x, torch.zeros_like(x, dtype=torch.int64), 2)": "SqueezeBackward1",
    "F.max_unpool2d(x[None], torch.zeros_like(x[None], dtype=torch.int64), 2)": "MaxUnpool2DBackward0",
    "x.t()": "TBackward0",
    "x[0].t()": "TBackward0",
    "x.permute(1, 0)": "PermuteBackward0",
    "x.unsqueeze(0)": "UnsqueezeBackward0",
    "x.view(-1)": "ViewBackward0",
    "x.reshape(-1)": "ViewBackward0",
    "x.t().reshape_as(x.t())": "ReshapeAliasBackward0",
    "x.t().reshape(-1)": "UnsafeViewBackward0",
    "x.expand(2, 2, 2)": "ExpandBackward0",
    "x.flip(0)": "FlipBackward0",
    "x.tril()": "TrilBackward0",
    "x.masked_fill(y > 0, 1.0)": "MaskedFillBackward0",
    "x.index_select(0, torch.tensor([0]))": "IndexSelectBackward0",
    "torch.where(y > 0, x, y)": "WhereBackward0",
    "torch.cat([x, y])": "CatBackward0",
    "torch.stack([x, y])": "StackBackward0",
    "x @ y": "MmBackward0",
    "x.mv(y[0])": "MvBackward0",
    "torch.addmm(y, x, y)": "AddmmBackward0",
    "F.linear(x, y, y[0])": "AddmmBackward0",
    "F.relu(x)": "ReluBackward0",
    "F.gelu(x, approximate='tanh')": "GeluBackward0",
    "F.log_softmax(x, 1)": "LogSoftmaxBackward0",
    "F.hardtanh(x)": "HardtanhBackward0",
    "F.dropout(x)": "MulBackward0",
    "F.layer_norm(x, (2,))": "NativeLayerNormBackward0",
    "F.embedding(torch.tensor([0]), x)": "EmbeddingBackward0",
    "F.mse_loss(x, y)": "MseLossBackward0",
    "F.binary_cross_entropy_with_logits(x, y)": "BinaryCrossEntropyWithLogitsBackward0",
    "F.cross_entropy(x, torch.tensor([0, 1]))": "NllLossBackward0",
    "F.cross_entropy(x, torch.tensor([0, 1]), label_smoothing=0.1)": "NllLossBackward0",
    "x.double()": "ToCopyBackward0",
}


@pytest.mark.parametrize("code", NAMES)
def test_nodes_have_pytorchs_names(code: str) -> None:
    x = torch.tensor([[0.5, 0.25], [0.75, 0.125]], requires_grad=True)
    result = eval(code, {"torch": torch, "F": F, "x": x, "y": torch.ones(2, 2)})
    node = result.grad_fn
    assert type(node).__name__ == node.name() == NAMES[code]
    assert f"grad_fn=<{NAMES[code]}>" in repr(result)
    assert repr(node).startswith(f"<{NAMES[code]} object at 0x")
    result.sum().backward()  # the other name changes nothing else
    assert x.grad is not None


@pytest.mark.parametrize("place", ["cpu", "cuda"])
def test_a_graph_ends_at_its_leaves(place: str) -> None:
    with torch.cuda.simulate(devices=1):
        x = torch.ones(2, requires_grad=True, device=place)
        y = torch.ones(2, requires_grad=True, device=place)
        loss = (x * y).sum() + x.mean()
        add = loss.grad_fn
        assert [type(node).__name__ for node, _ in add.next_functions] == ["SumBackward0", "MeanBackward0"]
        (product, index), *_ = add.next_functions[0][0].next_functions
        assert (product.name(), index) == ("MulBackward0", 0)
        ends = [node for node, _ in product.next_functions]
        assert [type(node).__name__ for node in ends] == ["AccumulateGrad"] * 2
        assert [node.name() for node in ends] == ["torch::autograd::AccumulateGrad"] * 2
        assert ends[0].variable is x and ends[1].variable is y and ends[0].next_functions == ()
        assert add.next_functions[1][0].next_functions == ((ends[0], 0),)
        assert loss.grad_fn is add and type(add) is type((x + y).grad_fn)


def test_names_of_changes_in_place_and_of_functions() -> None:
    x = leaf(1.0, 2.0)
    changed = x.clone()
    changed[0] = 3
    assert type(changed.grad_fn).__name__ == "CopySlices" and "grad_fn=<CopySlices>" in repr(changed)
    assert changed.grad_fn.name() == "torch::autograd::CopySlices"

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * 2

    assert type(Double.apply(x).grad_fn).__name__ == "DoubleBackward"


def test_a_node_that_is_shown_keeps_its_graph_and_no_longer() -> None:
    x = leaf(1.0)
    y = x * 2
    node = y.grad_fn
    kept = weakref.ref(x)
    del x, y
    gc.collect()
    assert node.next_functions[0][0].variable is kept()
    del node
    gc.collect()
    assert kept() is None


def test_the_name_of_an_overload_is_known_after_the_graph_was_freed_without_its_number() -> None:
    total = (leaf(1.0, 2.0) ** leaf(1.0, 2.0)).sum()
    assert type(total.grad_fn.next_functions[0][0]).__name__ == "PowBackward1"
    total.backward()
    assert type(total.grad_fn.next_functions[0][0]).__name__ == "PowBackward0"

"""Sparse gradients of embeddings: accumulated, clipped, scaled, and taken by the optimizers that do, as in PyTorch."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import tritensor
from tritensor import nn, optim

START = np.random.default_rng(0).standard_normal((5, 2)).astype("f")
TAKEN: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adagrad", {"maximize": True}),
    ("SparseAdam", {"lr": 0.01}),
    ("SparseAdam", {"betas": (0.8, 0.9), "eps": 1e-4, "maximize": True}),
]
REFUSED = "Adadelta Adafactor Adam AdamW Adamax ASGD Muon NAdam RAdam RMSprop Rprop"


def table(library: Any, device: Any = "cpu", **options: Any) -> Any:
    made = library.nn.Embedding(5, 2, sparse=True, **options)
    with library.no_grad():
        made.weight.copy_(library.from_numpy(START.copy()))
    return made.to(device)


def trained(library: Any, name: str, options: dict[str, Any], device: Any = "cpu") -> list[Any]:
    """The table after twenty steps, half of them after the optimizer was saved and loaded."""
    layer = table(library, device)
    optimizer = getattr(library.optim, name)(layer.parameters(), **options)
    for step in range(20):
        if step == 10:
            file = io.BytesIO()
            library.save(optimizer.state_dict(), file)
            optimizer = getattr(library.optim, name)(layer.parameters(), **options)
            optimizer.load_state_dict(library.load(io.BytesIO(file.getvalue())))
        optimizer.zero_grad()
        layer(library.tensor([0, step % 5, 0], device=device)).pow(2).sum().backward()
        assert layer.weight.grad.is_sparse
        optimizer.step()
    found: list[Any] = layer.weight.tolist()
    return found


@pytest.mark.parametrize(("name", "options"), TAKEN)
def test_the_rows_of_a_gradient_are_changed(name: str, options: dict[str, Any], device: Any) -> None:
    layer, dense = table(tritensor, device), nn.Parameter(tritensor.from_numpy(START.copy()).to(device))
    optimizer = getattr(optim, name)(layer.parameters(), **options)
    beside = getattr(optim, name.replace("Sparse", ""))([dense], **options)
    for _ in range(2):  # without momentum the steps of rows that have a gradient each time are those of a dense one
        optimizer.zero_grad()
        layer(tritensor.tensor([3, 0, 3], device=device)).pow(2).sum().backward()
        dense.grad = layer.weight.grad.to_dense()
        optimizer.step()
        beside.step()
    assert np.allclose(layer.weight.tolist(), dense.tolist(), atol=1e-5)
    assert layer.weight[1].tolist() == START[1].tolist()


@pytest.mark.parametrize("name", REFUSED.split())
def test_other_optimizers_refuse_them(name: str) -> None:
    layer = table(tritensor)
    layer(tritensor.tensor([1])).sum().backward()
    words = f"{name.replace('AdamW', 'Adam')} does not support sparse gradients"
    words += ", please consider SparseAdam instead" * (name in ("Adam", "AdamW"))
    with pytest.raises(RuntimeError, match=words):
        getattr(optim, name)(layer.parameters()).step()
    assert layer.weight.tolist() == START.tolist()


def test_weight_decay_is_refused() -> None:
    for name, words in (("SGD", r"add\(sparse, dense\) is not supported"), ("Adagrad", "weight_decay option is not")):
        layer = table(tritensor)
        layer(tritensor.tensor([1])).sum().backward()
        with pytest.raises(RuntimeError, match=words):
            getattr(optim, name)(layer.parameters(), weight_decay=0.1).step()


def test_gradients_are_accumulated_clipped_and_scaled(device: Any) -> None:
    layer = table(tritensor, device, padding_idx=1)
    indices = tritensor.tensor([[0, 1], [3, 0]], device=device)
    layer(indices).sum().backward()
    first = layer.weight.grad
    assert first._indices().tolist() == [[0, 3, 0]] and first._values().tolist() == [[1, 1]] * 3
    layer(indices + 1).sum().backward()
    assert layer.weight.grad is first and first.coalesce().indices().tolist() == [[0, 2, 3, 4]]
    assert first.to_dense()[:, 0].tolist() == [2, 0, 1, 1, 1]
    assert nn.utils.clip_grad_norm_(layer.parameters(), 1.0).item() == pytest.approx(14**0.5)
    assert layer.weight.grad.norm().item() == pytest.approx(1)
    (layer.weight * 2).sum().backward()
    layer(indices).sum().backward()
    assert not layer.weight.grad.is_sparse and layer.weight.grad[4].tolist() == pytest.approx([2 + 14**-0.5] * 2)
    layer.zero_grad()
    (layer(indices).sum() + layer.weight.sum()).backward()
    assert layer.weight.grad[:, 0].tolist() == [3, 1, 1, 2, 1]
    layer.zero_grad()
    scaler, optimizer = tritensor.amp.GradScaler(device.type, init_scale=8.0), optim.SGD(layer.parameters(), lr=0.1)
    scaler.scale(layer(indices).sum()).backward()
    scaler.unscale_(optimizer)
    assert layer.weight.grad._values().tolist() == [[1, 1]] * 3
    scaler.step(optimizer)
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad._nnz() == 0
    layer(indices).sum().backward()
    assert layer.weight.grad._nnz() == 3


def test_bags_have_them(device: Any) -> None:
    indices, offsets = tritensor.tensor([0, 1, 3, 0], device=device), tritensor.tensor([0, 3], device=device)
    for mode, factors in (("sum", [1.0, 2.0, 3.0, 4.0]), ("sum", None), ("mean", None)):
        found = []
        for sparse in (True, False):
            bag = nn.EmbeddingBag(
                5, 2, mode=mode, sparse=sparse, padding_idx=1, _weight=tritensor.from_numpy(START.copy())
            ).to(device)
            weights = None if factors is None else tritensor.tensor(factors, device=device, requires_grad=True)
            out = bag(indices, offsets, weights)
            (out * out).sum().backward()
            assert bag.weight.grad.is_sparse is sparse
            found.append(
                [out.tolist(), bag.weight.grad.to_dense().tolist(), weights is not None and weights.grad.tolist()]
            )
        assert np.allclose(found[0][0], found[1][0]) and np.allclose(found[0][1], found[1][1])
        assert factors is None or np.allclose(found[0][2], found[1][2])
    for layer in (
        table(tritensor, scale_grad_by_freq=True),
        nn.EmbeddingBag(5, 2, mode="sum", sparse=True, scale_grad_by_freq=True),
    ):
        out = layer(tritensor.tensor([[0, 0]]))
        with pytest.raises(RuntimeError, match="embedding_backward: scale_grad_by_freq not supported with sparse"):
            out.sum().backward()


@pytest.mark.peer
@pytest.mark.parametrize(("name", "options"), TAKEN)
def test_twenty_steps_are_pytorchs(name: str, options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    assert np.allclose(trained(tritensor, name, options), trained(torch, name, options), rtol=1e-5, atol=1e-6)


@pytest.mark.peer
def test_refusals_are_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    for name in REFUSED.split():
        found = []
        for library in (tritensor, torch):
            layer = table(library)
            layer(library.tensor([1])).sum().backward()
            with pytest.raises(RuntimeError) as caught:
                getattr(library.optim, name)(layer.parameters()).step()
            found.append(str(caught.value).split("\n")[0])
        assert found[0] == found[1]

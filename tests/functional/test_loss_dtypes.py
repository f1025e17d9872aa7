"""Losses of inputs, targets and weights of several dtypes: which run, and the dtypes of losses and gradients."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tritensor as torch

F = torch.nn.functional
NAMES = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
]
OF_CLASSES = ("cross_entropy", "multi_margin_loss", "nll_loss")
DTYPES = ("float32", "float64", "bfloat16", "float16", "int64", "int32", "int8", "bool")
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "binary_cross_entropy": [{"weight": [1.0, 2.0]}, {"weight": [1, 2]}],
    "binary_cross_entropy_with_logits": [{"weight": [1.0, 2.0]}, {"pos_weight": [1.0, 2.0]}, {"pos_weight": [1, 2]}],
    "cross_entropy": [{"weight": [1.0, 2.0]}, {"weight": [1, 2]}],
    "huber_loss": [{"weight": [1.0, 2.0]}, {"weight": [[1, 2], [3, 4]]}],
    "kl_div": [{"log_target": True}],
    "l1_loss": [{"weight": [1.0, 2.0]}, {"weight": [[1.0, 2.0], [3.0, 4.0]]}],
    "mse_loss": [{"weight": [1.0, 2.0]}, {"weight": [[1.0, 2.0], [3.0, 4.0]]}, {"weight": [[1, 2], [3, 4]]}],
    "poisson_nll_loss": [{"full": True}, {"log_input": False}],
}


def outcome(library: Any, name: str, dtype: str, target: str, options: dict[str, Any]) -> dict[str, Any] | None:
    """What a loss and its gradient are; None if it is refused."""
    x = library.tensor([[0.25, 0.875], [0.5, 0.375]]).to(getattr(library, dtype))
    if x.is_floating_point():
        x.requires_grad_()
    t = library.tensor([0, 1] if name in OF_CLASSES else [[0, 1], [1, 1]]).to(getattr(library, target))
    more = (library.ones(2, 2),) if name == "gaussian_nll_loss" else ()
    given = {key: library.tensor(value) if isinstance(value, list) else value for key, value in options.items()}
    try:
        made = getattr(library.nn.functional, name)(x, t, *more, **given)
    except (RuntimeError, ValueError, TypeError, NotImplementedError):
        return None
    found = {"loss": made}
    if made.requires_grad:
        try:
            made.sum().backward()
        except RuntimeError:  # PyTorch finds that dtypes differ
            return found
        found["gradient"] = x.grad
    return found


@pytest.mark.peer
@pytest.mark.parametrize("name", NAMES)
def test_every_dtype_beside_torch(name: str) -> None:
    peer = pytest.importorskip("torch")
    for dtype in DTYPES:
        if "margin" in name and dtype.endswith("float16"):
            continue  # has no kernel in PyTorch
        if name == "hinge_embedding_loss" and dtype not in DTYPES[:4]:
            continue  # of integers PyTorch has no mean
        for target in DTYPES:
            for reduction in ("mean", "none"):
                for options in [{}, *(OPTIONS.get(name, []) if target != "bool" and dtype in DTYPES[:4] else [])]:
                    given = {"reduction": reduction, **options}
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        ours = outcome(torch, name, dtype, target, given)
                        theirs = outcome(peer, name, dtype, target, given)
                    case = f"{name} {dtype} {target} {given}"
                    assert (ours is None) == (theirs is None), case
                    for key, value in (theirs or {}).items():
                        found = ours[key]  # type: ignore[index]
                        assert str(found.dtype).split(".")[1] == str(value.dtype).split(".")[1], case
                        one = found.detach().to(torch.float64).numpy()
                        other = value.detach().to(peer.float64).numpy()
                        np.testing.assert_allclose(one, other, 2e-2, 1e-3, err_msg=case)


x = torch.tensor([[0.25, 0.5], [0.75, 1.0]])
INTEGER, BOOLEAN = torch.tensor([[0, 1], [1, 1]]), torch.tensor([[False, True], [True, True]])


@pytest.mark.parametrize(
    ("loss", "target", "words"),
    [
        (
            F.binary_cross_entropy_with_logits,
            INTEGER,
            "result type Float can't be cast to the desired output type Long",
        ),
        (F.binary_cross_entropy_with_logits, BOOLEAN, "Subtraction, the `-` operator, with"),
        (F.kl_div, INTEGER, "kl_div: Integral inputs not supported"),
        (F.kl_div, BOOLEAN, "kl_div: Integral inputs not supported"),
        (F.l1_loss, BOOLEAN, "Subtraction, the `-` operator, with a bool tensor"),
    ],
)
@pytest.mark.filterwarnings("ignore:reduction")
def test_targets_that_are_refused(loss: Any, target: torch.Tensor, words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        loss(x, target)


@pytest.mark.parametrize("loss", [F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.soft_margin_loss])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_boolean_targets_are_zeros_and_ones(loss: Any, dtype: torch.dtype) -> None:
    several = []
    for target in (BOOLEAN, BOOLEAN.to(dtype)):
        leaf = x.to(dtype, copy=True).requires_grad_()
        made = loss(leaf, target)
        made.backward()
        several.append((made.item(), made.dtype, leaf.grad.tolist()))
    assert several[0] == several[1]


def test_a_loss_has_the_dtype_of_what_it_is_computed_in() -> None:
    half = x.bfloat16()
    assert F.binary_cross_entropy(half, half, weight=torch.ones(2)).dtype is torch.bfloat16
    assert F.binary_cross_entropy_with_logits(x.double(), x).dtype is torch.float32
    assert F.binary_cross_entropy_with_logits(x, x.double()).dtype is torch.float64
    assert F.soft_margin_loss(x, x.double()).dtype is torch.float32
    assert F.poisson_nll_loss(half, INTEGER, full=True).dtype is torch.bfloat16


@pytest.mark.parametrize("loss", [F.mse_loss, F.l1_loss, F.huber_loss])
def test_a_weight_of_another_shape_is_refused(loss: Any) -> None:
    with pytest.raises(ValueError, match="Weights and input must have the same size"):
        loss(x, x, weight=torch.ones(2))

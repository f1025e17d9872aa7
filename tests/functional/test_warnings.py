"""Warnings: PyTorch's words, and the line of the caller however deep inside they are raised."""

from __future__ import annotations

import warnings

import pytest

import tritensor as torch

X, NONE_LEFT = torch.ones(2, 3), "degrees of freedom is <= 0"
NAMES = {"torch": torch, "F": torch.nn.functional, "X": X}
OLD = "please use reduction='{}' instead"

# what warns, and words of the warning
WARNING = {
    "F.mse_loss(X, X, torch.tensor(0.0))": OLD.format("sum"),
    "F.cross_entropy(X, torch.tensor([0, 1]), size_average=False)": OLD.format("sum"),
    "F.nll_loss(X, torch.tensor([0, 1]), reduce=True)": OLD.format("mean"),
    "F.l1_loss(X, X, reduce=False)": OLD.format("none"),
    "torch.nn.MSELoss(0)": OLD.format("sum"),
    "torch.nn.CrossEntropyLoss(size_average=True)": OLD.format("mean"),
    "F.mse_loss(X, X[:1])": "Using a target size",
    "F.softmax(X)": "Implicit dimension choice for softmax",
    "torch.nn.Softmax()(X)": "Implicit dimension choice for softmax",
    "torch.nn.Sequential(torch.nn.LogSoftmax())(X)": "Implicit dimension choice for log_softmax",
    "X.var(0, correction=2)": NONE_LEFT,
    "torch.std_mean(X[:1], 0)": NONE_LEFT,
    "torch.meshgrid(X[0], X[0])": "torch.meshgrid: in an upcoming release",
    "torch.nn.init.trunc_normal_(X.clone(), 9)": "mean is more than 2",
    "torch.ones(3)[torch.tensor([1, 0, 1], dtype=torch.uint8)]": "indexing with dtype torch.uint8",
    "torch.ones(1).expand(3).masked_fill_(torch.ones(3) > 0, 2.0)": "Use of masked_fill_ on expanded tensors",
    "torch.add(X, X, out=torch.ones(5))": "An output with one or more elements was resized",
    "(X.requires_grad_() * 2).grad": "The .grad attribute of a Tensor that is not a leaf",
    "torch.optim.SGD([X, X], lr=0.1)": "parameter group with duplicate parameters",
    "torch.set_float32_matmul_precision('low')": "is not one of 'highest', 'high', or 'medium'",
    "torch.utils.data.random_split(range(3), [1.0, 0.0])": "Length of split at index 1 is 0",
}


@pytest.mark.parametrize("code", WARNING)
def test_a_warning_points_to_the_callers_line(code: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        eval(compile(code, "the caller's file", "eval"), NAMES)
    X.requires_grad_(False)
    assert [each.filename for each in caught] == ["the caller's file"]
    assert WARNING[code] in str(caught[0].message) and caught[0].category is UserWarning

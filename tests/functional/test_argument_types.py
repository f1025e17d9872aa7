"""Arguments of a wrong type are refused before anything changes, with PyTorch's class of error and first words."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn, optim
from tritensor.nn import functional as F
from tritensor.utils import data

COMPARED = "'<' not supported between instances of 'str' and "
COMPARED_BY_ADAM = "'<=' not supported between instances of 'float' and 'str'"

REFUSED = {
    # tensors
    "nn.Embedding(3, 2)([1])": (TypeError, "embedding(): argument 'indices' (position 2) must be Tensor, not list"),
    "F.embedding(i, [1])": (TypeError, "embedding(): argument 'weight' (position 1) must be Tensor, not list"),
    "nn.ReLU()([1.0])": (TypeError, "relu(): argument 'input' (position 1) must be Tensor, not list"),
    "torch.relu(1)": (TypeError, "relu(): argument 'input' (position 1) must be Tensor, not int"),
    "nn.Sigmoid()([1.0])": (TypeError, "sigmoid(): argument 'input' (position 1) must be Tensor, not list"),
    "nn.Tanh()(1)": (TypeError, "tanh(): argument 'input' (position 1) must be Tensor, not int"),
    "nn.GELU()([1.0])": (TypeError, "gelu(): argument"),
    "F.silu('a')": (TypeError, "silu(): argument"),
    "nn.LayerNorm(2)([1.0, 2.0])": (TypeError, "layer_norm(): argument 'input' (position 1) must be Tensor, not list"),
    "F.rms_norm([1.0], (1,))": (TypeError, "rms_norm(): argument 'input' (position 1) must be Tensor, not list"),
    "nn.Dropout()([1.0])": (TypeError, "dropout(): argument 'input' (position 1) must be Tensor, not list"),
    "F.one_hot([1])": (TypeError, "one_hot(): argument 'input' (position 1) must be Tensor, not list"),
    "F.pad([1], (1, 1))": (TypeError, "pad(): argument 'input' (position 1) must be Tensor, not list"),
    "F.pad(x, 1)": (TypeError, "pad(): argument 'pad' (position 2) must be tuple of ints, not int"),
    "torch.where(1)": (TypeError, "where(): argument 'condition' (position 1) must be Tensor, not int"),
    "torch.equal(x, 1)": (TypeError, "equal(): argument 'other' (position 2) must be Tensor, not int"),
    "torch.isclose(x, 1)": (TypeError, "isclose(): argument 'other' (position 2) must be Tensor, not int"),
    "x.masked_fill([True], 1)": (TypeError, "masked_fill("),
    "x.masked_select([True])": (TypeError, "masked_select(): argument 'mask' (position 1) must be Tensor, not list"),
    "F.mse_loss(1, x)": (TypeError, "mse_loss(): argument 'input' (position 1) must be Tensor, not int"),
    # dimensions and numbers
    "torch.softmax(x)": (TypeError, 'softmax() missing 1 required positional arguments: "dim"'),
    "x.softmax()": (TypeError, 'softmax() missing 1 required positional arguments: "dim"'),
    "x.log_softmax()": (TypeError, 'log_softmax() missing 1 required positional arguments: "dim"'),
    "torch.softmax(x, None)": (TypeError, "softmax(): argument 'dim' (position 2) must be int, not NoneType"),
    "torch.arange()": (TypeError, "arange() received an invalid combination of arguments - got ()"),
    "torch.arange('a')": (TypeError, "arange(): argument 'end' (position 1) must be Number, not str"),
    "torch.arange(None)": (TypeError, "arange(): argument 'end' (position 1) must be Number, not NoneType"),
    # yes or no
    "x.requires_grad_('a')": (
        TypeError,
        "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not str",
    ),
    "x.requires_grad_(1)": (TypeError, "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not int"),
    "setattr(x, 'requires_grad', 1)": (RuntimeError, "requires_grad must be a bool"),
    "nn.Linear(1, 1).requires_grad_('a')": (TypeError, "requires_grad_(): argument 'requires_grad' (position 1) must"),
    "nn.Parameter(x, 'a')": (TypeError, "Parameter(): argument 'requires_grad' (position 2) must be bool, not str"),
    "torch.zeros(2, requires_grad='a')": (TypeError, "argument 'requires_grad' must be bool, not str"),
    "torch.tensor([1.0], requires_grad=1)": (TypeError, "argument 'requires_grad' must be bool, not int"),
    "torch.rand(2, pin_memory='a')": (TypeError, "argument 'pin_memory' must be bool, not str"),
    # optimizers
    "optim.Adam(p, betas=(0.9,))": (IndexError, "tuple index out of range"),
    "optim.AdamW(p, betas=[0.9])": (IndexError, "list index out of range"),
    "optim.Adam(p, betas=0.9)": (TypeError, "'float' object is not subscriptable"),
    "optim.Adam(p, betas=(0.9, 0.9, 0.9))": (ValueError, "too many values to unpack (expected 2)"),
    "optim.Adam(p, betas=('a', 0.9))": (TypeError, COMPARED_BY_ADAM),
    "optim.Adam(p, betas=(0.9, 1.0))": (ValueError, "Invalid beta parameter at index 1: 1.0"),
    "optim.Adam(p, lr='a')": (TypeError, COMPARED_BY_ADAM),
    "optim.AdamW(p, eps='a')": (TypeError, COMPARED_BY_ADAM),
    "optim.Adam(p, weight_decay='a')": (TypeError, COMPARED_BY_ADAM),
    "optim.Adam(p, lr=torch.tensor([0.1, 0.2]))": (ValueError, "Tensor lr must be 1-element"),
    "optim.Adam(p, fused=True, foreach=True)": (RuntimeError, "`fused` and `foreach` cannot be `True` together."),
    "optim.SGD(p, fused=True, differentiable=True)": (RuntimeError, "`fused` does not support `differentiable`"),
    "optim.SGD(p, lr='a')": (TypeError, COMPARED + "'float'"),
    "optim.SGD(p, lr=None)": (TypeError, "'<' not supported between instances of 'NoneType' and 'float'"),
    "optim.SGD(p, lr=-1)": (ValueError, "Invalid learning rate: -1"),
    "optim.Adam(p, lr=float('nan'))": (ValueError, "Invalid learning rate: nan"),
    "optim.Adam(p, betas='a')": (TypeError, COMPARED_BY_ADAM),
    "optim.SGD(p, lr=0.1, momentum='a')": (TypeError, COMPARED + "'float'"),
    "optim.SGD(p, lr=0.1, weight_decay='a')": (TypeError, COMPARED + "'float'"),
    "optim.SGD(3)": (TypeError, "'int' object is not iterable"),
    # loaders
    "data.DataLoader([1], num_workers='2')": (TypeError, COMPARED + "'int'"),
    "data.DataLoader([1], num_workers=1.5)": (TypeError, "'float' object cannot be interpreted as an integer"),
    "data.DataLoader([1], num_workers=-1)": (ValueError, "num_workers option should be non-negative"),
    "data.DataLoader([1], timeout='a')": (TypeError, COMPARED + "'int'"),
    "data.DataLoader([1], num_workers=1, prefetch_factor='a')": (TypeError, COMPARED + "'int'"),
    "data.DataLoader([1], num_workers=1, multiprocessing_context='a')": (
        ValueError,
        "multiprocessing_context option should specify a valid start method in ",
    ),
    "data.DataLoader([1], num_workers=1, multiprocessing_context=3)": (
        TypeError,
        "multiprocessing_context option should be a valid context object or a string specifying the start method",
    ),
}


@pytest.mark.parametrize("code", REFUSED)
def test_refusals(code: str) -> None:
    x, p = torch.tensor([1.0, 2.0]), [nn.Parameter(torch.ones(2))]
    scope: dict[str, Any] = {"torch": torch, "nn": nn, "F": F, "optim": optim, "data": data, "x": x, "p": p}
    error, words = REFUSED[code]
    with pytest.raises(error, match="^" + re.escape(words)):
        eval(code, {**scope, "i": torch.tensor([0])})
    assert x.tolist() == [1.0, 2.0] and not x.requires_grad


@pytest.mark.parametrize(
    "code", ["zeros(True)", "ones((True, 2))", "empty([False])", "rand(True)", "full((True,), 1.0)", "eye(True)"]
)
def test_a_size_is_no_truth_value(code: str) -> None:
    with pytest.raises(TypeError, match=r"argument '\w+'.* must be (tuple of ints|int), not bool"):
        eval(f"torch.{code}", {"torch": torch})


def test_a_module_whose_flag_is_refused_keeps_its_own() -> None:
    layer = nn.Linear(1, 1)
    with pytest.raises(TypeError):
        layer.requires_grad_("no")
    assert all(param.requires_grad for param in layer.parameters())


def test_what_is_accepted() -> None:
    x = torch.tensor([1.0, 2.0])
    assert torch.softmax(x, axis=0).tolist() == x.softmax(dim=0).tolist() == torch.softmax(x, 0).tolist()
    assert torch.softmax(x, 0, torch.float64).dtype is torch.float64
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax"):
        assert F.softmax(x).tolist() == x.softmax(0).tolist()
    assert torch.arange(end=3).tolist() == torch.arange(np.int64(3)).tolist() == [0, 1, 2]
    assert not torch.zeros(1, requires_grad=None).requires_grad
    p = [nn.Parameter(torch.ones(2))]
    optim.Adam(p, lr=np.float32(0.1), betas=[0.9, 0.99])
    optim.SGD(p, lr=torch.tensor([0.1]))
    data.DataLoader([1], num_workers=1, multiprocessing_context="spawn")
    data.DataLoader([1], num_workers=np.int64(0))

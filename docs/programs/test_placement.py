from __future__ import annotations

import pytest

import tritensor as torch
from tritensor import nn


def test_the_model_is_where_it_was_moved(device):
    model = nn.LSTM(3, 4, batch_first=True).to(device)
    out, (hidden, cell) = model(torch.ones(2, 5, 3, device=device))
    assert out.device == hidden.device == cell.device == device


def test_a_batch_that_was_forgotten_raises(device):
    if device.type == "cpu":
        pytest.skip("everything is on the CPU")
    with pytest.raises(RuntimeError, match="same device"):
        nn.Linear(3, 2).to(device)(torch.ones(1, 3))

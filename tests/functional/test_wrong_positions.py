"""An index or a target that is out of range is named with its place and the operator, on every device."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys

import pytest

import tritensor as torch
import tritensor.nn.functional as F
from tritensor.ground.public import FUNCTIONAL, PACKAGE

# Calls by the name of their operator: `wrong` has its wrong element, 9, at number 1, `pairs` at 1, 0.
CALLS = {
    "cross_entropy": "F.cross_entropy(x, wrong)",
    "linear_cross_entropy": "F.linear_cross_entropy(x, x[:, :4].t() @ x, wrong)",
    "nll_loss": "F.nll_loss(x, wrong)",
    "multi_margin_loss": "F.multi_margin_loss(x, wrong)",
    "multilabel_margin_loss": "F.multilabel_margin_loss(x[:, :2], pairs)",
    "ctc_loss": "F.ctc_loss(x.unsqueeze(1).expand(3, 3, 4), pairs, [3, 3, 3], [1, 1, 1])",
    "embedding": "F.embedding(wrong, x)",
    "embedding_bag": "F.embedding_bag(wrong, x, wrong[:1])",
    "one_hot": "F.one_hot(wrong, 4)",
    "gather": "torch.gather(x, 1, pairs)",
    "take": "torch.take(x[:2], wrong)",
    "take_along_dim": "torch.take_along_dim(x, pairs, 1)",
    "index_select": "torch.index_select(x, 1, wrong)",
    "index_add": "torch.index_add(x, 1, wrong, x[:, :3])",
    "index_copy": "torch.index_copy(x, 1, wrong, x[:, :3])",
    "index_fill": "torch.index_fill(x, 1, wrong, 1.0)",
    "index_put": "torch.index_put(x, (wrong,), torch.zeros(4, device=x.device))",
    "index_reduce": "torch.index_reduce(x, 1, wrong, x[:, :3], 'amax')",
    "put": "torch.put(x[:2], wrong, x[:, 0])",
    "scatter": "torch.scatter(x, 1, pairs, 1.0)",
    "scatter_add": "torch.scatter_add(x, 1, pairs, x)",
    "scatter_reduce": "torch.scatter_reduce(x, 1, pairs, x, 'amax')",
    "searchsorted": "torch.searchsorted(x[0, :3], x, sorter=wrong)",
    "max_unpool1d": "F.max_unpool1d(x[:1, :3], wrong[None], 1)",
    "max_unpool2d": "F.max_unpool2d(x[None, :, :2], pairs[None], 1)",
    "max_unpool3d": "F.max_unpool3d(x[None, None, :, :2], pairs[None, None], 1)",
    "indexing": "x[wrong]",
}
# Not positions, or they may be anywhere: the places to split at, what is a target only by name.
OTHERS = {
    *("tensor_split", "unravel_index", "_unsafe_masked_index", "_unsafe_masked_index_put_accumulate"),
    *("segment_reduce", "_segment_reduce", "sparse_coo_tensor"),  # refused by a sentence of their own
}
FLOATING = "loss|cross_entropy_with_logits|kl_div|binary_cross_entropy"


def sample(device: str) -> dict[str, object]:
    wrong = torch.tensor([0, 9, 1], device=device)
    pairs = torch.tensor([[0, 1], [9, 1], [0, 0]], device=device)
    return {"F": F, "torch": torch, "x": torch.ones(3, 4, device=device), "wrong": wrong, "pairs": pairs}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("name", CALLS)
def test_value_place_and_operator_are_named(name: str, device: str) -> None:
    with torch.cuda.simulate(devices=1):
        call, words = CALLS[name], sample(device)
        with pytest.raises((RuntimeError, IndexError)) as raised:
            eval(f"({call}).tolist()", words)  # where streams run late: here
        torch.cuda.empty_cache()
    lines = str(raised.value).splitlines()
    assert any(re.match(rf"  {name.replace('linear_', '')}: ", line) for line in lines[1:]), lines
    told = " ".join(lines)
    wanted = r"\b9\b.*\b(number|element|row) \[?(0, )*1\b|\b(element|row) \[?(0, )*1\b.*\b9\b"
    assert re.search(wanted, told), told


def test_every_operator_of_positions_is_called() -> None:
    takes = {"index", "indices", "target", "targets", "sorter"}
    found = set()
    for name, function in {**PACKAGE, **FUNCTIONAL}.items():
        if inspect.isroutine(function) and takes & set(inspect.signature(function).parameters):
            found.add(name.rstrip("_"))
    numbers = {name for name in found if re.search(FLOATING, name)} | {"select", "select_scatter", "select_copy"}
    assert found - OTHERS - numbers <= set(CALLS)


def test_simulation_without_triton_says_at_once_what_to_install() -> None:
    program = """
import sys
sys.modules["triton"] = None
import tritensor as torch
print(torch.cuda.is_available(), torch.cuda.device_count())
for use in (lambda: torch.ones(2, device="cuda"), lambda: torch.nn.Linear(2, 2).to("cuda"), torch.cuda.current_device):
    try:
        use()
    except RuntimeError as error:
        print("pip install 'tritensor[triton]'" in str(error) and "TRITENSOR_SIMULATE_CUDA" in str(error))
"""
    environment = {**os.environ, "TRITENSOR_SIMULATE_CUDA": "2"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False 0", "True", "True", "True"]
    assert "UserWarning: TRITENSOR_SIMULATE_CUDA: simulating CUDA devices needs Triton" in done.stderr

"""Checked mode finds a kernel that is wrong, says where, and leaves a replay that shows it again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tritensor as torch
from tritensor.errors import KernelMismatchError
from tritensor.kernels.elementwise.family import elementwise
from tritensor.operators import registry
from tritensor.operators.operator import FLOAT
from tritensor.runtime.checking import mismatch
from tritensor.tensors import Tensor

from ..needs import needs_triton

if TYPE_CHECKING:
    import triton.language as tl


@pytest.fixture
def wrong_operator():
    @elementwise(FLOAT, name="wrong_operator", methods=())
    def operator(x):
        """x + 1, with a kernel that forgets it for large x."""
        return x + 1

    @operator.kernel
    def _(x):
        return tl.where(x > 2, x, x + 1)

    yield operator
    del registry["wrong_operator"]


@needs_triton
def test_a_wrong_kernel_is_found(wrong_operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with torch.cuda.simulate(devices=2):
        good, bad = torch.tensor([1.0, 2.0], device="cuda:1"), torch.tensor([[1.0, 3.0]], device="cuda:1")
        wrong_operator(bad)
        with torch.testing.checked():
            wrong_operator(good)
            with pytest.raises(
                KernelMismatchError, match="wrong_operator: the kernel and its reference disagree"
            ) as caught:
                wrong_operator(bad)
    text = str(caught.value)
    assert "worst element (0, 1)" in text and "shape (1, 2)" in text and "float32" in text and "cuda:1" in text
    script = Path(re.search(r"run (\S+replay\.py)", text)[1])
    lines = script.read_text().splitlines()
    assert len(lines) <= 13 and (script.parent / "inputs.npz").exists()


@needs_triton
def test_the_replay_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tritensor.runtime.checking import _write_reproduction

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    half = np.ones(2, torch.bfloat16.numpy)
    script = _write_reproduction(registry["add"], [half, 2.0], {}, "cuda:0")
    ran = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(torch.__file__).parent.parent)},
    )
    assert "tensor([3., 3.], device='cuda:0'" in ran.stdout, ran.stderr


@needs_triton
def test_checked_mode_covers_training_steps() -> None:
    with torch.cuda.simulate(devices=1), torch.testing.checked():
        x = torch.randn(4, 3, device="cuda", requires_grad=True)
        (x.exp() * x).sum().backward()
        assert x.grad.shape == (4, 3)


def test_mismatch_in_words() -> None:
    ones = np.ones(3, np.float32)
    assert mismatch(ones, ones, 0, 0) is None
    assert mismatch(np.zeros(0), np.zeros(0), 0, 0) is None
    assert "shape" in mismatch(ones, np.ones(4, np.float32), 0, 0)
    assert "dtype" in mismatch(ones, np.ones(3), 0, 0)
    assert "worst element (1,)" in mismatch(np.array([1, 5, 3]), np.array([1, 2, 3]), 0, 0)
    nan = np.array([np.nan, 1.0, np.inf], np.float32)
    assert mismatch(nan, nan, 0, 0) is None
    assert "1 of 3" in mismatch(nan, np.array([0.0, 1.0, np.inf], np.float32), 1e-3, 1e-3)
    assert "root-mean-square" in mismatch(ones + np.float32(9e-4), ones, 0, 1e-3)
    assert mismatch(np.array([1, 2]), np.array([1, 2]), 0, 0) is None


def test_assert_close() -> None:
    close = torch.testing.assert_close
    close(torch.ones(2), torch.ones(2) + 1e-7)
    close(1.0, 1.0)
    for actual, expected, words in (
        (torch.ones(2), torch.ones(3), "shape"),
        (torch.ones(2), torch.ones(2, dtype=torch.float64), "dtype"),
        (torch.ones(2), torch.tensor([1.0, 2.0]), "Mismatched elements: 1 / 2"),
        (torch.tensor(float("nan")), torch.tensor(float("nan")), "not close"),
    ):
        with pytest.raises(AssertionError, match=words):
            close(actual, expected)
    close(torch.tensor(float("nan")), torch.tensor(float("nan")), equal_nan=True)
    close(torch.ones(2), torch.ones(2) + 1, atol=2)
    for given, words in (("other words", "^other words$"), (lambda found: f"{found[:16]}!", "^Tensor-likes are!$")):
        with pytest.raises(AssertionError, match=words):
            close(torch.ones(2), torch.zeros(2), msg=given)
    assert isinstance(torch.ones(1), Tensor)

"""Pickles that were written when modules stood elsewhere."""

from __future__ import annotations

import importlib
import pickle

import pytest

import tritensor as torch


def test_a_tensor_is_found() -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float16, requires_grad=True)
    written = pickle.dumps(x, 2)
    former = written.replace(b"tritensor.tensors.tensor\n", b"tritensor.tensor\n")
    assert former != written
    found = pickle.loads(former)
    assert found.tolist() == [1, 2] and found.dtype is torch.float16 and found.requires_grad


@pytest.mark.parametrize(
    ("written", "value"),
    [(b"dtypes\n_named\n(S'bfloat16'\ntR.", torch.bfloat16), (b"size\nSize\n.", torch.Size)],
    ids=str,
)
def test_types_are_found(written: bytes, value: object) -> None:
    assert pickle.loads(b"ctritensor." + written) is value


@pytest.mark.parametrize(
    ("former", "now", "name"),
    [
        ("formats", "types.formats", "memory_format"),
        ("generators", "operators.generators", "Generator"),
        ("autocasting", "operators.autocasting", "autocast"),
        ("function", "operators.function", "Function"),
        ("functional.gradcheck", "operators.gradcheck", "gradcheck"),
        ("functional.activations", "functional.elementwise.activations", "gelu"),
        ("functional.gamma", "functional.elementwise.powers", "igamma"),
        ("functional.indexing", "functional.indexing.indexing", "gather"),
        ("functional.uniqueness", "functional.indexing.search", "unique"),
        ("functional.views", "functional.views.views", "transpose"),
    ],
)
def test_functions_and_classes_are_found(former: str, now: str, name: str) -> None:
    found = pickle.loads(f"ctritensor.{former}\n{name}\n.".encode())
    assert found is getattr(importlib.import_module(f"tritensor.{now}"), name)

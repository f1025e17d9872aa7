"""A step of each optimizer over 100 parameters of 10,000 elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.training import Arrays, moved

# Those that are measured, with options; LBFGS is its closure's time, and SparseAdam takes no dense gradient.
KINDS: dict[str, dict[str, Any]] = {
    name: {}
    for name in (
        "Adadelta Adafactor Adagrad Adam AdamW Adamax ASGD Muon NAdam RAdam RMSprop Rprop SGD".split()  # noqa: SIM905
    )
}
KINDS["SGD_momentum"] = {"momentum": 0.9}


def prepared(kind: str, torch: Any, tensors: Mapping[str, Any]) -> dict[str, object]:
    """`step()` is a step for each matrix of `w` as a parameter, in PyTorch with `foreach=True`."""
    parameters = [torch.nn.Parameter(part.clone()) for part in tensors["w"]]
    for parameter, grad in zip(parameters, tensors["g"], strict=True):
        parameter.grad = grad.clone()
    options = {"foreach": True} if torch.__name__ == "torch" and kind != "Muon" else {}
    step = getattr(torch.optim, kind.partition("_")[0])(parameters, **KINDS[kind], **options).step
    return {"step": step, "trained": moved(step, parameters)}


def exact(kind: str, arrays: Arrays) -> tuple[np.ndarray, ...]:
    """By how much steps in float64 move the parameters; `tests.samples` compares those with PyTorch's."""
    import tritensor

    tensors = {name: tritensor.from_numpy(array.astype(np.float64)) for name, array in arrays.items()}
    trained: Any = prepared(kind, tritensor, tensors)["trained"]
    return tuple(each.detach().numpy() for each in trained())

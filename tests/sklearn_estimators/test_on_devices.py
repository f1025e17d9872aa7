"""Estimators on devices: the same numbers as on the CPU, and models that leave the device behind."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

import tritensor as torch
from tritensor.sklearn import NeuralNetClassifier, NeuralNetRegressor

from ..needs import needs_triton

X, Y = (array[::5] for array in load_iris(return_X_y=True))
small = partial(NeuralNetClassifier, hidden_layer_sizes=(4,), max_epochs=2, random_state=0, lr=0.01)


def place(model: Any) -> str:
    return next(model.module_.parameters()).device.type


@pytest.mark.thorough
@needs_triton
@pytest.mark.parametrize("kind", [NeuralNetClassifier, NeuralNetRegressor])
def test_a_device_learns_as_the_cpu_does(kind: Any) -> None:
    options = {"hidden_layer_sizes": (4,), "max_epochs": 2, "random_state": 0, "early_stopping": True}
    weights = np.linspace(0, 1, len(Y))
    on_the_cpu = kind(validation_fraction=0.3, dtype="float32", **options).fit(X, Y, weights)
    with torch.cuda.simulate():
        model = kind(validation_fraction=0.3, device="cuda", **options).fit(X, Y, weights)
        assert place(model) == "cuda" and next(model.module_.parameters()).dtype is torch.float32
        np.testing.assert_allclose(model.loss_curve_, on_the_cpu.loss_curve_, rtol=1e-5)
        np.testing.assert_allclose(model.validation_scores_, on_the_cpu.validation_scores_, rtol=1e-5)
        np.testing.assert_allclose(model.predict(X), on_the_cpu.predict(X), rtol=1e-5)
        assert model.set_params(device="cpu").predict(X).shape == (30,) and place(model) == "cpu"


@pytest.mark.thorough
@needs_triton
def test_a_model_of_a_device_is_read_where_there_is_none(tmp_path: Path) -> None:
    with torch.cuda.simulate():
        model = small(device="cuda").fit(X, Y)
        shares, data = model.predict_proba(X), pickle.dumps(model)
        assert place(model) == "cuda"
        copied = pickle.loads(data)
        assert place(copied) == "cpu"
        np.testing.assert_array_equal(copied.predict_proba(X), shares)
        assert place(copied) == "cuda"  # where the parameter says, as it is there
        np.testing.assert_array_equal(*(each.partial_fit(X, Y).predict_proba(X) for each in (model, copied)))
    (tmp_path / "model").write_bytes(data)
    np.savez(tmp_path / "arrays.npz", X=X, Y=Y)
    code = """
import pickle, numpy, tritensor
model = pickle.load(open("model", "rb"))
assert not tritensor.cuda.is_available()
arrays = numpy.load("arrays.npz")
numpy.save("shares.npy", model.predict_proba(arrays["X"]))
try:
    model.partial_fit(arrays["X"], arrays["Y"])
except tritensor.errors.DeviceError as error:
    assert "TRITENSOR_SIMULATE_CUDA=1" in str(error)
    model.set_params(device=None).partial_fit(arrays["X"], arrays["Y"])
    print(len(model.loss_curve_))
"""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRITENSOR_")}
    root = str(Path(__file__).parents[2])
    environment = {**inherited, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": root}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and done.stdout == "3\n", done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "shares.npy"), shares, rtol=1e-5)


@needs_triton
def test_the_default_device_is_used_unless_one_is_named() -> None:
    with torch.cuda.simulate(), torch.device("cuda"):
        assert place(small().fit(X, Y)) == "cuda" and place(small(device="cpu").fit(X, Y)) == "cpu"

"""What the estimators predict, and how they fit in with the rest of scikit-learn."""

from __future__ import annotations

import copy
import importlib
import io
import pickle
import sys
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_regression
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tritensor as torch
from tritensor import nn, optim
from tritensor.sklearn import NeuralNetClassifier, NeuralNetRegressor

X, CODES = load_iris(return_X_y=True)
NAMES = load_iris().target_names[CODES]
small = partial(NeuralNetClassifier, hidden_layer_sizes=(8,), lr=0.02, max_epochs=30, random_state=0)


def test_a_classifier_of_strings() -> None:
    model = small(max_epochs=100, batch_size=50).fit(X, NAMES)
    assert list(model.classes_) == ["setosa", "versicolor", "virginica"] and model.n_features_in_ == 4
    assert model.score(X, NAMES) > 0.95 and set(model.predict(X)) == set(NAMES)
    shares, scores = model.predict_proba(X), model.decision_function(X)
    assert shares.shape == scores.shape == (150, 3) and shares.dtype == np.float64
    np.testing.assert_allclose(shares, np.exp(scores) / np.exp(scores).sum(1, keepdims=True))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(shares))
    assert model.validation_scores_ is None and not model.module_.training
    assert len(model.loss_curve_) == model.n_iter_ == 100 and model.loss_curve_[-1] < model.loss_curve_[0] / 5


def test_the_decision_between_two_classes_is_one_number() -> None:
    two = CODES < 2
    model = small().fit(X[two], NAMES[two])
    scores = model.decision_function(X[two])
    assert scores.shape == (100,) and np.array_equal(scores > 0, model.predict(X[two]) == "versicolor")
    assert 20 < (scores > 0).sum() < 80


def test_several_numbers_are_predicted_at_once() -> None:
    samples, targets = make_regression(200, 5, n_targets=3, random_state=0)
    model = NeuralNetRegressor(nn.Linear, lr=1.0, random_state=0).fit(samples, targets)
    assert model.score(samples, targets) > 0.99 and model.predict(samples).shape == (200, 3)
    one = NeuralNetRegressor(nn.Linear, lr=1.0, max_epochs=5).fit(samples, targets[:, 0].round().astype(int))
    assert one.predict(samples).shape == (200,)
    with pytest.warns(DataConversionWarning, match="column-vector"):
        assert one.fit(samples, targets[:, :1]).predict(samples).shape == (200,)
    with pytest.raises(ValueError, match=r"y has shape \(200, 2\), and the first one had 3 columns"):
        model.partial_fit(samples, targets[:, :2])


def test_the_precision_is_that_of_the_samples_unless_said() -> None:
    for dtype, kind, wanted in (
        (None, np.float64, torch.float64),
        (None, np.float32, torch.float32),
        ("float32", np.float64, torch.float32),
        (torch.float64, np.float32, torch.float64),
        (np.float32, np.float64, torch.float32),
    ):
        model = small(max_epochs=1, dtype=dtype).fit(X.astype(kind), CODES)
        assert next(model.module_.parameters()).dtype is wanted
        assert model.predict_proba(X.astype(kind)).dtype == kind


def test_long_predictions_are_made_in_parts() -> None:
    model = small(max_epochs=1).fit(X, CODES)
    many = np.tile(X, (60, 1))
    np.testing.assert_allclose(model.predict_proba(many), np.tile(model.predict_proba(X), (60, 1)))


def test_names_of_features_are_kept_and_compared() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = small(max_epochs=2).fit(frame, pandas.Series(NAMES))
    assert list(model.feature_names_in_) == list("abcd")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[list("dcba")])


def test_tensors_are_read_as_arrays() -> None:
    model = small(max_epochs=3)
    expected = model.fit(X, CODES).predict_proba(X)
    tensors = torch.from_numpy(X), torch.from_numpy(CODES)
    np.testing.assert_array_equal(model.fit(*tensors).predict_proba(tensors[0]), expected)


def test_what_cannot_be_read_is_refused() -> None:
    with_nan = X.copy()
    with_nan[3, 1] = np.nan
    for samples, targets, words in (
        (with_nan, CODES, "Input X contains NaN"),
        (X, X[:, 0], "Unknown label type"),
        (X, np.stack([CODES, CODES], 1), "y should be a 1d array"),
        (X[:9], CODES, "inconsistent numbers of samples"),
    ):
        with pytest.raises(ValueError, match=words):
            small().fit(samples, targets)
    with pytest.raises(TypeError, match="Sparse data"):
        small().fit(pytest.importorskip("scipy.sparse").csr_array(X), CODES)
    for method in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(small(), method)(X)


@pytest.mark.thorough
def test_a_pipeline_in_a_search_over_a_grid() -> None:
    pipeline = make_pipeline(StandardScaler(), small(max_epochs=20, batch_size=25))
    name = "neuralnetclassifier"
    grid = {f"{name}__hidden_layer_sizes": [(4,), (16, 8)], f"{name}__optimizer": ["adam", optim.SGD]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, NAMES)
    assert search.best_params_[f"{name}__optimizer"] == "adam" and search.best_score_ > 0.8
    assert len(search.cv_results_["params"]) == 4 and search.predict(X[:1]) == ["setosa"]


@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_jobs_at_once_give_the_same_scores(backend: str) -> None:
    alone = cross_val_score(small(max_epochs=5), X, NAMES, cv=2)
    with joblib.parallel_config(backend):
        np.testing.assert_array_equal(cross_val_score(small(max_epochs=5), X, NAMES, cv=2, n_jobs=2), alone)


def test_clones_and_parameters() -> None:
    model = small(nn.Linear(4, 3)).set_params(lr=0.5, activation="tanh").fit(X, CODES)
    copied = clone(model)
    assert not hasattr(copied, "module_") and copied.get_params().keys() == model.get_params().keys()
    assert copied.lr == 0.5 and isinstance(copied.module, nn.Linear) and copied.module is not model.module
    with pytest.raises(ValueError, match="Invalid parameter 'epochs'"):
        model.set_params(epochs=3)


def by_joblib(model: Any) -> Any:
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


@pytest.mark.parametrize("copied", [lambda model: pickle.loads(pickle.dumps(model)), by_joblib, copy.deepcopy])
def test_a_copy_predicts_and_learns_on_as_the_original(copied: Any) -> None:
    model = small(max_epochs=5).fit(X, NAMES)
    other = copied(model)
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    for each in (model, other):
        each.partial_fit(X[::2], NAMES[::2])  # with the optimizer's state
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    assert other.loss_curve_ == model.loss_curve_ and len(model.loss_curve_) == 6


def test_without_scikit_learn_the_import_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "sklearn", torch.sklearn)  # which the import below would replace
    monkeypatch.delitem(sys.modules, "tritensor.sklearn")
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(ImportError, match=r"needs scikit-learn 1\.6(.|\n)*pip install \"tritensor\[sklearn\]\""):
        importlib.import_module("tritensor.sklearn")


def test_the_folder_of_these_tests_hides_no_package() -> None:
    assert not (Path(__file__).parents[1] / "sklearn").exists()


@pytest.mark.slow
def test_the_program_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "scikit_learn.md").read_text(encoding="utf-8")
    program = page.partition("```python\n")[2].partition("```")[0]
    exec(compile(program, "scikit_learn.md", "exec"), {})
    assert capsys.readouterr().out.startswith("{'neuralnetclassifier__lr': 0.01} 0.9")


def test_networks_are_shown_among_the_parameters() -> None:
    model = small(nn.Linear(4, 3)).fit(X, CODES)
    assert "Linear(in_features=4, out_features=3" in repr(model) and "Linear(in_features=4" in model._repr_html_()

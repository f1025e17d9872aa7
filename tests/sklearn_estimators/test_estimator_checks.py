"""scikit-learn's own checks of estimators, all of them."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from tritensor.sklearn import NeuralNetClassifier, NeuralNetRegressor

KINDS = [NeuralNetClassifier, NeuralNetRegressor]


@pytest.mark.sampled(24)
@parametrize_with_checks([kind(max_epochs=20, lr=0.01) for kind in KINDS])
def test_what_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_all_parameters_at_their_defaults(kind: Any) -> None:
    results = check_estimator(kind(), on_skip=None)
    assert {result["status"] for result in results} <= {"passed", "skipped"} and len(results) > 50


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_with_samples_held_out(kind: Any) -> None:
    name = "check_sample_weight_equivalence_on_dense_data"
    reason = "a sample of weight 2 is held out or not, and of two equal samples it can be one"
    stopping = kind(early_stopping=True, validation_fraction=0.3, max_epochs=20, lr=0.01)
    results = check_estimator(stopping, on_skip=None, expected_failed_checks={name: reason})
    assert [result["check_name"] for result in results if result["status"] == "xfail"] == [name]

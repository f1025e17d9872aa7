"""scikit-learn on tensors: what it computes through the array API (`array_api_dispatch=True`), and what by conversion.

Each row of the tables runs twice, on NumPy's arrays and on tensors. The results must agree, and be on the device
of what was passed, except where scikit-learn gives a Python number.
"""

from __future__ import annotations

import importlib.util
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor as torch

pytestmark = [pytest.mark.peer, pytest.mark.usefixtures("array_api_in_scipy")]

DTYPES = ["float32", "float64"]


def skip_on_devices(device: str, dtype: str) -> None:
    """A simulated device takes its time."""
    if dtype == "float64" and device != "cpu":
        pytest.skip("rows run in float32 on a device")


@pytest.fixture(autouse=True)
def dispatched(array_api_in_scipy: None) -> Iterator[None]:
    sklearn = pytest.importorskip("sklearn", minversion="1.9")
    with sklearn.config_context(array_api_dispatch=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # metrics that are undefined for a class, solvers that stop early
        yield


def name_in(module: str, name: str) -> Any:
    return getattr(pytest.importorskip(f"sklearn.{module}" if module else "sklearn"), name)


def agree(found: Any, expected: Any, device: str, tolerance: float) -> None:
    """Compare the results of a row; a tensor has to be on the device, a number or a list of labels has no device."""
    if isinstance(expected, tuple):
        assert isinstance(found, tuple) and len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            agree(one, other, device, tolerance)
        return
    if isinstance(found, torch.Tensor):
        assert str(found.device) == device
        found = found.cpu().numpy()
    else:
        assert not isinstance(found, np.ndarray), "a result was converted to NumPy"
    np.testing.assert_allclose(found, np.asarray(expected), rtol=tolerance, atol=tolerance)


def moved(value: Any, device: str) -> Any:
    """Arrays as tensors on the device; everything else as it is."""
    if isinstance(value, dict):
        return {name: moved(each, device) for name, each in value.items()}
    return torch.tensor(value, device=device) if isinstance(value, np.ndarray) else value


def data(dtype: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features of 60 samples, their class of 3, and a number that depends on them."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    x = rng.standard_normal((60, 4)) + np.stack((labels, -labels, 0 * labels, labels == 1), 1)
    y = x @ np.array([1.0, -2.0, 0.5, 0.0]) + 0.1 * rng.standard_normal(60)
    return x.astype(dtype), labels, y.astype(dtype)


# Estimator, and "class" or "number" where it is fitted to those; its methods whose results are compared follow.
ESTIMATORS: list[tuple[str, str, dict[str, Any], str]] = [
    ("preprocessing", "StandardScaler", {}, ""),
    ("preprocessing", "StandardScaler", {"with_mean": False}, ""),
    ("preprocessing", "MinMaxScaler", {}, ""),
    ("preprocessing", "MinMaxScaler", {"feature_range": (-1, 2), "clip": True}, ""),
    ("preprocessing", "MaxAbsScaler", {}, ""),
    *(("preprocessing", "Normalizer", {"norm": norm}, "") for norm in ("l1", "l2", "max")),
    ("preprocessing", "Binarizer", {"threshold": 0.25}, ""),
    ("preprocessing", "PolynomialFeatures", {"degree": 2}, ""),
    ("preprocessing", "LabelEncoder", {}, "labels"),
    ("preprocessing", "LabelBinarizer", {}, "labels"),
    ("decomposition", "PCA", {"n_components": 2, "svd_solver": "full"}, ""),
    ("decomposition", "PCA", {"n_components": 2, "svd_solver": "full", "whiten": True}, ""),
    ("decomposition", "PCA", {"n_components": 0.6, "svd_solver": "full"}, ""),
    ("decomposition", "PCA", {"n_components": 2, "svd_solver": "covariance_eigh"}, ""),
    (
        "decomposition",
        "PCA",
        {"n_components": 2, "svd_solver": "randomized", "power_iteration_normalizer": "QR", "random_state": 0},
        "",
    ),
    ("kernel_approximation", "Nystroem", {"n_components": 5, "random_state": 0}, ""),
    ("linear_model", "Ridge", {"solver": "svd"}, "number"),
    ("linear_model", "Ridge", {"fit_intercept": False}, "number"),
    ("linear_model", "RidgeCV", {}, "number"),
    ("linear_model", "RidgeCV", {"gcv_mode": "eigen", "alphas": (0.1, 1.0)}, "number"),
    ("linear_model", "RidgeClassifier", {"solver": "svd"}, "class"),
    ("linear_model", "RidgeClassifierCV", {}, "class"),
    ("linear_model", "LogisticRegression", {"tol": 1e-6, "max_iter": 500}, "class"),
    ("linear_model", "PoissonRegressor", {"tol": 1e-6, "max_iter": 500}, "count"),
    ("discriminant_analysis", "LinearDiscriminantAnalysis", {}, "class"),
    ("naive_bayes", "GaussianNB", {}, "class"),
    ("mixture", "GaussianMixture", {"n_components": 2, "init_params": "random_from_data", "random_state": 0}, ""),
]
METHODS = ("transform", "predict", "predict_proba", "predict_log_proba", "decision_function", "score_samples")


def results(module: str, name: str, options: dict[str, Any], kind: str, dtype: str, device: str | None) -> Any:
    x, labels, y = data(dtype)
    target = {"": None, "class": labels, "labels": labels, "number": y, "count": np.abs(y)}[kind]
    if device is not None:
        x, target = moved(x, device), moved(target, device)
    estimator = name_in(module, name)(**options)
    first = target if kind == "labels" else x
    fitted = estimator.fit(first) if kind in ("", "labels") else estimator.fit(first, target)
    found = {method: getattr(fitted, method)(first) for method in METHODS if hasattr(fitted, method)}
    if hasattr(fitted, "inverse_transform"):
        found["inverse_transform"] = fitted.inverse_transform(found["transform"])
    if kind and hasattr(fitted, "score"):
        found["score"] = fitted.score(x, target)
    for attribute in ("mean_", "var_", "scale_", "coef_", "intercept_", "explained_variance_", "classes_", "theta_"):
        if isinstance(getattr(fitted, attribute, None), (np.ndarray, np.generic, torch.Tensor)):
            found[attribute] = getattr(fitted, attribute)
    return found


@pytest.mark.parametrize("row", ESTIMATORS, ids=lambda row: f"{row[1]}-{row[2]}")
@pytest.mark.parametrize("dtype", DTYPES)
def test_estimators(row: tuple[str, str, dict[str, Any], str], dtype: str, device: str) -> None:
    skip_on_devices(device, dtype)
    expected = results(*row, dtype, None)
    found = results(*row, dtype, device)
    assert found.keys() == expected.keys() and found
    tolerance = 2e-3 if dtype == "float32" else 1e-5
    for name, value in expected.items():
        agree(found[name], value, device, tolerance)
        if dtype == "float32" and isinstance(found[name], torch.Tensor) and value.dtype == np.float32:
            assert found[name].dtype is torch.float32, name


BINARY = np.array([0, 0, 1, 1, 1, 0]), np.array([0, 1, 0, 1, 1, 0])
CLASSES = np.array([0, 1, 2, 2, 1, 0]), np.array([0, 1, 0, 2, 1, 1])
LABELS = np.array([[1, 1], [0, 1], [0, 0]]), np.array([[1, 1], [1, 1], [0, 1]])
PROBABILITIES = {
    "binary": (np.array([1, 0, 1, 0]), np.array([0.5, 0.2, 0.7, 0.6])),
    "classes": (np.array([0, 1, 2, 1]), np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8], [0.4, 0.5, 0.1]])),
}
NUMBERS = np.array([2.0, 0.5, 1.5, 4.0]), np.array([1.8, 0.9, 1.0, 3.5])
SEVERAL = np.stack(NUMBERS, 1), np.stack((NUMBERS[1], NUMBERS[0] + 0.5), 1)
POINTS = np.array([[1.0, 2.0, 0.5], [0.25, 1.0, 3.0]]), np.array([[1.5, 0.5, 1.0], [2.0, 1.0, 0.125]])
CLOUD = np.array([[0.0, 0.1], [0.2, 0.0], [3.0, 3.1], [3.2, 2.9], [0.1, 0.3]]), np.array([0, 0, 1, 1, 0])

OPERANDS: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {
    "binary": [BINARY],
    "classes": [BINARY, CLASSES],
    "labels": [BINARY, CLASSES, LABELS],
    "scores": [(BINARY[0], np.array([0.1, 0.4, 0.35, 0.8, 0.7, 0.2]))],
    "probabilities": list(PROBABILITIES.values()),
    "numbers": [NUMBERS],
    "outputs": [NUMBERS, SEVERAL],
    "points": [POINTS],
    "clusters": [CLOUD],
}
# All of scikit-learn's metrics that its own tests run on arrays of the array API, by the operands that they take.
METRICS = {
    "binary": ("det_curve",),
    "classes": ("balanced_accuracy_score", "cohen_kappa_score", "confusion_matrix"),
    "labels": (
        *("accuracy_score", "f1_score", "fbeta_score", "hamming_loss", "jaccard_score"),
        *("multilabel_confusion_matrix", "precision_score", "recall_score", "zero_one_loss"),
    ),
    "scores": ("average_precision_score", "det_curve", "precision_recall_curve", "roc_curve"),
    "probabilities": ("brier_score_loss", "d2_brier_score", "d2_log_loss_score", "log_loss"),
    "numbers": (
        *("d2_tweedie_score", "max_error", "mean_gamma_deviance", "mean_poisson_deviance", "mean_tweedie_deviance"),
    ),
    "outputs": (
        *("d2_absolute_error_score", "d2_pinball_score", "explained_variance_score", "mean_absolute_error"),
        *("mean_absolute_percentage_error", "mean_pinball_loss", "mean_squared_error", "mean_squared_log_error"),
        *("median_absolute_error", "r2_score", "root_mean_squared_error", "root_mean_squared_log_error"),
    ),
    "points": (
        *("additive_chi2_kernel", "chi2_kernel", "cosine_distances", "cosine_similarity", "euclidean_distances"),
        *("laplacian_kernel", "linear_kernel", "manhattan_distances", "paired_cosine_distances"),
        *("paired_euclidean_distances", "paired_manhattan_distances", "pairwise_distances"),
        *("pairwise_distances_argmin", "pairwise_kernels", "polynomial_kernel", "rbf_kernel", "sigmoid_kernel"),
    ),
    "clusters": ("calinski_harabasz_score", "davies_bouldin_score"),
}
NEEDED = {"fbeta_score": {"beta": 0.5}}
OF_SEVERAL = frozenset(("f1_score", "fbeta_score", "jaccard_score", "precision_score", "recall_score"))


def metric(name: str) -> Callable[..., Any]:
    pairwise = "sklearn.metrics.pairwise"
    module = pytest.importorskip("sklearn.metrics")
    return getattr(module, name) if hasattr(module, name) else getattr(pytest.importorskip(pairwise), name)


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in METRICS.items() for name in names])
@pytest.mark.parametrize("dtype", DTYPES)
def test_metrics(kind: str, name: str, dtype: str, device: str) -> None:
    skip_on_devices(device, dtype)
    for number, operands in enumerate(OPERANDS[kind]):
        arrays = [each.astype(dtype) if each.dtype.kind == "f" else each for each in operands]
        options = dict(NEEDED.get(name, {}))
        if name in OF_SEVERAL and number:
            options["average"] = "macro"
        expected = metric(name)(*arrays, **options)
        found = metric(name)(*moved(dict(enumerate(arrays)), device).values(), **options)
        agree(found, expected, device, 1e-5 if dtype == "float32" else 2e-7)


def test_the_table_has_all_metrics_of_scikit_learns_own_tests() -> None:
    wanted: set[str] = set()
    for module in ("metrics.tests.test_common", "metrics.cluster.tests.test_common"):
        found = importlib.util.find_spec(f"sklearn.{module}")
        if found is None or found.origin is None:
            pytest.skip("scikit-learn is installed without its tests")
        text = (
            Path(found.origin)
            .read_text("utf-8")
            .partition("\narray_api_metric_checkers = {\n")[2]
            .partition("\n}\n")[0]
        )
        wanted |= set(re.findall(r"^    (?:partial\()?(\w+)", text, re.MULTILINE))
    assert wanted == {name for names in METRICS.values() for name in names}


@pytest.mark.parametrize("weighted", ["accuracy_score", "mean_squared_error", "r2_score", "log_loss", "roc_curve"])
def test_sample_weights_are_tensors(weighted: str, device: str) -> None:
    first, second = PROBABILITIES["binary"] if weighted in ("log_loss", "roc_curve") else NUMBERS
    if weighted == "accuracy_score":
        first, second = BINARY[0][:4], BINARY[1][:4]
    weights = np.array([1.0, 0.5, 2.0, 0.25])
    expected = metric(weighted)(first, second, sample_weight=weights)
    found = metric(weighted)(moved(first, device), moved(second, device), sample_weight=moved(weights, device))
    agree(found, expected, device, 2e-7)


def test_train_test_split(device: str) -> None:
    split = name_in("model_selection", "train_test_split")
    x, labels, _ = data("float32")
    expected = split(x, labels, random_state=0, test_size=0.25)
    for found, value in zip(split(moved(x, device), moved(labels, device), random_state=0, test_size=0.25), expected):
        agree(found, value, device, 0)


def test_cross_validation_and_search(device: str) -> None:
    x, labels, y = data("float32")
    arrays = moved({"x": x, "labels": labels, "y": y}, device)
    ridge, lda = name_in("linear_model", "Ridge"), name_in("discriminant_analysis", "LinearDiscriminantAnalysis")
    score, predict = name_in("model_selection", "cross_val_score"), name_in("model_selection", "cross_val_predict")
    search = name_in("model_selection", "GridSearchCV")
    for estimator, target in ((ridge(solver="svd"), "y"), (lda(), "labels")):
        numpys = {"y": y, "labels": labels}[target]
        np.testing.assert_allclose(
            score(estimator, arrays["x"], arrays[target], cv=3), score(estimator, x, numpys, cv=3), rtol=1e-3
        )
        agree(predict(estimator, arrays["x"], arrays[target], cv=3), predict(estimator, x, numpys, cv=3), device, 1e-3)
    grid = {"alpha": [0.1, 1.0, 10.0]}
    found = search(ridge(solver="svd"), grid, cv=3).fit(arrays["x"], arrays["y"])
    expected = search(ridge(solver="svd"), grid, cv=3).fit(x, y)
    assert found.best_params_ == expected.best_params_
    assert found.best_score_ == pytest.approx(expected.best_score_, rel=1e-4)
    agree(found.predict(arrays["x"]), expected.predict(x), device, 1e-3)


def test_a_pipeline_stays_on_the_device(device: str) -> None:
    make_pipeline = name_in("pipeline", "make_pipeline")
    scaler, pca = name_in("preprocessing", "StandardScaler"), name_in("decomposition", "PCA")
    lda = name_in("discriminant_analysis", "LinearDiscriminantAnalysis")
    x, labels, _ = data("float32")
    model = make_pipeline(scaler(), pca(3, svd_solver="full"), lda())
    expected = model.fit(x, labels).predict(x)
    found = model.fit(moved(x, device), moved(labels, device)).predict(moved(x, device))
    agree(found, expected, device, 0)


# Estimators of which scikit-learn 1.9 has no implementation for the array API.
BY_CONVERSION = [
    ("neighbors", "NearestNeighbors", {"n_neighbors": 3}, "kneighbors"),
    ("neighbors", "KNeighborsClassifier", {}, "predict"),
    ("cluster", "KMeans", {"n_clusters": 3, "random_state": 0, "n_init": 1}, "predict"),
    ("ensemble", "RandomForestClassifier", {"n_estimators": 5, "random_state": 0}, "predict"),
    ("svm", "SVC", {}, "predict"),
    ("linear_model", "LinearRegression", {}, "predict"),
    ("linear_model", "Lasso", {}, "predict"),
    ("preprocessing", "QuantileTransformer", {"n_quantiles": 10}, "transform"),
    ("impute", "SimpleImputer", {}, "transform"),
]


@pytest.mark.parametrize("row", BY_CONVERSION, ids=lambda row: row[1])
def test_what_has_no_dispatch_takes_tensors_of_the_cpu_and_gives_arrays(row: tuple[Any, ...], device: str) -> None:
    module, name, options, method = row
    x, labels, _ = data("float64")
    estimator = name_in(module, name)(**options)
    with name_in("", "config_context")(array_api_dispatch=False):
        expected = getattr(estimator.fit(x, labels), method)(x)
        if device != "cpu":
            with pytest.raises(TypeError, match=r"can't convert cuda:0 device type tensor to numpy.*Tensor\.cpu\(\)"):
                estimator.fit(moved(x, device), moved(labels, device))
            return
        found = getattr(estimator.fit(moved(x, device), moved(labels, device)), method)(moved(x, device))
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


@pytest.mark.parametrize("row", BY_CONVERSION, ids=lambda row: row[1])
def test_what_has_no_dispatch_refuses_tensors_when_it_is_asked_to(row: tuple[Any, ...], device: str) -> None:
    module, name, options, _ = row
    x, labels, _ = data("float32")
    with pytest.raises(TypeError, match=r"isdtype\(\): argument 'dtype' must be|can't convert cuda:0|must be Tensor"):
        name_in(module, name)(**options).fit(moved(x, device), moved(labels, device))

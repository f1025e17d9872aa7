"""How a fit goes: what is trained with which loss and optimizer, when it ends, and what it leaves as it was."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from threading import Thread
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_regression

import tritensor as torch
from tritensor import nn, optim
from tritensor import sklearn as estimators
from tritensor.nn import functional as F
from tritensor.sklearn import NeuralNetClassifier, NeuralNetRegressor

X, Y = load_iris(return_X_y=True)
small = partial(NeuralNetClassifier, hidden_layer_sizes=(8,), lr=0.02, max_epochs=5, random_state=0)


def parameters(model: Any) -> np.ndarray:
    return np.concatenate([parameter.detach().numpy().ravel() for parameter in model.module_.parameters()])


def with_dropout(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, outputs))


# ---- what is trained ------------------------------------------------------------------------------------------------


def test_layers_without_a_module() -> None:
    layers = small(hidden_layer_sizes=(7, 5), activation="logistic").fit(X, Y).module_
    assert [type(layer).__name__ for layer in layers] == ["Linear", "Sigmoid", "Linear", "Sigmoid", "Linear"]
    assert [layer.out_features for layer in layers[::2]] == [7, 5, 3]
    assert len(small(hidden_layer_sizes=()).fit(X, Y).module_) == 1
    assert len(small(hidden_layer_sizes=6).fit(X, Y).module_) == 3


def test_a_module_is_copied_and_a_factory_is_called_with_the_numbers_of_features_and_outputs() -> None:
    own = nn.Linear(4, 3)
    before = own.weight.detach().clone()
    model = small(own).fit(X, Y)
    assert torch.equal(own.weight, before) and own.weight.dtype is torch.float32
    assert not np.allclose(model.module_.weight.detach(), before) and model.module is own
    assert isinstance(small(nn.Linear).fit(X, Y).module_, nn.Linear)
    assert small(with_dropout).fit(X, Y).module_[0].in_features == 4


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_layer_that_changes_its_input_does_not_change_the_callers_samples(shuffle: bool) -> None:
    own = X - 3
    model = small(nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 3)), shuffle=shuffle).fit(own, Y)
    assert model.predict(own).shape == (150,)
    np.testing.assert_array_equal(own, X - 3)


def test_outputs_of_another_size_are_named() -> None:
    with pytest.raises(ValueError, match=r"the module made \(150, 2\) of \(150, 4\), not \(150, 3\)"):
        small(nn.Linear(4, 2)).fit(X, Y)
    flat = NeuralNetRegressor(lambda inputs, outputs: nn.Sequential(nn.Linear(inputs, 1), nn.Flatten(0)), max_epochs=2)
    assert flat.fit(X, Y).predict(X).shape == (150,)


class Absolute(nn.Module):
    def forward(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return (outputs - targets).abs().mean()


@pytest.mark.parametrize("criterion", [nn.L1Loss, nn.L1Loss(), F.l1_loss, Absolute])
def test_a_loss_is_a_class_an_instance_or_a_function(criterion: Any) -> None:
    model = NeuralNetRegressor(nn.Linear, criterion=criterion, shuffle=False, max_epochs=2, random_state=0).fit(X, Y)
    expected = NeuralNetRegressor(nn.Linear, criterion=nn.L1Loss, shuffle=False, max_epochs=2, random_state=0)
    np.testing.assert_allclose(model.loss_curve_, expected.fit(X, Y).loss_curve_)
    assert model.loss_curve_ != NeuralNetRegressor(nn.Linear, max_epochs=2, random_state=0).fit(X, Y).loss_curve_


def test_a_loss_follows_the_precision_of_the_samples() -> None:
    model = small(criterion=nn.CrossEntropyLoss(torch.tensor([1.0, 1.0, 0.0])), max_epochs=100).fit(X, Y)
    assert set(model.predict(X[:100])) == {0, 1} and model.predict_proba(X[:100])[:, 2].max() < 0.5


@pytest.mark.parametrize("criterion", [nn.L1Loss(), F.l1_loss])
def test_weights_are_as_many_equal_samples(criterion: Any) -> None:
    weights = np.random.default_rng(0).integers(0, 4, len(Y))
    options = {"criterion": criterion, "batch_size": 1000, "shuffle": False, "random_state": 0, "max_epochs": 5}
    weighted = NeuralNetRegressor(**options).fit(X, Y, weights)
    repeated = NeuralNetRegressor(**options).fit(X.repeat(weights, 0), Y.repeat(weights))
    np.testing.assert_allclose(weighted.loss_curve_, repeated.loss_curve_)
    np.testing.assert_allclose(parameters(weighted), parameters(repeated))
    assert isinstance(criterion, nn.Module) is hasattr(criterion, "reduction")
    assert getattr(criterion, "reduction", "mean") == "mean"  # it is a copy that gives all losses


def test_weights_that_cannot_be_used() -> None:
    with pytest.raises(ValueError, match="at least one non-zero"):
        small().fit(X, Y, np.zeros(len(Y)))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        small().fit(X, Y, -np.ones(len(Y)))
    with pytest.raises(ValueError, match="has no `reduction`"):
        NeuralNetRegressor(criterion=Absolute).fit(X, Y, np.ones(len(Y)))


@pytest.mark.thorough
def test_optimizers_by_name_class_and_function() -> None:
    kinds = {
        "adamw": optim.AdamW,
        "lbfgs": optim.LBFGS,
        optim.SGD: optim.SGD,
        partial(optim.SGD, momentum=0.9): optim.SGD,
    }
    for optimizer, kind in kinds.items():
        model = small(optimizer=optimizer).fit(X, Y)
        assert type(model._optimizer) is kind and model._optimizer.param_groups[0]["lr"] == 0.02
    assert model._optimizer.param_groups[0]["momentum"] == 0.9


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("hidden_layer_sizes", (4, 0), "positive whole numbers"),
        ("hidden_layer_sizes", (True,), "positive whole numbers"),
        ("activation", "swish", "in .'identity', 'logistic', 'tanh', 'relu'."),
        ("optimizer", "adams", "a name or a class of tritensor.optim"),
        ("lr", 0, "a positive number"),
        ("batch_size", 2.5, '"auto" or a positive whole number'),
        ("max_epochs", 0, "a positive whole number"),
        ("validation_fraction", 1.0, "between 0 and 1"),
        ("n_iter_no_change", -1, "a positive whole number"),
        ("tol", -1e-3, "a number that is not negative"),
        ("dtype", "int64", "None, float32 or float64"),
    ],
)
def test_parameters_are_checked_when_a_fit_begins(name: str, value: Any, wanted: str) -> None:
    model = small(**{name: value})
    with pytest.raises(ValueError, match=rf"NeuralNetClassifier\({name}=.*\n.*{name} has to be {wanted}"):
        model.fit(X, Y)


def test_no_batch_of_one_sample_is_left_over() -> None:
    sizes: list[int] = []

    def factory(inputs: int, outputs: int) -> nn.Module:
        made = nn.Linear(inputs, outputs)
        made.register_forward_pre_hook(lambda module, arguments: sizes.append(len(arguments[0])))
        return made

    small(factory, batch_size=50, max_epochs=1).fit(X[:101], Y[:101])
    small(factory, batch_size=1, max_epochs=1).fit(X[:3], Y[:3])
    small(factory, batch_size=500, max_epochs=1).fit(X, Y)
    small(factory, max_epochs=1).fit(np.tile(X, (2, 1)), np.tile(Y, 2))
    assert sizes == [50, 51, 1, 1, 1, 150, 200, 100]


# ---- when it ends ---------------------------------------------------------------------------------------------------


def test_a_fit_ends_when_the_loss_improves_no_longer() -> None:
    model = small(nn.Linear, max_epochs=60, lr=1e-6, tol=1.0, n_iter_no_change=4).fit(X, Y)
    assert model.n_iter_ == len(model.loss_curve_) == 6  # the first, and one more than four
    assert small(nn.Linear, max_epochs=60, tol=0, n_iter_no_change=4).fit(X, Y).n_iter_ == 60


@pytest.mark.thorough
def test_the_weights_of_the_best_score_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).permutation(len(Y))
    monkeypatch.setattr(estimators, "_split", lambda *arguments: (rows[50:], rows[:50]))
    for kind in (NeuralNetClassifier, NeuralNetRegressor):
        model = kind(hidden_layer_sizes=(8,), early_stopping=True, lr=0.3, batch_size=10, random_state=0, max_epochs=40)
        weights = np.linspace(1, 2, len(Y))
        scores = model.fit(X, Y, weights).validation_scores_
        assert len(scores) == model.n_iter_ and scores[-1] < max(scores)
        assert model.score(X[rows[:50]], Y[rows[:50]], weights[rows[:50]]) == pytest.approx(max(scores))


def test_a_share_of_every_class_is_held_out() -> None:
    classes = np.repeat([0, 1, 2, 3], [1000, 60, 20, 1])
    random = np.random.RandomState(0)
    rows, held = estimators._split(classes, 0.1, random)
    assert np.bincount(classes[held], minlength=4).tolist() == [
        101,
        6,
        2,
        0,
    ]  # ceil(108.1); the only one is learned from
    assert sorted([*rows, *held]) == [*range(len(classes))]
    again = estimators._split(classes, 0.1, random)[1]
    assert set(again) != set(held)
    few = np.repeat(np.arange(10), 4)  # of ten classes four are held out, by chance
    found = {tuple(sorted(few[estimators._split(few, 0.1, random)[1]])) for _ in range(5)}
    assert len(found) > 1 and all(len(set(each)) == 4 for each in found)
    assert np.bincount(few[estimators._split(few, 0.99, random)[0]]).tolist() == [1] * 10
    assert len(estimators._split(np.zeros(30), 0.25, random)[1]) == 8
    with pytest.raises(ValueError, match="1 of 10 samples are too few for a validation set"):
        estimators._split(np.zeros(10), 0.1, random)


def test_a_loss_that_is_infinite_is_an_error() -> None:
    samples, targets = make_regression(50, 3, random_state=0)
    model = NeuralNetRegressor(optimizer="sgd", lr=1e3, random_state=0)
    with pytest.raises(ValueError, match=r"the loss of epoch \d+ is (inf|nan)(.|\n)*StandardScaler"):
        model.fit(samples, targets * 1e6)
    assert not hasattr(model, "module_") and not hasattr(model, "n_features_in_")


def test_the_bar_shows_passes_and_loss(capsys: pytest.CaptureFixture[str]) -> None:
    small(early_stopping=True, validation_fraction=0.2).fit(X, Y)
    assert capsys.readouterr() == ("", "")
    small(early_stopping=True, validation_fraction=0.2, verbose=1).fit(X, Y)
    shown = capsys.readouterr().err
    assert "NeuralNetClassifier" in shown and "5/5" in shown and ", loss " in shown and ", score 0." in shown


# ---- fits in a row --------------------------------------------------------------------------------------------------


def test_parts_are_passes_of_one_training() -> None:
    options = {"shuffle": False, "dtype": "float64", "lr": 0.05, "batch_size": 40}
    parts = small(**options)
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        parts.partial_fit(X, Y)
    for _ in range(3):
        parts.partial_fit(X, Y, classes=[0, 1, 2])
    whole = small(max_epochs=3, **options).fit(X, Y)
    np.testing.assert_allclose(parameters(parts), parameters(whole))
    assert parts.loss_curve_ == whole.loss_curve_ and (parts.n_iter_, whole.n_iter_) == (1, 3)
    for options in ({"y": Y + 1}, {"y": Y, "classes": [0, 1, 2, 3]}):
        with pytest.raises(ValueError, match=r"labels \[3\] are not among classes_, \[0 1 2\]"):
            parts.partial_fit(X, **options)
    parts.partial_fit(X[Y < 2], Y[Y < 2], np.ones(100))  # not every part has every label
    assert parts.predict_proba(X).shape == (150, 3)
    numbers = NeuralNetRegressor(early_stopping=True).partial_fit(X, Y).partial_fit(X, Y)
    assert len(numbers.loss_curve_) == 2 and numbers.validation_scores_ is None


def test_a_warm_start_goes_on_and_another_begins_anew() -> None:
    warm = small(warm_start=True, early_stopping=True, validation_fraction=0.2).fit(X, Y)
    first = warm.loss_curve_
    warm.fit(X, Y)
    assert warm.loss_curve_[:5] == first and len(warm.loss_curve_) == len(warm.validation_scores_) == 10
    assert warm.loss_curve_[5] < first[0] * 0.9 and warm.n_iter_ == 5
    with pytest.raises(ValueError, match=r"labels \[3\] are not among"):
        warm.fit(X, Y + 1)
    warm.set_params(warm_start=False).fit(X, Y + 1)
    assert warm.loss_curve_ == first and list(warm.classes_) == [1, 2, 3]


class Fails(nn.Module):
    """A layer that is interrupted at its third batch."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.scores, self.calls = nn.Linear(inputs, outputs), 0

    def forward(self, samples: torch.Tensor) -> torch.Tensor:
        self.calls += self.training
        if self.calls == 3:
            raise KeyboardInterrupt
        return self.scores(samples)


@pytest.mark.parametrize("goes_on", [False, True])
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(goes_on: bool) -> None:
    model = small(Fails, warm_start=goes_on, max_epochs=2).fit(X, Y)
    before, attributes, curve = parameters(model), vars(model).copy(), [*model.loss_curve_]
    with pytest.raises(KeyboardInterrupt):
        model.set_params(max_epochs=9).fit(X[:, :4], Y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X * np.nan, Y)
    if goes_on:
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X, Y)
    assert vars(model) == {**attributes, "max_epochs": 9} and model.loss_curve_ == curve
    np.testing.assert_array_equal(parameters(model), before)


# ---- random numbers -------------------------------------------------------------------------------------------------


@pytest.fixture
def generators_as_they_were() -> Iterator[None]:
    ours, (_, numpys, *place) = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002 - what must stay as it is
    yield
    assert torch.equal(torch.get_rng_state(), ours)
    (_, after, *place_after) = np.random.get_state()  # noqa: NPY002
    assert np.array_equal(after, numpys) and place_after == place


@pytest.mark.usefixtures("generators_as_they_were")
def test_a_number_decides_everything_that_is_random() -> None:
    model = small(with_dropout, batch_size=20, early_stopping=True)
    fits = [parameters(model.set_params(random_state=state).fit(X, Y)) for state in (1, 1, 2)]
    np.testing.assert_array_equal(fits[0], fits[1])
    assert not np.allclose(fits[0], fits[2])
    state = np.random.RandomState(1)
    fits = [parameters(model.set_params(random_state=state).fit(X, Y)) for _ in range(2)]
    assert not np.allclose(*fits)


@pytest.mark.thorough
def test_fits_in_threads_do_not_disturb_one_another() -> None:
    model = partial(small, with_dropout, batch_size=10)
    expected = [parameters(model(random_state=number).fit(X, Y)) for number in range(3)]
    models = [model(random_state=number) for number in range(3)]
    threads = [Thread(target=each.fit, args=(X, Y)) for each in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for each, wanted in zip(models, expected, strict=True):
        np.testing.assert_array_equal(parameters(each), wanted)


def test_it_learns_where_no_graph_is_recorded() -> None:
    with torch.no_grad():
        model = small().fit(X, Y)
    np.testing.assert_array_equal(parameters(model), parameters(small().fit(X, Y)))

"""skorch: networks as scikit-learn's estimators, in a pipeline, in a search, with callbacks, saved and loaded."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import skorch
import torch
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetBinaryClassifier, NeuralNetClassifier, NeuralNetRegressor, callbacks


class Layers(torch.nn.Module):
    def __init__(self, width: int = 10, outputs: int = 3) -> None:
        super().__init__()
        self.hidden, self.out = torch.nn.Linear(6, width), torch.nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.hidden(x).relu())


def points() -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(0).standard_normal((60, 6), dtype=np.float32)
    return x, x[:, :3].argmax(-1).astype(np.int64)


def usual(**options: Any) -> dict[str, Any]:
    return {
        "max_epochs": 3,
        "lr": 0.1,
        "iterator_train__shuffle": False,
        "verbose": 0,
        "train_split": skorch.dataset.ValidSplit(5, stratified=False),
        **options,
    }


def weights(carry: Any, net: Any) -> Any:
    net.initialize()
    carry.module("module", net.module_)
    return net


def case_classifier(carry: Any) -> None:
    x, y = points()
    net = NeuralNetClassifier(Layers, criterion=torch.nn.CrossEntropyLoss, classes=[0, 1, 2], **usual())
    net = weights(carry, net).partial_fit(x, y)
    carry.check("classes", net.predict(x))
    carry.check("probabilities", net.predict_proba(x))
    carry.check("losses", net.history[:, ("train_loss", "valid_loss", "valid_acc")])
    carry.check("score", net.score(x, y))


def case_regressor(carry: Any) -> None:
    x, _ = points()
    net = NeuralNetRegressor(Layers, module__outputs=1, optimizer=torch.optim.Adam, **usual(lr=1e-2))
    net = weights(carry, net).partial_fit(x, x[:, :1])
    carry.check("found", net.predict(x))
    binary = NeuralNetBinaryClassifier(Layers(outputs=1), **usual())
    binary = binary.fit(x, (x[:, 0] > 0).astype(np.float32))
    carry.check("shape", list(binary.predict_proba(x).shape))


def case_pipeline(carry: Any) -> None:
    x, y = points()
    net = NeuralNetClassifier(carry.module("module", Layers()), criterion=torch.nn.CrossEntropyLoss, **usual())
    chain = Pipeline([("scale", StandardScaler()), ("net", net)])
    chain.set_params(net__warm_start=True, net__max_epochs=4)
    chain.fit(x, y)
    carry.check("probabilities", chain.predict_proba(x))


def case_search(carry: Any) -> None:
    x, y = points()
    module = carry.module("module", Layers())
    net = NeuralNetClassifier(module, criterion=torch.nn.CrossEntropyLoss, **usual(train_split=None))
    search = GridSearchCV(net, {"lr": [0.5, 1e-4], "max_epochs": [2, 10]}, cv=2, scoring="accuracy", refit=True)
    search.fit(x, y)
    carry.check("best", {name: search.best_params_[name] for name in ("lr", "max_epochs")})
    carry.check("scores", search.cv_results_["mean_test_score"])
    carry.check("shape", list(cross_val_predict(net, x, y, cv=2).shape))


def case_callbacks(carry: Any) -> None:
    class Counts(callbacks.Callback):
        def on_train_begin(self, net: Any, **options: Any) -> None:
            self.batches = 0

        def on_batch_end(self, net: Any, training: bool = False, **options: Any) -> None:
            self.batches += training

    x, y = points()
    with tempfile.TemporaryDirectory() as folder:
        chosen = [
            ("stop", callbacks.EarlyStopping(patience=2, threshold=10.0)),
            ("rates", callbacks.LRScheduler(policy="StepLR", step_size=1, gamma=0.5)),
            ("best", callbacks.Checkpoint(dirname=folder, monitor="valid_loss_best")),
            ("score", callbacks.EpochScoring("f1_macro", name="f1", lower_is_better=False)),
            ("clip", callbacks.GradientNormClipping(1.0)),
            ("counts", Counts()),
        ]
        options = usual(max_epochs=6, batch_size=16, callbacks=chosen, classes=[0, 1, 2])
        net = NeuralNetClassifier(Layers, criterion=torch.nn.CrossEntropyLoss, **options)
        net = weights(carry, net).partial_fit(x, y)
        carry.check("epochs", len(net.history))
        carry.check("f1", net.history[:, "f1"])
        carry.check("batches", dict(net.callbacks_)["counts"].batches)
        net.load_params(checkpoint=dict(net.callbacks_)["best"])
        carry.check("best", net.predict_proba(x))


def case_saved(carry: Any) -> None:
    x, y = points()
    options = usual(classes=[0, 1, 2], optimizer=torch.optim.Adam)
    net = NeuralNetClassifier(Layers, criterion=torch.nn.CrossEntropyLoss, **options)
    net = weights(carry, net).partial_fit(x, y)
    with tempfile.TemporaryDirectory() as folder:
        files = {"f_params": f"{folder}/p.pt", "f_optimizer": f"{folder}/o.pt", "f_history": f"{folder}/h.json"}
        net.save_params(**files)
        other = NeuralNetClassifier(Layers, criterion=torch.nn.CrossEntropyLoss, **options).initialize()
        other.load_params(**files)
    other.partial_fit(x, y)
    carry.check("epochs", len(other.history))
    carry.check("probabilities", other.predict_proba(x))

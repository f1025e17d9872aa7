"""Neural networks as scikit-learn's estimators: for pipelines, searches over grids and cross-validation.

It needs scikit-learn (`pip install "tritensor[sklearn]"`) and is imported only where it is named.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from tqdm import tqdm

from . import nn, optim
from .autograd.mode import enable_grad, no_grad
from .drivers import active
from .errors import explain, require
from .functional.creation.creation import from_numpy
from .functional.views.joining import cat, stack
from .ground.locks import lock
from .operators.generators import fork_rng, manual_seed
from .tensors import Tensor
from .types import Device, Dtype, devices, dtypes

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.metrics import r2_score
    from sklearn.utils import check_random_state, column_or_1d, gen_batches
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError as error:
    words = ("tritensor.sklearn needs scikit-learn 1.6 or later", str(error))
    raise ImportError(explain(*words, remedy='pip install "tritensor[sklearn]"')) from error

__all__ = ["NeuralNetClassifier", "NeuralNetRegressor"]

_ACTIVATIONS = {"identity": nn.Identity, "logistic": nn.Sigmoid, "tanh": nn.Tanh, "relu": nn.ReLU}
_REAL, _READ = (int, float, np.number), (np.float64, np.float32)
_OPTIMIZERS = {name.lower(): kind for name, kind in vars(optim).items() if isinstance(kind, type)}

# One fit at a time in a process: layers and dropout draw from the process's generators, which a fit seeds and restores.
_seeded = lock()


def _whole(value: int) -> Any:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1


# What is checked when a fit begins: constructors of scikit-learn's estimators only store their parameters.
_PARAMETERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "hidden_layer_sizes": (lambda value: all(map(_whole, np.atleast_1d(value).tolist())), "positive whole numbers"),
    "activation": (lambda value: value in _ACTIVATIONS, f"in {[*_ACTIVATIONS]}"),
    "optimizer": (lambda value: callable(value) or value in _OPTIMIZERS, "a name or a class of tritensor.optim"),
    "lr": (lambda value: isinstance(value, _REAL) and value > 0, "a positive number"),
    "batch_size": (lambda value: value == "auto" or _whole(value), '"auto" or a positive whole number'),
    "max_epochs": (_whole, "a positive whole number"),
    "validation_fraction": (lambda value: isinstance(value, _REAL) and 0 < value < 1, "between 0 and 1"),
    "n_iter_no_change": (_whole, "a positive whole number"),
    "tol": (lambda value: isinstance(value, _REAL) and value >= 0, "a number that is not negative"),
    "dtype": (lambda value: np.dtype(getattr(value, "numpy", value)) in _READ, "None, float32 or float64"),
}


def _split(groups: np.ndarray, fraction: float, random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """The samples to learn from and those to validate on: a share of each group, which may be one sample, never all."""
    share = np.full(len(groups), np.inf)
    for group in np.unique(groups):
        members = random.permutation(np.flatnonzero(groups == group))[1:]
        share[members] = (np.arange(len(members)) + 0.5) / (len(members) + 1)
    count = min(int(np.ceil(fraction * len(groups))), int(np.isfinite(share).sum()))
    if count < 2:
        raise ValueError(explain(f"{count} of {len(groups)} samples are too few for a validation set; hold out more"))
    order = np.lexsort((random.permutation(len(groups)), share))
    return order[count:], order[:count]


class _NeuralNet(BaseEstimator):
    """The base of both estimators, which differ in how targets are read, and in what outputs mean."""

    def __init__(
        self,
        module: Any = None,
        *,
        hidden_layer_sizes: tuple[int, ...] | int = (100,),
        activation: str = "relu",
        criterion: Any = None,
        optimizer: Any = "adam",
        lr: float = 0.001,
        batch_size: int | str = "auto",
        max_epochs: int = 200,
        shuffle: bool = True,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-4,
        device: Device = None,
        dtype: Dtype = None,
        random_state: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self.__dict__.update({name: value for name, value in locals().items() if name != "self"})

    def fit(self, X: Any, y: object, sample_weight: Any = None) -> Any:
        """Train for at most `max_epochs` passes, with `warm_start=True` from the weights of the fit before.

        Args:
            X, y: finite numbers of shape (samples, features), and targets: (samples,), of a regression also 2-D.
            sample_weight: a weight for each sample; one of zero is as no sample.

        Raises:
            ValueError: a parameter, data or weights that cannot be used, or a loss that is no longer finite.
            DeviceError: the device is not there. Whatever is raised, the estimator is as it was before.
        """
        return self._fit(X, y, sample_weight, self.warm_start and hasattr(self, "module_"))

    def _fit(self, X: Any, y: Any, weights: Any, goes_on: bool, part: bool = False, classes: Any = None) -> Any:
        before = self.__dict__.copy()
        try:
            for name, (fits, wanted) in _PARAMETERS.items():
                if not fits(value := getattr(self, name)):
                    raise ValueError(explain(f"{type(self).__name__}({name}={value!r})", f"{name} has to be {wanted}"))
            if goes_on:  # a copy learns, so that a fit that fails has changed nothing
                learned = {name: before[name] for name in ("module_", "_optimizer", "_random")}
                self.__dict__.update(copy.deepcopy(learned))
            else:
                self._random = np.random.RandomState(check_random_state(self.random_state).randint(2**31 - 1))
            many = isinstance(self, RegressorMixin)
            X, y = validate_data(self, X, y, reset=not goes_on, dtype=_READ, multi_output=many, y_numeric=many)
            data = [X, self._targets(y, not goes_on, classes)]
            if weights is not None:
                weights = _check_sample_weight(weights, X, dtype=np.float64, ensure_non_negative=True)
                require(weights.any(), ValueError, "Sample weights must contain at least one non-zero number.")
                # of mean 1, so that a batch of light samples is a small step
                data = [array[weights > 0] for array in (*data, weights / weights[weights > 0].mean())]
            with _seeded, fork_rng(), enable_grad():
                manual_seed(self._random.randint(2**31 - 1))
                if not goes_on:
                    self._begin(X)
                self.module_.to(self._place(), dtypes.of(self._dtype))
                if not (goes_on and part):
                    made = _OPTIMIZERS[self.optimizer] if isinstance(self.optimizer, str) else self.optimizer
                    self._optimizer = made(self.module_.parameters(), lr=self.lr)
                self._train(data, goes_on, part)
        except BaseException:  # an interrupt too
            self.__dict__ = before
            raise
        return self

    def _begin(self, X: np.ndarray) -> None:
        kind = getattr(self.dtype, "numpy", self.dtype)
        self._dtype = np.dtype(kind or (X.dtype if self._place().type == "cpu" else np.float32))
        sizes = (X.shape[1], *np.atleast_1d(self.hidden_layer_sizes).astype(int).tolist(), self._outputs)
        if isinstance(self.module, nn.Module):
            self.module_ = copy.deepcopy(self.module)
        elif self.module is not None:
            self.module_ = self.module(sizes[0], sizes[-1])
        else:
            layers = [part for pair in pairwise(sizes) for part in (nn.Linear(*pair), _ACTIVATIONS[self.activation]())]
            self.module_ = nn.Sequential(*layers[:-1])

    def _new_criterion(self, weighted: bool) -> Callable[..., Tensor]:
        """The loss of a batch, or where samples have weights, of each sample of it."""
        chosen = self._default_criterion if self.criterion is None else self.criterion
        criterion = chosen() if isinstance(chosen, type) else copy.deepcopy(chosen)
        if not isinstance(criterion, nn.Module):
            return partial(criterion, reduction="none") if weighted else criterion
        if weighted:
            if not hasattr(criterion, "reduction"):
                raise ValueError(explain(f"{criterion} has no `reduction`, by which sample_weight gets all losses"))
            criterion.reduction = "none"
        return criterion.to(self._place(), dtypes.of(self._dtype))

    def _place(self) -> devices.device:
        return devices.get_default_device() if self.device is None else devices.device(self.device)

    def _put(self, array: np.ndarray) -> Tensor:
        kind = np.int64 if array.dtype.kind == "i" else self._dtype
        return from_numpy(np.ascontiguousarray(array, kind)).to(next(self.module_.parameters()).device)

    def _train(self, data: list[np.ndarray], goes_on: bool, part: bool) -> None:
        """Passes over samples, targets and weights, until what is watched improves no longer."""
        losses = [*self.__dict__["loss_curve_"]] if goes_on else []
        scores = [*(self.__dict__["validation_scores_"] or ())] if goes_on else []
        epochs, validates = 1 if part else self.max_epochs, self.early_stopping and not part
        if validates:
            groups = data[1] if data[1].dtype.kind == "i" else np.zeros(len(data[1]))
            rows, held = _split(groups, self.validation_fraction, self._random)
            data, (validated, *truth) = [array[rows] for array in data], [array[held] for array in data]
            samples = self._put(validated)
        tensors, criterion = [self._put(array) for array in data], self._new_criterion(len(data) == 3)
        best, stalled, kept = np.inf, 0, None
        with tqdm(total=epochs, desc=type(self).__name__, unit="epoch", disable=not self.verbose) as bar:
            for self.n_iter_ in range(1, epochs + 1):
                losses.append(self._pass(tensors, criterion))
                if not np.isfinite(losses[-1]):
                    words = f"the loss of epoch {len(losses)} is {losses[-1]}, and the weights are as useless"
                    raise ValueError(explain(words, remedy="scale the features (StandardScaler), or pass a smaller lr"))
                watched, shown = losses[-1], f"loss {losses[-1]:.4g}"
                if validates:
                    scores.append(self._scored(self._computed(samples), *truth))
                    watched, shown = -scores[-1], f"{shown}, score {scores[-1]:.4g}"
                bar.set_postfix_str(shown, refresh=False)
                bar.update()
                stalled = stalled + 1 if watched > best - self.tol else 0
                if watched < best:
                    best, kept = watched, copy.deepcopy(self.module_.state_dict()) if validates else None
                if stalled > self.n_iter_no_change:
                    break
        if kept is not None:
            self.module_.load_state_dict(kept)
        self._optimizer.zero_grad()
        self.module_.eval()
        self.loss_curve_, self.validation_scores_ = losses, scores or None

    def _pass(self, data: list[Tensor], criterion: Callable[..., Tensor]) -> float:
        """One pass; the mean loss of its batches, which stay on the device until its end, as the samples do."""
        self.module_.train()
        size = min(200 if self.batch_size == "auto" else self.batch_size, len(data[0]))
        order = self._put(self._random.permutation(len(data[0])) if self.shuffle else np.arange(len(data[0])))
        losses, sizes = [], []
        # no batch of one sample at the end, which batch norm refuses
        for batch in gen_batches(len(data[0]), size, min_batch_size=2 if size > 1 else 0):
            part = [tensor[order[batch]] for tensor in data]
            losses.append(self._optimizer.step(partial(self._loss, criterion, *part)).detach())
            sizes.append(len(part[0]))
        return float(np.average(stack(losses).cpu().numpy(), weights=sizes))

    def _loss(self, criterion: Any, samples: Tensor, targets: Tensor, weights: Tensor | None = None) -> Tensor:
        """The loss of a batch, whose gradients are computed; LBFGS asks for it several times in a step."""
        self._optimizer.zero_grad()
        loss = criterion(self._forward(samples), targets)
        if weights is not None:
            loss = (loss.reshape(len(samples), -1).mean(1) * weights).mean()
        loss.backward()
        return loss

    def _forward(self, samples: Tensor) -> Tensor:
        outputs, wanted = self.module_(samples), (len(samples), self._outputs)
        if outputs.numel() != wanted[0] * wanted[1]:
            raise ValueError(explain(f"the module made {tuple(outputs.shape)} of {tuple(samples.shape)}, not {wanted}"))
        return outputs if outputs.shape == wanted else outputs.reshape(wanted)

    def _computed(self, samples: Tensor) -> Tensor:
        """The outputs for samples, on the CPU; by copied parts, as a layer may change in place what is the caller's."""
        self.module_.eval()
        with no_grad():
            return cat([self._forward(samples[rows].clone()) for rows in gen_batches(len(samples), 8192)]).cpu()

    def _predicted(self, X: Any) -> Tensor:
        """The outputs in the precision of X, computed on the device, or on the CPU where that is gone."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=_READ)
        place = self._place()
        self.module_.to("cpu" if place.type == "cuda" and active() is None else place)
        return self._computed(self._put(X)).to(dtypes.of(X.dtype))

    def __getstate__(self) -> dict[str, Any]:
        """The state for a pickle, on the CPU: a process without the device can read it."""
        state = {**super().__getstate__()}  # which may be that of the estimator itself
        if "module_" in state and next(self.module_.parameters()).device.type != "cpu":
            module, optimizer = copy.deepcopy((self.module_, self._optimizer))
            state.update(module_=module.to("cpu"), _optimizer=optimizer.to("cpu"))
        return state


class NeuralNetClassifier(ClassifierMixin, _NeuralNet):
    """A neural network that tells classes apart, with the names and defaults of scikit-learn's `MLPClassifier`.

    Args:
        module: an `nn.Module`, of which a copy is trained, or a class or function that makes one of the numbers of
            features and of outputs (classes): `nn.Linear`. Without one, linear layers of `hidden_layer_sizes` with
            `activation` ("identity", "logistic", "tanh" or "relu") between them.
        criterion: a loss of outputs and targets, as class, instance or function, which averages and knows
            `reduction="none"`; unless given, `nn.CrossEntropyLoss`. The targets are numbers of classes.
        optimizer: a name in `tritensor.optim`, lower-case, or what makes one: `partial(optim.SGD, momentum=0.9)`.
        max_epochs: the most passes over the samples. A fit ends earlier when for more than `n_iter_no_change` passes
            the loss, or with `early_stopping` the score of the `validation_fraction` of each class that is held out,
            was not better by `tol`. With `early_stopping` the weights of the best score are kept.
        device: where to compute, the default device unless given; a pickle that finds no such device uses the CPU.
        dtype: the precision, float32 or float64; unless given, that of X on the CPU, and float32 on a device.
        random_state: an int makes a fit deterministic. The process's own generators are left as they are.
        verbose: 1 shows a bar of the passes with their loss.

    Attributes:
        module_: the trained module. classes_: the labels. n_iter_: passes of the last fit. loss_curve_: the mean loss
            of each pass. validation_scores_: the score of each, None without `early_stopping`.

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NeuralNetClassifier(hidden_layer_sizes=(16,), lr=0.01, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.95), model.predict_proba(X[:2]).shape
    (True, (2, 3))
    """

    _default_criterion = nn.CrossEntropyLoss

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> NeuralNetClassifier:
        """One pass over some samples, with the weights and the optimizer's state of the calls before.

        The first call needs `classes`, all labels that there are. Nothing is held out; it raises what `fit` does.
        """
        if classes is None and not hasattr(self, "module_"):
            raise ValueError("classes must be passed on the first call to partial_fit.")
        return self._fit(X, y, sample_weight, hasattr(self, "module_"), True, classes)

    def _targets(self, y: np.ndarray, first: bool, classes: list[int] | None) -> np.ndarray:
        check_classification_targets(y)
        if first:
            self.classes_ = np.unique(y if classes is None else classes)
            self._outputs = len(self.classes_)
        if unknown := {*y.tolist(), *([] if classes is None else classes)} - {*self.classes_.tolist()}:
            raise ValueError(explain(f"labels {sorted(unknown)} are not among classes_, {self.classes_}"))
        return np.searchsorted(self.classes_, y).astype(np.int64)

    def _scored(self, outputs: Tensor, y: np.ndarray, weights: Any = None) -> float:
        return float(np.average(outputs.argmax(1).numpy() == y, weights=weights))

    def predict(self, X: Any) -> np.ndarray:
        """The label of each sample."""
        best = self._predicted(X).argmax(1).numpy()
        return self.classes_[best]

    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class for each sample: softmax of the outputs."""
        return self._predicted(X).softmax(1).numpy()

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithms of `predict_proba`."""
        return self._predicted(X).log_softmax(1).numpy()

    def decision_function(self, X: Any) -> np.ndarray:
        """The outputs; of two classes their difference, which is positive where the second is predicted."""
        outputs = self._predicted(X).numpy()
        return outputs[:, 1] - outputs[:, 0] if outputs.shape[1] == 2 else outputs


class NeuralNetRegressor(RegressorMixin, _NeuralNet):
    """A neural network that predicts numbers, one or several a sample, as an estimator of scikit-learn's.

    Parameters and attributes are those of `NeuralNetClassifier`, but for `classes_`. The outputs are as many as the
    columns of y, the criterion is `nn.MSELoss` unless given, and the score is R².

    >>> from sklearn.datasets import make_regression
    >>> X, y = make_regression(100, 4, random_state=0)
    >>> model = NeuralNetRegressor(nn.Linear, lr=1.0, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.99)
    True
    """

    _default_criterion = nn.MSELoss

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> NeuralNetRegressor:
        """One pass over some samples, with the weights and the optimizer's state of the calls before."""
        return self._fit(X, y, sample_weight, hasattr(self, "module_"), True)

    def _targets(self, y: np.ndarray, first: bool, classes: Any) -> np.ndarray:
        if y.ndim == 2 and y.shape[1] == 1:
            y = column_or_1d(y, warn=True)
        if first:
            self._columns, self._outputs = y.shape[1:], int(np.prod(y.shape[1:]))
        if y.shape[1:] != self._columns:
            raise ValueError(explain(f"y has shape {y.shape}, and the first one had {self._outputs} columns"))
        return y.reshape(len(y), self._outputs).astype(np.float64)

    def _scored(self, outputs: Tensor, y: np.ndarray, weights: Any = None) -> float:
        return float(r2_score(y, outputs.numpy(), sample_weight=weights))

    def predict(self, X: Any) -> np.ndarray:
        """The number of each sample, or its numbers, in X's precision."""
        return self._predicted(X).numpy().reshape(-1, *self._columns)

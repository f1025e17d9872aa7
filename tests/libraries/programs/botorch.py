"""botorch: Gaussian processes fitted, acquisition functions, and their optimization."""

from __future__ import annotations

from typing import Any

import botorch
import numpy as np
import torch
from botorch import acquisition
from botorch.acquisition.multi_objective.monte_carlo import qExpectedHypervolumeImprovement
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from botorch.optim import optimize_acqf
from botorch.sampling.base import MCSampler
from botorch.utils.multi_objective.box_decompositions import FastNondominatedPartitioning
from gpytorch.mlls import ExactMarginalLogLikelihood

BOUNDS = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.double)


class Given(MCSampler):
    """Samples from numbers that are given."""

    def forward(self, posterior: Any) -> torch.Tensor:
        shape = self._get_extended_base_sample_shape(posterior)
        base = np.random.default_rng(1).standard_normal(tuple(shape))
        return posterior.rsample_from_base_samples(self.sample_shape, torch.from_numpy(base))


def points(outputs: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.from_numpy(np.random.default_rng(0).random((12, 2)))
    return x, torch.stack([-(x - 0.4 - 0.2 * each).square().sum(-1) for each in range(outputs)], -1)


def given(outputs: int = 1) -> SingleTaskGP:
    x, y = points(outputs)
    transform = {"input_transform": Normalize(2), "outcome_transform": Standardize(outputs)}
    return SingleTaskGP(x, y, torch.full_like(y, 1e-3), **transform).eval()


def case_model(carry: Any) -> None:
    x, y = points()
    model = SingleTaskGP(x, y)
    objective = ExactMarginalLogLikelihood(model.likelihood, model)
    loss = -objective(model(*model.train_inputs), model.train_targets)
    loss.backward()
    carry.check("loss", loss)
    carry.check("gradients", {name: each.grad for name, each in model.named_parameters() if each.grad is not None})
    found = given().posterior(x[:4] * 0.9)
    carry.check("mean", found.mean)
    carry.check("variance", found.variance)


def case_fit(carry: Any) -> None:
    model = SingleTaskGP(*points(), input_transform=Normalize(2), outcome_transform=Standardize(1))
    botorch.fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    found = model.posterior(points()[0])
    carry.check("mean", found.mean, atol=0.02)
    carry.check("shape", list(model.posterior(torch.rand(3, 2, 2, dtype=torch.double)).mean.shape))


def case_acquisition(carry: Any) -> None:
    model, best = given(), points()[1].max()
    x = torch.from_numpy(np.random.default_rng(2).random((5, 1, 2))).requires_grad_()
    for name, function in {
        "improvement": acquisition.ExpectedImprovement(model, best),
        "logarithm": acquisition.LogExpectedImprovement(model, best),
        "bound": acquisition.UpperConfidenceBound(model, beta=2.0),
        "chance": acquisition.ProbabilityOfImprovement(model, best),
    }.items():
        found = function(x)
        carry.check(name, found)
        carry.check(f"{name} gradient", torch.autograd.grad(found.sum(), x))


def case_batches(carry: Any) -> None:
    model, best = given(), points()[1].max()
    x = torch.from_numpy(np.random.default_rng(2).random((4, 3, 2))).requires_grad_()
    sampler = Given(torch.Size([32]))
    for name, function in {
        "improvement": acquisition.qExpectedImprovement(model, best, sampler=sampler),
        "logarithm": acquisition.qLogExpectedImprovement(model, best, sampler=sampler),
        "bound": acquisition.qUpperConfidenceBound(model, beta=2.0, sampler=sampler),
        "regret": acquisition.qSimpleRegret(model, sampler=sampler),
    }.items():
        found = function(x)
        carry.check(name, found)
        carry.check(f"{name} gradient", torch.autograd.grad(found.sum(), x))


def case_optimize(carry: Any) -> None:
    function = acquisition.UpperConfidenceBound(given(), beta=0.1)
    start = torch.from_numpy(np.random.default_rng(3).random((3, 1, 2)))
    options = {"q": 1, "num_restarts": 3, "batch_initial_conditions": start, "options": {"maxiter": 30}}
    candidate, value = optimize_acqf(function, BOUNDS, **options)
    carry.check("candidate", candidate, atol=2e-3)
    carry.check("value", value)
    improvement = acquisition.qLogExpectedImprovement(given(), points()[1].max())
    candidate, _ = optimize_acqf(improvement, BOUNDS, q=2, num_restarts=2, raw_samples=8, options={"maxiter": 5})
    carry.check("shape", list(candidate.shape))
    carry.check("inside", bool(((candidate >= 0) & (candidate <= 1)).all()))


def case_objectives(carry: Any) -> None:
    x, y = points(2)
    model = ModelListGP(*(SingleTaskGP(x, y[:, i : i + 1], torch.full_like(y[:, :1], 1e-3)) for i in range(2))).eval()
    found = model.posterior(x[:3] * 0.9)
    carry.check("mean", found.mean)
    carry.check("front", botorch.utils.multi_objective.pareto.is_non_dominated(y))
    reference = torch.tensor([-1.0, -1.0], dtype=torch.double)
    cells = FastNondominatedPartitioning(reference, Y=y)
    carry.check("volume", cells.compute_hypervolume())
    sampler = Given(torch.Size([16]))
    function = qExpectedHypervolumeImprovement(given(2), reference, cells, sampler=sampler)
    carry.check("improvement", function(x[:4].reshape(2, 2, 2) * 0.9))

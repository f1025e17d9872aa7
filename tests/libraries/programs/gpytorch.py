"""gpytorch: Gaussian processes, exact and variational: likelihoods, gradients, training and predictions."""

from __future__ import annotations

from typing import Any

import gpytorch
import numpy as np
import torch


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x: torch.Tensor, y: torch.Tensor, likelihood: Any, kernel: Any = None) -> None:
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(kernel or gpytorch.kernels.RBFKernel())

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, inducing: torch.Tensor) -> None:
        shape = gpytorch.variational.CholeskyVariationalDistribution(len(inducing))
        super().__init__(gpytorch.variational.VariationalStrategy(self, inducing, shape, learn_inducing_locations=True))
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def points() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.linspace(0, 1, 25)
    noise = torch.from_numpy(np.random.default_rng(0).standard_normal(25, dtype=np.float32))
    return x, (6 * x).sin() + 0.1 * noise


def case_likelihood(carry: Any) -> None:
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = Exact(*points(), likelihood)
    found = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)(model(points()[0]), points()[1])
    (-found).backward()
    carry.check("found", found)
    carry.check("gradients", {name: each.grad for name, each in model.named_parameters()})


def case_training(carry: Any) -> None:
    likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=gpytorch.constraints.GreaterThan(1e-4))
    model = Exact(*points(), likelihood)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    losses = []
    for _ in range(15):
        optimizer.zero_grad()
        loss = -objective(model(points()[0]), points()[1])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    carry.check("losses", losses)
    model.eval(), likelihood.eval()
    with torch.no_grad(), gpytorch.settings.fast_pred_var():
        found = likelihood(model(torch.linspace(-0.2, 1.2, 9)))
    carry.check("mean", found.mean, atol=1e-3)
    carry.check("variance", found.variance, atol=1e-3)
    carry.check("region", found.confidence_region(), atol=2e-3)
    carry.check("scale", [model.covar_module.outputscale, model.covar_module.base_kernel.lengthscale], atol=1e-3)


def case_kernels(carry: Any) -> None:
    kernels = gpytorch.kernels
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((6, 2), dtype=np.float32))
    for name, kernel in {
        "matern": kernels.MaternKernel(nu=1.5),
        "smooth": kernels.MaternKernel(nu=2.5, ard_num_dims=2),
        "periodic": kernels.PeriodicKernel(),
        "linear": kernels.LinearKernel(),
        "quadratic": kernels.RQKernel(),
        "sum": kernels.RBFKernel(active_dims=[0]) + kernels.ScaleKernel(kernels.CosineKernel(active_dims=[1])),
        "product": kernels.RBFKernel() * kernels.PolynomialKernel(power=2),
    }.items():
        carry.check(name, kernel(x, x[:3]).to_dense())
        carry.check(f"{name} diagonal", kernel(x, diag=True))


def case_tasks(carry: Any) -> None:
    class Tasks(gpytorch.models.ExactGP):
        def __init__(self, x: torch.Tensor, y: torch.Tensor, likelihood: Any) -> None:
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.MultitaskMean(gpytorch.means.ConstantMean(), num_tasks=2)
            self.covar_module = gpytorch.kernels.MultitaskKernel(gpytorch.kernels.RBFKernel(), num_tasks=2, rank=1)

        def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultitaskMultivariateNormal:
            mean, covariance = self.mean_module(x), self.covar_module(x)
            return gpytorch.distributions.MultitaskMultivariateNormal(mean, covariance)

    x, y = points()
    likelihood = gpytorch.likelihoods.MultitaskGaussianLikelihood(num_tasks=2)
    model = carry.module("model", Tasks(x, torch.stack([y, y.cos()], -1), likelihood))
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    carry.check("likelihood", objective(model(x), torch.stack([y, y.cos()], -1)))
    model.eval()
    carry.check("mean", model(torch.linspace(0, 1, 5)).mean, atol=1e-3)


def case_variational(carry: Any) -> None:
    x, y = points()
    likelihood, model = gpytorch.likelihoods.BernoulliLikelihood(), Variational(torch.linspace(0, 1, 6))
    with torch.no_grad():
        model(x)
    model = carry.module("model", model)
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(x))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = -objective(model(x), (y > 0).float())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    carry.check("losses", losses)
    model.eval(), likelihood.eval()
    carry.check("chance", likelihood(model(torch.linspace(0, 1, 5))).mean, atol=1e-3)


def case_samples(carry: Any) -> None:
    likelihood = gpytorch.likelihoods.FixedNoiseGaussianLikelihood(torch.full((25,), 0.01))
    model = Exact(*points(), likelihood, gpytorch.kernels.MaternKernel()).eval()
    found = model(torch.linspace(0, 1, 7))
    base = torch.from_numpy(np.random.default_rng(0).standard_normal((4, 7), dtype=np.float32))
    carry.check("given", found.rsample(torch.Size([4]), base_samples=base), atol=5e-3)
    carry.check("shape", list(found.sample(torch.Size([4])).shape))
    fantasy = model.get_fantasy_model(torch.tensor([1.3]), torch.tensor([0.5]), noise=torch.tensor([0.01]))
    carry.check("fantasy", fantasy(torch.linspace(0.8, 1.4, 5)).mean, atol=1e-3)

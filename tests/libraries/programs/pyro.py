"""pyro: the density of a traced model, variational inference, Monte Carlo, and predictions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from pyro.infer import HMC, MCMC, NUTS, SVI, Predictive, Trace_ELBO, TraceEnum_ELBO, config_enumerate
from pyro.infer.autoguide import AutoDelta, AutoDiagonalNormal, AutoNormal
from pyro.nn import PyroModule, PyroSample


def points() -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.standard_normal((40, 2), dtype=np.float32))
    return x, x @ torch.tensor([1.0, -2.0]) + 0.5


def model(x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
    weight = pyro.sample("weight", dist.Normal(torch.zeros(2), 3.0).to_event(1))
    bias = pyro.sample("bias", dist.Normal(0.0, 3.0))
    scale = pyro.sample("scale", dist.HalfNormal(1.0))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(x @ weight + bias, scale), obs=y)


def case_density(carry: Any) -> None:
    x, y = points()
    weight = torch.tensor([0.9, -1.5], requires_grad=True)
    values = {"weight": weight, "bias": torch.tensor(0.3), "scale": torch.tensor(0.7)}
    trace = pyro.poutine.trace(pyro.condition(model, values)).get_trace(x, y)
    total = trace.log_prob_sum()
    total.backward()
    carry.check("total", total)
    carry.check("gradient", weight.grad)
    trace.compute_log_prob()
    carry.check("sites", {name: site["log_prob"] for name, site in trace.nodes.items() if "log_prob" in site})
    carry.check("shapes", trace.format_shapes())


def case_variational(carry: Any) -> None:
    for guide in (AutoNormal(model), AutoDiagonalNormal(model)):
        pyro.clear_param_store()
        inference = SVI(model, guide, pyro.optim.Adam({"lr": 0.1}), Trace_ELBO())
        found = [inference.step(*points()) for _ in range(40)]
        name = type(guide).__name__
        carry.check(f"{name} falls", bool(np.mean(found[-10:]) < np.mean(found[:10])))
        carry.check(f"{name} finite", all(bool(each.isfinite().all()) for each in guide.median().values()))
        carry.check(f"{name} parameters", sorted(pyro.get_param_store().keys()))
        drawn = Predictive(model, guide=guide, num_samples=5)(points()[0])
        carry.check(f"{name} shapes", {key: list(drawn[key].shape) for key in sorted(drawn)})


def case_point_estimate(carry: Any) -> None:
    pyro.clear_param_store()
    start = {"weight": torch.zeros(2), "bias": torch.tensor(0.1), "scale": torch.tensor(0.9)}
    guide = AutoDelta(model, init_loc_fn=pyro.infer.autoguide.init_to_value(values=start))
    inference = SVI(model, guide, pyro.optim.ClippedAdam({"lr": 0.05}), Trace_ELBO())
    carry.check("losses", [inference.step(*points()) for _ in range(20)])
    carry.check("median", guide.median())


def case_monte_carlo(carry: Any) -> None:
    for kernel in (NUTS(model, max_tree_depth=4), HMC(model, step_size=0.05, num_steps=4)):
        sampler = MCMC(kernel, num_samples=8, warmup_steps=8, disable_progbar=True)
        sampler.run(*points())
        found = sampler.get_samples()
        carry.check("shapes", {name: list(found[name].shape) for name in sorted(found)})
        carry.check("finite", all(bool(each.isfinite().all()) for each in found.values()))


def case_enumerated(carry: Any) -> None:
    @config_enumerate
    def mixture(values: torch.Tensor) -> None:
        shares = pyro.param("shares", torch.tensor([0.4, 0.6]), constraint=dist.constraints.simplex)
        means = pyro.param("means", torch.tensor([-1.0, 1.0]))
        with pyro.plate("data", len(values)):
            which = pyro.sample("which", dist.Categorical(shares))
            pyro.sample("values", dist.Normal(means[which], 1.0), obs=values)

    pyro.clear_param_store()
    inference = SVI(mixture, lambda values: None, pyro.optim.Adam({"lr": 0.1}), TraceEnum_ELBO(max_plate_nesting=1))
    carry.check("losses", [inference.step(points()[1]) for _ in range(8)])
    carry.check("shares", pyro.param("shares"))
    carry.check("means", pyro.param("means"))


def case_module(carry: Any) -> None:
    class Regression(PyroModule):
        def __init__(self) -> None:
            super().__init__()
            self.linear = PyroModule[torch.nn.Linear](2, 1)
            self.linear.weight = PyroSample(dist.Normal(0.0, 1.0).expand([1, 2]).to_event(2))

        def forward(self, x: torch.Tensor, y: torch.Tensor | None = None) -> torch.Tensor:
            mean = self.linear(x).squeeze(-1)
            with pyro.plate("data", len(x)):
                pyro.sample("y", dist.Normal(mean, 0.5), obs=y)
            return mean

    regression = Regression()
    with torch.no_grad():
        regression.linear.bias.fill_(0.2)
    held = pyro.condition(regression, {"linear.weight": torch.tensor([[0.5, -0.5]])})
    trace = pyro.poutine.trace(held).get_trace(*points())
    carry.check("total", trace.log_prob_sum())
    carry.check("mean", trace.nodes["_RETURN"]["value"])

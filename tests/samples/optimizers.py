"""PyTorch's optimizers with the options of its own tests: trajectories of equal parameters and gradients."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

import torch as reference
from torch.testing._internal.common_optimizers import OptimizerInput, optim_db

import tritensor

from .cases import Case
from .sides import Side, written

ENTRIES = {info.optim_cls.__name__: info for info in optim_db}
STEPS = 100
SHAPES = [(3, 4), (5, 2), (4,), (2, 3, 2), ()]
MORE = (  # options that PyTorch's tests do not have together
    ("ASGD", {"t0": 20, "lambd": 0.1, "weight_decay": 0.1}),
    ("Adam", {"decoupled_weight_decay": True, "weight_decay": 0.1}),
    ("Adadelta", {"lr": reference.tensor(0.5)}),
    ("Adafactor", {"eps": (1e-8, 1e-2), "lr": 0.1}),
    ("Adagrad", {"lr_decay": 0.1, "maximize": True, "initial_accumulator_value": 0.5}),
    ("LBFGS", {"line_search_fn": "strong_wolfe", "history_size": 3, "max_iter": 4}),
    ("LBFGS", {"max_iter": 3, "history_size": 2, "lr": 0.1}),
    ("Muon", {"nesterov": False, "adjust_lr_fn": "match_rms_adamw"}),
    ("NAdam", {"betas": (0.5, 0.6), "lr": reference.tensor([0.01])}),
    ("RAdam", {"betas": (0.5, 0.9)}),
    ("RMSprop", {"momentum": 0.9}),
    ("Rprop", {"step_sizes": (1e-3, 0.1), "lr": 0.1}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "maximize": True}),
)


class OptimizerCase:
    """Parameters in two groups get the same gradients in every step; their state is saved and loaded halfway."""

    def __init__(self, name: str, sample: OptimizerInput, dtype: Any, words: str | None = None) -> None:
        """A sample of an optimizer.

        Args:
            words: a regular expression for the error that the sample has to raise.
        """
        self.name, self.sample, self.dtype, self.words = name, sample, dtype, words
        info = ENTRIES[name]
        self.closure = info.step_requires_closure
        # PyTorch computes numbers of a step in float32, or here they are: see `_seen`
        tensors = [each for each in sample.kwargs.values() if reference.is_tensor(each)]
        self.rounded = bool(tensors) or sample.kwargs.get("differentiable") or name in ("ASGD", "NAdam")
        self.statement = f"torch.optim.{name}({written([['x']], sample.kwargs)})  # {sample.desc}"
        generator = reference.Generator().manual_seed(0)
        shapes = [shape for shape in SHAPES if name != "Muon" or len(shape) == 2]
        draw = {"generator": generator, "dtype": dtype}
        self.start = [reference.randn(shape, **draw) for shape in shapes]
        self.gradients = [[reference.randn(shape, **draw) for shape in shapes] for _ in range(STEPS)]

    def made(self, side: Side, params: Any) -> Any:
        """The optimizer."""
        return getattr(side.library.optim, self.name)(params, **side(deepcopy(self.sample.kwargs)))

    def facts(self, side: Side) -> dict[str, Any]:
        """The text and options of the optimizer, and its parameters and state after 1, 2, 50 and all steps."""
        if self.words is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                optimizer = self.made(side, side(self.start if self.sample.params is None else self.sample.params))
                optimizer.step()
            return {}
        differentiable = self.sample.kwargs.get("differentiable", False)
        leaves = [side(each).requires_grad_() for each in self.start]
        params = [each.clone() for each in leaves] if differentiable else leaves
        groups = [{"params": params[:2]}, {"params": params[2:]}] if params[2:] and not self.closure else params
        optimizer = self.made(side, groups)
        facts = {"repr": repr(optimizer), "defaults": sorted(optimizer.defaults)}
        facts["groups"] = [{**group, "params": len(group["params"])} for group in optimizer.param_groups]
        last = 1 if differentiable else STEPS // 10 if self.closure else STEPS  # a step of LBFGS is 20 iterations
        for count, gradients in enumerate(self.gradients[:last], 1):
            given = [side(each).requires_grad_(differentiable) for each in gradients]
            self.step(side, optimizer, params, given)
            if count in (1, 2, last // 2, last):
                state = deepcopy(optimizer.state_dict()["state"]) if not differentiable else {}
                facts |= {f"parameters after {count}": [each.detach().clone() for each in params]}
                facts |= {f"names of state after {count}": [(key, sorted(each)) for key, each in state.items()]}
                facts |= {f"state after {count}": {key: _seen(each) for key, each in state.items()}}
            if count == last // 2 and not differentiable:
                other = self.made(side, groups)
                other.load_state_dict(optimizer.state_dict())
                optimizer = other
        if differentiable and self.dtype is reference.float64:  # where rounding decides nothing
            with suppress(RuntimeError):  # PyTorch's Adamax and others change in place what their gradients need
                sum((each**2).sum() for each in params).backward()
                facts["gradients"] = [each.grad for each in (*leaves, *given)]
        if self.name in ("Muon", "LBFGS"):
            # the products of Muon are of bfloat16, in PyTorch as here; LBFGS stops where rounding says so
            coarse = _half if self.name == "Muon" or self.dtype is not reference.float64 else _single
            facts |= {name: coarse(value) for name, value in facts.items() if name.startswith("parameters")}
            facts = {name: value for name, value in facts.items() if not name.startswith("state") or not self.closure}
        elif self.rounded:
            facts |= {name: _single(value) for name, value in facts.items() if "after" in name or name == "gradients"}
        return facts

    def step(self, side: Side, optimizer: Any, params: list[Any], gradients: list[Any]) -> None:
        """One step; with a closure, of the distance from a point that moves a little."""
        if not self.closure:
            for param, gradient in zip(params, gradients, strict=True):
                param.grad = gradient
            optimizer.step()
            return
        targets = [gradient * 0.1 for gradient in gradients]

        def closure() -> Any:
            optimizer.zero_grad()
            loss = sum(((param - target) ** 2).sum() for param, target in zip(params, targets, strict=True))
            loss = loss + sum((param**4).sum() for param in params) / 10
            loss.backward()
            return loss

        optimizer.step(closure)


def _seen(state: dict[str, Any]) -> dict[str, Any]:
    """What can be compared of a state: when it was loaded, what is counted has the parameter's dtype in PyTorch."""
    return {key: float(value) if key in ("eta", "mu", "mu_product") else value for key, value in state.items()}


def _half(values: list[Any]) -> list[Any]:
    """Tensors in bfloat16, for its tolerance."""
    return [each.bfloat16() for each in values]


def _single(value: Any) -> Any:
    """Tensors in float32."""
    if isinstance(value, dict):
        return {key: _single(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_single(each) for each in value]
    return value.float() if hasattr(value, "is_floating_point") and value.is_floating_point() else value


def is_there(name: str) -> bool:
    """Whether there is such an optimizer here."""
    return hasattr(tritensor.optim, name)


def cases(name: str, dtype: reference.dtype, orders: int) -> Iterator[Case]:
    """The samples of an optimizer with each way of stepping, and those that have to raise."""
    info = ENTRIES[name]
    samples = [sample for sample in info.optim_inputs_func("cuda", dtype) if not sample.kwargs.get("capturable")]
    samples += [OptimizerInput(None, kwargs, "more") for other, kwargs in MORE if other == name]
    ways: list[dict[str, Any]] = [{}]
    for way in info.supported_impls:
        ways += [{way: True}] if way != "fused" or "cpu" in info.supports_fused_on else []
    for sample in samples if not info.only_supports_sparse_grads else []:
        for way in ways:
            if not (way.get("foreach") and any(reference.is_tensor(each) for each in sample.kwargs.values())):
                yield OptimizerCase(name, OptimizerInput(None, {**sample.kwargs, **way}, sample.desc), dtype)
    for wrong in info.optim_error_inputs_func("cpu", dtype) if info.optim_error_inputs_func else []:
        if "complex" not in wrong.optimizer_error_input.desc or not tritensor.cuda.is_available():  # devices have none
            yield OptimizerCase(name, wrong.optimizer_error_input, dtype, wrong.error_regex)

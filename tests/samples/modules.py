"""PyTorch's modules with the constructors and inputs of its own tests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch as reference
from torch.testing._internal.common_modules import ModuleErrorEnum, ModuleInput, module_db

import tritensor

from .cases import Case, facts_of_call
from .more_modules import ADDED
from .sides import Side, written

ENTRIES = {info.module_cls.__name__: info for info in (*module_db, *ADDED)}


class ModuleCase:
    """A module is made, gets PyTorch's weights, and is called in one of its modes."""

    def __init__(self, name: str, sample: ModuleInput, training: bool, orders: int, words: str | None = None) -> None:
        """A sample of a module.

        Args:
            words: a regular expression for the error that the sample has to raise.
        """
        self.name, self.sample, self.training, self.orders, self.words = name, sample, training, orders, words
        made, called = sample.constructor_input, sample.forward_input
        self.statement = f"torch.nn.{name}({written(made.args, made.kwargs)}){'' if training else '.eval()'}"
        if called is not None:
            self.statement += f"({written(called.args, called.kwargs)})"
        self.state: dict[str, Any] = {}

    def facts(self, side: Side) -> dict[str, Any]:
        """The module's text and state before the call, what the call gives, and the state after it."""
        made, called = self.sample.constructor_input, self.sample.forward_input
        module = getattr(side.library.nn, self.name)(*side(list(made.args)), **side(made.kwargs))
        facts: dict[str, Any] = {"repr": repr(module)}
        if called is None:
            return facts
        args, kwargs = side(list(called.args)), side(called.kwargs)
        floats = [each.dtype for each in (*args, *kwargs.values()) if getattr(each, "requires_grad", False)]
        module = module.to(floats[0] if floats else None).train(self.training)
        if hasattr(module, "has_uninitialized_params"):
            with side.library.no_grad():
                module(*args, **kwargs)
            facts["repr of the initialized"] = repr(module)
        facts["state at first"] = [(name, tuple(each.shape)) for name, each in module.state_dict().items()]
        if side.library is reference:
            self.state = {name: each.clone() for name, each in module.state_dict().items()}
        else:
            module.load_state_dict(side(self.state))
        facts |= facts_of_call(side, module, args, kwargs, list(module.parameters()), self.orders)
        facts["state"] = list(module.state_dict().values())
        facts["names of the state"] = list(module.state_dict())
        return facts


def is_there(name: str) -> bool:
    """Whether there is such a module here."""
    return hasattr(tritensor.nn, name)


def cases(name: str, dtype: reference.dtype, orders: int) -> Iterator[Case]:
    """The samples of a module in each mode that differs, and those that have to raise."""
    info = ENTRIES[name]
    refused = any(getattr(each, "test_name", "") == "test_gradgrad" for each in info.decorators)
    orders = min(orders, 1 + (info.supports_gradgrad and not refused))
    for training in (True, False) if info.train_and_eval_differ else (True,):
        options = {"device": "cpu", "dtype": dtype, "requires_grad": True, "training": training}
        for sample in info.module_inputs_func(info, **options):
            yield ModuleCase(name, sample, training, orders)
        if info.module_error_inputs_func is not None:
            for wrong in info.module_error_inputs_func(info, **options):
                sample = wrong.module_error_input
                if wrong.error_on is ModuleErrorEnum.CONSTRUCTION_ERROR:
                    sample = ModuleInput(sample.constructor_input)
                yield ModuleCase(name, sample, training, 0, wrong.error_regex)

"""Every public name of PyTorch's distributions is there, with its regions, flags and parameters."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

import pytest

from tritensor import distributions as d
from tritensor.distributions import constraints
from tritensor.scripts import names

pytestmark = pytest.mark.peer
PARTS = ("constraints", "transforms", "kl", "constraint_registry", "exp_family", "distribution")


@pytest.fixture(name="peer")
def of_pytorch() -> Any:
    return pytest.importorskip("torch.distributions")


def shown(value: Any) -> Any:
    """A region, a table of them or a flag as text; properties are alike."""
    if isinstance(value, dict):
        return {name: shown(each) for name, each in value.items()}
    return "a property" if isinstance(value, property) else repr(value)


def test_public_names_are_there(peer: Any) -> None:
    assert set(peer.__all__) <= set(d.__all__)
    for name in PARTS:
        theirs = importlib.import_module(f"torch.distributions.{name}")
        ours = importlib.import_module(f"tritensor.distributions.{name}")
        assert set(theirs.__all__) <= set(dir(ours)), name


def test_every_module_has_its_classes(peer: Any) -> None:
    for module in pkgutil.iter_modules(peer.__path__):
        found = names.facade(f"torch.distributions.{module.name}")
        assert found is not None, module.name
        theirs = importlib.import_module(f"torch.distributions.{module.name}")
        assert {name for name in theirs.__all__ if not hasattr(found, name)} == set(), module.name


def test_classes_have_the_same_regions_flags_and_members(peer: Any) -> None:
    for name in peer.__all__:
        theirs, ours = getattr(peer, name), getattr(d, name)
        if not inspect.isclass(theirs) or name in ("Distribution", "ExponentialFamily", "Independent"):
            continue
        for each in ("arg_constraints", "support", "has_rsample", "has_enumerate_support", "bijective"):
            if hasattr(theirs, each) and not isinstance(getattr(ours, each), property):
                assert shown(getattr(theirs, each)) == shown(getattr(ours, each)), (name, each)
        missing = {each for each in set(dir(theirs)) - set(dir(ours)) if not each.startswith("_")}
        assert missing == set(), name


def test_divergences_are_declared_for_the_same_pairs(peer: Any) -> None:
    pairs = [
        {(p.__name__, q.__name__) for p, q in registry if p.__module__.startswith(library)}
        for registry, library in ((peer.kl._KL_REGISTRY, "torch."), (d.kl._KL_REGISTRY, "tritensor."))
    ]
    assert pairs[0] == pairs[1]


def test_registries_know_the_same_regions(peer: Any) -> None:
    for name in ("biject_to", "transform_to"):
        theirs, ours = (set(getattr(library, name)._registry) for library in (peer, d))
        private = {kind: key for key, kind in vars(constraints).items() if inspect.isclass(kind) and key[0] == "_"}
        assert {kind.__name__ for kind in theirs} == {private.get(kind, kind.__name__) for kind in ours}

"""`nn.utils.prune`: what is zero afterwards, what a module holds, several methods on one parameter, and PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn
from tritensor.nn.utils import prune

VALUES = [[3.0, -1.0, 0.5], [-0.2, 4.0, -2.0]]


def layer(library: Any = torch) -> Any:
    made = library.nn.Linear(3, 2)
    made.weight.data.copy_(library.tensor(VALUES))
    made.bias.data.copy_(library.tensor([1.0, -2.0]))
    return made


def mask_of(module: Any, name: str = "weight") -> list[list[int]]:
    return [[int(each) for each in row] for row in getattr(module, f"{name}_mask").reshape(-1, 3).tolist()]


def test_the_smallest_are_pruned() -> None:
    made = layer()
    original = made.weight
    assert prune.l1_unstructured(made, "weight", amount=2) is made
    assert list(made.state_dict()) == ["bias", "weight_orig", "weight_mask"] and made.weight_orig is original
    assert mask_of(made) == [[1, 1, 0], [0, 1, 1]] and prune.is_pruned(nn.Sequential(made))
    assert made.weight.tolist() == [[3, -1, 0], [0, 4, -2]]
    made(torch.ones(1, 3)).sum().backward()
    assert original.grad.tolist() == [[1, 1, 0], [0, 1, 1]]
    with torch.no_grad():
        original.fill_(5.0)
    made(torch.ones(1, 3))
    assert made.weight.tolist() == [[5, 5, 0], [0, 5, 5]]
    assert prune.remove(made, "weight") is made and not prune.is_pruned(made)
    assert made.weight is original and original.tolist() == [[5, 5, 0], [0, 5, 5]]
    assert list(made.state_dict()) == ["bias", "weight"] and not made._forward_pre_hooks


def test_shares_and_scores() -> None:
    assert mask_of(prune.l1_unstructured(layer(), "weight", amount=0.5)) == [[1, 0, 0], [0, 1, 1]]
    assert mask_of(prune.l1_unstructured(layer(), "weight", amount=0)) == [[1] * 3] * 2
    scores = torch.tensor([[1.0, 2.0, 3.0], [0.0, 5.0, 6.0]])
    assert mask_of(prune.l1_unstructured(layer(), "weight", 2, scores)) == [[0, 1, 1], [0, 1, 1]]
    with pytest.raises(AssertionError, match="importance_scores should have the same shape as parameter weight of"):
        prune.l1_unstructured(layer(), "weight", 2, scores[:1])


def test_slices_are_pruned() -> None:
    assert mask_of(prune.ln_structured(layer(), "weight", 1, n=1, dim=1)) == [[1, 1, 0], [1, 1, 0]]
    assert mask_of(prune.ln_structured(layer(), "weight", 0.5, n=float("inf"), dim=0)) == [[0] * 3, [1] * 3]
    assert mask_of(prune.ln_structured(layer(), "weight", 1, n=2, dim=-2)) == [[0] * 3, [1] * 3]
    for dim, sums in ((0, [[0, 3], [3, 0]]), (1, [[1, 1]])):
        mask = np.array(mask_of(prune.random_structured(layer(), "weight", 2 - (dim == 0), dim)))
        assert (mask.sum(1).tolist() in sums) and len(set(mask.sum(0))) <= 2


def test_random_elements_are_pruned() -> None:
    torch.manual_seed(0)
    masks = [mask_of(prune.random_unstructured(layer(), "weight", 3)) for _ in range(8)]
    assert all(np.sum(mask) == 3 for mask in masks) and len({str(mask) for mask in masks}) > 1


def test_methods_after_one_another_prune_what_is_left() -> None:
    made = layer()
    prune.l1_unstructured(made, "weight", amount=2)
    prune.ln_structured(made, "weight", amount=1, n=1, dim=1)
    (hook,) = made._forward_pre_hooks.values()
    assert isinstance(hook, prune.PruningContainer) and len(hook) == 2
    assert [type(each).__name__ for each in hook] == ["L1Unstructured", "LnStructured"]
    assert isinstance(hook[0], prune.L1Unstructured)
    assert mask_of(made) == [[1, 1, 0], [0, 1, 0]]
    prune.l1_unstructured(made, "weight", amount=1)
    assert mask_of(made) == [[1, 0, 0], [0, 1, 0]]
    prune.custom_from_mask(made, "weight", torch.tensor([[0.0, 1, 1], [1, 1, 1]]))
    assert mask_of(made) == [[0, 0, 0], [0, 1, 0]]
    prune.identity(made, "weight")
    assert mask_of(made) == [[0, 0, 0], [0, 1, 0]]
    assert len(next(iter(made._forward_pre_hooks.values()))) == 5
    prune.remove(made, "weight")
    assert made.weight.tolist() == [[0, 0, 0], [0, 4, 0]]


def test_structured_after_structured_counts_what_is_left() -> None:
    made = layer()
    for expected in ([[0] * 3, [1] * 3], [[0] * 3, [0] * 3]):
        prune.ln_structured(made, "weight", amount=0.5 if expected[1][0] else 1, n=2, dim=0)
        assert mask_of(made) == expected


def test_parameters_compete() -> None:
    made = layer()
    pairs = [(made, "weight"), (made, "bias")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=4)
    assert mask_of(made) == [[1, 0, 0], [0, 1, 1]] and made.bias.tolist() == [0, -2]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=1, importance_scores={(made, "bias"): made.bias * 0})
    assert made.bias.tolist() == [0, 0] and mask_of(made) == [[1, 0, 0], [0, 1, 1]]
    for wrong, words in (
        ((made, prune.L1Unstructured), "parameters is not an Iterable"),
        ((pairs, prune.L1Unstructured, [1]), "importance_scores must be of type dict"),
        ((pairs, prune.RandomStructured), 'Only "unstructured" PRUNING_TYPE supported'),
    ):
        with pytest.raises(TypeError, match=words):
            prune.global_unstructured(*wrong, amount=1)


def test_a_tensor_is_pruned_alone() -> None:
    method = prune.L1Unstructured(amount=1)
    assert method.prune(torch.tensor([1.0, -3.0, 2.0])).tolist() == [0, -3, 2]
    mask = torch.tensor([1.0, 0.0, 1.0])
    assert method.prune(torch.tensor([1.0, 3.0, 2.0]), mask, torch.tensor([5.0, 9.0, 1.0])).tolist() == [1, 0, 0]
    with pytest.raises(AssertionError, match="importance_scores should have the same shape as tensor t"):
        method.prune(torch.ones(3), importance_scores=torch.ones(2))


class Odd(prune.BasePruningMethod):
    """Prunes every second element."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        mask = default_mask.clone()
        mask.view(-1)[::2] = 0
        return mask


def test_methods_of_ones_own() -> None:
    made = layer()
    Odd.apply(made, "weight")
    assert mask_of(made) == [[0, 1, 0], [1, 0, 1]]
    Odd.apply(made, "weight")
    assert mask_of(made) == [[0, 0, 0], [1, 0, 0]]
    for kind, error, words in (
        ("structured", AttributeError, "need to have the attribute `dim` defined"),
        ("other", ValueError, "Unrecognized PRUNING_TYPE other"),
    ):
        Odd.PRUNING_TYPE = kind
        with pytest.raises(error, match=words):
            Odd.apply(made, "weight")
        assert len(made._forward_pre_hooks) == 1 and mask_of(made) == [[0, 0, 0], [1, 0, 0]]
    Odd.PRUNING_TYPE = "unstructured"
    with pytest.raises(NotImplementedError):
        prune.BasePruningMethod().compute_mask(made.weight, made.weight)
    with pytest.raises(TypeError, match="is not a BasePruningMethod subclass"):
        next(iter(made._forward_pre_hooks.values())).add_pruning_method(1)
    stranger = Odd()
    stranger._tensor_name = "bias"
    with pytest.raises(ValueError, match="Can only add pruning methods acting on the parameter named 'weight'"):
        next(iter(made._forward_pre_hooks.values())).add_pruning_method(stranger)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: prune.l1_unstructured(x, "weight", "a"), TypeError, "Invalid type for amount: a. Must be int or fl"),
        (lambda x: prune.l1_unstructured(x, "weight", 1.5), ValueError, "amount=1.5 should either be a float in the"),
        (lambda x: prune.random_structured(x, "weight", -1, 0), ValueError, "amount=-1 should either be a float in"),
        (lambda x: prune.l1_unstructured(x, "weight", 7), ValueError, "amount=7 should be smaller than the number of"),
        (lambda x: prune.random_structured(x, "weight", 1, 2), IndexError, "Invalid index 2 for tensor of size"),
        (lambda x: prune.ln_structured(x, "bias", 1, 2, 0), ValueError, "Structured pruning can only be applied to mu"),
        (lambda x: prune.remove(x, "weight"), ValueError, "Parameter 'weight' of module Linear"),
        (
            lambda x: prune.custom_from_mask(x, "weight", torch.ones(3)),
            AssertionError,
            "must match self.mask shape",
        ),
    ],
)
def test_what_is_refused_changes_nothing(call: Any, error: type[Exception], words: str) -> None:
    made = layer()
    with pytest.raises(error, match=words):
        call(made)
    assert list(made.state_dict()) == ["weight", "bias"] and not made._forward_pre_hooks


@pytest.mark.peer
def test_pytorch_prunes_the_same() -> None:
    peer = pytest.importorskip("torch")
    import torch.nn.utils.prune as theirs

    found = []
    for library, methods in ((torch, prune), (peer, theirs)):
        made = layer(library)
        seen = []

        def note(made: Any = made, seen: Any = seen) -> None:
            seen.append({name: value.tolist() for name, value in made.state_dict().items()})

        methods.ln_structured(made, "weight", 0.4, n=2, dim=1)
        note()
        methods.l1_unstructured(made, "weight", 0.4)
        note()
        methods.ln_structured(made, "weight", 1, n=1, dim=0)
        note()
        methods.global_unstructured([(made, "weight"), (made, "bias")], methods.L1Unstructured, amount=0.3)
        note()
        x = library.ones(2, 3)
        made(x).sum().backward()
        seen.append([made.weight_orig.grad.tolist(), made.bias_orig.grad.tolist(), repr(made)])
        methods.remove(made, "weight")
        note()
        found.append(seen)
    assert found[0] == found[1]

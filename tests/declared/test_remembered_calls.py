"""Calls on the CPU that are remembered give what the first call of their kind gave, and keep nothing alive."""

from __future__ import annotations

import gc
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.errors import TritensorError
from tritensor.operators import Operator, registry
from tritensor.tensors import Tensor
from tritensor.types import dtypes

from .samples import dtypes_of, has_samples, samples
from .test_operators import as_tuple, case_id, generator, on_cpu

CASES = [(operator, dtype) for operator in registry.values() if has_samples(operator) for dtype in dtypes_of(operator)]


# What they do depends on the numbers in a tensor, so no call of theirs is remembered.
DEPENDING_ON_INDICES = {"index", "index_put", "gather", "scatter", "scatter_reduce", "embedding_bag"}


def outcome(operator: Operator, inputs: list[Any], metadata: dict[str, Any], leaves: list[int]) -> list[Any]:
    """Dtypes, shapes, strides and bits of the results and of the gradients, and the node's name; or the error."""
    inputs = list(inputs)
    for position in leaves:
        inputs[position] = inputs[position].detach().requires_grad_()
    try:
        results = as_tuple(operator(*inputs, **metadata))
        first = results[0]
        found = [x for x in results if isinstance(x, Tensor)]
        if first.requires_grad:
            first.backward(torch.ones_like(first))
            found += [inputs[i].grad for i in leaves if inputs[i].grad is not None]
    except TritensorError as error:
        return [str(error)]
    arrays = [np.asarray(x.detach()._data) for x in found]
    name = first.grad_fn.name() if first.grad_fn is not None else ""
    return [name, *[(x.dtype, x.shape, x.strides, x.tobytes()) for x in arrays]]


@pytest.mark.sampled(133)
@pytest.mark.parametrize(("operator", "dtype"), CASES, ids=case_id)
def test_a_call_that_is_remembered_gives_what_the_first_gave(operator: Operator, dtype: dtypes.dtype) -> None:
    compared = remembered = 0
    for sample in samples(operator, dtype, generator(operator, dtype)):
        inputs = on_cpu(sample)
        leaves = [i for i in sample.floating() if isinstance(inputs[i], Tensor)] if operator.differentiable else []
        for needed in ([], leaves):
            operator.replays.clear()
            first, second = (outcome(operator, inputs, sample.metadata, needed) for _ in range(2))
            assert first == second
            remembered += any(replay is not None for replay in operator.replays.values())
        compared += 1
        if compared == 6:
            break
    assert compared
    assert bool(remembered) == (operator.name not in DEPENDING_ON_INDICES)


def test_the_table_holds_the_call_and_its_number_is_read_again() -> None:
    x = torch.tensor([-2.0, 0.5, 3.0])
    clamp = registry["clamp"]
    clamp.replays.clear()
    assert x.clamp(0.0, 1.0).tolist() == [0.0, 0.5, 1.0]
    assert len(clamp.replays) == 1
    assert x.clamp(-1.0, 2.0).tolist() == [-1.0, 0.5, 2.0]
    assert len(clamp.replays) == 1 and None not in clamp.replays.values()
    elu = registry["elu"]
    elu.replays.clear()
    for alpha in (1.0, 2.0):
        found = elu(x, alpha=alpha)
        assert found[0].item() == pytest.approx(alpha * np.expm1(-2.0), rel=1e-6)
        leaf = x.clone().requires_grad_()
        elu(leaf, alpha=alpha).sum().backward()
        assert leaf.grad[0].item() == pytest.approx(alpha * np.exp(-2.0), rel=1e-6)


def test_keys_tell_apart_what_python_calls_equal() -> None:
    x = torch.tensor([1, 2], dtype=torch.int64)
    add = registry["maximum"]
    for value, kind in ((1, torch.int64), (1.0, torch.float32), (True, torch.int64)) * 2:
        assert add(x, value).dtype is kind
    cumsum = registry["cumsum"]
    for dtype in (None, torch.float64, torch.int32) * 2:
        assert cumsum(x, dim=0, dtype=dtype).dtype is (dtype or torch.int64)


def test_a_change_of_the_default_dtype_drops_what_is_remembered() -> None:
    x = torch.tensor([1, 4], dtype=torch.int64)
    sqrt = registry["sqrt"]
    for _ in range(2):
        assert sqrt(x).dtype is torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert sqrt.replays == {}
        assert sqrt(x).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_errors_are_raised_again_and_warnings_never() -> None:
    x, y = torch.ones(2, 3), torch.ones(4)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="must match the size"):
            registry["atan2"](x, y)
        with pytest.raises(IndexError, match="Dimension out of range"):
            x.amax(5)
        with pytest.raises(TypeError):
            x.amax("a")
    infinite = torch.tensor([float("inf"), -1.0, 0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            assert infinite.std().isnan()
            assert infinite.log_softmax(0).isnan().any()
            assert infinite.clamp(0.0, 1.0).tolist() == [1.0, 0.0, 0.0]
            registry["pow"](infinite, -0.5)


def test_a_remembered_call_keeps_no_tensor_alive() -> None:
    gc.disable()
    try:
        for call in (
            lambda x: x.clamp(0.0, 1.0),
            lambda x: x.softmax(0),
            lambda x: x.amax(),
            lambda x: x.std(),
            lambda x: x.lerp(x, 0.5),
            lambda x: torch.cat([x, x]),
        ):
            x = torch.ones(37)
            array = weakref.ref(x._data)
            call(x)
            del x
            assert array() is None
    finally:
        gc.enable()

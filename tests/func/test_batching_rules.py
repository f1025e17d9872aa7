"""`vmap` of every declared operator against a loop over the samples, and forward mode against the tape, derived."""

from __future__ import annotations

import itertools
import math
import warnings
import zlib
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.autograd import forward_ad
from tritensor.operators import Operator, registry
from tritensor.types import dtypes

from ..declared.samples import dtypes_of, has_samples, samples
from ..needs import needs_triton

OPERATORS = sorted((op for op in registry.values() if has_samples(op)), key=lambda op: op.name)
# One call for each sample where the classes' weights differ, or the tables that an input is resampled with.
# Bags and sequences without alignment always run in a loop.
LOOPED = frozenset(
    (
        *("cross_entropy", "cross_entropy_backward", "cross_entropy_with_gradient", "nll_loss", "resample"),
        *("ctc_loss", "ctc_backward", "embedding_bag"),
    )
)
QUICK = frozenset(
    (
        *("add", "where", "sum", "max_dim", "var", "cumsum", "matmul", "linear", "softmax", "layer_norm"),
        *("layer_norm_backward", "channel_norm", "convolution", "convolution_weight", "max_pool_with_indices"),
        *("im2col", "resample", "sample_places", "index", "index_put", "gather", "scatter", "cat", "sort"),
        *("cross_entropy", "cross_entropy_backward", "nll_loss", "rms_norm_backward"),
        *("scaled_dot_product_attention", "scaled_dot_product_attention_backward"),
    )
)
PARAMETERS = [pytest.param(op, id=op.name, marks=() if op.name in QUICK else pytest.mark.slow) for op in OPERATORS]
SIZE = 3


def has_rule(operator: Operator) -> bool:
    """Whether each of the operator's calls in a batch is one call."""
    return operator.name not in LOOPED and operator.batched is not None


def test_all_families_have_rules() -> None:
    """But `random`, whose operators have no inputs, and `range`; the operators of others run in a loop."""
    known = "elementwise reduction scan rowwise layer_norm rms_norm channel_norm matmul convolution resampling pooling "
    known += "folding sampling indexing joining sorting loss dropout attention hosted fourier triangular"
    without = {op.name for op in registry.values() if op.family in known.split() and not has_rule(op)}
    assert without == LOOPED


def generator(*names: Any) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(names).encode()))


def kind_of(operator: Operator) -> dtypes.dtype:
    known = dtypes_of(operator)
    return next(kind for kind in (dtypes.float64, dtypes.float32, dtypes.int64, dtypes.bool_) if kind in known)


def variants(operator: Operator, kind: dtypes.dtype) -> list[tuple[list[list[Any]], dict[str, Any]]]:
    """For each sample call its inputs drawn once for each sample of the batch, and its metadata."""
    drawn = [samples(operator, kind, generator(operator.name, row)) for row in range(SIZE)]
    return [([each.inputs for each in rows], rows[0].metadata) for rows in zip(*drawn, strict=True)]


def tensor(value: Any, device: str) -> Any:
    return torch.from_numpy(value).to(device) if isinstance(value, np.ndarray) else value


def masks(count: int) -> list[tuple[bool, ...]]:
    """Which of the inputs have a batch: all, each alone, and all but one."""
    every = list(itertools.product((True, False), repeat=count))
    return [mask for mask in every if sum(mask) in (1, count - 1, count) and any(mask)]


def as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def check(operator: Operator, kind: dtypes.dtype, device: str, most: int = 1000) -> None:
    for rows, metadata in variants(operator, kind)[:most]:
        arrays = [position for position, value in enumerate(rows[0]) if isinstance(value, np.ndarray)]
        for mask in masks(len(arrays)):
            batched = {position for position, whole in zip(arrays, mask, strict=True) if whole}
            if any(rows[0][i].shape != rows[1][i].shape for i in batched):
                continue
            inputs = [
                tensor(np.stack([row[i] for row in rows]) if i in batched else rows[0][i], device)
                for i in range(len(rows[0]))
            ]
            looped = []
            for number in range(SIZE):
                row = [tensor(rows[number if i in batched else 0][i], device) for i in range(len(rows[0]))]
                looped.append(as_tuple(operator(*row, **metadata)))
            dims = tuple(0 if i in batched else None for i in range(len(inputs)))
            with warnings.catch_warnings():
                if metadata.get("p"):  # dropout at the places that a seed counts: the same for each sample, in a loop
                    warnings.simplefilter("ignore")
                found = torch.vmap(lambda *x, metadata=metadata: operator(*x, **metadata), in_dims=dims)(*inputs)
            for out, parts in zip(as_tuple(found), zip(*looped, strict=True), strict=True):
                assert out.device == parts[0].device
                assert out.dtype is parts[0].dtype, (operator.name, mask, metadata)
                expected = np.stack([part.cpu().numpy() for part in parts])
                assert out.shape == expected.shape, (operator.name, mask, metadata, out.shape, expected.shape)
                np.testing.assert_allclose(
                    out.cpu().numpy(),
                    expected,
                    rtol=1e-4 if kind is not dtypes.float64 else 1e-9,
                    atol=1e-5 if kind is not dtypes.float64 else 1e-10,
                    err_msg=f"{operator.name} {mask} {metadata}",
                )


@pytest.mark.sampled(6)
@pytest.mark.parametrize("operator", PARAMETERS)
def test_a_batch_is_a_loop(operator: Operator) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error" if has_rule(operator) else "ignore")
        check(operator, kind_of(operator), "cpu")


@needs_triton
@pytest.mark.parametrize(
    "operator", [pytest.param(op, id=op.name, marks=pytest.mark.slow) for op in OPERATORS if op.name in QUICK]
)
def test_a_batch_is_a_loop_on_a_device(operator: Operator) -> None:
    kind = next(kind for kind in (dtypes.float32, dtypes.int64, dtypes.bool_) if kind in dtypes_of(operator))
    with torch.cuda.simulate(devices=1), warnings.catch_warnings():
        warnings.simplefilter("error" if has_rule(operator) else "ignore")
        check(operator, kind, "cuda", most=2)


# ---- forward mode -----------------------------------------------------------------------------------------------


DIFFERENTIABLE = [op for op in OPERATORS if op.differentiable and op.rule.differentiable]


def moved(value: Any, direction: Any, step: float) -> Any:
    return value if direction is None else np.asarray(value + step * direction, value.dtype)


@pytest.mark.parametrize(
    "operator",
    [pytest.param(op, id=op.name, marks=() if op.name in QUICK else pytest.mark.slow) for op in DIFFERENTIABLE],
)
def test_a_tangent_is_a_difference_quotient(operator: Operator) -> None:
    rng = generator(operator.name, "tangent")
    kind = dtypes.float64 if dtypes.float64 in dtypes_of(operator) else dtypes.float32
    for sample in samples(operator, kind, rng, gradient=True):
        if max([0, *(x.size for x in sample.inputs if isinstance(x, np.ndarray))]) > 1000:
            continue
        positions = [
            i for i in sample.floating() if operator.backward_for(tuple(i == k for k in range(len(sample.inputs))))
        ]
        directions = [rng.standard_normal(x.shape) if i in positions else None for i, x in enumerate(sample.inputs)]
        step = 1e-6
        ends = []
        for sign in (1, -1):
            inputs = [tensor(moved(x, d, sign * step), "cpu") for x, d in zip(sample.inputs, directions, strict=True)]
            ends.append(as_tuple(operator(*inputs, **sample.metadata))[0])
        expected = ((ends[0] - ends[1]) / (2 * step)).numpy()
        with forward_ad.dual_level():
            inputs = [
                tensor(x, "cpu")
                if d is None
                else forward_ad.make_dual(tensor(x, "cpu"), tensor(np.asarray(d, x.dtype), "cpu"))
                for x, d in zip(sample.inputs, directions, strict=True)
            ]
            found = forward_ad.unpack_dual(as_tuple(operator(*inputs, **sample.metadata))[0])
        if not positions:
            continue
        plain = [tensor(x, "cpu") for x in sample.inputs]
        value = as_tuple(operator(*plain, **sample.metadata))[0]
        np.testing.assert_array_equal(found.primal.numpy(), value.numpy())
        assert found.tangent.dtype is value.dtype
        np.testing.assert_allclose(found.tangent.numpy(), expected, rtol=2e-4, atol=2e-5, err_msg=operator.name)


@pytest.mark.parametrize("table", [(3, 7), (3, 7, 2)])
def test_the_gradient_of_a_shared_table_is_one_for_all_samples(table):
    """Nested, chained and beside a dimension that is not indexed; no gradient of a sample has the table's size."""
    found = []
    for lifted in (True, False):
        x = torch.arange(math.prod(table), dtype=torch.float64).reshape(table).requires_grad_()
        rows, cols = torch.arange(3), torch.randint(0, 7, (50,), generator=torch.Generator().manual_seed(0))

        def chosen(row, col, x=x):
            return x[row, col] * x[row][col] + x[:, col].sum() + x[row].sum(0).sum()

        if lifted:
            out = torch.vmap(torch.vmap(chosen, (None, 0)), (0, None))(rows, cols)
        else:
            out = torch.stack([torch.stack([chosen(row, col) for col in cols]) for row in rows])
        (out * out.detach()).sum().backward()
        found.append((out.detach(), x.grad))
    assert all(torch.allclose(own, other) for own, other in zip(*found, strict=True))

"""Tests of every registered operator, derived from the registry.

The kernel must agree with the reference on every dtype and layout, the gradient with its finite difference, the
in-place form with the other, and every kernel must compile for every target without a GPU.
"""

from __future__ import annotations

import warnings
import zlib
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.errors import TritensorError
from tritensor.kernels.elementwise.family import Elementwise
from tritensor.operators import Operator, registry
from tritensor.runtime.checking import mismatch, tolerance
from tritensor.tensors import Tensor, wrap
from tritensor.types import dtypes

from ..needs import needs_triton
from ..sampling import some
from .samples import TESTED_ALONE, Sample, dtypes_of, elementwise_inputs, has_samples, metadata_of, samples, values

OPERATORS = sorted(registry.values(), key=lambda operator: operator.name)
ELEMENTWISE = [operator for operator in OPERATORS if isinstance(operator, Elementwise)]
CASES = [(operator, dtype) for operator in OPERATORS if has_samples(operator) for dtype in dtypes_of(operator)]
ALWAYS = [
    f"{op.name} {(float32 if (float32 := dtypes.float32) in dtypes_of(op) else dtypes_of(op)[0]).name}"
    for op in dict(CASES)
]
TENSORS_ONLY = "hardshrink", "nextafter", "igamma", "igammac"  # of two tensors; hardshrink's second one is a number
PAIRS = [op for op in OPERATORS if has_samples(op) and op.on_pairs and op.rule.highest >= dtypes.COMPLEX]
CASES += [(operator, dtype) for operator in PAIRS for dtype in (dtypes.complex64, dtypes.complex128)]


def case_id(value: Any) -> str:
    return value.name if isinstance(value, (Operator, dtypes.dtype)) else str(value)


def generator(*names: Any) -> np.random.Generator:
    """A generator that depends on the test's names only, so that a failure can be run again alone."""
    return np.random.default_rng(zlib.crc32(repr(names).encode()))


def on_cpu(sample: Sample) -> list[Any]:
    return [torch.from_numpy(value) if isinstance(value, np.ndarray) else value for value in sample.inputs]


def on_device(inputs: list[Any]) -> list[Any]:
    return [value.to("cuda") if isinstance(value, Tensor) else value for value in inputs]


def as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def agree(operator: Operator, result: Any, expected: Any, terms: int = 1) -> None:
    """Fail unless a kernel's results and the reference's agree within the operator's tolerance."""
    for name, out, wanted in zip(operator.outputs, as_tuple(result), as_tuple(expected), strict=True):
        found, reference = out.detach()._to_host(), wanted.detach()._to_host()
        relative, absolute = tolerance(operator, wanted.dtype, terms)
        problem = mismatch(found, reference, relative, absolute)
        assert problem is None, f"{operator.name} ({name}) in {wanted.dtype}: {problem}"


def test_every_operator_has_samples() -> None:
    missing = [op.name for op in OPERATORS if not has_samples(op) and op.family not in TESTED_ALONE]
    assert missing == []


def test_every_operator_is_documented() -> None:
    assert [operator.name for operator in OPERATORS if not operator.__doc__] == []


def check_samples(operator: Operator, dtype: dtypes.dtype) -> None:
    """Fail unless the current CUDA device computes what the reference does, of every sample."""
    for sample in samples(operator, dtype, generator(operator.name, dtype.name)):
        inputs = on_cpu(sample)
        expected = operator(*inputs, **sample.metadata)
        terms = max([1, *(x.numel() for x in inputs if isinstance(x, Tensor))])
        result = operator(*on_device(inputs), **sample.metadata)
        agree(operator, result, expected, terms if operator.family != "elementwise" else 1)


@pytest.mark.sampled(120)
@needs_triton
@pytest.mark.parametrize(("operator", "dtype"), some(CASES, 3, ALWAYS), ids=case_id)
def test_kernel_matches_reference(operator: Operator, dtype: dtypes.dtype) -> None:
    with torch.cuda.simulate(devices=1), settings.block(32 if operator.family == "elementwise" else 0):
        check_samples(operator, dtype)


def layouts(x: Tensor) -> list[tuple[str, Tensor]]:
    """The elements of a (4, 6) CUDA tensor's array in every kind of memory layout."""

    def strided(data: Any, key: Any) -> Tensor:
        return wrap(data[key])

    doubled = torch.zeros(8, 12, dtype=x.dtype, device=x.device)
    doubled[::2, ::2] = x
    flipped = strided(x._data, (slice(None, None, -1), slice(None, None, -1))).clone()
    padded = torch.zeros(4, 7, dtype=x.dtype, device=x.device)
    padded[:, 1:] = x
    return [
        ("contiguous", x),
        ("transposed", x.t().contiguous().t()),
        ("sliced", doubled[::2, ::2]),
        ("misaligned", padded[:, 1:]),
        ("reversed", strided(flipped._data, (slice(None, None, -1), slice(None, None, -1)))),
    ]


def check_layouts(operator: Elementwise) -> None:
    """Fail unless the current CUDA device computes what the reference does, of operands in every memory layout."""
    rng = generator("layouts", operator.name)
    dtype = dtypes.float32 if dtypes.float32 in dtypes_of(operator) else dtypes.int32
    inputs = [torch.from_numpy(x) for x in elementwise_inputs(operator, [(4, 6)], dtype, rng)]
    expected = operator(*inputs, **metadata_of(operator))
    first = on_device(inputs)
    for position in range(len(inputs)):
        for name, variant in layouts(first[position]):
            arguments = [*first[:position], variant, *first[position + 1 :]]
            result = operator(*arguments, **metadata_of(operator))
            try:
                agree(operator, result, expected)
            except AssertionError as error:
                raise AssertionError(f"{name} layout of {operator.inputs[position]}: {error}") from None
    rows = [x[:1].expand(4, 6) for x in first]
    agree(
        operator,
        operator(*rows, **metadata_of(operator)),
        operator(*[x[:1].expand(4, 6) for x in inputs], **metadata_of(operator)),
    )


@pytest.mark.sampled(50)
@needs_triton
@pytest.mark.parametrize("operator", ELEMENTWISE, ids=case_id)
def test_kernel_takes_every_layout(operator: Elementwise) -> None:
    with torch.cuda.simulate(devices=1), settings.block(16):
        check_layouts(operator)


@needs_triton
@pytest.mark.parametrize("operator", [op for op in ELEMENTWISE if dtypes.float32 in dtypes_of(op)], ids=case_id)
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=case_id)
def test_special_values(operator: Elementwise, dtype: dtypes.dtype) -> None:
    special = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-30], dtype.numpy)
    if operator.rule.examines and isinstance(operator.domain, tuple):  # it refuses others
        special = special[(special >= operator.domain[0]) & (special <= operator.domain[1])]
    grids = np.meshgrid(*[special] * min(len(operator.inputs), 2), indexing="ij")
    arrays = [grids[i % len(grids)].ravel() for i in range(len(operator.inputs))]
    arrays = [
        x.astype(operator.kinds[name].numpy) if name in operator.kinds else x
        for name, x in zip(operator.inputs, arrays, strict=True)
    ]
    with torch.cuda.simulate(devices=1):
        inputs = [torch.from_numpy(x) for x in arrays]
        expected = operator(*inputs, **metadata_of(operator))
        result = operator(*on_device(inputs), **metadata_of(operator))
        if dtype is dtypes.float32:
            wide = operator(*[x.double() if x.dtype is dtype else x for x in inputs], **metadata_of(operator))
            for out, wanted, exact in zip(*map(as_tuple, (result, expected, wide)), strict=True):
                # a product that overflows in the reference does not where a sum follows in one instruction
                with np.errstate(over="ignore"):
                    fused = np.isnan(wanted.numpy()) & (out.cpu().numpy() == exact.numpy().astype(wanted.numpy().dtype))
                wanted[torch.from_numpy(fused)] = out.cpu()[torch.from_numpy(fused)]
        agree(operator, result, expected)


def differentiable(operator: Operator, sample: Sample) -> list[int]:
    names = operator.inputs
    positions = sample.floating()
    if operator.joint_gradient is None and not operator.variadic:
        positions = [i for i in positions if names[i] in operator.gradients_of]
    return positions


GRADIENTS = [operator for operator in OPERATORS if operator.differentiable and has_samples(operator)]


@pytest.mark.sampled(45)
@pytest.mark.parametrize("operator", GRADIENTS, ids=case_id)
@pytest.mark.parametrize("order", [1, 2])
def test_gradient_matches_finite_difference(operator: Operator, order: int) -> None:
    if order == 2 and getattr(operator, "first_order_only", False):
        pytest.skip("piecewise: the second derivative is zero or undefined")
    rng = generator("gradient", operator.name)
    tried = 0
    for sample in samples(operator, dtypes.float64, rng, gradient=True):
        positions = differentiable(operator, sample)
        size = sum(value.size for value in sample.inputs if isinstance(value, np.ndarray))
        if not positions or size == 0 or size > 130:
            continue
        tensors = on_cpu(sample)
        for position in positions:
            tensors[position].requires_grad = True
        call = lambda *inputs, sample=sample: operator(*inputs, **sample.metadata)  # noqa: E731
        outputs = as_tuple(call(*tensors))
        if not outputs[0].requires_grad:
            continue
        first = lambda *inputs, call=call: as_tuple(call(*inputs))[0]  # noqa: E731
        check = torch.autograd.gradcheck if order == 1 else torch.autograd.gradgradcheck
        check(first, tuple(tensors), atol=1e-4, rtol=1e-3)
        tried += 1
    assert tried, f"{operator.name}: no sample has a gradient"


@pytest.mark.parametrize(
    "operator", [op for op in ELEMENTWISE if hasattr(Tensor, f"{op.name}_") and op.name != "copy"], ids=case_id
)
def test_in_place_equals_out_of_place(operator: Elementwise) -> None:
    rng = generator("in place", operator.name)
    dtype = dtypes.float32 if dtypes.float32 in dtypes_of(operator) else dtypes.int32
    arrays = elementwise_inputs(operator, [(3, 4)], dtype, rng)
    if operator.inputs[0] in operator.kinds:
        pytest.skip("its first input has a dtype of its own")
    expected = operator(*[torch.from_numpy(x.copy()) for x in arrays], **metadata_of(operator))
    tensors = [torch.from_numpy(x.copy()) for x in arrays]
    view = tensors[0][1:]
    result = getattr(tensors[0], f"{operator.name}_")(*tensors[1:], **metadata_of(operator))
    assert result is tensors[0]
    assert result._version == 1 and view._version == 1
    np.testing.assert_array_equal(result.numpy(), expected.to(dtype).numpy())
    np.testing.assert_array_equal(view.numpy(), expected.to(dtype).numpy()[1:])


@pytest.mark.parametrize("operator", [op for op in ELEMENTWISE if len(op.inputs) == 2], ids=case_id)
def test_shapes_that_do_not_broadcast_are_refused(operator: Elementwise) -> None:
    dtype = dtypes.float32 if dtypes.float32 in dtypes_of(operator) else dtypes.int32
    x, y = (torch.ones(n, dtype=dtype) for n in (3, 4))
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(3\) must match the size of tensor b \(4\)"):
        operator(x, y, **metadata_of(operator))


@needs_triton
@pytest.mark.parametrize("operator", [op for op in OPERATORS if len(op.inputs) > 1 and has_samples(op)], ids=case_id)
def test_mixed_devices_are_refused(operator: Operator) -> None:
    dtype = dtypes.float32 if dtypes.float32 in dtypes_of(operator) else dtypes.int64
    with torch.cuda.simulate(devices=2):
        for sample in samples(operator, dtype, generator("mixed", operator.name)):
            arrays = [i for i, value in enumerate(sample.inputs) if isinstance(value, np.ndarray) and value.ndim]
            if len(arrays) < 2 or any(sample.inputs[i].size == 0 for i in arrays):
                continue
            inputs = on_cpu(sample)
            moved = list(inputs)
            moved[arrays[0]] = moved[arrays[0]].to("cuda:1")
            for i in arrays[1:]:
                moved[i] = moved[i].to("cuda:0")
            with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device") as caught:
                operator(*moved, **sample.metadata)
            assert "cuda:1" in str(caught.value) and ".to(" in str(caught.value)
            return
    pytest.skip("takes one tensor only in every sample")


def test_warnings_of_numpy_do_not_reach_users() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.tensor([1.0]).div(torch.tensor([0.0])).item() == float("inf")
        assert (torch.tensor([1e38]) * 1e38).item() == float("inf")
        assert np.isnan((torch.zeros(1) / 0).item())


def test_every_operator_refuses_what_is_no_tensor() -> None:
    for operator in OPERATORS:
        if operator.variadic or operator.family in TESTED_ALONE:
            continue
        with pytest.raises((TypeError, TritensorError), match=rf"{operator.name}\(\)"):
            operator(*["text"] * len(operator.inputs), **metadata_of(operator))


@pytest.mark.parametrize("operator", ELEMENTWISE, ids=case_id)
def test_result_dtype_follows_promotion(operator: Elementwise) -> None:
    """A tensor with dimensions outweighs one without in its category, and Python numbers come last."""
    public = bool(operator.methods)
    if not public or len(operator.inputs) != 2 or dtypes.float64 not in dtypes_of(operator) or operator.kinds:
        pytest.skip("needs two inputs of one rule")
    rng = generator("promotion", operator.name)
    x = torch.from_numpy(values((3,), dtypes.float32, rng, (0.1, 2.0)))
    wide = torch.from_numpy(values((), dtypes.float64, rng, (0.1, 2.0)))
    expected = operator.rule.result or dtypes.float32
    assert operator(x, wide, **metadata_of(operator)).dtype is expected
    assert operator(x, 1.5, **metadata_of(operator)).dtype is expected
    assert operator(x, wide.expand(3), **metadata_of(operator)).dtype is (operator.rule.result or dtypes.float64)


@pytest.mark.parametrize("operator", [each for each in ELEMENTWISE if len(each.inputs) == 2], ids=case_id)
def test_a_number_counts_as_a_tensor_of_no_dimensions(operator: Elementwise) -> None:
    """On either side: the dtype of the result, and the gradient of the other operand."""
    name = operator.name.removeprefix("special_")
    call = getattr(torch, name, None) or getattr(torch.special, name, None)
    if call is None or operator.kinds or operator.metadata or name in TENSORS_ONLY:
        pytest.skip("is no public function of two operands, or none of numbers")
    for dtype in {dtypes.float32, dtypes.float64, dtypes.bfloat16}.intersection(dtypes_of(operator)):
        for number, place in ((2.0, 0), (2, 0), (2.0, 1), (2, 1)):
            x = torch.tensor([1.25, 1.5], dtype=dtype, requires_grad=True)
            y, other = x.detach().clone().requires_grad_(), torch.tensor(2.0, dtype=dtype)
            made, expected = (
                call(*((x, number) if place else (number, x))),
                call(*((y, other) if place else (other, y))),
            )
            assert made.dtype is expected.dtype
            # one of them may be computed by native code, where that is forced
            arrays = [np.asarray(each.detach()) for each in (made, expected)]
            assert mismatch(*arrays, *tolerance(operator, made.dtype)) is None
            assert made.requires_grad == expected.requires_grad
            if made.requires_grad and (name, place) != ("zeta", 1):  # of which PyTorch has no gradient either
                made.sum().backward()
                expected.sum().backward()
                assert x.grad.dtype is dtype and torch.allclose(x.grad, y.grad, 1e-2 if dtype.itemsize < 4 else 1e-5)


@pytest.mark.parametrize("operator", [each for each in ELEMENTWISE if each.method is not None], ids=case_id)
def test_methods_give_the_operators_dtype(operator: Elementwise) -> None:
    """Of tensors without dimensions NumPy's functions return numbers, whose dtype need not be the result's."""
    if operator.metadata or operator.kinds:
        pytest.skip("has no quick path")
    for dtype in dtypes.ALL:
        for shape in ((), (2,)):
            inputs = [torch.ones(shape, dtype=dtype) for _ in operator.inputs]
            try:
                expected = operator.prepared(tuple(inputs), {}).results[0]
            except TritensorError:
                continue
            assert operator.method(*inputs).dtype is expected, (dtype, shape)


@pytest.mark.parametrize(
    "operator", [each for each in ELEMENTWISE if len(each.inputs) > 1 and each.methods], ids=case_id
)
def test_gradients_beside_integers_have_their_tensors_dtype(operator: Elementwise) -> None:
    if not operator.differentiable or operator.kinds:
        pytest.skip("has no such gradient")
    for dtype in (dtypes.float16, dtypes.float64):
        for position in range(len(operator.inputs)):
            inputs = [torch.tensor([1, 2]) for _ in operator.inputs]
            x = inputs[position] = torch.tensor([1.0, 1.5], dtype=dtype, requires_grad=True)
            try:
                result = operator(*inputs, **metadata_of(operator))
            except TritensorError:
                continue
            if result.requires_grad:
                result.sum().backward()
                assert x.grad.dtype is dtype
                wide = [torch.tensor([1.0, 2.0], dtype=dtypes.float64) for _ in inputs]
                y = wide[position] = x.detach().double().requires_grad_()
                operator(*wide, **metadata_of(operator)).sum().backward()
                assert torch.allclose(x.grad.double(), y.grad, 1e-2 if dtype is dtypes.float16 else 1e-12)

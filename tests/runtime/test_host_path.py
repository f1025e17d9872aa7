"""The short way of repeated calls on a device: the same results from other memory, on the tape and in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.errors import DeviceError
from tritensor.operators import Operator, registry
from tritensor.operators import operator as operator_module
from tritensor.tensors import Tensor
from tritensor.types import dtypes

from ..declared.samples import dtypes_of, has_samples, samples
from ..declared.test_operators import agree, generator, on_cpu, on_device
from ..needs import HAS_TRITON
from .interpreted_device import Interpreted
from .repeated_calls import results, tensor

if not HAS_TRITON:
    pytest.skip("running kernels needs Triton", allow_module_level=True)

REPEATABLE = [
    op for op in sorted(registry.values(), key=lambda op: op.name) if op.repeatable is True and has_samples(op)
]


def turned(operator: Operator, inputs: list[Any]) -> list[Any]:
    """The same forms with other elements; but the places of maxima belong to their windows."""
    count = 1 if operator.name == "max_pool_backward" else len(inputs)
    others = [torch.from_numpy(np.array(np.flip(x.numpy()))) if isinstance(x, Tensor) else x for x in inputs[:count]]
    return [*others, *inputs[count:]]


def pairs(operator: Operator) -> Any:
    """The same of complex numbers; all but a few operators in the slow group."""
    quick = operator.name in ("add", "mul", "where", "add_scaled", "abs", "sum", "prod", "cumsum", "matmul", "cat")
    marks = () if quick else pytest.mark.slow
    return pytest.param(operator, dtypes.complex64, marks=marks, id=f"{operator.name}-complex64")


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("operator", "dtype"),
    [
        *(pytest.param(operator, None, id=operator.name) for operator in REPEATABLE),
        *(pairs(operator) for operator in REPEATABLE if operator.on_pairs and operator.rule.highest == dtypes.COMPLEX),
    ],
)
def test_repeated_calls_compute_what_the_first_did(
    operator: Operator, dtype: Any, gpu: Interpreted, long_ways: list[str]
) -> None:
    if dtype is None:
        dtype = dtypes.float32 if dtypes.float32 in dtypes_of(operator) else dtypes_of(operator)[0]
    for sample in samples(operator, dtype, generator("repeat", operator.name))[:4]:
        first = on_cpu(sample)
        terms = max([1, *(x.numel() for x in first if isinstance(x, Tensor))])
        held = []
        for repetition, inputs in enumerate([first, turned(operator, first), first]):
            placed = on_device(inputs)
            long_ways.clear()
            result = operator(*placed, **sample.metadata)
            expected = operator(*inputs, **sample.metadata)
            agree(operator, result, expected, terms if operator.family != "elementwise" else 1)
            empty = all(out.numel() == 0 for out in (result if isinstance(result, tuple) else (result,)))
            assert repetition == 0 or empty or operator.name not in long_ways
            held.append((placed, result))  # so that the next call gets other memory


# ---- which calls are repeated ---------------------------------------------------------------------------------------


def test_methods_go_the_short_way_from_the_second_call_on(gpu: Interpreted, long_ways: list[str]) -> None:
    for i in (1.0, 2.0, 3.0):
        x, y = tensor(i, -i), tensor(10.0, 20.0)
        assert results(x + y, x * y, -x, x.exp() * 0, x * i, 6 / x, 2 - x, x + 1, x.clamp(min=0.0)) == [
            [10 + i, 20 - i],
            [10 * i, -20 * i],
            [-i, i],
            [0, 0],
            [i * i, -i * i],
            [6 / i, -6 / i],
            [2 - i, 2 + i],
            [i + 1, 1 - i],
            [i, 0],
        ]
        if i == 1.0:
            long_ways.clear()
    assert long_ways == []


def test_numbers_may_change_from_call_to_call(gpu: Interpreted, long_ways: list[str]) -> None:
    add = registry["add_scaled"]
    for dtype, given in [(torch.float32, 0.1), (torch.float64, 0.1), (torch.float16, 0.5), (torch.int64, 2**40)]:
        x = tensor(1, 2, 3, dtype=dtype)
        for factor in (given, given + 1, given - 3, -given):
            assert results(x * factor, add(x, x, alpha=factor)) == results(
                x.cpu() * factor, add(x.cpu(), x.cpu(), alpha=factor)
            )
    assert len(long_ways) == 8
    assert str((tensor(1.0, dtype=torch.float64) * -0.0).item()) == "-0.0"
    assert str((tensor(1.0, dtype=torch.float64) * -0.0).item()) == "-0.0"


def test_numbers_beside_complex_tensors_may_change_from_call_to_call(gpu: Interpreted, long_ways: list[str]) -> None:
    add, z = registry["add_scaled"], tensor(1 + 2j, -3j, dtype=torch.complex64)
    for i in (1.0, 2.0, 3):
        found = results(z * i, z + i, i / z * z, z**i * 0, add(z, z, alpha=i), z.clone().fill_(i))
        assert found[:2] == [[i + 2j * i, -3j * i], [1 + i + 2j, i - 3j]]
        assert found[2] == pytest.approx([i, i]) and found[3:] == [[0, 0], [(1 + i) * (1 + 2j), -3j * (1 + i)], [i, i]]
        if i == 1.0:
            long_ways.clear()
        if i == 2.0:
            assert long_ways == []  # of an integer there is a combination of its own
    for _ in range(2):
        assert results(z * 2j, torch.where(z.real > 0, z, 1j)) == [[-4 + 2j, 6], [1 + 2j, 1j]]


def test_kinds_of_numbers_are_told_apart(gpu: Interpreted) -> None:
    x = tensor(1, 2, dtype=torch.int64)
    for _ in range(2):
        assert (x * 2).dtype is torch.int64
        assert (x * 2.0).dtype is torch.float32
        assert (x * True).dtype is torch.int64
        assert results(x.sum(dim=0), x.sum(dim=0, keepdim=True), x.sum(dim=(0,)), x.sum(dim=[0])) == [3, [3], 3, 3]


def test_numbers_that_do_not_fit_raise_as_they_do_the_long_way(gpu: Interpreted) -> None:
    x, y = tensor(1.0, 2.0), tensor(1, 2, dtype=torch.int64)
    assert results(x + 1, y + 1) == [[2, 3], [2, 3]]
    assert results(x * 1e300) == [[float("inf")] * 2]
    for call in (lambda: x + 10**400, lambda: 10**400 - x, lambda: registry["add_scaled"](x, x, alpha=10**400)):
        with pytest.raises(OverflowError):
            call()
    assert results(x + 1) == [[2, 3]]


def test_every_layout_is_a_combination_of_its_own(gpu: Interpreted, long_ways: list[str]) -> None:
    base = torch.arange(48.0, device="cuda").reshape(6, 8)
    host = base.cpu()
    views = [
        lambda x: x,
        lambda x: x[1:],
        lambda x: x[:, 1:],
        lambda x: x.t(),
        lambda x: x[2],
        lambda x: x[::2, ::3],
        lambda x: x[0, 4:],
        lambda x: x[3, 4:],
        lambda x: x[:1].expand(6, 8),
        lambda x: x[0, 0],
    ]
    for _ in range(2):
        for view in views:
            x, y = view(base), view(host)
            assert results(x + x, x * 2, -x, x.sum()) == results(y + y, y * 2, -y, y.sum())
    first = long_ways.count("add")
    assert first == len(views) - 1  # x[0, 4:] and x[3, 4:] are alike: both begin at a multiple of 16 bytes
    assert results(base[3] + base[:, :1]) == results(host[3] + host[:, :1])


def test_one_array_twice_and_two_views_of_one_are_told_apart(gpu: Interpreted) -> None:
    base = torch.arange(32.0, device="cuda")
    first, second, other = base[:16], base[16:], torch.zeros(16, device="cuda")
    for _ in range(2):
        assert (first + second).tolist() == [16 + 2 * i for i in range(16)]
        assert (second + second).tolist() == [32 + 2 * i for i in range(16)]
        assert (first + other).tolist() == list(range(16))
        assert torch.cat([second, first, second])[::16].tolist() == [16, 0, 16]


@pytest.mark.thorough
def test_results_of_many_outputs_and_many_launches(gpu: Interpreted, long_ways: list[str]) -> None:
    x = torch.randn(3, 5000, device="cuda")
    with settings.block(64):
        for _ in range(2):
            long_ways.clear()
            values, places = x.max(dim=1)
            assert places.tolist() == x.cpu().max(dim=1)[1].tolist()
            assert values.tolist() == x.cpu().max(dim=1)[0].tolist()
            np.testing.assert_allclose((x @ x.t()).cpu().numpy(), (x.cpu() @ x.cpu().t()).numpy(), rtol=1e-3)
    assert long_ways == []


# ---- gradients ------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_repeated_calls_are_recorded_on_the_tape(gpu: Interpreted) -> None:
    def gradients(device: str) -> list[Any]:
        x = tensor(0.5, 2.0, -1.0, device=device, needs=True)
        y = tensor(3.0, 4.0, 5.0, device=device, needs=True)
        row = tensor(0.25, 1.0, 2.0, device=device, dtype=torch.float64, needs=True).reshape(3, 1)
        out = (
            x * y
            + x / 2
            - (2 - y) * -x
            + (x.exp() * row).sum()
            + x.clamp(min=0.0)
            + torch.cat([x, y]).sum()
            + x.softmax(0)
            + registry["add_scaled"](x, y, alpha=3.0)
        )
        out.sum().backward()
        assert (x + y).grad_fn.name() == "AddBackward0"
        return results(x.grad, y.grad)

    expected = gradients("cpu")
    for _ in range(3):
        for found, wanted in zip(gradients("cuda"), expected):
            assert found == pytest.approx(wanted, rel=1e-5)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shapes", [((3,), (3,)), ((2, 3), (3,)), ((), (3,))])
@pytest.mark.parametrize("kinds", [(torch.float32, torch.float32), (torch.float16, torch.float32)])
@pytest.mark.parametrize("needs", [(True, True), (True, False), (False, True)])
def test_gradients_have_their_inputs_shape_and_dtype(gpu: Interpreted, shapes: Any, kinds: Any, needs: Any) -> None:
    for _ in range(3):
        x, y = (
            torch.full(shape, 2.0, dtype=kind, device="cuda", requires_grad=need)
            for shape, kind, need in zip(shapes, kinds, needs)
        )
        (x * y).sum().backward()
        for operand, other, need in ((x, y, needs[0]), (y, x, needs[1])):
            if need:
                assert (operand.grad.shape, operand.grad.dtype) == (operand.shape, operand.dtype)
                expected = 2.0 * other.numel() / operand.numel() if operand.numel() < other.numel() else 2.0
                assert set(operand.grad.reshape(-1).tolist()) == {expected}
            else:
                assert operand.grad is None


def test_a_change_in_place_after_a_repeated_call_is_noticed(gpu: Interpreted) -> None:
    for _ in range(2):
        x, y = tensor(1.0, 2.0, needs=True), tensor(3.0, 4.0)
        out = x * y
        with torch.no_grad():
            y.add_(1.0)
        with pytest.raises(RuntimeError, match="modified by an inplace"):
            out.sum().backward()


def test_a_repeated_call_notes_the_users_line(gpu: Interpreted) -> None:
    x = tensor(1.0, 2.0, needs=True)
    for _ in range(2):
        out = x * x
    line = test_a_repeated_call_notes_the_users_line.__code__.co_firstlineno + 3
    assert out.grad_fn.where() == f"{__file__}:{line} in test_a_repeated_call_notes_the_users_line"


def test_nothing_is_recorded_that_was_not_asked_for(gpu: Interpreted) -> None:
    x = tensor(1.0, 2.0, needs=True)
    for _ in range(2):
        with torch.no_grad():
            assert not (x + x).requires_grad
            assert not (-x).requires_grad
            assert not x.softmax(0).requires_grad
        assert not (x > x).requires_grad
        assert (2 * x).requires_grad


# ---- changes in place -----------------------------------------------------------------------------------------------


def test_changes_in_place_take_one_launch(gpu: Interpreted, long_ways: list[str]) -> None:
    for i in (1.0, 2.0):
        x, y = tensor(i, -i), tensor(10.0, 20.0)
        address, version = x.data_ptr(), x._version
        gpu.launches.clear()
        long_ways.clear()
        x.add_(y).mul_(2.0).sub_(1).add_(x).neg_()
        assert x.tolist() == [-(4 * (10 + i) - 2), -(4 * (20 - i) - 2)]
        assert (x.data_ptr(), x._version - version, len(gpu.launches)) == (address, 5, 5)
    assert long_ways == []


def test_a_change_by_another_tensor_is_repeated_without_looking_at_the_call_again(
    gpu: Interpreted, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tensor(0.0, 0.0).add_(tensor(1.0, 1.0)).tolist() == [1, 1]
    x, y, needed = tensor(1.0, 2.0), tensor(10.0, 20.0), tensor(1.0, 1.0, needs=True)
    memory = x.data_ptr()
    with monkeypatch.context() as patch:
        patch.setattr(operator_module, "key_of", None)
        x.add_(y).add_(y)
        with torch.no_grad():
            needed.add_(y)
        whole = tensor(0.0, 0.0, 5.0, 6.0)
        with pytest.raises(TypeError):
            whole[2:].add_(whole[:2])  # views, and of one memory
    assert results(x, y, needed) == [[21, 42], [10, 20], [11, 21]]
    assert (x.data_ptr(), x._version) == (memory, 2)
    with torch.cuda.stream(torch.cuda.Stream()):
        assert x.add_(y).tolist() == [31, 62]  # memory of another stream, which is told of this one
    gpu.failure = RuntimeError("CUDA_ERROR_INVALID_VALUE: no")
    with pytest.raises(DeviceError, match="at the launch of add"):
        x.add_(y)
    gpu.failure = None


def test_changes_in_place_of_views_and_of_what_overlaps(gpu: Interpreted) -> None:
    for device in ("cpu", "cuda"):
        for _ in range(2):
            x = torch.arange(8.0, device=device)
            x[1:].add_(x[:-1])
            assert x.tolist() == [0, 1, 3, 5, 7, 9, 11, 13]
            x[::2].mul_(x[::2])
            assert x.tolist() == [0, 1, 9, 5, 49, 9, 121, 13]
            grid = x.reshape(2, 4)
            grid.add_(grid[:1])
            assert x.tolist() == [0, 2, 18, 10, 49, 10, 130, 18]
            grid.t().sub_(torch.ones(2, device=device))
            assert x.tolist() == [-1, 1, 17, 9, 48, 9, 129, 17]
            assert x._version == 4


def test_changes_in_place_that_do_not_fit_are_refused(gpu: Interpreted) -> None:
    for _ in range(2):
        x, whole = tensor(1.0, 2.0), tensor(1, 2, dtype=torch.int64)
        with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
            x[:1].add_(x)
        with pytest.raises(RuntimeError, match="can't be cast"):
            whole.add_(0.5)
        with pytest.raises(RuntimeError, match="single memory location"):
            x[:1].expand(2).add_(1.0)
        assert results(x.half().add_(x), x.add_(whole)) == [[2, 4], [2, 4]]
        assert x.add_(torch.tensor(1.0)).tolist() == [3, 5]


def test_changes_in_place_of_what_needs_a_gradient(gpu: Interpreted) -> None:
    for _ in range(3):
        leaf, factor = tensor(1.0, 2.0, needs=True), tensor(3.0, 4.0, needs=True)
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            leaf.add_(1.0)
        view = leaf[:]
        with torch.no_grad():
            leaf.add_(1.0)
        with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
            view.add_(1.0)
        with torch.no_grad():
            view = leaf[:]
        with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being modified inplace"):
            view.add_(1.0)
        x = leaf * 1.0
        x.mul_(factor)
        y = tensor(1.0, 1.0).mul_(factor)
        (x.sum() + y.sum()).backward()
        assert results(leaf.grad, factor.grad) == [[3, 4], [3, 4]]


def test_checked_mode_and_simulations_change_in_place_too(gpu: Interpreted) -> None:
    x = tensor(1.0, 2.0)
    with settings.check(True):
        assert x.add_(1.0).tolist() == [2, 3]
    with torch.cuda.simulate(), settings.simulate_late(True):
        assert tensor(1.0, 2.0).add_(1.0).mul_(3.0).tolist() == [6, 9]

"""The short way of repeated calls on a device: the same results from other memory; the long way where it must be."""

from __future__ import annotations

import gc
import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import dtypes, settings
from tritensor.errors import DeviceError
from tritensor.operator import Operator, registry
from tritensor.runtime import replay
from tritensor.tensor import Tensor, wrap

from ..declared.samples import dtypes_of, has_samples, samples
from ..declared.test_operators import agree, case_id, generator, on_cpu, on_device
from .interpreted_device import Interpreted, interpreted_device

if importlib.util.find_spec("triton") is None:
    pytest.skip("running kernels needs Triton", allow_module_level=True)

REPEATABLE = [op for op in sorted(registry.values(), key=lambda op: op.name) if op.repeatable and has_samples(op)]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Interpreted]:
    with interpreted_device(2) as driver:
        yield driver


@pytest.fixture
def long_ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the operators that have gone the long way."""
    found: list[str] = []
    execute = Operator.execute_on

    def noted(self: Operator, *args: Any) -> Any:
        found.append(self.name)
        return execute(self, *args)

    monkeypatch.setattr(Operator, "execute_on", noted)
    return found


def turned(inputs: list[Any]) -> list[Any]:
    """The same forms with other elements."""
    return [torch.from_numpy(np.array(np.flip(x.numpy()))) if isinstance(x, Tensor) else x for x in inputs]


@pytest.mark.parametrize("operator", REPEATABLE, ids=case_id)
def test_repeated_calls_compute_what_the_first_did(operator: Operator, gpu: Interpreted, long_ways: list[str]) -> None:
    dtype = dtypes.float32 if dtypes.float32 in dtypes_of(operator) else dtypes_of(operator)[0]
    for sample in samples(operator, dtype, generator("repeat", operator.name))[:4]:
        first = on_cpu(sample)
        terms = max([1, *(x.numel() for x in first if isinstance(x, Tensor))])
        held = []
        for repetition, inputs in enumerate([first, turned(first), first]):
            placed = on_device(inputs)
            long_ways.clear()
            result = operator(*placed, **sample.metadata)
            expected = operator(*inputs, **sample.metadata)
            agree(operator, result, expected, terms if operator.family != "elementwise" else 1)
            empty = all(out.numel() == 0 for out in (result if isinstance(result, tuple) else (result,)))
            assert repetition == 0 or empty or operator.name not in long_ways
            held.append((placed, result))  # so that the next call gets other memory


def tensor(*numbers: float, dtype: Any = torch.float32, device: str = "cuda", needs: bool = False) -> Tensor:
    return torch.tensor(numbers, dtype=dtype, device=device, requires_grad=needs)


def results(*tensors: Any) -> list[Any]:
    return [x.tolist() for x in tensors]


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
        for tensor, other, need in ((x, y, needs[0]), (y, x, needs[1])):
            if need:
                assert (tensor.grad.shape, tensor.grad.dtype) == (tensor.shape, tensor.dtype)
                expected = 2.0 * other.numel() / tensor.numel() if tensor.numel() < other.numel() else 2.0
                assert set(tensor.grad.reshape(-1).tolist()) == {expected}
            else:
                assert tensor.grad is None


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
        patch.setattr(replay, "key_of", None)
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
        with torch.no_grad():
            view = leaf[:]
            leaf.add_(1.0)
        with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
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


# ---- when it has to be the long way ---------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", [settings.check(True), settings.debug(1), settings.debug(2)])
def test_checked_and_debug_mode_see_every_launch(gpu: Interpreted, long_ways: list[str], setting: Any) -> None:
    x = tensor(1.0, 2.0)
    for _ in range(2):
        assert results(x + x) == [[2, 4]]
    assert long_ways == ["add"]
    with setting:
        for _ in range(2):
            assert results(x + x, x.sum()) == [[2, 4], 3]
    assert long_ways[1:] == ["add", "sum"] * 2
    for _ in range(2):
        assert results(x + x) == [[2, 4]]
    assert long_ways[5:] == ["add"]


def test_what_launches_depend_on_is_prepared_anew_when_it_changes(gpu: Interpreted, long_ways: list[str]) -> None:
    x, y = tensor(1, 2, dtype=torch.int64), torch.ones(32, 32, device="cuda")
    for _ in range(2):
        assert x.exp().dtype is torch.float32
        y @ y
    torch.set_default_dtype(torch.float64)
    try:
        assert x.exp().dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert long_ways == ["exp", "matmul", "exp"]
    y @ y
    before = gpu.launches[-1]
    torch.set_float32_matmul_precision("medium")
    try:
        long_ways.clear()
        y @ y
        assert long_ways == ["matmul"]
    finally:
        torch.set_float32_matmul_precision("highest")
    assert before[0] == gpu.launches[-1][0]


def test_a_simulation_beside_the_device_does_not_meet_its_replays(gpu: Interpreted) -> None:
    x = tensor(1.0, 2.0)
    assert results(x + x, x + x) == [[2, 4]] * 2
    with torch.cuda.simulate():
        y = tensor(3.0, 4.0)
        assert results(y + y, y.sum()) == [[6, 8], 7]


def test_operators_that_look_into_memory_are_not_repeated(gpu: Interpreted) -> None:
    x = torch.arange(5.0, device="cuda")
    for places in ([1, 2], [3, 4], [0, 0]):
        assert x[torch.tensor(places, device="cuda")].tolist() == places
    with pytest.raises(IndexError):
        x[torch.tensor([1, 9], device="cuda")]
    torch.manual_seed(0)
    first, second = torch.rand(4, device="cuda"), torch.rand(4, device="cuda")
    assert first.tolist() != second.tolist()


def test_launches_on_memory_of_unknown_origin_are_not_repeated(
    gpu: Interpreted, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tensor(5.0, 6.0)
    operator = registry["maximum"]
    launch = type(operator).launch

    def with_its_own(self: Any, outs: Any, arrays: Any, compute: Any, metadata: Any) -> None:
        launch(self, outs, [arrays[0], kept._data] if self is operator else arrays, compute, metadata)

    monkeypatch.setattr(type(operator), "launch", with_its_own)
    for i in (4.0, 7.0, 5.5):
        assert operator(tensor(i, i), tensor(9.0, 9.0)).tolist() == [max(i, 5.0), max(i, 6.0)]
    assert list(operator.replays.values()) == [None]


def test_operators_within_a_launch_are_part_of_its_recording(
    gpu: Interpreted, long_ways: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    operator = registry["maximum"]
    launch = type(operator).launch
    x, y = tensor(1.0, 2.0), tensor(4.0, 6.0)
    assert results(x + y, x + y, y.exp().sum() * 0) == [[5, 8]] * 2 + [0]

    def of_the_sum(self: Any, outs: Any, arrays: Any, compute: Any, metadata: Any) -> None:
        if self is operator:
            first, second = (wrap(array) for array in arrays)
            for _ in range(3):
                first = (first + second).sum(dim=0, keepdim=True) - second
            arrays = [first._data, arrays[1]]
        launch(self, outs, arrays, compute, metadata)

    monkeypatch.setattr(type(operator), "launch", of_the_sum)
    expected = []
    for i in (0.0, 1.0, 2.0):
        first, second = np.array([1.0 + i, 2.0]), np.array([4.0, 6.0])
        for _ in range(3):
            first = (first + second).sum() - second
        expected.append(np.maximum(first, second).tolist())
        long_ways.clear()
        assert operator(tensor(1.0 + i, 2.0), y).tolist() == expected[-1]
    assert long_ways == []
    assert len(operator.replays[x._data.form, y._data.form].steps) == 10  # type: ignore[union-attr]


def test_arguments_that_cannot_be_keys_go_the_long_way(gpu: Interpreted, long_ways: list[str]) -> None:
    x = torch.ones(2, 3, device="cuda")
    for _ in range(2):
        with pytest.raises((TypeError, RuntimeError)):
            x.sum(dim=[[0]])
        assert (x + np.float32(1)).tolist() == [[2.0] * 3] * 2
        assert (x + torch.tensor(1.0)).tolist() == [[2.0] * 3] * 2
        assert registry["add"](x, other=x).tolist() == [[2.0] * 3] * 2
        assert registry["mul"](x, other=2.0).tolist() == [[2.0] * 3] * 2
    assert long_ways == ["add", "add", "add", "mul"] * 2


def test_combinations_do_not_pile_up(gpu: Interpreted, monkeypatch: pytest.MonkeyPatch) -> None:
    from tritensor.memory import array
    from tritensor.runtime import trace as recording

    monkeypatch.setattr(recording, "_MOST", 3)
    monkeypatch.setattr(array, "_MOST_FORMS", 3)
    monkeypatch.setattr(array, "_forms", {})
    monkeypatch.setattr(array, "_new_forms", {})
    for size in [*range(1, 9), 1, 2]:
        x = torch.ones(size, device="cuda")
        assert (x[::2] + x[::2]).tolist() == [2.0] * ((size + 1) // 2)
        assert len(registry["add"].replays) <= 3
        assert len(array._forms) <= 4
        assert len(array._new_forms) <= 3


# ---- streams, devices, threads, failures ----------------------------------------------------------------------------


def test_memory_that_another_stream_made_is_not_given_out_too_early(gpu: Interpreted) -> None:
    side = torch.cuda.Stream()
    x = tensor(1.0, 2.0)
    assert results(x + x, x * 2, -x, x.softmax(0).sum()) == [[2, 4], [2, 4], [-1, -2], 1]
    with torch.cuda.stream(side):
        for call in (lambda x: x + x, lambda x: x * 2, lambda x: -x, lambda x: x.softmax(0)):
            x = tensor(1.0, 2.0)
            with torch.cuda.stream(torch.cuda.default_stream()):
                out = call(x)
            assert out._data.buffer.arena is torch.cuda.default_stream().arena
            assert x._data.buffer.users == [torch.cuda.default_stream().arena]


def test_each_device_has_its_own(gpu: Interpreted) -> None:
    for _ in range(2):
        for index in (0, 1):
            x = tensor(1.0, index, device=f"cuda:{index}")
            gpu.placed.clear()
            out = x + x
            assert (str(out.device), out.tolist()) == (f"cuda:{index}", [2.0, 2.0 * index])
            assert set(gpu.placed) == {index}
    with pytest.raises(RuntimeError, match="same device"):
        tensor(1.0, 2.0) + tensor(1.0, 2.0, device="cuda:1")


def test_other_threads_take_the_short_way_too(gpu: Interpreted, long_ways: list[str]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def work(i: float) -> list[Any]:
        x = tensor(i, -i)
        return results(x + x, x * i, -x, x.sum())

    work(1.0)
    long_ways.clear()
    with ThreadPoolExecutor(4) as pool:
        for i, found in enumerate(pool.map(work, map(float, range(20)))):
            assert found == [[2 * i, -2 * i], [i * i, -i * i], [-i, i], 0]
    assert long_ways == []


def test_a_launch_that_fails_names_the_operator_and_keeps_no_memory(gpu: Interpreted) -> None:
    x = tensor(1.0, 2.0)
    assert results(x + x, x.sum()) == [[2, 4], 3]
    torch.cuda.synchronize()
    gc.collect()
    before = torch.cuda.memory_allocated()
    gpu.failure = RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")
    for call in (lambda: x + x, lambda: x.sum()):
        with pytest.raises(DeviceError, match=r"(?s)illegal memory access.*at the launch of"):
            call()
    gpu.failure = None
    gc.collect()
    assert torch.cuda.memory_allocated() == before
    assert results(x + x) == [[2, 4]]


def test_every_way_says_what_it_has_launched(gpu: Interpreted) -> None:
    x, y = tensor(1.0, 2.0), tensor(3.0, 4.0)
    calls = (lambda: x + y, lambda: x.exp(), lambda: x * 2, lambda: y.sub_(x), lambda: x.softmax(0))
    names = ["add", "exp", "mul", "sub", "softmax"]
    for _ in range(2):
        gpu.launched.clear()
        for call in calls:
            call()
        found = [entry.name.split("_")[-1] for entry in gpu.launched]
        assert found == names
    gpu.failure = RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")
    for call in calls:
        with pytest.raises(DeviceError, match=r"launched last, newest first: .*softmax, .*sub, .*mul, .*exp, .*add"):
            call()
    gpu.failure = None
    with settings.debug(1):
        x.exp()
    assert gpu.launched[-1].startswith("exp at ") and "test_host_path.py" in gpu.launched[-1]


def test_a_recording_that_fails_leaves_nothing_behind(gpu: Interpreted) -> None:
    x = tensor(1.0, 2.0)
    x.exp()
    gpu.failure = RuntimeError("CUDA_ERROR_UNKNOWN")
    with pytest.raises(DeviceError):
        x + x
    gpu.failure = None
    assert registry["add"].replays == {}
    assert results(x + x, x + x) == [[2, 4]] * 2


def test_memory_runs_out_on_the_short_way_as_on_the_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with interpreted_device() as driver:
        object.__setattr__(driver._properties, "total_memory", 64 << 10)
        x = torch.ones(1024, device="cuda")
        held = [x + x for _ in range(2)]
        with pytest.raises(torch.cuda.OutOfMemoryError, match=r"(?s)Tried to allocate 4.00 KiB.*live: 4.00 KiB"):
            held.extend(x + x for _ in range(100))
        count = len(held)
        del held[1:]
        again = [x + x for _ in range(count - 1)]
        assert again[-1].tolist() == [2.0] * 1024


def test_replays_wait_for_a_real_device(monkeypatch: pytest.MonkeyPatch, long_ways: list[str]) -> None:
    with torch.cuda.simulate():
        x = tensor(1.0, 2.0)
        for _ in range(3):
            assert results(x + x) == [[2, 4]]
        assert long_ways == ["add"] * 3
        assert registry["add"].replays == {}
    assert not replay.active.on

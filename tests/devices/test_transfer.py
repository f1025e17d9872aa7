"""What `.to` moves, when it copies, what comes back, and what is refused; on simulated devices."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings

from ..needs import needs_triton

pytestmark = needs_triton


@pytest.fixture(autouse=True)
def devices():
    with torch.cuda.simulate(devices=3):
        yield


def test_to_returns_self_when_nothing_changes() -> None:
    x = torch.ones(3)
    for same in (
        x.to(),
        x.to(None),
        x.to("cpu"),
        x.to(torch.float32),
        x.to(x),
        x.float(),
        x.cpu(),
        x.contiguous(),
        x.to("cpu", torch.float32),
        x.to(device="cpu"),
        x.to(dtype=torch.float32),
        x.to("cpu:1"),
    ):
        assert same is x
    assert x.to("cpu", copy=True) is not x and x.to(torch.float32, copy=True) is not x
    y = x.cuda(1)
    for same in (y.cuda(1), y.to("cuda:1"), y.to(1), y.to(y), y.to(torch.device("cuda", 1))):
        assert same is y


def test_every_overload() -> None:
    x = torch.ones(2)
    other = torch.ones(1, dtype=torch.float64, device="cuda:2")
    for moved in (
        x.to("cuda:2", torch.float64),
        x.to(other),
        x.to(other=other),
        x.to(device="cuda:2", dtype=torch.float64),
        x.to(torch.device("cuda:2"), dtype=torch.float64, non_blocking=True),
        x.to(other, True, True),
        x.to(2, torch.float64, True, False),
    ):
        assert str(moved.device) == "cuda:2" and moved.dtype is torch.float64 and moved.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    "arguments", [([1],), ("cuda", "cpu"), (torch.float32, torch.float32), ("cuda", torch.float32, 1), (2.5,)]
)
def test_arguments_of_no_overload(arguments) -> None:
    with pytest.raises(TypeError, match=r"to\(\) received an invalid combination of arguments"):
        torch.ones(1).to(*arguments)


def test_cuda_means_the_current_device() -> None:
    x = torch.ones(1)
    assert str(x.cuda().device) == "cuda:0"
    with torch.cuda.device(2):
        assert str(x.cuda().device) == "cuda:2" and str(torch.zeros(1, device="cuda").device) == "cuda:2"
    assert str(x.to("cuda").device) == "cuda:0"


def test_devices_that_are_not_there() -> None:
    x = torch.ones(1)
    with pytest.raises(RuntimeError, match="CUDA error: invalid device ordinal"):
        x.to("cuda:3")
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        x.to("gpu")
    with pytest.raises(RuntimeError, match="Invalid device string: 'cuda:x'"):
        x.to("cuda:x")


def test_gradient_comes_back_to_the_source() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.to("cuda:1", torch.float64)
    assert not y.is_leaf and y.grad_fn.name() == "ToCopyBackward0"
    (y * torch.tensor([2.0, 3.0], dtype=torch.float64, device="cuda:1")).sum().backward()
    assert x.grad.device == torch.device("cpu") and x.grad.dtype is torch.float32 and x.grad.tolist() == [2.0, 3.0]
    assert not x.to(torch.int32).requires_grad


def test_values_survive_every_way() -> None:
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    x = torch.from_numpy(array)
    moved = x.transpose(0, 2).to("cuda:0")
    np.testing.assert_array_equal(moved.cpu().numpy(), array.transpose(2, 1, 0))
    np.testing.assert_array_equal(moved[1:, :, 0].cpu().numpy(), array.transpose(2, 1, 0)[1:, :, 0])
    np.testing.assert_array_equal(moved.to("cuda:2").cpu().numpy(), array.transpose(2, 1, 0))
    scalar = torch.tensor(3.5).cuda()
    assert scalar.shape == () and scalar.cpu().shape == () and scalar.item() == 3.5
    assert torch.zeros(0, 3).cuda().cpu().shape == (0, 3)


@pytest.mark.parametrize("source", ["bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"])
def test_casts_agree_with_numpy(source: str) -> None:
    values = torch.tensor([0.0, 1.0, 2.5, 100.0, 3.0], dtype=torch.float64).to(getattr(torch, source))
    for name in ("bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "float64"):
        target = getattr(torch, name)
        expected = values.to(target)
        for result in (
            values.to("cuda", target),
            values.cuda().to(target),
            values.cuda().to("cuda:1", target),
            values.cuda().to("cpu", target),
        ):
            assert result.dtype is target and result.cpu().tolist() == expected.tolist()


def test_simulated_memory_is_isolated() -> None:
    x = torch.ones(2, device="cuda:1")
    with pytest.raises(TypeError, match="can't convert cuda:1 device type tensor to numpy"):
        x.numpy()
    with pytest.raises(TypeError, match="can't convert cuda:1 device type tensor to numpy"):
        np.asarray(x)
    with pytest.raises(TypeError, match="device"):
        np.add(np.ones(2), x._data)
    assert x.numpy(force=True).tolist() == [1.0, 1.0]
    assert (x.item if x.numel() == 1 else x.sum().item)() == 2.0
    assert "device='cuda:1'" in repr(x) and "Simulated" in torch.cuda.get_device_name(1)


def test_numpy_of_a_tensor_with_gradient() -> None:
    with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        torch.ones(1, requires_grad=True).numpy()


def test_mixed_devices_name_everything() -> None:
    x, y = torch.ones(2, device="cuda:0"), torch.ones(2, device="cuda:1")
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device") as caught:
        x * y
    text = str(caught.value)
    assert "mul" in text and "cuda:0" in text and "cuda:1" in text and ".to('cuda:0')" in text
    assert (x * torch.tensor(3.0)).tolist() == [3.0, 3.0]
    assert (torch.tensor(3.0) * x).device == x.device
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        x * torch.tensor(3.0, device="cuda:1")


def test_unfinished_copies_are_waited_for() -> None:
    """Streams that run late on purpose: every reader must wait, and one that did not would see poison."""
    with settings.simulate_late(True):
        x = torch.full((4,), 7.0, device="cuda")
        pending = x.to("cpu", non_blocking=True)
        assert type(pending._data).__name__ == "PendingArray"
        for read in (
            lambda t: t.tolist(),
            lambda t: t.numpy().tolist(),
            lambda t: (t + 0).tolist(),
            lambda t: t[:].tolist(),
            lambda t: (t * t).sqrt().tolist(),
            lambda t: t.clone().tolist(),
            lambda t: t.cuda(1).tolist(),
            lambda t: [float(word.strip("tensor([]). ")) for word in repr(t).split(",")],
        ):
            assert read(x.to("cpu", non_blocking=True)) == [7.0] * 4
        source = torch.ones(3)
        moved = source.to("cuda", non_blocking=True)
        source.fill_(9)
        assert moved.tolist() == [1.0] * 3
        pinned = torch.ones(3).pin_memory()
        assert pinned.is_pinned() and not source.is_pinned()
        moved = pinned.to("cuda", non_blocking=True)
        assert moved.tolist() == [1.0] * 3


def test_pin_memory() -> None:
    x = torch.ones(2)
    assert x.pin_memory().tolist() == [1.0, 1.0] and x.pin_memory().is_pinned()
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        x.cuda().pin_memory()


def test_clone_and_contiguous() -> None:
    x = torch.arange(6.0).reshape(2, 3).cuda()
    y = x.t()
    assert not y.is_contiguous() and y.contiguous().is_contiguous() and y.contiguous().tolist() == y.tolist()
    copied = x.clone()
    copied.zero_()
    assert x.tolist() != copied.tolist()


def test_default_device() -> None:
    with torch.device("cuda:1"):
        assert str(torch.zeros(2).device) == "cuda:1" and torch.from_numpy(np.ones(2)).device.type == "cpu"
        with torch.device("cpu"):
            assert torch.zeros(2).device.type == "cpu"
        assert str(torch.tensor([1]).device) == "cuda:1"
    torch.set_default_device("cuda:2")
    try:
        assert str(torch.ones(1).device) == "cuda:2" and torch.get_default_device() == torch.device("cuda:2")
    finally:
        torch.set_default_device(None)
    assert torch.ones(1).device.type == "cpu"


def test_memory_runs_out_when_told_to() -> None:
    with torch.cuda.simulate(devices=1, memory="1MB"):
        with pytest.raises(RuntimeError, match="CUDA out of memory"):
            torch.zeros(1_000_000, device="cuda")
        assert torch.zeros(1000, device="cuda").sum().item() == 0


def test_dlpack_shares_on_the_cpu_and_is_refused_elsewhere() -> None:
    x = torch.zeros(3)
    shared = np.from_dlpack(x)
    x.add_(1)
    assert shared.tolist() == [1.0] * 3
    array = np.zeros(2)
    y = torch.from_dlpack(array)
    array[0] = 5
    assert y.tolist() == [5.0, 0.0] and torch.from_dlpack(x).data_ptr() == x.data_ptr()
    for call in (np.from_dlpack, lambda x: x.__dlpack__()):
        with pytest.raises(BufferError, match="can't export a tensor on cuda:0 through DLPack"):
            call(x.cuda())
    with pytest.raises(TypeError, match="cannot take a list"):
        torch.from_dlpack([1, 2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool])
@pytest.mark.parametrize("late", [False, True])
def test_a_copy_into_host_memory_goes_straight_there(dtype: torch.dtype, late: bool) -> None:
    with settings.simulate_late(late):
        x = torch.arange(3000).to(dtype).cuda()
        for target in (torch.zeros(3000, dtype=dtype).pin_memory(), torch.zeros(3000, dtype=dtype)):
            address, version, pinned = target.data_ptr(), target._version, target.is_pinned()
            with torch.cuda.transfers() as ledger:
                assert target.copy_(x) is target
            (copy,) = [entry for entry in ledger.entries if entry.kind == "d2h"]
            assert (copy.nbytes, copy.pinned) == (x.nbytes, pinned)
            ledger.assert_at_most(h2d=0, d2h=1, syncs=1)
            assert (target.data_ptr(), target._version) == (address, version + 1)
            assert torch.equal(target, x.cpu())
            target[1:2999].copy_(x[2:])
            assert torch.equal(target[1:2999], x[2:].cpu()) and torch.equal(target[:1], x[:1].cpu())


def test_a_copy_into_host_memory_that_takes_more_than_moving_bytes() -> None:
    x = torch.arange(6.0).cuda().requires_grad_()
    target = torch.zeros(6)
    target.copy_(x)
    (target * 2).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [2.0] * 6
    x = x.detach()
    for target in (torch.zeros(2, 6), torch.zeros(6, dtype=torch.int64), torch.zeros(12)[::2], torch.zeros(3, 2).t()):
        source = x.reshape(2, 3) if target.shape == (2, 3) else x
        assert torch.equal(target.copy_(source), source.cpu().to(target.dtype).expand(target.shape))
    assert torch.zeros(3, 2).copy_(x.reshape(2, 3).t()).tolist() == [[0, 3], [1, 4], [2, 5]]
    locked = np.zeros(6, np.float32)
    locked.flags.writeable = False
    with pytest.raises((ValueError, RuntimeError)):
        torch.from_numpy(locked).copy_(x)
    assert not locked.any()


def test_copy_between_overlapping_views() -> None:
    """The kernel never reads what it writes, whichever way its programs run."""
    for order in ("forward", "reverse", "shuffle"):
        with settings.grid_order(order), settings.block(2):
            x = torch.arange(16.0).cuda()
            x[1:].copy_(x[:-1])
            assert x.tolist() == [0.0, *map(float, range(15))]
            x[:-1].copy_(x[1:])
            assert x.tolist() == [*map(float, range(15)), 14.0]


@pytest.mark.parametrize("told", [True, False])
def test_memory_that_another_stream_uses_is_not_given_out_again(told: bool) -> None:
    side = torch.cuda.Stream()
    with settings.simulate_late(True):
        x = torch.ones(300_000, device="cuda")  # of a size that nothing else has
        torch.cuda.synchronize()
        address, found = x.data_ptr(), []
        side.driver.submit(side, lambda: found.append(side.driver.memory(address, 4).view(np.float32).sum()))
        if told:
            x.record_stream(side)
        del x
        y = torch.zeros(300_000, device="cuda")
        assert y.data_ptr() == address
        torch.cuda.current_stream().synchronize()  # unless told, the zeros come first
        side.synchronize()
        assert found == [1 if told else 0] and not y.any()


def test_streams_that_cannot_use_a_tensor() -> None:
    stream = torch.cuda.Stream(1)
    for x in (torch.ones(1), torch.ones(1, device="cuda:0")):
        with pytest.raises(
            RuntimeError, match=r"^record_stream\(\): the stream and the tensor are on different devices"
        ):
            x.record_stream(stream)
    with pytest.raises(TypeError, match=r"^record_stream\(\): argument 's' \(position 1\) must be Stream, not int"):
        torch.ones(1).record_stream(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("there", ["cpu", "cuda:1"])
@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        (torch.float32, torch.bfloat16),
        (torch.float64, torch.float32),
        (torch.int64, torch.uint8),
        (torch.float32, torch.bool),
    ],
)
def test_a_copy_that_changes_the_dtype_moves_the_narrower_one(there: str, wide, narrow) -> None:
    values = [[0.0, 1.0, 2.0], [3.0, 100.0, 0.0]]
    for view in (lambda x: x, lambda x: x.t(), lambda x: x[:, 1:]):
        x = view(torch.tensor(values).to(wide))
        expected = x.to(narrow).tolist()
        for source, target, device in ((wide, narrow, there), (narrow, wide, there), (wide, narrow, "cuda:0")):
            start = x.to(source) if device == "cuda:0" else view(torch.tensor(values).to(source).cuda())
            with torch.cuda.transfers() as ledger:
                moved = start.to(device, target)
            assert moved.dtype is target and moved.to(narrow).tolist() == expected
            copies = [entry for entry in ledger.entries if entry.kind != "sync"]
            assert [entry.nbytes for entry in copies] == [x.numel() * narrow.itemsize]
    pending = torch.tensor(values).to(wide).cuda().to("cpu", narrow, non_blocking=True)
    assert pending.tolist() == torch.tensor(values).to(narrow).tolist()


def test_a_change_in_place_that_finds_no_memory_changes_nothing() -> None:
    with torch.cuda.simulate(memory="40KiB"):
        x = torch.ones(4096, device="cuda")
        version = x._version
        with pytest.raises(torch.cuda.OutOfMemoryError, match=r"Tried to allocate 16.00 KiB"):
            x.mul_(x.softmax(0) + x)
        assert x._version == version and x.sum().item() == 4096


def test_copy_takes_a_number():
    for device in ("cpu", "cuda"):
        assert torch.zeros(2, dtype=torch.float64, device=device).copy_(0.1).tolist() == [0.1, 0.1]
        assert torch.zeros(2, dtype=torch.int64, device=device).copy_(2.5).tolist() == [2, 2]
        assert torch.zeros(2, dtype=torch.uint8, device=device).copy_(300).tolist() == [44, 44]
        assert torch.zeros((), dtype=torch.bool, device=device).copy_(-1).item() is True
    x = torch.ones(2)
    with pytest.raises(OverflowError, match="int too big to convert"):
        x.copy_(2**70)
    with pytest.raises(TypeError, match=r"argument 'other' .* must be Tensor, not str"):
        x.copy_("1")
    assert x.tolist() == [1, 1]

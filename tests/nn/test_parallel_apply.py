"""Calls side by side on several devices: their threads, modes and streams, and how their errors are told."""

from __future__ import annotations

import threading

import pytest

import tritensor as torch
from tritensor import cuda, nn
from tritensor.errors import DeviceError
from tritensor.nn.parallel import parallel_apply, scatter

from ..needs import needs_triton

pytestmark = needs_triton


def test_threads_record_as_the_caller_does(two_devices):
    class Mode(nn.Module):
        def forward(self, x):
            modes.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
            return x

    for context, expected in (
        (torch.no_grad, (False, False)),
        (torch.inference_mode, (False, True)),
        (torch.enable_grad, (True, False)),
    ):
        modes: list[tuple[bool, bool]] = []
        with context():
            out = nn.DataParallel(nn.Sequential(nn.Linear(1, 1), Mode()).to("cuda"))(torch.ones(2, 1))
        assert modes == [expected, expected]
        assert out.requires_grad is expected[0]


def test_each_replica_has_its_own_device_thread_and_stream(two_devices):
    side = cuda.Stream(1)
    seen = {}

    class Look(nn.Module):
        def forward(self, x):
            seen[x.device.index] = cuda.current_device(), cuda.current_stream(), threading.current_thread()
            return x

    before = cuda.current_stream(1)
    with cuda.stream(side), cuda.device(0):
        nn.DataParallel(Look())(torch.ones(2))
    assert seen[0][0] == 0
    assert seen[1][0] == 1
    assert seen[1][1] is side
    assert seen[0][1] is cuda.default_stream(0)
    assert len({seen[0][2], seen[1][2], threading.current_thread()}) == 3
    assert cuda.current_stream(1) is before


class Own(Exception):
    def __init__(self, code, detail):
        super().__init__(code, detail)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("bad"), ValueError),
        (KeyError("bad"), KeyError),
        (Own(1, "bad"), RuntimeError),
        (DeviceError("bad"), DeviceError),
    ],
)
def test_errors_carry_their_device(two_devices, error, kind):
    class Fail(nn.Module):
        def forward(self, x):
            if x.device.index == 1:
                raise error
            return x

    with pytest.raises(kind) as caught:
        nn.DataParallel(Fail())(torch.ones(2))
    text = str(caught.value)
    assert text.startswith(f"Caught {type(error).__name__} in replica 1 on device cuda:1.\n")
    assert "bad" in text
    assert "\\n" not in text
    assert caught.value.__cause__ is error


def test_errors_of_all_devices_are_told(two_devices):
    def fail(x):
        raise ValueError(f"on {x.device}")

    with pytest.raises(ValueError, match="in replica 0 on device cuda:0") as caught:
        parallel_apply([fail, fail], scatter(torch.ones(2), [0, 1]), devices=[0, 1])
    assert caught.value.__notes__ == ["also in replica 1 on device cuda:1: ValueError: on cuda:1"]


def test_a_mixed_device_error_names_the_replica(two_devices):
    stray = torch.ones(1, device="cuda:0")
    with pytest.raises(
        RuntimeError, match=r"in replica 1 on device cuda:1(.|\n)*Expected all tensors to be on the same"
    ):
        parallel_apply([lambda x: x + stray] * 2, scatter(torch.ones(2), [0, 1]))


def test_parallel_apply_finds_the_device(two_devices):
    calls = [lambda *args, **kwargs: cuda.current_device()] * 3
    inputs = [({"a": [torch.ones(1, device="cuda:1")]},), torch.ones(1, device="cuda:0"), (1,)]
    keywords = [{}, {}, {"x": torch.ones(1, device="cuda:1")}]
    assert parallel_apply(calls, inputs, keywords) == [1, 0, 1]
    assert parallel_apply(calls[:1], [1], devices=["cuda:1"]) == [1]
    with pytest.raises(RuntimeError, match="in replica 0, no device was provided and no tensor input was found"):
        parallel_apply(calls[:1], [1])


def test_parallel_apply_wants_equal_lengths():
    for arguments in ([[1]], [[1, 1], [{}]], [[1, 1], [{}, {}], [0]]):
        with pytest.raises(AssertionError, match="The number of modules 2 is not equal to the number of"):
            parallel_apply([abs, abs], *arguments)


def test_one_call_needs_no_thread_and_leaves_the_mode_alone():
    with torch.no_grad():
        (found,) = parallel_apply([lambda x: (threading.get_ident(), torch.set_grad_enabled(True))], [torch.ones(1)])
        assert found[0] == threading.get_ident()
        assert not torch.is_grad_enabled()

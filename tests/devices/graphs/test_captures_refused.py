"""What cannot be captured, with its remedy, and how a capture ends that has met it."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest

import tritensor as torch
import tritensor.nn.functional as F
from tritensor import cuda, nn, optim, settings
from tritensor.errors import DeviceError, KernelMemoryError

from ...needs import HAS_TRITON
from .captures import NOT_PERMITTED, captured

if not HAS_TRITON:
    pytest.skip("kernels need Triton", allow_module_level=True)


@pytest.mark.parametrize(
    ("work", "name"),
    [
        (lambda x: x.sum().item(), "item"),
        (lambda x: x.tolist(), "tolist"),
        (lambda x: x.cpu(), "cpu"),
        (lambda x: x.to("cpu", non_blocking=True), "to"),
        (lambda x: x.nonzero(), "nonzero"),
        (lambda x: bool(x.sum() > 0), "__bool__"),
        (lambda x: float(x.sum()), "__float__"),
        (lambda x: x[x > 0], "getitem"),
        (lambda x: repr(x), "__repr__"),
        (lambda x: torch.tensor([1.0, 2.0], device="cuda"), "tensor"),
        (lambda x: x.copy_(torch.ones(4)), "copy_"),
        (lambda x: x.copy_(torch.ones(4).pin_memory()), "copy_"),
        (lambda x: torch.ones(4).cuda(), "cuda"),
        (lambda x: x.to("cuda:1"), "to"),
        (lambda x: torch.randperm(4, device="cuda"), "randperm"),
        (lambda x: torch.multinomial(x, 1), "multinomial"),
        (lambda x: F.one_hot(x.long()), "one_hot"),
        (lambda x: cuda.synchronize(), "synchronize"),
        (lambda x: cuda.current_stream().synchronize(), "Stream.synchronize"),
        (lambda x: cuda.current_stream().query(), "Stream.query"),
        (lambda x: cuda.Event().record(), "Event.record"),
        (lambda x: cuda.current_stream().wait_stream(cuda.default_stream()), "Stream.wait_stream"),
        (lambda x: cuda.default_stream().wait_stream(cuda.current_stream()), "Stream.wait_stream"),
        (lambda x: cuda.empty_cache(), "empty_cache"),
    ],
)
def test_what_cannot_be_captured_is_named_with_its_remedy(work, name):
    x = torch.ones(4, device="cuda")
    graph = cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match=NOT_PERMITTED) as raised:
        capture_with(graph, lambda: work(x))
    lines = str(raised.value).splitlines()
    assert lines[1].startswith(f"  {name}: ")
    assert re.match(r"  at .*test_captures_refused\.py:\d+", lines[2])
    assert lines[-1].startswith("  Fix: ")
    # the capture has ended, and everything works as before
    assert not cuda.is_current_stream_capturing()
    with pytest.raises(DeviceError, match=r"^Called CUDAGraph::replay without a preceding successful capture"):
        graph.replay()
    assert x.sum().item() == 4
    assert cuda.current_stream() == cuda.default_stream()
    with cuda.graph(graph):
        y = x + 1
    graph.replay()
    assert y.tolist() == [2] * 4


def capture_with(graph, work, **options):
    with cuda.graph(graph, **options):
        work()


def test_a_refusal_that_is_caught_still_ends_in_an_error():
    x = torch.ones(4, device="cuda")
    graph = cuda.CUDAGraph()

    def work():
        with suppress(RuntimeError):
            x.sum().item()
        x.add_(1)

    with pytest.raises(
        RuntimeError,
        match=r"^CUDA error: operation failed due to a previous error during capture\n"
        "  item cannot be captured",
    ):
        capture_with(graph, work)
    assert x.tolist() == [1] * 4
    assert not cuda.is_current_stream_capturing()


def test_captures_that_are_begun_or_ended_wrongly():
    graph, other, x = cuda.CUDAGraph(), cuda.CUDAGraph(), torch.ones(4, device="cuda")
    side = cuda.Stream()
    with pytest.raises(RuntimeError, match=r"^Called CUDAGraph::replay without a preceding successful capture"):
        graph.replay()
    with pytest.raises(RuntimeError, match=r"^CUDA graphs must be captured on a non-default stream"):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match=r"capture_end\(\) was called without"):
        graph.capture_end()
    with pytest.raises(RuntimeError, match=r"^Called CUDAGraph::pool\(\) without"):
        graph.pool()
    with pytest.raises(ValueError, match="Unknown capture error mode"):
        graph.capture_begin(capture_error_mode="strict")
    with cuda.stream(side):
        graph.capture_begin()
        y = x * 2
        with pytest.raises(RuntimeError, match=NOT_PERMITTED):
            other.capture_begin()
        graph.reset()
        graph.capture_begin()
        y = x * 3
        with pytest.raises(RuntimeError, match="already owns a captured graph"):
            graph.capture_begin()
        graph.capture_end()
    graph.replay()
    assert y.tolist() == [3] * 4
    with pytest.raises(RuntimeError, match="already owns a captured graph"):
        capture_with(graph, lambda: None)
    with cuda.stream(side):
        other.capture_begin()
    with pytest.raises(RuntimeError, match=r"^Capture must end on the same stream it began on"):
        other.capture_end()
    for work in (lambda: capture_with(cuda.CUDAGraph(), lambda: None), graph.replay):
        with pytest.raises(RuntimeError, match=NOT_PERMITTED):
            capture_with(cuda.CUDAGraph(), work)
    with pytest.warns(UserWarning, match="The CUDA Graph is empty"):
        capture_with(cuda.CUDAGraph(), lambda: None)
    # another device may be captured meanwhile
    one, two = cuda.CUDAGraph(), cuda.CUDAGraph()
    z = torch.ones(2, device="cuda:1")
    with cuda.graph(one):
        a = x + 1
        with cuda.device(1), cuda.graph(two):
            b = z + 2
    one.replay()
    two.replay()
    assert (a.tolist(), b.tolist()) == ([2] * 4, [3] * 2)


def test_an_error_of_ones_own_ends_the_capture():
    x = torch.ones(4, device="cuda")
    with pytest.raises(ZeroDivisionError):
        capture_with(cuda.CUDAGraph(), lambda: [x + 1, 1 / 0])
    assert (x + 1).tolist() == [2] * 4
    assert cuda.current_stream() == cuda.default_stream()


def test_steps_that_would_repeat_themselves_are_refused():
    param = nn.Parameter(torch.zeros(2, device="cuda"))
    param.grad = torch.ones(2, device="cuda")
    plain = optim.Adam([param])
    plain.step()
    with pytest.raises(
        RuntimeError,
        match=r"^Attempting CUDA graph capture of step\(\) for an instance of Adam but "
        "param_groups' capturable is False",
    ):
        capture_with(cuda.CUDAGraph(), plain.step)
    for cold in (optim.AdamW([param], capturable=True), optim.SGD([param], momentum=0.9)):
        with pytest.raises(RuntimeError, match=NOT_PERMITTED) as raised:
            capture_with(cuda.CUDAGraph(), cold.step)
        assert "warm up" in str(raised.value)
        cold.step()
        graph, _ = captured(cold.step)
        graph.replay()


def test_indices_are_not_read_in_a_capture_but_their_addresses_are_checked():
    table, index = torch.arange(12.0, device="cuda").reshape(4, 3), torch.tensor([0, 3], device="cuda")
    graph, rows = captured(lambda: F.embedding(index, table))
    graph.replay()
    assert rows.tolist() == [[0, 1, 2], [9, 10, 11]]
    index.copy_(torch.tensor([1, 4]))

    def replay():
        graph.replay()
        cuda.synchronize()  # where streams run late, a kernel fails when it is waited for

    with pytest.raises(KernelMemoryError, match="out of bounds"):
        replay()


def test_checked_mode_and_debug_lines_let_a_capture_pass(capsys):
    x = torch.ones(4, device="cuda")
    with settings.check(True), settings.debug(2):
        graph, out = captured(lambda: (x + 1).sum())
    graph.replay()
    assert out.item() == 8

"""More than 2**31 elements: kernels compute with 64 bits where they must, and stay inside of their memory.

The tensors are there: address space is taken and hardly any of it touched. Of a launch only a few programs run, the
first and the last among them, each for a few accesses, with every address checked. An offset in 32 bits turns negative
and leaves its tensor; a size in 32 bits masks the last elements out, and nothing beyond the first 2**31 is touched.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn, optim, settings
from tritensor.drivers.simulator import Simulator
from tritensor.errors import KernelError
from tritensor.nn import functional as F
from tritensor.runtime.launch import kernel, launch

if TYPE_CHECKING:
    import triton.language as tl

pytest.importorskip("triton")

from ..devices.compile_only import compile_only
from ..runtime.interpreted_device import interpreted_device
from .test_operators_compile import SPARED, local_bytes

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="takes address space without memory")

LIMIT = 1 << 31
ROWS = LIMIT // 64 + 3  # of 64 elements
ACCESSES = 24


class _Enough(BaseException):
    """A program has shown what it has to show."""


class Seen:
    """How far from the first element of each argument a launch went, in elements."""

    def __init__(self) -> None:
        self.launches: list[str] = []
        self.reached: dict[str, int] = {}
        self.left = 0


def leave_memory_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poison would touch all of it; what the host reads of a launch that ran in part only is zero."""
    fill = Simulator.fill

    def small(self: Simulator, address: int, byte: int, nbytes: int, queue: Any) -> None:
        if nbytes < 64 << 20:
            fill(self, address, 0, nbytes, queue)

    monkeypatch.setattr(Simulator, "fill", small)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    from tritensor.runtime.interpreter import builder
    from tritensor.runtime.interpreter import run as interpreter

    found = Seen()
    check, interpreted = builder.Guard.check, interpreter._interpreted

    def noted(self: Any, pointer: Any, mask: Any, verb: str, program: Any) -> None:
        check(self, pointer, mask, verb, program)
        position, addresses = pointer.attr.get("argument"), pointer.data
        if position is not None:
            active = addresses if mask is None else addresses[np.broadcast_to(mask, addresses.shape)]
            if active.size:
                span = self.spans[position]
                label = f"{self.name} {verb} {span.label}"
                far = (int(active.max()) - span.base) // span.itemsize
                found.reached[label] = max(far, found.reached.get(label, 0))
        found.left -= 1
        if not found.left:
            raise _Enough

    def briefly(kernel: Any) -> Any:
        function = interpreted(kernel)
        if kernel.__class__ is not interpreter.Kernel:
            return function

        def run(**values: Any) -> None:
            found.left = ACCESSES
            with contextlib.suppress(_Enough):
                function(**values)

        return run

    def some(grid: tuple[int, int, int], order: str) -> list[tuple[int, int, int]]:
        (x, y, z), last = grid, tuple(size - 1 for size in grid)
        assert x < LIMIT and max(y, z) < 1 << 16, grid
        return sorted({(0, 0, 0), (x // 2, 0, 0), (max(x - 2, 0), *last[1:]), last})  # type: ignore[arg-type]

    monkeypatch.setattr(builder.Guard, "check", noted)
    monkeypatch.setattr(interpreter, "_interpreted", briefly)
    monkeypatch.setattr(interpreter, "_programs", some)
    leave_memory_alone(monkeypatch)
    # before Hopper, where products are by tensor descriptors, whose offsets are the hardware's
    with (
        torch.cuda.simulate(memory="1TiB", capability=(8, 0), engine="interpreter"),
        settings.check(False),
        settings.debug(0),
        settings.simulate_late(False),
    ):
        yield found


def huge(*shape: int, dtype: Any = torch.int8) -> Any:
    return torch.empty(*shape, dtype=dtype, device="cuda")


def same(*shape: int, dtype: Any = torch.int8) -> Any:
    """One element, everywhere."""
    return torch.ones((), dtype=dtype, device="cuda").expand(*shape)


def step(make: Callable[..., Any]) -> None:
    parameter = nn.Parameter(huge(FLAT, dtype=torch.float16))
    parameter.grad = huge(FLAT, dtype=torch.float16)
    make([parameter]).step()


FLAT = LIMIT + LIMIT // 8 + 9
CALLS: dict[str, Callable[[], Any]] = {
    "one array": lambda: torch.neg(huge(FLAT)),
    "two arrays": lambda: huge(FLAT) + same(FLAT),
    "a row to all": lambda: huge(ROWS, 64) + huge(64),
    "a column to all": lambda: huge(ROWS, 64) + huge(ROWS, 1),
    "a view with gaps": lambda: huge(ROWS, 64)[:, :40] + 1,
    "transposed": lambda: huge(ROWS, 64).t().contiguous(),
    "written over": lambda: huge(FLAT).add_(1),
    "another dtype": lambda: huge(FLAT).to(torch.bool),
    "filled": lambda: huge(FLAT).fill_(3),
    "sum of rows": lambda: huge(ROWS, 64).sum(1),
    "sum of columns": lambda: huge(4, LIMIT // 2 + 5).sum(0),
    "sum of all": lambda: huge(FLAT).sum(),
    "largest of rows": lambda: huge(ROWS, 64).argmax(1),
    "largest of all": lambda: huge(FLAT).argmax(),
    "deviation of rows": lambda: huge(ROWS, 64, dtype=torch.float16).std(1),
    "softmax": lambda: huge(ROWS, 64, dtype=torch.float16).softmax(1),
    "softmax of columns": lambda: huge(64, ROWS, dtype=torch.float16).softmax(0),
    "log_softmax": lambda: huge(ROWS, 64, dtype=torch.float16).log_softmax(1),
    "cumsum": lambda: huge(ROWS, 64).cumsum(1, dtype=torch.int8),
    "rows of one": lambda: huge(FLAT, 1, dtype=torch.float16).softmax(1),
    "layer_norm": lambda: F.layer_norm(huge(ROWS, 64, dtype=torch.float16), (64,)),
    "batch_norm": lambda: F.batch_norm(huge(ROWS, 64, dtype=torch.float16), None, None, training=True),
    "group_norm": lambda: F.group_norm(huge(64, 2, ROWS // 2, dtype=torch.float16), 2),
    "cross_entropy": lambda: F.cross_entropy(
        huge(ROWS, 64, dtype=torch.float16), torch.zeros(ROWS, dtype=torch.int64, device="cuda"), reduction="none"
    ),
    "matmul with many rows": lambda: huge(ROWS, 64, dtype=torch.float16) @ huge(64, 32, dtype=torch.float16),
    "matmul with many columns": lambda: huge(32, 64, dtype=torch.float16) @ huge(64, ROWS, dtype=torch.float16),
    "matmul with a long sum": lambda: (
        huge(64, LIMIT // 50, dtype=torch.float16) @ huge(LIMIT // 50, 32, dtype=torch.float16)
    ),
    "matmul with many products": lambda: (
        huge(LIMIT // 256 + 3, 16, 16, dtype=torch.float16) @ huge(16, 16, dtype=torch.float16)
    ),
    "rows picked": lambda: huge(ROWS, 64)[torch.tensor([0, ROWS - 1, 5], device="cuda")],
    "rows written": lambda: huge(ROWS, 64).index_put_((torch.tensor([0, ROWS - 1], device="cuda"),), huge(2, 64)),
    "rows added to": lambda: huge(ROWS, 64).index_put_(
        (torch.tensor([0, ROWS - 1], device="cuda"),), huge(2, 64), accumulate=True
    ),
    "gather": lambda: huge(ROWS, 64).gather(0, torch.full((2, 64), ROWS - 1, device="cuda")),
    "many picked": lambda: huge(5)[
        torch.zeros(LIMIT // 64, dtype=torch.int64, device="cuda").view(-1, 1).expand(LIMIT // 64, 65)
    ],
    "cat": lambda: torch.cat([huge(9), huge(FLAT)]),
    "arange": lambda: torch.arange(0, FLAT, dtype=torch.uint8, device="cuda"),
    "uniform": lambda: huge(FLAT, dtype=torch.float16).uniform_(),
    "normal": lambda: huge(FLAT, dtype=torch.float16).normal_(),
    "integers": lambda: huge(FLAT).random_(0, 9),
    "dropout": lambda: F.dropout(huge(FLAT, dtype=torch.float16)),
    "largest of windows": lambda: F.max_pool2d(huge(ROWS, 1, 8, 8), 2),
    "windows with channels innermost": lambda: F.max_pool2d(huge(ROWS, 4, 4, 4).permute(0, 3, 1, 2), 2),
    "averages of windows": lambda: F.avg_pool2d(huge(ROWS, 1, 8, 8, dtype=torch.float16), 2),
    "unfolded": lambda: F.unfold(huge(ROWS // 9 + 9, 1, 10, 10, dtype=torch.bool), 3),
    "folded": lambda: F.fold(huge(ROWS // 9 + 9, 9, 64, dtype=torch.bool), 10, 3),
    "sgd": lambda: step(lambda given: optim.SGD(given, lr=0.1)),
    "adam": lambda: step(lambda given: optim.Adam(given, lr=0.1)),
    "where": lambda: torch.where(same(FLAT, dtype=torch.bool), huge(FLAT), 1),
    "flipped": lambda: huge(FLAT).flip(0),
    "rolled": lambda: huge(FLAT).roll(3),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CALLS)
def test_kernels_reach_beyond_two_to_the_31(name: str, seen: Seen) -> None:
    CALLS[name]()
    assert max(seen.reached.values()) >= LIMIT, seen.reached


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_kernels_with_64_bit_offsets_do_not_spill(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_memory_alone(monkeypatch)
    # an index error: of bounds that a kernel was to check
    with compile_only(("cuda", 90), memory=1 << 40) as device, contextlib.suppress(IndexError):
        CALLS[name]()
    assert device.made
    for compiled in device.made:
        # for one more block per multiprocessor the assembler gives up 8 or 16 bytes a thread of copies and of integers
        # (3.6: up to 32), which have 64 to 80 registers of 255
        assert local_bytes(compiled, ("cuda", 90)) <= max(SPARED, 16), compiled.metadata.name


@pytest.mark.parametrize("grid", [(1 << 31,), (1, 1 << 16), (1, 1, 1 << 16)])
def test_a_grid_that_no_device_takes_is_refused_before_anything_runs(grid: tuple[int, ...]) -> None:
    for device in (torch.cuda.simulate(), interpreted_device()):
        with device:
            out = torch.zeros(4, dtype=torch.int32, device="cuda")
            with pytest.raises(KernelError, match=r"(?s)^count: .*CUDA takes at most 2147483647 x 65535 x 65535"):
                launch(count_kernel, grid, (out._data,), {}, out.device, name="count")
            assert out.tolist() == [0] * 4


@kernel
def count_kernel(out_ptr):
    tl.store(out_ptr, 1)

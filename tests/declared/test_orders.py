"""The order in which a device does things decides nothing: every operator gives the same bits.

The programs of a grid run forwards, backwards and shuffled; work is done at once in the one stream, or late in a second
one. A kernel whose programs add up in one place in whatever order they come, or that reads what another program of the
same launch writes, shows here; so does an operator that uses memory of another stream without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.operators import Operator, registry
from tritensor.runtime.launch import kernel, launch
from tritensor.tensors import Tensor
from tritensor.types import dtypes

from ..launched import note_launches
from .samples import TESTED_ALONE, Sample, bits, called, dtypes_of, has_samples, samples, values
from .test_operators import case_id, generator, on_cpu

if TYPE_CHECKING:
    import triton.language as tl

pytest.importorskip("triton")

OPERATORS = [
    operator
    for operator in sorted(registry.values(), key=lambda op: op.name)
    if has_samples(operator) and operator.family != "hosted"  # those have no kernels
]
SMALL = 150  # elements: the interpreter runs 300 programs a second


def more(name: str, rng: np.random.Generator, dtype: dtypes.dtype) -> Iterator[Sample]:
    """Samples for kernels that do in one program what the derived samples ask for."""
    if name == "cat":
        yield Sample([values((9, 5), dtype, rng), values((9, 7), dtype, rng)], {"dim": 1})
    elif name == "linear":
        yield Sample([values((40, 9), dtype, rng), values((20, 9), dtype, rng), values((20,), dtype, rng)], {})
    elif name == "layer_norm":
        yield Sample([values((70, 7), dtype, rng), values((7,), dtype, rng), values((7,), dtype, rng)], {})
    elif name == "convolution":
        geometry = {"stride": (1,), "padding": (1,), "dilation": (1,), "groups": 1, "size": (300,)}
        yield Sample([values(shape, dtype, rng) for shape in ((1, 2, 300), (3, 2, 3), (3,))], geometry)
    elif name.endswith("softmax_backward"):
        yield Sample([values((70, 7), dtype, rng), values((70, 7), dtype, rng)], {"dim": 1})


def dtype_of(operator: Operator) -> dtypes.dtype:
    return dtypes.float32 if dtypes.float32 in dtypes_of(operator) else dtypes_of(operator)[0]


def size_of(sample: Sample) -> int:
    return sum(x.size for x in sample.inputs if isinstance(x, np.ndarray))


def called_in_stream(operator: Operator, sample: Sample, side: bool) -> list[tuple[Any, ...]]:
    """The bits of the results and of the gradients, computed in the default stream or in another one."""
    inputs = [x.to("cuda") if isinstance(x, Tensor) else x for x in on_cpu(sample)]
    current, other = torch.cuda.current_stream(), torch.cuda.Stream() if side else None
    if other is not None:
        other.wait_stream(current)
    with torch.cuda.stream(other):
        found = called(operator, inputs, sample)
        del inputs
    return bits(found)


@pytest.fixture
def grids(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many programs each launch had."""
    return note_launches(monkeypatch, lambda kernel, grid: int(np.prod(grid)))


def same_in_every_order(call: Callable[[bool], Any], *others: str) -> None:
    found = {}
    for order in ("forward", "reverse", *others):
        late = order == "reverse"
        with settings.grid_order(order), settings.simulate_late(late), torch.cuda.simulate(), settings.block(16):
            found[order] = call(late)
    for order in found:
        assert found[order] == found["forward"], f"in the order {order!r} other bits come out"


@pytest.mark.sampled(5)
@pytest.mark.parametrize("operator", OPERATORS, ids=case_id)
def test_every_order_gives_the_same_bits(operator: Operator, grids: list[int]) -> None:
    dtype = dtype_of(operator)
    rng = generator("orders", operator.name)
    extra = list(more(operator.name, rng, dtype))
    found = extra or [each for each in samples(operator, dtype, rng) if size_of(each) <= SMALL]
    sample = max(found, key=size_of)
    same_in_every_order(lambda side: called_in_stream(operator, sample, side))
    assert max(grids) > 1, "an order of one program is no order"


@pytest.mark.slow
@pytest.mark.parametrize("operator", OPERATORS, ids=case_id)
def test_every_order_gives_the_same_bits_for_every_sample(operator: Operator) -> None:
    for sample in samples(operator, dtype_of(operator), generator("orders", operator.name)):
        same_in_every_order(lambda side, sample=sample: called_in_stream(operator, sample, side), "shuffle")


MADE: dict[str, Callable[[], Any]] = {
    "arange": lambda: torch.arange(1, 400, device="cuda"),
    "linspace": lambda: torch.linspace(0, 1, 300, device="cuda"),
    "integers": lambda: torch.randint(0, 1000, (300,), device="cuda"),
    "normal": lambda: torch.randn(300, device="cuda"),
    "uniform": lambda: torch.rand(300, device="cuda"),
    "dropout": lambda: torch.nn.functional.dropout(torch.ones(300, device="cuda"), 0.5),
}


@pytest.mark.parametrize(
    "name", [name for name, op in registry.items() if not has_samples(op) and op.family not in ("fourier", "hosted")]
)
def test_what_has_no_inputs_is_made_alike_in_every_order(name: str, grids: list[int]) -> None:
    assert registry[name].family in TESTED_ALONE

    def draw(side: bool) -> Any:
        torch.cuda.manual_seed(3)
        with torch.cuda.stream(torch.cuda.Stream() if side else None):
            return bits([MADE[name]()])

    same_in_every_order(draw, "shuffle")
    assert max(grids) > 1, "an order of one program is no order"


@kernel
def last_kernel(out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr + tl.arange(0, BLOCK), tl.program_id(0))


@pytest.mark.parametrize("others", [(), ("shuffle",)])
def test_a_kernel_that_depends_on_the_order_is_found(others: tuple[str, ...]) -> None:
    def call(side: bool) -> Any:
        out = torch.zeros(4, dtype=torch.int32, device="cuda")
        launch(last_kernel, (5,), (out._data,), {"BLOCK": 4}, out.device)
        return bits([out])

    with pytest.raises(AssertionError, match="in the order 'reverse' other bits come out"):
        same_in_every_order(call, *others)


def test_an_operator_that_does_not_wait_is_found() -> None:
    def call(side: bool) -> Any:
        x = torch.zeros(4, device="cuda")
        with torch.cuda.stream(torch.cuda.Stream() if side else None):
            return bits([x + 1])

    with pytest.raises(AssertionError, match="in the order 'reverse' other bits come out"):
        same_in_every_order(call)

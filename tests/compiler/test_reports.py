"""What is said of the groups of a compiled function: errors, kernels that are refused, profiles, predictions."""

from __future__ import annotations

from typing import Any

import pytest

import tritensor as torch
from tritensor.errors import ArgumentError, KernelError, KernelMemoryError, KernelMismatchError, OutOfMemoryError
from tritensor.kernels.fused import groups
from tritensor.kernels.fused.family import Fused
from tritensor.kernels.fused.rows import Rows

from ..needs import needs_triton


def chain(x: torch.Tensor) -> torch.Tensor:
    y = (x * 2 + 1).view(-1)
    z = y.sigmoid()
    return z * y


CPU = [torch.profiler.ProfilerActivity.CPU]
FIRST = chain.__code__.co_firstlineno
LINES = [f"{names} at {__file__}:{FIRST + n} in chain" for n, names in ((1, "mul, add"), (2, "sigmoid"), (3, "mul"))]


@needs_triton
def test_out_of_memory_names_operators_and_lines() -> None:
    with torch.cuda.simulate(devices=1, memory="1MB"):
        x = torch.ones(500, 400, device="cuda")
        with pytest.raises(torch.cuda.OutOfMemoryError) as raised:
            torch.compile(chain)(x)
    assert raised.value.__notes__ == ["while computing one kernel of " + "; ".join(LINES)]


def test_errors_of_the_processor_name_operators_and_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **named: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(Fused, "_composed", fail)
    monkeypatch.setattr(groups, "_operators", {})
    with pytest.raises(MemoryError) as raised:
        torch.compile(chain)(torch.ones(3, 57))
    assert raised.value.__notes__ == ["while computing one kernel of " + "; ".join(LINES)]


@pytest.fixture
def unknown_function(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let the kernels of groups call what Triton does not have; one entry for each that is to be launched."""
    launches: list[int] = []
    for kind in (Fused, Rows):
        monkeypatch.setattr(kind, "launch", lambda *given, was=kind.launch: launches.append(1) or was(*given))
    call_of = Fused.call_of

    def wrong(*given: Any) -> Any:
        text, more = call_of(*given)
        return f"tl.not_there({text})", more

    monkeypatch.setattr(Fused, "call_of", staticmethod(wrong))
    monkeypatch.setattr(groups, "_operators", {})
    return launches


def rows(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).softmax(-1) + x.sum(-1, keepdim=True)


def short(x: torch.Tensor) -> torch.Tensor:
    return x * 2 * x


@pytest.mark.sampled(2)
@needs_triton
@pytest.mark.parametrize(
    ("engine", "function"), [("interpreter", chain), ("interpreter", rows), ("native", rows), ("compiled", short)]
)
def test_a_kernel_that_is_refused(engine: str, function: Any, unknown_function: list[int]) -> None:
    with torch.cuda.simulate(devices=1, engine=engine):
        x = torch.linspace(-1, 1, 12, device="cuda").view(3, 4)
        compiled, wanted = torch.compile(function), function(x)
        with pytest.warns(UserWarning, match=r"(?s)one by one mul.*test_reports.py.*not_there.*torch.compiler.explain"):
            assert torch.equal(compiled(x), wanted)
        assert len(unknown_function) == 1
        for again in (compiled, torch.compile(lambda x: function(x))):
            assert torch.equal(again(x), wanted)
        found = torch.compiler.explain(function)(x)
    assert len(unknown_function) == 1
    (unit,) = [unit for unit in found.units if unit.text]
    assert "not_there" in unit.refused and "not_there" in unit.text and unit.moved == unit.before
    assert f"one by one {'x'.join(map(str, unit.shape)):>16}" in str(found) and "was refused: " in str(found)


@needs_triton
def test_errors_that_no_kernel_has_made_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    raised: list[BaseException] = [KernelMismatchError("no"), KernelMemoryError("no"), OutOfMemoryError("no")]
    raised += [KernelError("races"), KeyboardInterrupt(), ValueError("no")]
    compiled = torch.compile(chain)

    def fail(*given: Any) -> None:
        raise raised[-1]

    monkeypatch.setattr(Fused, "launch", fail)
    with torch.cuda.simulate(devices=1):
        x = torch.ones(3, 4, device="cuda")
        while raised:
            with pytest.raises(type(raised[-1])) as found:
                compiled(x)
            assert found.value is raised.pop()


def test_the_profiler_shows_groups_and_their_memory() -> None:
    with torch.profiler.profile(activities=CPU, profile_memory=True) as found:
        torch.compile(chain)(torch.ones(30, 40))
    events = {each.name: each for each in found.events()}
    group = events[f"compiled::mul_add_sigmoid_mul (chain, test_reports.py:{FIRST + 1})"]
    assert group.cpu_memory_usage == 4800 and group.cpu_time_total > 0
    assert events["aten::sigmoid"].cpu_memory_usage == 0


@needs_triton
def test_what_measures_a_device_does_not_divide_groups() -> None:
    with torch.cuda.simulate(devices=1):
        with torch.profiler.profile() as found:
            torch.compile(chain)(torch.ones(3, 4, device="cuda"))
        (group,) = [each for each in found.events() if each.name.startswith("compiled::")]
    assert group.device_time_total > 0 and "mul_add_sigmoid_mul" in group.name


@needs_triton
def test_counted_launches_have_the_line_of_their_group() -> None:
    with torch.cuda.simulate(compiled=True):
        x = torch.ones(3, 4, device="cuda")
        with torch.cuda.profile() as found:
            torch.compile(short)(x)
            x * 2
    line = short.__code__.co_firstlineno + 1
    named, plain = [launch.name for launch in found.launches]
    assert named == f"elementwise_mul_mul (short, test_reports.py:{line})" and plain == "elementwise_mul"


def test_time_on_a_card_is_predicted_from_traffic() -> None:
    explained = torch.compiler.explain(chain, card="h200")(torch.ones(250, 400))
    assert explained.predicted == pytest.approx((800_000 / 4.8e12, 3_600_000 / 4.8e12))
    assert "  predicted of these bytes on h200, not measured: 0.167 us, one by one 0.75 us" in str(explained)
    assert "predicted" not in str(torch.compiler.explain(chain)(torch.ones(3, 4)))
    with pytest.raises(ArgumentError, match="no card is called"):
        torch.compiler.explain(chain, card="h1")

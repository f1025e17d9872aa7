"""Calls without gradients of functions that are compiled with `fullgraph=True` are repeated without running Python."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import tritensor as torch
from tritensor.errors import BoundsError, UnsupportedError
from tritensor.nn import functional as F
from tritensor.nn.replayed import Replays

from ..needs import needs_triton

Two = namedtuple("Two", ["one", "two"])
SCALE = 2.0


@pytest.fixture(autouse=True)
def without_gradients() -> Any:
    with torch.no_grad():
        yield


class Runs:
    """How often Python has run something; without a `__dict__`, whose values would be looked at."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


def parts(value: Any) -> list[Any]:
    """All tensors and numbers in tuples, lists and dicts."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    return [part for each in value for part in parts(each)] if isinstance(value, (tuple, list)) else [value]


def check(found: Any, expected: Any) -> None:
    """Fail unless two results are alike."""
    assert type(found) is type(expected)
    for x, y in zip(parts(found), parts(expected), strict=True):
        if isinstance(y, torch.Tensor):
            torch.testing.assert_close(x.cpu(), y.cpu())
        else:
            assert x == y


class Counted:
    """A function, and how often Python has run it."""

    def __init__(self, function: Callable[..., Any], **options: Any) -> None:
        self.runs, self.function = Runs(), function
        runs = self.runs

        def counted(*args: Any, **named: Any) -> Any:
            runs.count += 1
            return function(*args, **named)

        self.compiled = torch.compile(counted, **{"fullgraph": True, **options})

    def __call__(self, *args: Any, **named: Any) -> int:
        """Compare a call with one that is not compiled; the number of runs that it took."""
        before = self.runs.count
        found = self.compiled(*args, **named)
        taken = self.runs.count - before
        check(found, self.function(*args, **named))
        return taken

    @property
    def replays(self) -> Replays:
        found = [cell.cell_contents for cell in self.compiled.__closure__]
        return next(x for x in found if isinstance(x, Replays))


def chain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (torch.tanh(x * 2.0 + y) * x - 0.5) * y


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


def test_the_third_call_runs_no_python() -> None:
    call = Counted(chain)
    assert [call(draw(3, 4), draw(4)) for _ in range(5)] == [1, 1, 0, 0, 0]
    assert call(draw(4, 4), draw(4)) == 1, "a new shape"
    assert call(draw(4, 3).T, draw(4)) == 1, "new strides"
    assert call.replays.recompilations == ["new arguments"] * 2


def test_numbers_and_structures_are_part_of_what_a_call_is() -> None:
    call = Counted(lambda x, k, more=None: Two(x * k, {"sum": (x + more["y"]).sum(), "number": k, "itself": x}))
    for k, y in ((2, draw(3)), (3, draw(3)), (3.0, draw(3)), (True, draw(3)), (0.0, draw(3)), (-0.0, draw(3))):
        assert [call(draw(3), k, more={"y": y}) for _ in range(4)] == [1, 1, 0, 0]
    x = draw(3)
    assert call.compiled(x, 2, more={"y": x}).two["itself"] is x


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 8), torch.nn.Linear(8, 4)
        self.norm, self.drop, self.factor = torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.drop(self.norm(self.first(x)).relu())) * self.factor


def test_modules() -> None:
    model, runs = Net().eval(), Runs()
    model.first.register_forward_hook(lambda *_: None).remove()
    forward = Net.forward
    compiled = torch.compile(model, fullgraph=True)

    def call() -> int:
        x, before = draw(5, 4), runs.count
        found = compiled(x)
        taken = runs.count - before
        check(found, model(x))
        return taken

    def counted(self: Net, x: torch.Tensor) -> torch.Tensor:
        runs.count += 1
        return forward(self, x)

    Net.forward = counted  # type: ignore[method-assign]
    try:
        assert [call() for _ in range(4)] == [1, 1, 0, 0]
        model.first.weight.mul_(2)
        assert call() == 0, "a parameter changed in place"
        model.first.weight = torch.nn.Parameter(draw(8, 4))
        assert call() == 0, "a parameter replaced by one of the same form"
        model.load_state_dict(Net().state_dict(), assign=True)
        assert call() == 0
        model.factor = 3.0
        assert [call() for _ in range(3)] == [1, 1, 0], "an attribute"
        model.second = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.GELU()).eval()
        assert [call() for _ in range(3)] == [1, 1, 0], "another module"
        model.train()
        x = draw(5, 4)
        torch.manual_seed(1)
        found = compiled(x)
        torch.manual_seed(1)
        torch.testing.assert_close(found, model(x))
        model.eval()
        assert call() == 0, "the statistics that training has changed are read anew"
        handle = model.first.register_forward_hook(lambda module, args, result: result * 2)
        with pytest.warns(UserWarning, match=r"counted \(.*\) runs with Python at each call: Linear has hooks"):
            assert [call() for _ in range(3)] == [1, 1, 1], "hooks may do anything"
        handle.remove()
        assert call() == 0, "the program is known from before"
        with torch.enable_grad():
            found = compiled(x)
            assert found.requires_grad
            found.sum().backward()
            assert model.first.weight.grad is not None
    finally:
        Net.forward = forward  # type: ignore[method-assign]


def test_closures_and_globals(monkeypatch: pytest.MonkeyPatch) -> None:
    weight, rows = draw(4), [draw(4), draw(4)]

    def function(x: torch.Tensor) -> torch.Tensor:
        return x * weight * SCALE + rows[1]

    call = Counted(function)
    assert [call(draw(4)) for _ in range(3)] == [1, 1, 0]
    weight.add_(1)
    assert call(draw(4)) == 0
    weight, rows[1] = draw(4), draw(4)
    assert call(draw(4)) == 0, "tensors of the same form"
    weight = draw(4).double()
    assert call(draw(4)) == 1
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert call(draw(4)) == 1

    settings = SimpleNamespace(scale=2.0, table=draw(4))
    call = Counted(lambda x: x * settings.scale + settings.table)
    assert [call(draw(4)) for _ in range(3)] == [1, 1, 0]
    settings.table = draw(4)
    assert call(draw(4)) == 0
    settings.scale = 3.0
    assert [call(draw(4)) for _ in range(3)] == [1, 1, 0]

    several = [draw(4)]
    call = Counted(lambda x: sum(several, x))
    assert [call(draw(4)) for _ in range(3)] == [1, 1, 0]
    several.append(draw(4))
    assert [call(draw(4)) for _ in range(3)] == [1, 1, 0]


def test_modes() -> None:
    call = Counted(lambda x, w: F.linear(x, w).relu() + torch.zeros(3))
    x, w = draw(2, 4), draw(3, 4)
    assert [call(x, w) for _ in range(3)] == [1, 1, 0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert [call(x, w) for _ in range(3)] == [1, 1, 0]
    torch.set_default_dtype(torch.float64)
    try:
        assert call(x, w) == 1
    finally:
        torch.set_default_dtype(torch.float32)
    assert [call(x, w) for _ in range(3)] == [1, 1, 0]
    torch.compiler.reset()
    assert call(x, w) == 1
    x.requires_grad_()
    with torch.enable_grad():
        assert [call(x, w) for _ in range(3)] == [1, 1, 1], "what is recorded needs Python"


def test_made_inside() -> None:
    def function(x: torch.Tensor) -> Any:
        mask = torch.ones(x.shape[-1], x.shape[-1]).tril()
        places = torch.arange(x.shape[-1])
        first, second = (x * mask).split([1, 2], 0)
        return first.T.reshape(-1)[places], second.double().to(x.dtype), torch.cat([x, x * 2])

    call = Counted(function)
    assert [call(draw(3, 3)) for _ in range(5)] == [1, 1, 0, 0, 0]


class Thrice:
    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        return x * self.count


def test_hidden_state_is_found_by_the_second_run() -> None:
    state = Thrice()
    compiled = torch.compile(lambda x: state(x) + 1, fullgraph=True)
    x = draw(4)
    compiled(x)
    torch.testing.assert_close(compiled(x), x * 2 + 1)
    with pytest.warns(UserWarning, match="runs with Python at each call: its results depend on more than its argum"):
        torch.testing.assert_close(compiled(x), x * 3 + 1)
    torch.testing.assert_close(compiled(x), x * 4 + 1)


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda x: x.add_(1) * 2, id="changes its argument"),
        pytest.param(lambda x: x.view(-1)[1:] + 0 if x.sum() > 0 else x - 1, id="branches"),
        pytest.param(lambda x: x * float(x.max()), id="reads a value"),
        pytest.param(lambda x: x[1:], id="returns a view of its argument"),
        pytest.param(lambda x: (x * 2, torch.device), id="returns something else"),
        pytest.param(lambda x: torch.compiler.disable(lambda y: y * 2)(x), id="disabled"),
        pytest.param(lambda x: torch.func.vmap(lambda y: y * 2)(x), id="transformed"),
        pytest.param(lambda x: torch.zeros(3).add_(1) + x, id="in place"),
    ],
)
def test_what_is_not_repeated(function: Callable[..., Any]) -> None:
    runs = Runs()

    def counted(x: torch.Tensor) -> Any:
        runs.count += 1
        return function(x)

    compiled = torch.compile(counted, mode="reduce-overhead")
    given = [draw(4, 3) for _ in range(4)]
    with pytest.warns(UserWarning, match="runs with Python at each call: .") as said:
        found = [compiled(x.clone()) for x in given]
    check(found, [function(x) for x in given])
    assert runs.count == 4
    assert len(said) == 1


def test_random_numbers_are_those_of_python() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, 0.5) + torch.rand(4)

    compiled = torch.compile(function, mode="reduce-overhead")
    compiled(draw(4))
    with pytest.warns(UserWarning, match="dropout draws random numbers"):
        compiled(draw(4))
    for _ in range(4):
        x, state = draw(4), torch.get_rng_state()
        found = compiled(x)
        torch.set_rng_state(state)
        torch.testing.assert_close(found, function(x))


def test_places_are_checked_at_each_call() -> None:
    table = draw(5, 3)
    compiled = torch.compile(lambda i: F.embedding(i, table) * 2, fullgraph=True)
    for _ in range(3):
        i = torch.randint(0, 5, (4,))
        torch.testing.assert_close(compiled(i), table[i] * 2)
    with pytest.raises(BoundsError, match="index out of range in self"):
        compiled(torch.tensor([0, 1, 2, 5]))


def test_reading_is_refused() -> None:
    compiled = torch.compile(lambda x: (x * 2) if (x * 2).sum() > 0 else x, fullgraph=True)
    for _ in range(3):
        with pytest.raises(UnsupportedError, match="Data-dependent control flow"):
            compiled(draw(3))


def test_many_programs() -> None:
    call = Counted(lambda x, k: x * k)
    for k in range(64):
        call(draw(3), k)
    assert len(call.replays.programs) == 64
    with pytest.warns(UserWarning, match="it has 64 programs, the last for new arguments"):
        assert [call(draw(3), 69) for _ in range(3)] == [1, 1, 1]
    assert len(call.replays.programs) == 64
    assert [call(draw(3), 1) for _ in range(2)] == [1, 0]


@needs_triton
def test_on_devices() -> None:
    call = Counted(lambda x, y: (chain(x, y).softmax(-1), x @ y.T))
    with torch.cuda.simulate(devices=2):
        for device in ("cuda:0", "cuda:1"):
            assert [call(draw(3, 4).to(device), draw(3, 4).to(device)) for _ in range(4)] == [1, 1, 0, 0]
    with torch.cuda.simulate(devices=1):
        assert [call(draw(3, 4).to("cuda"), draw(3, 4).to("cuda")) for _ in range(3)][2] == 0


@needs_triton
def test_graphs_on_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """With reduce-overhead a program is a graph, which reads parameters where they are and checks its arguments."""
    captured, capture = [], torch.cuda.CUDAGraph.capture_end
    monkeypatch.setattr(torch.cuda.CUDAGraph, "capture_end", lambda self: captured.append(capture(self)))
    with torch.cuda.simulate(devices=1):
        model = torch.nn.Sequential(torch.nn.Embedding(10, 8), torch.nn.Linear(8, 6), torch.nn.GELU()).to("cuda")
        call = Counted(lambda x: model(x).softmax(-1), mode="reduce-overhead", fullgraph=False)
        places = [torch.randint(0, 10, (4,)).to("cuda") for _ in range(3)]
        assert [call(places[0]), call(places[1]), call(places[2]), call(places[1])] == [1, 1, 0, 0]
        assert len(captured) == 1
        first, second = call.compiled(places[0]), call.compiled(places[1])
        check((first, second), (call.function(places[0]), call.function(places[1])))
        model[1].weight.mul_(2)
        assert call(places[0]) == 0
        assert len(captured) == 1, "memory that has changed is read"
        model[1].weight = torch.nn.Parameter(draw(6, 8).to("cuda"))
        assert call(places[0]) == 0
        assert len(captured) == 2, "other memory is another graph"
        with pytest.raises(BoundsError):
            call.compiled(torch.tensor([1, 2, 3, 10]).to("cuda"))


def test_changes_of_results_are_part_of_a_program() -> None:
    weight = draw(4, 4)

    def function(x: torch.Tensor) -> torch.Tensor:
        h = F.relu(F.linear(x, weight), inplace=True)
        g = F.batch_norm(h, torch.zeros(4), torch.ones(4))
        g += h
        g.mul_(2)
        h.sub_(1)
        return g * h

    call = Counted(function)
    assert [call(draw(3, 4)) for _ in range(5)] == [1, 1, 0, 0, 0]


def test_changes_that_views_see_are_not() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        h = x @ x
        view = h.view(-1)[2:]
        h.add_(1)
        view[0] = 5.0
        return view * 2 + h.sum()

    call = Counted(function)
    with pytest.warns(UserWarning, match="memory is changed in place"):
        assert [call(draw(3, 3)) for _ in range(4)] == [1, 1, 1, 1]


def test_without_arguments() -> None:
    def function() -> torch.Tensor:
        made = torch.zeros(3)
        made.add_(1)
        return made * 2

    call = Counted(function)
    with pytest.warns(UserWarning, match="memory is changed in place"):
        assert [call() for _ in range(3)] == [1, 1, 1]

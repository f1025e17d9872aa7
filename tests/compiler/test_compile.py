"""What a compiled function does beside computing: sharing, changes in place, gradients, randomness, exceptions."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.kernels.fused import groups, plans
from tritensor.memory.deferred import Deferred
from tritensor.operators import deferring

from ..needs import needs_triton

F = torch.nn.functional


@pytest.fixture
def units(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The units of all plans that are made: the name of a group, or of a call by itself."""
    found: list[list[str]] = []
    make = plans.Plan.__init__

    def noted(self: Any, *args: Any) -> None:
        make(self, *args)
        found.append([unit.operator.name if hasattr(unit, "operator") else "-" for unit in self.units])

    monkeypatch.setattr(plans.Plan, "__init__", noted)
    return found


def alike(function: Callable[..., Any], *inputs: Any) -> None:
    """Fail unless four compiled calls return what a plain one does, as plain tensors."""
    compiled = torch.compile(function)
    for _ in range(4):
        wanted = function(*[x.clone() for x in inputs])
        found = compiled(*[x.clone() for x in inputs])
        for x, y in zip(*[z if isinstance(z, tuple) else (z,) for z in (found, wanted)], strict=True):
            assert not isinstance(x._data, Deferred)
            torch.testing.assert_close(x, y)


def test_chain_is_one_kernel(units: list[list[str]]) -> None:
    alike(lambda x, y: ((x * 2 + y).tanh() - x).sigmoid() * y, torch.randn(8, 40), torch.randn(8, 40))
    assert units[0] == ["mul_add_tanh_sub_and_2_more"]


def test_rows_are_one_kernel(units: list[list[str]]) -> None:
    x, w, b = torch.randn(6, 50), torch.randn(50), torch.randn(50)
    alike(lambda x: F.gelu(F.layer_norm(x * 2, (50,), w, b)) + x, x)
    alike(lambda x: F.softmax(x * 0.5 + w, -1) * x.sum(-1, keepdim=True), x)
    assert [len(each) for each in units] == [1, 1]


def test_what_died_inside_is_not_stored() -> None:
    def chain(x: torch.Tensor) -> torch.Tensor:
        for _ in range(10):
            x = x * 1.01 + 0.5
        return x

    compiled, x = torch.compile(chain), torch.randn(64)
    compiled(x)
    (operator,) = [each for each in groups._operators.values() if len(each.stages) == 20]
    assert operator.wanted == (operator.stages[-1].outputs[0],)


def test_numbers_make_no_new_plan(units: list[list[str]]) -> None:
    compiled = torch.compile(lambda x, k: (x * k + k).relu() ** 2)
    x = torch.randn(300)
    for k in (0.5, 2.5, -1.0):
        torch.testing.assert_close(compiled(x, k), (x * k + k).relu() ** 2)
    assert len(units) == 1


def test_changes_in_place() -> None:
    x, y = torch.randn(5, 6), torch.randn(5, 6)

    def inside(x: torch.Tensor, y: torch.Tensor) -> Any:
        z = x * 2
        z += y
        z[0] = 1
        z[:, 1].mul_(3)
        row = z[2]
        z.sub_(1)
        return z, row, z.detach().add_(1), z

    alike(inside, x, y)

    def given(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        x.mul_(2)
        return x + y

    for function in (given, torch.compile(given)):
        one = torch.ones(3)
        assert function(one).tolist() == [4.0] * 3 and one.tolist() == [2.0] * 3


def test_detach_then_in_place() -> None:
    def function(x: torch.Tensor) -> Any:
        y = x * 3
        z = y.detach()
        z.add_(1)
        return y, z

    alike(function, torch.randn(4))


@pytest.mark.parametrize("inside", [True, False])
def test_gradients(inside: bool) -> None:
    w = torch.randn(7, 7, requires_grad=True)

    def loss(x: torch.Tensor) -> torch.Tensor:
        h = F.gelu(x @ w) * x
        h = h - h.mean(-1, keepdim=True)
        total = (F.softmax(h, -1) * x).sum()
        if inside:
            total.backward()
        return total

    x, found = torch.randn(3, 7), []
    for function in (loss, torch.compile(loss)):
        for _ in range(2):
            w.grad = None
            total = function(x)
            if not inside:
                total.backward()
        assert isinstance(w.grad._data, np.ndarray)
        found.append(w.grad.clone())
    torch.testing.assert_close(*found)


def test_double_backward_across_a_cut() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = (x.sin() * x).sum()
        (first,) = torch.autograd.grad(y, x, create_graph=True)
        scale = first.abs().max().item()
        return (first * scale).sum()

    results = []
    for each in (function, torch.compile(function)):
        x = torch.linspace(-1, 1, 9, requires_grad=True)
        each(x).backward()
        results.append(x.grad)
    torch.testing.assert_close(*results)


def test_saved_value_that_is_changed_raises() -> None:
    def function(x: torch.Tensor) -> None:
        y = x.exp()
        z = y * 2
        y.add_(1)
        z.sum().backward()
        y.sum().backward()

    for each in (function, torch.compile(function)):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            each(torch.ones(3, requires_grad=True))


def test_hand_written_optimizer() -> None:
    def adam(p: Any, g: Any, m: Any, v: Any, t: int) -> None:
        m.mul_(0.9).add_(g, alpha=0.1)
        v.mul_(0.99).addcmul_(g, g, value=0.01)
        p.addcdiv_(m / (1 - 0.9**t), (v / (1 - 0.99**t)).sqrt() + 1e-8, value=-0.01)

    states = []
    for each in (adam, torch.compile(adam)):
        torch.manual_seed(0)
        p, g, m, v = torch.randn(50), torch.randn(50), torch.zeros(50), torch.zeros(50)
        for t in (1, 2, 3):
            each(p, g, m, v, t)
        states.append((p, m, v))
    for one, other in zip(*states, strict=True):
        torch.testing.assert_close(one, other)


def test_optimizer_and_dropout_in_a_step() -> None:
    def trained(compiled: bool) -> list[float]:
        torch.manual_seed(3)
        model = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Dropout(0.3), torch.nn.Linear(8, 3)
        )
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

        def step(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            loss = F.cross_entropy(model(x), target)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss

        run = torch.compile(step) if compiled else step
        return [run(torch.randn(6, 4), torch.randint(0, 3, (6,))).item() for _ in range(5)]

    assert trained(True) == pytest.approx(trained(False), rel=1e-5)


def test_exceptions_leave_plain_tensors() -> None:
    kept: list[torch.Tensor] = []

    def function(x: torch.Tensor) -> torch.Tensor:
        kept.append(x * 2)
        return x + torch.ones(99)

    x = torch.ones(3)
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(3\) must match"):
        torch.compile(function)(x)
    assert isinstance(x._data, np.ndarray) and deferring.current.region is None
    assert kept[0].tolist() == [2.0] * 3


def test_error_of_a_bool_as_factor_is_raised_at_its_line() -> None:
    def function(x: torch.Tensor) -> str:
        try:
            torch.add(x, x, alpha=True)
        except RuntimeError as error:
            return str(error)
        return ""

    assert torch.compile(function)(torch.ones(2)).startswith("Boolean alpha only supported")


def test_values_that_control_the_program() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        while y.sum() < 100:
            y = y * 2
        return y if bool((y > 3).any()) else -y

    alike(function, torch.rand(5) + 0.1)
    alike(function, torch.rand(5) + 30)


def test_transformations_inside_and_outside() -> None:
    def inside(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        return torch.func.vmap(lambda row: row.softmax(0) + y[0])(y) + torch.func.grad(lambda z: (z * y).sum())(x)

    alike(inside, torch.randn(3, 3))
    compiled = torch.compile(lambda x: (x.sin() * x).sum())
    x = torch.randn(4)
    torch.testing.assert_close(torch.func.grad(compiled)(x), x.sin() + x * x.cos())


def test_threads_have_their_own_regions() -> None:
    compiled = torch.compile(lambda x: (x * 2 + 1).exp().softmax(-1))
    inputs, found = [torch.randn(20, 30) for _ in range(8)], {}

    def work(i: int) -> None:
        for _ in range(5):
            found[i] = compiled(inputs[i])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for i, x in enumerate(inputs):
        torch.testing.assert_close(found[i], (x * 2 + 1).exp().softmax(-1))


def test_module() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5))
    compiled = torch.compile(model)
    assert compiled._orig_mod is model and next(iter(compiled.state_dict())) == "_orig_mod.0.weight"
    assert not compiled.eval().training and not model[2].training
    x = torch.randn(5, 3)
    torch.testing.assert_close(compiled(x), model(x))
    compiled.train()
    before = model[1].running_mean.clone()
    compiled(x)
    assert not torch.equal(before, model[1].running_mean)
    again = copy.deepcopy(compiled).eval()
    torch.testing.assert_close(again(x), compiled.eval()(x))
    assert pickle.loads(pickle.dumps(compiled.eval()))._orig_mod[0].weight.shape == (4, 3)


def test_disabled_function_is_not_noted() -> None:
    seen = []

    @torch.compiler.disable
    def plain(x: torch.Tensor) -> torch.Tensor:
        seen.append((type(x._data), torch.compiler.is_compiling()))
        return x + 1

    def function(x: torch.Tensor) -> torch.Tensor:
        assert torch.compiler.is_compiling()
        return plain(x * 2) * 3

    assert torch.compile(function)(torch.ones(2)).tolist() == [9.0, 9.0]
    assert seen == [(np.ndarray, False)]


def test_small_calls_run_as_they_are(units: list[list[str]]) -> None:
    compiled = torch.compile(lambda x: (x * 2 + 1).relu())
    for _ in range(3):
        compiled(torch.ones(4))
        compiled(torch.ones(100_000, 4))
    assert len(units) == 2
    seen = []
    watched = torch.compile(lambda x: seen.append(torch.compiler.is_compiling()) or x + 1)
    for size in (2, 2, 2):
        watched(torch.ones(size))
    assert seen == [True, False, False]


def test_nothing_is_left_of_a_call() -> None:
    module = torch.nn.Module()

    def function(x: torch.Tensor) -> torch.Tensor:
        module.kept = (x * 2)[0]
        module.other = (x + 1).detach()
        module.whole = x * 3
        return module.whole.view(-1)

    torch.compile(function)(torch.ones(2, 3))
    assert all(isinstance(x._data, np.ndarray) for x in (module.kept, module.other, module.whole))
    assert module.kept.tolist() == [2.0] * 3 and module.other.sum() == 12 and module.whole.sum() == 18


def test_backward_pass_outside_is_noted(units: list[list[str]]) -> None:
    w = torch.randn(200, 200, requires_grad=True)
    compiled = torch.compile(lambda x: (x * w).sigmoid() * w)
    x = torch.randn(200, 200)
    grads = []
    for function in (lambda x: (x * w).sigmoid() * w, compiled, compiled):
        w.grad = None
        function(x).square().sum().backward()
        assert isinstance(w.grad._data, np.ndarray) and deferring.current.region is None
        grads.append(w.grad)
    torch.testing.assert_close(grads[0], grads[1])
    torch.testing.assert_close(grads[0], grads[2])
    assert len(units) == 2 and len(units[1]) < 3


def test_backward_pass_that_fails_leaves_nothing() -> None:
    w = torch.randn(300, 300, requires_grad=True)

    def refuse(grad: torch.Tensor) -> None:
        raise ValueError("no")

    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * w
        y.register_hook(refuse)
        return y.exp() * 2

    with pytest.raises(ValueError, match="no"):
        torch.compile(function)(torch.randn(300, 300)).sum().backward()
    assert deferring.current.region is None and Deferred.used == 0


def test_explanation() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = (x * 2 + 1).relu()
        if y.sum() > 1e9:
            return y
        return y.view(-1) @ torch.ones(y.numel())

    found = torch.compiler.explain(function)(torch.ones(30, 40))
    assert found.units[0].operators == ("mul", "add", "relu")
    assert "tl.store" not in found.kernels[0] and "body2" in found.kernels[0]
    (cut,) = found.cuts
    assert "if y.sum() > 1e9:" in cut and str(found).startswith("6 operators become 4")


def test_full_graph_refuses_reads() -> None:
    compiled = torch.compile(lambda x: x + 1 if (x * 2).sum() > 0 else x, fullgraph=True)
    with pytest.raises(RuntimeError, match="Data-dependent control flow"):
        compiled(torch.ones(3))
    assert torch.compile(lambda x: x + 1, fullgraph=True)(torch.ones(3)).tolist() == [2.0] * 3


def test_refused_arguments() -> None:
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast"):
        torch.compile(abs, mode="fast")
    with pytest.raises(TypeError, match="must be Module or function"):
        torch.compile(3)


def test_views_of_results_with_other_strides_share_their_memory() -> None:
    def function(x: torch.Tensor) -> Any:
        y = x.permute(2, 1, 0) * 1
        y[None, :True, [0, 0]] = 3
        z = torch.nn.functional.pad(x, (1, 1)).transpose(0, 2) * 2
        z[0].add_(1)
        return y, z, z.stride(0) * torch.ones(1)

    alike(function, torch.randn(4, 1, 3))


@needs_triton
def test_streams_get_what_was_noted_in_their_block() -> None:
    with settings.simulate_late(True), torch.cuda.simulate(devices=1):
        side, x = torch.cuda.Stream(), torch.randn(30, 40, device="cuda")

        def function(x: torch.Tensor) -> torch.Tensor:
            y = x * 2
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                z = y + 1
                assert z._data.value is None
            assert z._data.value is not None
            torch.cuda.current_stream().wait_stream(side)
            return z * x

        torch.testing.assert_close(torch.compile(function)(x), (x * 2 + 1) * x)


def test_rows_of_broadcast_values_alone() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return ((x + y).softmax(-1) * y).sum(-1)

    alike(function, torch.randn(5, 1), torch.randn(7))


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "amin"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_whole_tensors_are_reduced_by_rows(name: str, dtype: torch.dtype, units: list[list[str]]) -> None:
    def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return getattr((x - y).square(), name)()

    x, y = torch.randn(8, 50, 60, dtype=dtype), torch.randn(8, 50, 60, dtype=dtype, requires_grad=True)
    compiled = torch.compile(loss)
    for _ in range(4):
        expected = loss(x, y)
        torch.testing.assert_close(compiled(x, y), expected)
        (found,), (wanted,) = (torch.autograd.grad(each, y) for each in (compiled(x, y), expected))
        torch.testing.assert_close(found, wanted)
    assert len(units[0]) == 2, "a kernel, and the reduction of the rows' results"


@pytest.mark.parametrize("exponent", [1, 2, 2.0, 1.0])
def test_short_powers_are_products(exponent: float, units: list[list[str]]) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (x + 1) ** exponent * 3

    compiled = torch.compile(function)
    for x in (
        torch.randn(7, 5, requires_grad=True),
        torch.tensor([float("inf"), -0.0, float("nan")], requires_grad=True),
    ):
        found, expected = compiled(x), function(x)
        assert torch.equal(found.nan_to_num(), expected.nan_to_num())
        (grad,), (wanted,) = (torch.autograd.grad(each.sum(), x) for each in (found, expected))
        torch.testing.assert_close(grad, wanted, equal_nan=True)
    assert "pow" not in str(units)
    assert torch.equal(torch.compile(lambda x: x**2 + 1)(torch.tensor([3, -4])), torch.tensor([10, 17]))


@needs_triton
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_activations_are_part_of_products_on_devices(dtype: torch.dtype, units: list[list[str]]) -> None:
    def function(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        kept = F.linear(x, w, b)
        return (
            F.gelu(F.linear(x, w)),
            F.linear(x, w, b).relu() * 2,
            kept.tanh(),
            kept,
            F.conv2d(x[None, None], w[None, None]).relu(),
        )

    with torch.cuda.simulate(devices=1):
        given = [torch.randn(*shape, device="cuda").to(dtype) for shape in ((5, 6), (4, 6), (4,))]
        given[1] = given[1][:, :6]
        compiled = torch.compile(function)
        for _ in range(3):
            for found, expected in zip(compiled(*given), function(*given), strict=True):
                torch.testing.assert_close(found.cpu(), expected.cpu(), rtol=2e-3, atol=2e-3)
        assert ("gelu" in units[0]) == (dtype is torch.float16)
        assert "tanh" in " ".join(units[0]), "what is kept before it"

"""No tensor of ours needs the cycle collector: memory is free as soon as the last reference is gone.

Each feature runs with the collector off; what the collector then finds are cycles, and none may hold an object of ours.
"""

from __future__ import annotations

import copy
import gc
import pickle
import tracemalloc
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn
from tritensor.nn import functional as F
from tritensor.utils.data import DataLoader, TensorDataset

from ..needs import needs_triton


class Square(torch.autograd.Function):
    """Saves its input and its output."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x * x
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, y = ctx.saved_tensors
        return grad * 2 * x + 0 * y


class Exponential(torch.autograd.Function):
    """Keeps its output as an attribute."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.y = x.exp()
        return ctx.y

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * ctx.y


class Doubled(torch.autograd.Function):
    """Changes its input, and has a second output without a gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        places = torch.arange(x.numel())
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(places)
        ctx.save_for_backward(x.mul_(2), places)
        return x, places

    @staticmethod
    def backward(ctx: Any, grad: Any, _: Any) -> Any:
        x, places = ctx.saved_tensors
        assert x.requires_grad and not places.requires_grad
        return grad * 2


PROGRAMS = {
    "operators": "y = (x.exp() * x.sigmoid() / x.sqrt()).softmax(0).sum()",
    "backward": "(x.exp() * x.sigmoid() / x.sqrt()).softmax(0).sum().backward()",
    "retain_grad": "y = x * 2; y.retain_grad(); z = (y * y).sum()",
    "retain_grad, backward": "y = x * 2; y.retain_grad(); (y * y).sum().backward(); y.grad",
    "retain_grad, changed in place": "y = x * 2; y.retain_grad(); y.mul_(3); y.sum().backward()",
    "a function that saves its output": "y = Square.apply(x)",
    "a function that saves its output, backward": "Square.apply(x).sum().backward()",
    "a function that keeps its output": "y = Exponential.apply(x)",
    "a function that keeps its output, backward": "Exponential.apply(x).sum().backward()",
    "a function that changes its input": "y = Doubled.apply(x * 1)",
    "a function that changes its input, backward": "Doubled.apply(x * 1)[0].sum().backward()",
    "hooks": "y = x * 2; y.register_hook(lambda g: g * 2); x.register_hook(lambda g: g); y.sum().backward()",
    "hooks of leaves": "x.register_post_accumulate_grad_hook(lambda p: None); (x * 2).sum().backward()",
    "views": "y = x * 1; v = y[2:]; w = v.view(2, 31); w.mul_(2); v.add_(1); y.sum().backward()",
    "views, no backward": "y = x * 1; v = y[2:]; w = v.view(2, 31); w.mul_(2); v.add_(1); repr(v.grad_fn)",
    "views without recording": "v = x.detach()[2:]; v.mul_(2)",
    "second derivatives": "(g,) = torch.autograd.grad((x ** 3).sum(), x, create_graph=True); g.sum().backward()",
    "batched gradients": "torch.autograd.grad(x * 2, x, torch.eye(64), is_grads_batched=True)",
    "a walk over the graph": "y = (x * 2).sum(); repr(y); y.grad_fn.next_functions[0][0].next_functions",
    "gradcheck": "torch.autograd.gradcheck(lambda t: t * t, x[:3].detach().double().requires_grad_())",
    "indexing": "y = x * 1; y[torch.tensor([1, 2])] = 3.0; y[y > 0].sum().backward()",
    "joining": "torch.cat([x, x]).split(3)[0].sum().backward(); torch.stack([x, x]).chunk(2)",
    "sorting": "x.sort()[0].sum().backward(); x.max(0); x.topk(3)[0].sum().backward()",
    "complex numbers": "(x.to(torch.complex64) ** 2).abs().sum().backward()",
    "losses and norms": "m = F.layer_norm(F.dropout(x.view(8, 8)), (8,)); "
    "F.cross_entropy(m, torch.arange(8)).backward()",
    "attention": "m = x.view(1, 8, 8); F.scaled_dot_product_attention(m, m, m).sum().backward()",
    "a module": "m = nn.Sequential(nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 2)); m(x).sum().backward()",
    "hooks of modules": "m = nn.Linear(64, 8); m.register_forward_hook(lambda *a: None); "
    "m.register_full_backward_hook(lambda *a: None); m(x).sum().backward()",
    "state dicts": "m = nn.ModuleDict({'a': nn.Linear(2, 2)}); m.load_state_dict(m.state_dict())",
    "an optimizer": "m = nn.Linear(64, 8); o = torch.optim.Adam(m.parameters()); m(x).sum().backward(); o.step(); "
    "s = torch.optim.lr_scheduler.StepLR(o, 1); s.step(); o.zero_grad(); o.load_state_dict(o.state_dict())",
    "copies": "m = nn.Linear(64, 8); m(x).sum().backward(); copy.deepcopy(m); pickle.loads(pickle.dumps(m))",
    "clipping": "(x * 2).sum().backward(); nn.utils.clip_grad_norm_([x], 1.0)",
    "autocast": "m = nn.Linear(64, 8)\nwith torch.autocast('cpu'): m(x).float().sum().backward()",
    "a scaled loss": "m = nn.Linear(64, 8); o = torch.optim.SGD(m.parameters()); s = torch.amp.GradScaler('cpu'); "
    "s.scale(m(x).sum()).backward(); s.step(o); s.update()",
    "an averaged model": "m = nn.Linear(64, 8); a = torch.optim.swa_utils.AveragedModel(m); "
    "a.update_parameters(m); a.update_parameters(m)",
    "a failed operator": "y = x * 2; fails(lambda: y @ torch.ones(3, 3)); fails(lambda: y.view(7))",
    "a failed module": "m = nn.Sequential(nn.Linear(63, 8)); fails(lambda: m(x))",
    "a failed backward": "y = x.exp(); y.add_(1); fails(y.sum().backward); fails((x * 1).backward)",
    "two backward passes": "y = x.exp().sum(); y.backward(); fails(y.backward)",
    "a hook that raises": "y = x * 2; y.register_hook(lambda g: 1 / 0); fails(y.sum().backward, ZeroDivisionError)",
    "checkpoints": "torch.save({'x': x}, path); torch.load(path); torch.load(path, mmap=True)",
    "NumPy": "np.add(x.detach().numpy(), torch.from_numpy(np.ones(64, np.float32)))",
    "loaders": "list(DataLoader(TensorDataset(x.detach()), batch_size=8, shuffle=True))",
    "loaders with processes": "list(DataLoader(TensorDataset(x.detach()), batch_size=8, num_workers=1))",
    "loaders with threads": "d = TensorDataset(x.detach()); "
    "list(DataLoader(d, num_workers=1, multiprocessing_context='thread'))",
}
ON_DEVICES = {
    "a device": "y = x.to('cuda'); (y * 2).sum().backward(); y.cpu(); x.grad",
    "streams": "s = torch.cuda.Stream(); e = torch.cuda.Event()\n"
    "with torch.cuda.stream(s): y = x.detach().to('cuda') * 2\n"
    "e.record(); e.synchronize()",
    "non-blocking copies": "y = x.detach().pin_memory().to('cuda', non_blocking=True); "
    "y.to('cpu', non_blocking=True).sum()",
    "a module on a device": "m = nn.Linear(64, 8).to('cuda'); o = torch.optim.Adam(m.parameters()); "
    "m(x.to('cuda')).sum().backward(); o.step()",
    "DataParallel": "m = nn.DataParallel(nn.Linear(8, 8).to('cuda')); m(x.view(8, 8).to('cuda')).sum().backward()",
    "DataParallel that fails": "m = nn.DataParallel(nn.Linear(7, 8).to('cuda')); y = x.view(8, 8).to('cuda'); "
    "fails(lambda: m(y))",
    "two devices": "y = x.to('cuda'); fails(lambda: y + x)",
    "graphs": "y = x.detach().to('cuda'); z = y * 2; g = torch.cuda.CUDAGraph()\n"
    "with torch.cuda.graph(g): z = y * 2\n"
    "g.replay()",
}
if not hasattr(__import__("os"), "fork"):
    del PROGRAMS["loaders with processes"]


def fails(function: Any, error: type[Exception] = RuntimeError) -> None:
    try:
        function()
    except error:
        return
    raise AssertionError("it did not fail")


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.disable()
    gc.freeze()  # what the other tests left is not looked through: 0.1 s in place of 3
    yield
    gc.set_debug(0)
    gc.garbage.clear()
    gc.unfreeze()
    gc.enable()


def cycles(program: str, path: Path) -> list[str]:
    """The types of the objects of ours, and the frames, that a program leaves in cycles."""
    scope = {"torch": torch, "nn": nn, "F": F, "np": np, "copy": copy, "pickle": pickle, "fails": fails, "path": path}
    scope.update(DataLoader=DataLoader, TensorDataset=TensorDataset)
    scope.update(Square=Square, Exponential=Exponential, Doubled=Doubled)
    code = compile(program, "a program", "exec")
    for _ in range(2):  # the first fills caches, which may leave cycles once
        names = {**scope, "x": torch.linspace(0.1, 2, 64, requires_grad=True)}
        gc.collect()
        exec(code, names)
        names.clear()
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    kinds = {type(found) for found in gc.garbage}
    return sorted(kind.__name__ for kind in kinds if kind.__module__.startswith("tritensor") or kind is types.FrameType)


@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_waits_for_the_collector(name: str, tmp_path: Path) -> None:
    assert cycles(PROGRAMS[name], tmp_path / "x.pt") == []


@needs_triton
@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("name", ON_DEVICES)
def test_nothing_waits_for_the_collector_on_devices(name: str, tmp_path: Path) -> None:
    with torch.cuda.simulate(devices=2):
        assert cycles(ON_DEVICES[name], tmp_path / "x.pt") == []


@pytest.mark.usefixtures("without_collector")
def test_a_cycle_is_found(tmp_path: Path) -> None:
    assert "Tensor" in cycles("y = x * 1; y.itself = y", tmp_path)


@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("name", ["retain_grad", "a function that saves", "a function that keeps"])
def test_memory_of_steps_that_are_dropped_stays_constant(name: str) -> None:
    step = {
        "retain_grad": lambda x: (x * 2).retain_grad(),
        "a function that saves": Square.apply,
        "a function that keeps": Exponential.apply,
    }[name]
    x = torch.ones(1 << 16, requires_grad=True)
    step(x)
    tracemalloc.start()
    try:
        for _ in range(50):
            step(x)
        current, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert current < 1 << 18 and peak < 4 << 18  # of 50 results with 1 << 18 bytes


def test_functions_that_keep_their_output_have_second_derivatives() -> None:
    x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
    for function in (Square.apply, Exponential.apply, lambda t: Doubled.apply(t * 1)[0]):
        assert torch.autograd.gradcheck(function, (x,))
    assert torch.autograd.gradgradcheck(Exponential.apply, (x,))

    class Saved(Exponential):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (y,) = ctx.saved_tensors
            return grad * y

    assert torch.autograd.gradgradcheck(Saved.apply, (x,))
    y = Saved.apply(x)
    y.add_(1)
    with pytest.raises(RuntimeError, match="one of the variables needed for gradient computation has been modified"):
        y.sum().backward()


def test_a_context_has_only_what_was_kept() -> None:
    class Asking(Exponential):
        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            assert not hasattr(ctx, "missing")
            held.append(ctx)
            return grad * ctx.y

    held: list[Any] = []
    x = torch.ones(2, requires_grad=True)
    Asking.apply(x).sum().backward()
    with pytest.raises(AttributeError, match="'FunctionCtx' object has no attribute 'y'"):
        held[0].y  # noqa: B018
    with pytest.raises(RuntimeError, match="the graph that this context belongs to is gone"):
        held[0].saved_tensors  # noqa: B018

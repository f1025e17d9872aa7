"""Hooks on saved tensors, on nodes and on several tensors, and anomaly detection, beside PyTorch."""

from __future__ import annotations

import importlib
import threading
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import tritensor as ours
from tritensor.autograd import saving, watched


def library(name: str) -> Any:
    """A library's modules, by the names that the programs here use."""
    parts = {
        "graph": "autograd.graph",
        "checkpoint": "utils.checkpoint",
        "modules": "nn.hooks" if name == "tritensor" else "nn.modules.module",
    }
    found = {key: importlib.import_module(f"{name}.{path}") for key, path in parts.items()}
    return SimpleNamespace(torch=importlib.import_module(name), **found)


def recorded(log: list[Any], name: str = "") -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Hooks that note what they get."""

    def pack(x: Any) -> Any:
        log.append((f"pack{name}", x.tolist(), x.requires_grad, x.grad_fn and x.grad_fn.name()))
        return x.detach()

    def unpack(x: Any) -> Any:
        log.append((f"unpack{name}", x.tolist()))
        return x

    return pack, unpack


def refused(call: Callable[[], Any]) -> tuple[str, str]:
    """The first words of the error of a call."""
    with pytest.raises((RuntimeError, TypeError, ValueError)) as caught:
        call()
    kind = next(k for k in type(caught.value).__mro__ if k.__module__ == "builtins")
    return kind.__name__, str(caught.value).splitlines()[0][:66]


def saved_tensors(lib: Any) -> list[Any]:
    torch, graph, log = lib.torch, lib.graph, []
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    b = torch.tensor([3.0, 4.0], requires_grad=True) * 2
    with graph.saved_tensors_hooks(*recorded(log)):
        total = ((a * b).sqrt().pow(2) / b).sum()
    total.backward(retain_graph=True)
    (first,) = torch.autograd.grad(total, a, create_graph=True)
    log += [a.grad.tolist(), first.tolist(), torch.autograd.grad(first.sum(), b, allow_unused=True)[0].tolist()]

    class Square(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x, result := x * x)
            return result

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, result = ctx.saved_tensors
            log.append((x.requires_grad, result.requires_grad))
            return grad * 2 * x

    with graph.saved_tensors_hooks(*recorded(log)):
        squares = Square.apply(a).sum()
        with graph.saved_tensors_hooks(*recorded(log, " inside")):
            inside = (a * a).sum()
        thread = threading.Thread(target=lambda: (a * a).sum())
        thread.start()
        thread.join()
    log += [squares.grad_fn.next_functions[0][0].needs_input_grad, len(inside.grad_fn.next_functions)]
    (squares + inside).backward()
    for same in (lambda x: x, lambda x: x.detach()):  # a leaf is found again, also behind another tensor
        leaf = torch.tensor([1.0, 2.0], requires_grad=True)
        with graph.saved_tensors_hooks(same, lambda x: x):
            cubes = (leaf * leaf * leaf).sum()
        (slope,) = torch.autograd.grad(cubes, leaf, create_graph=True)
        log.append(torch.autograd.grad(slope.sum(), leaf)[0].tolist())
    return [*log, a.grad.tolist()]


def checkpoints(lib: Any) -> list[Any]:
    torch, log = lib.torch, []
    for reentrant in (False, True):
        a, b = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0])
        with lib.graph.saved_tensors_hooks(*recorded(log)):
            y = lib.checkpoint.checkpoint(lambda x, k, f: (x * k).pow(2) * f, a, b, 2.0, use_reentrant=reentrant)
        log = [each[:2] for each in log]  # tensors that stand for a leaf have no node
        y.sum().backward()
        log.append(a.grad.tolist())
    return log


def errors_of_hooks(lib: Any) -> list[Any]:
    torch, graph = lib.torch, lib.graph
    x = torch.ones(2, requires_grad=True) * 1

    def within(pack: Any, unpack: Any) -> Any:
        with graph.saved_tensors_hooks(pack, unpack):
            return (x * x).sum()

    def disabled(inner: Any, outer: Any) -> None:
        with outer, inner:
            raise AssertionError

    hooks = graph.saved_tensors_hooks(lambda x: x, lambda x: x)
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(lambda x: x.detach(), lambda x: x)
    return [
        refused(lambda: within(lambda x: x.detach(), lambda x: 3).backward()),
        refused(lambda: disabled(hooks, graph.disable_saved_tensors_hooks("no hooks here"))),
        refused(lambda: disabled(graph.disable_saved_tensors_hooks("nor here"), hooks)),
        refused(lambda: y.grad_fn._raw_saved_self.register_hooks(lambda x: x, lambda x: x)),
        y.sum().backward(),
        refused(lambda: y.grad_fn._saved_self),
        refused(lambda: graph.get_gradient_edge(torch.ones(1))),
        refused(lambda: graph.register_multi_grad_hook([x], print, mode="some")),
        refused(lambda: within(lambda x: x.mul_(2), lambda x: x)),
    ]


def nodes(lib: Any) -> list[Any]:
    torch, log = lib.torch, []
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    b = a.clone()

    def noted(*given: Any) -> None:
        log.append([[x.tolist() for x in each] for each in given])

    handles = [b.grad_fn.register_hook(noted), b.grad_fn.register_hook(lambda inner, outer: (outer[0] * 2,))]
    handles += [b.grad_fn.register_prehook(noted), b.grad_fn.register_prehook(lambda outer: (outer[0] * 3,))]
    (b * 2).sum().backward()
    for each in handles:
        each.remove()
    leaf = b.grad_fn.next_functions[0][0]
    handles = [leaf.register_hook(noted)]
    b.sum().backward()
    handles[0].remove()
    handles = [leaf.register_prehook(lambda outer: (outer[0] * 10,)), leaf.register_prehook(lambda outer: None)]
    a.clone().sum().backward()
    pieces = (a * 1).unbind()
    pieces[0].grad_fn.register_prehook(lambda outer: tuple([x * 5 for x in outer]))
    (pieces[0] + pieces[1]).backward()
    for wrong in (lambda inner, outer: [None], lambda inner, outer: (None, None)):
        handle = b.grad_fn.register_hook(wrong)
        log.append(refused(lambda: b.sum().backward(retain_graph=True)))
        handle.remove()
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    before = x._version
    lib.graph.increment_version(x)
    lib.graph.increment_version([x, x])
    y, z = x.pow(2), x.exp()
    log += [x._version - before, y.grad_fn._saved_self is x, z.grad_fn._saved_result.equal(z)]
    return [*log, a.grad.tolist(), isinstance(b.grad_fn, lib.graph.Node), hasattr(b.grad_fn, "nothing")]


def several_tensors(lib: Any) -> list[Any]:
    torch, log = lib.torch, []
    for mode in ("all", "any"):
        x, y, unused = (torch.tensor([value], requires_grad=True) for value in (1.0, 2.0, 3.0))
        c, d = x * y, x * y
        total = (c * d).sum()

        def note(found: Any, log: list[Any] = log) -> None:
            log.append([each if each is None else each.tolist() for each in found])

        handle = lib.graph.register_multi_grad_hook((c, d, x, unused)[: 4 if mode == "all" else 2], note, mode=mode)
        total.backward(retain_graph=True)
        torch.autograd.grad(total, y, retain_graph=True)
        total.backward(inputs=[x], retain_graph=True)
        handle.remove()
        total.backward(retain_graph=True)
        edge = lib.graph.get_gradient_edge(c)
        log += [torch.autograd.grad(total, edge, retain_graph=True), x.grad.tolist()]
        log += torch.autograd.grad(total, lib.graph.get_gradient_edge(x), retain_graph=True)
        log += torch.autograd.grad(edge, x, torch.ones(1), retain_graph=True)
        total.backward(inputs=[lib.graph.get_gradient_edge(x)], retain_graph=True)
        log.append(x.grad.tolist())
        called: list[Any] = []
        y.register_hook(called.append)
        torch.autograd.grad(total, x)
        log.append(called)
        product = x * y
        product.register_hook(lambda grad, x=x, note=note: lib.graph.register_multi_grad_hook([x], note) and None)
        product.sum().backward()  # in which the hook comes
    return [str(each) for each in log]


def anomalies(lib: Any) -> list[Any]:
    torch = lib.torch
    log = [torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()]

    def failing(x: Any) -> Any:
        return x.log() * 0

    def run(mode: Any, loss: Any) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with mode():
                log.append((torch.is_anomaly_enabled(), refused(lambda: loss().backward())))
        lines = [line for each in caught for line in str(each.message).splitlines() if each.category is UserWarning]
        log.extend(line.partition("(Triggered")[0].strip() for line in lines if "lambda" not in line)

    x, zero = torch.tensor([-1.0, 0.0], requires_grad=True), torch.tensor([0.0], requires_grad=True)
    run(torch.autograd.detect_anomaly, lambda: failing(x).sum())
    run(torch.autograd.detect_anomaly, lambda: (torch.zeros(1) / (torch.ones(1) / zero)).div(zero).sum())
    made = failing(x).sum()
    run(lambda: torch.autograd.set_detect_anomaly(True), lambda: made)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        failing(x).sum().backward()
    torch.autograd.set_detect_anomaly(False)
    return [
        each for each in log if each and (not isinstance(each, str) or each.startswith(("Error", "return", "Anomaly")))
    ]


def modules(lib: Any) -> list[Any]:
    torch, log = lib.torch, []
    handles = [
        lib.modules.register_module_forward_pre_hook(
            lambda module, args: log.append(("before", type(module).__name__))
        ),
        lib.modules.register_module_forward_hook(
            lambda module, args, out: log.append(("after", type(module).__name__))
        ),
        lib.modules.register_module_forward_hook(
            lambda module, args, named, out: log.append(sorted(named)), with_kwargs=True
        ),
        lib.modules.register_module_full_backward_pre_hook(lambda module, outer: log.append(type(module).__name__)),
        lib.modules.register_module_full_backward_hook(
            lambda module, inner, outer: log.append([x is None or tuple(x.shape) for x in inner])
        ),
    ]
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh())
    model[0].register_forward_hook(lambda module, args, out: log.append("own"))
    model(torch.ones(1, 2, requires_grad=True)).sum().backward()
    for each in handles:
        each.remove()
    model(torch.ones(1, 2))
    return log


PROGRAMS = (saved_tensors, checkpoints, errors_of_hooks, nodes, several_tensors, anomalies, modules)


@pytest.mark.peer
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_pytorch(program: Callable[[Any], list[Any]]) -> None:
    pytest.importorskip("torch")
    assert program(library("tritensor")) == program(library("torch"))


def test_what_is_packed_is_what_is_read() -> None:
    lib = library("tritensor")
    log = saved_tensors(lib)
    assert [each[0] for each in log if isinstance(each, tuple)][:5] == ["pack"] * 5 and log[-1] == [5.0, 9.0]
    assert [each[0] for each in checkpoints(lib)[:2]] == ["pack", "pack"]
    assert several_tensors(lib)[0] == "[[2.0], [2.0], [8.0], None]" and len(modules(lib)) == 17
    x = ours.ones(1, requires_grad=True)
    assert refused(lambda: ours.autograd.backward(lib.graph.get_gradient_edge(x * 2)))[1].startswith("grad can be impl")
    assert nodes(lib)[-2:] == [True, False]


def test_errors_name_operator_and_line() -> None:
    found = anomalies(library("tritensor"))
    assert found[1] == (True, ("RuntimeError", "Function 'LogBackward0' returned nan values in its 0th output."))
    assert errors_of_hooks(library("tritensor"))[-1][1].startswith("A saved tensor pack hook is modifying its input")
    assert not watched.on and not watched.around and not saving.state.pairs  # nothing is left


def test_layers_and_functions_of_several_tensors() -> None:
    """All that is saved passes the hooks: of lists of tensors, of several outputs, of layers."""
    kept: list[Any] = []

    def run() -> list[Any]:
        ours.manual_seed(0)
        layers = ours.nn.ModuleList([ours.nn.GRU(2, 3), ours.nn.Conv1d(1, 2, 1), ours.nn.LayerNorm(2)])
        a = ours.tensor([[1.0, 2.0]], requires_grad=True)
        x = layers[0](a[None])[0].sum() + layers[1](a[None]).sum() + ours.cat([a, a * a]).sort()[0].max()
        x = x + ours.nn.functional.cross_entropy(layers[2](a), ours.tensor([1])) + a.prod() + a.std()
        x.backward()
        return [a.grad, *(each.grad for each in layers.parameters())]

    plain = run()
    with ours.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.shape) or x.detach().clone(), lambda x: x):
        hooked = run()
    assert len(kept) > 20 and all(x.equal(y) for x, y in zip(plain, hooked, strict=True))


def test_saved_on_the_host() -> None:
    with ours.cuda.simulate(devices=2):
        x = ours.ones(4, device="cuda:1", requires_grad=True)
        for pinned in (False, True):
            with ours.autograd.graph.save_on_cpu(pin_memory=pinned):
                y = (x * x).exp()
            kept = y.grad_fn._node.saved[0].data[1]
            assert kept.device.type == "cpu" and kept.is_pinned() is pinned and y.grad_fn._saved_result.is_cuda
            x.grad = None
            y.sum().backward()
            assert x.grad.device == x.device and x.grad.tolist() == pytest.approx([2 * 2.71828] * 4, rel=1e-4)

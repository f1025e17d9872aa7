"""Optimizers that compute with matrices or several evaluations, and what all declared ones have in common."""

from __future__ import annotations

import pytest

import tritensor as torch
from tritensor import cuda, nn, optim

from ..launched import note_launches
from ..needs import needs_triton
from .formulas import parameter
from .many_parameters import assert_equal_state, give_gradients, parameters

W = nn.Parameter(torch.ones(2, 2))
MATRICES = [(6, 4), (3, 5), (6, 4)]


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: optim.Adadelta([W], rho=1.1), ValueError, "Invalid rho value: 1.1"),
        (lambda: optim.Adagrad([W], lr_decay=-0.5), ValueError, "Invalid lr_decay value: -0.5"),
        (lambda: optim.ASGD([W], weight_decay=-0.5), ValueError, "Invalid weight_decay value: -0.5"),
        (lambda: optim.NAdam([W], momentum_decay=-0.2), ValueError, "Invalid momentum_decay value: -0.2"),
        (lambda: optim.RMSprop([W], momentum=-1.0), ValueError, "Invalid momentum value: -1.0"),
        (lambda: optim.Rprop([W], etas=(1.0, 0.5)), ValueError, "Invalid eta values: 1.0, 0.5"),
        (lambda: optim.Adafactor([W], d=0.0), ValueError, "Clipping threshold d should be >= 1 but is: 0.0"),
        (lambda: optim.Adafactor([W], lr=-1), ValueError, "Learning rate should be >= 0 but is: -1"),
        (lambda: optim.Adafactor([W], eps=(-1e-30, 1)), ValueError, "epsilon1 should be >= 0 but is: -1e-30"),
        (lambda: optim.Adafactor([W], eps=(None, -1)), ValueError, "epsilon2 should be >= 0 but is: -1"),
        (lambda: optim.Muon([parameter([1.0])]), ValueError, "Muon only supports 2D parameters whereas we found"),
        (lambda: optim.Muon([W], adjust_lr_fn="x"), ValueError, "Adjust learning rate function x is not supported"),
        (lambda: optim.Adam([W], betas=(0, 0.9)), ValueError, "betas must be either both floats or both Tensors"),
        (lambda: optim.Adam([W], lr=torch.tensor(0.1), foreach=True), ValueError, "lr as a Tensor is not supported"),
        (lambda: optim.SparseAdam([W], lr=0.0), ValueError, "Invalid learning rate: 0.0"),
        (lambda: optim.SparseAdam([W], eps=0.0), ValueError, "Invalid epsilon value: 0.0"),
        (lambda: optim.LBFGS([{"params": W}, {"params": [nn.Parameter(W)]}]), ValueError, "LBFGS doesn't support per-"),
        (lambda: optim.LBFGS([W]).step(), TypeError, r"missing 1 required positional argument: 'closure'"),
        (
            lambda: optim.LBFGS([W], line_search_fn="x").step(lambda: 1),
            RuntimeError,
            "only 'strong_wolfe' is supported",
        ),
        (lambda: optim.SGD([W], fused=True, foreach=True), RuntimeError, "`fused` and `foreach` cannot be `True`"),
        (lambda: optim.Adagrad([W], fused=True, differentiable=True), RuntimeError, "`fused` does not support"),
    ],
)
def test_misuse_raises_in_pytorchs_words(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_a_group_that_muon_refuses_is_not_added():
    optimizer = optim.Muon([W])
    with pytest.raises(ValueError, match="only supports 2D"):
        optimizer.add_param_group({"params": [parameter([1.0])]})
    assert len(optimizer.param_groups) == 1


@pytest.mark.parametrize("name", ["Adafactor", "Muon"])
def test_complex_parameters_are_refused(name):
    param = nn.Parameter(torch.ones(2, 2, dtype=torch.complex64))
    param.grad = torch.ones(2, 2, dtype=torch.complex64)
    with pytest.raises(RuntimeError, match=f"{name} does not support complex parameters"):
        getattr(optim, name)([param]).step()
    with pytest.raises(ValueError, match=r"Complex params at indices \[\[0, 0\]\]: SparseAdam does not"):
        optim.SparseAdam([param])


def test_sparse_adam_takes_no_dense_gradient():
    param = parameter([1.0])
    optimizer = optim.SparseAdam([param])
    assert optimizer.step(lambda: 3) == 3
    param.grad = torch.ones(1)
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients, please consider Adam"):
        optimizer.step()


@pytest.mark.parametrize("kind", ["SGD", "Adam", "Rprop", "Adagrad"])
def test_complex_parameters_are_stepped_as_pairs(kind):
    options = {"momentum": 0.5} if kind == "SGD" else {}
    one = nn.Parameter(torch.tensor([1 + 2j, -3 + 0.5j]))
    other = nn.Parameter(torch.tensor([1.0, 2.0, -3.0, 0.5]))
    for param in (one, other):
        optimizer = getattr(optim, kind)([param], **options)
        for sign in (1, -1, -1):
            values = [0.5 + 1j, 2 - 1j] if param is one else [0.5, 1.0, 2.0, -1.0]
            param.grad = torch.tensor(values) * sign
            optimizer.step()
    assert [part for z in one.tolist() for part in (z.real, z.imag)] == pytest.approx(other.tolist())


def test_gradients_go_through_a_differentiable_step():
    x, lr = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor(0.5, requires_grad=True)
    param = x.clone()
    param.grad = (3 * x).clone()
    optim.SGD([param], lr=lr, differentiable=True).step()
    param.sum().backward()
    assert x.grad.tolist() == [-0.5, -0.5]
    assert lr.grad.item() == -9.0


def test_lbfgs_finds_a_minimum_and_its_state_goes_on():
    param = nn.Parameter(torch.tensor([3.0, -2.0], dtype=torch.float64))
    calls = []

    def closure():
        calls.append(1)
        optimizer.zero_grad()
        x, y = param.unbind()
        loss = (1 - x) ** 2 + 100 * (y - x * x) ** 2
        loss.backward()
        return loss

    optimizer = optim.LBFGS([param], line_search_fn="strong_wolfe", max_iter=10)
    for _ in range(3):
        optimizer.step(closure)
    state = optimizer.state_dict()
    optimizer = optim.LBFGS([param], line_search_fn="strong_wolfe", max_iter=40)
    optimizer.load_state_dict(state)
    optimizer.step(closure)
    assert optimizer.state[param]["func_evals"] == len(calls)
    assert param.tolist() == pytest.approx([1.0, 1.0], abs=1e-4)
    assert optimizer.step(closure).item() < 1e-8


@pytest.mark.thorough
@needs_triton
@pytest.mark.parametrize(("name", "most"), [("Adafactor", 30 * 5), ("Muon", 55 * 2)])
def test_stacks_are_stepped_on_a_device_as_on_the_cpu(name, most, monkeypatch):
    launches = note_launches(monkeypatch, lambda kernel, grid: kernel.__name__)
    shapes = [*MATRICES, (7,), (), (2, 3, 4)] if name == "Adafactor" else MATRICES
    with cuda.simulate(devices=1):
        ours, theirs = parameters(shapes, "cuda"), parameters(shapes, "cpu")
        one, other = getattr(optim, name)(ours, lr=0.1), getattr(optim, name)(theirs, lr=0.1)
        for seed in range(2):
            for params in (ours, theirs):
                give_gradients(params, seed)
            launches.clear()
            one.step()
            assert len(launches) <= most
            other.step()
        tolerance = 2e-2 if name == "Muon" else 1e-5
        assert_equal_state(one, other, ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.sampled(1)
@needs_triton
@pytest.mark.parametrize("name", [name for name in optim.__all__ if name != "Optimizer" and name[0].isupper()])
def test_state_is_loaded_on_another_device(name):
    def closure():
        loss = sum(((param - 1) ** 2).sum() for param in params)
        optimizer.zero_grad()
        loss.backward()
        return loss

    if name == "SparseAdam":
        return
    found = []
    with cuda.simulate(devices=1):
        for devices in (("cpu", "cpu"), ("cpu", "cuda"), ("cuda", "cpu")):
            state = None
            params = parameters([(3, 2), (2, 2)], "cpu")
            for device in devices:
                params = [nn.Parameter(param.detach().to(device)) for param in params]
                options = {"max_iter": 2} if name == "LBFGS" else {}
                optimizer = getattr(optim, name)(params, lr=0.1, **options)
                if state is not None:
                    optimizer.load_state_dict(state)
                for _ in range(2):
                    optimizer.step(closure)
                state = optimizer.state_dict()
            found.append([param.detach().cpu() for param in params])
    for each in found[1:]:
        for one, other in zip(each, found[0], strict=True):
            tolerance = 2e-2 if name == "Muon" else 1e-4
            torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)

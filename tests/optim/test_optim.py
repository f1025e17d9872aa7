"""Optimizers: the steps against independent formulas, what is refused, groups and hooks of steps."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda, nn, optim
from tritensor.kernels.optimizer import rules, steps

from .formulas import GRADIENTS, SETTINGS, START, by_hand, parameter, run

W = nn.Parameter(torch.ones(1))


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 2e-6), (torch.float64, 1e-12), (torch.bfloat16, 3e-2)]
)
def test_steps_follow_the_formulas(name, dtype, tolerance, device):
    kind, options = SETTINGS[name]
    param = run(kind, options, START, GRADIENTS, dtype, device)
    assert param.dtype is dtype
    expected = by_hand(kind, options, START, GRADIENTS)
    np.testing.assert_allclose(param.detach().cpu().double().numpy(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", SETTINGS)
def test_kernels_agree_with_the_references(name):
    kind, options = SETTINGS[name]
    with cuda.simulate(devices=1), torch.testing.checked():
        on_device = run(kind, options, START, GRADIENTS, device="cuda").detach().cpu()
    torch.testing.assert_close(on_device, run(kind, options, START, GRADIENTS).detach(), rtol=1e-5, atol=1e-6)


RULES = [name for name in rules.__all__ if hasattr(getattr(rules, name), "metadata")]
CHANGED = [
    {},
    {"l2": 0.3, "sign": -1.0},
    {"shrink": 0.9, "rest1": 0.7, "rest": 0.6, "kept": 0.4},
    {"nesterov": 1.0, "l2": 0.1, "adapted": 0.0, "mu": 1.0},
]


@pytest.mark.sampled(100)
@pytest.mark.parametrize("size", [0, 1, 7, 50, 101, 150])
@pytest.mark.parametrize("changed", CHANGED)
@pytest.mark.parametrize("name", RULES)
def test_the_passes_equal_the_reference(name, changed, size, monkeypatch):
    """Also where the arrays are longer than one chunk, of which the last is shorter."""
    operator = getattr(rules, name)
    monkeypatch.setattr(steps, "CHUNK", 50)
    monkeypatch.setattr(steps, "_scratch", steps._Scratch())
    numbers = {key: changed.get(key, value) for key, value in operator.metadata.items()}
    random = np.random.default_rng(size)
    tensors = [
        torch.tensor(random.random(size) - (0.5 if position < 2 else 0)) for position in range(len(operator.inputs))
    ]
    with np.errstate(all="ignore"):
        expected = operator.reference(*[each.numpy().copy() for each in tensors], **numbers)
    expected = expected if isinstance(expected, tuple) else (expected,)
    large = steps.Large()
    with np.errstate(all="ignore"):
        assert steps.Step(operator, list(numbers.values())).in_place(tensors[0], tensors[1], tensors[2:], large)
        large.run()
    for got, want in zip([tensors[0], *tensors[2:]], expected, strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12, atol=1e-15)


def test_large_parameters_that_share_memory_are_stepped_one_after_the_other(monkeypatch):
    shared: list[int] = []
    monkeypatch.setattr(steps, "in_pieces", lambda run, size, step: (shared.append(step), run(0, size)))
    whole = torch.zeros(4 * steps.CHUNK)
    monkeypatch.setattr(steps, "get_num_threads", lambda: 2)
    for params, shares in (([whole[:-1], whole[1:]], []), ([whole, torch.zeros(4 * steps.CHUNK)], [1])):
        for param in params:
            param.grad = torch.ones_like(param)
        torch.optim.SGD(params, lr=1.0).step()
        assert shared == shares
    assert whole[:2].tolist() == [-2.0, -3.0]


@pytest.mark.parametrize("name", SETTINGS)
def test_steps_do_not_depend_on_the_number_of_threads(name):
    kind, options = SETTINGS[name]
    random, found, before = np.random.default_rng(0), [], torch.get_num_threads()
    start, grad = random.random((2, 5, steps.CHUNK), np.float32)
    try:
        for number in (1, 3):
            torch.set_num_threads(number)
            param = torch.nn.Parameter(torch.tensor(start))
            optimizer = kind([param], **options)
            for _ in range(2):
                param.grad = torch.tensor(grad)
                optimizer.step()
            found.append(param.detach().numpy().tobytes())
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1] != start.tobytes()


def test_the_quick_step_leaves_the_gradient_alone():
    for name, (kind, options) in SETTINGS.items():
        param = parameter(START)
        param.grad = torch.tensor(GRADIENTS[0])
        kind([param], **options).step()
        assert param.grad.tolist() == pytest.approx(GRADIENTS[0]), name


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam])
def test_strided_and_half_parameters_take_the_general_way(kind):
    options = {"lr": 0.1, **({"momentum": 0.9} if kind is optim.SGD else {})}
    plain = parameter([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    turned = nn.Parameter(torch.tensor([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]).t())
    assert not turned.is_contiguous()
    turned_grad = parameter([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    gradient = torch.tensor([[1.0, -2.0, 3.0], [0.5, 0.1, -1.0]])
    for param, grad in ((plain, gradient), (turned, gradient), (turned_grad, gradient.t().contiguous().t())):
        optimizer = kind([param], **options)
        for _ in range(3):
            param.grad = grad
            optimizer.step()
    torch.testing.assert_close(turned.detach(), plain.detach())
    torch.testing.assert_close(turned_grad.detach(), plain.detach())


def test_a_gradient_of_another_dtype_is_taken():
    param = parameter(START)
    param.grad = torch.tensor(GRADIENTS[0])
    param.data = param.data.double()
    optim.SGD([param], lr=0.1).step()
    assert param.dtype is torch.float64
    assert param.tolist() == pytest.approx(by_hand(optim.SGD, {"lr": 0.1}, START, GRADIENTS[:1]))


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam])
def test_a_step_counts_as_a_change_in_place(kind):
    param = parameter([2.0])
    product = param * param
    param.grad = torch.ones(1)
    kind([param]).step()
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        product.backward()


def test_infinite_and_undefined_gradients_go_through_without_warnings():
    for kind in (optim.SGD, optim.Adam):
        param = parameter([1.0, 1.0, 1.0])
        param.grad = torch.tensor([float("inf"), float("nan"), 1e30])
        kind([param], lr=0.1).step()
        assert np.isfinite(param.detach().numpy()).tolist() in ([False, False, True], [False, False, True])


def test_a_step_closure_records_gradients():
    param = parameter([1.0])
    optimizer = optim.SGD([param], lr=0.5)

    def closure():
        optimizer.zero_grad()
        loss = (param * 3).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 3
    assert param.item() == -0.5
    assert optimizer.step() is None


def test_parameters_without_gradient_are_passed_over():
    moved, kept = parameter([1.0]), parameter([1.0])
    moved.grad = torch.ones(1)
    for optimizer in (optim.SGD([moved, kept], momentum=0.9), optim.Adam([moved, kept])):
        optimizer.step()
        assert list(optimizer.state) == [moved]
    assert kept.item() == 1


@pytest.mark.peer
@pytest.mark.parametrize("name", SETTINGS)
def test_steps_equal_pytorchs(name):
    peer = pytest.importorskip("torch")
    kind, options = SETTINGS[name]
    random = np.random.default_rng(0)
    start = random.standard_normal((5, 7)).astype(np.float32)
    gradients = random.standard_normal((6, 5, 7)).astype(np.float32)
    theirs = peer.nn.Parameter(peer.tensor(start))
    optimizer = getattr(peer.optim, kind.__name__)([theirs], **options)
    for gradient in gradients:
        theirs.grad = peer.tensor(gradient)
        optimizer.step()
    ours = run(kind, options, start.tolist(), gradients.tolist())
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-6)


# ---- groups ---------------------------------------------------------------------------------------------------


def test_groups_have_their_own_options():
    slow, fast = parameter([1.0]), parameter([1.0])
    optimizer = optim.SGD([{"params": slow}, {"params": [fast], "lr": 1.0}], lr=0.1)
    for param in (slow, fast):
        param.grad = torch.ones(1)
    optimizer.step()
    assert (slow.item(), fast.item()) == (pytest.approx(0.9), 0.0)
    later = parameter([1.0])
    optimizer.add_param_group({"params": later, "momentum": 0.5})
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 1.0, 0.1]
    optimizer.param_groups[0]["lr"] = 0.0
    slow.grad = torch.ones(1)
    optimizer.step()
    assert slow.item() == pytest.approx(0.9)


def test_named_parameters():
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.named_parameters())
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]
    with pytest.raises(ValueError, match="all optimizer param groups should be with/without names"):
        optimizer.add_param_group({"params": parameter([1.0])})
    plain = optim.SGD(model.parameters()).state_dict()
    optimizer.load_state_dict(plain)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    with pytest.raises(ValueError, match="Some param names are missing"):
        optim.SGD([("a", parameter([1.0])), parameter([1.0])])


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: optim.SGD([], lr=1), ValueError, "optimizer got an empty parameter list"),
        (lambda: optim.SGD(W, lr=1), TypeError, "params argument given to the optimizer should be an iterable of"),
        (lambda: optim.Adam(None), TypeError, "'NoneType' object is not iterable\n  Fix: pass an iterable of"),
        (lambda: optim.SGD([1], lr=1), TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
        (lambda: optim.SGD([{"params": {W}}]), TypeError, "optimizer parameters need to be organized in ordered"),
        (lambda: optim.SGD([W * 2]), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda: optim.SGD([{"params": W}, {"params": [W]}]), ValueError, "some parameters appear in more than one"),
        (lambda: optim.SGD([W], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: optim.Adam([W], lr=float("nan")), ValueError, "Invalid learning rate: nan"),
        (lambda: optim.SGD([W], momentum=-0.5), ValueError, "Invalid momentum value: -0.5"),
        (lambda: optim.SGD([W], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda: optim.SGD([W], nesterov=True), ValueError, "Nesterov momentum requires a momentum and zero dampening"),
        (lambda: optim.Adam([W], lr=-0.1), ValueError, "Invalid learning rate: -0.1"),
        (lambda: optim.Adam([W], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda: optim.Adam([W], betas=(1.0, 0.9)), ValueError, "Invalid beta parameter at index 0: 1.0"),
        (lambda: optim.Adam([W], betas=(0.9, -1)), ValueError, "Invalid beta parameter at index 1: -1"),
        (lambda: optim.AdamW([W], weight_decay=-1), ValueError, "Invalid weight_decay value: -1"),
        (lambda: optim.SGD([W]).add_param_group([W]), TypeError, "param_group must be a dict, but got <class 'list'>"),
    ],
)
def test_misuse_raises_in_pytorchs_words(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_a_group_that_is_refused_is_not_added():
    optimizer = optim.SGD([W])
    group = {"params": [parameter([1.0]), W]}
    with pytest.raises(ValueError, match="more than one"):
        optimizer.add_param_group(group)
    assert len(optimizer.param_groups) == 1
    assert list(group) == ["params"]


def test_duplicates_in_a_group_warn():
    with pytest.warns(UserWarning, match="optimizer contains a parameter group with duplicate parameters"):
        optim.SGD([W, W])


def test_a_parameter_that_is_there_twice_is_stepped_twice_and_saved_in_its_last_place():
    param = parameter([2.0])
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optimizer = optim.SGD([param, param], lr=0.5, momentum=0.5)
    param.grad = torch.ones(1)
    optimizer.step()
    state = optimizer.state_dict()
    assert param.tolist() == [1.0]  # neither step knows the other's direction
    assert state["param_groups"][0]["params"] == [1, 1]
    assert list(state["state"]) == [1] and state["state"][1]["momentum_buffer"].tolist() == [1.0]


def test_state_lies_in_memory_as_its_parameter(device):
    param = nn.Parameter(torch.zeros(2, 3, device=device).t())
    for make, name in (
        (lambda: optim.Adam([param]), "exp_avg"),
        (lambda: optim.SGD([param], momentum=0.5), "momentum_buffer"),
    ):
        optimizer = make()
        param.grad = torch.ones(3, 2, device=device)
        optimizer.step()
        assert optimizer.state[param][name].stride() == (1, 3)


@pytest.mark.parametrize("options", [{}, {"amsgrad": True}])
def test_infinite_gradients_and_averages(device, options):
    whole = torch.tensor([[2.0, 0.0], [1.0, 0.0]], device=device)
    for param in (nn.Parameter(torch.tensor([2.0, 1.0], device=device)), nn.Parameter(whole[:, 0])):
        optimizer = optim.Adam([param], lr=0.5, **options)
        for _ in range(2):
            param.grad = torch.tensor([1.0, float("inf")], device=device)
            optimizer.step()
        average, finite = optimizer.state[param]["exp_avg"].tolist(), param.tolist()[0]
        assert average == [pytest.approx(0.19), pytest.approx(float("nan"), nan_ok=True)]
        assert finite == pytest.approx(1.0, abs=1e-5)
        optimizer = optim.Adam([param], betas=(0.25, 0.9), **options)  # an average that mostly forgets
        param.grad = torch.tensor([4.0, 1.0], device=device)
        optimizer.step()
        assert optimizer.state[param]["exp_avg"].tolist() == [3.0, 0.75]


@pytest.mark.parametrize(
    "make",
    [lambda p: optim.SGD([p], lr=0.5), lambda p: optim.SGD([p], lr=0.5, momentum=0.5), lambda p: optim.Adam([p])],
)
def test_without_decay_an_infinite_parameter_leaves_the_gradient_alone(device, make):
    whole = torch.tensor([[2.0, 0.0], [float("inf"), 0.0]], device=device)
    for param in (nn.Parameter(whole[:, 0].clone()), nn.Parameter(whole[:, 0])):
        optimizer = make(param)
        param.grad = torch.ones(2, device=device)
        optimizer.step()
        assert param.tolist()[1] == float("inf")
        for value in optimizer.state[param].values():
            assert torch.isfinite(value).all()


@pytest.mark.parametrize("make", [optim.SGD, optim.Adam, optim.AdamW])
def test_a_leaf_takes_no_step_that_is_differentiable(make):
    param = parameter([1.0])
    for value, error, words in (
        (True, RuntimeError, r"^a leaf Variable that requires grad is being used in an in-place operation\."),
        (2, TypeError, r"^set_grad_enabled\(\): argument 'enabled' \(position 1\) must be bool, not int"),
    ):
        optimizer = make([param], differentiable=value)
        param.grad = torch.ones(1)
        with pytest.raises(error, match=words):
            optimizer.step()
        assert param.tolist() == [1.0]


@pytest.mark.parametrize(
    ("make", "option"), [(lambda p: optim.SGD([p], momentum=0.5), "dampening"), (lambda p: optim.Adam([p]), "eps")]
)
def test_a_group_whose_option_is_no_number(make, option):
    param = parameter([1.0])
    optimizer = make(param)
    optimizer.param_groups[0][option] = None
    param.grad = torch.ones(1)
    with pytest.raises(TypeError, match=rf"^float\(\) argument must be .*\n.*{option}=None"):
        optimizer.step()
    assert param.tolist() == [1.0]


def test_a_rate_that_is_no_number_is_compared_as_in_pytorch():
    optim.SGD([W], lr=float("nan"), momentum=float("nan"))
    assert optim.Adam([W], betas=[0.5, 0.25]).param_groups[0]["betas"] == (0.5, 0.25)


def test_required_options():
    class Needs(optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"speed": optim.optimizer.required})

    with pytest.raises(
        ValueError, match="parameter group didn't specify a value of required optimization parameter speed"
    ):
        Needs([W])
    assert repr(optim.optimizer.required) == "<required parameter>"
    optimizer = Needs([{"params": [W], "speed": 2}])
    with pytest.raises(NotImplementedError, match=r"Needs defines no step\(\)"):
        optimizer.step()


def test_repr_lists_the_groups():
    text = repr(optim.SGD([{"params": [W]}, {"params": [parameter([1.0])], "lr": 1}], lr=0.5))
    assert text.startswith("SGD (\nParameter Group 0\n    dampening: 0\n")
    assert "    weight_decay: 0\n\nParameter Group 1\n    dampening: 0\n" in text
    assert text.endswith("    weight_decay: 0\n)")


def test_zero_grad():
    param = parameter([1.0])
    param.grad = torch.ones(1)
    optimizer = optim.SGD([param])
    grad = param.grad
    optimizer.zero_grad(set_to_none=False)
    assert param.grad is grad
    assert grad.item() == 0
    optimizer.zero_grad()
    assert param.grad is None


# ---- hooks ----------------------------------------------------------------------------------------------------


def test_step_hooks_run_once_around_the_step():
    class Twice(optim.SGD):
        def step(self, closure=None):
            super().step(closure)
            return super().step(closure)

    param = parameter([1.0])
    param.grad = torch.ones(1)
    optimizer = Twice([param], lr=0.25)
    calls = []
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: calls.append(("before", param.item())))
    handle = optimizer.register_step_post_hook(lambda opt, args, kwargs: calls.append(("after", param.item())))
    optimizer.step()
    assert calls == [("before", 1.0), ("after", 0.5)]
    handle.remove()
    optimizer.step()
    assert len(calls) == 3


def test_a_pre_hook_may_change_the_arguments():
    optimizer = optim.SGD([W])
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: ((opt, lambda: "loss"), {}))
    assert optimizer.step() == "loss"
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple of"):
        optimizer.step()


def test_step_hooks_see_the_optimizer_among_the_arguments():
    optimizer, seen = optim.SGD([torch.zeros(1, requires_grad=True)]), []
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: seen.append((args[0] is opt, len(args), kwargs)))
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: ((opt, lambda: 7), {}))
    optimizer.register_step_post_hook(lambda opt, args, kwargs: seen.append((args[0] is opt, len(args), kwargs)))
    assert optimizer.step() == 7
    assert seen == [(True, 1, {}), (True, 2, {})]


def test_a_hook_after_accumulation_returns_nothing():
    x = torch.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda leaf: leaf.grad.mul_(2))
    with pytest.raises(RuntimeError, match=r"^Tensor post accumulate grad hooks should return None\."):
        x.sum().backward()


def test_adagrad_begins_with_the_optimizers_sum_whatever_a_group_says():
    x, y = (torch.zeros(2, requires_grad=True) for _ in range(2))
    optimizer = optim.Adagrad([{"params": [x], "initial_accumulator_value": 0.5}, {"params": [y]}], 0.1, 0, 0, 0.25)
    assert optimizer.state[x]["sum"].tolist() == optimizer.state[y]["sum"].tolist() == [0.25, 0.25]


def test_the_product_of_nadam_is_one_of_float32_numbers():
    x = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer, product = optim.NAdam([x], betas=(0.5, 0.9)), np.float32(1)
    for step in range(1, 9):
        x.grad = torch.ones_like(x)
        optimizer.step()
        product *= np.float32(0.5 * (1 - 0.5 * 0.96 ** (step * 4e-3)))
        assert optimizer.state[x]["mu_product"].item() == product.item()


@pytest.mark.parametrize(("name", "switch"), [("SGD", "nesterov"), ("Adam", "decoupled_weight_decay")])
def test_a_switch_is_whatever_is_true_or_false(name: str, switch: str) -> None:
    made = []
    for value in (None, False):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        x.grad = torch.ones(2)
        getattr(torch.optim, name)([x], lr=0.1, weight_decay=0.1, **{switch: value}).step()
        made.append(x.tolist())
    assert made[0] == made[1]

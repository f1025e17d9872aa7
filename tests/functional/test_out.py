"""`out=`: what every function does with it, and the values of some."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import tritensor as torch
from tritensor.errors import HostComputationWarning
from tritensor.types import dtypes

from .calls_with_out import CALLS, OPERANDS, RANDOM, functions

FUNCTIONS = functions()
NAMES = sorted(FUNCTIONS)
SILENT = {"arange", "linspace", "logspace", "eye", "full", "randint", "multinomial", "bernoulli", "addbmm"}
SILENT |= {"empty", "ones", "zeros", "rand", "randn", "randperm"}


def operands(device) -> dict[str, Any]:
    scope = {"torch": torch}
    with torch.device(device):
        return {**scope, **{name: eval(text, scope) for name, text in OPERANDS.items()}}


def call(name: str, scope: dict[str, Any], **named: Any) -> Any:
    torch.manual_seed(3)
    with torch.device(scope["x"].device):
        return eval(f"f({CALLS[name]}, **named)", {**scope, "f": FUNCTIONS[name], "named": named})


def as_tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def test_every_function_has_a_call() -> None:
    assert FUNCTIONS.keys() == CALLS.keys()


def check(name: str, made: Any, out: tuple[Any, ...], plain: tuple[Any, ...]) -> None:
    """The tensors passed were returned, and hold what the call without them returns."""
    assert all(one is other for one, other in zip(as_tuple(made), out, strict=True))
    for target, value in zip(out, plain, strict=True):
        assert target.shape == value.shape and target.dtype is value.dtype and not target.requires_grad
        assert name == "empty" or target.tolist() == value.tolist()


@pytest.mark.sampled(13)
@pytest.mark.parametrize("name", NAMES)
def test_a_result_is_written(name: str, device) -> None:
    if name in ("complex", "polar") and device != "cpu":
        pytest.skip("complex tensors are on the CPU")
    scope = operands(device)
    plain = as_tuple(call(name, scope))
    for make in (
        torch.empty_like,
        lambda value: torch.empty(0, dtype=value.dtype, device=value.device),
        lambda value: torch.empty(*value.shape, 2, dtype=value.dtype, device=value.device)[..., 1],
    ):
        out = tuple(make(value) for value in plain)
        before = out[0].shape, out[0].stride()
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            warnings.simplefilter("ignore", HostComputationWarning)
            made = call(name, scope, out=out if len(out) > 1 else out[0])
        check(name, made, out, plain)
        assert all(target._version > 0 for target in out)
        assert out[0].stride() == before[1] or out[0].shape != before[0]
        if type(as_tuple(made)) is not tuple or len(out) > 1:
            assert type(made).__name__ == type(call(name, scope)).__name__


@pytest.mark.sampled(80)
@pytest.mark.parametrize("name", NAMES)
def test_another_shape_is_resized_with_a_warning(name: str) -> None:
    scope = operands("cpu")
    plain = as_tuple(call(name, scope))
    out = tuple(torch.empty(5, 1, dtype=value.dtype) for value in plain)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        made = call(name, scope, out=out if len(out) > 1 else out[0])
    check(name, made, out, plain)
    told = [str(each.message) for each in caught if each.category is UserWarning]
    if name == "arange":
        assert told[0].startswith("The number of elements in the out tensor of shape [5, 1] is 5 which does not match")
    elif name in SILENT:
        assert not told
    else:
        words = "An output with one or more elements was resized since it had shape [5, 1], which does not match"
        assert len(told) == len(out) and all(text.startswith(words) for text in told)
        assert caught[0].filename == "<string>"  # the line of the call


@pytest.mark.sampled(80)
@pytest.mark.parametrize("name", NAMES)
def test_no_gradient_passes_into_out(name: str) -> None:
    scope = operands("cpu")
    plain = as_tuple(call(name, scope))
    words = "functions with out=... arguments don't support automatic differentiation, but one of the arguments"
    if plain[0].is_floating_point():
        out = tuple(torch.zeros_like(value) for value in plain)
        out[0].requires_grad_()
        with pytest.raises(RuntimeError, match=words):
            call(name, scope, out=out if len(out) > 1 else out[0])
        assert not out[0].any() and out[0]._version == 0
        with torch.no_grad():
            call(name, scope, out=out if len(out) > 1 else out[0])
        assert out[0].requires_grad and out[0].is_leaf and (name in RANDOM or out[0].tolist() == plain[0].tolist())
    for key in "xyvpu":
        scope[key].requires_grad_()
    out = tuple(torch.zeros_like(value) for value in plain)
    passed = out if len(out) > 1 else out[0]
    if name in ("detach_copy", "heaviside", "histogram"):  # as in PyTorch: what raises in the backward pass is written
        found = as_tuple(call(name, scope, out=passed))
        assert all(value.grad_fn.name() == "torch::autograd::NotImplemented" for value in found)
    elif any(value.requires_grad for value in as_tuple(call(name, scope))):
        with pytest.raises(RuntimeError, match=words):
            call(name, scope, out=passed)
        assert not out[0].any()
    else:
        assert not as_tuple(call(name, scope, out=passed))[0].requires_grad


@pytest.mark.sampled(80)
@pytest.mark.parametrize("name", NAMES)
def test_what_is_no_out(name: str) -> None:
    scope = operands("cpu")
    several = len(as_tuple(call(name, scope))) > 1
    for wrong in (3, "out", [1], (torch.zeros(2), None)):
        with pytest.raises(TypeError):
            call(name, scope, out=wrong)
    if several:
        with pytest.raises(TypeError, match=r"expected tuple of [23] elements but got 1"):
            call(name, scope, out=(torch.zeros(2),))
        with pytest.raises(TypeError, match="argument 'out' must be tuple of Tensors, not Tensor"):
            call(name, scope, out=torch.zeros(2))
    else:
        with pytest.raises(TypeError, match="argument 'out' must be Tensor, not tuple"):
            call(name, scope, out=(torch.zeros(2),))
    overlapping = torch.zeros(1).expand(4)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        call(name, scope, out=(overlapping, overlapping) if several else overlapping)
    assert call(name, scope, out=None) is not None


# The dtypes that the tensor passed may have where the result is float32 (the first result).
ACCEPTED = {
    "same": (
        "abs",
        "floor",
        "clamp",
        "where",
        "matmul",
        "mm",
        "amax",
        "sort",
        "gather",
        "softmax",
        "index_add",
        "norm",
    ),
    "cast": ("add", "sin", "mul", "mean", "lerp", "std", "outer", "logsumexp", "square", "max(x, y)", "normal"),
    "any": ("eq", "logical_not", "zeros", "eye", "bernoulli"),
    "computed": ("sum", "prod", "cumsum", "linspace", "full"),
}
KINDS = [torch.float64, torch.float32, torch.float16, torch.int64, torch.complex64]


@pytest.mark.parametrize(("rule", "name"), [(rule, name) for rule, names in ACCEPTED.items() for name in names])
def test_dtypes_of_out(rule: str, name: str) -> None:
    scope = operands("cpu")
    run = call
    if name == "max(x, y)":
        run = lambda name, scope, **named: torch.max(scope["x"], scope["y"], **named)  # noqa: E731
    plain = as_tuple(run(name, scope))
    for kind in KINDS:
        first = torch.zeros(plain[0].shape, dtype=kind)
        out = (first, *[torch.zeros_like(value) for value in plain[1:]])
        passed = out if len(out) > 1 else first
        refused = {"same": kind is not plain[0].dtype, "cast": kind.category < dtypes.FLOATING}.get(rule, False)
        if refused:
            words = (
                "Expected (out tensor to have|the) dtype"
                if rule == "same"
                else "result type Float can't be cast to the"
            )
            with pytest.raises(RuntimeError, match=words):
                run(name, scope, out=passed)
            assert not first.any()
        else:
            run(name, scope, out=passed)
            if rule != "computed" and name not in RANDOM:
                assert first.tolist() == plain[0].to(kind).tolist()


def test_dtypes_of_what_is_joined() -> None:
    x, out = torch.ones(2), torch.zeros(4, dtype=torch.float64)
    assert torch.cat([x, x], out=out).tolist() == [1.0, 1.0, 1.0, 1.0]
    for function in (torch.cat, torch.stack, torch.hstack):
        with pytest.raises(
            TypeError, match=r"torch\.cat\(\): input types \(Float\) can't be cast to the desired output"
        ):
            function([x, x], out=torch.zeros(0, dtype=torch.int64))


def test_dtypes_of_several_results() -> None:
    x = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
    values, indices = torch.zeros(2), torch.zeros(2, dtype=torch.int64)
    found = torch.max(x, 1, out=(values, indices))
    assert type(found) is type(torch.max(x, 1)) and found.values is values and found.indices is indices
    assert values.tolist() == [5.0, 7.0] and indices.tolist() == [1, 0]
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        torch.max(x, 0, out=(values, torch.zeros(2)))
    assert values.tolist() == [5.0, 7.0]
    torch.sort(x, descending=True, out=[values.resize_(0), indices.resize_(0)])
    assert values.tolist() == [[5.0, 1.0], [7.0, 2.0]] and indices.tolist() == [[1, 0], [0, 1]]


def test_values(device) -> None:
    x, y = torch.tensor([[1.5, 2.5], [0.5, 3.0]], device=device), torch.tensor([2.0, 0.5], device=device)
    out = torch.zeros(2, 2, device=device)
    assert torch.add(x, y, alpha=2, out=out).tolist() == [[5.5, 3.5], [4.5, 4.0]] == out.tolist()
    assert torch.mul(x, 2, out=out).tolist() == [[3.0, 5.0], [1.0, 6.0]]
    assert torch.eq(x, 0.5, out=out).tolist() == [[0.0, 0.0], [1.0, 0.0]]
    assert torch.matmul(x, y, out=torch.zeros(2, device=device)).tolist() == [4.25, 2.5]
    whole = torch.zeros(2, dtype=torch.int64, device=device)
    assert torch.sum(x, 0, out=whole).tolist() == [1, 5]  # added up as integers, as with dtype=
    assert torch.arange(4, out=out).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert torch.zeros(3, out=torch.ones(2, 2, dtype=torch.int32, device=device)).tolist() == [0, 0, 0]
    assert torch.cat([y, y], out=out.T.resize_(0)).tolist() == [2.0, 0.5, 2.0, 0.5]
    assert torch.all(x > 1, 1, out=torch.zeros(2, dtype=torch.uint8, device=device)).tolist() == [1, 0]
    turned = torch.zeros(2, 2, device=device).T
    assert torch.exp(torch.zeros(2, 2, device=device), out=turned) is turned and turned.stride() == (1, 2)
    assert turned.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_an_input_as_out(device) -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)
    assert torch.add(x, x, out=x) is x and x.tolist() == [[2.0, 4.0], [6.0, 8.0]] and x._version == 1
    assert torch.matmul(x, x, out=x).tolist() == [[28.0, 40.0], [60.0, 88.0]]
    index = torch.tensor([1, 0], device=device)
    assert torch.index_add(x, 0, index, torch.ones(2, 2, device=device), out=x).tolist() == [[29.0, 41.0], [61.0, 89.0]]
    memory = torch.arange(5.0, device=device)
    first, second = memory[:4].view(2, 2), memory[1:].view(2, 2)
    words = "some elements of the input tensor and the written-to tensor refer to a single memory location"
    for refused in (
        lambda: torch.add(first, 1, out=second),
        lambda: torch.exp(x, out=x.T),
        lambda: torch.gather(x, 0, torch.zeros(2, 2, dtype=torch.int64, device=device), out=x),
        lambda: torch.cat([first, x], out=first),
        lambda: torch.index_add(x, 0, index, first, out=first),
    ):
        with pytest.raises(RuntimeError, match=words):
            refused()
    assert memory.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert torch.sum(first, 0, out=memory[3:]).tolist() == [2.0, 4.0]


def test_creation_follows_out(device) -> None:
    out = torch.ones(2, dtype=torch.float64, device=device)
    assert torch.full((2,), 7, out=out).tolist() == [7.0, 7.0]
    made = torch.zeros(3, out=out, requires_grad=True)
    assert made is out and made.requires_grad and made.dtype is torch.float64 and made.device == device
    with pytest.raises(RuntimeError, match=r"dtype Float does not match dtype of out parameter \(Double\)"):
        torch.zeros(2, dtype=torch.float32, out=torch.ones(2, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        torch.sum(torch.ones(2, 2), 0, dtype=torch.float64, out=torch.ones(2))
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        torch.mean(torch.ones(2, 2), 0, dtype=torch.float64, out=torch.ones(2))


def test_out_on_another_device() -> None:
    with torch.cuda.simulate(devices=2):
        x, there = torch.ones(2), torch.zeros(2, device="cuda:1")
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, but found at least two"):
            torch.exp(x, out=there)
        with pytest.raises(RuntimeError, match="does not match device type of out parameter"):
            torch.ones(2, device="cuda:0", out=there)
        assert there.tolist() == [0.0, 0.0]
        assert torch.ones(2, out=there).tolist() == [1.0, 1.0] and torch.rand(3, out=there).device.index == 1


def test_a_view_is_resized_in_its_memory(device) -> None:
    memory = torch.zeros(6, device=device)
    part = memory[1:3]
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.add(torch.ones(2, 2, device=device), 1, out=part)
    assert memory.tolist() == [0.0, 2.0, 2.0, 2.0, 2.0, 0.0] and part.shape == (2, 2) and part.storage_offset() == 1


def test_resize(device) -> None:
    x = torch.arange(6.0, device=device)
    assert x.resize_(2, 2) is x and x.tolist() == [[0.0, 1.0], [2.0, 3.0]] and x._version == 1
    assert x.resize_((3, 2)).tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    grown = x.T.resize_(size=(9,))
    assert grown.shape == (9,) and grown[:6].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert x.resize_(1, 2, 1, 2, memory_format=torch.channels_last).stride() == (4, 1, 4, 2)
    assert x.resize_(0).shape == (0,) and x.resize_(2).tolist() == [0.0, 1.0]
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        torch.zeros(2, requires_grad=True).resize_(2)
    with pytest.raises(TypeError, match=r"resize_\(\): argument 'size' must be tuple of ints, not float"):
        x.resize_(2.5)


def test_methods_are_as_they_were() -> None:
    with pytest.raises(TypeError):
        torch.ones(2).exp(out=torch.zeros(2))
    with pytest.raises(TypeError):
        torch.ones(2).gather(0, torch.zeros(2, dtype=torch.int64), out=torch.zeros(2))

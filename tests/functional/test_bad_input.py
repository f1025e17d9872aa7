"""Bad input, one row each: PyTorch's type and first words, then our facts and the remedy, and nothing has changed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

import tritensor as torch
from tritensor import nn
from tritensor.errors import TritensorError

from ..needs import needs_triton


class Case:
    """What is at hand before the bad call; `watched` are the tensors that must not change."""

    def __init__(self) -> None:
        self.watched: list[torch.Tensor] = []
        self.model: Any = None

    def keep(self, *tensors: torch.Tensor) -> Any:
        self.watched += tensors
        return tensors[0] if len(tensors) == 1 else tensors

    def state(self) -> list[Any]:
        """Everything that an error must leave alone."""
        return [
            (
                x.tolist(),
                x._version,
                str(x.device),
                x.dtype,
                x.requires_grad,
                x.is_leaf,
                None if not x.is_leaf or x.grad is None else x.grad.tolist(),
            )
            for x in self.watched
        ]


def model_on_the_device(c: Case) -> None:
    c.model = nn.Sequential(OrderedDict(encoder=nn.Linear(3, 2))).cuda()
    c.keep(*c.model.parameters())
    c.model(c.keep(torch.ones(4, 3)))


def mixed_devices(c: Case) -> None:
    x, y = c.keep(torch.ones(2, device="cuda:0"), torch.ones(2, device="cuda:1"))
    x + y


def mixed_devices_in_place(c: Case) -> None:
    x, y = c.keep(torch.ones(2), torch.ones(2, device="cuda:1"))
    x.add_(y)


def matmul_across(c: Case) -> None:
    x, y = c.keep(torch.ones(2, 2), torch.ones(2, 2, device="cuda:1"))
    x @ y


def mixed_dtypes(c: Case) -> None:
    x, y = c.keep(torch.ones(2, 3), torch.ones(3, 2, dtype=torch.float64))
    x @ y


def result_does_not_fit_in_place(c: Case) -> None:
    x, y = c.keep(torch.ones(2, dtype=torch.int64), torch.ones(2))
    x.add_(y)


def in_place_on_a_saved_tensor(c: Case) -> None:
    x = c.keep(torch.ones(2, requires_grad=True))
    y = x.exp()
    y.mul_(2)
    c.keep(y)
    y.sum().backward()


def backward_twice(c: Case) -> None:
    x = torch.ones(2, requires_grad=True)
    y = c.keep((x * x).sum())
    y.backward()
    c.keep(x)
    y.backward()


def load(c: Case, **state: torch.Tensor) -> None:
    model = nn.Linear(3, 2)
    c.keep(*model.parameters())
    model.load_state_dict(state)


def assign_out_of_bounds(c: Case) -> None:
    x = c.keep(torch.ones(2, 3))
    x[torch.tensor([0, 2])] = 5.0


def gather_out_of_bounds_on_the_device(c: Case) -> None:
    x, i = c.keep(torch.ones(2, device="cuda"), torch.tensor([0, 2], device="cuda"))
    x[i]


def of(make: Callable[[], torch.Tensor], act: Callable[[torch.Tensor], Any]) -> Callable[[Case], None]:
    """A case of one tensor and one call."""

    def run(c: Case) -> None:
        act(c.keep(make()))

    return run


def leaf() -> torch.Tensor:
    return torch.ones(2, requires_grad=True)


SAME = "Expected all tensors to be on the same device"
# (name, what is done, type of error, PyTorch's first words, facts and remedy)
TABLE: list[tuple[str, Callable[[Case], Any], type[Exception], str, list[str]]] = [
    ("mixed devices", mixed_devices, RuntimeError, SAME, ["add", "cuda:0", "cuda:1", "(2,)", ".to("]),
    ("mixed in place", mixed_devices_in_place, RuntimeError, SAME, ["add", "cpu", "cuda:1", "(2,)", ".to("]),
    ("matmul across", matmul_across, RuntimeError, SAME, ["cpu", "cuda:1", "(2, 2)", ".to("]),
    (
        "a model's parameter",
        model_on_the_device,
        RuntimeError,
        SAME,
        ["encoder.weight", "(2, 3)", "cuda:0", "cpu", ".to("],
    ),
    (
        "mixed dtypes",
        mixed_dtypes,
        RuntimeError,
        "expected m1 and m2 to have the same dtype, but got: float != double",
        [".to("],
    ),
    (
        "result dtype in place",
        result_does_not_fit_in_place,
        RuntimeError,
        "result type Float can't be cast to the desired output type Long",
        [],
    ),
    (
        "shapes",
        of(lambda: torch.ones(2, 3), lambda x: x + torch.ones(2, 4)),
        RuntimeError,
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
        ["(2, 3)", "(2, 4)"],
    ),
    (
        "shapes in place",
        of(lambda: torch.ones(2, 3), lambda x: x.add_(torch.ones(2, 4))),
        RuntimeError,
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
        ["(2, 3)", "(2, 4)"],
    ),
    (
        "a target that is too small",
        of(lambda: torch.ones(3), lambda x: x.add_(torch.ones(2, 3))),
        RuntimeError,
        "output with shape [3] doesn't match the broadcast shape [2, 3]",
        [],
    ),
    (
        "matmul shapes",
        of(lambda: torch.ones(2, 3), lambda x: x @ x),
        RuntimeError,
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)",
        [],
    ),
    (
        "numpy on a device",
        of(lambda: torch.ones(2, device="cuda:1"), lambda x: x.numpy()),
        TypeError,
        "can't convert cuda:1 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
        [],
    ),
    (
        "numpy of a leaf",
        of(leaf, lambda x: x.numpy()),
        RuntimeError,
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
        [],
    ),
    (
        "device string",
        of(leaf, lambda x: x.to("gpu")),
        RuntimeError,
        "Expected one of cpu, cuda",
        ["device type at start of device string: gpu", "'cuda:1'"],
    ),
    ("device in capitals", of(leaf, lambda x: x.to("CUDA:0")), RuntimeError, "Expected one of", ["lower case"]),
    ("device index", of(leaf, lambda x: x.to("cuda:x")), RuntimeError, "Invalid device string: 'cuda:x'", ["'cuda:1'"]),
    ("ordinal", of(leaf, lambda x: x.to("cuda:7")), RuntimeError, "CUDA error: invalid device ordinal", ["7", "2"]),
    (
        "in place on a leaf",
        of(leaf, lambda x: x.add_(1)),
        RuntimeError,
        "a leaf Variable that requires grad is being used in an in-place operation.",
        ["no_grad"],
    ),
    (
        "in place on a view of a leaf",
        of(leaf, lambda x: x[:1].zero_()),
        RuntimeError,
        "a view of a leaf Variable that requires grad is being used in an in-place operation.",
        ["no_grad"],
    ),
    ("assignment to a leaf", of(leaf, lambda x: x.__setitem__(0, 3.0)), RuntimeError, "a ", ["leaf Variable"]),
    (
        "saved tensor modified",
        in_place_on_a_saved_tensor,
        RuntimeError,
        "one of the variables needed for gradient computation has been modified by an inplace operation",
        ["version 1", "expected version 0", "test_bad_input.py"],
    ),
    (
        "backward twice",
        backward_twice,
        RuntimeError,
        "Trying to backward through the graph a second time",
        ["retain_graph=True"],
    ),
    (
        "backward of many",
        of(leaf, lambda x: (x * 2).backward()),
        RuntimeError,
        "grad can be implicitly created only for scalar outputs",
        ["2"],
    ),
    (
        "backward of what needs none",
        of(lambda: torch.ones(2), lambda x: x.sum().backward()),
        RuntimeError,
        "element 0 of tensors does not require grad and does not have a grad_fn",
        [],
    ),
    (
        "integer leaf",
        of(lambda: torch.ones(2, dtype=torch.int64), lambda x: x.requires_grad_()),
        RuntimeError,
        "only Tensors of floating point and complex dtype can require gradients",
        ["int64", ".to("],
    ),
    (
        "missing key",
        lambda c: load(c, weight=torch.zeros(2, 3)),
        RuntimeError,
        "Error(s) in loading state_dict for Linear:",
        ['Missing key(s) in state_dict: "bias"'],
    ),
    (
        "unexpected key",
        lambda c: load(c, weight=torch.zeros(2, 3), bias=torch.zeros(2), extra=torch.zeros(1)),
        RuntimeError,
        "Error(s) in loading state_dict for Linear:",
        ['Unexpected key(s) in state_dict: "extra"'],
    ),
    (
        "misshapen key",
        lambda c: load(c, weight=torch.zeros(3, 3), bias=torch.zeros(2)),
        RuntimeError,
        "Error(s) in loading state_dict for Linear:",
        ["size mismatch for weight", "[3, 3]", "[2, 3]"],
    ),
    (
        "index",
        of(lambda: torch.ones(2, 3), lambda x: x[5]),
        IndexError,
        "index 5 is out of bounds for dimension 0 with size 2",
        [],
    ),
    (
        "index tensor",
        of(lambda: torch.ones(2, 3), lambda x: x[torch.tensor([0, -3])]),
        IndexError,
        "index -3 is out of bounds for dimension 0 with size 2",
        [],
    ),
    (
        "assignment by index tensor",
        assign_out_of_bounds,
        IndexError,
        "index 2 is out of bounds for dimension 0 with size 2",
        [],
    ),
    (
        "index tensor on a device",
        gather_out_of_bounds_on_the_device,
        IndexError,
        "index 2 is out of bounds for dimension 0 with size 2",
        [],
    ),
    (
        "target class",
        of(lambda: torch.ones(2, 3), lambda x: nn.functional.cross_entropy(x, torch.tensor([0, 7]))),
        IndexError,
        "Target 7 is out of bounds.",
        [],
    ),
]


@needs_triton
@pytest.mark.parametrize(("name", "act", "error", "words", "facts"), TABLE, ids=[row[0] for row in TABLE])
def test_refused_with_facts_and_nothing_changed(name, act, error, words, facts) -> None:
    with torch.cuda.simulate(devices=2):
        case, before = Case(), []
        original = case.keep

        def keep(*tensors: torch.Tensor) -> Any:
            kept = original(*tensors)
            before[:] = case.state()
            return kept

        case.keep = keep  # type: ignore[method-assign]
        with pytest.raises(error) as caught:
            act(case)
        assert isinstance(caught.value, TritensorError)
        text = str(caught.value)
        assert text.startswith(words), text
        for fact in facts:
            assert fact in text, text
        assert before and case.state() == before


@pytest.mark.usefixtures("no_device")
def test_cuda_where_there_is_none() -> None:
    x = torch.ones(2)
    for act in (lambda: x.cuda(), lambda: x.to("cuda:1"), lambda: torch.zeros(1, device="cuda")):
        with pytest.raises(RuntimeError) as caught:
            act()
        assert isinstance(caught.value, TritensorError)
        text = str(caught.value)
        assert text.startswith("Found no NVIDIA driver on your system."), text
        assert "TRITENSOR_SIMULATE_CUDA=1" in text
    assert x.tolist() == [1, 1]

"""Batches cut over several devices and put together again: any dimension, any container, gradients, what is refused."""

from __future__ import annotations

from collections import OrderedDict, namedtuple

import pytest

import tritensor as torch
from tritensor import cuda, nn
from tritensor.errors import ArgumentError, ShapeError
from tritensor.nn.parallel import gather, scatter
from tritensor.nn.parallel.scatter_gather import Gather, Scatter

from ..needs import needs_triton

pytestmark = needs_triton

Pair = namedtuple("Pair", ["first", "second"])


@pytest.mark.parametrize(
    ("rows", "count", "sizes"),
    [(7, 3, [3, 3, 1]), (4, 3, [2, 2]), (2, 3, [1, 1]), (6, 3, [2, 2, 2]), (0, 2, [0, 0])],
)
def test_scatter_cuts_as_chunk_does(rows, count, sizes):
    with cuda.simulate(devices=count):
        parts = scatter(torch.arange(rows), range(count))
        assert isinstance(parts, tuple)
        assert [len(part) for part in parts] == sizes
        assert [part.device.index for part in parts] == list(range(len(sizes)))
        assert [row for part in parts for row in part.tolist()] == list(range(rows))


def test_scatter_along_another_dimension_and_gather_there(two_devices):
    x = torch.arange(6).reshape(2, 3)
    for dim in (1, -1):
        parts = scatter(x, [1, 0], dim)
        assert [part.tolist() for part in parts] == [[[0, 1], [3, 4]], [[2], [5]]]
        joined = gather(parts, 1, dim)
        assert joined.device == torch.device("cuda:1")
        assert torch.equal(joined.cpu(), x)


def test_scatter_copies_containers_and_shares_the_rest(two_devices):
    shared = object()
    value = {"x": torch.arange(2), "pair": Pair(torch.arange(4), [shared]), "empty": [], "none": None}
    first, second = scatter(OrderedDict(value), [0, 1])
    assert type(first) is OrderedDict
    assert [first["x"].tolist(), second["x"].tolist()] == [[0], [1]]
    assert isinstance(second["pair"], Pair)
    assert second["pair"].first.tolist() == [2, 3]
    assert first["pair"].second is not second["pair"].second
    assert first["pair"].second[0] is shared
    assert first["empty"] == []
    assert first["empty"] is not second["empty"]
    assert first["none"] is None
    assert scatter(3, [0, 1]) == [3, 3]
    assert scatter((1, "a"), [0, 1]) == [(1, "a"), (1, "a")]


def test_scatter_of_what_cannot_be_cut(two_devices):
    with pytest.raises(ShapeError, match="chunk expects at least a 1-dimensional tensor"):
        scatter([torch.ones(4), torch.tensor(1.0)], [0, 1])
    with pytest.raises(ShapeError, match=r"different numbers of parts(.|\n)*shape \(4,\) falls into 2"):
        scatter([torch.ones(4), torch.ones(1)], [0, 1])
    with pytest.raises(IndexError):
        scatter(torch.ones(4), [0, 1], dim=1)


def test_gather_on_the_cpu(two_devices):
    parts = scatter(torch.arange(3), [0, 1])
    for target in ("cpu", -1, torch.device("cpu")):
        assert gather(parts, target).tolist() == [0, 1, 2]
    assert nn.DataParallel(nn.ReLU(), output_device="cpu")(torch.ones(2)).device == torch.device("cpu")


def test_scalars_become_a_vector(two_devices):
    model = nn.Linear(2, 1).to("cuda")
    model.register_forward_hook(lambda module, args, output: output.sum())
    with pytest.warns(UserWarning, match="Was asked to gather along dimension 0, but all input tensors were scalars"):
        out = nn.DataParallel(model)(torch.ones(3, 2))
    assert tuple(out.shape) == (2,)
    (out * torch.tensor([1.0, 10.0], device="cuda")).sum().backward()
    assert model.bias.grad.item() == 2 + 10


def test_gather_refuses_what_cannot_be_joined(two_devices):
    with pytest.raises(TypeError, match=r"gather\(\): cannot join values of type int"):
        gather([1, 2], 0)
    with pytest.raises(ArgumentError, match="str"):
        gather([("a",), ("b",)], 0)
    with pytest.raises(ValueError, match="All dicts must have the same number of keys"):
        gather([{"a": torch.ones(1)}, {}], 0)
    with pytest.raises(ValueError, match="zip"):
        gather([[torch.ones(1)], []], 0)
    with pytest.raises(ShapeError, match="Sizes of tensors must match"):
        gather([torch.ones(1, 2), torch.ones(1, 3)], 0)


def test_gather_gives_gradients_back_in_their_dtype_and_place(two_devices):
    first = torch.ones(2, device="cuda:0", dtype=torch.float64, requires_grad=True)
    second = torch.ones(1, device="cuda:1", requires_grad=True)
    out = gather([first, second], 0)
    assert out.dtype is torch.float64
    (out * torch.tensor([1.0, 2.0, 3.0], device="cuda", dtype=torch.float64)).sum().backward()
    assert first.grad.tolist() == [1.0, 2.0]
    assert second.grad.tolist() == [3.0]
    assert second.grad.dtype is torch.float32
    assert second.grad.device == torch.device("cuda:1")


def test_scatter_and_gather_pass_gradcheck(two_devices):
    x = torch.linspace(-1, 1, 5, dtype=torch.float64, device="cuda").requires_grad_()
    places = [torch.device("cuda:1"), torch.device("cuda:0")]
    weights = torch.arange(5).to("cuda", torch.float64)

    def there_and_back(x):
        parts = Scatter.apply(places, [3, 2], 0, x)
        return Gather.apply(torch.device("cuda:0"), 0, *(part**2 for part in parts)) * weights

    assert torch.autograd.gradcheck(there_and_back, x)

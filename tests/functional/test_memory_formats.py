"""The order of a tensor's dimensions in memory: what keeps it, and what makes another one."""

from __future__ import annotations

import copy
import pickle

import pytest

import tritensor as torch
from tritensor.types import formats

SHAPE, ROWS, CHANNELS_LAST = (2, 3, 4, 5), (60, 20, 5, 1), (60, 1, 15, 3)


def numbers(device, strides=ROWS):
    x = torch.arange(120.0, device=device).reshape(SHAPE)
    if strides != ROWS:
        x = torch.empty(SHAPE, device=device, memory_format=torch.channels_last).copy_(x)
    assert x.stride() == strides
    return x


COPIES = {
    "clone": lambda x, **kw: x.clone(**kw),
    "torch.clone": lambda x, **kw: torch.clone(x, **kw),
    "to dtype": lambda x, **kw: x.to(torch.float64, **kw),
    "to": lambda x, **kw: x.to(x.device, copy=True, **kw),
    "half": lambda x, **kw: x.half(**kw),
    "int": lambda x, **kw: x.int(**kw),
    "bool": lambda x, **kw: x.bool(**kw),
    "type": lambda x, **kw: x.type(torch.float64, **kw),
}
CREATIONS = {
    "empty_like": torch.empty_like,
    "zeros_like": torch.zeros_like,
    "ones_like": torch.ones_like,
    "full_like": lambda x, **kw: torch.full_like(x, 7, **kw),
    "rand_like": torch.rand_like,
    "randn_like": torch.randn_like,
    "randint_like": lambda x, **kw: torch.randint_like(x, 7, **kw),
}


@pytest.mark.parametrize("name", [*COPIES, *CREATIONS])
def test_a_copy_keeps_the_order_or_takes_another(name: str, device) -> None:
    make = {**COPIES, **CREATIONS}[name]
    for strides in (ROWS, CHANNELS_LAST):
        x = numbers(device, strides)
        for format, expected in (
            (None, strides),
            (torch.preserve_format, strides),
            (torch.contiguous_format, ROWS),
            (torch.channels_last, CHANNELS_LAST),
        ):
            made = make(x) if format is None else make(x, memory_format=format)
            assert made.stride() == expected and made.shape == SHAPE and made.device == device
            if name in COPIES:
                assert made.tolist() == numbers("cpu").to(made.dtype).tolist()
        with pytest.raises(RuntimeError, match="required rank 5 tensor to use channels_last_3d format"):
            make(x, memory_format=torch.channels_last_3d)
        with pytest.raises(TypeError, match="argument 'memory_format' must be tritensor"):
            make(x, memory_format="channels_last")


def test_the_values_of_a_creation_in_another_order(device) -> None:
    x = numbers(device, CHANNELS_LAST)
    assert torch.full_like(x, 7.0).eq(7).all() and torch.ones_like(x).sum() == 120 and not torch.zeros_like(x).any()
    drawn = torch.rand_like(x, requires_grad=True)
    assert drawn.requires_grad and drawn.is_leaf and len(set(drawn.reshape(-1).tolist())) > 100


def test_strides_with_gaps_are_packed_in_their_order(device) -> None:
    x = torch.arange(24.0, device=device).reshape(2, 3, 4)
    for view, packed in (
        (x[:, :, 1:3], (6, 2, 1)),
        (x.permute(2, 0, 1), (1, 12, 4)),
        (x.permute(2, 0, 1)[1:3], (1, 6, 2)),
        (x[:, :1].expand(2, 5, 4), (20, 4, 1)),
        (x[:1, :, :1].expand(2, 3, 5), (15, 5, 1)),
    ):
        for made in (view.clone(), view.double(), view.to(device, copy=True)):
            assert made.stride() == packed and made.tolist() == view.tolist()
        assert torch.zeros_like(view).stride() == packed
        assert view.clone(memory_format=torch.contiguous_format).is_contiguous()
    assert x.flip(0).stride() == (12, 4, 1) and x.T.flip(0).stride() == (1, 4, 12)
    assert x.T.repeat(1, 1, 1).stride() == (6, 2, 1)


def test_contiguous_in_a_format(device) -> None:
    rows, last = numbers(device), numbers(device, CHANNELS_LAST)
    assert rows.contiguous() is rows and rows.contiguous(memory_format=torch.preserve_format) is rows
    assert last.contiguous(memory_format=torch.channels_last) is last
    assert last.contiguous().stride() == ROWS and last.contiguous().tolist() == rows.tolist()
    made = rows.contiguous(memory_format=torch.channels_last)
    assert made.stride() == CHANNELS_LAST and made.tolist() == rows.tolist()
    assert made.is_contiguous(memory_format=torch.channels_last) and not made.is_contiguous()
    assert not rows.is_contiguous(memory_format=torch.channels_last)
    assert not rows[0].is_contiguous(memory_format=torch.channels_last)
    with pytest.raises(RuntimeError, match="preserve memory format is unsupported by the contiguous operator"):
        last.contiguous(memory_format=torch.preserve_format)
    with pytest.raises(TypeError, match=r"is_contiguous\(\): argument 'memory_format' must be"):
        rows.is_contiguous(memory_format=1)


def test_to_returns_the_tensor_itself_where_it_looks_like_the_format() -> None:
    rows, last = numbers("cpu"), numbers("cpu", CHANNELS_LAST)
    assert last.to(memory_format=torch.channels_last) is last and last.cpu(memory_format=torch.preserve_format) is last
    assert last.to("cpu", memory_format=torch.contiguous_format).stride() == ROWS
    assert rows.float(memory_format=torch.channels_last).stride() == CHANNELS_LAST
    assert last[:, :2].to(memory_format=torch.channels_last).stride() == CHANNELS_LAST  # itself, though it has gaps
    assert rows[0].T.to(memory_format=torch.contiguous_format).stride() == (1, 5, 20)
    single = torch.zeros(2, 1, 4, 4)
    assert single.to(memory_format=torch.channels_last).stride() == (16, 1, 4, 1)
    assert single.is_contiguous(memory_format=torch.channels_last)


def test_the_order_goes_with_a_tensor_to_a_device_and_back(device) -> None:
    if device.type == "cpu":
        pytest.skip("a copy to and from a CUDA device")
    x = numbers("cpu", CHANNELS_LAST)
    there = x.to(device)
    assert there.stride() == CHANNELS_LAST and there.tolist() == numbers("cpu").tolist()
    assert x.cuda(memory_format=torch.contiguous_format).stride() == ROWS
    assert there.cpu(memory_format=torch.contiguous_format).stride() == ROWS
    for back in (there.cpu(), there.to("cpu", non_blocking=True), there.to("cpu", torch.float64)):
        assert not back.is_contiguous() and back.stride() == CHANNELS_LAST
        assert back.tolist() == numbers("cpu").tolist()
    gaps = there[:, :, 1:].to("cpu", non_blocking=True)
    assert gaps.stride() == (45, 1, 15, 3) and gaps.tolist() == numbers("cpu")[:, :, 1:].tolist()


def test_a_gradient_passes_through_a_copy_in_another_order(device) -> None:
    x = numbers(device).requires_grad_()
    for make in (
        lambda: x.clone(memory_format=torch.channels_last),
        lambda: x.to(memory_format=torch.channels_last),
        lambda: x.contiguous(memory_format=torch.channels_last),
        lambda: x.T.clone().T,
    ):
        x.grad = None
        made = make()
        assert made.requires_grad and not made.is_leaf
        (made * numbers(device)).sum().backward()
        assert x.grad.tolist() == numbers("cpu").tolist()


def test_empty_in_a_format(device) -> None:
    assert torch.empty(SHAPE, memory_format=torch.channels_last, device=device).stride() == CHANNELS_LAST
    made = torch.empty(1, 2, 3, 4, 5, memory_format=torch.channels_last_3d, device=device)
    assert made.stride() == (120, 1, 40, 10, 2) and made.is_contiguous(memory_format=torch.channels_last_3d)
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        torch.empty(2, 3, memory_format=torch.channels_last)
    with pytest.raises(RuntimeError, match="unsupported memory format Preserve"):
        torch.empty(2, 3, memory_format=torch.preserve_format)


def test_a_module_in_a_format() -> None:
    class Filter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(SHAPE))
            self.bias = torch.nn.Parameter(torch.ones(3))

    module = Filter()
    weight = module.weight
    module.to(torch.float64, memory_format=torch.channels_last)
    assert module.weight is weight and weight.stride() == CHANNELS_LAST and weight.dtype is torch.float64
    assert module.bias.stride() == (1,)
    with pytest.raises(TypeError, match="argument 'memory_format' must be"):
        module.to(memory_format="channels_last")


def test_the_formats_are_four_objects() -> None:
    for name in ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d"):
        format = getattr(torch, name)
        assert isinstance(format, torch.memory_format) and repr(format) == f"tritensor.{name}"
        assert copy.deepcopy(format) is format is pickle.loads(pickle.dumps(format))
    with pytest.raises(TypeError, match=r"cannot create 'tritensor\.memory_format' instances"):
        torch.memory_format()


def test_deep_copies_keep_the_order() -> None:
    x = numbers("cpu", CHANNELS_LAST)
    assert copy.deepcopy(x).stride() == CHANNELS_LAST
    assert copy.deepcopy(torch.nn.Parameter(x)).stride() == CHANNELS_LAST


@pytest.mark.parametrize(
    ("shape", "strides", "dense", "kept"),
    [
        ((), (), True, ()),
        ((2, 3), (1, 2), True, (1, 2)),
        ((2, 1, 3), (3, 17, 1), True, (3, 17, 1)),
        ((2, 3), (1, 8), False, (1, 2)),
        ((2, 3), (8, 1), False, (3, 1)),
        ((2, 3), (0, 1), False, (3, 1)),
        ((5, 3, 3, 4), (1, 20, 0, 5), False, (1, 60, 5, 15)),
        ((2, 2, 2), (1, 1, 4), False, (2, 1, 4)),
        ((0, 3), (7, 9), True, (7, 9)),
    ],
)
def test_the_strides_of_a_copy(shape, strides, dense: bool, kept) -> None:
    """The values are PyTorch's."""
    assert formats.is_dense(shape, strides) is dense and formats.preserved(shape, strides) == kept


@pytest.mark.peer
def test_strides_agree_with_those_of_pytorch() -> None:
    import random

    peer = pytest.importorskip("torch")
    draw = random.Random(1)
    for _ in range(3000):
        shape = tuple(draw.choice([0, 1, 1, 2, 3, 4]) for _ in range(draw.randint(0, 5)))
        order, strides, step = list(range(len(shape))), [0] * len(shape), 1
        draw.shuffle(order)
        for dim in order:
            strides[dim] = step * draw.choice([1, 1, 1, 1, 0, 2])
            step *= max(shape[dim], 1)
        known = tuple(strides)
        x = peer.empty_strided(shape, known)
        assert formats.preserved(shape, known) == x.clone().stride(), (shape, known)
        for name in ("contiguous_format", "channels_last", "channels_last_3d"):
            ours, theirs = getattr(torch, name), getattr(peer, name)
            assert formats.follows(shape, known, ours) == x.is_contiguous(memory_format=theirs), (name, shape, known)
            if len(shape) == {"channels_last": 4, "channels_last_3d": 5}.get(name, len(shape)):
                itself = x.to(memory_format=theirs) is x
                assert (formats.suggested(shape, known) is ours) == itself, (name, shape, known)
                assert formats.strides_of("to", ours, shape) == x.clone(memory_format=theirs).stride(), (name, shape)


def test_elementwise_results_on_a_device_stay_channels_last(device: torch.device) -> None:
    """A layer between two convolutions then converts nothing."""
    last = torch.ones(SHAPE, device=device).to(memory_format=torch.channels_last)
    row = torch.ones(SHAPE, device=device)
    same = [last.relu(), last + 1, last * last, last + torch.ones(SHAPE[1], 1, 1, device=device), last.clone()]
    assert {each.stride() for each in same} == {last.stride()}
    assert (row + last).stride() == ROWS


def test_gradients_on_a_device_have_the_order_of_their_leaf() -> None:
    """Optimizers then step all parameters by one launch."""
    with torch.cuda.simulate(1):
        for order in (torch.contiguous_format, torch.channels_last):
            x = torch.ones(SHAPE, device="cuda").to(memory_format=torch.channels_last).requires_grad_()
            x.view_as(x).mul(1).backward(torch.ones(SHAPE, device="cuda").to(memory_format=order))
            assert x.grad.stride() == x.stride() and x.grad.eq(1).all()

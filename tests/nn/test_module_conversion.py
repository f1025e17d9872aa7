"""Moving a module to another device or dtype: what moves, what stays shared, and what is left behind."""

from __future__ import annotations

import warnings

import pytest

import tritensor as torch
from tritensor import nn
from tritensor.errors import ArgumentError, OutOfMemoryError

from .models import Block, Careless, Tied, assert_same, values


def test_to_keeps_parameters_and_casts_only_floats():
    block = Block()
    scale, weight = block.scale, block.inner.weight
    scale.grad = torch.ones(2)
    grad = scale.grad
    assert block.to(torch.float64) is block
    assert block.scale is scale
    assert block.inner.weight is weight
    assert (scale.dtype, scale.grad.dtype, block.mean.dtype, block.steps.dtype) == (
        torch.float64,
        torch.float64,
        torch.float64,
        torch.int64,
    )
    assert scale.grad is grad
    assert scale.requires_grad
    assert scale.is_leaf


def test_to_moves_everything(two_devices):
    block = Block()
    scale, mean = block.scale, block.mean
    scale.grad = torch.ones(2)
    before = values(block)
    block.to("cuda:1")
    assert {str(t.device) for t in (*block.parameters(), *block.buffers(), scale.grad)} == {"cuda:1"}
    assert block.scale is scale
    assert block.mean is not mean
    assert mean.device.type == "cpu"
    block.cuda()
    assert {str(p.device) for p in block.parameters()} == {"cuda:0"}
    block.cuda(1).cpu()
    assert_same(values(block), before)
    block.to(torch.zeros(1, device="cuda:0", dtype=torch.float64))
    assert (str(block.scale.device), block.scale.dtype) == ("cuda:0", torch.float64)
    block.to(device="cpu", dtype=torch.float32, non_blocking=True)
    assert_same(values(block), before)


def test_training_goes_on_after_a_move(two_devices):
    model = nn.Linear(2, 1)
    model(torch.ones(1, 2)).sum().backward()
    model.to("cuda")
    model(torch.ones(1, 2, device="cuda")).sum().backward()
    assert model.weight.grad.cpu().tolist() == [[2, 2]]


def test_shared_tensors_stay_shared():
    tied = Tied()
    shared = torch.ones(1)
    tied.a.register_buffer("table", shared)
    tied.b.register_buffer("table", shared)
    tied.double()
    assert tied.a.weight is tied.b.weight
    assert tied.a.table is tied.b.table
    assert tied.a.table.dtype is torch.float64


def test_to_without_change_keeps_every_tensor():
    block = Block()
    before = {name: tensor.data_ptr() for name, tensor in (*block.named_parameters(), *block.named_buffers())}
    block.to("cpu").to(torch.float32).float().cpu()
    assert before == {name: tensor.data_ptr() for name, tensor in (*block.named_parameters(), *block.named_buffers())}


def test_short_casts():
    block = Block()
    for name, dtype in (
        ("double", torch.float64),
        ("half", torch.float16),
        ("bfloat16", torch.bfloat16),
        ("float", torch.float32),
    ):
        assert getattr(block, name)() is block
        assert {t.dtype for t in block.parameters()} == {dtype}
        assert block.steps.dtype is torch.int64
    block.type(torch.float64)
    assert block.steps.dtype is torch.float64


@pytest.mark.parametrize(
    ("args", "error", "words"),
    [
        (
            (torch.int32,),
            TypeError,
            "nn.Module.to only accepts floating point or complex dtypes, but got desired dtype=",
        ),
        (
            ([],),
            ArgumentError,
            r"to\(\) received an invalid combination of arguments - got \(list\), but expected one of",
        ),
        (("tpu",), RuntimeError, "Expected one of cpu, cuda"),
    ],
)
def test_bad_arguments_of_to(args, error, words):
    block = Block()
    with pytest.raises(error, match=words):
        block.to(*args)
    assert block.scale.dtype is torch.float32


def test_a_dtype_of_another_type_is_shown(two_devices):
    for movable in (Block(), torch.ones(1)):
        with pytest.raises(ArgumentError, match=r"got \(str, dtype='float16'\), but expected one of"):
            movable.to("cuda", dtype="float16")


def test_cuda_takes_no_other_device(two_devices):
    for movable in (nn.Linear(1, 1), torch.ones(1)):
        for place in ("cpu", torch.device("cpu")):
            with pytest.raises(RuntimeError, match="Expected a cuda device, but got: cpu"):
                movable.cuda(place)
    for place, index in ((None, 0), (1, 1), ("cuda:1", 1), ("cuda", 0), (torch.device("cuda:1"), 1)):
        assert torch.ones(1).cuda(place).get_device() == index
        assert nn.Linear(1, 1).cuda(place).weight.get_device() == index
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.ones(1).cuda(2)


def test_a_module_that_does_not_fit_stays_as_it_was(two_devices):
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(512, 512), nn.Linear(8, 8))
    model.register_buffer("table", torch.zeros(4))
    before = values(model)
    data = [param.data_ptr() for param in model.parameters()]
    with pytest.raises(OutOfMemoryError):
        model.to("cuda:0")
    assert [param.data_ptr() for param in model.parameters()] == data
    assert {str(t.device) for t in (*model.parameters(), *model.buffers())} == {"cpu"}
    assert_same(values(model), before)
    # what had been copied was given back: a module that fits can still be moved
    nn.Linear(128, 128).to("cuda:0")


def test_to_names_what_it_leaves_behind(two_devices):
    model = nn.Sequential(Careless())
    with pytest.warns(UserWarning, match=r"Sequential.to\(\) leaves 6 tensors behind") as caught:
        model.to("cuda")
    text = str(caught[0].message)
    for path in (
        "0.plain:",
        "0.listed[0]:",
        "0.listed[1].weight:",
        "0.nested['key'][0]:",
        "0.count:",
        "0.view_of_table:",
    ):
        assert f"  {path} shape" in text
    assert "0.known" not in text
    assert "0.alias" not in text
    assert text.splitlines()[-1].startswith("  Fix: register")
    assert caught[0].filename == __file__
    for call in (lambda: model.cpu().cuda(), lambda: model.cpu().to("cuda", torch.float64)):
        with pytest.warns(UserWarning, match="behind") as caught:
            call()
        assert caught[0].filename == __file__


def test_a_cast_names_the_floats_only():
    with pytest.warns(UserWarning, match=r"leaves 5 tensors behind") as caught:
        Careless().half()
    assert "count" not in str(caught[0].message)
    assert caught[0].filename == __file__


def test_many_forgotten_tensors_are_counted():
    class Many(nn.Module):
        def __init__(self):
            super().__init__()
            self.tensors = [torch.ones(1) for _ in range(30)]

    with pytest.warns(UserWarning, match="leaves 30 tensors behind") as caught:
        Many().double()
    assert "and 20 more" in str(caught[0].message)


def test_nothing_is_warned_of_where_nothing_is_left_behind():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Careless().to("cpu").float()
        Block().double()

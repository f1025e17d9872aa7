"""nn.Module: registration, walking, printing, copying and how its parameters are named, by PyTorch's rules."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections import OrderedDict

import pytest

import tritensor as torch
from tritensor import cuda, nn
from tritensor.errors import ArgumentError, AutogradError, DtypeError

from .models import Block, Careless, Tied, assert_same, values

# ---- registration ---------------------------------------------------------------------------------------------


def test_parameters_buffers_and_modules_register_themselves():
    block = Block()
    assert [name for name, _ in block.named_parameters()] == ["scale", "inner.weight", "inner.bias"]
    assert [name for name, _ in block.named_buffers()] == ["steps", "mean", "cache"]
    assert [name for name, _ in block.named_modules()] == ["", "inner"]
    assert list(block.children()) == [block.inner]
    assert "scale" not in block.__dict__


def test_assigning_another_kind_moves_the_name():
    block = Block()
    block.mean = nn.Parameter(torch.zeros(2))
    assert "mean" in dict(block.named_parameters())
    assert "mean" not in dict(block.named_buffers())
    block.extra = 3
    block.extra = nn.Linear(1, 1)
    assert "extra" in dict(block.named_children())
    assert "extra" not in block.__dict__
    block.extra = nn.Parameter(torch.zeros(1))
    assert "extra" not in dict(block.named_children())
    block.inner = None
    assert list(block.named_children()) == []
    assert block.inner is None


def test_a_class_may_pass_the_registration_by():
    class Whole(nn.Module):
        def __setattr__(self, name, value):
            (super(nn.Module, self) if name == "last" else super()).__setattr__(name, value)

    whole = Whole()
    whole.last, whole.first = nn.Identity(), nn.Identity()
    assert [name for name, _ in whole.named_children()] == ["first"] and isinstance(whole.last, nn.Identity)


def test_a_buffer_keeps_its_place_and_persistence_when_assigned():
    block = Block()
    block.cache = torch.zeros(3)
    assert list(block.state_dict()) == ["scale", "steps", "mean", "inner.weight", "inner.bias"]
    block.mean = None
    assert "mean" not in block.state_dict()
    block.mean = torch.ones(2)
    assert "mean" in block.state_dict()
    block.kept = nn.Buffer(torch.ones(1))
    block.hidden = nn.Buffer(torch.ones(1), persistent=False)
    assert "kept" in block.state_dict()
    assert "hidden" not in block.state_dict()


def test_delattr_unregisters():
    block = Block()
    del block.scale, block.cache, block.inner
    assert list(block.parameters()) == []
    assert [name for name, _ in block.named_buffers()] == ["steps", "mean"]
    block.register_buffer("cache", torch.ones(1))
    assert "cache" in block.state_dict()
    with pytest.raises(AttributeError):
        del block.scale


@pytest.mark.parametrize(
    ("action", "error", "words"),
    [
        (lambda m: setattr(m, "scale", torch.ones(2)), TypeError, "cannot assign 'torch.FloatTensor' as parameter"),
        (lambda m: setattr(m, "scale", "x"), TypeError, r"cannot assign 'str' as parameter 'scale' \(torch"),
        (lambda m: setattr(m, "inner", 1), TypeError, r"cannot assign 'int' as child module 'inner' \(torch"),
        (lambda m: setattr(m, "mean", 1), TypeError, r"cannot assign 'int' as buffer 'mean'"),
        (lambda m: m.register_buffer("x", 1), TypeError, r"cannot assign 'int' object to buffer 'x'"),
        (lambda m: m.register_buffer("scale", torch.ones(1)), KeyError, "attribute 'scale' already exists"),
        (lambda m: m.register_buffer("a.b", torch.ones(1)), KeyError, r"buffer name can\\?.t contain"),
        (lambda m: m.register_buffer("", torch.ones(1)), KeyError, "buffer name can.*t be empty string"),
        (lambda m: m.register_buffer(1, torch.ones(1)), TypeError, "buffer name should be a string. Got int"),
        (lambda m: m.register_parameter("mean", None), KeyError, "attribute 'mean' already exists"),
        (lambda m: m.register_parameter("x", torch.ones(1)), TypeError, "cannot assign 'torch.FloatTensor' object"),
        (lambda m: m.register_module("train", nn.ReLU()), KeyError, "attribute 'train' already exists"),
        (lambda m: m.add_module("x", 3), TypeError, "int is not a Module subclass"),
        (lambda m: m.add_module("a.b", nn.ReLU()), KeyError, "module name can.*t contain .* got: a.b"),
        (lambda m: m.nothing, AttributeError, "'Block' object has no attribute 'nothing'"),
        (lambda m: m.train("yes"), ValueError, "training mode is expected to be boolean"),
        (lambda m: m.get_submodule("inner.weight"), AttributeError, "`weight` is not an nn.Module"),
        (lambda m: m.get_submodule("x.y"), AttributeError, "Block has no attribute `x`"),
        (lambda m: m.get_parameter("inner.x"), AttributeError, "Linear has no attribute `x`"),
        (lambda m: m.get_parameter("mean"), AttributeError, "`mean` is not an nn.Parameter"),
        (lambda m: m.get_buffer("scale"), AttributeError, "`scale` is not a buffer"),
        (lambda m: m.get_buffer("inner.x"), AttributeError, "Linear has no attribute `x`"),
        (lambda m: m.set_submodule("", nn.ReLU()), ValueError, "Cannot set the submodule without a target name!"),
        (lambda m: m.set_submodule("new", 1), ValueError, "`module` is not an nn.Module"),
        (lambda m: m.set_submodule("new", nn.ReLU(), strict=True), AttributeError, "Block has no attribute `new`"),
        (lambda m: m.set_submodule("scale", nn.ReLU()), AttributeError, "`scale` is not an nn.Module"),
    ],
)
def test_misuse_raises_in_pytorchs_words_and_changes_nothing(action, error, words):
    block = Block()
    before, names = values(block), dir(block)
    with pytest.raises(error, match=words):
        action(block)
    assert_same(values(block), before)
    assert dir(block) == names


def test_nothing_is_assigned_before_init():
    class Early(nn.Module):
        def __init__(self, value):
            self.value = value

    for value, what in ((nn.ReLU(), "module"), (nn.Parameter(torch.ones(1)), "parameters")):
        with pytest.raises(AttributeError, match=rf"cannot assign {what} before Module.__init__\(\) call"):
            Early(value)
    bare = Early(3)
    assert bare.value == 3
    with pytest.raises(AttributeError, match=r"cannot assign buffer before Module.__init__\(\) call"):
        bare.register_buffer("x", None)
    with pytest.raises(AttributeError, match=r"cannot assign parameter before Module.__init__\(\) call"):
        bare.register_parameter("x", None)


def test_init_takes_no_arguments():
    with pytest.raises(TypeError, match=r"Module.__init__\(\) takes 1 positional argument but 2 were given"):
        nn.Module(1)
    with pytest.raises(TypeError, match=r"Module.__init__\(\) got an unexpected keyword argument 'size'"):
        nn.Module(size=1)


def test_call_super_init_passes_arguments_on():
    class Named:
        def __init__(self, name):
            self.name = name

    class Both(nn.Module, Named):
        call_super_init = True

    # ModuleTree stands between Module and Named in the order of classes and passes nothing on by itself
    assert Both("x").name == "x"


def test_a_parameter_must_be_a_leaf():
    block = Block()
    computed = nn.Parameter(torch.ones(1), requires_grad=False)
    computed.add_(nn.Parameter(torch.ones(1)) * 2)
    with pytest.raises(ValueError, match=r"Cannot assign non-leaf Tensor to parameter 'x'. Model parameters must be"):
        block.register_parameter("x", computed)
    assert "x" not in dict(block.named_parameters())


def test_a_parameter_can_be_set_to_none():
    block = Block()
    block.scale = None
    assert block.scale is None
    assert "scale" not in block.state_dict()
    block.scale = nn.Parameter(torch.zeros(2))
    assert "scale" in block.state_dict()


def test_parameter_shares_memory_and_needs_a_gradient():
    data = torch.zeros(2)
    with torch.no_grad():
        param = nn.Parameter(data)
    assert param.requires_grad
    assert param.is_leaf
    data.fill_(3)
    assert param.tolist() == [3, 3]
    assert repr(param) == "Parameter containing:\ntensor([3., 3.], requires_grad=True)"
    assert type(param * 2) is torch.Tensor
    assert nn.Parameter().shape == (0,)
    with cuda.simulate(devices=1):
        assert nn.Parameter(data.pin_memory()).is_pinned()
    with pytest.raises(ArgumentError, match="argument 'data' must be Tensor, not list"):
        nn.Parameter([1.0])
    with pytest.raises(DtypeError, match="Only Tensors of floating point and complex dtype can require gradients"):
        nn.Parameter(torch.zeros(2, dtype=torch.int64))
    assert not nn.Parameter(torch.zeros(2, dtype=torch.int64), requires_grad=False).requires_grad


def test_forward_is_required():
    with pytest.raises(NotImplementedError, match=r'Module \[Module\] is missing the required "forward" function'):
        nn.Module()(1)


# ---- walking and printing -------------------------------------------------------------------------------------


def test_shared_members_come_once_unless_asked_for():
    tied = Tied()
    assert [name for name, _ in tied.named_parameters()] == ["a.weight"]
    assert [name for name, _ in tied.named_parameters(remove_duplicate=False)] == ["a.weight", "b.weight"]
    twice = nn.Sequential(tied.a, tied.a)
    assert [name for name, _ in twice.named_modules()] == ["", "0"]
    assert [name for name, _ in twice.named_modules(remove_duplicate=False)] == ["", "0", "1"]
    assert [name for name, _ in twice.named_children()] == ["0"]
    assert len(list(twice.modules())) == 2


def test_prefix_and_recursion():
    block = Block()
    assert [name for name, _ in block.named_parameters(prefix="m")] == ["m.scale", "m.inner.weight", "m.inner.bias"]
    assert [name for name, _ in block.named_parameters(recurse=False)] == ["scale"]
    assert len(list(block.buffers(recurse=False))) == 3
    assert [name for name, _ in block.named_modules(prefix="m")] == ["m", "m.inner"]


def test_members_by_path():
    model = nn.Sequential(Block())
    assert model.get_submodule("") is model
    assert model.get_submodule("0.inner") is model[0].inner
    assert model.get_parameter("0.inner.weight") is model[0].inner.weight
    assert model.get_buffer("0.mean") is model[0].mean
    model.set_submodule("0.inner", nn.Identity())
    assert isinstance(model[0].inner, nn.Identity)
    model.set_submodule("0.added", nn.ReLU())
    assert isinstance(model[0].added, nn.ReLU)


def test_apply_goes_through_children_first():
    model = nn.Sequential(nn.Linear(1, 1), nn.Sequential(nn.ReLU()))
    seen = []
    assert model.apply(lambda module: seen.append(type(module).__name__)) is model
    assert seen == ["Linear", "ReLU", "Sequential", "Sequential"]


def test_train_eval_and_freezing_reach_all_modules():
    model = nn.Sequential(nn.Dropout(), Block())
    assert model.eval() is model
    assert not any(module.training for module in model.modules())
    model.train()
    assert all(module.training for module in model.modules())
    model.requires_grad_(False)
    assert not any(param.requires_grad for param in model.parameters())


def test_repr_is_pytorchs():
    model = nn.Sequential(
        OrderedDict(
            fc=nn.Linear(2, 3, bias=False),
            layers=nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Sequential(nn.Tanh())]),
            named=nn.ModuleDict({"a": nn.Identity()}),
            empty=nn.ModuleList(),
        )
    )
    assert repr(model) == (
        "Sequential(\n"
        "  (fc): Linear(in_features=2, out_features=3, bias=False)\n"
        "  (layers): ModuleList(\n"
        "    (0-1): 2 x ReLU()\n"
        "    (2): Sequential(\n"
        "      (0): Tanh()\n"
        "    )\n"
        "  )\n"
        "  (named): ModuleDict(\n"
        "    (a): Identity()\n"
        "  )\n"
        "  (empty): ModuleList()\n"
        ")"
    )


def test_repr_of_several_extra_lines():
    class Noted(nn.Module):
        def extra_repr(self):
            return "one\ntwo"

    assert repr(Noted()) == "Noted(\n  one\n  two\n)"
    assert repr(nn.Module()) == "Module()"


def test_dir_lists_members_but_no_numbers():
    names = dir(nn.Sequential(nn.ReLU()))
    assert "0" not in names
    assert {"scale", "inner", "mean", "forward"} <= set(dir(Block()))


# ---- copying --------------------------------------------------------------------------------------------------


def test_deepcopy_and_pickle_give_equal_separate_modules():
    block = Tied()
    block.a.weight.grad = torch.ones(2, 2)
    for other in (copy.deepcopy(block), pickle.loads(pickle.dumps(block))):
        assert_same(values(other), values(block))
        assert other.a.weight is other.b.weight
        assert isinstance(other.a.weight, nn.Parameter)
        with torch.no_grad():
            other.a.weight.fill_(9)
        assert block.a.weight.detach().max() < 9
        assert nn.parameter_path(other.a.weight) == "a.weight"
    assert copy.deepcopy(block).a.weight.grad is None


def test_a_module_that_keeps_a_hooks_handle_can_be_copied():
    block = Block()
    block.handle = block.register_forward_hook(_double)
    other = copy.deepcopy(block)
    other.handle.remove()
    x = torch.ones(1, 3)
    torch.testing.assert_close(block(x), other(x) * 2)


def _double(module, args, output):
    return output * 2


def test_modules_are_freed_at_once():
    block = Block()
    reference = weakref.ref(block)
    gc.disable()
    try:
        del block
        assert reference() is None
    finally:
        gc.enable()


def test_zero_grad():
    block = Block()
    block(torch.ones(1, 3)).sum().backward()
    grad = block.scale.grad
    block.zero_grad(set_to_none=False)
    assert block.scale.grad is grad
    assert grad.tolist() == [0, 0]
    block.zero_grad()
    assert all(param.grad is None for param in block.parameters())
    x = block.scale
    (x * x).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    block.zero_grad(set_to_none=False)
    assert not x.grad.requires_grad


def test_in_place_change_of_a_parameter_is_refused_outside_no_grad():
    with pytest.raises(
        AutogradError, match="a leaf Variable that requires grad is being used in an in-place operation"
    ):
        nn.Linear(1, 1).weight.fill_(1)


# ---- naming tensors -------------------------------------------------------------------------------------------


def test_parameter_path():
    model = nn.Sequential(OrderedDict(encoder=nn.ModuleList([nn.Linear(2, 2), Block()])))
    assert nn.parameter_path(model.encoder[1].inner.weight) == "encoder.1.inner.weight"
    assert nn.parameter_path(model.encoder[1].mean) == "encoder.1.mean"
    assert nn.parameter_path(torch.ones(1)) is None
    alone = nn.Linear(2, 2)
    assert nn.parameter_path(alone.bias) == "bias"
    loop = nn.Sequential()
    loop.add_module("self", loop)
    loop.weight = nn.Parameter(torch.ones(1))
    assert nn.parameter_path(loop.weight) == "self.weight"


def test_mixed_devices_name_the_parameter(two_devices):
    model = nn.Sequential(nn.Linear(3, 2)).to("cuda")
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device") as caught:
        model(torch.ones(1, 3))
    assert "(parameter 0.weight)" in str(caught.value)
    assert str(caught.value).endswith("move input with .to('cuda:0')")
    model.cpu()
    with pytest.raises(RuntimeError, match=r"move the module that holds weight and bias with .to\('cuda:0'\)$"):
        model(torch.ones(1, 3, device="cuda"))


class Offsets(nn.Module):
    """What a module holds, registered and not, each of which `forward` takes a part of."""

    def __init__(self):
        super().__init__()
        self.register_buffer("buffer", torch.ones(5))
        self.plain = {"first": [torch.ones(5)]}

    def forward(self, x, of):
        return x + (self.buffer if of == "buffer" else self.plain["first"][0])[: len(x)]


@pytest.mark.parametrize(
    ("place", "of", "said", "mend"),
    [
        ("cpu", "buffer", "y (view of buffer 0.buffer): ", "move the module that holds y with .to('cuda:1')"),
        (
            "cpu",
            "plain",
            "y (view of unregistered attribute 0.plain['first'][0]): ",
            "move y with .to('cuda:1'), or register 0.plain['first'][0] by register_buffer() or as nn.Parameter: .to() "
            "then moves it",
        ),
        ("cuda:0", "buffer", "y (view of buffer 0.buffer): ", "move x with .to('cuda:0')"),
    ],
)
@pytest.mark.filterwarnings("ignore:Offsets.to")
def test_mixed_devices_name_what_a_view_is_of(two_devices, place, of, said, mend):
    holder = nn.ModuleList([Offsets().to(place)])
    with pytest.raises(RuntimeError) as caught:
        holder[0](torch.ones(3, device="cuda:1"), of)
    assert said in str(caught.value)
    assert mend in str(caught.value)


def test_neighbours_in_memory_are_no_views(two_devices):
    for device in ("cpu", "cuda"):
        block = torch.ones(6, device=device)
        holder = nn.Module()
        holder.first = block[:3]
        with pytest.raises(RuntimeError) as caught:
            block[3:] + torch.ones(3, device="cuda:1")
        assert "attribute" not in str(caught.value)


# ---- audit ----------------------------------------------------------------------------------------------------


def test_audit_lists_everything(two_devices):
    tied = nn.ModuleDict({"tied": Tied(), "careless": Careless()})
    tied["tied"].cuda()
    report = nn.audit(tied)
    assert [entry.path for entry in report.parameters] == ["tied.a.weight", "tied.b.weight", "careless.weight"]
    assert [entry.path for entry in report.buffers] == ["careless.table"]
    assert {str(device) for device in report.devices} == {"cpu", "cuda:0"}
    lines = str(report).splitlines()
    assert lines[0] == "ModuleDict"
    assert lines[1].split() == ["path", "kind", "shape", "dtype", "device", "grad", "note"]
    row = next(line for line in lines if line.startswith("tied.b.weight"))
    assert row.split("  ")[-1].strip() == "shared with tied.a.weight"
    assert "cuda:0, float32: 1 tensors, 4 elements, 16 bytes" in lines
    assert "cpu, float32: 2 tensors, 3 elements, 12 bytes" in lines
    assert "on 2 devices: operators refuse to mix them" in lines
    assert f"{len(report.unregistered)} unregistered: to() and state_dict() leave them out" in lines
    assert {entry.path for entry in report.unregistered} >= {"careless.plain", "careless.listed[1].weight"}
    assert (
        next(e for e in report.unregistered if e.path == "careless.view_of_table").note == "shared with careless.table"
    )

"""nn.Module: registration, walking, printing, hooks, state dicts and conversion, by PyTorch's rules."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
import weakref
from collections import OrderedDict

import numpy as np
import pytest

import tritensor as torch
from tritensor import cuda, nn
from tritensor.errors import ArgumentError, AutogradError, CheckpointError, DtypeError, OutOfMemoryError


class Block(nn.Module):
    """A parameter, two buffers (one not persistent) and a child."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 2)
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("cache", torch.ones(1), persistent=False)

    def forward(self, x):
        return self.inner(x) * self.scale + self.mean


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2, bias=False)
        self.b = nn.Linear(2, 2, bias=False)
        self.b.weight = self.a.weight


def values(module):
    return {key: tensor.numpy().copy() for key, tensor in module.state_dict().items()}


def assert_same(one, other):
    assert list(one) == list(other)
    for key in one:
        np.testing.assert_array_equal(one[key], other[key])


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


# ---- hooks ----------------------------------------------------------------------------------------------------


def test_forward_hooks_see_and_replace():
    layer = nn.Identity()
    seen = []
    layer.register_forward_pre_hook(lambda module, args: args[0] + 1)
    layer.register_forward_pre_hook(lambda module, args: (args[0] * 10,))
    layer.register_forward_hook(lambda module, args, output: seen.append((args, output)))
    handle = layer.register_forward_hook(lambda module, args, output: output + 0.5)
    assert layer(1) == 20.5
    assert seen == [((20,), 20)]
    handle.remove()
    handle.remove()
    assert layer(1) == 20


def test_hooks_with_keywords_and_in_front():
    class Add(nn.Module):
        def forward(self, x, y=0):
            return x + y

    layer = Add()
    with layer.register_forward_pre_hook(lambda m, args, kwargs: (args, {"y": kwargs["y"] * 2}), with_kwargs=True):
        assert layer(1, y=3) == 7
    layer.register_forward_pre_hook(lambda m, args, kwargs: None, with_kwargs=True)
    layer.register_forward_hook(lambda m, args, kwargs, output: (output, kwargs), with_kwargs=True)
    layer.register_forward_hook(lambda m, args, output: output * 100, prepend=True)
    assert layer(1, y=3) == (400, {"y": 3})
    layer.register_forward_pre_hook(lambda m, args, kwargs: 5, with_kwargs=True)
    with pytest.raises(RuntimeError, match="forward pre-hook must return None or a tuple"):
        layer(1, y=3)


def test_always_called_hooks_run_after_an_error():
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("first")

    layer = Fails()
    calls = []
    layer.register_forward_hook(lambda m, args, output: calls.append(output), always_call=True)
    layer.register_forward_hook(lambda m, args, output: calls.append("never"))
    with pytest.raises(ValueError, match="first"):
        layer(1)
    assert calls == [None]

    def broken(module, args, output):
        raise KeyError("second")

    layer.register_forward_hook(broken, always_call=True)
    with pytest.raises(ValueError, match="first"), pytest.warns(UserWarning, match="silenced as another error"):
        layer(1)


class TwoInputs(nn.Module):
    def forward(self, x, label, y):
        return x * 2, y * 3


def test_backward_hooks_see_all_gradients_at_once():
    layer = TwoInputs()
    calls = []
    layer.register_full_backward_hook(lambda m, inputs, outputs: calls.append((inputs, outputs)))
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    first, second = layer(x, "label", y)
    (first * 5 + second * 7).sum().backward()
    (grad_x, grad_label, grad_y), (grad_first, grad_second) = calls[0]
    assert len(calls) == 1
    assert grad_label is None
    assert [g.tolist() for g in (grad_x, grad_y, grad_first, grad_second)] == [[10, 10], [21, 21], [5, 5], [7, 7]]
    assert x.grad.tolist() == [10, 10]


def test_backward_hooks_replace_gradients():
    layer = nn.Identity()
    layer.register_full_backward_pre_hook(lambda m, outputs: (outputs[0] * 2,))
    layer.register_full_backward_hook(lambda m, inputs, outputs: (inputs[0] + outputs[0],))
    x = torch.ones(1, requires_grad=True)
    (layer(x) * 3).sum().backward()
    assert x.grad.tolist() == [12]


def test_backward_hooks_without_an_input_that_needs_gradients():
    layer = nn.Linear(2, 1)
    calls = []
    handle = layer.register_full_backward_hook(lambda m, inputs, outputs: calls.append((inputs, outputs)))
    layer(torch.ones(1, 2)).sum().backward()
    assert calls[0][0] == (None,)
    assert calls[0][1][0].tolist() == [[1]]
    handle.remove()
    layer.register_full_backward_hook(lambda m, inputs, outputs: (torch.ones(1),))
    with pytest.raises(RuntimeError, match="no input requires gradient should always return None"):
        layer(torch.ones(1, 2)).sum().backward()


def test_backward_hooks_of_the_wrong_count_raise():
    layer = nn.Identity()
    layer.register_full_backward_hook(lambda m, inputs, outputs: (None, None))
    with pytest.raises(RuntimeError, match="Backward hook returned an invalid number of grad, got 2, but expected 1"):
        layer(torch.ones(1, requires_grad=True)).backward()


def test_backward_hooks_run_at_every_backward_and_not_in_no_grad():
    layer = nn.Identity()
    calls = []
    layer.register_full_backward_hook(lambda m, inputs, outputs: calls.append(1))
    x = torch.ones(1, requires_grad=True)
    output = layer(x)
    output.backward(retain_graph=True)
    output.backward()
    assert len(calls) == 2
    with torch.no_grad():
        assert layer(x) is x


def test_backward_hooks_are_for_gradients_that_come_through_the_outputs():
    class Leaks(nn.Module):
        def forward(self, x):
            self.__dict__["aside"] = x * 3
            return x * 2

    layer = Leaks()
    calls = []
    layer.register_full_backward_hook(lambda m, inputs, outputs: calls.append(inputs))
    x = torch.ones(1, requires_grad=True)
    layer(x)
    layer.aside.backward()
    assert calls == []
    assert x.grad.tolist() == [3]


def test_backward_hooks_warn_about_other_outputs():
    class Dicts(nn.Module):
        def forward(self, x):
            return {"x": x}

    layer = Dicts()
    layer.register_full_backward_hook(lambda m, inputs, outputs: None)
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple of Tensors"):
        layer(torch.ones(1, requires_grad=True))


# ---- state dicts ----------------------------------------------------------------------------------------------


def test_state_dict_shares_memory_and_carries_versions():
    block = Block()
    state = block.state_dict()
    assert list(state) == ["scale", "steps", "mean", "inner.weight", "inner.bias"]
    assert state._metadata == {"": {"version": 1}, "inner": {"version": 1}}
    assert not state["scale"].requires_grad
    state["mean"].fill_(4)
    assert block.mean.tolist() == [4, 4]
    assert block.state_dict(keep_vars=True)["scale"] is block.scale
    assert "m.scale" in block.state_dict(prefix="m.")
    kept = {}
    assert block.state_dict(destination=kept) is kept


def test_loading_copies_values():
    one, other = Block(), Block()
    with torch.no_grad():
        one.steps.fill_(5)
    keys = other.load_state_dict(one.state_dict())
    assert repr(keys) == str(keys) == "<All keys matched successfully>"
    assert keys.missing_keys == keys.unexpected_keys == []
    assert_same(values(one), values(other))
    with torch.no_grad():
        one.scale.fill_(7)
    assert other.scale.tolist() == [1, 1]


def test_loading_converts_dtype_and_keeps_the_module():
    block = Block()
    weight = block.inner.weight
    state = {key: value.to(torch.float64) for key, value in block.state_dict().items()}
    block.load_state_dict(state)
    assert block.inner.weight is weight
    assert block.inner.weight.dtype is torch.float32
    assert block.steps.dtype is torch.int64


@pytest.mark.parametrize("strict", [True, False])
def test_a_bad_state_dict_lists_everything_and_changes_nothing(strict):
    block = Block()
    state = {key: value + 1 for key, value in block.state_dict().items()}
    state["inner.wieght"] = state.pop("inner.weight")
    state["scale"] = torch.zeros(3)
    state["mean"] = "text"
    before = values(block)
    with pytest.raises(CheckpointError) as caught:
        block.load_state_dict(state, strict=strict)
    text = str(caught.value)
    assert isinstance(caught.value, RuntimeError)
    lines = text.split("\n")
    assert lines[0] == "Error(s) in loading state_dict for Block:"
    assert (
        "\tsize mismatch for scale: copying a param with shape torch.Size([3]) from checkpoint, "
        "the shape in current model is torch.Size([2])." in lines
    )
    assert '\tWhile copying the parameter named "mean", expected torch.Tensor' in text
    assert ('\tMissing key(s) in state_dict: "inner.weight". ' in lines) is strict
    assert ('\tUnexpected key(s) in state_dict: "inner.wieght". ' in lines) is strict
    assert '"inner.weight" is missing, and the state dict has "inner.wieght": was it renamed?' in text
    assert_same(values(block), before)


def test_loading_without_strictness_returns_what_did_not_match():
    block = Block()
    state = {"scale": torch.zeros(2), "other": torch.zeros(1), "inner.x.y": torch.zeros(1)}
    keys = block.load_state_dict(state, strict=False)
    assert keys.missing_keys == ["steps", "mean", "inner.weight", "inner.bias"]
    assert sorted(keys.unexpected_keys) == ["inner.x.y", "other"]
    assert repr(keys).startswith("_IncompatibleKeys(missing_keys=['steps', ")
    assert block.scale.tolist() == [0, 0]


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_prefix_that_all_keys_share_is_named(wrapped):
    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.module = nn.Linear(2, 2)

    one, other = (Holder(), nn.Linear(2, 2)) if wrapped else (nn.Linear(2, 2), Holder())
    verb = "carry" if wrapped else "lack"
    with pytest.raises(CheckpointError, match=f"All keys of the state dict {verb} the prefix 'module.'"):
        other.load_state_dict(one.state_dict())


def test_only_mappings_are_loaded():
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class 'list'>"):
        Block().load_state_dict([])


def test_assign_takes_the_tensors_themselves():
    block = Block()
    block.inner.weight.requires_grad_(False)
    state = {key: value.to(torch.float64) for key, value in block.state_dict().items()}
    state["scale"] = nn.Parameter(torch.zeros(2, dtype=torch.float64), requires_grad=False)
    block.load_state_dict(state, assign=True)
    assert block.scale is state["scale"]
    assert block.scale.requires_grad
    assert not block.inner.weight.requires_grad
    assert isinstance(block.inner.weight, nn.Parameter)
    assert block.inner.weight.dtype is torch.float64
    assert block.mean is state["mean"]


def test_old_scalars_of_one_element_are_taken():
    block = Block()
    state = block.state_dict()
    state["steps"] = torch.tensor([4])
    block.load_state_dict(state)
    assert block.steps.item() == 4


class WithExtra(nn.Linear):
    def __init__(self):
        super().__init__(1, 1, bias=False)
        self.note = "fresh"

    def get_extra_state(self):
        return {"note": self.note}

    def set_extra_state(self, state):
        self.note = state["note"]


def test_extra_state_goes_along():
    one, other = WithExtra(), WithExtra()
    one.note = "old"
    assert one.state_dict()["_extra_state"] == {"note": "old"}
    other.load_state_dict(one.state_dict())
    assert other.note == "old"
    with pytest.raises(CheckpointError, match=r'Missing key.* "_extra_state"'):
        other.load_state_dict({"weight": one.weight})
    with pytest.raises(CheckpointError, match=r'Unexpected key.* "_extra_state"'):
        nn.Linear(1, 1, bias=False).load_state_dict(one.state_dict())


def test_state_dict_hooks():
    block = Block()
    calls = []
    block.register_state_dict_pre_hook(lambda module, prefix, keep_vars: calls.append((prefix, keep_vars)))
    block.register_state_dict_post_hook(lambda module, state, prefix, metadata: state.__delitem__(prefix + "mean"))
    assert "mean" not in block.state_dict()
    assert calls == [("", False)]
    block.register_state_dict_post_hook(lambda module, state, prefix, metadata: state)
    with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
        block.state_dict()


def test_a_load_hook_may_rename_keys():
    block = Block()

    def rename(module, state, prefix, metadata, strict, missing, unexpected, errors):
        state[prefix + "scale"] = state.pop(prefix + "gain")

    block.register_load_state_dict_pre_hook(rename)
    state = block.state_dict()
    state["gain"] = state.pop("scale") * 3
    block.load_state_dict(state)
    assert block.scale.tolist() == [3, 3]


def test_a_subclass_may_rename_keys():
    class Renamed(nn.Linear):
        _version = 2

        def _load_from_state_dict(self, state, prefix, metadata, *rest):
            if metadata.get("version", 1) < 2:
                state[prefix + "weight"] = state.pop(prefix + "kernel")
            super()._load_from_state_dict(state, prefix, metadata, *rest)

    model = nn.Sequential(Renamed(2, 1, bias=False))
    model.load_state_dict({"0.kernel": torch.ones(1, 2)})
    assert model[0].weight.tolist() == [[1, 1]]
    model.load_state_dict(model.state_dict())


def test_a_post_hook_may_forgive_and_what_it_does_not_forgive_is_undone():
    block = Block()
    state = {key: value + 1 for key, value in block.state_dict().items() if key != "mean"}
    seen = []

    def forgive(module, keys):
        seen.append(module.scale.tolist())
        keys.missing_keys.clear()

    handle = block.register_load_state_dict_post_hook(forgive)
    assert block.load_state_dict(state).missing_keys == []
    assert seen == [[2, 2]]
    handle.remove()
    block.register_load_state_dict_post_hook(lambda module, keys: None)
    before = values(block)
    with pytest.raises(CheckpointError, match=r'Missing key.* "mean"'):
        block.load_state_dict({key: value + 1 for key, value in state.items()})
    assert_same(values(block), before)
    with pytest.raises(CheckpointError, match=r'Missing key.* "mean"'):
        block.load_state_dict({key: value + 1 for key, value in state.items()}, assign=True)
    assert_same(values(block), before)
    block.register_load_state_dict_post_hook(lambda module, keys: keys)
    with pytest.raises(AssertionError, match="not expected to return new values"):
        block.load_state_dict(block.state_dict())


def test_extra_state_is_undone_too():
    model = WithExtra()
    model.register_load_state_dict_post_hook(lambda module, keys: None)
    with pytest.raises(CheckpointError, match=r'Unexpected key.* "other"'):
        model.load_state_dict({"weight": torch.ones(1, 1), "_extra_state": {"note": "new"}, "other": torch.ones(1)})
    assert model.note == "fresh"


def test_extra_state_must_be_defined():
    with pytest.raises(RuntimeError, match="Block defines no get_extra_state"):
        Block().get_extra_state()
    with pytest.raises(RuntimeError, match="Block defines no set_extra_state"):
        Block().set_extra_state(1)


# ---- conversion -----------------------------------------------------------------------------------------------


@pytest.fixture
def two_devices():
    with cuda.simulate(devices=2, memory="1MB"):
        yield


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


class Careless(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.register_buffer("table", torch.ones(2))
        self.plain = torch.ones(2, 3)
        self.listed = [torch.ones(1), nn.Linear(2, 1, bias=False)]
        self.nested = {"key": (torch.zeros(4),)}
        self.known = [self.weight, nn.Identity()]
        self.child = nn.Identity()
        self.alias = {"child": self.child}
        self.count = torch.zeros(1, dtype=torch.int64)
        self.view_of_table = self.table


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
    assert text.splitlines()[-1].startswith("  To mend it: register")
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


# ---- containers -----------------------------------------------------------------------------------------------


def test_sequential_behaves_as_a_list():
    one, two, three = nn.Linear(1, 1), nn.ReLU(), nn.Tanh()
    model = nn.Sequential(one, two)
    assert model.append(three) is model
    assert [len(model), model[0], model[-1], list(model)] == [3, one, three, [one, two, three]]
    assert isinstance(model[1:], nn.Sequential)
    assert [name for name, _ in model[1:].named_children()] == ["1", "2"]
    del model[0]
    assert [name for name, _ in model.named_children()] == ["0", "1"]
    model.insert(0, one)
    assert list(model) == [one, two, three]
    assert list(model.insert(-1, nn.Identity()))[2].__class__ is nn.Identity
    assert model.pop(2).__class__ is nn.Identity
    model[1] = nn.Sigmoid()
    assert isinstance(model[1], nn.Sigmoid)
    assert len(model + nn.Sequential(two)) == 4
    assert len(model * 2) == len(2 * model) == 6
    model += nn.Sequential(two)
    model *= 2
    assert len(model) == 8
    del model[1:]
    assert list(model) == [one]
    assert len(model.extend([two, three])) == 3


@pytest.mark.parametrize(
    ("action", "error", "words"),
    [
        (lambda m: m[3], IndexError, "index 3 is out of range"),
        (
            lambda m: m + 1,
            ValueError,
            "add operator supports only objects of Sequential class, but <class 'int'> is given",
        ),
        (lambda m: m * "a", TypeError, r"unsupported operand type\(s\) for \*"),
        (lambda m: m * 0, ValueError, "Non-positive multiplication factor 0"),
        (lambda m: m.insert(9, nn.ReLU()), IndexError, "Index out of range: 9"),
        (lambda m: m.insert(0, 1), TypeError, "int is not a Module subclass"),
        (lambda m: m.append(1), TypeError, "int is not a Module subclass"),
        (lambda m: nn.ModuleList(3), TypeError, "ModuleList.extend should be called with an iterable, but got int"),
        (
            lambda m: nn.ModuleDict(3),
            TypeError,
            "ModuleDict.update should be called with an iterable of key/value pairs",
        ),
        (lambda m: nn.ModuleDict([3]), TypeError, "update sequence element #0 should be Iterable; is int"),
        (lambda m: nn.ModuleDict([("a",)]), ValueError, "update sequence element #0 has length 1; 2 is required"),
        (lambda m: nn.ModuleDict({"a": 1}), TypeError, "int is not a Module subclass"),
    ],
)
def test_containers_refuse(action, error, words):
    model = nn.Sequential(nn.ReLU())
    with pytest.raises(error, match=words):
        action(model)
    assert len(model) == 1


def test_module_list_and_dict():
    layers = nn.ModuleList(nn.Linear(1, 1) for _ in range(3))
    assert len(layers[:2]) == 2
    assert isinstance(layers[:2], nn.ModuleList)
    layers += [nn.ReLU()]
    assert len(layers + nn.ModuleList([nn.ReLU()])) == 5
    del layers[1]
    assert [name for name, _ in layers.named_children()] == ["0", "1", "2"]
    assert layers[-1].__class__ is nn.ReLU
    table = nn.ModuleDict([("a", nn.ReLU())])
    table.update({"b": nn.Tanh()})
    table.update(nn.ModuleDict({"c": nn.Tanh()}))
    table["d"] = nn.Identity()
    assert list(table) == list(table.keys()) == ["a", "b", "c", "d"]
    assert "a" in table
    assert len(table) == 4
    assert [name for name, _ in table.items()] == list(table.keys())
    assert table.pop("a").__class__ is nn.ReLU
    del table["b"]
    assert len(list(table.values())) == 2
    table.clear()
    assert len(table) == 0


def test_parameter_list():
    values = nn.ParameterList([torch.zeros(2, 3), nn.Parameter(torch.ones(())), "note"])
    assert len(values) == 3
    assert [name for name, _ in values.named_parameters()] == ["0", "1"]
    assert isinstance(values[0], nn.Parameter)
    assert values[-1] == "note"
    values += [torch.ones(1)]
    values[0] = torch.ones(4)
    assert [value.shape for value in values.parameters()] == [(4,), (), (1,)]
    assert len(values[1:3]) == 2
    assert values.append(3)[4] == 3
    assert list(values)[2:] == ["note", values[3], 3]
    assert repr(nn.ParameterList([torch.zeros(2, 3), 1])) == (
        "ParameterList(\n"
        "    (0): Parameter containing: [tritensor.float32 of size 2x3]\n"
        "    (1): Object of type: int\n"
        ")"
    )
    with pytest.raises(IndexError, match="index 5 is out of range"):
        values[5]
    with pytest.raises(TypeError, match=r"ParameterList.extend should be called with an iterable"):
        nn.ParameterList(torch.zeros(2))
    with pytest.raises(RuntimeError, match="ParameterList should not be called"):
        values(1)
    assert list(copy.deepcopy(values).state_dict()) == list(values.double().state_dict())


def test_parameter_dict(two_devices):
    table = nn.ParameterDict({"a": torch.zeros(2)})
    table.update([("b", torch.ones(1)), ("c", 3)])
    table.update(nn.ParameterDict({"d": torch.ones(1)}))
    assert list(table) == list(table.keys()) == ["a", "b", "c", "d"]
    assert [name for name, _ in table.named_parameters()] == ["a", "b", "d"]
    assert table.pop("c") == 3
    assert "c" not in table
    assert table.get("c", 5) == 5
    assert table.get("a") is table["a"]
    assert list(table.values()) == [value for _, value in table.items()]
    assert "(cuda:0)" in repr(table.cuda())
    for action, error in (
        (lambda: table["x"], KeyError),
        (lambda: table.__setitem__(1, torch.ones(1)), TypeError),
        (lambda: table.__setitem__("keys", torch.ones(1)), KeyError),
        (lambda: table.__setitem__("a.b", torch.ones(1)), KeyError),
        (lambda: nn.ParameterDict(3), TypeError),
        (lambda: table(1), RuntimeError),
    ):
        with pytest.raises(error):
            action()
    assert len(table) == 3
    table.clear()
    assert len(table) == len(list(table.parameters())) == 0


def test_in_place_change_of_a_parameter_is_refused_outside_no_grad():
    with pytest.raises(
        AutogradError, match="a leaf Variable that requires grad is being used in an in-place operation"
    ):
        nn.Linear(1, 1).weight.fill_(1)

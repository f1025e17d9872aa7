"""State dicts of modules: what they hold, what loading takes, refuses and undoes, by PyTorch's rules."""

from __future__ import annotations

import copy

import pytest

import tritensor as torch
from tritensor import nn
from tritensor.errors import CheckpointError

from .models import Block, assert_same, values


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
    with pytest.raises(CheckpointError, match=f"All keys of the state dict {verb} the prefix 'module.'") as caught:
        other.load_state_dict(one.state_dict())
    renamed = str(caught.value).rpartition("before loading, ")[2]
    state_dict = eval(renamed, {"state_dict": one.state_dict()})
    assert str(other.load_state_dict(state_dict)) == "<All keys matched successfully>"


def test_the_state_dict_in_a_checkpoint_is_named():
    model = nn.Linear(2, 2)
    checkpoint = {"epoch": 1, "optimizer": {"state": {}}, "model": model.state_dict()}
    with pytest.raises(CheckpointError, match=r"what was passed: load_state_dict\(checkpoint\['model'\]\)$"):
        model.load_state_dict(checkpoint)
    with pytest.raises(CheckpointError) as caught:
        model.load_state_dict({"epoch": 1, "optimizer": {"state": {}}})
    assert "checkpoint[" not in str(caught.value)


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


def test_a_load_hook_by_its_first_name_is_of_the_copy_in_a_copy():
    class Counting(nn.Linear):
        def __init__(self):
            super().__init__(1, 1)
            self.loaded = []
            self._register_load_state_dict_pre_hook(self.count)
            self._register_load_state_dict_pre_hook(lambda module, *rest: module.loaded.append("module"), True)

        def count(self, state, prefix, *rest):
            self.loaded.append(prefix)

    model = nn.Sequential(Counting())
    copied = copy.deepcopy(model)
    copied.load_state_dict(model.state_dict())
    assert copied[0].loaded == ["0.", "module"] and model[0].loaded == []


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

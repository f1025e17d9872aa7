"""Sequential and the lists and dictionaries of modules and parameters, by PyTorch's rules."""

from __future__ import annotations

import copy

import pytest

import tritensor as torch
from tritensor import nn


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

"""Whole modules and objects of classes in checkpoints: what is written, what may be read; nothing is called."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import enum
import functools
import io
import pathlib
import types
import uuid
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.errors import CheckpointError
from tritensor.serialization import load, safe_globals, save

from .crafted_checkpoints import archive, name, number, pickled, text


class Colour(enum.Enum):
    RED = 1


Pair = collections.namedtuple("Pair", "a b")


class Words(dict):
    pass


class Ordered(collections.OrderedDict):
    pass


class Items(list):
    pass


class Name(str):
    pass


@dataclasses.dataclass
class Arguments:
    rate: float
    path: pathlib.PurePath
    colour: Colour


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    a: int
    b: list[int]


class Triple(tuple):
    pass


class Loud(enum.Enum):
    ONE = 1

    @classmethod
    def _missing_(cls, value: object) -> Any:
        raise AssertionError("it was asked")


class Text:
    def __str__(self) -> str:
        raise AssertionError("it was asked")

    __index__ = __iter__ = __fspath__ = __str__


class Slots:
    __slots__ = ("a", "unset")

    def __init__(self, a: int) -> None:
        self.a = a


class Restores:
    def __setstate__(self, state: Any) -> None:
        self.found = state

    def __reduce__(self) -> Any:
        return Restores, (), {"x": 1}


class Deletes:
    def __del__(self) -> None:
        pass


class Makes:
    def __new__(cls, *arguments: Any) -> Makes:
        made = super().__new__(cls)
        made.arguments = arguments
        return made

    def __getnewargs__(self) -> tuple[int]:
        return (3,)


class Named:
    def __reduce__(self) -> str:
        return "NAMED"


class Opened:
    def __reduce__(self) -> Any:
        return open, ("/nowhere",)


NAMED = Named()


def doubled(x: Any) -> Any:
    return 2 * x


class Doubles:
    def __reduce__(self) -> Any:
        return doubled, (21,)


def through(value: Any, **how: Any) -> Any:
    file = io.BytesIO()
    save(value, file)
    file.seek(0)
    return load(file, **{"weights_only": False, **how})


def model(lib: Any) -> Any:
    nn = lib.nn
    layers = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(32, 4))
    return nn.ModuleDict(
        {
            "layers": layers,
            "rows": nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True),
            "block": nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu"),
            "module": nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation=nn.Tanh()),
            "norm": nn.InstanceNorm2d(2),
            "same": nn.Conv1d(2, 2, 3, padding="same", padding_mode="reflect"),
            "wider": nn.ConvTranspose2d(2, 3, 2),
            "more": nn.ParameterDict({"x": lib.zeros(2)}),
            "loss": nn.CrossEntropyLoss(),
        }
    ).eval()


def computed(lib: Any, found: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> Any:
        return lib.from_numpy(rng.standard_normal(shape).astype(np.float32))

    with lib.no_grad():
        made = [found["layers"](draw(2, 1, 4, 4)), found["rows"](draw(2, 5, 3))[0], found["block"](draw(2, 3, 8))]
        made += [found["module"](draw(2, 3, 8)), found["norm"](draw(2, 2, 3, 3)), found["same"](draw(2, 2, 6))]
        made += [found["wider"](draw(1, 2, 3, 3))]
    return [each.numpy() for each in made]


def test_a_whole_module() -> None:
    whole = model(torch)
    again = through(whole)
    assert str(again) == str(whole) and not again.training
    for mine, found in zip(computed(torch, whole), computed(torch, again), strict=True):
        np.testing.assert_array_equal(mine, found)
    assert again["rows"]._flat_weights[0] is again["rows"].weight_ih_l0
    with pytest.raises(CheckpointError, match=r"Unsupported global(?s:.*)add_safe_globals\(\[ModuleDict\]\)"):
        through(whole, weights_only=True)
    linear = torch.nn.Linear(2, 1)
    with safe_globals([torch.nn.Linear]):
        assert torch.equal(through(linear, weights_only=True).weight, linear.weight)
    hooked = torch.nn.Linear(2, 2)
    handle = hooked.register_forward_hook(doubled)
    hooked.handle = handle
    found = through(hooked)
    assert list(found._forward_hooks.values()) == [doubled]
    found.handle.remove()
    assert not found._forward_hooks and hooked._forward_hooks


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore")
def test_whole_modules_beside_pytorch() -> None:
    theirs = pytest.importorskip("torch")
    for source, write, target, read in ((torch, save, theirs, theirs.load), (theirs, theirs.save, torch, load)):
        whole, file = model(source), io.BytesIO()
        write(whole, file)
        file.seek(0)
        found = read(file, weights_only=False)
        for mine, other in zip(computed(source, whole), computed(target, found), strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)
        found["rows"].train().to(target.float64)(target.zeros(1, 2, 3, dtype=target.float64))
    things, file = values(), io.BytesIO()
    theirs.save(things, file)
    file.seek(0)
    assert load(file, weights_only=False) == things
    file = io.BytesIO()
    save(things, file)
    file.seek(0)
    assert theirs.load(file, weights_only=False) == things


def values() -> dict[str, Any]:
    return {
        "class": Arguments(0.1, pathlib.PurePosixPath("/x"), Colour.RED),
        "frozen": Frozen(1, [2]),
        "pair": Pair(1, "b"),
        "dicts": [Words(x=1), Ordered(y=2), collections.defaultdict(set, {"a": 1})],
        "lists": [Items([1, 2]), collections.deque([1, 2], 5)],
        "text": Name("ab"),
        "moment": [datetime.datetime(2020, 1, 2), datetime.timedelta(1), uuid.UUID(int=5)],
        "space": types.SimpleNamespace(a=1),
        "names": [doubled, Arguments],
        "range": range(3),
        "triple": Triple((1, 2, 3)),
        "time": datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
    }


def test_objects_of_classes() -> None:
    found, given = through(values()), values()
    assert found == given
    assert [type(each) for each in found["dicts"]] == [Words, Ordered, collections.defaultdict]
    assert found["dicts"][2].default_factory is set and found["lists"][1].maxlen == 5 and type(found["text"]) is Name
    assert list(found["dicts"][1]) == ["y"]
    assert through(Slots(4)).a == 4
    assert through([torch.nn.functional.relu, torch.optim.SGD]) == [torch.nn.functional.relu, torch.optim.SGD]
    part = through(functools.partial(doubled, 3))
    assert part() == 6
    thing = types.SimpleNamespace(kind=collections.OrderedDict)
    thing.itself = thing
    found = through(thing)
    assert found.kind is collections.OrderedDict and found.itself is found
    assert isinstance(through(types.SimpleNamespace(o=torch.optim.SGD([torch.ones(1)], 0.1))).o, torch.optim.SGD)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Restores(), "the pickle would call tests.serialization.test_objects.Restores.__setstate__"),
        (Deletes(), "which is not plain data"),
        (Makes(), "the pickle would call the constructor of tests.serialization.test_objects.Makes"),
        (Doubles(), "the pickle would call tests.serialization.test_objects.doubled"),
        (Opened(), "it is not what the program has imported"),
        (NAMED, "Unsupported global"),
    ],
)
def test_nothing_of_a_class_is_called(value: Any, words: str) -> None:
    with pytest.raises(CheckpointError, match=words):
        through(value)


def test_what_a_program_allows_is_called() -> None:
    with safe_globals([Restores, Makes, doubled]):
        assert torch.serialization.get_safe_globals() == [Restores, Makes, doubled]
        assert through(Restores(), weights_only=True).found == {"x": 1}
        assert through(Makes(3), weights_only=True).arguments == (3,)
        assert through([Doubles(), Doubles()], weights_only=True) == [42, 42]
        with pytest.raises(CheckpointError, match=r"GLOBAL tests\.serialization\.test_objects\.Words"):
            through(Words(), weights_only=True)
    assert torch.serialization.get_safe_globals() == []
    with pytest.raises(CheckpointError, match="Unsupported global"):
        through(Makes(), weights_only=True)
    file = io.BytesIO(archive(pickled(name("elsewhere", "Old"), b")\x81}", text("a"), number(1), b"sb")))
    with pytest.raises(CheckpointError, match="import elsewhere before the file is loaded"):
        load(file, weights_only=False)
    torch.serialization.add_safe_globals([(Arguments, "elsewhere.Old")])
    try:
        file.seek(0)
        assert load(file).a == 1
    finally:
        torch.serialization.clear_safe_globals()
    with pytest.raises(TypeError, match=r"add_safe_globals\(\): argument 'safe_globals'"):
        torch.serialization.add_safe_globals(Arguments)  # type: ignore[arg-type]


HERE = Arguments.__module__


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((name(HERE, "doubled"), b")\x81"), "the pickle would make an object of a function"),
        (
            (name(HERE, "Slots"), b")\x81N}", text("b"), number(1), b"s\x86b"),
            "sets b of a Slots, which has no such slot",
        ),
        ((name(HERE, "Slots"), b")\x81", number(1), b"b"), "that is no dict of attributes"),
        ((name(HERE, "Words"), b")\x81", number(1), b"a"), "the pickle would append to a list"),
        ((name(HERE, "Items"), b")\x81", number(1), number(1), b"s"), "the pickle would set items of a dict"),
        ((name("torch", "Tensor"), b")\x81"), "NEWOBJ makes an object of any class"),
        ((name("torch.optim", "step"), b")\x81"), "Unsupported global"),
        ((name("torch.nn.functional", "no_such"), b")R"), "Unsupported global"),
        ((name(HERE, "Arguments.__init__.__globals__"),), "Unsupported global"),
        ((name("builtins", "list"), b"(", number(1), b"tR"), "the pickle would call builtins.list"),
        ((name(HERE, "Colour"), b"(", number(9), b"tR"), "the pickle is damaged"),
        ((name(HERE, "Loud"), b"(", number(9), b"tR"), "the pickle is damaged"),
        ((name(HERE, "Loud"), b"(", name(HERE, "Text"), b")\x81tR"), "the pickle would call .*Loud"),
        ((name(HERE, "Name"), name(HERE, "Text"), b")\x81\x85\x81"), "the pickle would call the constructor of .*Name"),
        ((name("pathlib", "PurePosixPath"), name(HERE, "Text"), b")\x81\x85R"), "the pickle would call pathlib"),
        (
            (name("collections", "deque"), b"(", name(HERE, "Text"), b")\x81tR"),
            "the pickle would call collections.deque",
        ),
        ((name("builtins", "range"), b"(", name(HERE, "Text"), b")\x81tR"), "the pickle would call builtins.range"),
        ((name(HERE, "pathlib.Path"),), "Unsupported global"),
        ((name(HERE, "io.open"),), "Unsupported global"),
        ((name(HERE, "archive"),), "Unsupported global"),
        ((name("tritensor.serialization.writer", "save"),), "Unsupported global"),
    ],
)
def test_crafted_objects_are_refused(parts: tuple[bytes, ...], words: str) -> None:
    with pytest.raises(CheckpointError, match=words):
        load(io.BytesIO(archive(pickled(*parts))), weights_only=False)


def test_an_object_without_its_constructor() -> None:
    made = load(io.BytesIO(archive(pickled(name(HERE, "Arguments"), b")R"))), weights_only=False)
    assert type(made) is Arguments and not vars(made)


def test_what_cannot_be_named() -> None:
    class Local:
        pass

    with pytest.raises(CheckpointError, match=r"obj\['a'\] is a class that cannot be found again: .*<locals>"):
        save({"a": Local}, io.BytesIO())
    with pytest.raises(CheckpointError, match="is no public name"):
        save([save.__globals__["_Sizes"]], io.BytesIO())
    with pytest.raises(CheckpointError, match="is no public name"):
        save([torch.serialization.load], io.BytesIO())

"""What goes into a checkpoint comes out of it: values, types, dtypes, shared memory, parameters, state dicts."""

from __future__ import annotations

import io
import pickle
import sys
import zipfile
from collections import Counter, OrderedDict

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tritensor
from tritensor.errors import ArgumentError, CheckpointError
from tritensor.serialization import load, save, writer
from tritensor.tensors import Tensor, wrap
from tritensor.types import dtypes

from .crafted_checkpoints import archive, call, name, number, numbers, pickled, storage, tensor, text


def case_name(value):
    """The same in every process, whose sets may be in another order."""
    text = ", ".join(sorted(map(repr, value))) if isinstance(value, (set, frozenset)) else str(value)
    return f"{type(value).__name__} {text[:20]}".encode("ascii", "replace").decode()


def through(obj, **options):
    """`obj` after a round trip."""
    file = io.BytesIO()
    save(obj, file)
    file.seek(0)
    return load(file, **options)


def same(x, y):
    """Whether two objects are equal in value, type, dtype, shape, device and, bit for bit, in elements."""
    if type(x) is not type(y):
        return False
    if isinstance(x, Tensor):
        return (
            x.dtype is y.dtype
            and x.device == y.device
            and x.requires_grad == y.requires_grad
            and same(x._to_host(), y._to_host())
        )
    if isinstance(x, (np.ndarray, np.generic)):
        return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
    if isinstance(x, dict):
        pairs = zip(x.items(), y.items(), strict=True) if len(x) == len(y) else [(1, 2)]
        return all(same(one, other) for one, other in pairs) and getattr(x, "__dict__", {}) == getattr(
            y, "__dict__", {}
        )
    if isinstance(x, (list, tuple)):
        return len(x) == len(y) and all(map(same, x, y))
    if isinstance(x, float):
        return np.float64(x).tobytes() == np.float64(y).tobytes()
    return x == y


# Values --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        255,
        256,
        65535,
        65536,
        -1,
        2**31 - 1,
        -(2**31),
        2**31,
        2**63,
        -(2**64),
        2**3000,
        -0.0,
        1e300,
        float("nan"),
        float("inf"),
        1j,
        -0.0j,
        "",
        "text",
        "naïve ☃ 𝄞",
        "\ud800",
        "a\nb\x00",
        "x" * 70000,
        b"",
        b"\x00\xff",
        bytearray(b""),
        bytearray(b"\x00\xff"),
        [],
        (),
        {},
        set(),
        frozenset(),
        (1,),
        (1, 2),
        (1, 2, 3),
        (1, 2, 3, 4),
        [1, [2, [3]]],
        {"a": {1: {None: ()}}},
        {True: 1, 2.5: 2, (1, ("a",)): 3, b"k": 4},
        {1, "a", (2,)},
        frozenset([1]),
        OrderedDict([("b", 1), ("a", 2)]),
        Counter("abca"),
        list(range(3000)),
        {i: str(i) for i in range(2500)},
        set(range(1500)),
        tritensor.Size([2, 3]),
        tritensor.Size([]),
        tritensor.device("cpu"),
        tritensor.device("cuda"),
        tritensor.device("cuda:3"),
        *dtypes.STORED,
    ],
    ids=case_name,
)
def test_values_come_back(value):
    assert same(through(value), value)
    assert same(through([value, {"again": value}]), [value, {"again": value}])


NUMPY_DTYPES = [
    *["?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16", "U3", "S2"],
    ml_dtypes.bfloat16,
]


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_numpy_arrays_and_scalars_come_back(dtype):
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
    for value in (array, array.T, array[::2, ::-1], array[:0], np.array(array[0, 0]), array[1, 2]):
        back = through([value, value])
        assert same(back[0], np.array(value) if isinstance(value, np.ndarray) else value)
        assert back[0] is back[1]
    assert through(array.T).flags.f_contiguous
    assert all(map(same, through([array, array[:1]]), [array, array[:1]]))


def test_arrays_of_the_other_byte_order_come_back_in_this_machines():
    """As from Python's own pickle protocol 2."""
    back = through(np.arange(3, dtype=">i4"))
    assert back.dtype == np.dtype("i4")
    assert back.tolist() == [0, 1, 2]


def test_objects_that_are_one_stay_one():
    shared, bare = [1], tritensor.ones(2)
    back = through({"a": shared, "b": (shared, bare), "c": bare})
    assert back["a"] is back["b"][0]
    assert back["c"] is back["b"][1]


def test_a_state_dicts_metadata_comes_back():
    state = OrderedDict(weight=tritensor.ones(2))
    state._metadata = OrderedDict([("", {"version": 1})])
    assert through(state)._metadata == state._metadata


# Tensors -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", dtypes.STORED, ids=lambda dtype: dtype.name)
def test_tensors_of_every_dtype_come_back_bit_for_bit(dtype):
    patterns = np.arange(96, dtype=np.uint8) if dtype is not tritensor.bool else np.arange(96, dtype=np.uint8) % 2
    bits = patterns.view(dtype.numpy).reshape(2, -1)
    for array in (
        bits,
        bits.T,
        bits[:1][::-1],
        bits[:, ::2],
        bits[1:, 1:2],
        bits[:0],
        np.array(bits[0, 0]),
        bits[:, ::-1],
    ):
        tensor = wrap(array)
        back = through(tensor)
        assert same(back, tensor)
        assert array.size < 2 or back.stride() == tensor.stride() or min(array.strides) < 0


def test_views_that_share_memory_share_it_again():
    grid = np.arange(24, dtype=np.float32).reshape(4, 6)
    views = {
        "whole": grid,
        "rows": grid[1:3],
        "columns": grid[:, ::2],
        "turned": grid.T,
        "flat": grid.reshape(-1)[5:],
        "wide": np.lib.stride_tricks.as_strided(grid, (3, 3), (8, 4)),
        "same": np.broadcast_to(grid[0], (5, 6)),
        "bits": grid.view(np.int32),
        "halves": grid.view(np.uint16),
    }
    file = io.BytesIO()
    save({key: wrap(view) for key, view in views.items()}, file)
    with zipfile.ZipFile(file) as packed:
        assert [entry for entry in packed.namelist() if "/data/" in entry] == ["archive/data/0"]
    file.seek(0)
    back = load(file)
    for key, view in views.items():
        assert same(back[key], wrap(view)), key
    back["whole"]._data[1, 2] = 99
    grid[1, 2] = 99
    for key, view in views.items():
        assert same(back[key], wrap(view)), key


def test_a_view_that_pytorch_cannot_describe_is_saved_as_its_own():
    grid = np.arange(12, dtype=np.float32)
    odd = np.frombuffer(grid.tobytes()[2:-2], np.float32)  # aligned in its own memory
    misaligned = np.ndarray((3,), np.float64, grid.data, 4)
    gaps = np.lib.stride_tricks.as_strided(grid, (3,), (6,))
    back = through([wrap(array) for array in (grid, grid[::-1], odd, misaligned, gaps)])
    for found, array in zip(back, (grid, grid[::-1], odd, misaligned, gaps)):
        assert found._data.tobytes() == array.tobytes()
    back[0]._data[:] = 0
    assert back[1].tolist() == grid[::-1].tolist()


def test_storages_whose_size_is_no_multiple_of_an_element():
    raw = np.arange(10, dtype=np.uint8)
    first, second = through([wrap(raw[:8].view(np.float32)), wrap(raw)])
    assert first._data.tobytes() == raw[:8].tobytes()
    second._data[0] = 99
    assert first._data.view(np.uint8)[0] == 99


def test_gradients_are_wanted_again_where_they_were():
    leaf = tritensor.ones(2)
    leaf.requires_grad = True
    parameter = tritensor.nn.Parameter(tritensor.ones(2, 2))
    frozen = tritensor.nn.Parameter(tritensor.ones(2), requires_grad=False)
    back = through(
        {"leaf": leaf, "parameter": parameter, "frozen": frozen, "plain": tritensor.ones(2), "twice": parameter}
    )
    assert [back[key].requires_grad for key in back] == [True, True, False, False, True]
    assert [type(back[key]) for key in back] == [Tensor, *[tritensor.nn.Parameter] * 2, Tensor, tritensor.nn.Parameter]
    assert back["parameter"] is back["twice"]
    assert back["leaf"].is_leaf


@pytest.mark.parametrize("parameter", [False, True])
def test_pytorchs_lazy_conjugation_and_negation_are_carried_out(parameter):
    def lazy(kind, bit, dtype_offset=0, size=(2,), stride=(1,)):
        made = tensor(
            storage(kind=kind, count=4 if kind == "Float" else 2),
            dtype_offset,
            size,
            stride,
            more=b"}" + text(bit) + b"\x88s",
        )
        return (
            call("torch._utils", "_rebuild_parameter", made, b"\x88", call("collections", "OrderedDict"))
            if parameter
            else made
        )

    back = load(io.BytesIO(archive(pickled(lazy("ComplexFloat", "conj")))))
    assert back.tolist() == [1 - 2j, 3 - 4j]
    assert back.requires_grad == parameter
    assert load(io.BytesIO(archive(pickled(lazy("Float", "neg", 1, (2,), (2,)))))).tolist() == [-2, -4]
    # stretched over a thousand million elements, it must not be computed for each of them
    huge = load(io.BytesIO(archive(pickled(lazy("ComplexFloat", "conj", 0, (1000, 1000, 1000), (0, 0, 0))))))
    assert huge._data[5, 5, 5] == 1 - 2j


def test_tensors_with_python_attributes_are_read_without_them():
    attributes = b"}" + text("note") + text("mine") + b"s"
    made = tensor()[: -len(b"tR")].removeprefix(name("torch._utils", "_rebuild_tensor_v2"))
    part = call(
        "torch._tensor",
        "_rebuild_from_type_v2",
        name("torch._utils", "_rebuild_tensor_v2"),
        name("torch", "Tensor"),
        made + b"t",
        attributes,
    )
    assert load(io.BytesIO(archive(pickled(part)))).tolist() == [1, 2, 3, 4]
    state = call(
        "torch._utils",
        "_rebuild_parameter_with_state",
        tensor(),
        b"\x88",
        call("collections", "OrderedDict"),
        attributes,
    )
    assert isinstance(load(io.BytesIO(archive(pickled(state)))), tritensor.nn.Parameter)


def test_forms_that_older_writers_used_are_read():
    old = name("torch._utils", "_rebuild_tensor") + b"(" + storage() + number(0) + numbers(4) + numbers(1) + b"tR"
    pairs = call("collections", "OrderedDict", b"](]", b"(", text("a"), b"K\x01ee")
    python2 = b"U\x03abc"
    kept = call("__builtin__", "bytearray", text("\xff"), text("latin-1"))
    empty = call("__builtin__", "bytes")
    back = load(
        io.BytesIO(archive(pickled(b"(", old, pairs, python2, kept, empty, call("collections", "Counter"), b"t")))
    )
    assert back[0].tolist() == [1, 2, 3, 4]
    assert back[1:] == (OrderedDict(a=1), "abc", bytearray(b"\xff"), b"", Counter())


def test_pickles_of_protocol_4_are_read():
    """`torch.save(..., pickle_protocol=4)`; PyTorch's own safe reader takes protocol 2 only."""
    body = (
        b"\x80\x04\x95" + bytes(8) + b"}\x94(\x8c\x01a\x94\x8c\x0bcollections\x94\x8c\x0bOrderedDict\x94\x93\x94)R\x94"
        b"\x8c\x01b\x94\x8f\x94(K\x01K\x02\x90\x8c\x01c\x94(K\x01\x91\x94\x8c\x01d\x94C\x02xy\x94\x8c\x01e\x94\x96"
        + (2).to_bytes(8, "little")
        + b"xy\x94u."
    )
    assert load(io.BytesIO(archive(body))) == {
        "a": OrderedDict(),
        "b": {1, 2},
        "c": frozenset([1]),
        "d": b"xy",
        "e": bytearray(b"xy"),
    }


# What cannot be saved ------------------------------------------------------------------------------------------------


class Mine(dict):
    state_dict = None

    def __reduce__(self):
        raise TypeError("it holds a lock")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"a": [1, sys]}, "obj['a'][1] is a builtins.module, which cannot be saved: cannot pickle 'module' object"),
        ({"net": Mine()}, "state_dict()"),
        ([type("Local", (), {})], "obj[0] is a class that cannot be found again: it's not the same object as"),
        ({"a": np.array([None])}, "obj['a'] is a NumPy object of dtype object"),
        ({"a": np.zeros(2, "i4,i4")}, "obj['a'] is a NumPy object"),
        ({"a": np.datetime64("2020-01-01")}, "is a NumPy object of dtype datetime64"),
        ([lambda: 1], "obj[0] is a function that cannot be found again: <lambda> is not at the top of a module"),
        ({tritensor.ones(1): 1}, "key that cannot be read back"),
        ([{np.int64(1)}], "obj[0] is under a key that cannot be read back"),
    ],
)
def test_what_is_not_data_is_refused_before_anything_is_written(tmp_path, value, words):
    path = tmp_path / "model.pt"
    with pytest.raises(CheckpointError) as caught:
        save(value, path)
    assert words in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_cycles_and_endless_nesting_are_refused():
    cycle = {"a": [1]}
    cycle["a"].append(cycle)
    with pytest.raises(CheckpointError, match=r"obj\['a'\]\[1\] contains itself"):
        save(cycle, io.BytesIO())
    state = OrderedDict()
    state.own = state
    with pytest.raises(CheckpointError, match="contains itself"):
        save(state, io.BytesIO())
    deep = []
    for _ in range(998):
        deep = [deep]
    assert through(deep) is not None
    for _ in range(2000):
        deep = [deep]
    with pytest.raises(CheckpointError, match=r"\[0\]\[0\].* \.\.\. .*\[0\] nests deeper than 1000 levels"):
        save(deep, io.BytesIO())


@pytest.mark.thorough
def test_more_small_objects_than_load_makes_room_for_are_refused_when_they_are_saved(monkeypatch):
    monkeypatch.setattr("tritensor.serialization.unpickler.ANY_FILE", 2**20)
    monkeypatch.setattr(writer, "REHEARSED_FROM", 1000)
    many = [[] for _ in range(100_000)]
    with pytest.raises(CheckpointError, match="as a tensor or an array"):
        save(many, io.BytesIO())
    assert through([many[:5], tritensor.ones(300), list(range(2000))])[0] == many[:5]


class Executed:
    def __reduce__(self):
        return print, ("executed",)


@pytest.mark.parametrize("weights_only", [True, False])
def test_nothing_is_executed_whatever_weights_only_says(tmp_path, capsys, weights_only):
    save({"w": tritensor.ones(2)}, tmp_path / "plain.pt")
    assert load(tmp_path / "plain.pt", weights_only=weights_only)["w"].tolist() == [1, 1]
    (tmp_path / "harm.pt").write_bytes(pickle.dumps(Executed(), protocol=2))
    with pytest.raises(CheckpointError):
        load(tmp_path / "harm.pt", weights_only=weights_only)
    assert capsys.readouterr().out == ""


def test_arguments_that_are_no_files_are_refused():
    with pytest.raises(ArgumentError, match="expected 'f' to be string, path, or a file-like object"):
        save({}, 7)
    with pytest.raises(ArgumentError, match="explicit pickle_module"):
        load("absent.pt", None, zipfile)
    with pytest.raises(AttributeError, match="seekable"):
        load(7)
    with pytest.raises(ValueError, match="must be a file path"):
        load(io.BytesIO(), mmap=True)


# Any object ----------------------------------------------------------------------------------------------------------

numbers_and_text = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.complex_numbers(allow_nan=False),
    st.text(),
    st.binary(),
    st.sampled_from(dtypes.STORED),
    st.builds(tritensor.device, st.sampled_from(["cpu", "cuda:1"])),
)
plain_keys = st.one_of(st.text(), st.integers(), st.booleans(), st.none(), st.tuples(st.integers(), st.text()))


@st.composite
def tensors(draw):
    """A tensor of any dtype and up to three dimensions: contiguous, transposed, sliced, or reversed."""
    dtype = draw(st.sampled_from(dtypes.STORED))
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    array = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype.numpy)
    view = draw(
        st.sampled_from(
            [lambda a: a, lambda a: a.T, lambda a: a[..., :1], lambda a: a[..., ::2], lambda a: a[..., ::-1]]
        )
    )
    made = wrap(view(array) if shape else array)
    if draw(st.booleans()) and (dtype.is_floating_point or dtype.is_complex):
        made.requires_grad = True
        return tritensor.nn.Parameter(made) if draw(st.booleans()) else made
    return made


def containers(inner):
    return st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(plain_keys, inner, max_size=4),
        st.dictionaries(plain_keys, inner, max_size=4).map(OrderedDict),
        st.sets(plain_keys, max_size=4),
        st.frozensets(plain_keys, max_size=4),
    )


objects = st.recursive(st.one_of(numbers_and_text, tensors()), containers, max_leaves=20)


@pytest.mark.thorough
@given(objects)
@settings(max_examples=150)
def test_any_object_comes_back(obj):
    back = through(obj)
    assert same(back, obj)
    again = io.BytesIO()
    save(back, again)
    once = io.BytesIO()
    save(obj, once)
    assert len(again.getvalue()) == len(once.getvalue())

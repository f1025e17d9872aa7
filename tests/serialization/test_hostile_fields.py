"""Hostile values in every field of a checkpoint: it is read, and its tensors print, or there is a CheckpointError."""

from __future__ import annotations

import io
import itertools
import json
import random
import struct
import time
import tracemalloc

import pytest

import tritensor as torch
from tritensor.errors import CheckpointError
from tritensor.serialization import load, load_into
from tritensor.serialization.inspect import inspect
from tritensor.types import dtypes

from .crafted_checkpoints import (
    archive,
    call,
    legacy,
    name,
    number,
    numbers,
    pickled,
    refusal,
    sparse_tensor,
    storage,
    tensor,
    text,
)

HUGE = 10**5000
NUMBERS = [0, 1, -1, 2, 2**31, 2**32 - 1, 2**53, 2**61, 2**62, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**64), HUGE, -HUGE]
VALUES = {
    **{f"{value:#x}"[:20]: number(value) for value in NUMBERS},
    "none": b"N",
    "true": b"\x88",
    "nan": b"G" + struct.pack(">d", float("nan")),
    "infinite": b"G" + struct.pack(">d", float("inf")),
    "text": text("x"),
    "digits": text("9" * 5000),
    "surrogate": text("\udc80"),
    "zero byte": text("a\0b"),
    "bytes": b"C\x01x",
    "tuple": b")",
    "list": b"]",
    "dict": b"}",
    "set": b"\x8f",
    "numbers": numbers(HUGE, -1, 2**63),
    "nested": b")" + b"\x85" * 200,
    "size": call("torch", "Size", numbers(2, 3)),
    "dtype": name("torch", "float32"),
    "function": name("collections", "OrderedDict"),
    "tensor": tensor(),
    "storage": storage(),
    "device": call("torch", "device", text("cpu")),
}
KINDS = list(dtypes.LATTICE)
FLAGS = [{}, {"conj": True}, {"neg": True}, {"conj": True, "neg": True}]


def metadata(flags):
    return b"}" + b"".join(text(key) + number(value) + b"s" for key, value in flags.items())


def text_dtype(code="U1", state=True):
    made = name("numpy", "dtype") + b"(" + text(code) + number(False) + number(True) + b"tR"
    size = 4 * int(code[1:]) if code[0] == "U" else int(code[1:])
    return made + (b"(" + number(3) + text("<") + b"NNN" + numbers_flat(size, 4, 8) + b"tb" if state else b"")


def numbers_flat(*values):
    return b"".join(number(value) for value in values)


def array(dtype, shape, data):
    start = name("numpy.core.multiarray", "_reconstruct") + b"(" + name("numpy", "ndarray") + b"K\0\x85C\x01btR"
    return start + b"(" + number(1) + shape + dtype + b"\x89" + data + b"tb"


DTYPE = text_dtype()
FIELDS = {
    "value": lambda v: v,
    "key": lambda v: b"}" + v + b"K\x01s",
    "member": lambda v: b"\x8f(" + v + b"\x90",
    "offset": lambda v: rebuilt(offset=v),
    "size": lambda v: rebuilt(size=v),
    "length": lambda v: rebuilt(size=b"(" + v + b"t"),
    "lengths": lambda v: rebuilt(size=b"(" + v + v + b"t", stride=numbers(1, 1)),
    "stride": lambda v: rebuilt(stride=v),
    "step": lambda v: rebuilt(stride=b"(" + v + b"t"),
    "step of one": lambda v: rebuilt(size=numbers(1), stride=b"(" + v + b"t"),
    "step of none": lambda v: rebuilt(size=numbers(0, 2), stride=b"(" + v + number(1) + b"t"),
    "requires_grad": lambda v: rebuilt(grad=v),
    "hooks": lambda v: rebuilt(hooks=v),
    "metadata": lambda v: rebuilt(more=v),
    "flag": lambda v: rebuilt(more=b"}" + text("neg") + v + b"s"),
    "flag's name": lambda v: rebuilt(more=b"}" + v + b"\x88s"),
    "dtype": lambda v: rebuilt("_v3", more=v),
    "storage": lambda v: rebuilt(where=v),
    "storage's word": lambda v: rebuilt(where=stored(word=v)),
    "storage's type": lambda v: rebuilt(where=stored(kind=v)),
    "storage's key": lambda v: rebuilt(where=stored(key=v)),
    "storage's place": lambda v: rebuilt(where=stored(place=v)),
    "storage's count": lambda v: rebuilt(where=stored(count=v)),
    "parameter": lambda v: call("torch._utils", "_rebuild_parameter", v, b"\x88", b"}"),
    "parameter's grad": lambda v: call("torch._utils", "_rebuild_parameter", tensor(), v, b"}"),
    "sparse indices": lambda v: sparse_tensor(v, tensor()),
    "sparse values": lambda v: sparse_tensor(tensor(), v),
    "sparse flag": lambda v: sparse_tensor(tensor(), tensor(), flag=v),
    "layout": lambda v: call("torch.serialization", "_get_layout", v),
    "Size": lambda v: call("torch", "Size", v),
    "Size's length": lambda v: call("torch", "Size", b"(" + v + b"t"),
    "device": lambda v: call("torch", "device", v),
    "device's index": lambda v: call("torch", "device", text("cuda"), v),
    "device's text": lambda v: call("torch", "device", text("cuda:" + "9" * 5000)),
    "complex": lambda v: call("builtins", "complex", v, v),
    "OrderedDict": lambda v: call("collections", "OrderedDict", v),
    "OrderedDict's pair": lambda v: call("collections", "OrderedDict", b"](" + v + v + b"\x86e"),
    "OrderedDict's state": lambda v: call("collections", "OrderedDict") + v + b"b",
    "OrderedDict's attribute": lambda v: call("collections", "OrderedDict") + b"}" + text("_metadata") + v + b"sb",
    "Counter": lambda v: call("collections", "Counter", v),
    "Counter's count": lambda v: call("collections", "Counter", b"}" + text("a") + v + b"s"),
    "set": lambda v: call("builtins", "set", v),
    "encoded": lambda v: call("_codecs", "encode", v, text("latin1")),
    "encoding": lambda v: call("_codecs", "encode", text("a"), v),
    "bytearray": lambda v: call("builtins", "bytearray", v),
    "dtype's code": lambda v: name("numpy", "dtype") + b"(" + v + b"\x89\x88tR",
    "dtype's state": lambda v: text_dtype(state=False) + v + b"b",
    "dtype's order": lambda v: text_dtype(state=False) + b"(" + number(3) + v + b"NNN" + numbers_flat(4, 4, 8) + b"tb",
    "dtype's size": lambda v: text_dtype(state=False) + b"(" + number(3) + text("<") + b"NNN" + v + v + v + b"tb",
    "scalar's dtype": lambda v: call("numpy.core.multiarray", "scalar", v, b"C\x04\0\0\0\0"),
    "scalar's bytes": lambda v: call("numpy.core.multiarray", "scalar", DTYPE, v),
    "array's shape": lambda v: array(DTYPE, v, b"C\x04a\0\0\0"),
    "array's length": lambda v: array(DTYPE, b"(" + v + b"t", b"C\x04a\0\0\0"),
    "array's lengths": lambda v: array(DTYPE, b"(" + number(0) + v + v + b"t", b"C\0"),
    "array's dtype": lambda v: array(v, numbers(1), b"C\x04a\0\0\0"),
    "array's bytes": lambda v: array(DTYPE, numbers(1), v),
    "what is called": lambda v: v + b")R",
    "arguments": lambda v: name("torch._utils", "_rebuild_tensor_v2") + v + b"R",
    "what is built": lambda v: v + b"}b",
    "what is extended": lambda v: v + b"K\x01a",
    "what is set": lambda v: v + b"K\x01K\x02s",
    "identity": lambda v: v + b"Q",
}


def stored(word=None, kind=None, key=None, place=None, count=None):
    parts = (word or text("storage"), kind or name("torch", "FloatStorage"), key or text("0"), place or text("cpu"))
    return b"(" + b"".join(parts) + (count or number(4)) + b"tQ"


def rebuilt(version="_v2", where=None, offset=None, size=None, stride=None, grad=None, hooks=None, more=b""):
    parts = (where or storage(), offset or number(0), size or numbers(4), stride or numbers(1))
    rest = (grad or number(False), hooks or call("collections", "OrderedDict"), more)
    return name("torch._utils", f"_rebuild_tensor{version}") + b"(" + b"".join(parts + rest) + b"tR"


def tensors_in(root):
    stack, seen, found = [root], set(), []
    while stack:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            stack += value.values()
        elif isinstance(value, (list, tuple, set, frozenset)) and not isinstance(value, torch.Size):
            stack += value
        elif isinstance(value, torch.Tensor):
            found.append(value)
    return found


def read_or_refuse(data, path, map_location="cpu"):
    """Whether each way to read the file reads it; what they raise but a CheckpointError is raised."""
    path.write_bytes(data)
    done = []

    def use():
        for each in tensors_in(load(path, map_location=map_location)):
            repr(each)

    def into():
        load_into(torch.nn.Linear(1, 1), path)

    def listed():
        lines, refused = inspect(path)
        if refused:
            raise CheckpointError("\n".join(lines))

    for way in (use, into, listed):
        begin = time.thread_time()
        try:
            way()
            done.append(True)
        except CheckpointError as error:
            done.append(False)
            named = str(path) in str(error) or (way is into and "state_dict" in str(error))
        else:
            named = True
        assert named, way
        assert time.thread_time() - begin < 2
    return done


@pytest.fixture
def small_memory():
    """No file of this module makes more than a few megabytes of objects."""
    tracemalloc.start()
    yield
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 64 * 2**20


@pytest.mark.sampled(12)
@pytest.mark.parametrize("field", FIELDS)
def test_a_hostile_value_is_read_or_refused(field, tmp_path):
    for index, value in enumerate(VALUES.values()):
        data = pickled(FIELDS[field](value))
        read_or_refuse(legacy(data, ()) if index % 3 == 0 else archive(data), tmp_path / "file.pt")


@pytest.mark.slow
@pytest.mark.parametrize("field", FIELDS)
def test_hostile_values_take_little_memory(field, tmp_path, small_memory):
    for value in VALUES.values():
        data = pickled(FIELDS[field](value))
        read_or_refuse(archive(data), tmp_path / "file.pt")
        read_or_refuse(legacy(data, ()), tmp_path / "file.pt")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_hostile_values_in_several_fields_are_read_or_refused(seed, tmp_path):
    chance = random.Random(seed)
    values, fields = list(VALUES.values()), list(FIELDS.values())
    for _ in range(1500):
        value = chance.choice(values)
        for _ in range(chance.choice((1, 2, 3))):
            value = chance.choice(fields)(value)
        read_or_refuse(archive(pickled(value)), tmp_path / "file.pt")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("place", ["cpu", "cuda:0"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_dtype_flag_and_stride_is_read_or_refused(kind, place, tmp_path):
    path, read = tmp_path / "file.pt", 0
    bytes_of_four = bytes([1, 0, 1, 1]) * kind.itemsize
    steps = (0, 1, 2, 2**61, 2**62, 2**63 - 1)
    with torch.cuda.simulate():
        for flags, step, size in itertools.product(FLAGS, steps, ((0,), (1,), (4,), (2**40,), (0, 2**40, 2**40))):
            where = storage(kind=kind.legacy)
            strides = (step,) * len(size)
            made = tensor(where, size=size, stride=strides, more=metadata(flags))
            done = read_or_refuse(archive(pickled(made), (bytes_of_four,)), path, place)
            assert done[0] == done[2], (flags, step, size)  # what `inspect` says
            read += done[0]
    assert read >= (8 if kind.name != "bool" else 4)


@pytest.mark.parametrize("characters", [b"\xff\xff\xff\xff", b"\0\0\x11\0", b"\xff\xff\xff\x7f"])
def test_text_outside_of_unicode_is_refused(characters):
    scalar = call("numpy.core.multiarray", "scalar", DTYPE, b"C\x04" + characters)
    refusal(archive(pickled(scalar)), "outside of Unicode")
    refusal(archive(pickled(array(DTYPE, numbers(1), b"C\x04" + characters))), "outside of Unicode")


def test_a_negated_bool_and_a_step_beyond_memory_are_refused():
    made = tensor(storage(kind="Bool"), more=metadata({"neg": True}))
    refusal(archive(pickled(made), (bytes(4),)), "tritensor.bool is said to be negated")
    refusal(archive(pickled(tensor(size=(1,), stride=(2**61,)))), "negative or too large")


def test_an_error_of_map_location_is_the_callers():
    data = archive(pickled(tensor()))
    for error in (KeyError("mine"), ValueError("mine"), TypeError("mine")):

        def fail(storage, location, error=error):
            raise error

        with pytest.raises(type(error), match="mine"):
            load(io.BytesIO(data), map_location=fail)
    with pytest.raises(TypeError, match="map_location returned a int"):
        load(io.BytesIO(data), map_location=lambda storage, location: 3)


def test_inspect_takes_no_more_than_the_file(tmp_path, small_memory):
    path = tmp_path / "file.pt"
    doubled = b"]K\x01a" + b"".join(b"q" + bytes([i]) + b"h" + bytes([i]) + b"\x86" for i in range(40))
    deep = b"}" + (text("k" * 10_000) + b"}") * 300 + b"K\x01K\x02" + b"s" * 301
    for data in (doubled, deep, b"}" + number(HUGE) + number(HUGE) + b"s"):
        assert read_or_refuse(archive(pickled(data)), path)[2]


# ---- .safetensors ---------------------------------------------------------------------------------------------------

SHAPES = [[0], [0, 2**40, 2**40], [2**40, 0, 2**40], [2**63 - 1, 0], [2**64, 0], [1] * 70, [0] * 70, [-1], [2**62], []]


@pytest.mark.thorough
@pytest.mark.parametrize("place", ["cpu", "cuda:0"])
def test_safetensors_headers_are_read_or_refused(place, tmp_path):
    chance = random.Random(1)
    path = tmp_path / "file.safetensors"
    with torch.cuda.simulate():
        for kind, shape, offsets in itertools.product(
            ["F32", "BOOL", "C64", "BF16", "F8_E4M3", "F4", "X", None, 3],
            SHAPES,
            ([0, 0], [0, 4], [0, HUGE], [4, 0], None),
        ):
            facts = {"a": {"dtype": kind, "shape": shape, "data_offsets": offsets}}
            header = json.dumps(facts, default=str).encode() if offsets != [0, HUGE] else header_of(facts)
            read_or_refuse(struct.pack("<Q", len(header)) + header + b"\0" * 4, path, place)
        for header in (b'{"a":' * 5000, b"[" * 100_000, b"{}", b'{"__metadata__":3}', b'{"a":{"shape":[' + b"9" * 5000):
            for length in (len(header), 0, 2**63, chance.randrange(2**64)):
                read_or_refuse(struct.pack("<Q", length) + header, path, place)


def header_of(facts):
    return (
        json.dumps(facts | {"a": facts["a"] | {"data_offsets": "here"}})
        .replace('"here"', "[0," + "9" * 5000 + "]")
        .encode()
    )


def test_an_expanded_tensor_prints_wherever_it_is():
    """In a file it takes four bytes, and on a device it was copied to the host as often as it is seen."""
    data = archive(pickled(tensor(size=(2**40, 2**10), stride=(0, 0))))
    with torch.cuda.simulate():
        for place in ("cpu", "cuda:0"):
            assert repr(load(io.BytesIO(data), map_location=place)).startswith(
                "tensor([[1., 1., 1.,  ..., 1., 1., 1.],"
            )
            half = torch.ones(1, dtype=torch.bfloat16, device=place).expand(2**50)
            assert repr(half).startswith("tensor([1., 1., 1.,  ..., 1., 1., 1.]")

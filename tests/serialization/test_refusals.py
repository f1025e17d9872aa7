"""What a checkpoint may not hold: each refusal names the file and the entry, runs nothing, and is quick and small."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import struct
import subprocess
import sys
import time
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

import tritensor
from tritensor.errors import CheckpointError
from tritensor.serialization import load, unpickler
from tritensor.serialization.builder import Builder
from tritensor.serialization.malformed import Malformed

from .crafted_checkpoints import (
    DATA,
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


def peak_memory(data):
    """The most memory that Python's allocators hold while `data` is refused."""
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError):
            load(io.BytesIO(data))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refused(*parts, words=(), storages=(DATA,)):
    """The refusal of an archive with this pickle; the entry is named."""
    return refusal(archive(pickled(*parts), storages), "entry", *words)


def test_the_crafted_checkpoints_are_good_where_nothing_is_wrong():
    made = load(io.BytesIO(archive(pickled(tensor(size=(2, 2), stride=(2, 1))))))
    assert made.tolist() == [[1, 2], [3, 4]]
    made = load(io.BytesIO(legacy(pickled(tensor(size=(2, 2), stride=(1, 2))))))
    assert made.tolist() == [[1, 3], [2, 4]]


# Names and opcodes ---------------------------------------------------------------------------------------------------


class Reduces:
    """An object whose pickle calls any function with any arguments."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def canary(folder):
    """A command that leaves a file behind if it ever runs."""
    return f"{sys.executable} -c \"open(r'{folder / 'ran'}', 'w')\""


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("form", ["zip", "legacy"])
def test_a_reduce_of_any_function_is_refused_and_not_called(tmp_path, protocol, form):
    command = canary(tmp_path)
    for function, arguments in [
        (os.system, (command,)),
        (eval, (f"__import__('os').system({command!r})",)),
        (exec, ("raise SystemExit",)),
        (subprocess.Popen, (command,)),
        (getattr, ("a", "upper")),
        (__import__, ("os",)),
        (open, (str(tmp_path / "ran"), "w")),
        (print, ("ran",)),
        (np.load, ("x",)),
    ]:
        data = pickle.dumps({"weight": Reduces(function, *arguments)}, protocol)
        path = tmp_path / "model.pt"
        path.write_bytes(archive(data) if form == "zip" else legacy(data, ()))
        message = refusal(path.read_bytes(), path=path)
        assert "entry" in message
        if protocol > 1:
            assert "was not an allowed global by default" in message
            assert "Fix: " in message
    assert not (tmp_path / "ran").exists()


def stack_name(module, attribute):
    return text(module) + text(attribute) + b"\x93"


@pytest.mark.parametrize(
    "parts",
    [
        (name("posix", "system"), b"(", text("true"), b"tR"),
        (name("__builtin__", "eval"), b"(", text("1"), b"tR"),
        (name("builtins", "getattr"), b"(", name("torch", "Size"), text("__class__"), b"tR"),
        (stack_name("os", "system"), text("true"), b"\x85R"),
        # names put together from the memo, and a memo entry replaced after it was looked at
        (text("os"), b"q\x00", text("system"), b"q\x01", b"h\x00h\x01\x93", text("true"), b"\x85R"),
        (text("torch"), b"q\x00", text("Size"), b"q\x01", text("os"), b"q\x00", text("system"), b"q\x01h\x00h\x01\x93"),
        (stack_name("torch._utils", "_rebuild_tensor_v2.__globals__"),),
        (name("collections", "OrderedDict.__init__"),),
        (name("torch", "serialization.load"),),
        (name("torch.hub", "load"),),
        (name("numpy", "load"),),
        (name("torch.storage", "_load_from_bytes"), text("x"), b"\x85R"),
        (name("tritensor", "Tensor"),),
        (name("torch.jit._script", "unpackage_script_module"),),
        (name("torch._dynamo", "x"),),
        (name("torch._utils", "_rebuild_wrapper_subclass"),),
        (name("", ""),),
        (name("torch", "QInt8Storage"),),
        (name("torch", "float8_e8m0fnu"),),
        (name("torch.nn.modules.linear", "Linear"), b")\x81"),
    ],
)
def test_names_outside_the_allowlist_are_refused_however_they_are_spelled(parts):
    refused(*parts, words=("Weights only load failed",))


def test_every_opcode_outside_the_list_is_refused():
    allowed = set(
        b"\x80\x95NJKMGUTXCB(])}tasueqrhjcRbQ." + bytes(range(0x85, 0x8A)) + b"\x8a\x8b\x8c\x8d\x8e\x8f\x90\x91"
    )
    allowed |= {0x93, 0x94, 0x96}
    for code in range(256):
        if code not in allowed:
            message = refusal(archive(b"\x80\x02" + bytes([code]) + b"0\n0\n" * 9 + b"N."), "entry data.pkl")
            assert "Unsupported operand" in message or "damaged" in message or "NEWOBJ" in message
    known = {ord(opcode.code) for opcode in pickletools.opcodes}
    assert allowed <= known


@pytest.mark.parametrize(
    "parts",
    [
        (b"N" * 2,),
        (),
        (b"(",),
        (b"a",),
        (b"]e",),
        (b"0",),
        (b"\x85",),
        (b"NN\x87",),
        (b"h\x05",),
        (b"j\xff\xff\xff\xff",),
        (b"r\xff\xff\xff\xffN",),
        (b"Nr\xff\xff\xff\xff",),
        (b"NNs",),
        (b"}(Nu",),
        (b"}NNa",),
        (b"]NNs",),
        (b"NNR",),
        (b"N)R",),
        (text("x"), b")R"),
        (b"])R",),
        (b"]]R",),
        (name("torch", "float32"), b")R"),
        (b"}}b",),
        (b"NNb",),
        (name("torch", "FloatStorage"),),
        (name("torch", "Size"),),
        (name("numpy", "ndarray"),),
        (storage(),),
        (b"](", name("torch.nn.parameter", "Parameter"), b"e"),
        (b"NQ",),
        (b")Q",),
        (text("storage"), b"Q"),
        (b"(", text("module"), b"NNNtQ"),
        (b"X\xff\xff\xff\xff",),
        (b"\x8e" + b"\xff" * 8,),
        (b"\x8d" + b"\xff" * 8,),
        (b"\x8b\xff\xff\xff\x7f",),
        (b"X\x02\x00\x00\x00\xff\xfe",),
        (b"U\x01\xff",),
        (b"cno_end",),
        (b"\x80\x09N",),
        (b"c\xff\xff\n\xff\n",),
        (b"KKK\x93",),
        (b"NN\x93",),
        (b"](K\x01\x90",),
        (name("collections", "OrderedDict"), b")\x81"),
        (b"\x96" + b"\xff" * 8,),
        (b"c" + b"x" * 5000 + b"\nx\n",),
    ],
)
def test_damaged_pickles_are_refused(parts):
    refused(*parts)


@pytest.mark.parametrize(
    "parts",
    [
        (b"]q\x00h\x00a",),
        (b"]q\x00(h\x00h\x00e",),
        (b"}q\x00", text("a"), b"h\x00s"),
        (b"}q\x00", text("a"), b"]q\x01h\x00as"),
        (b"]q\x00h\x00\x85q\x01a",),
        (call("collections", "OrderedDict"), b"q\x00", text("a"), b"h\x00s"),
        (call("collections", "OrderedDict"), b"q\x00}", text("_metadata"), b"h\x00sb"),
    ],
)
def test_objects_that_contain_themselves_are_refused(parts):
    refused(*parts, words=("contains itself",))


def test_deep_nesting_is_refused_and_a_thousand_levels_are_not():
    for opener, closer in ((b"]" * 5000, b"a" * 4999), (b")", b"\x85" * 5000), (b"(" * 5000, b"t" * 5000)):
        refused(opener, closer, words=("nests deeper than 1000 levels",))
    made = load(io.BytesIO(archive(pickled(b"]" * 1000, b"a" * 999))))
    for _ in range(999):
        (made,) = made
    assert made == []
    # 600 levels that are used twice, the second time below 600 others
    deep = b")q\x00" + b"\x85q\x00" * 600
    refused(b"(", deep, b"]" * 600, b"h\x00", b"a" * 600, b"t", words=("nests deeper",))


def test_small_pickles_that_stand_for_large_trees_are_read_quickly():
    """Every level holds the level below twice: 2**60 paths through 61 objects."""
    levels = b"]q\x00" + b"".join(
        bytes([0x5D, ord("q"), i + 1, ord("("), ord("h"), i, ord("h"), i, ord("e")]) for i in range(60)
    )
    tuples = b")q\x00" + b"".join(bytes([ord("h"), i, ord("h"), i, 0x86, ord("q"), i + 1]) for i in range(60))
    for body, spare in ((levels, 60), (tuples, 60)):
        begin = time.thread_time()
        made = load(io.BytesIO(archive(pickled(b"(", body, b"t"))))
        assert time.thread_time() - begin < 1
        assert len(made) == spare + 1
        assert made[-1][0] is made[-1][1]


def test_keys_that_are_slow_to_hash_are_refused():
    doubled = b")q\x00" + b"".join(bytes([ord("h"), i, ord("h"), i, 0x86, ord("q"), i + 1]) for i in range(60))
    refused(b"}(", doubled, b"tNs", words=("parts as a key",))
    refused(name("__builtin__", "set"), b"](", doubled, b"e\x85R", words=("parts as a key",))
    refused(b"})", b"\x85" * 100_000, b"Ns", words=("parts as a key",))
    # hash(-1) == hash(-2): 2**12 tuples with one hash, and integers that differ by a multiple of 2**61 - 1
    tuples = b"".join(numbers(*(-1 - (i >> bit & 1) for bit in range(12))) + b"N" for i in range(4096))
    refused(b"}(", tuples, b"u", words=("same hash",))
    integers = b"".join(number((2**61 - 1) * (i + 64)) + b"N" for i in range(1000))
    refused(b"}(", integers, b"u", words=("same hash",))


@pytest.mark.parametrize("key", [b"]", b"}", tensor(), b"(]t", call("__builtin__", "bytearray")])
def test_keys_that_cannot_be_hashed_are_refused(key):
    refused(b"}", key, b"Ns", words=("unhashable type",))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("opcode", [b"]", b"\x8f", b"(", b"N", b")\x94", b"M\x00\x04"])
def test_memory_stays_in_proportion_to_the_file(opcode, monkeypatch):
    """The opcodes that make the most of a byte; what any file may take is turned down, so that a small one shows it."""
    monkeypatch.setattr(unpickler, "ANY_FILE", 2**20)
    data = archive(b"\x80\x04" + opcode * (2**18 // len(opcode)) + b".")
    assert peak_memory(data) < 2**20 + 11 * len(data)  # the file itself is one of the eleven


@pytest.mark.thorough
def test_references_to_many_objects_cost_little():
    body = b"]q\x00(" + b"h\x00" * 400_000 + b"e"
    refused(body, words=("contains itself",))
    nested = b"".join(b"]r" + struct.pack("<I", i) + b"j" + struct.pack("<I", max(i - 1, 0)) for i in range(100_000))
    refusal(archive(pickled(nested)))


# Storages and tensors ------------------------------------------------------------------------------------------------

HUGE = 2**63


@pytest.mark.parametrize(
    "part",
    [
        tensor(offset=-1),
        tensor(offset=1),
        tensor(offset=2**62),
        tensor(offset=HUGE),
        tensor(size=(5,)),
        tensor(size=(-4,)),
        tensor(size=(2**62,)),
        tensor(size=(HUGE,)),
        tensor(size=(2**32, 2**32), stride=(0, 0)),
        tensor(size=(2**62,), stride=(0,)),
        tensor(stride=(-1,)),
        tensor(stride=(2,)),
        tensor(stride=(HUGE,)),
        tensor(size=(2, 2), stride=(2**62, 1)),
        tensor(size=(2, 2), stride=(3, 1)),
        tensor(size=(4, 1)),
        tensor(size=()),
        tensor(size=(1,) * 65, stride=(1,) * 65),
        tensor(size=(2**40000,)),
        tensor(storage(count=5)),
        tensor(storage(count=2)),
        tensor(storage(count=-4)),
        tensor(storage(count=2**62)),
        tensor(storage(key="1")),
        tensor(storage(key="../version")),
        tensor(storage(key="")),
        tensor(storage(kind="Double")),
        tensor(b"N"),
        tensor(storage(kind="Int"), requires_grad=True),
        tensor(storage(location="mps")),
        tensor(storage(location="")),
        tensor(storage(location="cuda:x")),
        tensor(storage(location="cuda:99999999999")),
        tensor(more=b"N" * 2),
        tensor(more=b"}" + text("conj") + b"\x88s"),
        tensor(more=b"}" + text("other") + b"\x88s"),
        tensor(more=b"K\x01"),
        tensor(storage(kind="Byte", count=16), 0, (0, 2**62, 2**62), (0, 0, 0)),
        tensor().replace(numbers(4), text("x") + b"\x85"),
        call("torch._utils", "_rebuild_tensor", b"N"),
        call("torch._utils", "_rebuild_tensor_v2"),
        call("torch.serialization", "_get_layout", text("torch.sparse_csr")),
        call("torch._utils", "_rebuild_sparse_tensor", b"NN"),
        sparse_tensor(tensor(storage(kind="Long", count=2), size=(1, 2), stride=(2, 1)), tensor()),
        sparse_tensor(tensor(storage(kind="Long", count=2), size=(1, 1)), tensor(size=(1,)), (-1,)),
        call("torch._utils", "_rebuild_tensor", b"NNNN"),
        call("torch._utils", "_rebuild_tensor_v3", *[b"N"] * 7),
        call("torch._utils", "_rebuild_parameter", b"N\x88N"),
        call("torch._utils", "_rebuild_parameter", tensor(), b"K\x01N"),
        call("torch._utils", "_rebuild_parameter", tensor(storage(kind="Int")), b"\x88N"),
        call("torch._tensor", "_rebuild_from_type_v2", name("torch", "Size"), name("torch", "Tensor"), b")", b"}"),
        call("torch", "Tensor", b"K\x01"),
        call("torch", "Size", b"]"),
        call("torch", "Size", text("x"), b"\x85"),
        call("torch", "device", text("tpu")),
        call("torch", "device", text("cuda:x")),
        call("torch", "device", b"]"),
        call("torch", "device", text("cuda"), number(-1)),
        call("torch", "device", text("cuda:1"), number(1)),
        call("__builtin__", "set", b"K\x01"),
        call("__builtin__", "frozenset", b"N"),
        call("__builtin__", "complex", b"NN"),
        call("__builtin__", "bytes", b"K\x05"),
        call("__builtin__", "bytearray", number(2**40)),
        call("_codecs", "encode", text("x"), text("rot13")),
        call("_codecs", "encode", text("\u20ac"), text("latin1")),
        call("_codecs", "encode", b"NN"),
        call("collections", "OrderedDict", b"](K\x01e"),
        call("collections", "OrderedDict", b"K\x01"),
        call("collections", "Counter", b"]"),
        call("collections", "OrderedDict") + b"}" + text("items") + b"Nsb",
        call("collections", "OrderedDict") + b"}" + text("not a name") + b"Nsb",
    ],
)
def test_tensors_and_values_that_cannot_be_are_refused(part):
    refused(part)
    refusal(legacy(pickled(part)))


@pytest.mark.parametrize("first", [storage(count=4), b"N" + storage(count=4)])
def test_comparisons_with_arrays_and_tensors_decide_nothing(first):
    """A file can put a tensor or an array where text belongs, and their comparisons are not truths."""
    for odd in (tensor(), array(numbers(4), dtype("f4"), DATA)):
        refused(b"(", odd, b"K\x01K\x02K\x03K\x04tQ")
        refused(b"(", text("storage"), odd, odd, odd, odd, b"tQ")
        refused(call("_codecs", "encode", text("x"), odd))
        refused(tensor(odd))
        refused(name("torch._utils", "_rebuild_tensor_v2"), b"(", storage(), odd, odd, odd, odd, odd, b"tR")
        refused(
            name("torch._utils", "_rebuild_tensor_v2"),
            b"(",
            storage(),
            number(0),
            numbers(4),
            numbers(1),
            b"\x89",
            odd,
            b"tR",
        )
        refused(call("torch._utils", "_rebuild_parameter", tensor(), b"\x88", odd))
        refused(call("torch._tensor", "_rebuild_from_type_v2", name("torch._utils", "_rebuild_tensor_v2"), odd, b")N"))
        refused(name("numpy", "dtype"), b"(", odd, odd, odd, b"tR")
        refused(dtype("f4"), b"(", odd * 8, b"tb")
        refused(dtype("f4"), b"(K\x03", text("<"), odd * 6, b"tb")
        refusal(legacy(pickled(odd))[4:])


def dtype(code, *state):
    made = call("numpy", "dtype", text(code), b"\x89\x88")
    return made + (b"(" + b"".join(state) + b"tb" if state else b"")


def array(shape, kind, data, version=b"K\x01", order=b"\x89"):
    """The two steps of a NumPy array: an empty one, then its state."""
    body = call("_codecs", "encode", text(data.decode("latin-1")), text("latin1")) if isinstance(data, bytes) else b"N"
    return (
        call("numpy.core.multiarray", "_reconstruct", name("numpy", "ndarray"), numbers(0), text("b"))
        + b"("
        + version
        + shape
        + kind
        + order
        + body
        + b"tb"
    )


@pytest.mark.parametrize(
    "part",
    [
        array(numbers(5), dtype("f4"), DATA),
        array(numbers(-4), dtype("f4"), DATA),
        array(numbers(HUGE), dtype("f4"), DATA),
        array(numbers(2**62, 4), dtype("f4"), DATA),
        array(numbers(4), dtype("O8"), DATA),
        array(numbers(2), dtype("O"), DATA),
        array(numbers(4), dtype("V4"), DATA),
        array(numbers(2), dtype("M8"), DATA),
        array(numbers(4), dtype("i4,i4"), DATA),
        array(numbers(4), b"N", DATA),
        array(numbers(4), dtype("f4"), None),
        array(b"]", dtype("f4"), DATA),
        array(numbers(4), dtype("f4"), DATA, b"N"),
        array(numbers(4), dtype("f4"), DATA, number(7)),
        array(numbers(4), dtype("f4"), DATA, order=b"N"),
        array(numbers(*[1] * 65), dtype("f4"), b"abcd"),
        array(numbers(4), dtype("f4"), DATA) + b"(K\x01" + numbers(4) + dtype("f4") + b"\x89N" + b"tb",
        call("numpy.core.multiarray", "_reconstruct", b"N", numbers(0), text("b")),
        call("numpy.core.multiarray", "_reconstruct"),
        call("numpy._core.multiarray", "scalar", dtype("f8"), b"N"),
        call("numpy._core.multiarray", "scalar", dtype("O8"), call("_codecs", "encode", text("x" * 8), text("latin1"))),
        call("numpy._core.multiarray", "scalar", dtype("f8"), call("_codecs", "encode", text("x"), text("latin1"))),
        dtype("f4", b"K\x03", text("<"), text("x"), b"NN", b"K\x00" * 3),
        dtype("U4", *[b"N"] * 8),
        dtype("U4", b"N"),
        dtype("U4", b"K\x03", text("<"), b"NNN", number(400), b"K\x04K\x08"),
        dtype("f3"),
        dtype("U9999999999"),
        dtype("x"),
        call("numpy", "dtype", text("f4")),
        call("numpy", "ndarray", numbers(4)),
        call("numpy", "dtype"),
    ],
)
def test_numpy_objects_that_are_not_plain_are_refused(part):
    refused(part)


def test_bfloat16_of_numpy_has_no_state_to_set():
    kind = call("numpy", "dtype", name("ml_dtypes", "bfloat16"), b"\x89\x88")
    state = b"(K\x03" + text(">") + b"NNN" + number(-1) * 2 + number(0) + b"tb"
    made = load(io.BytesIO(archive(pickled(array(numbers(2), kind + state, b"\x80?\x00@")))))
    assert made.tolist() == [1, 2]


def test_names_may_lie_across_the_end_of_what_is_read_at_once():
    for size in range(65500, 65540):
        made = load(io.BytesIO(archive(pickled(b"]", text("x" * size), b"a", name("torch", "float32"), b"a"))))
        assert made[1] is tritensor.float32


def test_a_stream_shorter_than_it_says_ends_in_an_error():
    with pytest.raises(Malformed, match="became shorter"):
        unpickler.Unpickler(io.BytesIO(b"]"), 10, Builder(SimpleNamespace(file_size=10)), "data.pkl").load()


def test_a_dtypes_flags_and_alignment_are_not_taken_from_the_file():
    """NumPy would believe them: with these flags, freeing the array is an internal error."""
    words = np.array(["ab", "c"]).tobytes()
    lying = dtype("U2", b"K\x03", text("<"), b"NNN", number(8), number(1), number(0xD1))
    made = load(io.BytesIO(archive(pickled(array(numbers(2), lying, words)))))
    assert made.tolist() == ["ab", "c"]
    assert (made.dtype.alignment, made.dtype.flags) == (4, np.dtype("U2").flags)


def test_names_that_are_refused_say_what_to_save_instead():
    for full, remedy in [
        ("torch._utils._rebuild_qtensor", "dequantize()"),
        ("torch.float8_e8m0fnu", "bfloat16"),
        ("torch.nn.modules.linear.Linear", "state_dict()"),
        ("numpy.random._pickle.__generator_ctor", "NumPy arrays"),
    ]:
        module, _, attribute = full.rpartition(".")
        refused(name(module, attribute), words=(full, remedy))

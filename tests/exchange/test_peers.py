"""Memory shared with PyTorch, JAX and PyArrow: the same addresses on both sides, and nothing left after both."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.errors import ExchangeError

pytestmark = pytest.mark.peer
DTYPES = "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
WAYS = {
    "the whole": lambda x: x,
    "transposed": lambda x: x.t(),
    "every other": lambda x: x[:, ::2],
    "expanded": lambda x: x[0].expand(3, 6),
    "a number": lambda x: x[1, 2],
    "nothing": lambda x: x[:0],
}


@pytest.fixture(scope="module")
def peer() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture(scope="module")
def jax() -> Any:
    return pytest.importorskip("jax")


@pytest.fixture(scope="module")
def arrow() -> Any:
    return pytest.importorskip("pyarrow")


# ---- PyTorch --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", DTYPES.split())
def test_torch_and_back(peer: Any, name: str, way: str) -> None:
    for theirs, ours in ((peer, torch), (torch, peer)):
        source = WAYS[way](theirs.arange(24).reshape(4, 6).to(getattr(theirs, name)))
        found = ours.from_dlpack(source)
        assert str(found.dtype).endswith(f".{name}") and tuple(found.shape) == tuple(source.shape)
        assert found.tolist() == source.tolist()
        if not source.numel():
            continue
        assert (found.data_ptr(), found.stride()) == (source.data_ptr(), source.stride())
        capsules = ours.utils.dlpack.from_dlpack(theirs.utils.dlpack.to_dlpack(source))
        assert capsules.data_ptr() == source.data_ptr()
        if way != "expanded":
            found.fill_(1)
            assert source.tolist() == found.tolist() == capsules.tolist()
        copied = ours.from_dlpack(source, copy=True)
        assert copied.data_ptr() != source.data_ptr() and copied.tolist() == source.tolist()
        assert ours.from_dlpack(source, copy=False, device="cpu").data_ptr() == source.data_ptr()


@pytest.mark.parametrize("first", ["producer", "consumer"])
def test_torch_and_who_goes_first(peer: Any, first: str) -> None:
    for theirs, ours in ((peer, torch), (torch, peer)):
        source = theirs.ones(1000)
        storage = weakref.ref(source.numpy() if theirs is torch else source.untyped_storage())
        found = ours.from_dlpack(source)
        address = source.data_ptr()
        if first == "producer":
            del source
            gc.collect()
            assert found.data_ptr() == address and float(found.sum()) == 1000
            del found
        else:
            del found
            gc.collect()
            assert float(source.sum()) == 1000
            del source
        gc.collect()
        assert theirs is peer or storage() is None


def test_torch_refuses_what_we_refuse(peer: Any) -> None:
    for library in (peer, torch):
        x = library.ones(3, requires_grad=True)
        with pytest.raises(BufferError, match=r"Can't export tensors that require gradient, use tensor\.detach"):
            x.__dlpack__()
        with pytest.raises(TypeError, match="stream must be ``int`` or ``none``"):
            x.detach().__dlpack__(stream="a")
        assert not hasattr(x, "__cuda_array_interface__")
        with pytest.raises(AttributeError, match="Can't get __cuda_array_interface__ on non-CUDA tensor type"):
            x.__cuda_array_interface__  # noqa: B018
    lazily = peer.ones(3, dtype=peer.complex64).conj()
    with pytest.raises(ExchangeError, match="conjugate bit set"):
        torch.from_dlpack(lazily)
    assert torch.from_dlpack(lazily.resolve_conj()).tolist() == [1] * 3
    with pytest.raises(ExchangeError, match="no dtype has elements of code"):
        torch.from_dlpack(peer.ones(3).to(peer.float8_e8m0fnu))
    names = {name: int(value) for name, value in peer.utils.dlpack.DLDeviceType.__members__.items()}
    assert {name: int(value) for name, value in torch.utils.dlpack.DLDeviceType.__members__.items()} == names


def test_many_rounds_with_torch(peer: Any) -> None:
    x, y = torch.ones(100), peer.ones(100)

    def rounds(count: int) -> int:
        for _ in range(count):
            peer.from_dlpack(x), torch.from_dlpack(y), torch.from_dlpack(peer.from_dlpack(torch.from_dlpack(y)))
        gc.collect()
        return len(gc.get_objects())

    before = rounds(20)
    assert abs(rounds(500) - before) < 20


FROMBUFFER = """
bytearray(range(8)), dtype=torch.int16
bytearray(range(8)), dtype=torch.int16, count=2, offset=2
bytearray(range(8)), dtype=torch.bfloat16
bytearray(range(8)), dtype=torch.bool
bytearray(range(7)), dtype=torch.int16
bytearray(range(8)), dtype=torch.int16, offset=8
bytearray(range(8)), dtype=torch.int16, offset=-1
bytearray(range(8)), dtype=torch.int16, count=5
bytearray(range(8)), dtype=torch.int16, count=0
bytearray(), dtype=torch.int16
bytearray(range(8)), dtype=torch.int16, count=-3
bytearray(range(8)), dtype=torch.float32, requires_grad=True
[1, 2], dtype=torch.int16
"""


@pytest.mark.parametrize("call", FROMBUFFER.strip().splitlines())
def test_frombuffer_is_torchs(peer: Any, call: str) -> None:
    def outcome(library: Any) -> Any:
        try:
            found = eval(f"torch.frombuffer({call})", {"torch": library})
        except ValueError as error:
            return str(error).partition(".")[0]
        return found.tolist(), found.requires_grad

    ours, theirs = outcome(torch), outcome(peer)
    assert ours == theirs or (isinstance(ours, str) and isinstance(theirs, str) and ours[:24] == theirs[:24])


# ---- JAX ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in DTYPES.split() if not name.endswith(("64", "128"))] + ["complex64"])
def test_jax_and_back(jax: Any, name: str) -> None:
    theirs = jax.numpy.arange(24).reshape(4, 6).astype(name)
    x = torch.from_dlpack(theirs)
    assert (x.dtype, tuple(x.shape)) == (getattr(torch, name), (4, 6))
    assert x.data_ptr() == theirs.unsafe_buffer_pointer() and x.tolist() == theirs.tolist()
    memory = np.zeros(4096 * 8 + 64, np.uint8)
    start = -memory.ctypes.data % 64
    ours = torch.from_numpy(memory[start : start + 4096 * x.itemsize].view(x.dtype.numpy).reshape(64, 64))
    ours.copy_(torch.arange(4096).reshape(64, 64))
    for each in (ours, ours.t()):
        back = jax.dlpack.from_dlpack(each)
        assert str(back.dtype) == name and back.tolist() == each.tolist()
        assert back.unsafe_buffer_pointer() == each.data_ptr()
    offset = jax.dlpack.from_dlpack(ours.reshape(-1)[1:])  # JAX copies what is not aligned as it aligns
    assert offset.tolist() == ours.reshape(-1)[1:].tolist()


def test_jax_and_who_goes_first(jax: Any) -> None:
    theirs = jax.numpy.arange(1000.0)
    address = theirs.unsafe_buffer_pointer()
    x = torch.from_dlpack(theirs)
    del theirs
    gc.collect()
    assert x.data_ptr() == address and x.sum() == 499500
    ours = torch.arange(4096.0)
    memory = weakref.ref(ours.numpy())
    back = jax.dlpack.from_dlpack(ours)
    del ours
    gc.collect()
    assert back.sum() == 8386560
    del back
    gc.collect()
    assert memory() is None
    assert torch.from_dlpack(jax.numpy.ones(3), copy=True).add_(1).tolist() == [2.0] * 3


# ---- PyArrow --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in DTYPES.split() if n.startswith(("int", "uint", "float"))])
def test_arrow_arrays(arrow: Any, name: str) -> None:
    theirs = arrow.array(np.arange(10).astype(name))
    x = torch.from_dlpack(theirs)
    assert x.dtype is getattr(torch, name) and x.tolist() == list(range(10))
    assert x.data_ptr() == theirs.buffers()[1].address
    sliced = torch.from_dlpack(theirs[3:7])
    assert sliced.tolist() == [3, 4, 5, 6] and sliced.data_ptr() == x.data_ptr() + 3 * x.itemsize
    allocated = arrow.total_allocated_bytes()
    del theirs, sliced
    gc.collect()
    assert x.tolist() == list(range(10)) and arrow.total_allocated_bytes() == allocated


def test_arrow_refuses_gaps_and_booleans(arrow: Any) -> None:
    for values in ([1, None], [True, False], ["a"]):
        with pytest.raises(ExchangeError, match="cannot take a"):
            torch.from_dlpack(arrow.array(values))


def test_arrow_reads_tensors(arrow: Any) -> None:
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    tensor = arrow.Tensor.from_numpy(x.numpy())
    x[0, 0] = 9
    assert tensor.to_numpy()[0, 0] == 9
    buffer = arrow.py_buffer(x.__buffer__(0))
    assert buffer.address == x.data_ptr() and buffer.size == x.nbytes
    array = arrow.Array.from_buffers(arrow.float32(), 6, [None, buffer])
    assert array.to_pylist() == x.reshape(-1).tolist()
    y = torch.frombuffer(arrow.py_buffer(bytearray(b"\1\0\2\0")), dtype=torch.int16)
    assert y.tolist() == [1, 2]

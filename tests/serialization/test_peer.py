"""Both ways with PyTorch: what each library writes, the other reads, bit for bit. Run with `pytest -m peer`."""

from __future__ import annotations

import io
import zipfile
from collections import Counter, OrderedDict

import ml_dtypes
import numpy as np
import pytest

import tritensor
from tritensor.serialization import load, load_into, save
from tritensor.tensors import wrap
from tritensor.types import dtypes

pytestmark = pytest.mark.peer
torch = pytest.importorskip("torch")


def bits(tensor):
    """The bytes of a tensor of either library, in row-major order."""
    if isinstance(tensor, tritensor.Tensor):
        return np.ascontiguousarray(tensor._to_host()).tobytes()
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def alike(ours, theirs):
    """Whether objects of the two libraries are the same, type by type."""
    if isinstance(ours, tritensor.Tensor):
        return (
            isinstance(theirs, torch.Tensor)
            and isinstance(ours, tritensor.nn.Parameter) == isinstance(theirs, torch.nn.Parameter)
            and str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
            and tuple(ours.shape) == tuple(theirs.shape)
            and (ours.numel() < 2 or tuple(ours.stride()) == tuple(theirs.stride()))
            and ours.requires_grad == theirs.requires_grad
            and bits(ours) == bits(theirs)
        )
    if isinstance(ours, (tritensor.device, tritensor.dtype)):
        return str(ours).split(".")[-1] == str(theirs).split(".")[-1]
    if isinstance(ours, tritensor.Size):
        return isinstance(theirs, torch.Size) and tuple(ours) == tuple(theirs)
    if isinstance(ours, dict):
        pairs = zip(ours.items(), theirs.items(), strict=False)
        return type(ours) is type(theirs) and len(ours) == len(theirs) and all(alike(x, y) for x, y in pairs)
    if isinstance(ours, (list, tuple)):
        pairs = zip(ours, theirs, strict=False)
        return type(ours) is type(theirs) and len(ours) == len(theirs) and all(alike(x, y) for x, y in pairs)
    return type(ours) is type(theirs) and (ours == theirs or ours != ours)


def from_torch(obj, **options):
    """`obj`, written by torch and read by us."""
    file = io.BytesIO()
    torch.save(obj, file, **options)
    file.seek(0)
    return load(file, map_location="cpu")


def to_torch(obj, **options):
    """`obj`, written by us and read by torch."""
    file = io.BytesIO()
    save(obj, file)
    file.seek(0)
    return torch.load(file, weights_only=True, **options)


FORMS = [{}, {"_use_new_zipfile_serialization": False}]


@pytest.mark.parametrize("dtype", dtypes.STORED, ids=lambda dtype: dtype.name)
def test_every_dtype_both_ways(dtype):
    raw = np.arange(96, dtype=np.uint8) % (2 if dtype.name == "bool" else 255)
    array = raw.view(dtype.numpy).reshape(2, -1)
    theirs = torch.frombuffer(bytearray(raw.tobytes()), dtype=getattr(torch, dtype.name)).reshape(2, -1)
    for view in (lambda x: x, lambda x: x.T, lambda x: x[:, ::2], lambda x: x[1:], lambda x: x[:0], lambda x: x[0, 0]):
        ours = wrap(np.asarray(view(array)))
        for options in FORMS:
            found = from_torch(view(theirs), **options)
            assert alike(found, view(theirs))
        assert alike(ours, to_torch(ours))
        assert alike(ours, to_torch(ours, mmap=None))


VALUES = [
    None,
    True,
    False,
    0,
    255,
    256,
    65536,
    -1,
    2**31,
    2**63,
    -(2**80),
    1.5,
    float("inf"),
    1 + 2j,
    "",
    "naïve ☃ 𝄞",
    b"\x00\xff",
    b"",
    bytearray(b"xy"),
    [],
    (),
    {},
    (1,),
    (1, 2),
    (1, 2, 3),
    (1, 2, 3, (4,)),
    {1: {"a": [None]}},
    {1, 2},
    Counter("aab"),
    OrderedDict([("b", 1), ("a", (2,))]),
    list(range(2500)),
    {str(i): i for i in range(1500)},
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{type(value).__name__}")
def test_values_both_ways(value):
    assert alike(from_torch([value, value]), [value, value])
    assert alike(from_torch(value, _use_new_zipfile_serialization=False), value)
    assert alike([value, value], to_torch([value, value]))


def test_sizes_devices_and_dtypes_both_ways():
    ours = [tritensor.Size([2, 3]), tritensor.device("cuda:1"), tritensor.device("cpu"), *dtypes.STORED]
    theirs = [
        torch.Size([2, 3]),
        torch.device("cuda:1"),
        torch.device("cpu"),
        *(getattr(torch, d.name) for d in dtypes.STORED),
    ]
    assert alike(from_torch(theirs), theirs)
    assert alike(ours, to_torch(ours))


def test_numpy_objects_both_ways():
    arrays = [np.arange(6.0).reshape(2, 3).T, np.zeros((0, 2), "i2"), np.array(["ab"]), np.float64(2), np.bool_(True)]
    allowed = [np._core.multiarray._reconstruct, np._core.multiarray.scalar, np.ndarray, np.dtype]
    allowed += [type(np.dtype(code)) for code in ("f8", "i2", "U2", "?")]
    with torch.serialization.safe_globals(allowed):
        for found in (from_torch(arrays), to_torch(arrays)):
            for x, y in zip(arrays, found, strict=True):
                assert type(x) is type(y)
                assert (x.dtype, x.shape, x.tobytes()) == (y.dtype, y.shape, y.tobytes())
    assert load(_saved([np.ones(2, ml_dtypes.bfloat16)]))[0].dtype == ml_dtypes.bfloat16


def _saved(obj):
    file = io.BytesIO()
    save(obj, file)
    file.seek(0)
    return file


def test_views_share_memory_on_the_other_side():
    grid = np.arange(12, dtype=np.float32).reshape(3, 4)
    back = to_torch(
        [wrap(grid), wrap(grid[1:, ::2]), wrap(grid.view(np.int32)), wrap(grid.view(np.uint16)), wrap(grid.T)]
    )
    back[0][1, 2] = 99
    assert back[1][0, 1] == 99
    assert back[2][1, 2] == np.float32(99).view(np.int32)
    assert back[3][1, 4:6].tolist() == np.float32(99).reshape(1).view(np.uint16).tolist()
    assert back[4][2, 1] == 99
    theirs = torch.arange(12.0).reshape(3, 4)
    for options in FORMS:
        first, second = from_torch([theirs, theirs[1:, ::2]], **options)
        first._data[1, 2] = 99
        assert second.tolist() == [[4, 99], [8, 10]]


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_sparse_tensors_both_ways():
    for library, across in ((tritensor, to_torch), (torch, from_torch)):
        x = library.sparse_coo_tensor([[0, 2, 0]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], (4, 2))
        found = across({"x": x, "again": x, "sorted": x.coalesce(), "none": library.sparse_coo_tensor(size=(2, 3))})
        assert found["x"].is_sparse and found["x"]._indices().tolist() == [[0, 2, 0]] and found["x"] is found["again"]
        assert found["x"]._values().tolist() == x._values().tolist() and not found["x"].is_coalesced()
        assert found["sorted"].is_coalesced() and found["sorted"].to_dense().tolist() == x.to_dense().tolist()
        assert tuple(found["none"].shape) == (2, 3) and found["none"]._nnz() == 0


def test_untyped_storages_and_odd_sizes_on_the_other_side():
    raw = np.arange(10, dtype=np.uint8)
    first, second = to_torch([wrap(raw[:8].view(np.float32)), wrap(raw)])
    second[0] = 99
    assert first.view(torch.uint8)[0] == 99


def test_parameters_lazy_bits_and_attributes():
    conjugate = torch.tensor([1 + 2j, 3 - 4j]).conj()
    negative = torch.tensor([1 + 2j, 3 - 4j]).conj().imag
    attributed = torch.nn.Parameter(torch.ones(2))
    attributed.note = "mine"
    plain = torch.ones(2)
    plain.note = "mine"
    theirs = [torch.nn.Parameter(torch.ones(2, 3)), torch.zeros(2, requires_grad=True), conjugate, negative, attributed]
    for options in FORMS:
        assert alike(from_torch(theirs, **options), theirs)
        assert from_torch(plain, **options).tolist() == [1, 1]
    ours = [
        tritensor.nn.Parameter(tritensor.ones(2, 3)),
        tritensor.nn.Parameter(tritensor.ones(1), requires_grad=False),
    ]
    assert alike(ours, to_torch(ours))


class Mixed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = torch.nn.Conv2d(1, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)
        self.head = torch.nn.Linear(4 * 6 * 6, 10)

    def forward(self, x):
        return self.head(self.norm(self.convolution(x)).relu().flatten(1))


MODELS = {
    "mlp": (lambda: torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2)), (3, 4)),
    "cnn": (Mixed, (2, 1, 8, 8)),
    "lstm": (lambda: torch.nn.LSTM(4, 5, num_layers=2, bidirectional=True), (3, 2, 4)),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("options", FORMS, ids=["zip", "legacy"])
def test_state_dicts_of_models_and_adam_both_ways(kind, options):
    make, shape = MODELS[kind]
    model = make()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, amsgrad=True)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [1, 2])
    for _ in range(3):
        optimizer.zero_grad()
        found = model(torch.randn(shape))
        (found[0] if isinstance(found, tuple) else found).square().sum().backward()
        optimizer.step()
        scheduler.step()
    theirs = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "rng": torch.get_rng_state(),
    }
    ours = from_torch(theirs, **options)
    assert alike(ours, theirs)
    assert ours["model"]._metadata == theirs["model"]._metadata
    file = io.BytesIO()
    save(ours, file)
    file.seek(0)
    back = torch.load(file, weights_only=True)
    assert alike(ours, back)
    assert back["model"]._metadata == theirs["model"]._metadata
    other = make()
    other.load_state_dict(back["model"])
    again = torch.optim.Adam(other.parameters(), lr=0.5, amsgrad=True)
    again.load_state_dict(back["optimizer"])
    assert all(torch.equal(x, y) for x, y in zip(model.parameters(), other.parameters(), strict=True))


def test_our_mlp_and_adam_go_on_in_torch_and_theirs_here(tmp_path):
    ours = tritensor.nn.Sequential(tritensor.nn.Linear(4, 8), tritensor.nn.ReLU(), tritensor.nn.Linear(8, 2))
    theirs = MODELS["mlp"][0]()
    inputs = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    optimizer = tritensor.optim.Adam(ours.parameters(), lr=0.01)
    (ours(wrap(inputs)) * ours(wrap(inputs))).sum().backward()
    optimizer.step()
    back = to_torch({"model": ours.state_dict(), "optimizer": optimizer.state_dict()})
    theirs.load_state_dict(back["model"])
    other = torch.optim.Adam(theirs.parameters(), lr=0.5)
    other.load_state_dict(back["optimizer"])
    for model, steps, inside in ((ours, optimizer, wrap(inputs)), (theirs, other, torch.from_numpy(inputs))):
        steps.zero_grad()
        (model(inside) * model(inside)).sum().backward()
        steps.step()
    for x, y in zip(ours.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(x._to_host(), y.detach().numpy(), rtol=1e-5, atol=1e-6)
    torch.save({"model": theirs.state_dict()}, tmp_path / "theirs.pt")
    ours.load_state_dict(load(tmp_path / "theirs.pt")["model"])
    torch.save(theirs.state_dict(), tmp_path / "state.pt")
    load_into(ours, tmp_path / "state.pt")
    assert all(bits(x) == bits(y) for x, y in zip(ours.parameters(), theirs.parameters(), strict=True))


def test_torch_maps_our_files_and_computes_our_offsets(tmp_path):
    path = tmp_path / "model.pt"
    ours = {str(size): wrap(np.full(size, size % 251, np.uint8)) for size in (1, 63, 64, 65, 4096, 100_001)}
    save(ours, path)
    from torch.utils.serialization import config

    with config.patch({"load.calculate_storage_offsets": True}):
        assert alike(ours, torch.load(path, mmap=True))
    assert alike(ours, torch.load(path))
    torch.save({key: torch.from_numpy(value._data) for key, value in ours.items()}, path)
    assert alike(load(path, mmap=True), torch.load(path))


def test_archives_without_checksums_are_read():
    torch.serialization.set_crc32_options(False)
    try:
        assert from_torch(torch.arange(5)).tolist() == [0, 1, 2, 3, 4]
    finally:
        torch.serialization.set_crc32_options(True)


def test_records_have_the_layout_of_pytorchs(tmp_path):
    """Same names in the same order at the same offsets, apart from the pickle's own length."""
    array = np.arange(100, dtype=np.float32)
    save({"a": wrap(array)}, tmp_path / "x.pt")
    torch.save({"a": torch.from_numpy(array)}, tmp_path / "y.pt")
    layouts = []
    for name in "xy":
        with zipfile.ZipFile(tmp_path / f"{name}.pt") as packed:
            layouts.append([(entry.filename[1:], entry.flag_bits, entry.header_offset) for entry in packed.infolist()])
    assert [(name, flags) for name, flags, _ in layouts[0]] == [(name, flags) for name, flags, _ in layouts[1]]
    assert [offset - layouts[0][2][2] for *_, offset in layouts[0][2:]] == [
        offset - layouts[1][2][2] for *_, offset in layouts[1][2:]
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_whole_modules_and_tensors_that_we_lack_are_refused_by_name():
    for value, words in [
        (torch.nn.Linear(2, 2), "torch.nn.modules.linear.Linear"),
        (torch.ones(2).to(torch.float8_e8m0fnu), "float8_e8m0fnu"),
    ]:
        with pytest.raises(tritensor.errors.CheckpointError, match=words):
            from_torch({"a": value})
    scripted = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), scripted)
    scripted.seek(0)
    with pytest.raises(tritensor.errors.CheckpointError, match="TorchScript"):
        load(scripted)


@pytest.mark.parametrize("parameter", [False, True])
def test_meta_tensors_stay_without_elements(parameter):
    theirs = torch.empty(3, 2, device="meta", dtype=torch.float16).T
    ours = tritensor.empty(3, 2, device="meta", dtype=tritensor.float16).T
    if parameter:
        theirs, ours = torch.nn.Parameter(theirs), tritensor.nn.Parameter(ours)
    read, back = from_torch([theirs])[0], torch.load(_saved([ours]), map_location="cpu")[0]
    for found, kind in ((read, tritensor.nn.Parameter), (back, torch.nn.Parameter)):
        assert found.is_meta and (found.shape, found.stride()) == ((2, 3), (1, 2)) and found.requires_grad is parameter
        assert str(found.dtype).endswith("float16") and isinstance(found, kind) is parameter


def test_a_cuda_tag_survives_the_way_through_torch():
    with tritensor.cuda.simulate(devices=2):
        from tritensor.memory import copies
        from tritensor.types import devices

        file = _saved(wrap(copies.from_host(np.arange(3), devices.cuda(1))))
        assert torch.load(file, map_location="cpu").tolist() == [0, 1, 2]
        file.seek(0)
        with pytest.raises(RuntimeError, match="Attempting to deserialize object on a CUDA device"):
            torch.load(file)

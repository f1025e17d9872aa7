"""Where the tensors of a checkpoint go: every form of `map_location`, on the CPU and on simulated CUDA devices."""

from __future__ import annotations

import gc
import io
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tritensor
from tritensor import drivers, nn
from tritensor.errors import ArgumentError, CheckpointError, DeviceError
from tritensor.memory import copies
from tritensor.serialization import load, load_into, save
from tritensor.tensors import wrap
from tritensor.types import devices

from .crafted_checkpoints import archive, pickled, storage, tensor
from .test_serialization import objects, same

VALUES = np.arange(12, dtype=np.float32).reshape(3, 4)
PLACES = ("cpu", "cuda:0", "cuda:1")


def on(place, array=VALUES):
    """The array as a tensor on a device."""
    place = devices.resolve(place)
    return wrap(array.copy() if place.type == "cpu" else copies.from_host(array, place))


def saved(obj):
    file = io.BytesIO()
    save(obj, file)
    file.seek(0)
    return file


@pytest.fixture
def simulated():
    with drivers.simulate(devices=2) as driver:
        yield driver


ROUND = {"cuda:0": "cuda:1", "cuda:1": "cpu", "cpu": "cuda:0"}
FORMS = {
    "none": (None, None),
    "string": ("cuda:1", "cuda:1"),
    "current device": ("cuda", "cuda:0"),
    "device": (tritensor.device("cpu"), "cpu"),
    "bytes": (b"cpu", "cpu"),
    "ordinal": (1, "cuda:1"),
    "dict": (ROUND, ROUND),
    "dict that names one": ({"cuda:1": "cuda:0"}, {"cpu": "cpu", "cuda:0": "cuda:0", "cuda:1": "cuda:0"}),
    "dict of devices": (
        {"cuda:1": tritensor.device("cpu"), "cuda:0": 0},
        {"cpu": "cpu", "cuda:0": "cuda:0", "cuda:1": "cpu"},
    ),
    "the storage itself": (lambda storage, location: storage, "cpu"),
    "storage.cuda": (lambda storage, location: storage.cuda(1), "cuda:1"),
    "storage.cuda of the current": (lambda storage, location: storage.cuda(), "cuda:0"),
    "storage.to": (lambda storage, location: storage.cuda(1).to("cpu"), "cpu"),
    "storage.cpu": (lambda storage, location: storage.cpu(), "cpu"),
    "callable that declines": (lambda storage, location: None, None),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.usefixtures("simulated")
def test_every_form_of_map_location(form):
    map_location, expected = FORMS[form]
    for place in PLACES:
        target = expected.get(place) if isinstance(expected, dict) else expected or place
        found = load(saved(on(place)), map_location)
        assert str(found.device) == target
        assert found._to_host().tobytes() == VALUES.tobytes()


@pytest.mark.usefixtures("simulated")
def test_views_share_device_memory_again_wherever_they_go():
    whole = on("cuda:1")
    views = [whole, wrap(whole._data[1:, ::2]), wrap(whole._data.transpose((1, 0))), wrap(whole._data[2, 3])]
    for place in PLACES:
        back = load(saved(views), place)
        for one, other in zip(views, back, strict=True):
            assert one._to_host().tolist() == other._to_host().tolist()
            assert other.stride() == one.stride()
        if place != "cpu":
            assert len({id(view._data.buffer) for view in back}) == 1
        else:
            back[0]._data[1, 2] = 99
            assert back[1]._data[0, 1] == 99


@pytest.mark.usefixtures("simulated")
def test_parameters_and_gradient_flags_arrive_on_the_device():
    parameter = tritensor.nn.Parameter(on("cpu"))
    back = load(saved([parameter, on("cpu")]), "cuda:1")
    assert isinstance(back[0], tritensor.nn.Parameter)
    assert [view.requires_grad for view in back] == [True, False]
    assert str(back[0].device) == "cuda:1"


@pytest.mark.usefixtures("simulated")
def test_lazy_conjugation_is_carried_out_on_the_device():
    lazy = tensor(storage(kind="ComplexFloat", count=2), 0, (2,), (1,), more=b"}X\x04\x00\x00\x00conj\x88s")
    found = load(io.BytesIO(archive(pickled(lazy))), "cuda:1")
    assert str(found.device) == "cuda:1"
    assert found._to_host().tolist() == [1 - 2j, 3 - 4j]


def test_storages_larger_than_the_staging_memory_arrive_whole(monkeypatch):
    monkeypatch.setattr("tritensor.serialization.tensors.STAGING", 64)
    monkeypatch.setattr("tritensor.serialization.storages.STAGING", 64)
    values = np.arange(1000, dtype=np.int64)
    with drivers.simulate(devices=1):
        found = load(saved(on("cuda:0", values)), "cuda:0")
        assert found._to_host().tolist() == values.tolist()
        assert load(saved(found), "cpu").tolist() == values.tolist()


def test_a_device_without_room_is_an_error_and_leaves_nothing_behind():
    with drivers.simulate(devices=1, memory="1MB") as driver:
        file = saved([on("cpu", np.zeros(2**17, np.float32)) for _ in range(3)])
        with pytest.raises(tritensor.errors.OutOfMemoryError):
            load(file, "cuda")
        gc.collect()
        assert driver.spans(0) == []


@pytest.mark.usefixtures("no_device")
def test_a_cuda_checkpoint_without_cuda_says_what_pytorch_says():
    with drivers.simulate(devices=2):
        file = saved({"weight": on("cuda:1")})
    for place in (None, "cuda", 0, {"cpu": "cuda:0"}, lambda storage, location: None):
        file.seek(0)
        with pytest.raises(CheckpointError) as caught:
            load(file, place)
        message = str(caught.value)
        assert message.startswith(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False"
        )
        assert "map_location='cpu'" in message
        assert "TRITENSOR_SIMULATE_CUDA=1" in message
    for place in ("cpu", {"cuda:1": "cpu"}, lambda storage, location: storage):
        file.seek(0)
        assert load(file, place)["weight"].tolist() == VALUES.tolist()
    with drivers.simulate(devices=1):
        file.seek(0)
        with pytest.raises(CheckpointError, match=r"on CUDA device 1 but torch.cuda.device_count\(\) is 1"):
            load(file)


@pytest.mark.usefixtures("simulated")
def test_places_that_do_not_exist_are_refused():
    for place in ("mps", "xla:0", "CUDA:0", "cuda:", "cuda:99999999999999"):
        with pytest.raises(CheckpointError, match=r"Attempting to deserialize|don't know how to restore"):
            load(saved(on("cpu")), place)
    with pytest.raises(ArgumentError, match="map_location must be"):
        load(saved(on("cpu")), 1.5)
    with pytest.raises(ArgumentError, match="map_location must be"):
        load(saved(on("cpu")), True)
    with pytest.raises(ArgumentError, match="map_location maps 'cpu' to a list"):
        load(saved(on("cpu")), {"cpu": []})
    with pytest.raises(ArgumentError, match="map_location returned a int"):
        load(saved(on("cpu")), lambda storage, location: 7)
    with pytest.raises((CheckpointError, DeviceError)):
        load(saved(on("cpu")), lambda storage, location: storage.cuda(5))


def test_a_callable_is_asked_once_for_each_storage_and_told_its_size():
    asked = []

    def place(storage, location):
        asked.append((storage.nbytes(), len(storage), storage.size(), location, str(storage.device)))
        return storage

    whole = on("cpu")
    load(saved([whole, wrap(whole._data[1]), on("cpu", np.zeros(3, np.int8))]), place)
    assert asked == [(48, 48, 48, "cpu", "cpu"), (3, 3, 3, "cpu", "cpu")]


@pytest.mark.thorough
@given(objects, st.sampled_from(PLACES), st.sampled_from(sorted(FORMS)))
@settings(max_examples=40)
def test_any_object_comes_back_from_any_device_to_any_device(obj, place, form):
    map_location, expected = FORMS[form]
    with drivers.simulate(devices=2):
        moved = moved_to(obj, place)
        target = expected.get(place) if isinstance(expected, dict) else expected or place
        back = load(saved(moved), map_location)
        assert same(back, moved_to(obj, target))


def moved_to(obj, place):
    """The object with its tensors on a device, in the same layout."""
    if isinstance(obj, tritensor.Tensor):
        if place == "cpu":
            return obj
        moved = wrap(copies.from_host(np.ascontiguousarray(obj._data).reshape(obj.shape), devices.resolve(place)))
        if isinstance(obj, tritensor.nn.Parameter):
            return tritensor.nn.Parameter(moved, obj.requires_grad)
        moved.requires_grad = obj.requires_grad
        return moved
    if isinstance(obj, dict):
        return type(obj)((key, moved_to(value, place)) for key, value in obj.items())
    if type(obj) in (list, tuple):
        return type(obj)(moved_to(value, place) for value in obj)
    return obj


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize(("source", "target"), list(itertools.product(PLACES, PLACES)))
def test_safetensors_go_where_they_are_sent(tmp_path, source, target):
    path = tmp_path / "model.safetensors"
    save({"weight": on(source)}, path)
    found = load(path, target)["weight"]
    assert str(found.device) == target
    assert found._to_host().tobytes() == VALUES.tobytes()
    assert str(load(path)["weight"].device) == "cpu"


@pytest.mark.usefixtures("no_device")
def test_safetensors_are_not_sent_where_there_is_nothing(tmp_path):
    save({"weight": on("cpu")}, tmp_path / "model.safetensors")
    for place in ("cuda", {"cpu": "cuda:0"}, lambda storage, location: storage.cuda()):
        with pytest.raises(CheckpointError, match="Attempting to deserialize object on a CUDA device"):
            load(tmp_path / "model.safetensors", place)


@pytest.mark.gpu
def test_checkpoints_move_between_the_cpu_and_a_real_gpu(tmp_path):
    driver = drivers.active()
    if driver is None or driver.is_simulated:
        pytest.skip("there is no GPU")
    large = np.random.default_rng(0).random((9, 1024, 1024), dtype=np.float32)  # more than the staging memory twice
    whole = on("cuda:0", large)
    save([whole, wrap(whole._data[1:, ::2]), nn.Parameter(on("cuda:0"))], tmp_path / "gpu.pt")
    for place in ("cpu", "cuda:0", None):
        for mmap in (False, True):
            back = load(tmp_path / "gpu.pt", place, mmap=mmap)
            assert {str(view.device) for view in back} == {place or "cuda:0"}
            assert back[0]._to_host().tobytes() == large.tobytes()
            assert back[1]._to_host().tobytes() == large[1:, ::2].tobytes()
    save({"weight": on("cpu", large[0]), "bias": on("cpu", large[1, 0])}, tmp_path / "cpu.pt")
    model = nn.Linear(1024, 1024).to("cuda")
    load_into(model, tmp_path / "cpu.pt")
    assert model.weight._to_host().tobytes() == large[0].tobytes()
    assert load(tmp_path / "cpu.pt", "cuda")["weight"]._to_host().tobytes() == large[0].tobytes()

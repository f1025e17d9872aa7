"""Checkpoints of models and optimizers, `load_into`, and `python -m tritensor inspect`."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections import OrderedDict

import numpy as np
import pytest

import tritensor
from tritensor import nn, optim
from tritensor.errors import CheckpointError
from tritensor.serialization import load, load_into, save, tensors
from tritensor.serialization.inspect import inspect, main
from tritensor.tensors import wrap

from .crafted_checkpoints import DATA, archive, call, legacy, name, pickled, storage, tensor, text


def mlp(hidden=5):
    return nn.Sequential(nn.Linear(3, hidden), nn.ReLU(), nn.Linear(hidden, 2))


def values(module):
    return {key: value._to_host().tolist() for key, value in module.state_dict().items()}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.pt"


# State dicts ---------------------------------------------------------------------------------------------------------


def test_a_model_and_its_optimizer_go_on_where_they_stopped(path):
    model = mlp()
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    inputs = wrap(np.arange(12, dtype=np.float32).reshape(4, 3))

    def step(model, optimizer):
        optimizer.zero_grad()
        (model(inputs) * model(inputs)).sum().backward()
        optimizer.step()

    step(model, optimizer)
    save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 1}, path)
    found = load(path)
    other = mlp()
    other.load_state_dict(found["model"])
    again = optim.Adam(other.parameters(), lr=0.5)
    again.load_state_dict(found["optimizer"])
    step(model, optimizer)
    step(other, again)
    assert values(other) == values(model)
    assert found["epoch"] == 1


@pytest.mark.parametrize("place", ["cpu", "cuda"])
def test_a_state_dict_moves_between_devices(path, place):
    with tritensor.cuda.simulate(devices=1):
        model = mlp().to(place)
        save(model.state_dict(), path)
        other = mlp().to("cpu" if place == "cuda" else "cuda")
        other.load_state_dict(load(path, map_location="cpu" if place == "cuda" else "cuda"))
        assert values(other) == values(model)


# load_into -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["cpu", "cuda"])
@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_load_into_fills_the_parameters_that_are_there(tmp_path, place, suffix):
    source = mlp()
    save(source.state_dict(), tmp_path / f"model{suffix}")
    with tritensor.cuda.simulate(devices=1):
        model = mlp().to(place)
        before = [(parameter, parameter.data_ptr()) for parameter in model.parameters()]
        keys = load_into(model, tmp_path / f"model{suffix}")
        assert str(keys) == "<All keys matched successfully>"
        assert values(model) == values(source)
        assert [(parameter, parameter.data_ptr()) for parameter in model.parameters()] == before
        assert all(parameter.requires_grad for parameter in model.parameters())


def test_load_into_converts_and_reads_old_files_file_objects_and_shared_storages(path):
    model = nn.Linear(2, 2, bias=False).to(tritensor.float64)
    view = tensor(size=(2, 2), stride=(1, 2))
    state = pickled(b"}", text("weight"), view, b"s")
    for data in (archive(state), legacy(state)):
        load_into(model, io.BytesIO(data))
        assert model.weight.tolist() == [[1, 3], [2, 4]]
        assert model.weight.dtype is tritensor.float64
    flat = np.arange(6, dtype=np.float32)
    model = nn.Linear(2, 2)
    save({"weight": wrap(flat[:4].reshape(2, 2)), "bias": nn.Parameter(wrap(flat[4:]))}, path)
    load_into(model, path)
    assert (model.weight.tolist(), model.bias.tolist()) == ([[0, 1], [2, 3]], [4, 5])
    lazy = tensor(storage(), 0, (2, 2), (2, 1), more=b"}" + text("neg") + b"\x88s")
    load_into(nn.Linear(2, 2), io.BytesIO(archive(pickled(b"}", text("weight"), lazy, b"s"))), strict=False)


def test_load_into_holds_one_storage_at_a_time(path, monkeypatch):
    model = nn.Sequential(*[nn.Linear(10, 10, bias=False) for _ in range(5)])
    save(model.state_dict(), path)
    held = []
    records = []
    read = tensors.read_storage

    def spy(checkpoint, record, memory):
        records.append(record)
        held.append(sum(known.memory is not None for known in {id(r): r for r in records}.values()))
        read(checkpoint, record, memory)

    monkeypatch.setattr("tritensor.serialization.stream_into.read_storage", spy)
    load_into(model, path)
    assert held == [1] * 5


def test_load_into_changes_nothing_when_anything_does_not_fit(path):
    good = mlp().state_dict()
    missing = OrderedDict(list(good.items())[:-1])
    cases = {
        "Missing key": OrderedDict((key.replace("2.", "3."), value) for key, value in good.items()),
        'Missing key(s) in state_dict: "2.bias"': missing,
        "size mismatch": mlp(7).state_dict(),
        "holds a list and no state dict": [1],
        "no state dict": {1: 2},
        '"2.bias"': {**good, "2.bias": 7},
    }
    for words, state in cases.items():
        save(state, path)
        model = mlp()
        before = values(model)
        with pytest.raises(CheckpointError) as caught:
            load_into(model, path)
        assert words in str(caught.value)
        assert values(model) == before
    save(missing, path)
    assert load_into(mlp(), path, strict=False).missing_keys == ["2.bias"]


def test_load_into_changes_nothing_when_the_last_storage_is_damaged(path):
    save(mlp().state_dict(), path)
    data = bytearray(path.read_bytes())
    last = data.rindex(b"model/data/3", 0, data.index(b"PK\1\2")) + len("model/data/3")
    at = last + 4 + int.from_bytes(data[last + 2 : last + 4], "little")
    data[at] ^= 1
    path.write_bytes(data)
    model = mlp()
    before = values(model)
    with pytest.raises(CheckpointError, match="data/3"):
        load_into(model, path)
    assert values(model) == before


class Curious(nn.Linear):
    """A layer that looks at what it is given before it takes it."""

    def _load_from_state_dict(self, state_dict, prefix, *others):
        weight = state_dict[prefix + "weight"]
        self.seen = weight.dtype, str(weight.device), weight.shape, weight.ndim, weight.is_cuda
        super()._load_from_state_dict(state_dict, prefix, *others)


def test_a_module_may_look_at_what_is_still_in_the_file(path):
    save(nn.Linear(2, 3).state_dict(), path)
    model = Curious(2, 3)
    load_into(model, path)
    assert model.seen == (tritensor.float32, "cpu", (3, 2), 2, False)


# inspect -------------------------------------------------------------------------------------------------------------


def test_inspect_lists_what_is_in_a_checkpoint(path, capsys):
    plain = {"epoch": 3, "lr": [0.1, 0.2], "none": {}, "array": np.zeros(3), "note": "x" * 99}
    save({"model": mlp().state_dict(), "one": nn.Parameter(tritensor.ones(2)), **plain}, path)
    assert main([str(path)]) == 0
    shown = capsys.readouterr().out
    for words in (
        "float32 parameter",
        "model.0.weight",
        "[5, 3]",
        "cpu",
        "60 bytes",
        "epoch",
        "lr[1]",
        "0.2",
        "[3]",
        "PyTorch zip archive",
        "5 storages",
        "load() reads it",
    ):
        assert words in shown


def test_inspect_says_what_would_be_refused_and_why(path, capsys):
    attack = pickled(
        b"}(",
        text("weight"),
        tensor(),
        text("a"),
        name("os", "system"),
        text("x"),
        b"\x85R",
        text("b"),
        name("__main__", "Net"),
        b")\x81}b",
        text("c"),
        name("os", "system"),
        b"u",
        b"q\x00",
        name("__main__", "Odd"),
        b"(K\x01e(NNu(K\x01\x90\x86",
    )
    for data in (archive(attack), legacy(attack)):
        path.write_bytes(data)
        assert main([str(path)]) == 1
        shown = capsys.readouterr().out
        for words in (
            "weight",
            "[4]",
            "os.system (refused)",
            "__main__.Net (refused)",
            "GLOBAL os.system",
            "state_dict()",
        ):
            assert words in shown
        assert shown.count("GLOBAL os.system") == 1
    path.write_bytes(archive(pickled(tensor())).replace(DATA, bytes(16)))
    assert main([str(path)]) == 1
    assert "checksum" in capsys.readouterr().out
    path.write_bytes(archive(pickled(call("torch._utils", "_rebuild_parameter", b"N\x88N"))))
    assert main([str(path)]) == 1
    assert "_rebuild_parameter" in capsys.readouterr().out
    path.write_bytes(b"nothing")
    assert main([str(path)]) == 1
    assert "Invalid magic number" in capsys.readouterr().out


def test_inspect_of_other_files(tmp_path, capsys):
    save({"weight": tritensor.ones(2, 3)}, tmp_path / "model.safetensors")
    lines, refused = inspect(tmp_path / "model.safetensors")
    assert not refused
    assert any(line.split() == ["weight", "float32", "[2,", "3]", "cpu", "24", "bytes"] for line in lines)
    (tmp_path / "bad.safetensors").write_bytes(b"x")
    assert main([str(tmp_path / "bad.safetensors")]) == 1
    assert main([str(tmp_path / "absent.pt")]) == 2
    assert "No such file" in capsys.readouterr().err
    assert main([str(tmp_path)]) == 2
    shared = [1]
    save({"a": shared, "b": shared, "big": wrap(np.zeros(10**6))}, tmp_path / "shared.pt")
    assert "7.63 MiB" in "\n".join(inspect(tmp_path / "shared.pt")[0])
    capsys.readouterr()
    (tmp_path / "odd.pt").write_bytes(archive(pickled(b"}", text("a\x1b[31m\nb"), b"Ns")))
    main([str(tmp_path / "odd.pt")])
    assert "\x1b" not in capsys.readouterr().out


def test_inspect_is_a_command(path):
    save({"weight": tritensor.ones(2)}, path)
    command = [sys.executable, "-m", "tritensor", "inspect", str(path)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.getcwd()}, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "weight" in done.stdout


def test_inspect_into_a_closed_pipe_is_quiet(path):
    save({str(i): i for i in range(20_000)}, path)
    script = "import sys; from tritensor.serialization.inspect import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 0

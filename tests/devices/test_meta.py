"""Tensors of the device `meta`: shapes, strides and dtypes without elements."""

from __future__ import annotations

import copy
import io
import pickle
import tracemalloc
from typing import Any

import pytest

import tritensor as torch
from tritensor import nn, settings
from tritensor.operators import Operator
from tritensor.runtime import replay
from tritensor.types import dtypes

from ..declared.samples import dtypes_of, has_samples, samples
from ..declared.test_operators import OPERATORS, PAIRS, as_tuple, case_id, generator, on_cpu
from ..needs import needs_triton

CASES = [(op, torch.float32 if torch.float32 in dtypes_of(op) else dtypes_of(op)[0]) for op in OPERATORS if op.calls]
CASES += [(op, torch.complex64) for op in PAIRS]


def on_meta(value: Any) -> Any:
    return value.to("meta") if isinstance(value, torch.Tensor) else value


@pytest.mark.parametrize(("operator", "dtype"), [case for case in CASES if has_samples(case[0])], ids=case_id)
def test_operators(operator: Operator, dtype: dtypes.dtype) -> None:
    for sample in samples(operator, dtype, generator(operator.name, dtype.name)):
        inputs = on_cpu(sample)
        wanted = as_tuple(operator(*inputs, **sample.metadata))
        found = as_tuple(operator(*map(on_meta, inputs), **sample.metadata))
        for out, expected in zip(found, wanted, strict=True):
            assert out.is_meta and (out.shape, out.dtype) == (expected.shape, expected.dtype)


# ---- models -------------------------------------------------------------------------------------------------------


class Pictures(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one = nn.Sequential(nn.Conv2d(3, 8, 5, 2, 2, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
        self.two = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1), nn.GroupNorm(2, 8), nn.Dropout(0.1))
        self.end = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))

    def forward(self, x: Any) -> Any:
        x = self.one(x)
        return self.end(torch.relu(x + self.two(x)))


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.out = nn.Embedding(10, 16), nn.Linear(16, 10)
        self.layers = nn.LSTM(16, 8, 2, batch_first=True, bidirectional=True, dropout=0.1)

    def forward(self, x: Any) -> Any:
        return self.out(self.layers(self.table(x))[0])[:, -1]


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.out = nn.Transformer(16, 2, 1, 1, 32, batch_first=True), nn.Linear(16, 10)

    def forward(self, x: Any) -> Any:
        return self.out(self.body(x, x[:, 1:]))[:, 0]


MODELS = {
    Pictures: lambda: torch.randn(2, 3, 32, 32),
    Words: lambda: torch.zeros(2, 5, dtype=torch.int64),
    Pair: lambda: torch.randn(2, 5, 16),
}


def shapes(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.stride(), value.dtype
    if isinstance(value, dict):
        return {key: shapes(each) for key, each in value.items()}
    return [shapes(each) for each in value]


def trained(make: Any, input: Any, optimizer: Any) -> list[Any]:
    """The shapes of what a step of training leaves."""
    model = make()
    out = model(input())
    loss = nn.functional.cross_entropy(out, torch.zeros(2, dtype=torch.int64))
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    made = optimizer(model.parameters())
    made.step()
    made.step()
    gradients = [param.grad for param in model.parameters()]
    return shapes([out, loss, norm, gradients, [made.state[param] for param in model.parameters()], model.state_dict()])


@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, lambda params: torch.optim.SGD(params, 0.1, 0.9)])
@pytest.mark.parametrize("make", MODELS)
def test_models(make: Any, optimizer: Any) -> None:
    expected = trained(make, MODELS[make], optimizer)
    before = torch.get_rng_state()
    with torch.device("meta"):
        assert trained(make, MODELS[make], optimizer) == expected
    assert before.equal(torch.get_rng_state())


@pytest.mark.parametrize("name", ["Adadelta", "Adagrad", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"])
def test_optimizers(name: str) -> None:
    def make() -> Any:
        return nn.Sequential(nn.Linear(4, 10), nn.GELU())

    expected = trained(make, lambda: torch.ones(2, 4), getattr(torch.optim, name))
    with torch.device("meta"):
        assert trained(make, lambda: torch.ones(2, 4), getattr(torch.optim, name)) == expected


@needs_triton
@pytest.mark.parametrize("make", MODELS)
def test_beside_simulated_devices(make: Any) -> None:
    with torch.device("meta"):
        expected = trained(make, MODELS[make], torch.optim.AdamW)
        with torch.cuda.simulate(devices=1):
            assert trained(make, MODELS[make], torch.optim.AdamW) == expected
            assert torch.cuda.memory_allocated() == 0
            moved = torch.ones(3, device="cuda").to("meta")
            with pytest.raises(RuntimeError, match="Tensor on device cuda:0 is not on the expected device meta!"):
                moved + torch.ones(3, device="cuda")
            with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
                moved.cuda()


@pytest.mark.parametrize("setting", ["check", "debug"])
def test_settings(setting: str) -> None:
    with torch.device("meta"), getattr(settings, setting)(2 if setting == "debug" else True):
        trained(Words, MODELS[Words], torch.optim.AdamW)


def test_calls_that_are_repeated_on_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay.active, "on", True)
    expected = trained(Pictures, MODELS[Pictures], torch.optim.AdamW)
    with torch.device("meta"):
        assert [trained(Pictures, MODELS[Pictures], torch.optim.AdamW) for _ in range(2)] == [expected] * 2


def test_initialisers_draw_nothing() -> None:
    before, x = torch.get_rng_state(), torch.empty(6, 4, device="meta")
    for fill in (nn.init.trunc_normal_, nn.init.orthogonal_, nn.init.kaiming_normal_, nn.init.dirac_, nn.init.eye_):
        assert fill(x if fill is not nn.init.dirac_ else x[..., None]).is_meta
    assert nn.init.sparse_(x, 0.5) is x and nn.init.uniform_(x, generator=torch.Generator()) is x
    assert before.equal(torch.get_rng_state())


def test_large_matrices() -> None:
    x = torch.empty(30, 50_000, 20_000, device="meta")
    assert [each.shape[-2:] for each in torch.linalg.svd(x)[::2]] == [(50_000, 50_000), (20_000, 20_000)]
    assert torch.linalg.solve(x[:, :20_000], x[0, :20_000, :17]).shape == (30, 20_000, 17)
    assert torch.linalg.lu(x)[1].shape == (30, 50_000, 20_000) and torch.linalg.pinv(x).shape == x.mT.shape


def test_no_memory() -> None:
    tracemalloc.start()
    with torch.device("meta"):
        model = nn.Sequential(*[nn.Linear(50_000, 50_000, bias=False) for _ in range(4)])
        model(torch.empty(1_000, 50_000)).sum().backward()
        sum(param.numel() for param in model.parameters())
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1 << 20 and sum(param.grad.numel() for param in model.parameters()) == 10_000_000_000  # type: ignore[union-attr]


# ---- modules ------------------------------------------------------------------------------------------------------


def test_modules_get_memory() -> None:
    whole = nn.Linear(3, 2, bias=False)
    empty = nn.Linear(3, 2, bias=False, device="meta")
    assert all(each.is_meta and each.requires_grad for each in empty.parameters())
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        empty.to("cpu")
    with pytest.warns(
        UserWarning, match="for weight: copying from a non-meta parameter in the checkpoint to a meta parameter"
    ):
        empty.load_state_dict(whole.state_dict())
    assert empty.weight.is_meta
    made = copy.deepcopy(empty).to_empty(device="cpu")
    made.load_state_dict(whole.state_dict())
    assert torch.equal(made.weight, whole.weight)
    empty.load_state_dict(whole.state_dict(), assign=True)
    assert empty.weight.device.type == "cpu" and isinstance(empty.weight, nn.Parameter)
    assert torch.equal(empty(torch.ones(3)), whole(torch.ones(3)))
    assert whole.to("meta").weight.is_meta and whole(torch.ones(3, device="meta")).is_meta


def test_default_device() -> None:
    torch.set_default_device("meta")
    try:
        assert torch.get_default_device() == torch.device("meta")
        assert all(x.is_meta for x in (torch.ones(3), torch.tensor([1]), torch.rand(2), torch.arange(3), torch.eye(2)))
        assert not torch.zeros_like(torch.ones(2, device="cpu")).is_meta
    finally:
        torch.set_default_device(None)


def test_saving() -> None:
    held = {"x": nn.Parameter(torch.empty(3, 2, device="meta").T), "y": torch.empty(2, device="meta").half()}
    for make in (copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)), saved, lambda x: saved(x, "cpu")):
        assert shapes(make(held)) == shapes(held) and all(x.is_meta for x in make(held).values())
        assert isinstance(make(held)["x"], nn.Parameter) and make(held)["x"].requires_grad
    loaded = saved({"x": torch.ones(3, 2).T, "z": torch.ones(2, dtype=torch.complex64).conj()}, "meta")
    assert all(x.is_meta for x in loaded.values()) and loaded["x"].stride() == (1, 2)


def saved(value: Any, map_location: Any = None) -> Any:
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, map_location=map_location)


def test_views_share() -> None:
    x = torch.empty(4, 6, device="meta")
    y = x[1:, ::2].T
    assert (y.shape, y.stride(), y.storage_offset()) == ((3, 3), (2, 6), 6)
    assert y.untyped_storage().nbytes() == 96 and y.data_ptr() == 24 and x.data_ptr() == 0
    y.add_(1).copy_(torch.ones(3, 3)).normal_().clamp_(min=0)
    assert x._version == 4
    x[0], x[x > 0], x[torch.tensor([0, 1])] = 1, 2, 3
    assert torch.empty_like(x, device="cpu").shape == x.shape


# ---- beside PyTorch -----------------------------------------------------------------------------------------------

REFUSED = {
    "item": lambda t, x: x.sum().item(),
    "bool": lambda t, x: bool(x.sum()),
    "float": lambda t, x: float(x.sum()),
    "tolist": lambda t, x: x.tolist(),
    "numpy": lambda t, x: x.numpy(),
    "force": lambda t, x: x.numpy(force=True),
    "cpu": lambda t, x: x.to("cpu"),
    "out": lambda t, x: t.ones(3).copy_(x),
    "pinned": lambda t, x: x.pin_memory(),
    "mixed": lambda t, x: x + t.ones(3),
    "mixed with a number on meta": lambda t, x: t.ones(3) + x.sum(),
    "joined": lambda t, x: t.cat([x, t.ones(3)]),
    "layer": lambda t, x: t.nn.Linear(3, 2, device="meta")(t.ones(3)),
    "generator": lambda t, x: t.Generator("meta"),
    "equal": lambda t, x: t.allclose(x, x),
    "repeated": lambda t, x: x.repeat_interleave(t.ones(3, dtype=t.int64, device="meta")),
    "mask": lambda t, x: x[x > 0],
    "nonzero": lambda t, x: x.nonzero(),
}
ALLOWED = {
    "printed": lambda t, x: repr(x),
    "integers": lambda t, x: repr(x.long()),
    "none": lambda t, x: repr(x[:0].double()),
    "formatted": lambda t, x: f"{x.sum()}",
    "parameter": lambda t, x: repr(t.nn.Parameter(x)),
    "type": lambda t, x: x.type(),
    "storage": lambda t, x: repr(x.untyped_storage()),
    "number": lambda t, x: x + t.tensor(2.0),
    "generator": lambda t, x: t.rand(3, device="meta:0", generator=t.Generator()),
    "drawn": lambda t, x: (t.multinomial(x, 2), t.poisson(x), t.bernoulli(x), t.randperm(3)),
    "histogram": lambda t, x: t.histc(x, 5),
    "factors": lambda t, x: tuple(each.contiguous() for each in t.linalg.svd(x.expand(2, 4, 3))),
    "solved": lambda t, x: t.linalg.inv(x.expand(3, 3)).contiguous(),
    "transformed": lambda t, x: t.fft.rfft(x),
    "scattered": lambda t, x: x.masked_scatter(x > 0, x),
    "repeated": lambda t, x: x.repeat_interleave(t.ones(3, dtype=t.int64, device="meta"), output_size=5),
    "coordinates": lambda t, x: t.nonzero_static(x, size=4).flatten(),
    "exponential": lambda t, x: t.matrix_exp(x.expand(3, 3)).contiguous(),
    "sorted": lambda t, x: x.sort(),
}
DATA_DEPENDENT = {
    "unique": lambda t, x: x.unique(),
    "counts": lambda t, x: x.long().bincount(),
    "chosen": lambda t, x: x.masked_select(x > 0),
    "equal": lambda t, x: t.equal(x, x),
}


@pytest.mark.peer
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    peer = pytest.importorskip("torch")
    with pytest.raises(RuntimeError if name not in ("numpy",) else TypeError) as theirs:
        REFUSED[name](peer, peer.empty(3, device="meta"))
    with pytest.raises(type(theirs.value)) as ours:
        REFUSED[name](torch, torch.empty(3, device="meta"))
    words = str(theirs.value).replace("MetaFloatType", "torch.meta.FloatTensor").split(" This implementation")[0]
    assert str(ours.value).startswith(words.split(" (when")[0])


@pytest.mark.parametrize("name", DATA_DEPENDENT)
def test_results_that_depend_on_elements(name: str) -> None:
    with pytest.raises(NotImplementedError):
        DATA_DEPENDENT[name](torch, torch.empty(3, device="meta"))


def described(value: Any) -> Any:
    if isinstance(value, tuple):
        return [described(each) for each in value]
    return value if isinstance(value, str) else (tuple(value.shape), value.stride(), str(value.dtype).split(".")[1])


@pytest.mark.peer
@pytest.mark.parametrize("name", ALLOWED)
def test_allowed(name: str) -> None:
    peer = pytest.importorskip("torch")
    theirs = described(ALLOWED[name](peer, peer.empty(3, device="meta")))
    ours = described(ALLOWED[name](torch, torch.empty(3, device="meta")))
    assert ours == theirs if not isinstance(ours, str) else ours.replace("tritensor.", "torch.") == theirs

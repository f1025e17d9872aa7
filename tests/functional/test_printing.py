"""How tensors print: golden texts, options, and with torch installed the same text as PyTorch's for random tensors."""

from __future__ import annotations

import pickle

import ml_dtypes
import numpy as np
import pytest

import tritensor as torch
from tritensor.tensors import printing, wrap
from tritensor.types import dtypes

NAN, INF = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def options():
    yield
    torch.set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: torch.tensor([1.0, INF]), "tensor([1., inf])"),
        (lambda: torch.tensor([1.0, -INF, NAN]), "tensor([1., -inf, nan])"),
        (lambda: torch.tensor([0.5, INF]), "tensor([0.5000,    inf])"),
        (lambda: torch.tensor([0.0, -0.0]), "tensor([0., -0.])"),
        (lambda: torch.tensor([NAN, 0.0]), "tensor([nan, 0.])"),
        (lambda: torch.tensor([1.0, 1000.0]), "tensor([   1., 1000.])"),
        (lambda: torch.tensor([1.0, 1001.0]), "tensor([1.0000e+00, 1.0010e+03])"),
        (lambda: torch.tensor([1e-5]), "tensor([1.0000e-05])"),
        (lambda: torch.tensor([2e8]), "tensor([2.0000e+08])"),
        (lambda: torch.tensor([1e-4, 0.05]), "tensor([1.0000e-04, 5.0000e-02])"),
        (lambda: torch.tensor(2.5), "tensor(2.5000)"),
        (lambda: torch.tensor(3), "tensor(3)"),
        (lambda: torch.tensor([True, False]), "tensor([ True, False])"),
        (lambda: torch.tensor([1, -10]), "tensor([  1, -10])"),
        (lambda: torch.tensor([1 + 2j, -0.5j]), "tensor([1.+2.0000j, -0.-0.5000j])"),
        (lambda: torch.tensor([]), "tensor([])"),
        (lambda: torch.zeros(0, 3), "tensor([], size=(0, 3))"),
        (lambda: torch.zeros(0, dtype=torch.int64), "tensor([], dtype=tritensor.int64)"),
        (lambda: torch.zeros(2, 0, dtype=torch.uint8), "tensor([], size=(2, 0), dtype=tritensor.uint8)"),
        (lambda: torch.ones(2, dtype=torch.bfloat16), "tensor([1., 1.], dtype=tritensor.bfloat16)"),
        (lambda: torch.ones(1, requires_grad=True), "tensor([1.], requires_grad=True)"),
        (lambda: torch.ones(1, requires_grad=True) * 2, "tensor([2.], grad_fn=<MulBackward0>)"),
        (lambda: torch.tensor([[1, 2], [3, 4]]), "tensor([[1, 2],\n        [3, 4]])"),
        (lambda: torch.zeros(1, 2, 1), "tensor([[[0.],\n         [0.]]])"),
        (lambda: torch.zeros(2, 1, 1), "tensor([[[0.]],\n\n        [[0.]]])"),
        (lambda: torch.arange(1001), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
        (
            lambda: torch.zeros(7, 200)[:, :1].expand(7, 200),
            "tensor([[0., 0., 0.,  ..., 0., 0., 0.],\n        [0., 0., 0.,  ..., 0., 0., 0.],\n"
            "        [0., 0., 0.,  ..., 0., 0., 0.],\n        ...,\n        [0., 0., 0.,  ..., 0., 0., 0.],\n"
            "        [0., 0., 0.,  ..., 0., 0., 0.],\n        [0., 0., 0.,  ..., 0., 0., 0.]])",
        ),
        (
            lambda: torch.full((8,), 1.25, dtype=torch.float16),
            "tensor([1.2500, 1.2500, 1.2500, 1.2500, 1.2500, 1.2500, 1.2500, 1.2500],\n       dtype=tritensor.float16)",
        ),
        (
            lambda: torch.full((8,), 1.25, dtype=torch.float64, requires_grad=True),
            "tensor([1.2500, 1.2500, 1.2500, 1.2500, 1.2500, 1.2500, 1.2500, 1.2500],\n"
            "       dtype=tritensor.float64, requires_grad=True)",
        ),
    ],
)
def test_golden(make, text) -> None:
    assert repr(make()) == text and str(make()) == text


def test_device_is_shown() -> None:
    pytest.importorskip("triton")
    with torch.cuda.simulate(devices=2):
        assert repr(torch.tensor([1.0, 2.0], device="cuda:1")) == "tensor([1., 2.], device='cuda:1')"
        assert repr(torch.zeros(0, 2, dtype=torch.int8, device="cuda")) == (
            "tensor([], device='cuda:0', size=(0, 2), dtype=tritensor.int8)"
        )


def test_options() -> None:
    x = torch.tensor([1.23456, 100.0])
    torch.set_printoptions(precision=2)
    assert repr(x) == "tensor([  1.23, 100.00])"
    torch.set_printoptions(sci_mode=True)
    assert repr(x) == "tensor([1.23e+00, 1.00e+02])"
    torch.set_printoptions(profile="default", sci_mode=False)
    assert repr(torch.tensor([1e-5, 1.0])) == "tensor([0.0000, 1.0000])"
    torch.set_printoptions(profile="default")
    torch.set_printoptions(threshold=3, edgeitems=1, linewidth=20)
    assert repr(torch.arange(5)) == "tensor([0,  ..., 4])"
    torch.set_printoptions(profile="short")
    assert printing.options.precision == 2 and printing.options.edgeitems == 2
    torch.set_printoptions(profile="full")
    assert "..." not in repr(torch.zeros(1001))


def test_lines_break_where_pytorchs_do() -> None:
    x = torch.tensor([6274859154, 49889, 77, 5], dtype=torch.uint64)  # 80 columns with "torch.uint64"
    text = "tensor([6274859154,      49889,         77,          5], dtype=tritensor.uint64)"
    assert repr(x) == format(x, "") == text
    assert "\n" in repr(torch.tensor([62748591540, 49889, 77, 5], dtype=torch.uint64))


@pytest.mark.parametrize("name", ["Tensor", "Size", "dtype", "device", "finfo", "iinfo"])
def test_classes_name_the_package(name: str) -> None:
    kind = getattr(torch, name)
    assert repr(kind) == f"<class 'tritensor.{name}'>"
    assert pickle.loads(pickle.dumps(kind)) is kind


def test_values_of_such_classes_can_be_pickled() -> None:
    for value in (torch.zeros(2).shape, torch.float32, torch.device("cuda", 1)):
        assert pickle.loads(pickle.dumps(value)) == value
    assert pickle.loads(pickle.dumps(torch.ones(2))).tolist() == [1.0, 1.0]


def test_default_dtype_is_not_shown() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert repr(torch.ones(1)) == "tensor([1.])"
        assert repr(torch.ones(1, dtype=torch.float32)) == "tensor([1.], dtype=tritensor.float32)"
    finally:
        torch.set_default_dtype(torch.float32)


SHAPES = [(), (1,), (7,), (40,), (2, 3), (3, 1), (2, 2, 3), (0,), (2, 0, 3), (1001,), (300, 4), (2, 3, 4, 5)]


def _floats(rng: np.random.Generator, shape: tuple[int, ...], variant: int) -> np.ndarray:
    values = np.asarray(rng.standard_normal(shape))
    holes = np.asarray(rng.random(shape))
    return [
        values,
        values * 1e6,
        np.round(values * 10),
        values * 1e-6,
        np.where(holes < 0.3, NAN, values),
        np.where(holes < 0.3, np.where(holes < 0.1, -INF, INF), np.round(values)),
        values * 0,
        np.where(holes < 0.5, NAN, INF),
    ][variant]


def _random(rng: np.random.Generator, name: str, shape: tuple[int, ...], variant: int) -> np.ndarray:
    kind = getattr(torch, name)
    if name == "bool":
        values = rng.random(shape) > 0.5
    elif kind.category == dtypes.INTEGER:
        values = rng.integers(0 if name[0] == "u" else -100, (10, 100)[variant % 2], shape)
    elif kind.is_complex:
        values = _floats(rng, shape, variant) + 1j * _floats(rng, shape, (variant * 3) % 8)
    else:
        values = _floats(rng, shape, variant)
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(kind.numpy)


def _theirs(library, array: np.ndarray):
    if array.dtype == ml_dtypes.bfloat16:
        return library.from_numpy(array.astype(np.float32)).to(library.bfloat16)
    if array.dtype.name.startswith("float8"):
        return library.from_numpy(np.array(array).view(np.uint8)).view(getattr(library, array.dtype.name))
    return library.from_numpy(array.copy())


@pytest.mark.peer
@pytest.mark.parametrize("name", [entry.name for entry in dtypes.STORED])
@pytest.mark.parametrize("precision", [4, 2])
def test_same_text_as_torch(name: str, precision: int, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = pytest.importorskip("torch")
    # lines break by length, so the prefix must be as long as PyTorch's
    monkeypatch.setattr(dtypes.dtype, "__repr__", lambda self: f"torch.{self.name}")
    rng = np.random.default_rng(len(name))
    try:
        for library in (torch, reference):
            library.set_printoptions(precision=precision)
        for shape in SHAPES:
            for variant in range(8):
                with np.errstate(all="ignore"):
                    array = _random(rng, name, shape, variant)
                ours, theirs = wrap(array), _theirs(reference, array)
                if variant == 0 and getattr(torch, name).category >= dtypes.FLOATING:
                    ours.requires_grad_(), theirs.requires_grad_()
                assert repr(ours) == repr(theirs), (shape, variant)
    finally:
        reference.set_printoptions(profile="default")


@pytest.mark.parametrize("place", ["cpu", "cuda"])
def test_an_element_is_formatted_as_its_number(place: str) -> None:
    with torch.cuda.simulate(devices=1):
        x = torch.tensor(3.14159, device=place, requires_grad=True)
        loss = (x * 2).detach().requires_grad_()
        assert f"{x:.3f}" == "3.142" and f"{x}" == "3.141590118408203" and f"{loss:>8.2f}" == "    6.28"
        assert f"{x * 2:.1e}" == "6.3e+00"
        assert f"{torch.tensor(3, device=place):d} {torch.tensor(True, device=place)}" == "3 True"
        assert f"{torch.tensor(1 + 2j, device=place):.1f}" == "1.0+2.0j"


def test_other_tensors_are_formatted_as_they_print() -> None:
    x, weight = torch.tensor([1.5]), torch.nn.Parameter(torch.tensor(2.0))
    assert f"{x}" == "tensor([1.5000])"
    assert f"{weight}" == "Parameter containing:\ntensor(2., requires_grad=True)"
    for value, name in ((x, "Tensor"), (weight, "Parameter")):
        with pytest.raises(TypeError, match=rf"^unsupported format string passed to {name}\.__format__"):
            f"{value:.2f}"
    with pytest.raises(ValueError, match=r"^Unknown format code 'd' for object of type 'float'"):
        f"{torch.tensor(1.5):d}"


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("max", (0,), "values=tensor([4., 3.]),\nindices=tensor([1, 1])"),
        ("min", (1,), "values=tensor([1., 3.]),\nindices=tensor([0, 1])"),
        ("aminmax", (), "min=tensor(1.),\nmax=tensor(4.)"),
        ("sort", (), "values=tensor([[1., 2.],\n        [3., 4.]]),\nindices=tensor([[0, 1],\n        [1, 0]])"),
        ("topk", (1,), "values=tensor([[2.],\n        [4.]]),\nindices=tensor([[1],\n        [0]])"),
    ],
)
def test_named_results_print_and_can_be_pickled(name: str, arguments: tuple[int, ...], text: str) -> None:
    found = getattr(torch.tensor([[1.0, 2.0], [4.0, 3.0]]), name)(*arguments)
    assert repr(found) == str(found) == f"torch.return_types.{name}(\n{text})"
    assert type(found) is getattr(torch.return_types, name)
    other = pickle.loads(pickle.dumps(found))
    assert type(other) is type(found) and repr(other) == repr(found)


@pytest.mark.parametrize(
    ("elements", "text"),
    [
        ([0.0, 0.0], "tensor([0., 0.])"),
        ([0.0, -0.0, INF], "tensor([0., -0., inf])"),
        (0.0, "tensor(0.)"),
        ([0j], "tensor([0.+0.j])"),
        ([1 + 0j], "tensor([1.0000e+00+0.j])"),
        ([0.0, 1.0], "tensor([0.0000e+00, 1.0000e+00])"),
    ],
)
def test_zeros_alone_are_not_written_with_an_exponent(elements: object, text: str) -> None:
    torch.set_printoptions(sci_mode=True)
    assert repr(torch.tensor(elements)) == text

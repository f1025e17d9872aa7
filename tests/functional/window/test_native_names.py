"""PyTorch's lower-level spellings: what each gives, and beside PyTorch values, gradients, nodes and messages."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest

import tritensor as torch
from tests.functional.beside_torch import assert_alike
from tests.needs import needs_triton

F = torch.nn.functional


def test_pools_return_places_or_not() -> None:
    x = torch.tensor([[[1.0, 5.0, 2.0, 4.0]]])
    assert torch.max_pool1d(x, 2).tolist() == [[[5.0, 4.0]]]
    for found in (
        torch.max_pool1d_with_indices(x, 2),
        F.max_pool1d_with_indices(x, 2, None, 0, 1, False, False),
        F.max_pool1d_with_indices(x, kernel_size=2, return_indices=False),
        torch.adaptive_max_pool1d(x, 2),
        F.adaptive_max_pool1d_with_indices(x, 2),
    ):
        assert [each.tolist() for each in found] == [[[[5.0, 4.0]]], [[[1, 3]]]]
    picture = x.reshape(1, 1, 2, 2)
    assert torch.max_pool2d(picture, 2).item() == torch.max_pool3d(picture.unsqueeze(2), (1, 2, 2)).item() == 5.0
    samples = torch.zeros(1, 1, 2)
    largest, place = F.fractional_max_pool2d_with_indices(picture, 2, 1, None, False, samples)
    assert (largest.item(), place.item()) == (5.0, 1)
    assert list(inspect.signature(torch.max_pool2d).parameters)[-1] == "ceil_mode"
    assert inspect.signature(torch.max_pool1d_with_indices).return_annotation == "tuple[Tensor, Tensor]"


def test_dropouts_without_defaults() -> None:
    x = torch.ones(2, 3, 4)
    for name in ("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"):
        assert (getattr(torch, name)(x, 1.0, True) == 0).all() and (x == 1).all(), name
        assert getattr(torch, name)(x, 1.0, False) is x, name
        changed = x.clone()
        assert getattr(torch, f"{name}_")(changed, 1.0, True) is changed and (changed == 0).all(), name
        with pytest.raises(RuntimeError, match="dropout probability has to be between 0 and 1, but got 2"):
            getattr(torch, name)(x, 2, False)
    torch.manual_seed(0)
    kept = torch.feature_dropout(x, 0.5, True)
    assert (kept == kept[..., :1]).all() and set(kept.flatten().tolist()) == {0.0, 2.0}
    x = x.requires_grad_()
    out, mask = torch.native_dropout(x, 0.5, None)
    assert mask.dtype is torch.bool and 0 < mask.sum().item() < 24 and out.tolist() == (mask * 2.0).tolist()
    out.sum().backward()
    assert x.grad.tolist() == out.tolist()


@needs_triton
def test_on_a_simulated_device() -> None:
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 4, 5)).astype(np.float32))
    weight, bias = torch.ones(2, 5, 3), torch.arange(3.0)
    calls = (
        lambda x, w, b: torch.conv_tbc(x, w, b, 1),
        lambda x, w, b: torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)[2],
        lambda x, w, b: torch.native_group_norm(x, None, None, 2, 4, 5, 2, 1e-5)[1],
        lambda x, w, b: torch.native_layer_norm(x, (4, 5), None, None, 1e-5)[2],
        lambda x, w, b: torch.norm_except_dim(x, 2, 1),
        lambda x, w, b: torch.max_pool1d_with_indices(x, 2)[1],
        lambda x, w, b: torch.constant_pad_nd(x, (1, 2), 3.0),
    )
    with torch.cuda.simulate(devices=1):
        there = [each.to("cuda") for each in (x, weight, bias)]
        for call in calls:
            found = call(*there)
            assert found.is_cuda
            torch.testing.assert_close(found.cpu(), call(x, weight, bias))


ARRAYS = {"x": np.random.default_rng(0).standard_normal((2, 4, 6))}
PICTURES = {"x": np.random.default_rng(1).standard_normal((2, 3, 4, 5))}
CHANNELS = {"w": np.linspace(-1.0, 2.0, 4), "b": np.linspace(0.5, 1.5, 4)}
GRID = {"g": np.random.default_rng(2).uniform(-1.2, 1.2, (2, 3, 3, 2))}
THETA = {"t": np.random.default_rng(2).standard_normal((2, 2, 3))}
TBC = {"w": np.random.default_rng(3).standard_normal((2, 6, 3)), "b": np.linspace(0.5, 1.5, 3)}
KERNEL = {"w": np.random.default_rng(3).standard_normal((3, 2, 2, 2)), "b": np.linspace(0.5, 1.5, 3)}

EXPRESSIONS = [
    *((f"torch.max_pool1d{each}", ARRAYS) for each in ("(x, 2)", "(x, 3, None, 1)", "(x, kernel_size=2, stride=1)")),
    *((f"torch.max_pool1d_with_indices(x, 2, 1)[{i}]", ARRAYS) for i in range(2)),
    *((f"F.max_pool1d_with_indices(x, 2, 1)[{i}]", ARRAYS) for i in range(2)),
    *((f"torch.adaptive_max_pool1d(x, 3)[{i}]", ARRAYS) for i in range(2)),
    *((f"F.adaptive_max_pool1d_with_indices(x, 3, False)[{i}]", ARRAYS) for i in range(2)),
    ("torch.max_pool2d(x, 2, padding=1, ceil_mode=True)", PICTURES),
    ("torch.max_pool3d(x, 2)", PICTURES),
    ("F.max_pool2d_with_indices(x, 2, return_indices=False)[1]", PICTURES),
    ("F.max_pool3d_with_indices(x, 2)[0]", PICTURES),
    ("F.adaptive_max_pool2d_with_indices(x, (2, None))[0]", PICTURES),
    ("F.adaptive_max_pool3d_with_indices(x, 2)[1]", PICTURES),
    ("F.fractional_max_pool2d_with_indices(x, 2, 2, _random_samples=x.detach()[..., 0, :2].abs() % 1)[0]", PICTURES),
    ("F.fractional_max_pool3d_with_indices(x, 1, 2, None, False, x.detach()[:1, :2, 0, :3].abs() % 1)[1]", PICTURES),
    ("torch.avg_pool1d(x, 2, (), 1, True, False)", ARRAYS),
    ("torch.adaptive_avg_pool1d(x, 4)", ARRAYS),
    ("torch.conv_tbc(x, w, b)", {**ARRAYS, **TBC}),
    ("F.conv_tbc(x, w, b, pad=2)", {**ARRAYS, **TBC}),
    ("torch.convolution(x, w[:, :1], b, [1], [1], [1], False, [0], 3)", {**PICTURES, **KERNEL}),
    ("torch.convolution(x, x[:, :, :2, :1], None, [2, 1], [0], [1], False, [0], 1)", PICTURES),
    ("torch.convolution(x, w, b[:2], [2], [1], [1], True, [1, 0], 1)", {**PICTURES, **KERNEL}),
    ("torch.constant_pad_nd(x, (1, -1, 2, 0), 2.5)", PICTURES),
    ("torch.affine_grid_generator(t, (2, 1, 2, 3), True)", THETA),
    *((f"torch.grid_sampler{each}", {**PICTURES, **GRID}) for each in ("(x, g, 0, 0, False)", "_2d(x, g, 2, 2, True)")),
    ("torch.native_channel_shuffle(x.detach(), 2)", ARRAYS),
    ("F.native_channel_shuffle(x.detach(), 2)", ARRAYS),
    *((f"torch.norm_except_dim(x{each})", ARRAYS) for each in ("", ", 2, -1", ", 2, 1", ", 1, 2", ", 2, -2")),
    ("torch.layer_norm(x, (6,), None, None, 1e-5, False)", ARRAYS),
    ("torch.native_layer_norm(x, (4, 6), None, None, 1e-5)[0]", ARRAYS),
    *((f"torch.native_layer_norm(x.detach(), (6,), None, None, 1e-5)[{i}]", ARRAYS) for i in (1, 2)),
    ("torch.native_group_norm(x, w, b, 2, 4, 6, 2, 1e-5)[0]", {**ARRAYS, **CHANNELS}),
    *((f"torch.native_group_norm(x.float().detach(), None, None, 2, 4, 6, 4, 1e-5)[{i}]", ARRAYS) for i in (1, 2)),
    ("torch.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5)[0]", {**ARRAYS, **CHANNELS}),
    *((f"torch.native_batch_norm(x.detach(), None, None, None, None, True, 0.1, 1e-5)[{i}]", ARRAYS) for i in (1, 2)),
    *(
        (
            f"torch.native_batch_norm(x, None, None, *[x.detach()[0, :, 0].abs()] * 2, False, 0.1, 1e-5)[{i}]",
            ARRAYS,
        )
        for i in range(3)
    ),
    *((f"torch.native_dropout(x, 0.5, False)[{i}]", ARRAYS) for i in range(2)),
    *((f"torch.{name}(x * 1, 0.5, False)", ARRAYS) for name in ("dropout", "alpha_dropout", "feature_dropout")),
    *((f"torch.{name}(x * 1, 1.0, True)", ARRAYS) for name in ("dropout_", "feature_alpha_dropout_", "alpha_dropout_")),
]
REFUSED = [
    *(
        (f"F.fractional_max_pool2d_with_indices(x, 2, 2, None, True, x.detach()[{each}])", PICTURES)
        for each in (":1, :, 0, :2", ":, :2, 0, :2", "..., 0, :3")
    ),
    *((f"torch.max_pool1d(x, 2{each})", ARRAYS) for each in (", None, 0, 1, False, True", ", return_indices=True")),
    *((f"torch.max_pool2d({each})", ARRAYS) for each in ("[1], 2", "x, 0", "x, 2, 0")),
    ("torch.adaptive_max_pool1d(x, 2, True)", ARRAYS),
    ("F.max_pool2d_with_indices([1], 2)", ARRAYS),
    *((f"torch.{name}(x, 1.5, True)", ARRAYS) for name in ("dropout", "feature_dropout_", "native_dropout")),
    *((f"torch.{name}(x[0, 0], 0.5, True)", ARRAYS) for name in ("feature_dropout", "feature_alpha_dropout")),
    *(
        (f"torch.conv_tbc({each})", {**ARRAYS, **TBC})
        for each in ("x, w, None", "x[0], w, b", "x, w[0], b", "x, w, b[:2]")
    ),
    *((f"torch.conv_tbc({each})", {**ARRAYS, **TBC}) for each in ("x, w[:, :5], b", "x, w, b[:, None]", "x, w, b, -1")),
    *(
        (f"torch.convolution(x, {each}, 1)", {**PICTURES, **KERNEL})
        for each in (
            "w.view(2, 3, 2, 2), None, 1, [0], [1], False, [0]",
            "w.view(2, 3, 2, 2), None, [1], 'same', [1], False, [0]",
            "w[0], None, [1], [0], [1], False, [0]",
            "w[0, 0, 0], None, [1], [0], [1], False, [0]",
            "w, None, [1], [0], [1], False, [0]",
            "w, None, [1], [0], [1], True, [1]",
        )
    ),
    ("torch.constant_pad_nd(x, (1,))", ARRAYS),
    *((f"torch.affine_grid_generator({each}, False)", THETA) for each in ("t, (2, 1, 3)", "t[..., :2], (2, 1, 3, 4)")),
    ("torch.grid_sampler_3d(x, g, 0, 0, False)", {**PICTURES, **GRID}),
    (
        "torch.grid_sampler_2d(x[:, :, None], torch.cat([g, g[..., :1]], -1)[:, None], 0, 0, False)",
        {**PICTURES, **GRID},
    ),
    *((f"torch.native_channel_shuffle(x, {n})", ARRAYS) for n in (0, 3)),
    ("torch.norm_except_dim(x, 2, 5)", ARRAYS),
    *((f"torch.native_group_norm(x, None, None, 2, 4, {each}, 1e-5)", ARRAYS) for each in ("6, 3", "6, 0")),
    ("torch.native_layer_norm(x, (5,), None, None, 1e-5)", ARRAYS),
]
# nodes of compositions; results of which nobody takes gradients
NODES = ("norm_except", "layer_norm", "group_norm", "affine_grid", "constant_pad", "dropout", "fractional", "native_ch")
FIRST_ALONE = ("grid_sampler", "norm_except_dim(x, 1")  # other signs of zero; PyTorch fails


@pytest.mark.peer
@pytest.mark.parametrize(("text", "arrays"), EXPRESSIONS, ids=[text for text, _ in EXPRESSIONS])
def test_values_and_gradients_beside_torch(text: str, arrays: dict[str, np.ndarray]) -> None:
    pytest.importorskip("torch")
    facts = {"node": not any(each in text for each in NODES), "strides": "norm_except" not in text}
    assert_alike(text, arrays, orders=2 - any(each in text for each in FIRST_ALONE), tolerance=1e-5, **facts)


@pytest.mark.peer
@pytest.mark.parametrize(("text", "arrays"), REFUSED, ids=[text for text, _ in REFUSED])
def test_messages_beside_torch(text: str, arrays: dict[str, np.ndarray]) -> None:
    pytest.importorskip("torch")
    assert_alike(text, arrays)


@pytest.mark.peer
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("parameters", [None, "float32", "the input's"])
def test_dtypes_of_statistics_beside_torch(kind: str, parameters: str | None) -> None:
    found = []
    for library in (torch, pytest.importorskip("torch")):
        x = library.arange(48.0).reshape(2, 4, 6).to(getattr(library, kind))
        if parameters is None:
            channels, columns = (None, None), (None, None)
        else:
            dtype = getattr(library, kind if parameters == "the input's" else parameters)
            channels, columns = ((library.ones(size, dtype=dtype),) * 2 for size in (4, 6))
        results = (
            *library.native_layer_norm(x, (6,), *columns, 1e-5),
            *library.native_group_norm(x, *channels, 2, 4, 6, 2, 1e-5),
            *library.native_batch_norm(x, *channels, None, None, True, 0.1, 1e-5),
        )
        found.append([(str(each.dtype).rpartition(".")[2], each.float().numpy()) for each in results])
    for (dtype, value), (wanted, expected) in zip(*found, strict=True):
        assert dtype == wanted
        np.testing.assert_allclose(value, expected, 2e-2 if kind != "float32" else 1e-5, 1e-6)


@pytest.mark.peer
def test_parameters_beside_torch() -> None:
    reference = pytest.importorskip("torch")
    declared = ast.parse((Path(reference.__file__).parent / "_C" / "_VariableFunctions.pyi").read_text())
    names = {each for text, _ in EXPRESSIONS for each in [text.partition("(")[0]] if each.startswith("torch.")}
    names |= {"torch.feature_dropout_", "torch.feature_alpha_dropout"}
    for node in declared.body:
        if isinstance(node, ast.FunctionDef) and f"torch.{node.name}" in names:
            wanted = [each.arg for each in (*node.args.args, *node.args.kwonlyargs) if each.arg != "out"]
            found = inspect.signature(getattr(torch, node.name)).parameters
            assert list(found) == wanted, node.name
            assert sum(each.default is not each.empty for each in found.values()) == len(node.args.defaults), node.name

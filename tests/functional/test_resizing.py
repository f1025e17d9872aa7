"""`interpolate`: values, formats, gradients, errors; kernels beside references; PyTorch side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn, settings

from ..needs import needs_triton
from .beside_torch import assert_alike

F = nn.functional
MODES = {1: ["nearest", "nearest-exact", "linear", "area"], 3: ["nearest", "nearest-exact", "trilinear", "area"]}
MODES[2] = ["nearest", "nearest-exact", "bilinear", "bicubic", "area"]


def test_values() -> None:
    x = torch.tensor([[[1.0, 2.0, 4.0]]])
    assert F.interpolate(x, 6).tolist() == [[[1, 1, 2, 2, 4, 4]]]
    assert F.interpolate(x, 2).tolist() == [[[1, 2]]] and F.interpolate(x, 2, mode="nearest-exact").tolist() == [
        [[1, 4]]
    ]
    assert F.interpolate(x, 5, mode="linear", align_corners=True).tolist() == [[[1, 1.5, 2, 3, 4]]]
    assert F.interpolate(x, 6, mode="linear").tolist() == [[[1, 1.25, 1.75, 2.5, 3.5, 4]]]
    assert F.interpolate(x, 2, mode="area").tolist() == [[[1.5, 3]]]
    cubic = F.interpolate(torch.tensor([[[[0.0, 1.0, 0.0]]]]), (1, 5), mode="bicubic", align_corners=True)
    assert cubic.tolist() == [[[[0, 0.59375, 1, 0.59375, 0]]]]
    smooth = F.interpolate(torch.tensor([[[[0.0, 0.0, 8.0, 0.0]]]]), (1, 2), mode="bilinear", antialias=True)
    assert smooth.flatten().tolist() == pytest.approx([8 / 7, 24 / 7])


def test_a_factor_that_is_not_the_ratio_of_sizes() -> None:
    """In one and three dimensions "nearest" goes by the factor even where the size is doubled; filters copy."""
    x = torch.tensor([[[1.0, 2.0]]])
    assert F.interpolate(x, scale_factor=2.3).tolist() == [[[1, 1, 1, 2]]]
    assert F.interpolate(x, scale_factor=2.3, recompute_scale_factor=True).tolist() == [[[1, 1, 2, 2]]]
    assert F.interpolate(x[None], scale_factor=(1, 2.3)).tolist() == [[[[1, 1, 2, 2]]]]
    assert F.interpolate(x[None, None], scale_factor=(1, 1, 2.3)).tolist() == [[[[[1, 1, 1, 2]]]]]
    assert F.interpolate(x[None], scale_factor=1.01, mode="bicubic", antialias=True).tolist() == [x.tolist()]


def test_constants_stay_constant(device) -> None:
    for rank, modes in MODES.items():
        x = torch.full((2, 3, *(5, 4, 3)[:rank]), 2.5, device=device)
        for mode in modes:
            out = F.interpolate(x, (3, 7, 2)[:rank], mode=mode)
            assert out.device.type == device.type and torch.allclose(out, torch.full_like(out, 2.5))


@pytest.mark.sampled(1)
@needs_triton
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "area", "lanczos"])
def test_kernels_in_every_layout(mode: str) -> None:
    options: dict[str, Any] = {"mode": mode, "antialias": mode == "lanczos"}
    base = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 3, 7, 10)).astype(np.float32))
    with torch.cuda.simulate(devices=1), settings.block(256):
        for view in (
            lambda x: x,
            lambda x: x.contiguous(memory_format=torch.channels_last),
            lambda x: x.transpose(2, 3),
            lambda x: x[:, :, 1::2, 2:],
            lambda x: x[:1].expand(2, 3, 7, 10),
            lambda x: x.bfloat16(),
            lambda x: x[:0],
        ):
            x, on_device = view(base), view(base.to("cuda"))
            for size in ((5, 13), (3, 2)):
                x, on_device = (each.detach().requires_grad_() for each in (x, on_device))
                expected = F.interpolate(x, size, **options)
                found = F.interpolate(on_device, size, **options)
                found.sum().backward()
                expected.sum().backward()
                assert found.stride() == expected.stride()
                tolerance = 1e-2 if x.dtype is torch.bfloat16 else 1e-5
                assert torch.allclose(found.cpu(), expected, tolerance, tolerance)
                assert torch.allclose(on_device.grad.cpu(), x.grad, tolerance, 10 * tolerance)


def test_large_inputs_are_computed_in_pieces() -> None:
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((7, 5, 50, 60)).astype(np.float32))
    for mode in MODES[2]:
        whole = F.interpolate(x, (120, 90), mode=mode)
        parts = [F.interpolate(x[i : i + 1, j : j + 1], (120, 90), mode=mode) for i in range(7) for j in range(5)]
        assert torch.allclose(whole.reshape(35, 1, 120, 90), torch.cat(parts), atol=1e-6)


def test_endless_elements_stay_where_they_are() -> None:
    x = torch.zeros(1, 1, 6, 6)
    x[0, 0, 2, 3] = torch.inf
    for mode in ("bilinear", "area"):
        out = F.interpolate(x, (9, 4), mode=mode)
        assert (~torch.isfinite(out)).sum().item() < 12 and out[0, 0, -1].tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_bytes(mode: str) -> None:
    x = torch.tensor([[[[0, 255], [255, 0]]]], dtype=torch.uint8)
    out = F.interpolate(x, (2, 4), mode=mode)
    assert out.dtype is torch.uint8 and out[0, 0, 0, 0].item() == 0 and out[0, 0, 0, 3].item() == 255


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({}, ValueError, "either size or scale_factor should be defined"),
        ({"size": 3, "scale_factor": 2}, ValueError, "only one of size or scale_factor should be defined"),
        (
            {"size": 3, "align_corners": False},
            ValueError,
            "align_corners option can only be set with the interpolating",
        ),
        ({"size": (3,)}, ValueError, "Input and output must have the same number of spatial dimensions, but got input"),
        (
            {"scale_factor": (2.0,)},
            ValueError,
            "Input and scale_factor must have the same number of spatial dimensions",
        ),
        ({"size": 3, "recompute_scale_factor": True}, ValueError, "recompute_scale_factor is not meaningful with an"),
        (
            {"size": 3, "antialias": True},
            ValueError,
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos",
        ),
        ({"size": 3, "mode": "lanczos"}, ValueError, "Lanczos mode requires antialias=True"),
        ({"size": (0, 3)}, RuntimeError, r"Input and output sizes .* got input \(H: 4, W: 6\) output \(H: 0, W: 3\)"),
        ({"scale_factor": 0.1}, RuntimeError, "Input and output sizes should be greater than 0"),
        ({"size": (2.5, 3)}, TypeError, "expected size to be one of int or Tuple"),
        ({"size": 2.5}, TypeError, "argument 'size' .* must be int or a sequence of ints, not float"),
        ({"scale_factor": "2"}, TypeError, "argument 'scale_factor' .* must be float"),
        ({"size": 3, "mode": "linear"}, NotImplementedError, "Got 4D input, but linear mode needs 3D input"),
        ({"size": 3, "mode": "cubic"}, NotImplementedError, r"Input Error: Only 3D, 4D and 5D .* \(got cubic\)"),
        ({"size": (-1, 3), "mode": "area"}, RuntimeError, "elements of output_size must be greater than or equal to 0"),
    ],
)
def test_bad_options(options: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        F.interpolate(torch.ones(2, 3, 4, 6), **options)


def test_bad_inputs() -> None:
    for x, kind, words in (
        (torch.ones(2, 3), NotImplementedError, r"Only 3D, 4D and 5D input Tensors supported \(got 2D\)"),
        (torch.ones(2, 0, 4, 6), RuntimeError, r"Non-empty 4D data tensor expected but got a tensor with sizes \[2, 0"),
        (torch.ones(2, 3, 0), RuntimeError, r"should be greater than 0, but got input \(W: 0\) and output \(W: 3\)"),
        (
            torch.ones(2, 3, 4, dtype=torch.int32),
            NotImplementedError,
            "\"upsample_nearest1d\" not implemented for 'Int'",
        ),
    ):
        with pytest.raises(kind, match=words):
            F.interpolate(x, (3,) * max(x.ndim - 2, 0))
    with pytest.raises(RuntimeError, match="Expected input to have non-zero size for non-batch dimensions"):
        F.interpolate(torch.ones(1, 1, 0), 2, mode="area")


def test_layers() -> None:
    x = torch.arange(4.0).view(1, 1, 2, 2)
    assert repr(nn.Upsample(scale_factor=2)) == "Upsample(scale_factor=2.0, mode='nearest')"
    assert repr(nn.Upsample((3, 4), mode="bilinear")) == "Upsample(size=(3, 4), mode='bilinear')"
    assert (
        repr(nn.UpsamplingNearest2d(scale_factor=(2, 3)))
        == "UpsamplingNearest2d(scale_factor=(2.0, 3.0), mode='nearest')"
    )
    assert nn.UpsamplingNearest2d(scale_factor=(1, 2))(x).tolist() == [[[[0, 0, 1, 1], [2, 2, 3, 3]]]]
    assert nn.UpsamplingBilinear2d((2, 3))(x).tolist() == [[[[0, 0.5, 1], [2, 2.5, 3]]]]
    assert nn.Upsample(3, mode="area")(x).shape == (1, 1, 3, 3)


def test_older_names_warn() -> None:
    x = torch.arange(2.0).view(1, 1, 1, 2)
    for name, options in (("upsample", {"mode": "bilinear"}), ("upsample_nearest", {}), ("upsample_bilinear", {})):
        with pytest.warns(UserWarning, match=f"`nn.functional.{name}` is deprecated"):
            assert getattr(F, name)(x, (1, 4), **options).shape == (1, 1, 1, 4)


@pytest.mark.peer
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_beside_torch(rank: int) -> None:
    pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    sizes = [(4, 6, 5), (8, 3, 7), (1, 2, 1), (12, 9, 10), (4, 3, 5)]
    for kind, tolerance in ((np.float64, 1e-9), (np.float32, 2e-5)):
        x = rng.standard_normal((2, 3, 4, 6, 5)[: rank + 2]).astype(kind)
        for mode in MODES[rank]:
            corners: tuple[bool | None, ...] = (None, True, False) if mode.endswith(("linear", "cubic")) else (None,)
            targets = [f"{size[:rank]}" for size in sizes]
            targets += [f"scale_factor={factor}" for factor in (2, 0.7, 1.3)]
            targets.append(f"scale_factor={(1.6, 0.6, 2.3)[:rank]}, recompute_scale_factor=True")
            for target in targets:
                for corner in corners:
                    text = f"F.interpolate(x, {target}, mode='{mode}', align_corners={corner})"
                    for last in (False, True) if rank == 2 else (False,):
                        same = rank > 1 or mode != "area"
                        assert_alike(text, {"x": x}, last=last, orders=1 + last, tolerance=tolerance, node=same)


@pytest.mark.peer
@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
def test_antialias_beside_torch(mode: str) -> None:
    pytest.importorskip("torch")
    x = np.random.default_rng(1).standard_normal((2, 3, 11, 16))
    for corner in (False, True) if mode != "lanczos" else (False,):
        for target in ("(5, 7)", "(3, 2)", "(1, 1)", "(20, 12)", "scale_factor=0.4", "scale_factor=(0.3, 1.5)"):
            text = f"F.interpolate(x, {target}, mode='{mode}', align_corners={corner}, antialias=True)"
            for kind, tolerance in ((np.float64, 1e-9), (np.float32, 2e-5)):
                assert_alike(text, {"x": x.astype(kind)}, last=kind is np.float64, orders=1, tolerance=tolerance)


@pytest.mark.peer
def test_bytes_beside_torch() -> None:
    peer = pytest.importorskip("torch")
    x = np.random.default_rng(1).integers(0, 256, (2, 3, 9, 8)).astype(np.uint8)
    for mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        for size in ((5, 7), (18, 16)):
            theirs = peer.nn.functional.interpolate(peer.from_numpy(x), size, mode=mode).numpy().astype(int)
            ours = F.interpolate(torch.from_numpy(x), size, mode=mode).numpy().astype(int)
            assert abs(ours - theirs).max() <= (0 if "nearest" in mode else 1)  # PyTorch computes in fixed point


@pytest.mark.peer
@pytest.mark.parametrize("rank", MODES)
def test_factors_beside_torch(rank: int) -> None:
    peer = pytest.importorskip("torch")
    smooth = ["bilinear aa", "bicubic aa", "lanczos aa"] if rank == 2 else []
    for mode, _, antialias in (each.partition(" ") for each in MODES[rank] + smooth):
        for old, factor in ((2, 2.3), (3, 1.01), (70, 1.01), (5, 0.7), (3, 2), (5, 1.5), (4, 0.99), (65, 2.01)):
            for channels in (1, 4):
                array = np.random.default_rng(old).standard_normal((1, channels, *(3, 2)[: rank - 1], old))
                made = []
                for library in (torch, peer):
                    x = library.from_numpy(array)
                    if channels > 1 and rank > 1:
                        x = x.contiguous(memory_format=(library.channels_last, library.channels_last_3d)[rank - 2])
                    options = {"mode": mode, "antialias": bool(antialias)}
                    made.append(
                        library.nn.functional.interpolate(x, None, (*(1.5, 2.5)[: rank - 1], factor), **options)
                    )
                np.testing.assert_allclose(
                    made[0].numpy(), made[1].numpy(), 1e-5, 1e-9, err_msg=f"{mode} {old} {factor}"
                )

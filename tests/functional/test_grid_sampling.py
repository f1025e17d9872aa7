"""`grid_sample` and `affine_grid`: values, gradients of both orders, devices, errors; PyTorch side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn, settings

from ..needs import needs_triton
from .beside_torch import assert_alike

F = nn.functional
MODES = ["bilinear", "nearest", "bicubic"]
PADDINGS = ["zeros", "border", "reflection"]


def drawn(*shape: int, scale: float = 1.0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(len(shape)).uniform(-scale, scale, shape))


def test_values() -> None:
    picture = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    grid = torch.tensor([[[[-1.0, -1.0], [0.0, 0.0], [1.0, -1.0], [3.0, 0.0]]]])
    assert F.grid_sample(picture, grid, align_corners=True).flatten().tolist() == [1, 2.5, 2, 0]
    assert F.grid_sample(picture, grid, align_corners=False).flatten().tolist() == [0.25, 2.5, 0.5, 0]
    assert F.grid_sample(picture, grid, padding_mode="border", align_corners=False).flatten().tolist() == [1, 2.5, 2, 3]
    mirrored = F.grid_sample(picture, grid, "nearest", "reflection", True)
    assert mirrored.flatten().tolist() == [1, 1, 2, 1]
    volume = torch.arange(8.0).view(1, 1, 2, 2, 2)
    corners = torch.tensor([[-1.0, -1, -1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1], [0, 0, 0]]).view(1, 1, 1, 5, 3)
    assert F.grid_sample(volume, corners, align_corners=True).flatten().tolist() == [0, 1, 2, 4, 3.5]


def test_the_identity_gives_the_picture_back() -> None:
    x = drawn(2, 3, 4, 5)
    for corners in (False, True):
        theta = torch.tensor([[[1.0, 0, 0], [0, 1, 0]]] * 2, dtype=torch.float64)
        grid = F.affine_grid(theta, (2, 3, 4, 5), align_corners=corners)
        for mode in MODES:
            assert torch.allclose(F.grid_sample(x, grid, mode, align_corners=corners), x)


@pytest.mark.thorough
@needs_triton
@pytest.mark.parametrize("mode", MODES)
def test_kernels_agree_with_references(mode: str) -> None:
    x, grid = drawn(2, 3, 5, 6), drawn(2, 7, 9, 2, scale=1.4)[..., :2]
    with torch.cuda.simulate(devices=1), settings.block(128):
        for view in (lambda x: x, lambda x: x.contiguous(memory_format=torch.channels_last), lambda x: x.float()):
            found: list[Any] = []
            for device in ("cpu", "cuda"):
                inputs = [view(x.to(device)), grid.to(device).to(view(x).dtype)]
                inputs = [each.detach().requires_grad_() for each in inputs]
                out = F.grid_sample(*inputs, mode, "reflection", False)
                out.backward(torch.cos(out.detach() * 20))
                found.append([each.detach().cpu() for each in (out, *[each.grad for each in inputs])])
            for ours, wanted in zip(*found, strict=True):
                assert torch.allclose(ours, wanted, 1e-4, 1e-4)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", MODES)
def test_gradients_match_finite_differences(mode: str, padding: str) -> None:
    x, grid = drawn(1, 2, 3, 4).requires_grad_(), drawn(1, 2, 2, 2, scale=1.3).requires_grad_()
    call = lambda x, grid: F.grid_sample(x, grid, mode, padding, False)  # noqa: E731
    assert torch.autograd.gradcheck(call, (x, grid)) and torch.autograd.gradgradcheck(call, (x, grid))


def test_sums_at_places_have_the_same_bits_in_every_run() -> None:
    x, grid = drawn(1, 2, 4, 4).float(), drawn(1, 30, 30, 2).float()
    found = []
    for _ in range(2):
        leaf = x.clone().requires_grad_()
        F.grid_sample(leaf, grid, align_corners=False).sum().backward()
        found.append(leaf.grad)
    assert torch.equal(*found)


def test_no_coordinate_is_a_number() -> None:
    """NaN and infinities: as in PyTorch they do not fail, and read nothing or the edge."""
    x = torch.ones(1, 1, 2, 2)
    grid = torch.tensor([[[[torch.nan, 0.0], [torch.inf, 0.0], [1e20, 0.0]]]])
    assert F.grid_sample(x, grid, "nearest", align_corners=False).flatten().tolist() == [0, 0, 0]
    assert F.grid_sample(x, grid, padding_mode="border", align_corners=False).flatten().tolist() == [1, 1, 1]
    assert F.grid_sample(x, grid, align_corners=False).isnan().flatten().tolist() == [True, True, False]


@pytest.mark.parametrize("shape", [(0, 3, 4, 5), (2, 0, 4, 5)])
def test_empty_inputs(shape: tuple[int, ...], device) -> None:
    x = torch.ones(shape, device=device, requires_grad=True)
    out = F.grid_sample(x, torch.zeros(shape[0], 2, 3, 2, device=device), align_corners=False)
    assert out.shape == (*shape[:2], 2, 3)
    out.sum().backward()
    assert x.grad.shape == shape
    assert F.grid_sample(torch.ones(1, 1, 2, 2), torch.ones(1, 0, 3, 2), align_corners=False).shape == (1, 1, 0, 3)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (
            "F.grid_sample(x, g, 'cubic')",
            ValueError,
            "expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: 'cubic'",
        ),
        ("F.grid_sample(x, g, 'nearest', 'wrap')", ValueError, "expected padding_mode to be 'zeros', 'border', or"),
        (
            "F.grid_sample(x[:1], g)",
            RuntimeError,
            "expected grid and input to have same batch size, but got input with",
        ),
        (
            "F.grid_sample(x, g[..., :1])",
            RuntimeError,
            "expected grid to have size 2 in last dimension, but got grid with",
        ),
        ("F.grid_sample(x[:, 0], g)", RuntimeError, "expected grid to have size 1 in last dimension"),
        ("F.grid_sample(x, g[0, :2])", RuntimeError, "expected 4D or 5D input and grid with same number of dimensions"),
        (
            "F.grid_sample(x[:, :, :0], g)",
            RuntimeError,
            "expected input to have non-empty spatial dimensions, but input",
        ),
        ("F.grid_sample(v, v[..., :3], 'bicubic')", RuntimeError, "bicubic interpolation only supports 4D input"),
        ("F.grid_sample(x.int(), g)", NotImplementedError, "\"grid_sampler_2d\" not implemented for 'Int'"),
        ("F.grid_sample(x.double(), g)", RuntimeError, "expected scalar type Double but found Float"),
        ("F.grid_sample(x, 3)", TypeError, r"grid_sampler\(\): argument 'grid' .* must be Tensor, not int"),
        ("F.affine_grid(t.int(), (2, 3, 4, 5))", ValueError, "Expected theta to have floating point type, but got"),
        (
            "F.affine_grid(t, (2, 3, 4))",
            NotImplementedError,
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D",
        ),
        (
            "F.affine_grid(t[0], (2, 3, 4, 5))",
            ValueError,
            "Expected a batch of 2D affine matrices of shape Nx2x3 for size",
        ),
        ("F.affine_grid(t, (2, 3, 0, 5))", ValueError, "Expected non-zero, positive output size. Got"),
        (
            "F.affine_grid(t, (3, 3, 4, 5))",
            RuntimeError,
            "Expected size for first two dimensions of batch2 tensor to be",
        ),
        ("F.affine_grid(t, (2, 3, 4.5, 5))", TypeError, "affine_grid_generator.*argument 'size' failed to unpack"),
    ],
)
@pytest.mark.filterwarnings("ignore:Default grid_sample")
def test_bad_input(call: str, kind: type[Exception], words: str) -> None:
    x, g, t, v = torch.ones(2, 3, 4, 5), torch.ones(2, 2, 2, 2), torch.ones(2, 2, 3), torch.ones(2, 3, 2, 2, 3)
    with pytest.raises(kind, match=words):
        eval(call, {"F": F, "x": x, "g": g, "t": t, "v": v})


def test_defaults_warn() -> None:
    with pytest.warns(UserWarning, match="Default grid_sample and affine_grid behavior has changed"):
        F.grid_sample(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2))
    with pytest.warns(UserWarning, match="Default grid_sample and affine_grid behavior has changed"):
        F.affine_grid(torch.ones(1, 2, 3), (1, 1, 2, 2))
    with pytest.warns(UserWarning, match="affine_grid behavior has changed for unit-size grids"):
        F.affine_grid(torch.ones(1, 2, 3), (1, 1, 1, 2), align_corners=True)


@pytest.mark.peer
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", MODES)
def test_beside_torch(mode: str, padding: str) -> None:
    pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    for kind, tolerance in ((np.float64, 1e-9), (np.float32, 1e-4)):
        for corners in (False, True):
            text = f"F.grid_sample(x, g, '{mode}', '{padding}', {corners})"
            x, g = rng.standard_normal((2, 3, 4, 6)).astype(kind), rng.uniform(-1.6, 1.6, (2, 5, 7, 2)).astype(kind)
            for last in (False, True):
                assert_alike(text, {"x": x, "g": g}, last=last, orders=1, tolerance=tolerance)
            edges = np.array([-1, 1, 0, 0.5], kind)
            at_edges = np.stack(np.meshgrid(edges, edges), -1)[None].repeat(2, 0)
            assert_alike(text, {"x": x, "g": at_edges}, orders=1, tolerance=tolerance, first=mode != "bicubic")
            if mode != "bicubic":
                v, h = (
                    rng.standard_normal((2, 3, 3, 4, 6)).astype(kind),
                    rng.uniform(-1.6, 1.6, (2, 2, 5, 4, 3)).astype(kind),
                )
                assert_alike(text, {"x": v, "g": h}, orders=1, tolerance=tolerance)


@pytest.mark.peer
def test_affine_grid_beside_torch() -> None:
    pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    for rank, size in ((2, (2, 3, 4, 5)), (3, (2, 1, 4, 5, 3)), (2, (2, 3, 1, 1)), (3, (2, 3, 1, 2, 2))):
        for kind, tolerance in ((np.float64, 1e-9), (np.float32, 1e-5)):
            t = rng.standard_normal((2, rank, rank + 1)).astype(kind)
            for corners in (False, True):
                assert_alike(f"F.affine_grid(t, {size}, {corners})", {"t": t}, orders=1, tolerance=tolerance)

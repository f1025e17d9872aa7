"""`_scaled_mm` and `scaled_mm`: products of float8 matrices with their scales."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import settings
from tritensor.errors import ShapeError, UnsupportedError
from tritensor.nn import functional as F

from ...needs import needs_triton

E4, E5 = "float8_e4m3fn", "float8_e5m2"
SIZES: list[Any] = [(16, 32, 16), (3, 40, 5)]
SIZES += [pytest.param(sizes, marks=pytest.mark.thorough) for sizes in ((64, 256, 96), (1, 64, 48), (5, 16, 1))]
# of the largest element, by the dtype of the result
BOUNDS = {"float32": 1e-6, "bfloat16": 8e-3, "float16": 1e-3, None: 7e-2}


@pytest.fixture(params=["cpu", *[pytest.param(name, marks=needs_triton) for name in ("sm_90", "sm_80")]])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The CPU, a simulated card that multiplies float8, and one that does not."""
    if request.param == "cpu":
        yield "cpu"
    else:
        with torch.cuda.simulate(devices=1, capability=(int(request.param[3]), 0)):
            yield "cuda"


def operands(
    library: Any, sizes: tuple[int, int, int], kinds: tuple[str, str], by_line: bool, device: str
) -> list[Any]:
    """Matrices and scales, of random numbers."""
    rng = np.random.default_rng(3)
    (m, k, n), (first, second) = sizes, kinds
    a, b = rng.standard_normal((m, k)) * 4, rng.standard_normal((n, k))
    scales = (rng.random((m, 1)), rng.random((1, n))) if by_line else (np.array(2.0), np.array([[0.5]]))
    a, b, *scales = (library.tensor(each.astype(np.float32)).to(device) for each in (a, b, *scales))
    return [a.to(getattr(library, first)), b.to(getattr(library, second)).t(), *scales]


def close(got: Any, expected: Any, kind: str | None) -> None:
    got, expected = (each.cpu().double().numpy() for each in (got, expected))
    np.testing.assert_allclose(got, expected, rtol=0, atol=BOUNDS[kind] * np.nanmax(np.abs(expected)))


@pytest.mark.parametrize("by_line", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_products_are_those_of_float32(sizes: tuple[int, int, int], by_line: bool, device: str) -> None:
    a, b, down, across = operands(torch, sizes, (E4, E5), by_line, device)
    bias = torch.arange(sizes[2], device=device).float()
    exact = a.float().cpu() @ b.float().cpu() * down.cpu() * across.cpu()
    for kind in BOUNDS:
        found = torch._scaled_mm(a, b, down, across, out_dtype=kind and getattr(torch, kind))
        assert found.dtype is (getattr(torch, kind) if kind else a.dtype)
        close(found, exact, kind)
    fast = torch._scaled_mm(a, b, down, across, bias.bfloat16(), out_dtype=torch.float32, use_fast_accum=True)
    close(fast, exact + bias.cpu(), "float32")


@pytest.mark.thorough
def test_layouts_formats_and_small_blocks(device: str) -> None:
    with settings.block(64):
        for kinds in ((E5, E5), (E4, "float8_e4m3fnuz")):
            a, b, down, across = operands(torch, (33, 80, 48), kinds, True, device)
            exact = a.float().cpu() @ b.float().cpu() * down.cpu() * across.cpu()
            for x, y in ((a, b), (a.t().contiguous().t(), b.contiguous()), (a[::1], b)):
                close(torch._scaled_mm(x, y, down, across, out_dtype=torch.float32), exact, "float32")
    some = torch._scaled_mm(a[:0], b, down[:0], across)
    assert some.shape == (0, 48)


def test_recipes(device: str) -> None:
    a, b, down, across = operands(torch, (16, 32, 16), (E4, E4), False, device)
    whole, rows = F.ScalingType.TensorWise, F.ScalingType.RowWise
    found = F.scaled_mm(a, b, [down], [whole], across, whole, F.SwizzleType.NO_SWIZZLE)
    assert (
        found.dtype is torch.bfloat16 and (found == torch._scaled_mm(a, b, down, across, None, None, found.dtype)).all()
    )
    a, b, down, across = operands(torch, (16, 32, 16), (E4, E4), True, device)
    assert F.scaled_mm(a, b, down, rows, across, rows, output_dtype=None).dtype is a.dtype
    for options in ({}, {"contraction_dim": (0,)}, {"swizzle_a": F.SwizzleType.SWIZZLE_32_4_4}):
        with pytest.raises(UnsupportedError, match="scaled_mm: one scale for a matrix or for each row is supported"):
            F.scaled_mm(a, b, down, rows, across, rows if options else whole, **options)


def test_what_is_refused(device: str) -> None:
    a, b, down, across = operands(torch, (16, 32, 16), (E4, E4), False, device)
    ones = torch.ones(16, device=device)
    for words, error, arguments, options in (
        ("mat1 must be a matrix", ShapeError, (a[0], b, down, across), {}),
        ("mat2 must be a matrix", ShapeError, (a, b[None], down, across), {}),
        ("mat_a and mat_b shapes cannot be multiplied .16x16 and 32x16.", ShapeError, (a[:, :16], b, down, across), {}),
        ("Bias must be size 16 but got 15", ShapeError, (a, b, down, across), {"bias": ones[1:]}),
        ("_scaled_mm: scale_result", UnsupportedError, (a, b, down, across), {"scale_result": down}),
        ("Invalid scaling configuration", ValueError, (a.float(), b, down, across), {}),
        ("Invalid scaling configuration", ValueError, (a, b, down.double(), across), {}),
        (r"scale_a should be \(16, 1\)", ValueError, (a, b, ones, ones), {}),
        ("must be Tensor", TypeError, (a, b, 2.0, across), {}),
    ):
        with pytest.raises(error, match=words):
            torch._scaled_mm(*arguments, **options)
    found = torch._scaled_mm(a.float().requires_grad_().to(a.dtype), b, down, across)
    with pytest.raises(UnsupportedError, match="the derivative for '_scaled_mm' is not implemented"):
        found.float().sum().backward()


@pytest.mark.peer
@pytest.mark.thorough
@pytest.mark.parametrize("by_line", [False, True])
@pytest.mark.parametrize("sizes", SIZES)
def test_torch_multiplies_so(sizes: tuple[int, int, int], by_line: bool, device: str) -> None:
    peer = pytest.importorskip("torch")
    for kinds in ((E4, E4), (E5, E4), ("float8_e4m3fnuz",) * 2):
        for kind in BOUNDS:
            found = []
            for library, place in ((torch, device), (peer, "cpu")):
                a, b, down, across = operands(library, sizes, kinds, by_line, place)
                bias = library.ones(sizes[2]).to(place)
                found.append(library._scaled_mm(a, b, down, across, bias, out_dtype=kind and getattr(library, kind)))
            assert str(found[0].dtype).endswith(str(found[1].dtype).removeprefix("torch"))
            close(*found, kind)

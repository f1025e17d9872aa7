"""xarray, array_api_compat and array_api_extra on tensors, as they are installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as torch

from .conftest import on

pytestmark = pytest.mark.peer

A = np.arange(12.0).reshape(3, 4)
B = np.linspace(0.5, 2.0, 4)


def xarray() -> Any:
    return pytest.importorskip("xarray")


# Of an array with dimensions x (with coordinates) and y, and one with dimension y.
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "scale": lambda a, b: 2 * a - 1,
    "power": lambda a, b: a**2 / (b + 1),
    "compare": lambda a, b: a > b,
    "negative": lambda a, b: -abs(a),
    "broadcast": lambda a, b: xarray().broadcast(b, a)[0],
    "mean": lambda a, b: a.mean(skipna=False),
    "mean of x": lambda a, b: a.mean("x", skipna=False),
    "max": lambda a, b: a.max("y", skipna=False),
    "min": lambda a, b: a.min(skipna=False),
    "prod": lambda a, b: (a + 1).prod("x", skipna=False),
    "argmax": lambda a, b: a.argmax("y", skipna=False),
    "sum": lambda a, b: a.sum("y"),
    "any": lambda a, b: (a > 3).any("x"),
    "all": lambda a, b: (a > 3).all(),
    "count": lambda a, b: a.count("x"),
    "isel": lambda a, b: a.isel(x=1),
    "isel slice": lambda a, b: a.isel(x=slice(1, None), y=slice(None, None, 2)),
    "isel backwards": lambda a, b: a.isel(x=slice(None, None, -1)),
    "isel list": lambda a, b: a.isel(y=[3, 0]),
    "sel": lambda a, b: a.sel(x=20),
    "concat": lambda a, b: xarray().concat([a, 2 * a], "x"),
    "concat new": lambda a, b: xarray().concat([a, 2 * a], "z"),
    "transpose": lambda a, b: a.transpose("y", "x"),
    "expand_dims": lambda a, b: a.expand_dims("z"),
    "squeeze": lambda a, b: a.expand_dims("z").squeeze("z"),
    "stack": lambda a, b: a.stack(z=("x", "y")),
    "roll": lambda a, b: a.roll(x=1),
    "diff": lambda a, b: a.diff("x"),
    "clip": lambda a, b: a.clip(2, 7),
    "round": lambda a, b: (a / 3).round(),
    "isnull": lambda a, b: a.isnull(),
    "where": lambda a, b: xarray().where(a > 3, a, b),
    "dot": lambda a, b: xarray().dot(a, b, dim="y"),
    "zeros_like": lambda a, b: xarray().zeros_like(a),
    "copy": lambda a, b: a.copy(deep=True),
    "dataset": lambda a, b: (xarray().Dataset({"a": a, "b": b}) * 2)["a"],
}


def labelled(first: Any, second: Any) -> tuple[Any, Any]:
    array = xarray().DataArray
    return array(first, dims=("x", "y"), coords={"x": [10, 20, 30]}), array(second, dims=("y",))


@pytest.mark.parametrize("name", CALLS)
def test_xarray_keeps_tensors(name: str, device: str) -> None:
    expected = CALLS[name](*labelled(A, B))
    with torch.device(device):
        found = CALLS[name](*labelled(torch.tensor(A), torch.tensor(B)))
    assert found.dims == expected.dims and found.coords.keys() == expected.coords.keys()
    np.testing.assert_allclose(on(device, found.data).cpu().numpy(), expected.to_numpy(), rtol=1e-9)


def test_xarray_asks_a_dtype_that_is_not_numpys_for_its_kind_before_it_skips_nan(device: str) -> None:
    a, _ = labelled(torch.tensor(A, device=device), torch.tensor(B, device=device))
    with pytest.raises(AttributeError, match="'dtype' object has no attribute 'kind'"):
        a.mean()


def test_gradients_pass_through_xarray() -> None:
    x = torch.tensor(A, requires_grad=True)
    a, b = labelled(x, torch.tensor(B))
    (a * b).isel(x=slice(1, None)).sum(skipna=False).data.backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), np.stack((0 * B, B, B)))


def test_array_api_compat_finds_the_namespace(device: str) -> None:
    compat = pytest.importorskip("array_api_compat")
    x = torch.tensor(A, device=device)
    xp = compat.array_namespace(x, torch.tensor(B, device=device))
    assert xp is x.__array_namespace__() and compat.is_array_api_obj(x) and compat.size(x) == 12
    assert str(compat.device(x)) == device and on("cpu", compat.to_device(x, "cpu")).shape == x.shape
    assert not compat.is_torch_array(x) and not compat.is_lazy_array(x)


EXTRA: dict[str, Callable[..., Any]] = {
    "atleast_nd": lambda xpx, xp, x: xpx.atleast_nd(x, ndim=3, xp=xp),
    "cov": lambda xpx, xp, x: xpx.cov(x, xp=xp),
    "create_diagonal": lambda xpx, xp, x: xpx.create_diagonal(x[0], offset=1, xp=xp),
    "isclose": lambda xpx, xp, x: xpx.isclose(x, x + 1e-12, xp=xp),
    "kron": lambda xpx, xp, x: xpx.kron(x, x, xp=xp),
    "nunique": lambda xpx, xp, x: xpx.nunique(x, xp=xp),
    "one_hot": lambda xpx, xp, x: xpx.one_hot(xp.astype(x[0], xp.int64), 5, xp=xp),
    "pad": lambda xpx, xp, x: xpx.pad(x, 2, xp=xp),
    "setdiff1d": lambda xpx, xp, x: xpx.setdiff1d(x, x[:1], xp=xp),
    "sinc": lambda xpx, xp, x: xpx.sinc(x, xp=xp),
    "at set": lambda xpx, xp, x: xpx.at(x)[1:, :2].set(7, copy=True, xp=xp),
    "at add": lambda xpx, xp, x: xpx.at(x)[0].add(x[1], copy=True, xp=xp),
    "apply_where": lambda xpx, xp, x: xpx.apply_where(x > 3, x, lambda each: 1 / each, fill_value=0.0, xp=xp),
    "partition": lambda xpx, xp, x: xpx.partition(-x[0], 2, xp=xp)[:3],
}


@pytest.mark.parametrize("name", EXTRA)
def test_array_api_extra(name: str, device: str) -> None:
    xpx = pytest.importorskip("array_api_extra")
    compat = pytest.importorskip("array_api_compat")
    if not hasattr(xpx, name.partition(" ")[0]):
        pytest.skip(f"this array_api_extra has no {name}")
    expected = EXTRA[name](xpx, compat.array_namespace(A), A)
    x = torch.tensor(A, device=device)
    with torch.device(device):
        found = EXTRA[name](xpx, x.__array_namespace__(), x)
    np.testing.assert_allclose(on(device, found).cpu().numpy(), expected, rtol=1e-9)

"""opt_einsum and einops on tensors, as they are installed."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor as torch

from .conftest import on

pytestmark = pytest.mark.peer

CONTRACTIONS = [
    ("ij,jk->ik", (3, 4), (4, 5)),
    ("ij,jk,kl->li", (3, 4), (4, 5), (5, 2)),
    ("ij,ik,il->jkl", (3, 2), (3, 4), (3, 2)),
    ("abc,bcd,de->ea", (2, 3, 4), (3, 4, 5), (5, 2)),
    ("ij->ji", (3, 4)),
    ("ij->j", (3, 4)),
    ("ii->i", (3, 3)),
    ("i,j->ji", (3,), (4,)),
]


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize(("pattern", "shapes"), [(row[0], row[1:]) for row in CONTRACTIONS])
def test_opt_einsum_contracts_tensors(pattern: str, shapes: tuple[Any, ...], device: str) -> None:
    opt_einsum = pytest.importorskip("opt_einsum")
    operands = arrays(*shapes)
    expected = opt_einsum.contract(pattern, *operands)
    tensors = [torch.tensor(operand, device=device) for operand in operands]
    for found in (opt_einsum.contract(pattern, *tensors), opt_einsum.contract_expression(pattern, *shapes)(*tensors)):
        np.testing.assert_allclose(on(device, found).cpu().numpy(), expected, rtol=1e-5, atol=1e-6)


def test_gradients_pass_through_opt_einsum() -> None:
    opt_einsum = pytest.importorskip("opt_einsum")
    a, b, c = (torch.tensor(each, requires_grad=True) for each in arrays((3, 4), (4, 5), (5, 2)))
    opt_einsum.contract("ij,jk,kl->il", a, b, c).sum().backward()
    assert a.grad is not None
    np.testing.assert_allclose(a.grad.numpy(), np.tile((b @ c).sum(1).detach().numpy(), (3, 1)), rtol=1e-5)


EINOPS: list[tuple[Any, ...]] = [
    ("rearrange", (2, 3, 4), "a b c -> c (a b)", {}),
    ("rearrange", (2, 6, 4), "a (b1 b2) c -> b1 a b2 c", {"b1": 2}),
    ("rearrange", (2, 3, 4), "a b c -> c b a", {}),
    *(("reduce", (2, 6, 4), "a (b k) c -> c a b", name, {"k": 2}) for name in ("min", "max", "sum", "mean", "prod")),
    ("repeat", (2, 3), "a b -> b (k a) l", {"k": 2, "l": 3}),
]


@pytest.mark.parametrize("case", EINOPS, ids=lambda case: " ".join(map(str, case[:1] + case[2:-1])))
@pytest.mark.parametrize("door", ["einops", "einops.array_api"])
def test_einops_rearranges_tensors(case: tuple[Any, ...], door: str, device: str) -> None:
    pytest.importorskip("einops")
    import einops.array_api

    importlib.import_module("tritensor.backends.einops")
    function, shape, *pattern, sizes = case
    (operand,) = arrays(shape)
    if door == "einops.array_api" and not hasattr(torch.Tensor, "__array_namespace__"):
        pytest.skip("no namespace yet")
    expected = getattr(einops, function)(operand, *pattern, **sizes)
    module = einops if door == "einops" else einops.array_api
    found = on(device, getattr(module, function)(torch.tensor(operand, device=device), *pattern, **sizes))
    np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=1e-5)


def test_einops_packs_joins_and_contracts_tensors() -> None:
    einops = pytest.importorskip("einops")
    importlib.import_module("tritensor.backends.einops")
    a, b = map(torch.tensor, arrays((2, 3, 4), (2, 5, 4)))
    packed, sizes = einops.pack([a, b], "n * c")
    assert packed.shape == (2, 8, 4)
    assert all(torch.equal(x, y) for x, y in zip(einops.unpack(packed, sizes, "n * c"), (a, b), strict=True))
    assert torch.equal(einops.rearrange([a, a], "k n b c -> n b (k c)"), torch.cat((a, a), 2))
    assert torch.equal(einops.einsum(a, b, "n i c, n j c -> n i j"), a @ b.mT)
    assert einops.asnumpy(a) is not None and einops.parse_shape(a, "n _ c") == {"n": 2, "c": 4}
    assert torch.equal(einops.reduce(a > 0, "n b c -> b", "any"), (a > 0).any(2).any(0))


PROGRAM = """
import einops, torch
from einops.layers.torch import EinMix, Rearrange, Reduce
model = torch.nn.Sequential(Rearrange("n h w -> n (h w)"), torch.nn.Linear(12, 6), Reduce("n (k c) -> n c", "max", k=2))
model(torch.randn(2, 3, 4)).sum().backward()
assert model[1].weight.grad.abs().sum() > 0
assert EinMix("n l -> n k", weight_shape="l k", l=3, k=5)(torch.ones(2, 3)).shape == (2, 5)
assert einops.rearrange(torch.ones(2, 3), "a b -> b a").shape == (3, 2)
print("ran on", type(model[1].weight).__module__)
"""


def test_einops_layers_are_modules_of_a_program_for_pytorch(tmp_path: Path) -> None:
    pytest.importorskip("einops")
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "tritensor", "run", str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.returncode == 0 and "ran on tritensor" in done.stdout, done.stderr

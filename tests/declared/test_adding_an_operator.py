"""An elementwise operator is one new file, and so is a reduction: everything else is made from the declaration. A layer
is two files, its own and the list of modules; an operator of another family with its function and layer is three.

The test adds one of each to a copy of the project and asks for all of it there: public function, methods, gradients,
policy of autocast, rule of `vmap`, lines of the type stubs and of the documentation, derived tests, rows of the
benchmark.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tritensor

from ..needs import needs_triton

ROOT = Path(__file__).resolve().parents[2]

BOUNDED = '''"""A bounded function."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...operators.rules import FLOAT
from .family import elementwise

if TYPE_CHECKING:
    import triton.language as tl


@elementwise(FLOAT)
def bounded(x):
    """x / (1 + |x|): between -1 and 1."""
    return x / (1 + np.abs(x))


@bounded.kernel
def _(x):
    return x / (1 + tl.abs(x))


@bounded.gradient
def _(grad, x):
    d = 1 + x.abs()
    return grad / (d * d)
'''

SQUARES = '''"""Sums of squares."""

from __future__ import annotations

import numpy as np

from ...operators.rules import REAL_FLOAT
from ...runtime.source import device_function
from .family import reduction, spread
from .sums import add, fold_sum, zero


@reduction(REAL_FLOAT)
def sum_of_squares(x, *, dim=None, keepdim=False):
    """The sum of the squares of all elements, or along `dim`."""
    return np.add.reduce(x * x, dim, keepdims=keepdim)


@device_function
def _square(values, index, numbers):
    return (values[0] * values[0],)


sum_of_squares.kernel(fold_sum, add, zero, start=_square)
sum_of_squares.gradient(lambda grad, x, dim, keepdim: 2 * x * spread(grad, x.shape, dim, keepdim))
'''

# The operator is `rms_norm` once more; function and layer are short forms of what it has.
ROOT_NORM = '''"""Root normalisation."""

from __future__ import annotations

from ...ground.public import public
from ...kernels.rowwise.root_norm import root_norm as _root_norm
from ...tensors import Tensor


@public()
def root_norm(input: Tensor, weight: Tensor | None = None, eps: float = 0.0) -> Tensor:
    """Rows divided by the root of their mean square.

    >>> import tritensor as torch
    >>> torch.root_norm(torch.tensor([[3.0, 4.0]]))
    tensor([[0.8485, 1.1314]])
    """
    return _root_norm(input, weight, eps=eps)[0]
'''

ROOT_LAYER = '''

class RootNorm(RMSNorm):
    """Divides rows by the root of their mean square, then scales them."""

    def forward(self, input: Tensor) -> Tensor:
        """The shape of the input."""
        return F.root_norm(input, self.weight, 1e-5)
'''

LAYER = '''"""A bounded layer."""

from __future__ import annotations

from .layer import Layer, declared

__all__ = ["Bounded"]


@declared("bounded")
class Bounded(Layer):
    """`x / (1 + |x|)`."""
'''

NORM_CALLS = """
import warnings
import tritensor as torch
from tritensor.operators import registry
from tritensor.operators.autocasting import lists
warnings.simplefilter("error")
x = torch.tensor([[3.0, 4.0], [6.0, 8.0]], requires_grad=True)
layer = torch.nn.RootNorm(2)
y = layer(x)
assert y.allclose(torch.nn.functional.rms_norm(x, (2,), eps=1e-5)) and y.shape == (2, 2)
y.sum().backward()
assert layer.weight.grad.allclose(torch.tensor([1.6971, 2.2627]), atol=1e-3)
assert "root_norm" in lists("cuda")["float32"] and registry["root_norm"].batched is not None
many = torch.stack([x.detach()] * 3)
assert torch.func.vmap(torch.root_norm)(many).allclose(torch.root_norm(x).expand(3, 2, 2))
assert torch.nn.Bounded()(torch.tensor([1.0])).item() == 0.5 and repr(torch.nn.Bounded()) == "Bounded()"
print("all of it")
"""

CALLS = """
import tritensor as torch
x = torch.tensor([-3.0, 0.0, 1.0], requires_grad=True)
for y in (torch.bounded(x), torch.nn.functional.bounded(x), x.bounded(), torch.bounded(input=x)):
    assert y.tolist() == [-0.75, 0.0, 0.5] and y.grad_fn.name() == "BoundedBackward0", y
y.sum().backward()
assert x.grad.tolist() == [0.0625, 1.0, 0.25]
z = torch.tensor([1.0])
assert z.bounded_() is z and z.item() == 0.5
assert torch.arange(3).bounded().dtype is torch.float32
m = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
assert torch.sum_of_squares(m).item() == m.sum_of_squares().item() == 30
assert torch.sum_of_squares(m, 0, keepdim=True).tolist() == [[10, 20]]
assert m.sum_of_squares(axis=-1).tolist() == [5, 25]
m.sum_of_squares().backward()
assert m.grad.tolist() == [[2, 4], [6, 8]]
assert not hasattr(torch.Tensor, "sum_of_squares_")
assert {"bounded", "sum_of_squares"} <= {*torch.__all__} & {*torch.functional.__all__}
print("all of it")
"""

PAGES = """
from tools.site import operators
wanted = ("torch.bounded", "torch.sum_of_squares")
print("".join(text for _, text in operators.pages(lambda each: each.shown in wanted)))
"""


class Checkout:
    """A copy of the project with the two files added."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        package = Path(tritensor.__file__).parent  # as it is installed, where it is
        for source in (package, *(ROOT / name for name in ("tests", "benchmarks", "tools", "docs"))):
            shutil.copytree(source, folder / source.name, ignore=shutil.ignore_patterns("__pycache__", "results"))
        for name in ("conftest.py", "pyproject.toml"):
            shutil.copy(ROOT / name, folder)
        kernels = folder / "tritensor" / "kernels"
        (kernels / "elementwise" / "bounded.py").write_text(BOUNDED, encoding="utf-8")
        (kernels / "reduction" / "squares.py").write_text(SQUARES, encoding="utf-8")
        kernel = (kernels / "rowwise" / "rms_norm.py").read_text(encoding="utf-8")
        for name, other in (("rms_norm", "root_norm"), ("RMSNorm", "RootNorm"), ("root_norm_rows", "rms_norm_rows")):
            kernel = kernel.replace(name, other)
        (kernels / "rowwise" / "root_norm.py").write_text(kernel, encoding="utf-8")
        (folder / "tritensor" / "functional" / "rowwise" / "root_norm.py").write_text(ROOT_NORM, encoding="utf-8")
        nn = folder / "tritensor" / "nn"
        layers = (nn / "normalization.py").read_text(encoding="utf-8")
        layers = layers.replace('"RMSNorm"]', '"RMSNorm", "RootNorm"]') + ROOT_LAYER
        (nn / "normalization.py").write_text(layers, encoding="utf-8")
        (nn / "bounded.py").write_text(LAYER, encoding="utf-8")
        named = "\nfrom . import bounded\nfrom .bounded import *\n__all__ += bounded.__all__\n"
        (nn / "__init__.py").write_text((nn / "__init__.py").read_text(encoding="utf-8") + named, encoding="utf-8")

    def run(self, *arguments: str) -> str:
        """What Python prints there."""
        result = subprocess.run(
            [sys.executable, *arguments],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder)},
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def text(self, *path: str) -> str:
        return self.folder.joinpath(*path).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return Checkout(tmp_path_factory.mktemp("project"))


def test_an_elementwise_declaration_is_short() -> None:
    declaration = BOUNDED[BOUNDED.index("@elementwise") :]
    assert len([line for line in declaration.splitlines() if line.strip()]) <= 20


@pytest.mark.thorough
def test_it_is_a_public_function_and_methods(checkout: Checkout) -> None:
    assert checkout.run("-c", CALLS) == "all of it\n"


def test_an_operator_of_rows_with_its_layer_is_three_files(checkout: Checkout) -> None:
    assert checkout.run("-c", NORM_CALLS) == "all of it\n"


@pytest.mark.thorough
def test_it_is_in_the_stubs_and_has_a_page(checkout: Checkout) -> None:
    checkout.run("-m", "tools.generate")
    functions, package = (
        checkout.text("tritensor", "functional", "__init__.pyi"),
        checkout.text("tritensor", "__init__.pyi"),
    )
    tensor = checkout.text("tritensor", "tensors", "tensor.pyi")
    page = checkout.run("-c", PAGES)
    bounded = '"""x / (1 + |x|): between -1 and 1."""'
    squares = '"""The sum of the squares of all elements, or along `dim`."""'
    assert f"def bounded(input: Tensor, *, out: Tensor | None = None) -> Tensor:\n    {bounded}\n" in functions
    parameters = (
        "dim: int | Sequence[int] | None = None, keepdim: bool = False, *, out: Tensor | None = None, **others: Any"
    )
    assert f"def sum_of_squares(input: Tensor, {parameters}) -> Tensor:\n    {squares}\n" in functions
    for name in ("bounded", "sum_of_squares"):
        assert f"from .functional import {name} as {name}\n" in package and f'    "{name}",\n' in package
    assert f"    def bounded(self) -> Tensor:\n        {bounded}\n" in tensor
    assert f"    def bounded_(self) -> Tensor:\n        {bounded}\n" in tensor
    assert "    def sum_of_squares(self, dim: _Int | Sequence[_Int] | None = None" in tensor
    assert ":doc:`torch.bounded`\n     - x / (1 + \\|x\\|): between -1 and 1.\n     - ``.bounded_``" in page
    assert ".. autofunction:: tritensor.bounded\n" in page and "return x / (1 + tl.abs(x))" in page
    assert ">>> torch.bounded(x)\n   tensor([[0.3333, 0.2000],\n" in page and ">>> torch.sum_of_squares(x)\n" in page
    assert ":doc:`torch.sum_of_squares`\n     - The sum of the squares" in page


@needs_triton
def test_its_tests_are_derived_and_pass(checkout: Checkout) -> None:
    """Kernel against reference over dtypes and layouts, special values, gradients, in place, compiled code."""
    files = ["tests/declared/test_operators.py", "tests/declared/test_operators_compile.py"]
    printed = checkout.run(
        "-m",
        "pytest",
        "-q",
        "-m",
        "not slow",
        "-p",
        "no:cacheprovider",
        *files,
        "-k",
        "bounded or sum_of_squares or root_norm",
    )
    passed = re.search(r"(\d+) passed", printed)
    assert passed is not None and int(passed[1]) >= 12, printed


@pytest.mark.thorough
def test_it_has_a_row_in_the_benchmark(checkout: Checkout) -> None:
    pytest.importorskip("pytest_benchmark")
    rows = ["benchmarks/test_operators.py", "-k", "bounded or sum_of_squares"]
    printed = checkout.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "--benchmark-disable", *rows)
    assert re.search(r"[2-9] passed", printed), printed

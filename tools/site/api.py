"""The pages of the modules besides the operators: what a module is for, its functions, and a page for each class."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import tritensor
from tritensor.tensors import Tensor

from .functions import Function, functions, settings
from .operators import escaped, heading

__all__ = ["ELSEWHERE", "MODULES", "pages"]

# Module: its title. In the order of the contents.
MODULES = {
    "nn": "Layers",
    "nn.init": "Parameter initialization",
    "nn.utils": "Utilities for modules",
    "nn.utils.rnn": "Padded and packed sequences",
    "nn.utils.parametrize": "Parametrizations",
    "nn.utils.prune": "Pruning",
    "nn.parallel": "Several devices",
    "nn.attention": "Attention",
    "nn.attention.flex_attention": "Flex attention",
    "optim": "Optimizers",
    "optim.lr_scheduler": "Learning rate schedules",
    "optim.swa_utils": "Stochastic weight averaging",
    "autograd": "Automatic differentiation",
    "autograd.functional": "Derivatives of functions",
    "autograd.forward_ad": "Forward-mode differentiation",
    "autograd.graph": "Autograd graphs and hooks",
    "autograd.anomaly_mode": "Anomaly detection",
    "func": "Function transforms",
    "overrides": "Overriding functions",
    "library": "Custom operators",
    "profiler": "Profiling",
    "amp": "Mixed precision",
    "cuda": "CUDA devices",
    "cuda.profiling": "Profiling kernels",
    "accelerator": "The current accelerator",
    "backends.cuda": "Backend settings",
    "serialization": "Saving and loading",
    "hub": "Downloading checkpoints",
    "utils.data": "Loading data",
    "utils.checkpoint": "Activation checkpointing",
    "utils.benchmark": "Timing statements",
    "distributed": "Distributed computing",
    "distributed.algorithms.join": "Uneven inputs",
    "distributed.algorithms.ddp_comm_hooks": "Communication hooks",
    "futures": "Futures",
    "multiprocessing": "Multiprocessing",
    "distributions": "Probability distributions",
    "distributions.constraints": "Constraints",
    "random": "Random numbers",
    "quasirandom": "Sobol sequences",
    "sparse": "Sparse tensors",
    "masked": "Masked reductions",
    "signal.windows": "Window functions",
    "vision.datasets": "Image datasets",
    "vision.transforms": "Image transforms",
    "vision.transforms.functional": "Transforms as functions",
    "vision.models": "Image models",
    "vision.io": "Reading and writing images",
    "vision.utils": "Image grids",
    "sklearn": "Estimators for scikit-learn",
    "testing": "Testing",
    "compiler": "Compilation",
    "jit": "Scripting (without effect)",
}
#: modules of the package that are not listed, and why
ELSEWHERE = {
    "array_api": "the standard has a page for each of its functions; a guide says what differs",
    **dict.fromkeys(("functional", "linalg", "fft", "special"), "their functions have pages among the operators"),
    **dict.fromkeys(("cpu", "onnx"), "hold one name each, for programs that ask"),
    "return_types": "results with names, which the functions' pages show",
    "settings": "what the `TRITENSOR_*` variables set; the guides name those for users",
    "version": "the version",
}
_TYPES = ("dtype", "device", "Size", "Generator", "memory_format", "layout", "finfo", "iinfo", "Function")


def _public(module: Any) -> list[str]:
    """The names of a module that it defines for its users."""
    names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
    found = []
    for name in names:
        home = str(getattr(getattr(module, name), "__module__", None) or "")
        if inspect.isclass(getattr(module, name)) or callable(getattr(module, name)):
            if home.startswith("tritensor"):
                found.append(name)
    return found


def _table(rows: list[tuple[str, str]], heads: tuple[str, str] = ("name", "what it is")) -> list[str]:
    lines = [".. list-table::", "   :class: operators", "   :widths: auto", "   :header-rows: 1", ""]
    for first, second in (heads, *rows):
        lines += [f"   * - {first}", f"     - {second}"]
    return [*lines, ""]


def _first(value: Any) -> str:
    text = (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")
    return escaped(text)


class Modules:
    """The pages of modules; what is public in several of them is documented in the first."""

    def __init__(self) -> None:
        self.documented: dict[int, str] = {}

    def pages(self) -> Iterator[tuple[str, str]]:
        """Names of files and texts."""
        listed = []
        for name, title in MODULES.items():
            try:
                module = importlib.import_module(f"tritensor.{name}")
            except ImportError:  # the extra that it needs is not installed
                continue
            listed.append((name, title))
            yield from self._module(name, title, module)
        yield "torch.rst", "\n".join(_package(self))
        yield "Tensor.rst", "\n".join(_tensor(functions()))
        yield "index.rst", "\n".join(_index(listed))

    def _module(self, name: str, title: str, module: Any) -> Iterator[tuple[str, str]]:
        full = f"tritensor.{name}"
        classes: list[tuple[str, str]] = []
        calls: list[str] = []
        made: list[str] = []
        lines = [*heading(f"torch.{name}: {title.lower() if title != 'CUDA devices' else title}")]
        lines += [f".. automodule:: {full}", "   :no-index:", ""]
        for each in _public(module):
            value = getattr(module, each)
            shown = f"{name}.{each}"
            if id(value) in self.documented:
                known = self.documented[id(value)]
                classes.append((f":py:obj:`{shown} <{known}>`", _first(value)))
                continue
            self.documented[id(value)] = f"{full}.{each}"
            if inspect.isclass(value):
                classes.append((f":doc:`{shown}`", _first(value)))
                made.append(shown)
                yield f"{shown}.rst", "\n".join(_class(shown, f"{full}.{each}", value))
            else:
                calls.append(each)
        if classes:
            lines += [*heading("Classes", "-"), *_table(classes)]
        if calls:
            lines += heading("Functions", "-")
            for each in calls:
                lines += [f".. autofunction:: {full}.{each}", ""]
        if made:
            lines += [".. toctree::", "   :hidden:", "", *(f"   {each}" for each in made), ""]
        yield f"{name}.rst", "\n".join(lines)


def _class(shown: str, full: str, value: type) -> list[str]:
    lines = [*heading(shown), f".. autoclass:: {full}", "   :members:", "   :member-order: bysource"]
    if not value.__module__.startswith("tritensor.vision.datasets"):
        lines += ["   :show-inheritance:"]
    # scikit-learn's metaclass adds methods whose documentation links to pages of its own
    foreign = [name for name, member in vars(value).items() if type(member).__module__.startswith("sklearn.")]
    if foreign:
        lines += [f"   :exclude-members: {', '.join(foreign)}"]
    return [*lines, ""]


def _package(made: Modules) -> list[str]:
    lines = [*heading("torch: settings and types")]
    lines += ["``import tritensor as torch``. Functions of tensors are :doc:`operators </operators/index>`.", ""]
    lines += heading("Functions", "-")
    for name in settings():
        lines += [f".. autofunction:: tritensor.{name}", ""]
    lines += heading("Types", "-")
    for name in _TYPES:
        value = getattr(tritensor, name, None)
        if inspect.isclass(value) and id(value) not in made.documented:
            lines += [f".. autoclass:: tritensor.{name}", "   :members:", ""]
    return lines


def _tensor(found: tuple[Function, ...]) -> list[str]:
    """The page of Tensor: its attributes, and its methods with links to their pages."""
    lines = [*heading("Tensor"), ".. autoclass:: tritensor.Tensor", "", *heading("Attributes", "-")]
    for name in sorted(name for name in dir(Tensor) if not name.startswith("_")):
        if not callable(inspect.getattr_static(Tensor, name)):
            lines += [f".. autoattribute:: tritensor.Tensor.{name}", ""]
    rows = []
    for function in found:
        names = (function.shown, *function.also)
        method = next((name for name in names if name.startswith("Tensor.")), None)
        if method is not None:
            shown = method.removeprefix("Tensor.")
            rows.append((f":doc:`{shown} </operators/{function.shown}>`", escaped(function.first)))
    return [*lines, *heading("Methods", "-"), *_table(sorted(rows, key=lambda row: row[0].lower()))]


def _index(listed: list[tuple[str, str]]) -> list[str]:
    lines = [*heading("Modules"), "All modules besides the :doc:`operators </operators/index>`.", ""]
    rows = [(":doc:`torch`", "settings and types"), (":doc:`Tensor`", "attributes and methods")]
    rows += [
        (f":doc:`torch.{name} <{name}>`", title.lower() if title[1].islower() else title) for name, title in listed
    ]
    lines += _table(rows, ("module", "what is in it"))
    lines += [".. toctree::", "   :hidden:", "", "   torch <torch>", "   Tensor <Tensor>"]
    return [*lines, *(f"   torch.{name} <{name}>" for name, _ in listed), ""]


def pages() -> Iterator[tuple[str, str]]:
    """The names of the pages' files and their texts."""
    yield from Modules().pages()

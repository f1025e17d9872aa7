"""How a program declares its cases: what a library's function makes of inputs, against what PyTorch or NumPy makes."""

from __future__ import annotations

import functools
import importlib
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from ..libraries.carried import Different, plain

Make = Callable[[np.random.Generator], Any]
Reference = Callable[..., Any]


class Case(NamedTuple):
    """A function of a library's kernels, its inputs, and the same in PyTorch, computed in float64 on the CPU."""

    name: str
    function: Callable[..., Any]
    reference: Callable[..., Any]
    inputs: dict[str, Any]
    gradients: tuple[str, ...]
    tolerance: float


Begun = Callable[[Reference], Case]  # a case that waits for what it is compared with


class Half(NamedTuple):
    """Values that are rounded to a shorter type for both sides."""

    values: np.ndarray
    dtype: str


def given(gradients: str = "", tolerance: float = 1e-3, **inputs: Any) -> Callable[[Reference], Any]:
    """Declare a case by its inputs, then by what computes the same in PyTorch, then by its function.

    Args:
        gradients: names of inputs whose gradients are compared, for random gradients of the results.
        tolerance: relative, and a tenth of it of the largest number, at least of one, absolute.
        inputs: by name; a tuple is the shape of normal numbers, a function makes one of a generator.
    """

    def against(reference: Reference) -> Callable[[Reference], Case]:
        return lambda function: Case(
            function.__name__, function, reference, inputs, tuple(gradients.split()), tolerance
        )

    return against


def called(
    path: str,
    gradients: str = "",
    tolerance: float = 1e-3,
    more: tuple[Any, ...] = (),
    options: Any = None,
    first: bool = False,
    **inputs: Any,
) -> Begun:
    """Declare a case of a library's function by its module and name, then by what computes the same in PyTorch.

    Args:
        path: "MODULE:NAME as CASE"; the name may be one in a class. The function takes the inputs in their order.
        more, options: arguments that follow the inputs. first: of several results the first is compared. The rest is
            as of `given`.
    """
    path, _, label = path.partition(" as ")

    def function(**each: Any) -> Any:
        found = named(path)(*each.values(), *more, **(options or {}))
        return found[0] if first else found

    return lambda reference: Case(label, function, reference, inputs, tuple(gradients.split()), tolerance)


def named(path: str) -> Any:
    """What a module has under a name, "MODULE:NAME"."""
    module, _, name = path.partition(":")
    return functools.reduce(getattr, name.split("."), importlib.import_module(module))


def same(
    path: str, *inputs: Any, reference: Callable[..., Any] | str | None = None, tolerance: float = 1e-3, **options: Any
) -> Case:
    """A case of a library's function that PyTorch has, too, by its module and name, with the same arguments.

    Args:
        path: "MODULE:NAME" or "MODULE:NAME as CASE". inputs: as of `given`; lists and numbers are passed as they are.
        reference: PyTorch's function, or its name where it is another. options: keywords for both.
    """
    path, _, label = path.partition(" as ")
    name = path.partition(":")[2]

    def function(**given: Any) -> Any:
        return named(path)(*given.values(), **options)

    def expected(**given: Any) -> Any:
        if callable(reference):
            return reference(*given.values(), **options)
        owner = next(each for each in (torch, torch.nn.functional) if hasattr(each, reference or name))
        return getattr(owner, reference or name)(*given.values(), **options)

    return Case(label or name, function, expected, {f"a{at}": each for at, each in enumerate(inputs)}, (), tolerance)


def cases_of(module: Any) -> dict[str, Case]:
    """The cases of a program by name, in order."""
    found = [each for value in vars(module).values() for each in (value if isinstance(value, list) else [value])]
    return {each.name: each for each in found if isinstance(each, Case)}


def integers(high: int, *shape: int, low: int = 0, dtype: str = "int64") -> Make:
    """Integers from low up to, not including, high."""
    return lambda random: random.integers(low, high, shape).astype(dtype)


def uniform(*shape: int, low: float = 0.0, high: float = 1.0) -> Make:
    """Numbers of an interval."""
    return lambda random: random.uniform(low, high, shape).astype("float32")


def half(*shape: int, dtype: str = "float16", scale: float = 1.0) -> Make:
    """Normal numbers of a half precision."""
    return lambda random: Half((scale * random.standard_normal(shape)).astype("float32"), dtype)


def unit(*shape: int) -> Make:
    """Normal numbers in rows whose length is one."""

    def make(random: np.random.Generator) -> np.ndarray:
        rows = random.standard_normal(shape)
        return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype("float32")

    return make


def logarithms(*shape: int) -> Make:
    """Logarithms of the probabilities of rows."""

    def make(random: np.random.Generator) -> np.ndarray:
        rows = random.standard_normal(shape)
        return (rows - np.log(np.exp(rows).sum(-1, keepdims=True))).astype("float32")

    return make


def fixed(values: Any) -> Make:
    """These values."""
    return lambda random: np.asarray(values)


class Run:
    """One run of a case: its inputs as tensors, and its results as arrays by name."""

    def __init__(self, case: Case, device: str, exact: bool) -> None:
        random = np.random.default_rng(zlib.crc32(case.name.encode()))
        self.case, self.random, self.device, self.exact = case, random, device, exact
        self.inputs = {name: self.tensor(name, each) for name, each in case.inputs.items()}

    def tensor(self, name: str, made: Any) -> Any:
        """An input, as the case declares it; in float64 for the reference. What is no tensor is passed on."""
        if not isinstance(made, tuple) and not callable(made):
            return [self.tensor(name, each) for each in made] if isinstance(made, list) else made
        value = (
            np.asarray(self.random.standard_normal(made), "float32") if isinstance(made, tuple) else made(self.random)
        )
        short = getattr(torch, value.dtype) if isinstance(value, Half) else None
        found = torch.from_numpy(np.array(value.values if isinstance(value, Half) else value))
        if short is not None:
            found = found.to(short)
        if self.exact and found.is_floating_point():
            found = found.double()
        return found.to(self.device).requires_grad_(name in self.case.gradients)

    def results(self) -> dict[str, np.ndarray]:
        """What the function, or the reference, gives: its results and the gradients."""
        made = (self.case.reference if self.exact else self.case.function)(**self.inputs)
        found = dict(leaves("result", made))
        if self.case.gradients:
            losses = []
            for each in found.values():
                weights = self.random.standard_normal(tuple(each.shape)).astype("float32")
                if each.requires_grad:
                    losses.append((each * torch.from_numpy(weights).to(self.device, each.dtype)).sum())
            sum(losses[1:], losses[0]).backward()
            found |= {f"gradient of {name}": self.inputs[name].grad for name in self.case.gradients}
        return {name: plain(each) for name, each in found.items()}


def compare(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray], tolerance: float) -> None:
    """Raise Different if results are not the reference's."""
    if found.keys() != wanted.keys():
        raise Different(f"the results are {', '.join(found)}, not {', '.join(wanted)}")
    for name, each in wanted.items():
        mine = found[name]
        if mine.shape != each.shape:
            raise Different(f"{name} has the shape {mine.shape}, not {each.shape}")
        largest = np.max(np.abs(each[np.isfinite(each)]), initial=1.0) if each.dtype.kind in "fc" else 1.0
        if not np.allclose(mine, each, tolerance, tolerance / 10 * largest, equal_nan=True):
            both = np.abs(mine.astype(np.complex128) - each.astype(np.complex128))
            raise Different(f"{name} differs by {np.nanmax(both):.3g} of {np.nanmax(np.abs(each)):.3g}")


def leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The tensors of nested tuples and lists, with their places; None is left out."""
    if isinstance(value, tuple | list):
        for position, each in enumerate(value):
            yield from leaves(f"{name} {position}", each)
    elif value is not None:
        yield name, value

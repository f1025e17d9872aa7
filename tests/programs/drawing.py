"""Tensors, numbers, shapes and dims in the words of a program, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch as reference

from .session import Changed, Difference, Session, Unsuitable

Item = TypeVar("Item")


def words(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
COMPLEX = ("complex64", "complex128")
UNSIGNED = ("uint16", "uint32", "uint64")
LIMITS = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}
SPECIAL = words("nan inf -inf -0.0 1e-30 1e30 65504.0 3.4e38 -1e-5 16777217.0")
MODERATE = words("nan inf -inf -0.0 1e-5 65504.0 -1e-5 0.1")  # no overflow between, in whatever order and precision
SPECIAL_COMPLEX = words("0.1 1e-5 16777217.0 -0.0 1e10")
NUMBERS = words("1 2 3 -1 0 2.5 -0.5 0.0 4 -3 1.5 0.25 True False")
ODD_NUMBERS = words("""
    7 100 255 256 300 -129 2**15 2**31 2**31-1 -2**31 2**40 2**63-1 -2**63 2**63 2**64 -2**70 1e10 1e30 1e39 1e300
    -1e300 65520.0 inf -inf nan -0.0 1e-40
    """)
COMPLEX_NUMBERS = words("1j 2-3j 1+0j")


class Finished(Exception):
    """A difference is found: the program ends there."""


class Draw:
    """One program in the making: a source of chance and the session that runs what is drawn."""

    def __init__(self, session: Session, seed: str) -> None:
        self.session = session
        self.rng = random.Random(seed)
        self.found: Difference | None = None
        self.exact: dict[str, bool] = {}  # whether both libraries must have the same bits under a name
        self.made = 0
        self.special = SPECIAL

    # -- chance --

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def one(self, items: Sequence[Item]) -> Item:
        return self.rng.choice(items)

    def integer(self, low: int, high: int) -> int:
        return self.rng.randint(low, high)

    def weighted(self, **weights: float) -> str:
        return self.rng.choices(list(weights), list(weights.values()))[0]

    # -- the program --

    def say(self, statement: str) -> bool:
        """Add a statement and run it: whether PyTorch accepted it.

        Raises:
            Finished: the libraries differ.
        """
        before = self.session.accepted
        try:
            self.found = self.session.run(statement)
        except Unsuitable:
            return False
        except Changed as error:
            raise Finished from error
        if self.found is not None:
            raise Finished
        return self.session.accepted > before

    def fresh(self, prefix: str = "r") -> str:
        self.made += 1
        return f"{prefix}{self.made}"

    def value(self, name: str) -> Any:
        """PyTorch's tensor of a name."""
        return self.session.theirs[name]

    def names(self, suits: Callable[[Any], bool] | None = None, exact: bool = False) -> list[str]:
        """The names of tensors that suit; `exact` leaves out those that may differ in their last bits."""
        return [
            name
            for name, value in self.session.theirs.items()
            if isinstance(value, reference.Tensor)
            and (suits is None or suits(value))
            and not (exact and not self.exact.get(name, True))
        ]

    def pick(self, suits: Callable[[Any], bool] | None = None, exact: bool = False, dtype: str | None = None) -> str:
        """The name of a tensor that suits; a new one, which need not, where there is none."""
        found = self.names(suits, exact)
        if found:
            return self.one(found)
        name = self.fresh("x")
        while not self.say(f"{name} = {self.tensor(dtype=dtype)}"):
            pass
        return name

    # -- dtypes and shapes --

    def dtype(self) -> str:
        """Any dtype, common ones more often; complex ones and uint16 to uint64 where the device has them."""
        group = self.weighted(floats=50, integers=28, bool=10, complex=6 * self.on_cpu, unsigned=2)
        groups = {"floats": FLOATS, "integers": INTEGERS, "bool": ("bool",), "complex": COMPLEX, "unsigned": UNSIGNED}
        names = groups[group]
        return names[0] if len(names) > 1 and self.chance(0.35) else self.one(names)

    def floating(self) -> str:
        """A floating dtype, float32 in half of all draws."""
        return "float32" if self.chance(0.5) else self.one(FLOATS)

    @property
    def on_cpu(self) -> bool:
        return self.session.device == "cpu"

    def shape(self, largest: int = 4, dims: int | None = None) -> tuple[int, ...]:
        """A small shape, sometimes without elements."""
        dims = self.rng.choices(range(5), (12, 28, 36, 18, 6))[0] if dims is None else dims
        return tuple(0 if self.chance(0.03) else self.integer(1, largest) for _ in range(dims))

    def fitting(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that is broadcast with this one; one time in 25 perhaps not."""
        sizes = [1 if self.chance(0.2) else size for size in shape]
        if self.chance(0.25):
            sizes = sizes[self.integer(0, len(sizes)) :]
        if sizes and self.chance(0.04):
            sizes[self.integer(0, len(sizes) - 1)] += 1
        if self.chance(0.05):
            sizes = [self.integer(1, 2), *sizes]
        return tuple(sizes)

    # -- elements --

    def element(self, dtype: str, special: bool) -> str:
        """One element of a dtype, as text."""
        if dtype == "bool":
            return self.one(("True", "False"))
        if dtype in LIMITS:
            low, high = LIMITS[dtype]
            if special and self.chance(0.4):
                return str(self.one((low, high, high - 1, low + 1, high // 2)))
            return str(self.integer(max(low, -5), 9))
        if dtype in COMPLEX:
            real = self.one(SPECIAL_COMPLEX) if special and self.chance(0.3) else self.element("float32", False)
            return f"{real}+{self.integer(0, 6) / 2}j"
        if special and self.chance(0.4):
            return self.one(self.special)
        return str(self.integer(-16, 16) / 4)

    def nested(self, shape: Sequence[int], dtype: str, special: bool) -> str:
        """A nested list."""
        if not shape:
            return self.element(dtype, special)
        return f"[{', '.join(self.nested(shape[1:], dtype, special) for _ in range(shape[0]))}]"

    def tensor(
        self, shape: Sequence[int] | None = None, dtype: str | None = None, special: float = 0.15, layout: bool = True
    ) -> str:
        """An expression for a tensor, of any layout."""
        shape = self.shape() if shape is None else shape
        dtype = self.dtype() if dtype is None else dtype
        has_special = self.chance(special)

        def made(sizes: Sequence[int]) -> str:
            if 0 in sizes:
                return f"torch.zeros({tuple(sizes)!r}, dtype=torch.{dtype})"
            return f"torch.tensor({self.nested(sizes, dtype, has_special)}, dtype=torch.{dtype})"

        kind = (
            self.weighted(plain=60, transposed=10, sliced=10, stepped=8, expanded=6, permuted=6) if layout else "plain"
        )
        if kind == "transposed" and len(shape) >= 2:
            swapped = [*shape[:-2], shape[-1], shape[-2]]
            return f"{made(swapped)}.transpose(-1, -2)"
        if kind == "permuted" and len(shape) >= 2:
            order = list(range(len(shape)))
            self.rng.shuffle(order)
            return f"{made([shape[order.index(i)] for i in range(len(shape))])}.permute({', '.join(map(str, order))})"
        if kind == "sliced" and shape:
            return f"{made([*shape[:-1], shape[-1] + 1])}[..., 1:]"
        if kind == "stepped" and shape and shape[0]:
            return f"{made([shape[0] * 2, *shape[1:]])}[::2]"
        if kind == "expanded" and shape:
            at = self.integer(0, len(shape) - 1)
            return f"{made([*shape[:at], 1, *shape[at + 1 :]])}.expand({', '.join(map(str, shape))})"
        return made(shape)

    def number(self, odd: float = 0.2) -> str:
        """A Python number; sometimes an odd one, which need not fit into a dtype."""
        if self.chance(odd):
            return self.one(COMPLEX_NUMBERS if self.on_cpu and self.chance(0.1) else ODD_NUMBERS)
        return self.one(NUMBERS)

    # -- arguments --

    def dim(self, dims: int, wrong: float = 0.05) -> str:
        """A dim of a tensor with `dims` dimensions, sometimes out of range."""
        size = max(dims, 1)
        if self.chance(wrong):
            return str(self.one((size, size + 1, -size - 1, 2**40)))
        return str(self.integer(-size, size - 1))

    def several(self, dims: int) -> str:
        """Some dims, as a tuple or a list."""
        chosen = self.rng.sample(range(dims), self.integer(min(dims, 1), dims)) if dims else []
        texts = [str(dim - dims if self.chance(0.3) else dim) for dim in chosen]
        if self.chance(0.04):
            texts.append(self.dim(dims, 0.5))
        inner = ", ".join(texts)
        return f"[{inner}]" if self.chance(0.3) else f"({inner}{',' if len(texts) == 1 else ''})"

    def factors(self, elements: int, count: int | None = None) -> list[int]:
        """Sizes of which the product is `elements`."""
        count = self.integer(1, 3) if count is None else count
        sizes = []
        for _ in range(count - 1):
            divisors = [size for size in range(1, elements + 1) if elements % size == 0] or [0, 1, 2]
            sizes.append(self.one(divisors))
            elements //= sizes[-1] or 1
        sizes.append(elements)
        self.rng.shuffle(sizes)
        return sizes

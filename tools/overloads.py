"""Variants of functions whose result depends on the arguments: what a stub says of a call that it recognises.

A variant is the function's own signature but for some parameters, which are written as in the table and are left out
where that says "", and a result. A call that fits no variant is one of the function as it is declared, with any result.
"""

from __future__ import annotations

__all__ = ["VARIANTS", "Variants"]

Variant = tuple[dict[str, str], str]
Variants = dict[str, list[Variant]]

_ALL_ELEMENTS = {"dim": "", "keepdim": "", "other": "", "others": ""}
_INDICES: list[Variant] = [({"return_indices": "return_indices: Literal[False] = False"}, "Tensor")]
_POOLINGS = ("max_pool", "adaptive_max_pool", "fractional_max_pool")
_PLAIN = {
    "return_inverse": "return_inverse: Literal[False] = False",
    "return_counts": "return_counts: Literal[False] = False",
}


def _extreme(result: str) -> list[Variant]:
    along = {"dim": "dim: int", "other": "", "others": ""}
    return [(_ALL_ELEMENTS, "Tensor"), (along, result), ({**_ALL_ELEMENTS, "dim": "other: Tensor"}, "Tensor")]


def _middle(result: str) -> list[Variant]:
    return [({"dim": "", "keepdim": ""}, "Tensor"), ({"dim": "dim: int"}, result)]


def _of_dimensions(all_of_them: str) -> list[Variant]:
    return [({"dim": ""}, all_of_them), ({"dim": "dim: int"}, "int")]


VARIANTS: Variants = {
    **{f"{name}{dims}d": _INDICES for name in _POOLINGS for dims in (1, 2, 3)},
    **{
        f"atleast_{dims}d": [({"tensors": "tensor: Tensor, /"}, "Tensor"), ({}, "tuple[Tensor, ...]")]
        for dims in (1, 2, 3)
    },
    "max": _extreme("MaxResult"),
    "median": _middle("MedianResult"),
    "min": _extreme("MinResult"),
    "nanmedian": _middle("NanmedianResult"),
    "nonzero": [
        ({"as_tuple": "as_tuple: Literal[False] = False"}, "Tensor"),
        ({"as_tuple": "as_tuple: Literal[True]", "out": ""}, "tuple[Tensor, ...]"),
    ],
    "size": _of_dimensions("Size"),
    "stride": _of_dimensions("tuple[int, ...]"),
    "type": [({"dtype": "", "non_blocking": "", "memory_format": ""}, "str"), ({"dtype": "dtype: Any"}, "Tensor")],
    "unique": [(_PLAIN, "Tensor")],
    "unique_consecutive": [(_PLAIN, "Tensor")],
    "where": [
        ({"input": "", "other": "", "out": ""}, "tuple[Tensor, ...]"),
        ({"input": "input: Any", "other": "other: Any"}, "Tensor"),
    ],
}

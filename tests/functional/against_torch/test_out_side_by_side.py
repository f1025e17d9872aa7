"""`out=` of every function that has it in both libraries: what is accepted, written, warned about and refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import tritensor
from tests.functional.calls_with_out import CALLS, OPERANDS, RANDOM

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.peer

# PyTorch has no `out` for these in Python.
OURS = {"isnan", "isinf", "isfinite", "conj"}
NAMES = sorted(CALLS.keys() - OURS)
KINDS = ("float64", "float32", "float16", "int64", "int32", "uint8", "bool", "complex64")

Make = Callable[[Any, Any, dict[str, Any]], Any]

# Scenario -> what is passed for the first result: a function of the library, the result, and the operands.
SCENARIOS: dict[str, Make] = {
    "like it": lambda torch, value, scope: torch.empty_like(value),
    "empty": lambda torch, value, scope: torch.empty(0, dtype=value.dtype),
    "too small": lambda torch, value, scope: torch.empty(1, 1, 1, dtype=value.dtype),
    "too large": lambda torch, value, scope: torch.empty(9, dtype=value.dtype),
    "strided": lambda torch, value, scope: torch.empty(*value.shape, 2, dtype=value.dtype)[..., 0],
    "text": lambda torch, value, scope: "out",
    "tuple of one": lambda torch, value, scope: (torch.empty_like(value),),
    "requires grad": lambda torch, value, scope: torch.empty_like(value).requires_grad_(),
    "x": lambda torch, value, scope: scope["x"],
    "y": lambda torch, value, scope: scope["y"],
    "transposed x": lambda torch, value, scope: scope["x"].T,
    **{
        kind: lambda torch, value, scope, kind=kind: torch.empty(value.shape, dtype=getattr(torch, kind))
        for kind in KINDS
    },
}

# (scenarios, functions, why they may differ); for all scenarios or functions where one is None.
NOISE = "PyTorch computes with operands that it has overwritten; here they are read first"
DIFFERENT: list[tuple[set[str] | None, set[str] | None, str]] = [
    (
        {"x", "y", "transposed x"},
        {"addmm", "addmv", "addbmm", "baddbmm", "matmul", "mm", "dsmm", "spmm", "bmm", "mv", "linear", "tril", "triu"},
        NOISE,
    ),
    ({"x", "y", "transposed x"}, {"softmax", "log_softmax", "logsumexp", "norm", "aminmax", "topk"}, NOISE),
    ({"transposed x"}, {"threshold"}, NOISE),
    (
        {"x", "y", "transposed x"},
        {"amax", "amin", "max", "min", "mean", "sum", "nansum", "prod", "std", "var"},
        NOISE,
    ),
    (
        {"complex64", "bool", "uint8", "int32", "int64"},
        {"rand", "randn", "randint", "randperm", "bernoulli", "arange", "linspace", "logspace", "cumsum", "nansum"},
        "PyTorch's kernels do not exist for some dtypes; ours do, but for random complex numbers",
    ),
    ({"uint8"}, {"all", "any"}, "PyTorch first casts the input to uint8, so that 0.5 counts as zero"),
    ({"complex64"}, {"std", "var"}, "PyTorch's kernel does not exist; the real result is written"),
    ({"too small", "too large", "empty"}, {"nonzero"}, "PyTorch's new memory is column by column"),
    (None, {"gelu", "softplus", "logsigmoid"}, "dtypes that PyTorch's kernel happens to store"),
    (
        {"x", "y", "transposed x"},
        {
            *("cummax", "cummin", "frobenius_norm", "histc", "histogram", "kthvalue", "matrix_power"),
            *("median", "mode", "mvlgamma", "nanmean", "nanmedian", "nanquantile", "quantile"),
            *("slogdet", "narrow_copy", "inverse", "lu_solve", "geqrf", "orgqr", "cholesky_inverse"),
        },
        "PyTorch writes over what it still reads, or refuses other arrangements; ours is computed first, and copied",
    ),
    (
        None,
        {
            "cholesky",
            "geqrf",
            "inverse",
            "lu",
            "lu_solve",
            "lu_unpack",
            "orgqr",
            "ormqr",
            "qr",
            "svd",
            "triangular_solve",
        }
        | {"cholesky_inverse", "cholesky_solve", "msort"},
        "PyTorch's new memory is column by column; the other cases pass, but for integers as pivots of lu",
    ),
    (None, {"split_copy", "split_with_sizes_copy", "unbind_copy"}, "PyTorch returns None for lists"),
    (
        {"bool", "complex64", "requires grad"},
        {"cumprod", "nanmean", "histc"},
        "PyTorch's kernels and checks are missing",
    ),
    ({"too small", "too large", "strided"}, {"narrow_copy"}, "PyTorch gives no warning, and looks at no strides"),
]


def run(torch: Any, name: str, make: Make) -> tuple[Any, ...]:
    """What is accepted: ("refused", error) or the facts about what was passed, afterwards."""
    scope: dict[str, Any] = {"torch": torch}
    for key, text in OPERANDS.items():
        scope[key] = eval(text, scope)
    function = getattr(torch, name, None) or getattr(torch.nn.functional, name)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # PyTorch's, about functions that are deprecated or new
        plain = eval(f"f({CALLS[name]})", {**scope, "f": function})
    values = plain if isinstance(plain, tuple) else (plain,)
    try:
        first = make(torch, values[0], scope)
    except RuntimeError:  # an integer requires no gradient
        return ("no case",)
    out = first if len(values) == 1 else (first, *[torch.empty_like(value) for value in values[1:]])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            made = eval(f"f({CALLS[name]}, out=out)", {**scope, "f": function, "out": out})
        except Exception as error:
            return ("refused", error)
    made = made if isinstance(made, tuple) else (made,)
    facts: list[Any] = [any("resized" in str(each.message) for each in caught if each.category is UserWarning)]
    for target, passed in zip(made, out if isinstance(out, tuple) else (out,), strict=True):
        flat = [0] if name in RANDOM else target.reshape(-1).tolist()
        numbers = [round(number.real, 2) if number == number else 0 for number in map(complex, flat)]
        facts.append((target is passed, tuple(target.shape), str(target.dtype).split(".")[1], numbers))
        if target.numel() > 1:
            facts.append(tuple(target.stride()))
    return tuple(facts)


def excused(scenario: str, name: str) -> bool:
    return any(
        (scenarios is None or scenario in scenarios) and (names is None or name in names)
        for scenarios, names, _ in DIFFERENT
    )


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("name", NAMES)
def test_out(name: str, scenario: str) -> None:
    ours = run(tritensor, name, SCENARIOS[scenario])
    if excused(scenario, name):
        return
    theirs = run(reference, name, SCENARIOS[scenario])
    if "refused" in (ours[0], theirs[0]):
        assert ours[0] == theirs[0], (ours, theirs)
        kind = next(kind for kind in (TypeError, RuntimeError) if isinstance(theirs[1], kind))
        assert isinstance(ours[1], kind), (ours, theirs)
    else:
        assert ours == theirs

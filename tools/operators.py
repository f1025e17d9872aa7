"""The documentation's page of operators: what the registry holds about each, a table for every family."""

from __future__ import annotations

import inspect
from pathlib import Path

import tritensor
from tritensor import nn, optim  # noqa: F401 - their import registers operators
from tritensor.operator import Operator, registry
from tritensor.rules import Rule
from tritensor.tensor import Tensor

# In the order of the page, with a description of each family's kernels.
FAMILIES = {
    "elementwise": "One kernel for all: dimensions are collapsed, operands broadcast by strides, 16 bytes a load.",
    "reduction": "Rows, columns or everything, in two stages where one does not fill the device; never by atomics.",
    "rowwise": "A row is read once where it fits into registers, else in a loop that carries maximum and sum.",
    "layer_norm": "Mean and deviation in one pass over a row; the weight's gradient by partial sums.",
    "channel_norm": "Statistics and the sums for gradients by the reduction kernel, results by the elementwise one.",
    "rms_norm": "As for layer normalisation, without the mean.",
    "matmul": "Tiles on tensor cores; bias and activation join the same kernel.",
    "attention": "A program passes over blocks of keys, or of queries; scores are never in memory.",
    "convolution": "A product of matrices whose columns are read where they lie; each gradient is another of the sums.",
    "recurrent": "All steps of a layer and direction; a step is one launch, a product with its gates' arithmetic.",
    "resampling": "All dimensions in one launch from tables of places and weights; gradients gather too.",
    "sampling": "Elements gather; sums at places are sorted first, so that they have one order.",
    "loss": "Scores become losses in one pass; gradients come out of the same pass when they are needed.",
    "pooling": "A program takes a block of windows; their gradients are gathered by the elements, not added to them.",
    "folding": "Each element gathers from the windows it is in, so that sums have a fixed order.",
    "indexing": "Bounds are checked before anything is read or written; sums have a fixed order.",
    "joining": "One launch for all parts.",
    "searching": "Binary search, a program for a block of elements; all steps in one launch.",
    "sorting": "Blocks are sorted in place, then merged; equal elements keep their order.",
    "scan": "Blocks in a fixed order, so that sums are the same in every run.",
    "triangular": "Blocks of rows by substitution, what is left of them by products on tensor cores.",
    "hosted": "NumPy computes it on the host, for tensors of a device too, and the first call there says so.",
    "fourier": "By pocketfft on the host, for tensors of a device too.",
    "range": "Each thread computes the elements that it stores.",
    "random": "Philox, by position: the same numbers on every device.",
    "dropout": "The mask is drawn anew in the backward pass instead of being kept.",
}


def row(operator: Operator) -> str:
    """The table row of an operator."""
    inputs = [f"*{name}" if operator.variadic else name for name in operator.inputs]
    options = [
        name if value is inspect.Parameter.empty else f"{name}={value!r}" for name, value in operator.metadata.items()
    ]
    parameters = ", ".join([*(inputs or ["*tensors"] * operator.variadic), *options])
    text = (inspect.getdoc(operator) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
    takes = operator.rule.takes() if isinstance(operator.rule, Rule) else ""
    takes = {"boolean, integer, floating, complex": "all", "boolean, integer, floating": "real"}.get(takes, takes)
    in_place = f"`{operator.name}_`" if hasattr(Tensor, f"{operator.name}_") else ""
    gradient = "yes" if operator.differentiable else ""
    return f"| `{operator.name}({parameters})` | {text} | {takes} | {gradient} | {in_place} |"


def page() -> str:
    """The text of the page."""
    lines = [
        "# Operators",
        "",
        "Made from the registry by `python -m tools.generate`; do not edit. Every operator here has a NumPy reference,",
        "which runs on the CPU, and a Triton kernel, which is tested against it over dtypes, shapes and layouts; those",
        "of the family hosted have none.",
        "Half precision is computed in float32; complex dtypes are the CPU's. Functions that are compositions of these",
        "(`linear`, `mse_loss`, `var_mean`, ...) stand in `tritensor.functional`.",
    ]
    families = dict.fromkeys([*FAMILIES, *(operator.family for operator in registry.values())])
    for family in families:
        members = sorted((op for op in registry.values() if op.family == family), key=lambda op: op.name)
        if members:
            lines += ["", f"## {family.replace('_', ' ').capitalize()}", "", FAMILIES[family], ""]
            lines += ["| operator | what it computes | takes | gradient | in place |", "|---|---|---|---|---|"]
            lines += [row(operator) for operator in members]
    return "\n".join(lines) + "\n"


def texts() -> dict[Path, str]:
    """The page's path and text."""
    return {Path(tritensor.__file__).parent.parent / "docs" / "operators.md": page()}

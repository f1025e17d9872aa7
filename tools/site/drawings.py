"""Drawings on the pages of operators, made of calls: the curve of a function of one number and of its derivative, and
the cells of tensors, coloured by which cells of the operands a cell of the result changes with.

As an extension of Sphinx this module puts them on the pages. `docs/operators.toml` has the ranges and the calls.
"""

from __future__ import annotations

import html
import re
import warnings
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np

import tritensor
from tritensor.tensors import Tensor

from .functions import Function, functions
from .parameters import matches
from .pictures import plot
from .subjects import TABLE, subject_of

__all__ = ["cells", "curve", "drawing", "setup"]

# ---- curves ----------------------------------------------------------------------------------------------------------


def _curves(function: Function, x: Any) -> dict[str, np.ndarray]:
    """The values at `x` of a function of one number and of its derivative; empty for other functions."""
    call, leaf = function.value, x.clone().requires_grad_()
    if "polynomial" in function.name:
        return {f"n = {n}": call(x, n).numpy() for n in (2, 3, 4)}
    found = call(leaf)
    if not isinstance(found, Tensor) or found.shape != x.shape or not found.is_floating_point():
        return {}
    values = found.detach().numpy()
    if np.array_equal(values, x.numpy()) or not np.array_equal(values[9:10], call(x[9:10]).numpy(), equal_nan=True):
        return {}  # the input itself, or not element by element
    if not found.requires_grad:
        return {f"{function.name}(x)": values}
    found.sum().backward()
    return {f"{function.name}(x)": values, "derivative": leaf.grad.numpy()}


def curve(function: Function) -> str:
    """The plot of a function of one number; empty for other functions."""
    ranges = (ends for patterns, ends in TABLE["curves"]["ranges"].items() if matches(function.shown, patterns))
    left, right = next(ranges, (-4, 4))
    x = tritensor.linspace(left, right, 201, dtype=tritensor.float64)
    try:
        curves = _curves(function, x) if matches(subject_of(function), TABLE["curves"]["subjects"]) else {}
    except Exception:  # it takes something else
        return ""
    finite = np.concatenate([values[np.isfinite(values)] for values in [*curves.values()][:1]] or [np.zeros(1)])
    low, high = np.quantile(finite, (0.04, 0.96))  # without most of what goes to infinity
    if low == high:
        return ""

    def draw(figure: Any) -> None:
        figure.set_layout_engine("none")  # which takes half of the time
        axes = figure.add_axes((0.13, 0.11, 0.85, 0.76))
        for label, values in curves.items():  # NaN leaves gaps: beyond the picture, and where the curve jumps
            steps = np.abs(np.diff(values))
            jumps = steps > 5 * np.fmax(np.append(steps[1:], 0), np.append(0, steps[:-1])) + 0.03 * (high - low)
            gaps = (np.abs(2 * values - high - low) > 2 * (high - low)) | np.append(False, jumps)
            axes.plot(x.numpy(), np.where(gaps, np.nan, values), marker="", label=label)
        figure.legend(loc="upper left", ncols=3, fontsize=9)

    title = f"{function.shown} from {left:g} to {right:g}" + " and its derivative" * ("derivative" in curves)
    return re.sub(r'(?<= d=")[^"]*', lambda path: re.sub(r"(\.\d)\d+", r"\1", path[0]), plot(title, draw, 4.5, 2.6))


# ---- cells -----------------------------------------------------------------------------------------------------------

_COLOURS = ("var(--site-faster)", "var(--site-slower)", "var(--site-third)", "var(--pst-color-text-muted)")
_FILLS = [f'style="fill:{colour};fill-opacity:.35"' for colour in _COLOURS]
_LINE = f'style="stroke:{_COLOURS[1]};stroke-width:3"'
Marks = list[tuple[str, str]]  # of each cell how it is filled and outlined


def _sources(run: Callable[[], Any], operands: list[np.ndarray]) -> tuple[list[np.ndarray], list[set[int]]]:
    """The results, and for each of their cells those of the operands with which it changes, counted through."""

    def called() -> list[np.ndarray]:
        found = run()
        return [each.numpy().copy() for each in (found if isinstance(found, tuple | list) else [found])]

    def flat(arrays: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([each.reshape(-1).astype(float) for each in arrays])

    results = called()
    found: list[set[int]] = [set() for _ in flat(results)]
    for cell, (operand, place) in enumerate((each, place) for each in operands for place in np.ndindex(each.shape)):
        kept = operand[place]
        for operand[place] in (kept + 1000, kept - 1000, 0):
            for changed in np.flatnonzero(~np.isclose(flat(called()), flat(results), 1e-3, 1e-3, equal_nan=True)):
                found[changed].add(cell)
        operand[place] = kept
    return results, found


def _marked(found: list[set[int]], groups: list[int]) -> tuple[Marks, Marks, str]:
    """The marks of the operands' cells and of the results', and what they mean."""
    largest = max(map(len, found))
    if largest == 1:
        own = [(_FILLS[group % 4], "") for group in groups]
        return own, [own[min(each)] if each else ("", "") for each in found], "A cell has the colour of its source."
    first, *others = [each for each in found if len(each) == largest]
    second = next((each for each in others if each != first), {-1})
    own = [(_FILLS[0] * (cell in first), _LINE * (cell in second)) for cell in range(len(groups))]
    text = "The filled cells make the filled result" + ", the outlined ones the outlined result" * (-1 not in second)
    return own, [(_FILLS[0] * (each == first), _LINE * (each == second)) for each in found], f"{text}."


def _grid(name: str, values: np.ndarray, marks: Iterator[tuple[str, str]]) -> str:
    """A tensor as SVG: its last two dimensions are rows and columns, those before them are side by side."""
    *more, rows, cols = (1, 1, *values.shape)
    title, parts = f"{name} {str(values.shape).replace(',)', ')')}".strip(), []
    for number, value in enumerate(values.reshape(-1)):
        (fill, line), (above, col) = next(marks), divmod(number, cols)
        block, row = divmod(above, rows)
        x, y = 1 + (block * (cols + 0.4) + col) * 34, 18 + row * 24
        text = f"{value:.3g}" if values.dtype.kind == "f" else str(value)
        text = text if len(text) < 5 else f"{value:.{0 if abs(value) >= 100 else 2}f}"
        parts += [f'<rect x="{x:g}" y="{y}" width="34" height="24" {fill}/>']
        parts += [f'<rect x="{x + 2:g}" y="{y + 2}" width="30" height="20" {line}/>'] if line else []
        parts += [f'<text x="{x + 17:g}" y="{y + 16}" text-anchor="middle">{text}</text>']
    width = max(2 + (prod(more) * (cols + 0.4) - 0.4) * 34, 7 * len(title))
    head = f'<svg width="{width:g}" height="{20 + rows * 24}"><text x="1" y="12">{title}</text>'
    return f"{head}{''.join(parts)}</svg>" if parts else ""


def cells(function: Function) -> str:
    """The drawing of a call; empty where cells change with their own alone, or with all, or no call is known."""
    table = TABLE["cells"]
    lines = (line.rpartition(": ") for line in re.split(r" \| |\n", table["calls"].strip()))
    tried = matches(subject_of(function), table["tried"]) and not matches(function.shown, table["skipped"])
    for call in [*(call for call, _, names in lines if matches(function.shown, names)), *["x, 1", "x"] * tried]:
        names = {name: eval(text, {"torch": tritensor}) for name, text in table["operands"].items()}
        names = {name: names[name] for name in dict.fromkeys(re.findall(r"\b[a-z]\b", call)) if name in names}
        arrays = {name: each.numpy() for name, each in names.items()}
        probed = [each for each in arrays.values() if each.dtype.kind == "f"]
        try:
            run = eval(f"lambda: f({call})", {"f": function.value, "torch": tritensor, **names})
            results, found = _sources(run, probed)
        except Exception:  # the function takes something else
            continue
        count = sum(each.size for each in probed)
        plain = results[0].shape == probed[0].shape and found == [{cell} for cell in range(count)]
        if plain or not any(found) or len(found) > 64 or all(len(each) == count for each in found):
            continue
        rows = [np.arange(each.size) // (each.shape[-1] if each.size > each.shape[-1] else 1) for each in probed]
        groups = rows[0] if len(rows) == 1 else np.repeat(range(len(rows)), [each.size for each in rows])
        own, made, text = _marked(found, groups.tolist())
        marks, empty, results_marks = iter(own), iter([("", "")] * 99), iter(made)
        grids = [_grid(name, each, marks if each.dtype.kind == "f" else empty) for name, each in arrays.items()]
        grids += ["<b>→</b>", *(_grid("", each, results_marks) for each in results)]
        first, _, rest = call.partition(", ")
        told = html.escape(
            f"{first}.{function.name}({rest})" if function.space == "Tensor" else f"{function.shown}({call})"
        )
        head = f'<div class="picture cells" role="img" aria-label="The cells of {told}. {text}">'
        return f'{head}{"".join(grids)}</div><p class="told"><code>{told}</code>: {text}</p>'
    return ""


# ---- the extension of Sphinx -----------------------------------------------------------------------------------------


def drawing(function: Function) -> str:
    """The curve or the cells of a function as HTML; empty where there is nothing to see."""
    before = tritensor.get_rng_state()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = curve(function) or cells(function)
    tritensor.set_rng_state(before)
    return found


def show(app: Any, doctree: Any) -> None:
    """Put the drawing under the table of facts."""
    from docutils import nodes

    for function in functions():
        if app.env.docname == f"operators/{function.shown}" and (found := drawing(function)):
            table = next(doctree.findall(nodes.table))
            table.parent.insert(table.parent.index(table) + 1, nodes.raw("", found, format="html"))


def setup(app: Any) -> dict[str, bool]:
    """As an extension of Sphinx."""
    app.connect("doctree-read", show)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""A page for every public operator, and the page that lists them.

A page has what the declaration and the docstring say, and what a call tells: the example is run, and run again in every
dtype and with gradients. Reference, kernel and gradient are the source.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import inspect
import io
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import tritensor
from tritensor.operators import Operator, registry
from tritensor.operators.autocasting import POLICIES
from tritensor.tensors import Tensor

from . import examples, sources
from .functions import MODULES, SPACES, Function, functions

__all__ = ["FAMILIES", "pages"]

# What is said of each family of kernels: `about` of the class of its operators, or of one of them.
FAMILIES = {
    operator.family: operator.about  # type: ignore[attr-defined]
    for operator in registry.values()
    if getattr(operator, "about", "")
}
SHAPES = {
    "elementwise": "Any shapes that broadcast together; the result has the shape that they broadcast to.",
    "reduction": "Any shape; the result lacks the reduced dimensions, or has 1 in their place with `keepdim=True`.",
    "rowwise": "Any shape; the result has the input's.",
    "scan": "Any shape; the result has the input's.",
}
HOSTED = ("hosted", "fourier")
PROBED = ("bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")


# ---- what a call tells ---------------------------------------------------------------------------------------------


class Called:
    """The example of a function, and what calls like it tell.

    Attributes:
        lines: what Python's prompt shows; empty where the docstring has an example.
        shapes: shapes of the operands and of the results, in words; empty where nothing is called.
        dtypes: what becomes of each dtype, in words.
        gradient: whether a result requires a gradient; None where nothing is called.
    """

    def __init__(self, function: Function) -> None:
        self.lines: list[str] = []
        self.shapes = self.dtypes = ""
        self.gradient: bool | None = None
        space = "" if function.space in ("torch", "F") else f"{function.space}."
        self.arguments = examples.call_of(f"{space}{function.name}")
        told = ">>>" in (function.value.__doc__ or "")
        if self.arguments is None and not told and function.own is not None and function.own.family in SHAPES:
            self.arguments = ", ".join("xyu"[: len(function.own.inputs)])
        if self.arguments is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.shapes = self._shapes_of_docstring(function)
            return
        self.setup = examples.setup_of(self.arguments)
        self.call = f"{_spelled(function)}({self.arguments})"
        if function.space == "Tensor":
            self.call = f"x.{function.name}({self.arguments})"
            self.setup = list(dict.fromkeys([f"x = {examples.OPERANDS['x']}", *self.setup]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._run(function)

    def _run(self, function: Function) -> None:
        seed = ["_ = torch.manual_seed(0)"] if examples.RANDOM.search(function.name) else []
        setup = list(self.setup)
        backward = function.space == "Tensor" and examples.BACKWARD.get(function.name)
        if backward:
            setup[0] = setup[0].replace("]])", "]], requires_grad=True)")
            self.lines = list(examples.shown(["import tritensor as torch", *setup, *backward]))
            return
        if function.name in examples.SPARSE and function.space == "Tensor":
            setup = self.setup = [f"x = {examples.OPERANDS['x']}.to_sparse()"]
            self.call = f"x.{function.name}({'x' if function.name == 'sparse_mask' else ''})"
        if function.name == "item":
            setup, self.call = ["x = torch.tensor([0.5])"], "x.item()"
        shows = f"{self.call}.shape" if "empty" in function.name else self.call
        before = tritensor.get_rng_state()
        self.lines = list(examples.shown(["import tritensor as torch", *seed, *setup, shows]))
        self._probe()
        tritensor.set_rng_state(before)

    def _probe(self) -> None:
        names: dict[str, Any] = {"torch": tritensor}
        for statement in self.setup:
            exec(statement, names)
        operands = {name: value for name, value in names.items() if isinstance(value, Tensor)}
        if not operands:
            self.shapes = _arrow([], _tensors(self._result(names)))
            return
        floating = [name for name, value in operands.items() if value.is_floating_point() or value.is_complex()]
        outcomes: dict[str, list[str]] = {}
        for kind in PROBED if floating else ():
            dtype = getattr(tritensor, kind)
            cast = {name: operands[name].clone().to(dtype) for name in floating}
            found = self._result({**names, **cast})
            if isinstance(found, Exception):
                outcome = "refused"
            else:
                kinds = [str(each.dtype).removeprefix("tritensor.") for each in found]
                outcome = " and ".join(dict.fromkeys("the same" if each == kind else each for each in kinds))
            outcomes.setdefault(outcome, []).append(kind)
        self.dtypes = "; ".join(
            f"{', '.join(f'``{each}``' for each in kinds)}: {_outcome(outcome)}" for outcome, kinds in outcomes.items()
        )
        results = self._result({**names, **{name: value.clone() for name, value in operands.items()}})
        if not isinstance(results, Exception):
            self.shapes = _arrow(operands.values(), results)
        needing = {name: operands[name].clone().requires_grad_() * 1 for name in floating}
        results = self._result({**names, **needing})
        self.gradient = not isinstance(results, Exception) and any(each.requires_grad for each in results)

    def _shapes_of_docstring(self, function: Function) -> str:
        """The shapes of the tensors in the last call of the docstring's example, and of its results."""
        names: dict[str, Any] = {}
        found = ""
        for example in doctest.DocTestParser().get_examples(inspect.getdoc(function.value) or ""):
            calls = [node for node in ast.walk(ast.parse(example.source)) if isinstance(node, ast.Call)]
            for call in calls:
                if getattr(call.func, "attr", "") in (function.name, *(name.split(".")[-1] for name in function.also)):
                    before = tritensor.get_rng_state()
                    passed = [call.func.value] if isinstance(call.func, ast.Attribute) else []
                    passed += [*call.args, *(keyword.value for keyword in call.keywords)]
                    with contextlib.suppress(Exception):  # a call that shows what is refused
                        values = [
                            eval(ast.unparse(each), names) for each in passed if not isinstance(each, ast.Starred)
                        ]
                        found = _arrow(_tensors(values), _tensors(eval(ast.unparse(call), names)))
                    tritensor.set_rng_state(before)
            with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
                exec(example.source, names)
        return found

    def _result(self, names: dict[str, Any]) -> list[Tensor] | Exception:
        """The tensors that the call returns, or what it raises."""
        try:
            return list(_tensors(eval(self.call, names)))
        except Exception as error:  # which one is the operator's affair: here it means that the dtype is refused
            return error


def _arrow(given: Iterable[Tensor], results: Iterable[Tensor]) -> str:
    """Shapes of operands and results: `(2, 2), (2,) → (2, 2)`."""
    left, right = (", ".join(str(tuple(each.shape)) for each in tensors) for tensors in (given, results))
    return f"{left} → {right or 'no tensor'}" if left else f"the result has {right}" if right else ""


def _outcome(kind: str) -> str:
    return (
        kind
        if kind in ("refused", "the same") or not kind
        else " and ".join(f"``{each}``" for each in kind.split(" and "))
    )


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from _tensors(each)


def _spelled(function: Function) -> str:
    """The name in an example, where `F` is spelled out."""
    return function.shown.replace("F.", "torch.nn.functional.", 1) if function.space == "F" else function.shown


# ---- a page --------------------------------------------------------------------------------------------------------


def heading(text: str, line: str = "=") -> list[str]:
    """A heading of reStructuredText."""
    return [text, line * len(text), ""]


def code(text: str, language: str = "python", indent: str = "") -> list[str]:
    """A block of code."""
    return [
        f"{indent}.. code-block:: {language}",
        "",
        *(f"{indent}   {line}".rstrip() for line in text.split("\n")),
        "",
    ]


def _facts(function: Function, called: Called) -> Iterator[tuple[str, str]]:
    own = function.own
    shapes = SHAPES.get(own.family, "") if own is not None else ""
    shapes = shapes.replace("`", "``")
    if called.shapes:
        shapes = f"{shapes} For example {called.shapes}".strip()
    if shapes:
        yield "Shapes", shapes
    takes = called.dtypes
    if not takes and function.operators:
        rules = [operator.rule.takes() for operator in function.operators[:1] if hasattr(operator.rule, "takes")]
        takes = ", ".join(rules)
    if takes:
        yield "Dtypes", takes
    yield "Gradient", _gradient(function, called)
    places = ", ".join(f"``{name}``" for name in function.in_place)
    yield "In place", places or "no form"
    takes_out = "out" in inspect.signature(function.value).parameters
    yield "``out=``", "takes a tensor for the result" if takes_out else "not taken"
    policy = own.autocast if own is not None and own.autocast else POLICIES.get(function.name)
    if policy:
        yield "Autocast", ", ".join(f"{to} on {kind} devices" for kind, to in policy.items())
    if own is not None:
        yield "On a device", f"family *{own.family.replace('_', ' ')}*: {FAMILIES[own.family]}"


def _gradient(function: Function, called: Called) -> str:
    wanted = called.gradient
    if wanted is None:
        wanted = any(operator.differentiable for operator in function.operators)
    if not wanted:
        return "no"
    if function.own is not None and function.own.differentiable:
        return "yes, by the formula below"
    return "yes, by those of the operators and views that it is made of"


def _columns(operator: Operator) -> list[str]:
    """Reference and kernel side by side."""
    lines = [".. grid:: 1 1 2 2", "   :gutter: 2", "   :class-container: sources", ""]
    reference = sources.reference_of(operator)
    kernels = sources.kernels_of(operator)
    halves = [("NumPy reference", [reference] if reference else [], "Made when the module is imported.")]
    if kernels:
        halves.append(("Triton kernel", kernels, ""))
    else:
        halves.append(("Triton kernel", [], f"None. {FAMILIES[operator.family]}"))
    for title, texts, instead in halves:
        lines += ["   .. grid-item::", "", f"      **{title}**", ""]
        for source in texts:
            lines += [f"      *{source.place}*", "", *code(source.text, indent="      ")]
        if not texts:
            lines += [f"      {instead}", ""]
    return lines


def _others(function: Function) -> list[str]:
    """Entries of the other names, so that the inventory and the search have them."""
    lines: list[str] = []
    for name in (*function.also, *function.in_place):
        space, _, plain = name.removeprefix("torch.").rpartition(".") if name.count(".") > 1 else name.rpartition(".")
        value = getattr(SPACES[space], plain)
        signature = _signature(value, space == "Tensor")
        kind = "method" if space == "Tensor" else "function"
        lines += [f".. py:{kind}:: {MODULES[space]}.{plain}{signature}", "   :no-contents-entry:", ""]
    return lines


def _signature(value: Any, method: bool) -> str:
    """Names and defaults of the parameters; the types are those of the first name."""
    parts = []
    parameters = list(inspect.signature(value).parameters.values())
    for position, parameter in enumerate(parameters):
        if method and position == 0 and parameter.kind is not parameter.VAR_POSITIONAL:
            continue
        default = parameter.default
        shown = repr(default) if default is None or type(default) in (bool, int, float, str, tuple) else "..."
        plain = parameter.replace(annotation=parameter.empty, default=parameter.empty)
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts and not any(p.startswith("*") for p in parts):
            parts.append("*")
        parts.append(str(plain) + ("" if default is parameter.empty else f"={shown}"))
    return f"({', '.join(parts)})"


def page(function: Function, links: dict[str, str]) -> str:
    """The page of a function."""
    called = Called(function)
    kind = "automethod" if function.space == "Tensor" else "autofunction"
    lines = [
        ":html_theme.sidebar_secondary.remove: true",
        "",
        *heading(function.shown),
        f".. {kind}:: {function.full}",
        "",
    ]
    lines += [".. list-table::", "   :class: facts", "   :widths: auto", "   :stub-columns: 1", ""]
    for name, text in _facts(function, called):
        lines += [f"   * - {name}", f"     - {text}"]
    lines += [""]
    if called.lines and ">>>" not in (function.value.__doc__ or ""):
        lines += [*heading("Example", "-"), *code("\n".join(called.lines), "pycon")]
    own = function.own
    if own is not None:
        lines += [*heading("Reference and kernel", "-"), *_columns(own)]
        found = sources.gradients_of(own)
        if found:
            lines += heading("Gradient", "-")
            for source in dict.fromkeys(source for _, source in found):
                names = [name for name, each in found if each == source and name]
                of = f"of {', '.join(names)}: " if names else ""
                lines += [f"{of}*{source.place}*", "", *code(source.text)]
    else:
        lines += _composition(function, links)
    if function.also or function.in_place:
        lines += [*heading("Other names", "-"), *_others(function)]
    return "\n".join(lines).rstrip() + "\n"


def _composition(function: Function, links: dict[str, str]) -> list[str]:
    """The text of a function that is made of others, and the reference and kernel of the first of those."""
    source = sources.source_of(sources.plain(function.value))
    lines: list[str] = []
    if source is not None:
        lines += [*heading("Composed of other functions", "-"), f"*{source.place}*", "", *code(source.text)]
    if not function.operators:
        return lines
    names = [f":doc:`{links[each.name]}`" for each in function.operators if each.name in links]
    if names:
        lines += [f"Operators that it calls: {', '.join(names[:12])}.", ""]
    first = function.operators[0]
    of = f"Of :doc:`{links[first.name]}`:" if first.name in links else "Of the operator behind it:"
    return [*lines, *heading("Reference and kernel", "-"), of, "", *_columns(first)]


# ---- all pages -----------------------------------------------------------------------------------------------------

_TITLES = {
    "torch": ("torch", "Functions of tensors; most are methods of Tensor too."),
    "F": ("torch.nn.functional", "Imported as ``F``: activations, losses, layers as functions."),
    "linalg": ("torch.linalg", "Factorisations of matrices, solving, norms."),
    "fft": ("torch.fft", "Fourier transforms."),
    "special": ("torch.special", "Special functions."),
    "Tensor": ("Tensor", "Methods that are no function."),
}


def index(found: tuple[Function, ...]) -> str:
    """The page that lists all operators."""
    lines = [
        ":html_theme.sidebar_secondary.remove: true",
        "",
        *heading("Operators"),
        "Every function of tensors, by its public name. Its page has its signature, dtypes, gradient and an example,",
        "and beside each other the NumPy reference, which runs on the CPU, and the Triton kernel, which is tested",
        "against it over dtypes, shapes and layouts. Half precision is computed in float32.",
        "",
    ]
    for space, (title, text) in _TITLES.items():
        members = [function for function in found if function.space == space]
        lines += [*heading(title, "-"), text, "", ".. list-table::", "   :class: operators", "   :widths: auto"]
        lines += ["   :header-rows: 1", "", "   * - name", "     - what it computes", "     - in place"]
        for function in members:
            places = next((name for name in function.in_place if name.startswith("Tensor")), "")
            lines += [f"   * - :doc:`{function.shown}`", f"     - {escaped(function.first)}"]
            lines += [f"     - ``{places.removeprefix('Tensor')}``" if places else "     -"]
        lines += [""]
    lines += [".. toctree::", "   :hidden:", "", *(f"   {function.shown}" for function in found)]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """A sentence of a docstring as reStructuredText: code in backticks is literal, the rest is plain."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        parts = [text.replace("`", "'")]
    made = []
    for place, part in enumerate(parts):
        if place % 2:
            made.append(f"``{part}``" if part.strip() else "")
        else:
            for mark in "\\*_|":
                part = part.replace(mark, f"\\{mark}")
            made.append(part)
    joined = "".join(made)
    return joined.replace("``", "\0").replace("\0", "``")


def pages(wanted: Callable[[Function], bool] = lambda function: True) -> Iterator[tuple[str, str]]:
    """The names of the pages' files and their texts."""
    found = functions()
    links = {function.own.name: function.shown for function in found if function.own is not None}
    yield "index.rst", index(found)
    for function in found:
        if wanted(function):
            yield f"{function.shown}.rst", page(function, links)

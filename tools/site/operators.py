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
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby
from typing import Any

import tritensor
from tritensor.operators import Operator, registry
from tritensor.operators.autocasting import POLICIES
from tritensor.tensors import Tensor

from . import examples, sources
from .functions import MODULES, Function, documented, functions, named
from .parameters import visible
from .subjects import TABLE, layer_of, related, subjects

__all__ = ["FAMILIES", "pages"]

# What is said of each family of kernels: `about` of the class of its operators, or of one of them.
FAMILIES = {
    operator.family: operator.about  # type: ignore[attr-defined]
    for operator in registry.values()
    if getattr(operator, "about", "")
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
        arguments = examples.call_of(f"{space}{function.name}")
        told = ">>>" in (function.value.__doc__ or "")
        if arguments is None and not told and function.own is not None and function.own.family in TABLE["shapes"]:
            arguments = ", ".join("xyu"[: len(function.own.inputs)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if arguments is None:
                self.shapes = self._shapes_of_docstring(function)
            else:
                self._run(function, arguments)

    def _run(self, function: Function, arguments: str) -> None:
        self.setup, self.call = examples.setup_of(arguments), f"{_spelled(function)}({arguments})"
        if function.space == "Tensor":
            self.call = f"x.{function.name}({arguments})"
            self.setup = list(dict.fromkeys([f"x = {examples.OPERANDS['x']}", *self.setup]))
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
            self.shapes = _arrow([], self._result(names) or ())
            return
        floating = [name for name, value in operands.items() if value.is_floating_point() or value.is_complex()]
        outcomes: dict[str, list[str]] = {}
        for kind in PROBED if floating else ():
            dtype = getattr(tritensor, kind)
            cast = {name: operands[name].clone().to(dtype) for name in floating}
            found = self._result({**names, **cast})
            made = (str(each.dtype).removeprefix("tritensor.") for each in found or ())
            kinds = dict.fromkeys("the same" if each == kind else f"``{each}``" for each in made)
            outcomes.setdefault("refused" if found is None else " and ".join(kinds), []).append(f"``{kind}``")
        self.dtypes = "; ".join(f"{', '.join(kinds)}: {outcome}" for outcome, kinds in outcomes.items())
        results = self._result({**names, **{name: value.clone() for name, value in operands.items()}})
        if results is not None:
            self.shapes = _arrow(operands.values(), results)
        needing = {name: operands[name].clone().requires_grad_() * 1 for name in floating}
        self.gradient = any(each.requires_grad for each in self._result({**names, **needing}) or ())

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
                    passed = [each for each in passed if not isinstance(each, ast.Starred)]
                    with contextlib.suppress(Exception):  # a call that shows what is refused
                        values = [eval(ast.unparse(each), names) for each in passed]
                        found = _arrow(_tensors(values), _tensors(eval(ast.unparse(call), names)))
                    tritensor.set_rng_state(before)
            with contextlib.suppress(Exception), contextlib.redirect_stdout(io.StringIO()):
                exec(example.source, names)
        return found

    def _result(self, names: dict[str, Any]) -> list[Tensor] | None:
        """The tensors that the call returns; None where it raises, which here means that the dtype is refused."""
        with contextlib.suppress(Exception):
            return list(_tensors(eval(self.call, names)))
        return None


def _arrow(given: Iterable[Tensor], results: Iterable[Tensor]) -> str:
    """Shapes of operands and results: `(2, 2), (2,) → (2, 2)`."""
    left, right = (", ".join(str(tuple(each.shape)) for each in tensors) for tensors in (given, results))
    return f"{left} → {right or 'no tensor'}" if left else f"the result has {right}" if right else ""


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
    lines = (f"{indent}   {line}".rstrip() for line in text.split("\n"))
    return [f"{indent}.. code-block:: {language}", "", *lines, ""]


def _facts(function: Function, called: Called) -> Iterator[tuple[str, str]]:
    own = function.own
    shapes = TABLE["shapes"].get(own.family, "") if own is not None else ""
    if shapes or called.shapes:
        yield "Shapes", f"{shapes} {'For example ' * bool(called.shapes)}{called.shapes}".strip()
    rules = [operator.rule for operator in function.operators[:1] if hasattr(operator.rule, "takes")]
    if takes := called.dtypes or ", ".join(rule.takes() for rule in rules):
        yield "Dtypes", takes
    yield "Gradient", _gradient(function, called)
    yield "In place", ", ".join(f"``{name}``" for name in function.in_place) or "no form"
    takes_out = "out" in inspect.signature(function.value).parameters
    yield "``out=``", "takes a tensor for the result" if takes_out else "not taken"
    policy = own.autocast if own is not None and own.autocast else POLICIES.get(function.name)
    if policy:
        yield "Autocast", ", ".join(f"{to} on {kind} devices" for kind, to in policy.items())
    if own is not None:
        yield "On a device", f"family *{own.family.replace('_', ' ')}*: {FAMILIES[own.family]}"


def _gradient(function: Function, called: Called) -> str:
    if not (any(each.differentiable for each in function.operators) if called.gradient is None else called.gradient):
        return "no"
    own = function.own is not None and function.own.differentiable
    return "yes, by the formula below" if own else "yes, by those of the operators and views that it is made of"


def _columns(operator: Operator) -> list[str]:
    """Reference and kernel side by side."""
    lines = [".. grid:: 1 1 2 2", "   :gutter: 2", "   :class-container: sources", ""]
    reference = sources.reference_of(operator)
    kernels = sources.kernels_of(operator)
    halves = [("NumPy reference", [reference] if reference else [], "Made when the module is imported.")]
    halves += [("Triton kernel", kernels, f"None. {FAMILIES[operator.family]}")]
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
        space, plain, value = named(name)
        full, kind = f"{MODULES[space]}.{plain}", "method" if space == "Tensor" else "function"
        if full in documented():
            lines += [f".. auto{kind}:: {full}", ""]
        else:
            signature = _signature(value, space == "Tensor")
            lines += [f".. py:{kind}:: {full}{signature}", "   :no-contents-entry:", ""]
    return lines


def _signature(value: Any, method: bool) -> str:
    """Names and defaults of the parameters; the types are those of the first name."""
    shown = visible(value, method)
    plain = [each.replace(annotation=each.empty) for each in shown.parameters.values()]
    return re.sub(r"<.*?>", "...", str(shown.replace(parameters=plain, return_annotation=shown.empty)))


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
    lines += [f"   {mark} - {text}" for fact in _facts(function, called) for mark, text in zip("* ", fact, strict=True)]
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
    layer, names = layer_of(function), [f":doc:`{each.shown}`" for each in related(function)]
    names += [f"the layer :doc:`nn.{layer} </reference/nn.{layer}>`"] if layer else []
    lines += [*heading("See also", "-"), ", ".join(names), ""]
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


def index() -> Iterator[tuple[str, str]]:
    """The page that lists the subjects, a page for each subject, and the page of all names."""
    lines = [
        ":html_theme.sidebar_secondary.remove: true",
        "",
        *heading("Operators"),
        "Every function of tensors, by its public name. Its page has its parameters, dtypes, gradient and an example,",
        "and beside each other the NumPy reference, which runs on the CPU, and the Triton kernel, which is tested",
        "against it over dtypes, shapes and layouts. Half precision is computed in float32. They are listed here by",
        "subject, and also :doc:`by name <names>`.",
        "",
    ]
    for subject in TABLE["subjects"]:
        found, name = subjects()[subject["name"]], f"subject-{subject['name']}"
        links = ", ".join(f":doc:`{each.shown.removeprefix('torch.')} <{each.shown}>`" for each in found)
        lines += [f":doc:`{subject['title']} <{name}>`", f"   {subject['text']}", "", f"   {links}", ""]
        rows = [".. list-table::", "   :class: operators", "   :widths: auto", ""]
        rows += [line for each in found for line in (f"   * - :doc:`{each.shown}`", f"     - {escaped(each.first)}")]
        contents = ["", ".. toctree::", "   :hidden:", "", *(f"   {each.shown}" for each in found)]
        head = [*lines[:2], *heading(subject["title"]), subject["text"], ""]
        yield f"{name}.rst", "\n".join([*head, *rows, *contents]) + "\n"
    contents = ["names", *(f"subject-{subject['name']}" for subject in TABLE["subjects"])]
    yield "index.rst", "\n".join([*lines, "", ".. toctree::", "   :hidden:", "", *(f"   {each}" for each in contents)])
    pairs = {(name.rpartition(".")[2], each.shown) for each in functions() for name in (*each.also, each.shown)}
    lines, plain = [*lines[:2], *heading("Operators by name")], [name for name, _ in pairs]
    for letter, words in groupby(sorted(pairs, key=lambda pair: (pair[0].lower(), pair)), lambda pair: pair[0][0]):
        labels = ((name if plain.count(name) == 1 else page.removeprefix("torch."), page) for name, page in words)
        lines += [*heading(letter.upper(), "-"), ", ".join(f":doc:`{name} <{page}>`" for name, page in labels), ""]
    yield "names.rst", "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """A sentence of a docstring as reStructuredText: code in backticks is literal, the rest is plain."""
    parts = (text if text.count("`") % 2 == 0 else text.replace("`", "'")).split("`")
    plain = (re.sub(r"([\\*_|])", r"\\\1", part) for part in parts[::2])
    literal = (f"``{part}``" if part.strip() else "" for part in (*parts[1::2], ""))
    return "".join(chain.from_iterable(zip(plain, literal, strict=True)))


def pages(wanted: Callable[[Function], bool] = lambda function: True) -> Iterator[tuple[str, str]]:
    """The names of the pages' files and their texts."""
    found = functions()
    links = {function.own.name: function.shown for function in found if function.own is not None}
    yield from index()
    for function in found:
        if wanted(function):
            yield f"{function.shown}.rst", page(function, links)

"""One program in both libraries at once: each statement runs in PyTorch, then here, and what it left is compared."""

from __future__ import annotations

import ast
import re
import traceback
from dataclasses import dataclass
from math import inf, nan
from typing import Any

import torch as reference

import tritensor
from tritensor.errors import TritensorError

from .comparison import LAYOUT, LIMIT, TOLERANCE, difference
from .comparison import name as name_of

VALUE, CRASH, REFUSED = "value differs", "crash", "refused here alone"
ACCEPTED, ERROR, STRIDES = "accepted here alone", "another error", "layout differs"
OUTCOMES = (VALUE, CRASH, REFUSED, ACCEPTED, ERROR, STRIDES)

# The classes that callers catch, the narrower ones first.
KINDS: tuple[type[Exception], ...] = (
    *(IndexError, TypeError, ValueError, AttributeError, OverflowError, ZeroDivisionError, AssertionError),
    RuntimeError,
)


DTYPES = re.compile(
    r"\b(tritensor\.|torch\.|c10::|at::)*(bfloat16|BFloat16|complex\d+|Complex\w+|u?int\d+(_t)?|float\d*|double|bool|"
    r"half|U?Int\d*|Long|Short|Char|Byte|Bool|Half|Float|Double|int|signed char|unsigned char|str|tuple|list|Tensor|"
    r"NoneType|dtype|complex)\b"
)


@dataclass(frozen=True)
class Difference:
    """How a statement differed: the outcome, the statement, its operator, and what was seen."""

    outcome: str
    statement: str
    operator: str
    detail: str
    place: str = ""

    @property
    def kind(self) -> tuple[str, str, str]:
        """What differences of one cause have in common: outcome, operator, and the words without their numbers."""
        words = re.sub(r"'[^']*'|\"[^\"]*\"", "'...'", self.detail.splitlines()[0])
        words = re.sub(r"\[[^\]]*\]|\([^)]*\)", "(..)", words)
        words = re.sub(r"\b[a-z]\d+$", "it", re.sub(DTYPES, "<dtype>", words))
        return self.outcome, self.operator, re.sub(r"-?\d[\d.e+]*", "N", words)[:110]


class Unsuitable(Exception):
    """A statement whose results are too large to compare, or that names what is not there."""


# How Python refuses a call that does not fit the signature.
OF_ARRAYS = re.compile(r"ufunc|numpy|array|broadcast|operands could not")  # words that a user of tensors cannot know
WRONG_KIND = re.compile(
    r"not supported between instances|unsupported operand|object is not|has no attribute|cannot be interpreted as|"
    r"argument must be a|longer than|shorter than"
)
UNBOUND = re.compile(
    r"positional argument|unexpected keyword|multiple values for|missing \d required|got some positional-only"
)


class Changed(Exception):
    """PyTorch refused a statement of which it had done a part: what follows cannot be compared."""


class Session:
    """The two scopes of one program, the statements so far, and how many of them PyTorch ran."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = device
        self.theirs: dict[str, Any] = {"torch": reference, "inf": inf, "nan": nan}
        self.ours: dict[str, Any] = {"torch": tritensor, "inf": inf, "nan": nan}
        self.statements: list[str] = []
        self.accepted = 0
        self.compared = 0
        self.tolerance: dict[str, float] = {}  # for each name that of the coarsest dtype it was computed in

    def run(self, statement: str) -> Difference | None:
        """Run one statement in both libraries: the difference, or None."""
        try:
            code = compile(statement, "<program>", "exec")
        except SyntaxError as error:
            raise Unsuitable(statement) from error
        if self._overlaps(statement):
            raise Unsuitable(statement)  # in PyTorch the order of the elements decides what comes out
        theirs = _attempt(code, self.theirs)
        if isinstance(theirs, (NameError, SyntaxError)) and not isinstance(theirs, AttributeError):
            raise Unsuitable(statement)
        if any(_is_large(value) for value in self.theirs.values()):
            self.theirs = {name: value for name, value in self.theirs.items() if not _is_large(value)}
            raise Unsuitable(statement)
        self.statements.append(statement)
        self._note(statement)
        ours = _attempt(code, self.ours)
        self.accepted += theirs is None
        found = of_errors(ours, theirs)
        place = ""
        if found is None:
            found = self._values()
            if theirs is not None and found is not None:
                raise Changed(statement)  # by PyTorch, before it refused
        elif ours is not None:
            place = place_of(ours)
        if found is None:
            return None
        return Difference(found[0], statement, operator_of(statement), found[1], place)

    def _overlaps(self, statement: str) -> bool:
        """Whether a tensor is written into memory that it is in."""
        match = re.match(r"(?:with .*: )?(\w+)(?:\[.*\])?(?: \W*= |\.\w+_\()(.*)", statement)
        written = self.theirs.get(match[1]) if match else None
        if match is None or not isinstance(written, reference.Tensor):
            return False
        memory = written.untyped_storage().data_ptr()
        others = [self.theirs.get(name) for name in re.findall(r"\b\w+\b", match[2]) if name != match[1]]
        tensors = [each for each in others if isinstance(each, reference.Tensor)]
        return any(each.untyped_storage().data_ptr() == memory != 0 for each in tensors)

    def _note(self, statement: str) -> None:
        """Note how exact the names are that a statement makes or changes."""
        tree = ast.parse(statement)
        used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {"torch"}
        inherited = max((self.tolerance.get(name, 0.0) for name in used), default=0.0)
        for name in used:
            value = self.theirs.get(name)
            if isinstance(value, (tuple, list)) and value and isinstance(value[0], reference.Tensor):
                value = value[0]
            if isinstance(value, reference.Tensor) and not statement.startswith("x"):
                inherited = max(inherited, TOLERANCE.get(name_of(value.dtype), 0.0))
        self.tolerance.update(dict.fromkeys(used, inherited))  # after all were seen: a set has no order

    def _values(self) -> tuple[str, str] | None:
        """The first name under which the libraries have something else."""
        tensors = [value for value in self.theirs.values() if isinstance(value, reference.Tensor)]
        of_gradients = max((TOLERANCE.get(name_of(value.dtype), 0.0) for value in tensors), default=0.0)
        for name, value in list(self.theirs.items()):
            if isinstance(value, (tuple, list)) and not all(map(_can_be_seen, value)):
                del self.theirs[name], self.ours[name]
                continue
            if name in ("torch", "inf", "nan") or name.startswith("_"):
                continue
            self.compared += 1
            if name not in self.ours:
                return VALUE, f"{name} is missing"
            if not _can_be_seen(value):
                del self.theirs[name], self.ours[name]
                continue
            found = difference(self.ours[name], value, self.tolerance.get(name, 0.0), of_gradients)
            if found is not None:
                fact, _, seen = found.partition("\n")
                outcome = STRIDES if fact.startswith(LAYOUT) else VALUE
                return outcome, f"{fact} of {name}\n{seen}"
        return None


def _is_large(value: Any) -> bool:
    return isinstance(value, reference.Tensor) and value.numel() > LIMIT


def _can_be_seen(value: Any) -> bool:
    """Whether PyTorch says anything about a tensor: one of several views whose base was changed only raises."""
    try:
        return not isinstance(value, reference.Tensor) or value.is_leaf in (True, False)
    except RuntimeError:
        return False


def _attempt(code: Any, scope: dict[str, Any]) -> BaseException | None:
    try:
        exec(code, scope)
    except Exception as error:
        return error
    return None


def of_errors(ours: BaseException | None, theirs: BaseException | None) -> tuple[str, str] | None:
    """The outcome and its words, None where both ran or both refused alike."""
    if ours is not None and is_crash(ours) and not _of_python(ours, theirs):
        return CRASH, f"{words_of(ours)}\n    torch: {words_of(theirs)}"
    if ours is None and theirs is None:
        return None
    if theirs is None:
        return REFUSED, words_of(ours)
    if ours is None:
        return ACCEPTED, f"torch: {words_of(theirs)}"
    expected = next((kind for kind in KINDS if isinstance(theirs, kind)), type(theirs))
    if isinstance(ours, expected):
        return None
    return ERROR, f"{words_of(ours)}\n    torch: {words_of(theirs)}"


def _of_python(ours: BaseException, theirs: BaseException | None) -> bool:
    """Whether Python refuses a value of a wrong kind in both libraries, inside of them, in much the same words."""
    if type(ours) is TypeError and isinstance(theirs, TypeError) and not OF_ARRAYS.search(str(ours)):
        return True
    if type(ours) is not type(theirs):
        return False
    return str(ours) == str(theirs) or all(WRONG_KIND.search(str(error)) for error in (ours, theirs))


def words_of(error: BaseException | None) -> str:
    if error is None:
        return "runs"
    kind = next((kind for kind in KINDS if isinstance(error, kind)), type(error)).__name__
    lines = str(error).splitlines() or [""]
    return f"{kind}: {lines[0]}"


def is_crash(error: BaseException) -> bool:
    """Whether nobody meant to raise this: it is none of our errors, and the line it comes from is no `raise`.

    A call whose arguments do not bind is refused by Python in the line that calls, which is the program's own.
    """
    if isinstance(error, TritensorError) or (isinstance(error, TypeError) and re.search(UNBOUND, str(error))):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    if last is None or last.filename == "<program>":
        return False
    if "/tritensor/" not in last.filename.replace("\\", "/"):
        return True
    return not (last.line or "").lstrip().startswith("raise")


def place_of(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    inner = [frame for frame in frames if "/tritensor/" in frame.filename] or frames
    last = inner[-1] if inner else None
    return f"{last.filename.rpartition('/tritensor/')[2]}:{last.lineno}" if last is not None else ""


SYMBOLS = {"Add": "+", "Sub": "-", "Mult": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**", "MatMult": "@"}
SYMBOLS |= {"BitAnd": "&", "BitOr": "|", "BitXor": "^", "LShift": "<<", "RShift": ">>"}
SYMBOLS |= {"Invert": "~", "USub": "-x", "UAdd": "+x"}
SYMBOLS |= {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "In": "in", "Not": "not"}


def operator_of(statement: str) -> str:
    """The operator that a statement is about: the name of a method, a symbol, `[]` or `[]=`."""
    node: Any = ast.parse(statement).body[0]
    while isinstance(node, (ast.With, ast.For, ast.If)):
        node = node.body[0]
    if isinstance(node, ast.AugAssign):
        return SYMBOLS[type(node.op).__name__] + ("=" if isinstance(node.target, ast.Name) else "= []")
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return "[]="
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
        return f".{node.targets[0].attr}="
    return _of_expression(getattr(node, "value", node))


def _of_expression(node: Any) -> str:
    if isinstance(node, ast.Call):
        return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "call")
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        return SYMBOLS[type(node.op).__name__]
    if isinstance(node, ast.Compare):
        return SYMBOLS[type(node.ops[0]).__name__]
    if isinstance(node, ast.Subscript):
        inner = _of_expression(node.value) if isinstance(node.value, ast.Call) else ""
        return f"{inner}[]"
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    if isinstance(node, (ast.Tuple, ast.List)):
        return _of_expression(node.elts[0]) if node.elts else "()"
    return type(node).__name__

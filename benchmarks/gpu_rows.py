"""What is measured on a GPU: one list of rows, for `python -m benchmarks.gpu`, pytest-benchmark and the figures' table.

A row is a case (a statement, its inputs, its float64 truth) of the size that is measured, with the sizes that its
accuracy is checked at, what it is measured against, and how.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import erf, prod
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.cases import CASES, Case, naive_layer_norm, naive_softmax, rounded
from benchmarks.training import Arrays

__all__ = ["DEVICE", "HOST", "ROWS", "START", "TRANSFER", "Row", "Target", "toy"]

# How a row is timed: the device's time, the host's time to enqueue, a copy between host and device, a fresh process.
DEVICE, HOST, TRANSFER, START = "device", "host", "transfer", "start"

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Target:
    """What a row must reach (`gate`) and should reach (`goal`) beside one peer.

    The ratio is the peer's time over ours, and of the copy ceiling the share that is reached: more is better. With
    `below` it is our time over the peer's.
    """

    gate: float
    goal: float
    below: bool = False


@dataclass(frozen=True)
class Row:
    """One row of the table.

    Attributes:
        case: the statement, on inputs of the size that is measured.
        small: the inputs' shapes in the check of accuracy.
        targets: by peer: torch or a variant of it, "ceiling" (of device memory), cupy.
        kind: DEVICE, HOST, TRANSFER or START.
        peers: what it is measured beside, targets or not.
        statements: where a library writes the statement in another way.
        prepares: what stands for the case's `prepare` with a variant of torch, by the peer's name.
        precision: of float32 products, as `set_float32_matmul_precision` takes it, where it is not the default.
        note: the switches that matter, for the reader.
        part: of each input, the part that a part of the result is made of, and under "out" that part: how accuracy is
            checked at the measured size as well.
        moved: bytes that one execution has to move, where they are not the inputs' and the results'.
        work: floating-point operations of one execution, where they are not one for each element.
        rotate: use several sets of inputs in turn, so that none is found in the L2 cache.
    """

    case: Case
    small: Shapes
    targets: Mapping[str, Target] = field(default_factory=dict)
    kind: str = DEVICE
    peers: tuple[str, ...] = ("torch",)
    statements: Mapping[str, str] = field(default_factory=dict)
    prepares: Mapping[str, Callable[..., dict[str, object]]] = field(default_factory=dict)
    precision: str | None = None
    note: str = ""
    part: Mapping[str, Any] = field(default_factory=dict)
    moved: Callable[[Shapes], int] | None = None
    work: Callable[[Shapes], int] | None = None
    rotate: bool = False

    @property
    def name(self) -> str:
        return self.case.name

    @property
    def small_case(self) -> Case:
        """The case of the size that accuracy is checked at."""
        return replace(self.case, inputs=self.small)

    def case_for(self, peer: str) -> Case:
        """The case as a peer runs it."""
        case = replace(self.case, prepare=self.prepares.get(peer, self.case.prepare))
        return replace(case, statement=self.statements.get(peer, case.statement))


def toy(row: Row) -> Row:
    """The row at sizes that Triton's interpreter gets through."""
    flat = all(len(shape) == 1 for shape in row.case.inputs.values())
    most = 2500 if flat else 72

    def shrink(shapes: Shapes) -> dict[str, tuple[int, ...]]:
        return {name: tuple(min(size, most) for size in shape) for name, shape in shapes.items()}

    return replace(row, case=replace(row.case, inputs=shrink(row.case.inputs)), small=shrink(row.small))


# ---- matrix products ------------------------------------------------------------------------------------------------

_LAYOUTS = {
    "nn": ("a @ b", "a @ b"),
    "nt": ("a @ b.t()", "a @ b.T"),
    "tn": ("a.t() @ b", "a.T @ b"),
    "tt": ("a.t() @ b.t()", "a.T @ b.T"),
}
_SHORT = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}


def _product(
    size: int,
    dtype: str,
    targets: Mapping[str, Target],
    layout: str = "nn",
    label: str = "",
    note: str = "",
    precision: str | None = None,
) -> Row:
    statement, numpy = _LAYOUTS[layout]
    short = label or _SHORT[dtype]
    # of a small product of rows and columns that no block size divides
    m, n, k = 200, 216, 184
    small = {"a": (m, k) if layout[0] == "n" else (k, m), "b": (k, n) if layout[1] == "n" else (n, k)}
    lead, last = np.s_[:64], np.s_[:, :64]
    part = {"a": lead if layout[0] == "n" else last, "b": last if layout[1] == "n" else lead, "out": np.s_[:64, :64]}
    case = Case(
        f"matmul_{short}_{size}" + (f"_{layout}" if layout != "nn" else ""),
        f"{short} {statement}, {size} cubed",
        statement,
        {"a": (size, size), "b": (size, size)},
        {},
        numpy=numpy,
        dtype=dtype,
    )
    peers = ("torch", "cupy") if dtype == "float32" and not label else ("torch",)
    return Row(
        case,
        small,
        targets,
        peers=peers,
        part=part,
        precision=precision,
        note=note,
        work=lambda shapes: 2 * prod(shapes["a"]) * shapes["b"]["nt".index(layout[1]) - 1],
    )


def _torch(gate: float, goal: float, below: bool = False) -> dict[str, Target]:
    return {"torch": Target(gate, goal, below)}


def _ceiling(gate: float, goal: float) -> dict[str, Target]:
    return {"ceiling": Target(gate, goal)}


PRODUCTS = (
    *[_product(8192, dtype, _torch(0.95, 1.0), layout) for dtype in ("bfloat16", "float16") for layout in _LAYOUTS],
    _product(4096, "bfloat16", _torch(0.92, 0.98)),
    _product(2048, "bfloat16", _torch(0.85, 0.95)),
    _product(1024, "bfloat16", _torch(0.85, 0.95)),
    _product(512, "bfloat16", _torch(0.75, 0.90)),
    _product(8192, "float32", _torch(1.3, 1.8), note="tf32 off; ours by three products of tf32"),
    _product(8192, "float32", _torch(0.88, 0.96), label="tf32", note="tf32 on", precision="high"),
)


def _gelu(x: np.ndarray) -> np.ndarray:
    return x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2)))


LINEAR = Row(
    Case(
        "linear_gelu",
        "linear + bias + GELU 8192x4096x4096, bf16",
        "F.gelu(F.linear(x, w, b))",
        {"x": (8192, 4096), "w": (4096, 4096), "b": (4096,)},
        {},
        numpy="gelu(x @ w.T + b)",
        names={"gelu": _gelu},
        dtype="bfloat16",
        scale=0.25,
    ),
    {"x": (120, 136), "w": (104, 136), "b": (104,)},
    _torch(1.10, 1.15),
    statements={"tritensor": "F.linear(x, w, b, activation='gelu')"},
    note="ours in one call",
    part={"x": np.s_[:64], "w": np.s_[:64], "b": np.s_[:64], "out": np.s_[:64, :64]},
    work=lambda shapes: 2 * prod(shapes["x"]) * shapes["w"][0],
)

# ---- one pass over memory -------------------------------------------------------------------------------------------

_FLOATS, _HALVES = 1 << 28, 1 << 29  # elements of one gigabyte
_SIDE, _HALF_SIDE = 1 << 14, (1 << 14, 1 << 15)


def _stream(
    name: str,
    title: str,
    statement: str,
    dtype: str,
    targets: Mapping[str, Target],
    numpy: str | None = "same",
    inputs: str = "x",
    exact: Callable[[Arrays], Any] | None = None,
    cupy: bool = True,
) -> Row:
    """An elementwise operator on contiguous tensors of a gigabyte each."""
    short = _SHORT[dtype]
    count = _FLOATS if dtype == "float32" else _HALVES
    case = Case(
        f"{name}_{short}",
        f"{title}, {short}, 1 GB",
        statement,
        dict.fromkeys(inputs, (count,)),
        {},
        numpy=numpy,
        exact=exact,
        dtype=dtype,
    )
    peers = ("ceiling", "torch", "cupy") if cupy and dtype == "float32" else ("ceiling", "torch")
    return Row(case, dict.fromkeys(inputs, (1_000_003,)), targets, peers=peers, rotate=True)


def _matrix(
    name: str,
    title: str,
    statement: str,
    dtype: str,
    inputs: Shapes,
    targets: Mapping[str, Target],
    small: Shapes,
    numpy: str | None = "same",
    peers: tuple[str, ...] = ("ceiling", "torch"),
    **given: Any,
) -> Row:
    short = _SHORT[dtype]
    case = Case(f"{name}_{short}", f"{title}, {short}", statement, dict(inputs), {}, numpy=numpy, dtype=dtype, **given)
    return Row(case, small, targets, peers=peers, rotate=True)


def _broadcast(dtype: str, column: bool) -> Row:
    rows, columns = (_SIDE, _SIDE) if dtype == "float32" else _HALF_SIDE
    name = "column" if column else "row"
    inputs = {"x": (rows, columns), "y": (rows, 1) if column else (columns,)}
    small = {"x": (1030, 770), "y": (1030, 1) if column else (770,)}
    peers = ("ceiling", "torch", "cupy") if dtype == "float32" else ("ceiling", "torch")
    return _matrix(
        f"add_{name}", f"x + {name}, {rows}x{columns}", "x + y", dtype, inputs, _ceiling(0.92, 0.96), small, peers=peers
    )


def _total(name: str) -> Row:
    row = _stream(name, f"x.{name}(), all", f"x.{name}()", "float32", _ceiling(0.92, 0.97))
    # positive, since a sum that cancels is all rounding; one number, so which library comes closest is luck
    return replace(row, case=replace(row.case, positive=True, rounding=4 * row.case.rounding))


_TALL = {"x": (_SIDE, _SIDE)}
_SUMS = {"x": (1030, 770)}

MEMORY = (
    *[
        _stream("copy", "x.clone()", "x.clone()", dtype, _ceiling(0.95, 0.98), "x.copy()", cupy=False)
        for dtype in ("float32", "bfloat16")
    ],
    _stream(
        "cast_to_bf16",
        "x.to(bfloat16)",
        "x.to(lib.bfloat16)",
        "float32",
        _ceiling(0.95, 0.98),
        None,
        exact=lambda arrays: rounded(arrays["x"], "bfloat16"),
        cupy=False,
    ),
    _stream("cast_to_fp32", "x.float()", "x.float()", "bfloat16", _ceiling(0.95, 0.98), "x.copy()", cupy=False),
    *[_stream("exp", "exp(x)", "lib.exp(x)", dtype, _ceiling(0.95, 0.98)) for dtype in ("float32", "bfloat16")],
    *[_stream("add", "a + b", "a + b", dtype, _ceiling(0.95, 0.98), inputs="ab") for dtype in ("float32", "bfloat16")],
    *[_broadcast(dtype, column) for dtype in ("float32", "bfloat16") for column in (False, True)],
    *[
        _matrix(
            "transpose",
            f"x.t().contiguous(), {rows}x{columns}",
            "x.t().contiguous()",
            dtype,
            {"x": (rows, columns)},
            {},
            _SUMS,
            "x.T.copy()",
        )
        for dtype, (rows, columns) in (("float32", (_SIDE, _SIDE)), ("bfloat16", _HALF_SIDE))
    ],
    *[_total(name) for name in ("sum", "max", "mean")],
    _matrix(
        "sum_rows",
        "x.sum(1), 16384x16384",
        "x.sum(1)",
        "float32",
        _TALL,
        _ceiling(0.90, 0.95),
        _SUMS,
        peers=("ceiling", "torch", "cupy"),
    ),
    _matrix(
        "sum_columns",
        "x.sum(0), 16384x16384",
        "x.sum(0)",
        "float32",
        _TALL,
        _ceiling(0.85, 0.93),
        _SUMS,
        peers=("ceiling", "torch", "cupy"),
    ),
)

# ---- rows of a matrix -----------------------------------------------------------------------------------------------


def _softmax(columns: int, dtype: str) -> Row:
    rows = (_FLOATS if dtype == "float32" else _HALVES) // columns
    return _matrix(
        f"softmax_{columns}",
        f"softmax {rows}x{columns}",
        "F.softmax(x, dim=1)",
        dtype,
        {"x": (rows, columns)},
        {**_ceiling(0.88, 0.95), **_torch(1.05, 1.2)},
        {"x": (37, columns)},
        "naive(x)",
        names={"naive": naive_softmax},
    )


def _layer_norm(columns: int, dtype: str) -> Row:
    rows = (_FLOATS if dtype == "float32" else _HALVES) // columns
    return _matrix(
        f"layer_norm_{columns}",
        f"layer norm {rows}x{columns}",
        "F.layer_norm(x, w.shape, w, b)",
        dtype,
        {"x": (rows, columns), "w": (columns,), "b": (columns,)},
        _torch(1.25, 1.5),
        {"x": (37, columns), "w": (columns,), "b": (columns,)},
        "naive(x) * w + b",
        names={"naive": naive_layer_norm},
    )


def _entropy(torch: ModuleType, tensors: Mapping[str, Any]) -> dict[str, object]:
    """`step()` is a loss with its gradient."""
    x = tensors["x"].detach().requires_grad_()
    rows, classes = x.shape
    labels = torch.arange(rows, device=x.device) * 7919 % classes
    loss_of = torch.nn.functional.cross_entropy

    def step() -> Any:
        x.grad = None
        loss_of(x, labels).backward()
        return x.grad

    return {"step": step}


def _exact_entropy(arrays: Arrays) -> np.ndarray:
    x = arrays["x"].astype(np.float64)
    rows, classes = x.shape
    grad = naive_softmax(x)
    grad[np.arange(rows), np.arange(rows) * 7919 % classes] -= 1
    return grad / rows


def _cross_entropy(classes: int, dtype: str) -> Row:
    rows = _FLOATS // classes
    short = _SHORT[dtype]
    case = Case(
        f"cross_entropy_{classes}_{short}",
        f"cross entropy + backward {rows}x{classes}, {short}",
        "step()",
        {"x": (rows, classes)},
        {},
        numpy=None,
        prepare=_entropy,
        exact=_exact_entropy,
        nonfinite=False,
        dtype=dtype,
    )
    width = 4 if dtype == "float32" else 2
    return Row(
        case,
        {"x": (19, classes)},
        _torch(1.8, 2.3),
        note="eager in torch",
        rotate=True,
        moved=lambda shapes: 2 * width * prod(shapes["x"]),
    )


BY_ROW = (
    *[_softmax(columns, "float32") for columns in (1024, 4096, 8192, 32768)],
    *[_softmax(columns, "bfloat16") for columns in (4096, 32768)],
    *[_layer_norm(columns, dtype) for dtype in ("float32", "bfloat16") for columns in (4096, 8192, 16384)],
    *[_cross_entropy(classes, dtype) for dtype in ("float32", "bfloat16") for classes in (32768, 131072)],
)

# ---- optimizers -----------------------------------------------------------------------------------------------------

_RATE, _DECAY, _STEPS = 1e-3, 1e-2, 3


def pieces(total: int) -> list[int]:
    """Sizes of 300 parameters (6 of a toy): of three, two matrices and a vector."""
    count = 300 if total > 1_000_000 else 6
    vector = min(1000, total // (2 * count))
    matrix = (total - vector * count // 3) // (2 * count // 3)
    sizes = [matrix, matrix, vector] * (count // 3)
    return [*sizes[:-1], total - sum(sizes[:-1])]


def _optimizer(kind: str, option: str, torch: ModuleType, tensors: Mapping[str, Any]) -> dict[str, object]:
    """`step()` is one step of all parameters; `trained()` is by how much `_STEPS` move them."""
    sizes = pieces(tensors["w"].numel())
    weights, grads = ([part.clone() for part in tensors[name].split(sizes)] for name in "wg")
    params = [weight.requires_grad_() for weight in weights]
    for param, grad in zip(params, grads, strict=True):
        param.grad = grad
    chosen: dict[str, Any] = {option: True} if option else {}
    optimizer = getattr(torch.optim, kind)(params, lr=_RATE, weight_decay=_DECAY, **chosen)

    def trained() -> tuple[Any, ...]:
        for _ in range(_STEPS):
            optimizer.step()
        before = tensors["w"].split(sizes)
        return tuple(after.detach() - was for after, was in zip(params, before, strict=True))

    return {"step": optimizer.step, "trained": trained}


def _exact_optimizer(kind: str, arrays: Arrays) -> np.ndarray:
    start, grad = (arrays[name].astype(np.float64) for name in "wg")
    weight, mean, square = start.copy(), np.zeros_like(start), np.zeros_like(start)
    for count in range(1, _STEPS + 1):
        g = grad
        if kind == "AdamW":
            weight *= 1 - _RATE * _DECAY
        else:
            g = grad + _DECAY * weight
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g * g
        weight -= _RATE / (1 - 0.9**count) * mean / (np.sqrt(square / (1 - 0.999**count)) + 1e-8)
    return weight - start


def _adam(kind: str) -> Row:
    # small weights, so that what three steps add is not lost in their rounding
    case = Case(
        kind.lower(),
        f"{kind}, 100 M parameters in 300 tensors, fp32",
        "step()",
        {"w": (100_000_000,), "g": (100_000_000,)},
        {},
        numpy=None,
        prepare=partial(_optimizer, kind, ""),
        check="trained()",
        exact=partial(_exact_optimizer, kind),
        nonfinite=False,
        scale=0.05,
    )
    return Row(
        case,
        {"w": (30_000,), "g": (30_000,)},
        {"torch fused": Target(0.97, 1.03), "torch foreach": Target(1.8, 2.2)},
        peers=("torch fused", "torch foreach"),
        prepares={f"torch {name}": partial(_optimizer, kind, name) for name in ("fused", "foreach")},
        moved=lambda shapes: 28 * prod(shapes["w"]),
    )


# ---- the host, and what crosses to the device -----------------------------------------------------------------------


def _enqueue(
    name: str,
    title: str,
    statement: str,
    inputs: Shapes,
    targets: Mapping[str, Target],
    grad: bool = False,
    peers: tuple[str, ...] = ("torch",),
) -> Row:
    case = Case(name, title, statement, dict(inputs), {}, requires_grad=grad)
    return Row(case, inputs, targets, kind=HOST, peers=peers)


_THOUSAND = {"a": (1000,), "b": (1000,)}

HOSTS = (
    _enqueue(
        "enqueue_add",
        "a + b of 1 K elements, enqueue",
        "a + b",
        _THOUSAND,
        _torch(1.3, 0.9, below=True),
        peers=("torch", "cupy"),
    ),
    _enqueue(
        "enqueue_add_grad",
        "a + b of 1 K elements with gradient, enqueue",
        "a + b",
        _THOUSAND,
        _torch(1.2, 0.85, below=True),
        grad=True,
    ),
    *[
        Row(replace(case, name="enqueue_step", targets={}), case.inputs, kind=HOST)
        for case in CASES
        if case.name == "step_128"
    ],
)


def _host_side(torch: ModuleType, tensors: Mapping[str, Any]) -> dict[str, object]:
    """The input in pageable and in pinned host memory, and pinned memory of its size."""
    x = tensors["x"]
    pageable = x.detach().cpu()
    pinned, target = (
        (pageable.pin_memory(), torch.empty_like(pageable).pin_memory())
        if x.is_cuda
        else (pageable, torch.empty_like(pageable))
    )
    return {"pinned": pinned, "target": target, "array": pageable.numpy(), "device": x.device}


def _transfer(name: str, title: str, statement: str, targets: Mapping[str, Target]) -> Row:
    case = Case(
        name,
        f"{title}, 1 GB",
        statement,
        {"x": (_FLOATS,)},
        {},
        numpy=None,
        prepare=_host_side,
        exact=lambda arrays: arrays["x"],
        rounding=0.0,
    )
    return Row(case, {"x": (1_000_003,)}, targets, kind=TRANSFER, moved=lambda shapes: 4 * prod(shapes["x"]))


TRANSFERS = (
    _transfer("to_device_pinned", "pinned host to device", "pinned.to(device)", _torch(0.97, 1.0)),
    _transfer(
        "to_device_sent",
        "pinned host to device, non-blocking",
        "pinned.to(device, non_blocking=True)",
        _torch(0.97, 1.0),
    ),
    _transfer("to_host_pinned", "device to pinned host", "target.copy_(x)", _torch(0.97, 1.0)),
    _transfer("to_host_non_blocking", "device to host, non-blocking", "x.to('cpu', non_blocking=True)", {}),
    _transfer("to_device_array", "NumPy array to device", "lib.from_numpy(array).to(device)", _torch(1.0, 2.0)),
    _transfer("to_host_array", "device to NumPy array", "x.cpu().numpy()", {}),
)

STARTS = (
    Row(
        Case("start", "import + first GPU operator, warm cache", "", {}, {}, numpy=None),
        {},
        _torch(0.6, 0.35, below=True),
        kind=START,
    ),
)

# In the order in which they are measured: what has a gate comes before what has none.
ROWS = tuple(
    sorted(
        (*PRODUCTS, LINEAR, *MEMORY, *BY_ROW, _adam("Adam"), _adam("AdamW"), *HOSTS, *TRANSFERS, *STARTS),
        key=lambda row: not row.targets,
    )
)

"""Operators that programs define: schemas, kernels, gradients, samples and checks, beside PyTorch."""

from __future__ import annotations

import importlib
import itertools
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import pytest

import tritensor as ours

Log = list[Any]
NUMBERS = itertools.count()  # of namespaces: an operator is defined once in a process


def refused(call: Callable[[], Any]) -> tuple[str, str]:
    """The kind and the first words of the error of a call."""
    with pytest.raises((RuntimeError, TypeError, ValueError, AttributeError)) as caught:
        call()
    kind = next(k for k in type(caught.value).__mro__ if k.__module__ == "builtins")
    return kind.__name__, str(caught.value).splitlines()[0][:60]


def checked(torch: Any, op: Any, *args: Any, **options: Any) -> Any:
    """What `opcheck` finds; of an error the words after the test's name."""
    try:
        return torch.library.opcheck(op, args, **options)
    except torch.library.opcheck.__globals__.get("OpCheckError", Exception) as error:
        return str(error)[:150]


def schemas(torch: Any) -> Log:
    tensor, infer = torch.Tensor, torch.library.infer_schema
    log: Log = []

    def several(
        x: tensor,
        y: tensor | None,
        many: list[tensor],
        sizes: Sequence[int] | None = None,
        *,
        scale: float = 1.5,
        flag: bool = True,
        name: str = "n",
        kind: torch.dtype = torch.float32,
        place: torch.device | None = None,
        number: int | float | bool = 2,
    ) -> tuple[tensor, int]:
        raise AssertionError

    several.__annotations__ = {
        key: eval(text, {**globals(), "tensor": tensor, "torch": torch, "Sequence": Sequence})
        for key, text in several.__annotations__.items()
    }
    log += [infer(several, mutates_args=()), infer(several, mutates_args="unknown", op_name="several")]
    log.append(infer(several, mutates_args=["x", "many"]))
    wrong: list[tuple[Any, Any]] = [
        (lambda x: x, ()),
        (lambda *x: x, ()),
        (several, {"scale"}),
        (several, {"nothing"}),
        (several, "some"),
    ]
    for given in ({"x": complex, "return": tensor}, {"x": tensor}, {"x": tensor, "return": complex}):

        def function(x: Any) -> Any:
            raise AssertionError

        function.__annotations__ = given
        wrong.append((function, ()))
    log += [refused(lambda f=f, m=m: infer(f, mutates_args=m)) for f, m in wrong]
    for returned in (None, list[tensor], tuple[tensor], int):

        def plain(x: Any) -> Any:
            raise AssertionError

        plain.__annotations__ = {"x": tensor, "return": returned}
        log.append(infer(plain, mutates_args=()))
    return log


def operators(torch: Any) -> Log:
    library, space, log = torch.library, f"mine_{next(NUMBERS)}", []

    def made(name: str, function: Any, schema: str, **options: Any) -> Any:
        return library.custom_op(f"{space}::{name}", function, schema=schema, **options)

    scale = made(
        "scale",
        lambda x, by=2.0: torch.from_numpy(x.numpy() * by).to(x.dtype),
        "(Tensor x, float by=2.0) -> Tensor",
        mutates_args=(),
    )
    x, leaf = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0], requires_grad=True)
    log += [scale(x).tolist(), scale(x, by=3.0).tolist(), scale(by=1.0, x=x).tolist(), scale(leaf).requires_grad]
    log += [refused(lambda: scale(leaf).sum().backward()), refused(lambda: scale("a")), refused(lambda: scale())]
    log += [refused(lambda: scale(x, 1.0, 2.0)), refused(lambda: scale(x, x=x))]
    scale.register_autograd(
        lambda ctx, grad: (grad * ctx.by, None), setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1])
    )
    scale(leaf).sum().backward()
    log += [leaf.grad.tolist(), torch.func.vmap(scale)(torch.ones(3, 2)).tolist()]
    scale.register_vmap(lambda info, in_dims, x, by=2.0: (scale(x, by) + info.batch_size, in_dims[0]))
    log += [torch.func.vmap(scale)(torch.ones(3, 2)).tolist()]

    def add_(x: Any, by: float) -> None:
        x.numpy().__iadd__(by)

    added = made("add_", add_, "(Tensor(a!) x, float by) -> ()", mutates_args={"x"})
    version = x._version
    log += [added(x, 1.0), x.tolist(), x._version - version, added(leaf, 1.0)]
    with_operators = made("with_operators", lambda x: x.add_(1) and None, "(Tensor(a!) x) -> ()", mutates_args={"x"})
    version = x[:1]._version
    log += [with_operators(x[:1]), x[:1]._version - version]
    y = torch.ones(2, requires_grad=True) * 1
    z = y * y
    with torch.no_grad():
        added(y, 1.0)
    log += [refused(lambda: z.sum().backward()), refused(lambda: added.register_autograd(print))]
    same = made("same", lambda x: x, "(Tensor x) -> Tensor", mutates_args=())
    part = made("part", lambda x: (x + 1, x[:1]), "(Tensor x) -> (Tensor, Tensor)", mutates_args=())
    log += [refused(lambda f=f: f(x))[1][:4] for f in (same, part)]
    diagonal = torch.eye(2).to_sparse()
    log += [
        same(diagonal).to_dense().tolist(),
        made("doubled", lambda x: x * 2, "(Tensor x) -> Tensor", mutates_args=())(diagonal).is_sparse,
    ]
    total = made(
        "total",
        lambda many, by: [x * y for x, y in zip(many, by)],
        "(Tensor[] many, float[] by) -> Tensor[]",
        mutates_args=(),
    )
    seen: Log = []

    def backward(ctx: Any, grads: Any) -> Any:
        seen.append(ctx.needs_input_grad)
        return [g * w for g, w in zip(grads, ctx.by)], None

    total.register_autograd(backward, setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]))
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    found = total([a, b], [2.0, 3.0])
    sum(found).sum().backward()
    log += [type(found).__name__, a.grad.tolist(), b.grad.tolist(), len(seen)]
    named = made("named", lambda x, *, by: x * by, "(Tensor x, *, float by) -> Tensor", mutates_args=())

    def keep(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        ctx.by = keyword_only_inputs["by"]
        log.append((len(inputs), keyword_only_inputs, output.tolist()))

    named.register_autograd(lambda ctx, grad: grad * ctx.by, setup_context=keep)
    named(a, by=4.0).sum().backward()
    two = made("two", lambda x, n: (x * 2, n), "(Tensor x, int n) -> (Tensor, SymInt)", mutates_args=())
    log += [
        a.grad.tolist(),
        two(x, 3)[1],
    ]
    log += [refused(lambda: made("x", lambda x: x, "(Tensor(a!) x) -> Tensor", mutates_args=()))[0]]
    log += [refused(lambda: library.custom_op("bad", lambda x: x, schema="(Tensor x) -> Tensor", mutates_args=()))[0]]
    return [str(each).replace(space, "space") for each in log]


def kernels(torch: Any) -> Log:
    library, space, log = torch.library, f"kernels_{next(NUMBERS)}", []
    x = torch.ones(2)
    op = library.custom_op(
        f"{space}::f", lambda x: x * 2, schema="(Tensor x) -> Tensor", mutates_args=(), device_types="cuda"
    )
    log += [refused(lambda: op(x))[0], op.register_kernel("cpu")(lambda x: x * 3)(x).tolist(), op(x).tolist()]
    library.register_kernel(f"{space}::f", "cpu", lambda x: x * 4)
    library.register_kernel(op, None)(lambda x: x * 5)
    with op.set_kernel_enabled("cpu", False):
        log.append(op(x).tolist())
    log.append(op(x).tolist())
    lib = library.Library(space, "FRAGMENT")
    log += [lib.define("half(Tensor x, int[] s=[1, 2], *, float z=1.5, str? q=None, bool b=True) -> Tensor")]
    half = getattr(torch.ops, space).half
    log += [refused(lambda: half(x))[0], refused(lambda: lib.define("half(Tensor x) -> Tensor"))]
    lib.impl("half", lambda x, s=(), z=1.5, q=None, b=True: x / 2 * z, "CompositeImplicitAutograd")
    leaf = torch.ones(2, requires_grad=True)
    half(leaf, z=3.0).sum().backward()
    log += [half(x).tolist(), leaf.grad.tolist(), refused(lambda: library.Library(space, "NO"))]
    library.define(f"{space}::quarter", "(Tensor x) -> Tensor")
    library.impl(f"{space}::quarter", "default")(lambda x: x / 4)
    library.define(f"{space}::eighth", "(Tensor x) -> Tensor")
    library.impl(lib, "eighth", "CPU")(lambda x: x / 8)
    space_of = getattr(torch.ops, space)
    log += [hasattr(getattr(torch.ops, f"{space}_without_operators"), "f"), hasattr(space_of, "half")]
    log += [space_of.quarter(x).tolist(), space_of.eighth.default(x).tolist()]
    log += [refused(lambda: library.register_fake(f"{space}::nothing", print)), refused(lambda: lib.define("half"))]
    log += [refused(lambda: space_of.nothing), refused(lambda: lib.define("half(Tensor) -> Tensor"))[0]]
    return [str(each).replace(space, "space") for each in log]


def checks(torch: Any) -> Log:
    library, space, log = torch.library, f"checks_{next(NUMBERS)}", []
    x, leaf = torch.ones(2), torch.ones(2, requires_grad=True)
    op = library.custom_op(
        f"{space}::f", lambda x, k=2.0: x * k, schema="(Tensor x, float k=2.0) -> Tensor", mutates_args=()
    )
    for fake in (
        lambda x, k=2.0: x.new_empty((*x.shape, 1)),
        lambda x, k=2.0: x.new_empty(x.shape, dtype=torch.float64),
    ):
        op.register_fake(fake)
        log.append(checked(torch, op, x))
    op.register_fake(lambda x, k=2.0: torch.empty_like(x))
    log += [checked(torch, op, x), checked(torch, op, leaf), checked(torch, op, x, test_utils="test_schema")]
    op.register_autograd(lambda ctx, grad: (grad, None))
    log += [checked(torch, op, leaf), refused(lambda: torch.library.opcheck(op, (x,), test_utils=["test_nothing"]))[0]]
    liar = library.custom_op(f"{space}::g", lambda x: x.add_(1) * 1, schema="(Tensor x) -> Tensor", mutates_args=())
    log.append(checked(torch, liar, torch.ones(2)))
    found = torch.library.opcheck(liar, (torch.ones(2),), raise_exception=False, test_utils="test_schema")
    log.append(str(found["test_schema"]))
    inner = library.custom_op(f"{space}::h", lambda x: None, schema="(Tensor(a!) x) -> ()", mutates_args={"x"})
    log.append(checked(torch, inner, x))
    return [str(each).replace(space, "space") for each in log]


def layers(torch: Any) -> Log:
    """Operators that others make up, that call themselves, and that a function of autograd's stands before."""
    space, log = f"layers_{next(NUMBERS)}", []
    lib, x, leaf = torch.library.Library(space, "DEF"), torch.ones(2), torch.ones(2, requires_grad=True)
    space_of = getattr(torch.ops, space)
    lib.define("power(Tensor x, int n) -> Tensor")
    lib.impl("power", lambda x, n: x if n == 0 else space_of.power(x * 2, n - 1), "CompositeImplicitAutograd")
    log += [space_of.power(x, 3).tolist(), space_of.power(leaf, 2).requires_grad]
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
    log += [torch.func.vmap(space_of.twice)(torch.ones(3, 2)).tolist()]
    lib.impl("twice", lambda x: x * 5, "CPU")
    log += [space_of.twice(x).tolist()]
    below = getattr(torch._C, "_AutoDispatchBelowAutograd", nullcontext) if torch is not ours else nullcontext
    both = threading.Barrier(2)

    class Scaled(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            both.wait(60)  # the other thread is here, too
            with below():
                return space_of.scaled(x)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 7

    lib.define("scaled(Tensor x) -> Tensor")
    lib.impl("scaled", Scaled.apply, "Autograd")
    lib.impl("scaled", lambda x: x * 3, "CPU")

    def run() -> None:
        own = torch.ones(2, requires_grad=True)
        result = space_of.scaled(own)
        result.sum().backward()
        log.append((result.tolist(), own.grad.tolist()))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return log


PROGRAMS = (schemas, operators, kernels, checks, layers)


@pytest.mark.peer
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_pytorch(program: Callable[[Any], Log]) -> None:
    torch = pytest.importorskip("torch")
    importlib.import_module("torch.func")
    assert program(ours) == program(torch)


def test_schemas_and_checks() -> None:
    found = schemas(ours)
    assert found[0].startswith("(Tensor x, Tensor? y, Tensor[] many, SymInt[]? sizes=None, *, float scale=1.5")
    assert "Dtypes torch.float32 and torch.float64" not in (log := checks(ours))[0] and "mismatched" in log[0]


def test_operators_by_name() -> None:
    assert operators(ours)[0] == "[2.0, 4.0]" and kernels(ours)[2] == "[3.0, 3.0]"
    with pytest.raises(AttributeError):
        _ = ours.ops.__nothing_of_this_name__
    with pytest.raises(AttributeError, match="'_OpNamespace' 'mine' object has no attribute 'nothing'"):
        _ = ours.ops.mine.nothing


def test_layers_of_operators() -> None:
    assert layers(ours) == [[8.0] * 2, True, [[2.0] * 2] * 3, [5.0] * 2, *[([3.0] * 2, [7.0] * 2)] * 2]


def test_any_name_is_one_of_a_namespace() -> None:
    for space in ("Any", "namespace", "Namespace", "annotations"):
        op = ours.library.custom_op(f"{space}::f", lambda x: x * 2, schema="(Tensor x) -> Tensor", mutates_args=())
        assert getattr(ours.ops, space).f is op and ours.ops.Any.f(ours.ones(1)).tolist() == [2.0]


def test_what_is_not_there() -> None:
    op = ours.library.CustomOpDef("absent::f", "(Tensor x, ScalarType k=float32) -> Tensor", lambda x, k: x * 1)
    assert op.schema.arguments[1].default == "float32"
    op.register_kernel(None, lambda x, k: x * 1)
    op.register_fake(lambda x, k: (x, x))
    with pytest.raises(ours.library.OpCheckError, match="found 2 tensors in place of 1"):
        ours.library.opcheck(op, (ours.ones(2),))

    def function(x: Any) -> Any:
        raise AssertionError

    function.__annotations__ = {"x": "Nowhere", "return": None}
    with pytest.raises(ValueError, match="Unsupported type annotation"):
        ours.library.infer_schema(function, mutates_args=())
    op.register_fake(lambda x, k: x.new_empty(3))
    x = ours.ones(2, device="meta")
    assert op(x).shape == (3,) and op(x).device.type == "meta"


def test_samples_of_lists() -> None:
    op = ours.library.CustomOpDef("samples::f", "(Tensor[] many, float by) -> Tensor[]", lambda many, by: [])
    op.register_kernel(None, lambda many, by: [x.detach().clone() * by for x in many])
    found = ours.func.vmap(op, in_dims=([0, None], None))([ours.ones(2, 3), ours.ones(3)], 2.0)
    assert [x.shape for x in found] == [(2, 3), (2, 3)] and found[1].tolist() == [[2.0] * 3] * 2


def test_kernels_by_device() -> None:
    op = ours.library.CustomOpDef("devices::f", "(Tensor x) -> Tensor")
    op.register_kernel(["cpu", "cuda"], lambda x: x + 1)
    with pytest.raises(RuntimeError, match=r"There was no fake impl registered for <CustomOpDef\(devices::f\)>"):
        op.faked((ours.ones(1),), {})
    with ours.cuda.simulate():
        assert op(ours.ones(2, device="cuda")).tolist() == [2, 2]
    assert ours.library.wrap_triton(abs) is abs and op.default is op and repr(op) == "<CustomOpDef(devices::f)>"


def test_dense_of_pytorchs_own_namespace() -> None:
    def dense(torch: Any) -> list[bool]:
        x = torch.zeros(2, 3, 4)
        views = x, x.permute(2, 0, 1), x[:, ::2], x[1:], x[:, :, 1:], x[:0, ::2], x[0, 0, 0], x[:1].expand(5, 3, 4)
        return [torch.ops.aten.is_non_overlapping_and_dense(each) for each in views]

    assert dense(ours) == [True, True, False, True, False, True, True, False]
    assert dense(ours) == dense(pytest.importorskip("torch"))
    assert ours.ops.aten.is_non_overlapping_and_dense(ours.ones(2, 3, device="meta").mT)

"""`__torch_function__`: subclasses of Tensor, duck types and modes, in programs that do the same with PyTorch."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor
from tritensor import overrides
from tritensor.errors import ArgumentError
from tritensor.ground import index, overriding
from tritensor.scripts.faces.torch import _C

from ..overriding import remove


def logging_class(torch: Any, log: list[Any]) -> Any:
    class Logged(torch.Tensor):  # type: ignore[misc, name-defined]
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    return Logged


def scalar_tensors(torch: Any) -> list[Any]:
    """A class that is no tensor, of PyTorch's notes on extending it."""
    handled: dict[Any, Any] = {}

    class ScalarTensor:
        def __init__(self, count: int, value: float) -> None:
            self.count, self.value = count, value

        def tensor(self) -> Any:
            return self.value * torch.eye(self.count)

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func not in handled or not all(issubclass(kind, (torch.Tensor, ScalarTensor)) for kind in types):
                return NotImplemented
            return handled[func](*args, **(kwargs or {}))

    def implements(function: Any) -> Any:
        def decorate(own: Any) -> Any:
            handled[function] = own
            return own

        return decorate

    @implements(torch.mean)
    def mean(input: Any) -> float:
        return input.value / input.count

    @implements(torch.add)
    @implements(torch.Tensor.add)
    def add(input: Any, other: Any) -> Any:
        return torch.add(*(each.tensor() if isinstance(each, ScalarTensor) else each for each in (input, other)))

    scalar, found = ScalarTensor(2, 3.0), []
    found += [torch.mean(scalar), torch.add(scalar, torch.ones(2, 2)).tolist(), (torch.ones(2, 2) + scalar).tolist()]
    for call in (lambda: torch.mul(scalar, 3), lambda: torch.ones(2) * scalar, lambda: torch.cat([scalar, scalar])):
        with pytest.raises(TypeError) as error:
            call()
        found.append(str(error.value).partition(";")[0])
    return found


def metadata_tensors(torch: Any) -> list[Any]:
    """A tensor with metadata, of the same notes; what `__init__` sets stays with copies."""

    class MetadataTensor:
        def __init__(self, data: Any, metadata: Any = None) -> None:
            self._t, self._metadata = torch.as_tensor(data), metadata

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            metadata = tuple(each._metadata for each in args if hasattr(each, "_metadata"))
            args = [getattr(each, "_t", each) for each in args]
            return MetadataTensor(func(*args, **(kwargs or {})), metadata=metadata[0])

    class Named(torch.Tensor):  # type: ignore[misc, name-defined]
        pass

    made = torch.add(MetadataTensor([[1.0, 2.0]], metadata={"owner": "Ministry"}), torch.tensor([[1.0, 1.0]]))
    x = Named([1.0, 2.0])
    x.tag = "kept"
    one, two = x.unbind()
    results = [
        x + 1,
        1 - x,
        x[None].mT,
        x[0],
        torch.stack([x, x]),
        x.max(0).values,
        one,
        x.detach(),
        x.numpy(),
        x.shape,
    ]
    found = [
        made._metadata,
        made._t.tolist(),
        [type(each).__name__ for each in results],
        repr(x * 2),
        hasattr(two, "tag"),
    ]
    found += [x.add_(1) is x, type(torch.nn.Parameter(torch.ones(1)) + 1) is torch.Tensor, f"{x[0].item():.1f}"]
    return [*found, (type(copy.copy(x)).__name__, copy.copy(x).tag)]


def logs(torch: Any) -> list[Any]:
    """What a subclass is asked about, by name."""
    log: list[Any] = []
    x = logging_class(torch, log)([1.0, 2.0])
    plain, layer = torch.ones(2), torch.nn.Sequential(torch.nn.Conv1d(1, 1, 1), torch.nn.ReLU(), torch.nn.Linear(2, 2))
    calls: list[Callable[[], Any]] = [
        *(lambda: x + 1, lambda: 1 + x, lambda: plain + x, lambda: x - 1, lambda: 1 - x, lambda: x / 2, lambda: x // 2),
        *(lambda: x % 2, lambda: x**2, lambda: 2**x, lambda: x @ plain, lambda: -x, lambda: abs(x), lambda: x == plain),
        *(
            lambda: x < plain,
            lambda: plain < x,
            lambda: x[0],
            lambda: plain[x.long() - 1],
            lambda: x.shape,
            lambda: x.T,
        ),
        *(lambda: len(x), lambda: hash(x), lambda: repr(x), lambda: bool(x[0]), lambda: x.tolist(), lambda: x.mean()),
        *(lambda: torch.mean(x), lambda: x.__setitem__(0, 1), lambda: x.__iadd__(1), lambda: x.max(0), lambda: x.real),
        *(
            lambda: torch.cat([plain, x]),
            lambda: torch.nn.functional.softmax(x, 0),
            lambda: torch.einsum("i,i", x, plain),
        ),
        *(lambda: torch.where(x > 1, x, plain), lambda: plain.copy_(x), lambda: torch.add(input=plain, other=x)),
        *(lambda: torch.add(plain, 1, out=x), lambda: layer(x[None, None]), lambda: x.split(1), lambda: x.numel()),
        *(lambda: torch.tensor(x, dtype=torch.float64), lambda: torch.as_tensor(x), lambda: torch.is_tensor(x)),
        *(
            lambda: pickle.dumps(plain),
            lambda: x.requires_grad_(),
            lambda: x.detach(),
            lambda: x.grad,
            lambda: x.multiply(2),
        ),
        *(
            lambda: (x * 2).sum().backward(),
            lambda: x.grad.tolist(),
            lambda: setattr(x, "grad", None),
            lambda: x.itemsize,
        ),
    ]
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in calls:
            log.clear()
            result = call()
            found.append((type(result).__name__, *log))
    return found


def modes(torch: Any) -> list[Any]:
    """Modes, alone, nested, and around themselves."""
    overriding = pytest.importorskip("torch.overrides") if torch is not tritensor else overrides
    log: list[Any] = []

    class Log(overriding.TorchFunctionMode):  # type: ignore[misc, name-defined]
        def __init__(self, name: str = "") -> None:
            self.name = name

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append(self.name + func.__name__)
            if func is torch.sub:
                with self:
                    return torch.add(*args, alpha=-1)
            return func(*args, **(kwargs or {}))

    class Refuses(overriding.TorchFunctionMode):  # type: ignore[misc, name-defined]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented if types else "made"

    class Never(overriding.TorchFunctionMode):  # type: ignore[misc, name-defined]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    class Sub(torch.Tensor):  # type: ignore[misc, name-defined]
        pass

    x, sub, found = torch.ones(2), Sub([1.0]), []
    with Log() as mode:
        torch.sub(torch.randn(2), x.view(2)), torch.zeros(2, dtype=torch.int32), torch.nn.functional.linear(x, x), x + 1
        torch.tensor([1.0]), torch.arange(3), x.shape, torch.get_default_dtype()
        with mode, Log("inner "):
            x.neg()
    x.exp()
    found += [*log]
    with Refuses():
        found += [torch.neg(sub), torch.neg(x), torch.empty(0)]
        with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'torch\.Tensor\.mul'"), Never():
            x.mul(2)
    with overriding.BaseTorchFunctionMode():
        found.append(type(sub * 2).__name__)
    return found


def order(torch: Any) -> list[Any]:
    """Which of several classes is asked: the first argument's, but a class before those that it inherits from."""

    def class_of(name: str, base: Any, answer: Any) -> Any:
        def ask(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append((cls.__name__, [kind.__name__ for kind in types]))
            return answer

        return type(name, (base,), {"__torch_function__": classmethod(ask)})

    asked: list[Any] = []
    Left, Right = class_of("Left", torch.Tensor, "left"), class_of("Right", object, "right")
    Below, None1 = class_of("Below", Left, NotImplemented), class_of("None1", object, NotImplemented)
    left, right, below, none, found = Left([1.0]), Right(), Below([1.0]), None1(), []
    for args in ((left, right), (right, left), (left, below), (none, below), (torch.ones(1), below, left)):
        asked.clear()
        try:
            result = torch.addcmul(*args) if len(args) == 3 else torch.mul(*args)
        except TypeError:
            result = "TypeError"
        found.append((result, [*asked]))
    return found


PROGRAMS = (scalar_tensors, metadata_tensors, logs, modes, order)


@pytest.mark.peer
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_that_override_do_the_same_with_pytorch(program: Callable[[Any], list[Any]]) -> None:
    torch = pytest.importorskip("torch")
    overriding.install()
    for ours, theirs in zip(program(tritensor), program(torch), strict=True):
        assert ours == theirs


EXPECTED: dict[str, list[Any]] = {
    "scalar_tensors": [
        *(1.5, [[4.0, 1.0], [1.0, 4.0]], [[4.0, 1.0], [1.0, 4.0]], "Multiple dispatch failed for 'torch.mul'"),
        *("unsupported operand type(s) for *: 'Tensor' and 'ScalarTensor'", "Multiple dispatch failed for 'torch.cat'"),
    ],
    "metadata_tensors": [
        *({"owner": "Ministry"}, [[2.0, 3.0]], ["Named"] * 8 + ["ndarray", "Size"], "Named([2., 4.])", False),
        *(True, True, "2.0", ("Named", "kept")),
    ],
    "modes": [
        *("randn", "view", "sub", "add", "zeros", "linear", "add", "tensor", "arange", "__get__", "inner neg", "neg"),
        *("neg", "made", "made", "made", "Sub"),
    ],
    "order": [
        ("left", [("Left", ["Left", "Right"])]),
        ("right", [("Right", ["Right", "Left"])]),
        ("left", [("Below", ["Below", "Left"]), ("Left", ["Below", "Left"])]),
        ("TypeError", [("None1", ["None1", "Below"]), ("Below", ["None1", "Below"])]),
        ("left", [("Below", ["Below", "Left"]), ("Left", ["Below", "Left"])]),
    ],
}


@pytest.mark.parametrize("program", [program for program in PROGRAMS if program is not logs])
def test_programs_override_functions(program: Callable[[Any], list[Any]]) -> None:
    overriding.install()
    assert program(tritensor) == EXPECTED[program.__name__]


def test_nobody_asks_before_the_first_class_that_could_answer() -> None:
    class Kind(tritensor.nn.Parameter):
        pass

    assert type(Kind(tritensor.ones(1)) + 1) is tritensor.Tensor and not index.watching
    functions = tritensor.mean, tritensor.Tensor.add, tritensor.nn.functional.linear
    shown = [*map(inspect.signature, functions)]

    class Plain(tritensor.Tensor):
        pass

    class Own(tritensor.nn.Parameter):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return "its own"

    assert not index.watching and Own(tritensor.ones(1)) + 1 == "its own"
    assert index.watching and type(Plain([1.0]) + 1) is Plain
    assert functions == (tritensor.mean, tritensor.Tensor.add, tritensor.nn.functional.linear)
    assert [*map(inspect.signature, functions)] == shown
    assert tritensor.mean is not tritensor.Tensor.mean and tritensor.Tensor.mean.__name__ == "mean"


def test_a_class_that_is_no_tensor_is_found_where_its_module_looks_a_function_up() -> None:
    code = "class Duck:\n @classmethod\n def __torch_function__(cls, func, *args): return func.__name__\n"
    vars(tritensor).pop("mean", None)
    scope: dict[str, Any] = {"torch": tritensor, "__name__": "theirs"}
    exec(code + "found = torch.mean(Duck()), torch.ones(1) + Duck()", scope)
    assert scope["found"] == ("mean", "add")


def test_functions_of_ones_own_are_overridden() -> None:
    @overrides.wrap_torch_function(lambda a, b=None: (a, b))
    def double(a: Any, b: Any = None) -> Any:
        return 2 * a

    class Never:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return "mine" if kwargs else NotImplemented

    class Sub(tritensor.Tensor):
        pass

    assert double(3) == 6 and double(tritensor.ones(1)).item() == 2 and type(double(Sub([1.0]))) is Sub
    assert double(1, b=Never()) == "mine" and overrides.has_torch_function_variadic(1, Never())
    assert not overrides.has_torch_function_unary(tritensor.nn.Parameter(tritensor.ones(1)))
    with pytest.raises(ArgumentError, match=r"no implementation found for '.*double' on types that implement"):
        double(Never())
    with overrides.BaseTorchFunctionMode():
        assert overrides.has_torch_function((1,)) and double(3) == 6
        with _C.DisableTorchFunction():
            assert not overrides.has_torch_function((Never(),))
    assert overrides.is_tensor_like(Never()) and not overrides.is_tensor_like(3)


def test_asking_is_disabled_within_a_context_and_in_other_threads() -> None:
    log: list[str] = []

    class Log(overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append(func.__name__)
            return func(*args, **(kwargs or {}))

    class Sub(tritensor.Tensor):
        pass

    x = Sub([1.0])
    with Log():
        with _C.DisableTorchFunctionSubclass():
            assert type(x + 1) is tritensor.Tensor
        with _C.DisableTorchFunction():
            assert type(x - 1) is tritensor.Tensor
        thread = threading.Thread(target=lambda: tritensor.ones(2).mul(3))
        thread.start()
        thread.join()
    assert log == ["add"] and type(_C._disabled_torch_function_impl(tritensor.neg, (), (x,))) is tritensor.Tensor


def test_the_first_modes_of_two_threads_see_all_calls() -> None:
    both, answers = threading.Barrier(2), list[Any]()

    class Answers(overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func.__name__

    def run() -> None:
        both.wait(60)
        with Answers():
            answers.append((tritensor.linalg.svd(x), tritensor.Tensor.t(x)))

    remove()
    x, threads = tritensor.ones(2, 2), [threading.Thread(target=run) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert answers == [("svd", "t")] * 2


def test_names_of_functions() -> None:
    T, name = tritensor.Tensor, overrides.resolve_name
    assert [name(f) for f in (T.add, tritensor.add, T.shape.__get__, T.grad.__set__, tritensor.linalg.svd, len)] == [
        *("torch.Tensor.add", "torch.add", "torch.Tensor.shape.__get__", "torch.Tensor.grad.__set__"),
        *("torch.linalg.svd", None),
    ]
    assert overrides.is_tensor_method_or_property(T.shape.__get__) and overrides.is_tensor_method_or_property(T.add)
    assert not overrides.is_tensor_method_or_property(tritensor.add)
    found, ignored = overrides.get_overridable_functions(), overrides.get_ignored_functions()
    assert tritensor.add in found[tritensor] and T.add in found[T] and tritensor.fft.fft in found[tritensor.fft]
    assert {tritensor.is_tensor, tritensor.set_default_dtype} <= ignored and tritensor.add not in ignored


@pytest.mark.parametrize("place", ["cpu", "cuda"])
def test_a_subclass_shares_memory_and_history(place: str) -> None:
    class Sub(tritensor.Tensor):
        pass

    with tritensor.cuda.simulate():
        leaf = tritensor.ones(2, requires_grad=True, device=place)
        x = (leaf * 2).as_subclass(Sub)
        assert (
            type(x) is Sub and type(x.grad_fn).__name__ == "AliasBackward0" and x.as_subclass(tritensor.Tensor) is not x
        )
        (x * 3).sum().backward()
        assert leaf.grad.tolist() == [6.0, 6.0] and type(leaf.grad) is tritensor.Tensor
        x.requires_grad_()
        with tritensor.no_grad():
            y = leaf.as_subclass(Sub).zero_()
        assert leaf.tolist() == [0.0, 0.0] and type(y) is Sub
        made = tritensor.Tensor._make_subclass(Sub, leaf, True)
        made.tag = [1]
        copied = copy.deepcopy(made)
        assert made.is_leaf and made.requires_grad and made.data_ptr() == leaf.data_ptr()
        assert type(copied) is Sub and copied.tag == [1] and copied.tag is not made.tag
    with pytest.raises(ArgumentError, match="Creating a Tensor subclass from a class that does not inherit"):
        tritensor.ones(1).as_subclass(int)  # type: ignore[type-var]


def test_a_batch_of_a_subclass_is_of_it() -> None:
    class Sub(tritensor.Tensor):
        pass

    data = tritensor.utils.data
    loader = data.DataLoader(data.TensorDataset(Sub([[1.0], [2.0]])), batch_size=2)
    assert [type(batch) for batch in next(iter(loader))] == [Sub]
    assert type(tritensor.nn.ConvTranspose1d(1, 1, 1)(Sub(np.ones((1, 1, 2))))) is Sub


def test_a_grid_of_sizes_that_are_tensors_is_of_the_maps_dtype() -> None:
    theta = tritensor.tensor([[[1.0, 0.0, 0.1], [0.0, 1.0, 0.2]]], dtype=tritensor.float64)
    sizes = [1, 1, *tritensor.tensor([3.0, 5.0]).long().unbind()]
    grids = [tritensor.nn.functional.affine_grid(theta, size, align_corners=False) for size in (sizes, [1, 1, 3, 5])]
    assert grids[0].tolist() == grids[1].tolist()

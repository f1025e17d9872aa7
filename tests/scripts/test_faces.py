"""What libraries ask of PyTorch's modules, of programs that `python -m tritensor run` runs."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.scripts import names
from tritensor.scripts.faces import torch as face
from tritensor.scripts.faces.torch import _C, fx, jit
from tritensor.scripts.faces.torch.autograd import Variable
from tritensor.scripts.faces.torch.nn.modules import prefixes, tuples
from tritensor.scripts.faces.torch.utils import _pytree as pytree

from .test_run import Program, program, run

__all__ = ["program"]
LIBRARIES = [f"torch.backends.{name}" for name in ("mkl", "mkldnn", "openmp")]


def test_missing_names_may_be_named(program: Program) -> None:
    shown = program("""
import inspect, typing
import torch
from torch.fx import Proxy
from torch.missing.place import Base, mark, kept

def annotated(x: Proxy, y: "Proxy | None" = None, z: Proxy | None = None, w: Proxy[int] = None) -> torch.fx.Graph:
    return x

assert annotated(3) == 3 and not isinstance(3, Proxy) and not issubclass(int, (Proxy, float))
assert isinstance(3, (Proxy, int)) and torch.float32 != torch.no_such_dtype
found = typing.Optional[Proxy], {torch.one_name: 1}, [Base, None]
assert inspect.getdoc(annotated) is None

class Mine(Base, torch.nn.Module):
    pass

@mark
def decorated():
    pass

@kept("with", words=1)
def decorated_too():
    pass

@mark
class Kept:
    pass

Kept()
for call, name in ((Mine, "Base"), (decorated, "mark"), (decorated_too, "kept"), (lambda: Proxy(1), "Proxy")):
    try:
        call()
    except AttributeError as error:
        print(name in str(error).splitlines()[0], "does not exist in tritensor" in str(error))
""")
    assert shown == "True True\n" * 4


def test_a_face_is_a_module(program: Program) -> None:
    shown = program("""
import importlib, importlib.metadata, inspect, sys
import torch
print(importlib.metadata.version("torch"), importlib.metadata.distribution("torchvision").metadata["Name"])
assert torch.nn.modules is importlib.import_module("torch.nn.modules")
assert torch.nn.modules.conv.Conv2d is torch.nn.Conv2d
assert vars(torch.nn)["Linear"] is torch.nn.Linear and "relu" in torch.nn.functional.__dict__
assert dict(inspect.getmembers(torch.optim))["SGD"] is torch.optim.SGD
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.loss import _Loss
from torch.nn.modules.utils import _pair, consume_prefix_in_state_dict_if_present
import torch.multiprocessing.spawn
from torch.multiprocessing.spawn import ProcessContext
from torch.multiprocessing import ProcessRaisedException, spawn
assert spawn.__name__ == "start_processes" and torch.multiprocessing.spawn is spawn
assert isinstance(torch.nn.BatchNorm2d(2), _BatchNorm) and issubclass(torch.nn.Conv1d, _ConvNd) and _pair(3) == (3, 3)
shown = repr([torch.float32, torch.ones(2).shape, torch.channels_last, torch.strided])
assert shown == "[torch.float32, torch.Size([2]), torch.channels_last, torch.strided]"
assert torch.finfo(torch.float8_e4m3fn).max == 448
assert torch.jit.isinstance(3, int) and torch.jit.is_scripting() is False  # of a face, and of a module here
assert "wrap" in dir(torch.fx) and torch.fx.wrap("f") == "f" and torch.utils._pytree.tree_map(abs, [-1]) == [1]
x = [torch.ones(2), torch.zeros(2)]
torch._foreach_add_(x, [torch.ones(2), torch.ones(2)], alpha=2)
torch._foreach_maximum_(x, 2.5)
print(x, torch._foreach_norm(x), torch._foreach_mul(x, [1, 2])[1])
torch._foreach_copy_(x, [torch.zeros(2)] * 2, non_blocking=True)
assert float(x[0].sum()) == 0
torch._foreach_zero
""")
    assert shown == (
        "2.13.0+tritensor torchvision\n"
        "[tensor([3., 3.]), tensor([2.5000, 2.5000])] [tensor(4.2426), tensor(3.5355)] tensor([5., 5.])\n"
    )


def test_a_project_is_tested_under_it(tmp_path: Path) -> None:
    """As `python -m pytest` would in an environment with PyTorch."""
    (tmp_path / "model.py").write_text("import torch\n\n\ndef doubled(x):\n    return torch.add(x, x)\n")
    (tmp_path / "test_model.py").write_text(
        "import pytest\nimport torch\nfrom model import doubled\n\n\n"
        '@pytest.mark.parametrize("kind", [torch.float32, torch.int64])\n'
        "def test_doubled(kind):\n    assert doubled(torch.ones(2, dtype=kind)).tolist() == [2, 2]\n\n\n"
        "def test_gradient():\n    x = torch.ones(2, requires_grad=True)\n    doubled(x).sum().backward()\n"
        "    torch.testing.assert_close(x.grad, torch.tensor([2.0, 2.0]))\n"
    )
    done = run("-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path, "--rootdir", tmp_path)
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout + done.stderr


def test_dtypes_without_tensors() -> None:
    kind = face.float8_e8m0fnu
    assert isinstance(kind, torch.dtype) and kind.is_floating_point and kind.itemsize == 1 and kind != torch.float16
    assert torch.finfo(kind).eps == 1 and not face.quint8.is_signed and face.complex32.is_complex
    with pytest.raises(names.MissingName, match=r"there are no tensors of torch\.float8_e8m0fnu"):
        torch.ones(2).to(kind)
    with pytest.raises(AttributeError):
        _ = kind.nothing


def test_a_variable_is_a_tensor() -> None:
    x = torch.ones(2)
    assert Variable(x, requires_grad=True).requires_grad and Variable(x).data_ptr() == x.data_ptr()
    assert isinstance(x, Variable) and not isinstance(2, Variable) and not x.requires_grad


def test_checks() -> None:
    face._check(True)
    face._assert_async(torch.ones(1))
    for check, error in (
        (face._check, RuntimeError),
        (face._check_index, IndexError),
        (face._check_value, ValueError),
        (face._check_type, TypeError),
        (face._check_not_implemented, NotImplementedError),
    ):
        with pytest.raises(error, match="too few"):
            check(False, lambda: "too few")
        with pytest.raises(error, match="Expected cond to be True"):
            check(False)
    with pytest.raises(RuntimeError, match="nonzero"):
        face._assert_async(torch.zeros(1))
    with pytest.raises(AttributeError):
        _ = face.nothing


def test_older_names() -> None:
    with torch.autocast("cpu"):
        assert face.is_autocast_cpu_enabled() and face.get_autocast_cpu_dtype() is torch.bfloat16
    assert not face.is_autocast_cpu_enabled() and face.get_autocast_gpu_dtype() is torch.float16
    assert torch.hub.HASH_REGEX.search("resnet18-f37072fd.pth")[1] == "f37072fd"
    assert torch.hub._get_torch_home() == str(Path(torch.hub.get_dir()).parent)
    assert torch.nn.init._no_grad_fill_(torch.empty(2), 3.0).tolist() == [3, 3]
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="only_inputs argument is deprecated and is ignored now"):
        (found,) = torch.autograd.grad(x.sum(), x, None, None, False, False)
    assert found.tolist() == [1, 1]


def test_what_is_switched_off() -> None:
    assert fx.wrap(abs) is abs
    assert [each.is_available() for each in map(names.facade, LIBRARIES)] == [False] * 3
    assert not _C._are_functorch_transforms_active() and _C._get_tracing_state() is None and not _C._is_tracing()
    assert _C._get_privateuse1_backend_name() == "privateuseone"
    assert _C._log_api_usage_once("x") is None and _C._jit_set_profiling_mode(True) is None
    with pytest.raises(AttributeError):
        _ = _C._nothing
    assert jit.isinstance([1], list[int]) and not jit.isinstance(1, str)


def test_arguments_of_to() -> None:
    place = torch.device("cpu")
    assert _C._nn._parse_to("cpu", torch.float64, True) == (place, torch.float64, True, None)
    assert _C._nn._parse_to(torch.ones(1)) == (place, torch.float32, False, None)
    assert _C._nn._parse_to(dtype=torch.int8, non_blocking=True) == (None, torch.int8, True, None)


def test_sizes_and_prefixes() -> None:
    assert tuples._triple(2) == (2, 2, 2) and tuples._single([4]) == (4,) and tuples._quadruple.__name__ == "_quadruple"
    assert tuples._reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    assert tuples._list_with_default([None, 3], [7, 8, 9]) == [8, 3]
    state: Any = OrderedDict({"module.a": 1, "module.b.c": 2, "d": 3})
    state._metadata = {"": 1, "module": 2, "module.b": 3}
    prefixes.consume_prefix_in_state_dict_if_present(state, "module.")
    assert dict(state) == {"d": 3, "a": 1, "b.c": 2} and state._metadata == {"": 2, "b": 3}


# ---- trees ----------------------------------------------------------------------------------------------------

Pair = namedtuple("Pair", "one two")


class Held:
    def __init__(self, value: Any, name: str) -> None:
        self.value, self.name = value, name


def test_trees() -> None:
    tree = {
        "a": [1, (2, Pair(3, 4))],
        "b": OrderedDict(c=5),
        "d": defaultdict(list, e=6),
        "f": deque([7], 9),
        "g": None,
    }
    leaves, spec = pytree.tree_flatten(tree)
    assert leaves == [1, 2, 3, 4, 5, 6, 7, None] and spec.num_leaves == 8 and spec.num_children == 5
    again = pytree.tree_unflatten(leaves, spec)
    assert again == tree and isinstance(again["a"][1][1], Pair) and again["f"].maxlen == 9
    assert spec == pytree.tree_structure(again) and hash(spec) == hash(pytree.tree_structure(again))
    assert not spec.is_leaf() and pytree.LeafSpec().is_leaf() and spec.unflatten(range(8))["b"] == {"c": 4}
    paths = [pytree.keystr(path) for path, _ in pytree.tree_flatten_with_path(tree)[0]]
    assert paths[:5] == ["['a'][0]", "['a'][1][0]", "['a'][1][1].one", "['a'][1][1].two", "['b']['c']"]
    with pytest.raises(ValueError, match="has length 1 but the spec refers to a pytree that holds 8 items"):
        pytree.tree_unflatten([1], spec)


def test_maps_over_trees() -> None:
    tree = {"a": [1, 2.0], "b": (3,)}
    assert pytree.tree_map(lambda x, y: x + y, tree, {"a": [10, 20], "b": (30,)}) == {"a": [11, 22.0], "b": (33,)}
    assert pytree.tree_map(lambda x, y: (x, y), [1], [{"whole": 2}]) == [(1, {"whole": 2})]
    assert pytree.tree_map_only(int, lambda x: -x, tree) == {"a": [-1, 2.0], "b": (-3,)}
    assert pytree.tree_map_only(lambda x: x == 3, lambda x: 0, tree)["b"] == (0,)
    assert pytree.tree_map(len, [[1, 2], [3]], is_leaf=lambda x: x != [[1, 2], [3]]) == [2, 1]
    seen: list[Any] = []
    assert pytree.tree_map_(seen.append, tree) is tree and seen == [1, 2.0, 3] == list(pytree.tree_iter(tree))
    found = pytree.tree_map_with_path(lambda path, x, y: f"{pytree.keystr(path)}={x + y}", [1, 2], [3, 4])
    assert found == ["[0]=4", "[1]=6"]
    assert pytree.tree_all(bool, tree) and pytree.tree_any(lambda x: x == 3, tree) and pytree.tree_leaves(3) == [3]
    assert pytree._get_node_type(Pair(1, 2)) is namedtuple and pytree._is_leaf(3) and not pytree._is_leaf([3])
    for other, message in (({"a": 1, "b": (3,)}, "Node type mismatch"), ({"a": [1], "b": (3,)}, "Node arity mismatch")):
        with pytest.raises(ValueError, match=message):
            pytree.tree_map(lambda x, y: x, tree, other)


def test_registered_classes_are_nodes() -> None:
    pytree.register_pytree_node(
        Held,
        lambda held: ([held.value], held.name),
        lambda values, name: Held(*values, name),
        serialized_type_name="Held",
        flatten_with_keys_fn=lambda held: ([(pytree.GetAttrKey("value"), held.value)], held.name),
    )
    pytree.register_constant(SimpleNamespace)
    try:
        found = pytree.tree_map(lambda x: x + 1, [Held(1, "n"), SimpleNamespace(a=2)])
        assert (found[0].value, found[0].name, found[1].a) == (2, "n", 2)
        assert pytree.keystr(pytree.tree_flatten_with_path(Held(1, "n"))[0][0][0]) == ".value"
    finally:
        del pytree.SUPPORTED_NODES[Held], pytree.SUPPORTED_NODES[SimpleNamespace]


# ---- what is asked of tensors and modules ---------------------------------------------------------------------


def test_storages(tmp_path: Path) -> None:
    x = torch.arange(4.0)
    held, part = x.untyped_storage(), x[2:].untyped_storage()
    assert held.data_ptr() == part.data_ptr() == held._cdata and len(held) == held.size() == held.nbytes() == 16
    assert held[4:8].tolist() == [0, 0, 128, 63] == list(held[4:8]) and held[6] == 128 and held.element_size() == 1
    held[4:8] = 0
    assert x.tolist() == [0, 0, 2, 3] and not held.is_cuda and not held.is_shared() and held.get_device() == -1
    assert held.clone().fill_(0).copy_(held).tolist() == held.tolist() and held.cpu() is held and held.untyped() is held
    typed = x.storage()
    assert (typed.size(), typed.nbytes(), typed.element_size(), typed[2], len(typed)) == (4, 16, 4, 2.0, 4)
    assert list(typed) == typed.tolist() == [0, 0, 2, 3] and typed.untyped().data_ptr() == typed.data_ptr()
    assert torch.asarray(held[8:12], dtype=torch.uint8).view(dtype=torch.float32).tolist() == [2]
    assert torch.UntypedStorage(3).nbytes() == 3 and torch.UntypedStorage([1, 2]).tolist() == [1, 2]
    assert "of size 2]" in repr(torch.UntypedStorage([1, 2])) and not held.is_pinned() and held.resize_(16) is held
    with pytest.raises(RuntimeError, match="cannot be resized"):
        held.resize_(3)
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(8)))
    private, shared = (torch.UntypedStorage.from_file(str(path), each, 8 + 8 * each) for each in (False, True))
    private[0], shared[1] = 9, 9
    assert private.tolist()[:2] == [9, 9] or private.tolist()[:2] == [9, 1]
    del shared
    assert path.read_bytes() == bytes([0, 9, *range(2, 8), *[0] * 8])
    assert torch.UntypedStorage.from_file(str(path), nbytes=0).nbytes() == 0
    gaps = torch.from_numpy(np.ndarray((4,), "u1", bytearray(8), strides=(2,)))
    with pytest.raises(RuntimeError, match="has gaps"):
        gaps.untyped_storage()


def test_devices_that_are_named_only() -> None:
    assert torch.device("mps") != torch.device("cpu") and str(torch.device("xpu:1")) == "xpu:1"
    with pytest.raises(RuntimeError, match="tensors cannot be on a mps device"):
        torch.ones(2, device="mps")
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        torch.device("npu")


def test_new() -> None:
    x = torch.ones(2, dtype=torch.float64)
    assert x.new(2, 3).shape == (2, 3) and x.new([1, 2]).dtype is torch.float64 and x.new().shape == (0,)
    assert x.new(torch.Size([4])).shape == (4,) and x.new(x).data_ptr() == x.data_ptr()


def test_an_optimizer_without_its_classs_constructor() -> None:
    class Wrapping(torch.optim.Optimizer):
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def step(self, closure: Any = None) -> None:
            self.inner.step(closure)

    weight = torch.nn.Parameter(torch.ones(1))
    weight.grad = torch.ones(1)
    wrapping, seen = Wrapping(torch.optim.SGD([weight], lr=0.5)), []
    wrapping.step()
    handle = wrapping.register_step_post_hook(lambda *arguments: seen.append(1))
    wrapping.step()
    assert weight.item() == 0 and seen == [1]
    handle.remove()
    wrapping.step()
    assert seen == [1]


def test_modules_that_convert_themselves_are_asked_to() -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kept, self.inner, self.calls = torch.ones(1), torch.nn.Linear(1, 1), 0

        def _apply(self, fn: Any, recurse: bool = True) -> Any:
            self.calls += 1
            self.kept = fn(self.kept)
            return super()._apply(fn, recurse)

    model = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Sequential(Counting()))
    model.double()
    inner: Any = model[1][0]
    assert inner.calls == 1 and inner.kept.dtype is inner.inner.weight.dtype is model[0].weight.dtype is torch.float64


def test_dtypes_of_elementwise_functions() -> None:
    from tritensor.scripts.faces.torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as KIND
    from tritensor.scripts.faces.torch._prims_common import elementwise_dtypes, is_boolean_dtype, is_integer_dtype

    half, whole = torch.ones(2, dtype=torch.float16), torch.ones(2, dtype=torch.int32)
    flag, pair = torch.ones(2, dtype=torch.bool), torch.ones(2, dtype=torch.complex64)
    assert elementwise_dtypes(half, whole, type_promotion_kind=KIND.DEFAULT) == (torch.float32, torch.float16)
    assert elementwise_dtypes(half, 2.0, type_promotion_kind=KIND.NO_OPMATH) == (torch.float16, torch.float16)
    assert elementwise_dtypes(whole, type_promotion_kind=KIND.INT_TO_FLOAT) == (torch.float32, torch.float32)
    assert elementwise_dtypes(half, half, type_promotion_kind=KIND.ALWAYS_BOOL) == (torch.float32, torch.bool)
    assert elementwise_dtypes(pair, type_promotion_kind=KIND.COMPLEX_TO_FLOAT) == (torch.complex64, torch.float32)
    assert elementwise_dtypes(flag, type_promotion_kind=KIND.BOOL_TO_LONG) == (torch.int64, torch.int64)
    assert is_boolean_dtype(torch.bool) and is_integer_dtype(torch.int8) and not is_integer_dtype(torch.bool)


def test_keys_of_dispatch_and_other_makers_devices() -> None:
    from tritensor.scripts.faces.torch import xpu

    assert _C.DispatchKeySet(_C.DispatchKey.CompositeExplicitAutograd) == {"CompositeExplicitAutograd"}
    assert not xpu.is_available() and xpu.device_count() == 0
    assert torch.version.hip is None and torch.version.xpu is None

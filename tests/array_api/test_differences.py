"""Where PyTorch and the standard differ, tensors stay PyTorch's, and arrays of the namespace are the standard's."""

from __future__ import annotations

import copy
import io
import math
import operator
import pickle
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import array_api as xp

Array: Any = xp.Array


def test_what_is_an_array() -> None:
    """What the namespace makes of no tensor, and results with an array; of tensors alone it makes tensors."""
    made, x = xp.zeros(2), torch.ones(2)
    assert type(made) is Array and isinstance(made, torch.Tensor) and repr(made) == "tensor([0., 0.])"
    for found in (made + x, x + made, 1 - made, -made, made[0], made.T, xp.sum(made), xp.concat([x, made])):
        assert type(found) is Array
    assert all(type(found) is Array for found in xp.linalg.slogdet(xp.eye(2))) and type(xp.asarray([1])) is Array
    assert type(xp.asarray(np.ones(2))) is Array and type(xp.eye(2).mT) is Array and type(made[None]) is Array
    for found in (x + x, xp.sum(x), xp.concat([x, x]), xp.add(x, 1), xp.asarray(x, dtype=xp.float64), x[0]):
        assert type(found) is torch.Tensor
    assert xp.asarray(x) is x and xp.astype(x, x.dtype, copy=False) is x and type(x) is torch.Tensor
    assert all(found is x or type(found) is torch.Tensor for found in xp.broadcast_arrays(x, x))
    assert xp.astype(made, xp.int8).__class__ is Array and type(made.sum()) is torch.Tensor  # PyTorch's method


def test_an_array_is_a_tensor_in_programs(device: torch.device) -> None:
    layer = torch.nn.Linear(2, 1, device=device)
    x = xp.asarray([[1.0, 2.0]], device=device)
    loss = xp.sum(layer(x) * xp.asarray(2.0, device=device))
    loss.backward()
    assert layer.weight.grad.tolist() == [[2.0, 4.0]]
    weight = torch.ones(2, device=device, requires_grad=True)
    xp.mean(xp.square(weight) * x).backward()
    assert weight.grad.tolist() == [1.0, 2.0]
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(other) is Array and other.tolist() == x.tolist() and other.device == device
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    assert torch.load(file)["x"].tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize(
    ("name", "first", "second", "tensors", "arrays"),
    [
        ("add", torch.float32, torch.float64, torch.float32, torch.float64),
        ("mul", torch.int8, torch.int64, torch.int8, torch.int64),
        ("sub", torch.uint8, torch.int8, torch.uint8, torch.int16),
        ("and_", torch.int16, torch.uint16, torch.int16, torch.int32),
        ("truediv", torch.complex64, torch.complex128, torch.complex64, torch.complex128),
    ],
)
def test_no_dimensions_count_in_arrays_alone(
    name: str, first: Any, second: Any, tensors: Any, arrays: Any, device: torch.device
) -> None:
    compute = getattr(operator, name)
    x, y = torch.ones(2, dtype=first, device=device), torch.ones((), dtype=second, device=device)
    assert compute(x, y).dtype is compute(y, x).dtype is tensors
    ours = xp.ones(2, dtype=first, device=device), xp.ones((), dtype=second, device=device)
    assert compute(*ours).dtype is compute(*ours[::-1]).dtype is compute(x, ours[1]).dtype is arrays
    assert compute(ours[0], y).dtype is compute(y, ours[0]).dtype is arrays
    named = {"and_": "bitwise_and", "truediv": "divide", "mul": "multiply", "sub": "subtract"}.get(name, name)
    assert getattr(xp, named)(x, y).dtype is arrays  # the namespace has the standard's rule for tensors, too


def test_comparisons_in_the_dtype_of_both() -> None:
    assert (torch.tensor([1], dtype=torch.int8) == torch.tensor(257)).tolist() == [True]  # PyTorch's 257 wraps
    assert (xp.asarray([1], dtype=xp.int8) == xp.asarray(257)).tolist() == [False]
    assert xp.equal(torch.tensor([1], dtype=torch.int8), torch.tensor(257)).tolist() == [False]


def test_quotients_of_infinities(device: torch.device) -> None:
    """PyTorch's are Python's; those of the standard are the limits."""
    inf = math.inf
    numbers, divisors = [inf, -inf, 1.0, -1.0, 7.5], [2.0, 2.0, -inf, inf, 2.0]
    x, y = torch.tensor(numbers, device=device), torch.tensor(divisors, device=device)
    assert [str(each) for each in (x // y).tolist()] == ["nan", "nan", "-1.0", "-1.0", "3.0"]
    ours, other = xp.asarray(numbers, device=device), xp.asarray(divisors, device=device)
    assert [str(each) for each in (ours // other).tolist()] == ["inf", "-inf", "-0.0", "-0.0", "3.0"]
    assert xp.floor_divide(x, y).tolist()[:2] == [inf, -inf]
    ours //= other
    assert type(ours) is Array and ours.tolist()[:2] == [inf, -inf]
    zeros = xp.asarray([0.0, -0.0, 5.0], device=device)
    assert [str(each) for each in (zeros % xp.asarray([-2.0, 2.0, 3.0], device=device)).tolist()] == [
        "-0.0",
        "0.0",
        "2.0",
    ]
    zeros %= -2.0
    assert [str(each) for each in zeros.tolist()] == ["-0.0", "-0.0", "-1.0"]


def test_numbers_beside_arrays(device: torch.device) -> None:
    x = xp.asarray([1, 2], dtype=xp.uint8, device=device)
    for name in ("add", "maximum", "bitwise_or", "less"):
        function = getattr(xp, name)
        assert function(x, 2).device == function(2, x).device == device
    assert xp.add(x, 2).dtype is xp.uint8 and xp.add(x, 2.0).dtype is xp.float32
    f = xp.asarray([0.5], dtype=xp.float64, device=device)
    for name in ("atan2", "hypot", "copysign", "logaddexp", "nextafter", "pow", "divide"):
        assert getattr(xp, name)(f, 2).dtype is getattr(xp, name)(2.0, f).dtype is xp.float64
    assert xp.where(x > 1, 5, x).tolist() == [1, 5] and (x + np.uint8(1)).tolist() == [2, 3]
    assert xp.clip(x, 2, None).dtype is xp.uint8


def test_unsigned_integers_promote_with_others(device: torch.device) -> None:
    """In operators of tensors too, where PyTorch has no kernel; `promote_types` says what PyTorch's does."""
    x, y = torch.ones(2, dtype=torch.uint16, device=device), torch.ones(2, dtype=torch.int8, device=device)
    assert (x + y).dtype is torch.int32 and (x * x.to(torch.uint64)).dtype is torch.uint64
    assert torch.cat([x, y]).dtype is torch.int32
    with pytest.raises(RuntimeError, match="Promotion for uint16"):
        torch.promote_types(torch.uint16, torch.int8)
    with pytest.raises(RuntimeError, match="Promotion for uint16"):
        x.to(torch.uint64) + y


def test_sums_and_results_have_the_standards_dtypes(device: torch.device) -> None:
    x = torch.ones(2, 3, dtype=torch.uint8, device=device)
    assert x.sum().dtype is torch.int64 and xp.sum(x).dtype is xp.prod(x).dtype is torch.uint64
    assert x.all().dtype is torch.uint8 and xp.all(x).dtype is torch.bool
    assert xp.sum(x, axis=()).tolist() == x.tolist() and x.sum(()).tolist() == 6
    assert xp.var(x.float()).item() == 0 and xp.std(x[0, :2].float(), correction=1).item() == 0


def test_copies(device: torch.device) -> None:
    x = torch.arange(6, device=device).reshape(2, 3)
    assert xp.asarray(x, copy=True).data_ptr() != x.data_ptr() == xp.asarray(x, copy=False).data_ptr()
    assert xp.reshape(x, (6,), copy=False).data_ptr() == x.data_ptr() != xp.reshape(x, (6,), copy=True).data_ptr()
    assert xp.reshape(x.T, (6,)).tolist() == xp.reshape(x.T, (6,), copy=True).tolist() == [0, 3, 1, 4, 2, 5]
    array = np.ones(2)
    assert xp.asarray(array, copy=False).data_ptr() == array.ctypes.data != xp.asarray(array, copy=True).data_ptr()
    assert xp.from_dlpack(array).tolist() == [1, 1] and xp.from_dlpack(array, device=device).device == device
    assert xp.asarray(x, device="cpu").device == torch.device("cpu") and xp.asarray(x).device == device
    moved = xp.asarray(x, device="cpu", copy=True)
    assert moved.device == torch.device("cpu") and moved is not x


REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: xp.sum([1, 2]), TypeError, r"sum\(\): argument 'x' .* must be Tensor, not list"),
    (lambda: xp.sum(), TypeError, "missing a required argument: 'x'"),
    (lambda: xp.sum(xp.ones(2), 0), TypeError, "too many positional arguments"),
    (lambda: xp.sum(xp.ones(2), dim=0), TypeError, "unexpected keyword argument 'dim'"),
    (lambda: xp.add(1, 2), TypeError, r"add\(\) takes tensors, and numbers beside them - got \(int, int\)"),
    (lambda: xp.add(xp.ones(2), "2"), TypeError, r"got \(Array, str\)"),
    (lambda: xp.concat([]), TypeError, r"concat\(\) takes tensors"),
    (lambda: xp.result_type(1, 2.0), TypeError, r"result_type\(\) takes tensors"),
    (lambda: xp.isdtype(xp.int8, "integer"), ValueError, r"(?s)unknown kind 'integer'.*signed integer"),
    (lambda: xp.squeeze(xp.ones((2, 1)), axis=0), ValueError, r"(?s)squeeze: .*axis 0 of \[2, 1\]"),
    (lambda: xp.nonzero(xp.asarray(1)), ValueError, "nonzero: a 0-dim tensor has no places"),
    (lambda: xp.take(xp.ones((2, 2)), xp.asarray([0])), ValueError, "(?s)take: which axis of 2.*pass axis"),
    (lambda: xp.cumulative_sum(xp.ones((2, 2))), ValueError, "which axis of 2"),
    (lambda: xp.asarray([1.0], copy=False), ValueError, "(?s)asarray: copy=False.*copy=None"),
    (lambda: xp.asarray(np.ones(2), dtype=xp.int8, copy=False), ValueError, "asarray: copy=False"),
    (lambda: xp.reshape(xp.ones((2, 3)).T, (6,), copy=False), ValueError, "reshape: copy=False"),
    (lambda: xp.linalg.vecdot(xp.ones((2, 1)), xp.ones((2, 3))), RuntimeError, "(?s)vecdot: .*1 and 3"),
    (lambda: xp.linalg.matrix_transpose(xp.ones(3)), RuntimeError, "matrices"),
    (lambda: xp.max(xp.ones((2, 2)), axis=(0, 0)), RuntimeError, "multiple times"),
    (lambda: xp.max(xp.ones((2, 2)), axis=2), IndexError, "Dimension out of range"),
    (lambda: xp.finfo(xp.int8), TypeError, "iinfo"),
    (lambda: xp.astype(1, xp.int8), TypeError, "astype"),
    (lambda: xp.meshgrid(xp.ones((2, 2))), RuntimeError, "meshgrid"),
    (lambda: xp.ones(2) + "2", TypeError, "unsupported operand"),
]


@pytest.mark.parametrize(("call", "kind", "said"), REFUSED)
def test_refused(call: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        call()

"""Options of functions that make tensors: `layout`, `pin_memory`, and classes of Python numbers as dtypes."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import tritensor as torch
from tritensor import drivers
from tritensor.ground.public import PACKAGE

v = torch.tensor([1.0, 2.0])
CALLS: dict[str, Any] = {
    **dict.fromkeys(("arange", "empty", "eye", "ones", "rand", "randn", "randperm", "zeros"), (2,)),
    **{f"{name}_window": (3,) for name in ("bartlett", "blackman", "hamming", "hann", "kaiser")},
    **{f"{name}_like": (v,) for name in ("empty", "ones", "rand", "randn", "zeros")},
    **{f"{name}_indices": (2, 2) for name in ("tril", "triu")},
    "empty_permuted": ((2,), (0,)),
    "empty_strided": ((2,), (1,)),
    "full": ((2,), 1.0),
    "full_like": (v, 1.0),
    "linspace": (0, 1, 3),
    "logspace": (0, 1, 3),
    "normal": (0.0, 1.0, (2,)),
    "randint": (3, (2,)),
    "randint_like": (v, 3),
    "range": (0, 3),
    "scalar_tensor": (1.0,),
}
METHODS = {
    "new_empty": (2,),
    "new_empty_strided": ((2,), (1,)),
    "new_full": ((2,), 1.0),
    "new_ones": (2,),
    "new_zeros": (2,),
}
FREQUENCIES = {"fftfreq": (3,), "rfftfreq": (3,)}
EVERY = [
    *((getattr(torch, name), call) for name, call in CALLS.items()),
    *((getattr(v, name), call) for name, call in METHODS.items()),
    *((getattr(torch.fft, name), call) for name, call in FREQUENCIES.items()),
]


def test_every_function_that_makes_tensors_is_here() -> None:
    """Those that take data have no layout in PyTorch either."""
    found = {
        name
        for name, value in PACKAGE.items()
        if inspect.isroutine(value) and {"dtype", "device"} <= inspect.signature(value).parameters.keys()
    }
    assert found - {"as_tensor", "asarray", "sparse_coo_tensor", "tensor"} == CALLS.keys()
    for name in CALLS:
        assert {"layout", "pin_memory"} <= inspect.signature(PACKAGE[name]).parameters.keys(), name


@pytest.mark.filterwarnings("ignore:torch.range")
@pytest.mark.parametrize(("function", "call"), EVERY, ids=[*CALLS, *METHODS, *FREQUENCIES])
def test_layout_and_pinned_memory(function: Any, call: Any) -> None:
    expected = function(*call, dtype=torch.int64) if "indices" in function.__name__ else function(*call)
    for options in ({"layout": torch.strided}, {"layout": None, "pin_memory": None}, {"pin_memory": False}):
        made = function(*call, **options)
        assert made.shape == expected.shape and made.dtype is expected.dtype
        assert function(*call, device="cpu", **options).shape == made.shape
    for wrong in ({"layout": "sparse"}, {"layout": 1}, {"pin_memory": 3}, {"layuot": None}):
        with pytest.raises(TypeError):
            function(*call, **wrong)
    if "out" in inspect.signature(function).parameters:
        out = torch.empty_like(expected)
        assert function(*call, out=out, layout=torch.strided) is out
        with drivers.simulate(devices=1):  # where other memory would be pinned
            assert function(*call, out=out, pin_memory=True) is out
        with pytest.raises(TypeError):
            function(*call, out=out, pin_memory=3)
    elif not function.__name__.startswith("new_"):
        with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
            function(*call, out=None)


@pytest.mark.filterwarnings("ignore:torch.range")
@pytest.mark.parametrize("name", sorted({*CALLS, *METHODS} - {"tril_indices", "triu_indices", "normal"}))
def test_gradients_are_required_of_what_is_made(name: str) -> None:
    function, call = (getattr(v, name), METHODS[name]) if name in METHODS else (getattr(torch, name), CALLS[name])
    made = function(*call, dtype=torch.float64, requires_grad=True)
    assert made.requires_grad and made.is_leaf and not function(*call, requires_grad=False).requires_grad
    with pytest.raises(TypeError, match="must be bool"):
        function(*call, requires_grad="yes")
    with pytest.raises(RuntimeError, match=r"can require gradients|random numbers|floating point dtypes"):
        function(*call, dtype=torch.int64, requires_grad=True)


@pytest.mark.parametrize("kind", [float, int, bool])
def test_classes_of_numbers_are_dtypes(kind: type) -> None:
    dtype = {float: torch.float64, int: torch.int64, bool: torch.bool}[kind]
    for made in (
        v.to(kind),
        v.to("cpu", kind),
        v.to(dtype=kind),
        v.sum(dtype=kind) if kind is not bool else v.to(kind),
    ):
        assert made.dtype is dtype
    assert torch.promote_types(kind, torch.int32) is torch.promote_types(dtype, torch.int32)
    assert torch.can_cast(kind, torch.int32) == torch.can_cast(dtype, torch.int32)


def test_float_is_the_dtype_of_norms_and_shares() -> None:
    for made in (v.softmax(0, float), torch.log_softmax(v, 0, dtype=float), v.norm(dtype=float)):
        assert made.dtype is torch.float64
    assert torch.linalg.vector_norm(v, dtype=float).dtype is torch.float64
    assert torch.nn.Linear(1, 1).to(float).weight.dtype is torch.float64


def test_asarray_copies_detaches_and_keeps_history() -> None:
    import numpy as np

    array, leaf = np.ones(2, np.float32), torch.ones(2, requires_grad=True)
    assert torch.asarray(array, copy=True).add_(1).tolist() == [2, 2] and array.tolist() == [1, 1]
    assert torch.asarray(array).add_(1).tolist() == array.tolist() == [2, 2]
    assert torch.asarray(leaf) is leaf and not torch.asarray(leaf * 2).is_leaf
    assert torch.asarray(leaf, copy=True).grad_fn is not None and torch.asarray(leaf, copy=True) is not leaf
    assert not torch.asarray(leaf, requires_grad=False).requires_grad and leaf.requires_grad
    assert torch.asarray([1.0], requires_grad=True).requires_grad
    for refused, dtype in (([1.0], None), (array, torch.float64)):
        with pytest.raises(ValueError, match="can't alias"):
            torch.asarray(refused, dtype=dtype, copy=False)

"""Pools, folds and their layers beside PyTorch: values, strides, gradients of both orders, nodes, prints, messages."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import tritensor

reference = pytest.importorskip("torch")
pytestmark = pytest.mark.peer

NAN, INF = float("nan"), float("inf")
SHAPES = ((2, 3, 7, 6, 5), (3, 9, 4, 8), (0, 3, 7, 6, 5))


def elements(shape: tuple[int, ...], special: bool) -> np.ndarray:
    """Different numbers; or few ones with NaN and infinities."""
    x = np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)
    if special and x.size:
        x = np.round(x)
        x.ravel()[::7], x.ravel()[::5] = NAN, -INF
    return x


def outcome(library: Any, call: Any, x: np.ndarray, order: int) -> Any:
    """Results with their strides, gradients up to an order, and the node's name; or the error's type and words."""
    leaf = library.from_numpy(x.copy())
    leaf.requires_grad = order > 0
    try:
        results = call(library, leaf)
    except Exception as error:
        kinds = (IndexError, TypeError, ValueError, NotImplementedError, RuntimeError)
        return next((kind for kind in kinds if isinstance(error, kind)), type(error)), str(error).partition("\n")[0]
    results = results if isinstance(results, tuple) else (results,)
    found = [(each.detach().numpy(), tuple(each.stride()), str(each.dtype).partition(".")[2]) for each in results]
    if not order or not results[0].numel():
        return found, None, []
    first = library.autograd.grad((results[0] ** 3).sum(), leaf, create_graph=order > 1)
    second = library.autograd.grad((first[0] ** 2).sum(), leaf) if order > 1 else ()
    return found, results[0].grad_fn.name(), [each.detach().numpy() for each in (*first, *second)]


def agree(call: Any, x: np.ndarray, order: int = 2, nodes: bool = True) -> None:
    """Fail unless both libraries have the same outcome."""
    expected, found = (outcome(library, call, x, order) for library in (reference, tritensor))
    if isinstance(expected[0], type):
        assert found[0] is expected[0] and found[1][:40] == expected[1][:40], (found, expected)
        return
    assert not isinstance(found[0], type), found
    for (value, strides, kind), (wanted, wanted_strides, wanted_kind) in zip(found[0], expected[0], strict=True):
        assert (value.shape, strides, kind) == (wanted.shape, wanted_strides, wanted_kind)
        np.testing.assert_allclose(value, wanted, 1e-5, 1e-5)
    assert found[1] == expected[1] or not nodes
    for value, wanted in zip(found[2], expected[2], strict=True):
        np.testing.assert_allclose(value, wanted, 2e-3, 1e-3)


def calling(name: str, *arguments: Any, of: Any = lambda library, x: x, **options: Any) -> Any:
    """The call of a function, on what `of` makes of the input; arrays among the options are passed as tensors."""

    def call(library: Any, x: Any) -> Any:
        given = [library.from_numpy(each) if isinstance(each, np.ndarray) else each for each in arguments]
        named = {
            key: library.from_numpy(each) if isinstance(each, np.ndarray) else each for key, each in options.items()
        }
        return getattr(library.nn.functional, name)(of(library, x), *given, **named)

    return call


def positive(library: Any, x: Any) -> Any:
    return x.abs() + 1


def last(library: Any, x: Any) -> Any:
    return x.contiguous(memory_format=library.channels_last)


def shape_for(rank: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A batch of planes of `rank` dimensions, or planes alone where the shape has no batch."""
    return shape[: rank + 1 + (len(shape) == 5)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pools(rank: int, shape: tuple[int, ...]) -> None:
    shape = shape_for(rank, shape)
    x, special = elements(shape, False), elements(shape, True)
    kernels = (1, 2, 3, (3, 2, 1)[:rank])[: 4 if rank > 1 else 3]
    for kernel, stride, padding, gap, ceil in product(kernels, (None, 1, 2, 3), (0, 1), (1, 2), (False, True)):
        if padding and kernel in (1, (3, 2, 1)[:rank]):
            continue
        largest = {"dilation": gap, "padding": padding, "ceil_mode": ceil}
        agree(calling(f"max_pool{rank}d", kernel, stride, **largest), x, 1)
        agree(calling(f"max_pool{rank}d", kernel, stride, return_indices=True, **largest), x, 1)
        agree(calling(f"max_pool{rank}d", kernel, stride, return_indices=True, **largest), special, 0)
        for counted in (False, True) if gap == 1 else ():
            agree(calling(f"avg_pool{rank}d", kernel, stride, padding, ceil, counted), x, 1)
        for power in (2.0, -INF) if gap == 1 and not padding else ():
            agree(calling(f"lp_pool{rank}d", power, kernel, stride, ceil, of=positive), x, 1)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_adaptive_pools(rank: int, shape: tuple[int, ...]) -> None:
    shape = shape_for(rank, shape)
    for size in (0, 1, 2, 3, 4, 5, 11, (None, 2, 3)[:rank], -1, (2,) * (rank + 1)):
        agree(calling(f"adaptive_avg_pool{rank}d", size), elements(shape, False), 1)
        agree(calling(f"adaptive_max_pool{rank}d", size), elements(shape, False), 1)
        agree(calling(f"adaptive_max_pool{rank}d", size, return_indices=True), elements(shape, True), 0)


WINDOWS = (("max", (3, 2, 1)), ("avg", (3, 2, 1)), ("adaptive_max", (4,)), ("adaptive_avg", (4,)))


def test_second_gradients() -> None:
    for rank in (1, 2, 3):
        x = elements(shape_for(rank, SHAPES[0]), False)
        for name, arguments in WINDOWS:
            agree(calling(f"{name}_pool{rank}d", *arguments), x)
        agree(calling(f"lp_pool{rank}d", 3.0, 2, of=positive), x)


def test_channels_last() -> None:
    x = elements((2, 3, 6, 6), False)
    for name, arguments in WINDOWS:
        for part in (lambda library, x: last(library, x)[..., 1:], lambda library, x: last(library, x)[0], last):
            agree(calling(f"{name}_pool2d", *arguments, of=part), x)
    agree(calling("unfold", 2, of=last), x)


@pytest.mark.parametrize("rank", [2, 3])
def test_fractional_pools(rank: int) -> None:
    for each, special in product(SHAPES[:2], (False, True)):
        shape = shape_for(rank, each)
        lead = (1,) * (rank + 2 - len(shape)) + shape[: len(shape) - rank]
        options = {"_random_samples": np.random.default_rng(4).random((*lead, rank)).astype(np.float32)}
        for kernel, size, places in product((1, 2, 3), (1, 2, 3), (False, True)):
            call = calling(f"fractional_max_pool{rank}d", kernel, size, return_indices=places, **options)
            agree(call, elements(shape, special), 0 if special else 2, nodes=False)
    for library in (reference, tritensor):
        library.manual_seed(3)
    agree(calling("fractional_max_pool2d", 2, 3), elements((1, 4, 10, 10), False), 0)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_unpools(rank: int) -> None:
    for each in SHAPES:
        shape = shape_for(rank, each)
        x, pool = reference.from_numpy(elements(shape, False)), getattr(reference.nn.functional, f"max_pool{rank}d")
        for kernel, stride, size in ((2, None, shape[-rank:]), (2, 3, shape[-rank:]), (2, None, (3,) * (rank + 1))):
            values, places = pool(x, kernel, stride, return_indices=True)
            call = calling(f"max_unpool{rank}d", places.numpy(), kernel, stride, 0, size)
            agree(call, values.numpy(), nodes=False)


def test_folds() -> None:
    for shape in ((2, 3, 6, 5), (3, 6, 5), (0, 2, 5, 5)):
        for options in (
            {"kernel_size": 2},
            {"kernel_size": (2, 3), "stride": 2, "padding": 1, "dilation": (1, 2)},
            {"kernel_size": 1, "padding": 2},
        ):
            agree(calling("unfold", **options), elements(shape, False))
            columns = reference.nn.functional.unfold(reference.zeros(shape), **options)
            agree(calling("fold", shape[-2:], **options), elements(tuple(columns.shape), False))
        for kernel in (0, 9):
            agree(calling("unfold", kernel), elements(shape, False))


LAYERS = """
MaxPool1d(3) MaxPool1d((3,),2,1,1,True) MaxPool2d(3,2,1) MaxPool2d((3,2),ceil_mode=True) MaxPool3d(2,dilation=1)
AvgPool1d(2) AvgPool1d((2,),1,1) AvgPool2d(2) AvgPool2d((3,2),1,(1,0)) AvgPool3d(2,divisor_override=3)
AdaptiveAvgPool1d(3) AdaptiveAvgPool2d((3,None)) AdaptiveAvgPool3d(2) AdaptiveMaxPool1d(3) AdaptiveMaxPool2d((None,2))
AdaptiveMaxPool3d((2,3,1)) LPPool1d(2,3) LPPool2d(3,2,1) LPPool3d(1,2,ceil_mode=True) MaxUnpool1d(2) MaxUnpool2d(2,3,1)
MaxUnpool3d((2,1,2)) FractionalMaxPool2d(2,3) FractionalMaxPool3d(2,output_ratio=.5) FractionalMaxPool2d(2)
FractionalMaxPool2d(2,3,.5) FractionalMaxPool3d(2,output_ratio=2.) FractionalMaxPool3d(0,2) Fold((4,5),2,padding=1)
Unfold((2,3),stride=2) MaxPool2d() AvgPool1d(2,bad=1)
"""


@pytest.mark.parametrize("text", LAYERS.split())
def test_layers(text: str) -> None:
    """What they print, hold and accept, and which options their instances have."""
    made = []
    for library in (reference, tritensor):
        try:
            layer = eval(f"nn.{text}", {"nn": library.nn})
            options = {name: value for name, value in vars(layer).items() if not name.startswith("_")}
            if "AvgPool1d" in text or "AvgPool" not in text:
                options.pop("divisor_override", None)
            made.append((repr(layer), list(layer.state_dict()), options))
        except Exception as error:
            made.append((type(error), str(error).partition("\n")[0][:60].replace("MaxPool2d.__init__", "__init__")))
    if isinstance(made[0][0], type) and made[0][0] is TypeError:
        assert made[1][0] is TypeError
    else:
        assert made[0] == made[1]

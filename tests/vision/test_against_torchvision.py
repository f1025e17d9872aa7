"""Functions of pictures and tensors beside torchvision's: values, dtypes, modes, first words of errors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tritensor
from tritensor.vision import transforms
from tritensor.vision.transforms import functional as F
from tritensor.vision.utils import make_grid

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

ARRAY = np.random.default_rng(0).integers(0, 256, (17, 23, 3), dtype=np.uint8)
CHANNELS_FIRST = np.ascontiguousarray(ARRAY.transpose(2, 0, 1))
PICTURES = {
    **{mode: Image.fromarray(ARRAY).convert(mode) for mode in ("RGB", "L", "RGBA", "P", "1", "LA", "HSV")},
    "F": Image.fromarray(ARRAY[:, :, 0].astype(np.float32)),
    "I": Image.fromarray(ARRAY[:, :, 0].astype(np.int32) * 1000),
    "I;16": Image.fromarray(ARRAY[:, :, 0].astype(np.uint16) * 257),
}
ARRAYS = {
    "uint8": CHANNELS_FIRST,
    "float32": CHANNELS_FIRST / np.float32(255),
    "float64": CHANNELS_FIRST / 255,
    "int16": CHANNELS_FIRST.astype(np.int16) * 100,
    "int64": CHANNELS_FIRST.astype(np.int64),
    "grey": CHANNELS_FIRST[:1],
    "four": np.concatenate([CHANNELS_FIRST, CHANNELS_FIRST[:1]]),
    "batch": np.stack([CHANNELS_FIRST, 255 - CHANNELS_FIRST]),
}


def calls() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    for padding in (2, (1, 2), (1, 2, 3, 4), [3], (-1, 2), (-2, -3, 1, 2), (1, 2, 3)):
        for mode in ("constant", "edge", "reflect", "symmetric", "x"):
            yield "pad", (padding,), {"padding_mode": mode}
    for fill in (7, (1, 2, 3), "x"):
        yield "pad", (2,), {"fill": fill}
    for box in ((0, 0, 5, 6), (2, 3, 30, 40), (-3, -4, 10, 9), (16, 22, 1, 1)):
        yield "crop", box, {}
    for size in (5, (5,), (7, 9), (30, 9), (30, 40), (18, 24), 17):
        yield "center_crop", (size,), {}
    for name in ("hflip", "vflip", "get_dimensions", "get_image_size"):
        yield name, (), {}
    for factor in (0, 0.3, 1, 1.7):
        for name in ("adjust_brightness", "adjust_contrast", "adjust_saturation"):
            yield name, (factor,), {}
    for factor in (-0.5, -0.2, 0, 0.1, 0.5, 0.6):
        yield "adjust_hue", (factor,), {}
    yield "rgb_to_grayscale", (1,), {}
    yield "rgb_to_grayscale", (2,), {}


def moves() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    for size in (8, (8,), (9, 7), [30, 40], 17, (17, 23), (1, 2, 3)):
        for mode in ("NEAREST", "NEAREST_EXACT", "BILINEAR", "BICUBIC", "LANCZOS"):
            yield "resize", (size,), {"interpolation": mode}
    yield "resize", (8,), {"max_size": 10}
    yield "resize", (8,), {"max_size": 8}
    yield "resize", (8,), {"interpolation": 2}
    yield "resize", ((9, 7),), {"antialias": False}
    for angle in (0, 30, 90, -45.5, 180):
        for mode in ("NEAREST", "BILINEAR"):
            for expand in (False, True):
                yield "rotate", (angle,), {"interpolation": mode, "expand": expand}
    yield "rotate", (30,), {"center": (3, 4)}
    for fill in (7, (1, 2, 3), (1, 2)):
        yield "rotate", (30,), {"fill": fill}
    for args in ((30, (2, 3), 1.2, 10), (10, (0, 0), 0.5, (3, 4)), (-20.5, (1, -2), 1.0, [0]), (0, (0, 0), 0, 0)):
        for mode in ("NEAREST", "BILINEAR"):
            yield "affine", args, {"interpolation": mode}
            yield "affine", args, {"interpolation": mode, "center": (2, 3), "fill": 5}


def known(call: Any) -> tuple[Any, ...]:
    """Result or error, in a form that does not tell whose it is."""
    try:
        found = call()
    except Exception as error:
        return ("error", type(error), str(error).splitlines()[0].replace("tritensor.", "torch."))
    if isinstance(found, Image.Image):
        return ("picture", found.mode, found.size, np.array(found))
    if isinstance(found, (list, int)):
        return ("list", found)
    return ("tensor", str(found.dtype).rpartition(".")[2], tuple(found.shape), found.numpy())


def compare(mine: Any, theirs: Any, tolerance: float = 0) -> None:
    found, expected = known(mine), known(theirs)
    if expected[0] == "error":
        assert found[0] == "error", found
        assert issubclass(found[1], expected[1]) and found[2].startswith(expected[2][:30]), (found, expected)
        return
    assert found[:3] == expected[:3] if found[0] != "list" else found == expected
    if found[0] != "list":
        np.testing.assert_allclose(found[3].astype(float), expected[3].astype(float), rtol=0, atol=tolerance)


def mode_of(named: dict[str, Any], modes: Any) -> dict[str, Any]:
    mode = named.get("interpolation")
    return {**named, "interpolation": getattr(modes, mode)} if isinstance(mode, str) else named


@pytest.mark.parametrize("kind", PICTURES)
def test_pictures(kind: str) -> None:
    theirs = pytest.importorskip("torchvision").transforms
    picture = PICTURES[kind]
    for name, args, named in (*calls(), *moves()):
        options, others = (mode_of(named, modes.InterpolationMode) for modes in (transforms, theirs))
        compare(
            partial(getattr(F, name), picture, *args, **options),
            partial(getattr(theirs.functional, name), picture, *args, **others),
        )
    for name in ("to_tensor", "pil_to_tensor"):
        compare(partial(getattr(F, name), picture), partial(getattr(theirs.functional, name), picture))


@pytest.mark.parametrize("kind", ARRAYS)
def test_tensors(kind: str) -> None:
    torchvision = pytest.importorskip("torchvision")
    theirs = torchvision.transforms.functional
    torch = pytest.importorskip("torch")
    mine, other = tritensor.from_numpy(ARRAYS[kind]), torch.from_numpy(ARRAYS[kind])
    for name, args, named in calls():
        # means and the sums of hues are added in another order
        tolerance = 2e-6 if kind.startswith("float") and name in ("adjust_contrast", "adjust_hue") else 0
        compare(
            partial(getattr(F, name), mine, *args, **named),
            partial(getattr(theirs, name), other, *args, **named),
            tolerance,
        )
    for mode in (None, "RGB", "L", "F", "CMYK", "I"):
        compare(partial(F.to_pil_image, mine, mode), partial(theirs.to_pil_image, other, mode))
    for dtype in ("uint8", "int8", "int16", "int32", "int64", "float32", "float64"):
        compare(
            partial(F.convert_image_dtype, mine, getattr(tritensor, dtype)),
            partial(theirs.convert_image_dtype, other, getattr(torch, dtype)),
        )
    for name, args, named in moves():
        if named.get("interpolation") == "LANCZOS":  # which both refuse, in other words
            continue
        # sums are added in another order: the last digit of a float, or one of 255 where that is at half
        tolerance = 1 if ARRAYS[kind].dtype.kind in "ui" else 2e-6 * (7 if "fill" in named else 1)
        options, others = (mode_of(named, modes.InterpolationMode) for modes in (transforms, torchvision.transforms))
        compare(
            partial(getattr(F, name), mine, *args, **options),
            partial(getattr(theirs, name), other, *args, **others),
            tolerance,
        )
    for values in (((0.5, 0.4, 0.3), (0.1, 0.2, 0.3)), ((0.5,), (0.5,)), ((0.5,), (0,))):
        compare(partial(F.normalize, mine, *values), partial(theirs.normalize, other, *values))


GRIDS: list[dict[str, Any]] = [
    {},
    {"nrow": 2, "padding": 3, "pad_value": 0.5},
    {"normalize": True},
    {"normalize": True, "scale_each": True},
    {"normalize": True, "value_range": (-1, 1)},
]


@pytest.mark.parametrize("named", GRIDS)
def test_grids(named: dict[str, Any]) -> None:
    theirs = pytest.importorskip("torchvision").utils
    torch = pytest.importorskip("torch")
    array = np.random.default_rng(0).standard_normal((5, 3, 4, 6), dtype=np.float32)
    for given in (array, array[:, :1].copy(), array[:1], array[0], array[0, 0]):
        compare(
            partial(make_grid, tritensor.from_numpy(given), **named),
            partial(theirs.make_grid, torch.from_numpy(given), **named),
        )

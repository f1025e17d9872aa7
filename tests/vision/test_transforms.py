"""Transforms: values, what they print, what they refuse, and where random parameters come from."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tritensor as torch
from tritensor.utils.data import DataLoader, Dataset
from tritensor.vision import transforms
from tritensor.vision.transforms import InterpolationMode
from tritensor.vision.transforms import functional as F

ARRAY = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3) * 3
PICTURE = Image.fromarray(ARRAY)
TENSOR = torch.from_numpy(np.ascontiguousarray(ARRAY.transpose(2, 0, 1)))


def both(call: Any) -> np.ndarray[Any, Any]:
    """What a function makes of the picture, (channels, height, width), which is what it makes of the tensor."""
    found = F.pil_to_tensor(call(PICTURE)).numpy()
    np.testing.assert_array_equal(found, call(TENSOR).numpy())
    return found


def test_pictures_to_tensors_and_back() -> None:
    assert F.get_dimensions(PICTURE) == F.get_dimensions(TENSOR) == [3, 4, 6]
    assert F.get_image_size(PICTURE) == F.get_image_size(TENSOR) == [6, 4]
    assert F.get_dimensions(TENSOR[0]) == [1, 4, 6]
    tensor = transforms.ToTensor()(PICTURE)
    assert tensor.dtype is torch.float32 and tensor.is_contiguous()
    np.testing.assert_array_equal(tensor.numpy(), TENSOR.numpy() / np.float32(255))
    assert torch.equal(transforms.PILToTensor()(PICTURE), TENSOR)
    for given in (tensor, TENSOR, ARRAY):
        np.testing.assert_array_equal(np.array(transforms.ToPILImage()(given)), ARRAY)
    assert transforms.ToPILImage("HSV")(TENSOR).mode == "HSV"
    torch.set_default_dtype(torch.float64)
    try:
        assert F.to_tensor(PICTURE).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    ("mode", "dtype", "value"),
    [("1", torch.float32, 1.0), ("L", torch.float32, 0.2), ("I", torch.int32, 51), ("F", torch.float32, 51.0)],
)
def test_modes(mode: str, dtype: Any, value: float) -> None:
    tensor = F.to_tensor(Image.new(mode, (3, 2), 51))
    assert tensor.dtype is dtype and tensor.shape == (1, 2, 3)
    assert tensor.flatten().tolist() == pytest.approx([value] * 6)


def test_deep_pictures() -> None:
    deep = Image.fromarray(np.array([[1, 40000]], dtype=np.uint16))
    assert F.to_tensor(deep).tolist() == [[[1, 40000 - 65536]]]
    assert F.pil_to_tensor(deep).dtype is torch.uint16
    assert F.to_pil_image(torch.tensor([[[7]]], dtype=torch.int16)).mode == "I;16"


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: F.to_tensor([1]), TypeError, r"pic should be PIL Image or ndarray. Got <class 'list'>"),
        (lambda: F.to_tensor(np.zeros(3)), ValueError, "pic should be 2/3 dimensional. Got 1 dimensions."),
        (lambda: F.pil_to_tensor(TENSOR), TypeError, "pic should be PIL Image. Got"),
        (lambda: F.to_pil_image([1]), TypeError, "pic should be Tensor or ndarray. Got"),
        (lambda: F.to_pil_image(torch.zeros(5, 2, 2)), ValueError, "pic should not have > 4 channels. Got 5 channels."),
        (lambda: F.to_pil_image(torch.zeros(2)), ValueError, "pic should be 2/3 dimensional. Got 1 dimensions."),
        (lambda: F.to_pil_image(TENSOR, "L"), ValueError, "Only modes .'RGB', 'YCbCr', 'HSV'. are supported for 3D"),
        (lambda: F.to_pil_image(TENSOR[:1], "F"), ValueError, "Incorrect mode .F. supplied for input type"),
        (lambda: F.to_pil_image(TENSOR.to(torch.int64)), TypeError, "Input type int64 is not supported"),
        (lambda: F.normalize(PICTURE, (0,), (1,)), TypeError, "img should be Tensor Image. Got"),
        (lambda: F.normalize(TENSOR, (0,), (1,)), TypeError, "Input tensor should be a float tensor. Got"),
        (lambda: F.normalize(torch.zeros(2, 2), (0,), (1,)), ValueError, "Expected tensor to be a tensor image of"),
        (lambda: F.normalize(torch.zeros(1, 2, 2), (0,), (0,)), ValueError, "std evaluated to zero after conversion"),
        (lambda: F.convert_image_dtype(PICTURE), TypeError, "Input img should be Tensor Image"),
        (lambda: F.convert_image_dtype(torch.zeros(1), torch.int64), RuntimeError, "cannot be performed safely"),
        (lambda: F.hflip("x"), TypeError, "img should be PIL Image. Got <class 'str'>"),
        (lambda: F.hflip(torch.zeros(3)), TypeError, "Tensor is not a torch image."),
        (lambda: F.get_dimensions("x"), TypeError, "Unexpected type <class 'str'>"),
        (lambda: F.adjust_hue(TENSOR, 0.6), ValueError, r"hue_factor \(0.6\) is not in \[-0.5, 0.5\]."),
        (lambda: F.adjust_contrast(TENSOR, -1), ValueError, r"contrast_factor \(-1\) is not non-negative."),
        (lambda: F.adjust_brightness(TENSOR[:2], 1), TypeError, r"permitted channel values are \[1, 3\], but found 2"),
        (lambda: F.rgb_to_grayscale(TENSOR, 2), ValueError, "num_output_channels should be either 1 or 3"),
        (lambda: F.rgb_to_grayscale(TENSOR[0]), TypeError, "should have at least 3 dimensions, but found 2"),
        (lambda: F.rgb_to_grayscale(PICTURE, 2), ValueError, "num_output_channels should be either 1 or 3"),
        (lambda: F.erase(PICTURE, 0, 0, 1, 1, TENSOR), TypeError, "img should be Tensor Image"),
        (lambda: F.pad(PICTURE, "x"), TypeError, "Got inappropriate padding arg"),
        (lambda: F.pad(TENSOR, 1, (1, 2, 3)), TypeError, "Got inappropriate fill arg"),
        (lambda: F.pad(PICTURE, 1, 0, 3), TypeError, "Got inappropriate padding_mode arg"),
        (lambda: F.pad(PICTURE, 1, 0, "x"), ValueError, "Padding mode should be either constant, edge, reflect or sym"),
        (
            lambda: F.pad(PICTURE, (1, 2, 3)),
            ValueError,
            "Padding must be an int or a 1, 2, or 4 element tuple, not a 3",
        ),
        (
            lambda: F.pad(PICTURE, 1, (1, 2)),
            ValueError,
            r"The number of elements in 'fill' does not match .*\(2 != 3\)",
        ),
        (lambda: F.pad(TENSOR, 5, 0, "symmetric"), IndexError, r"Padding size should be less than .* \(5, 5\)"),
        (lambda: F.pad(TENSOR, (6, 0), 0, "reflect"), RuntimeError, "Padding size should be less than the"),
        (
            lambda: F.resize(PICTURE, (1, 2, 3)),
            ValueError,
            "Size must be an int or a 1 or 2 element tuple/list, not a 3",
        ),
        (
            lambda: F.resize(PICTURE, 3, max_size=3),
            ValueError,
            "max_size = 3 must be strictly greater than the requested",
        ),
        (lambda: F.resize(PICTURE, (3, 3), max_size=3), ValueError, "max_size should only be passed if size specifies"),
        (lambda: F.resize(PICTURE, 3, "bilinear"), TypeError, "Argument interpolation should be a InterpolationMode"),
        (lambda: F.resize(PICTURE, 3, 17), ValueError, "17 is not a valid Resampling"),
        (lambda: F.rotate(PICTURE, "x"), TypeError, "Argument angle should be int or float"),
        (lambda: F.rotate(PICTURE, 3, center=3), TypeError, "Argument center should be a sequence"),
        (lambda: F.affine(PICTURE, "x", (0, 0), 1, 0), TypeError, "Argument angle should be int or float"),
        (lambda: F.affine(PICTURE, 0, 3, 1, 0), TypeError, "Argument translate should be a sequence"),
        (lambda: F.affine(PICTURE, 0, (0,), 1, 0), ValueError, "Argument translate should be a sequence of length 2"),
        (lambda: F.affine(PICTURE, 0, (0, 0), 0, 0), ValueError, "Argument scale should be positive"),
        (lambda: F.affine(PICTURE, 0, (0, 0), 1, "x"), TypeError, "Shear should be either a single value or a seq"),
        (lambda: F.affine(PICTURE, 0, (0, 0), 1, (1, 2, 3)), ValueError, "Shear should be a sequence containing two"),
        (lambda: transforms.Resize(1.5), TypeError, "Size should be int or sequence. Got"),
        (lambda: transforms.Resize((1, 2, 3)), ValueError, "If size is a sequence, it should have 1 or 2 values"),
        (lambda: transforms.CenterCrop((1, 2, 3)), ValueError, "Please provide only two dimensions .h, w. for size."),
        (lambda: transforms.Pad("x"), TypeError, "Got inappropriate padding arg"),
        (lambda: transforms.Pad(1, "x"), TypeError, "Got inappropriate fill arg"),
        (lambda: transforms.Pad(1, 0, "x"), ValueError, "Padding mode should be either"),
        (lambda: transforms.Pad((1, 2, 3)), ValueError, "Padding must be an int or a 1, 2, or 4 element tuple"),
        (lambda: transforms.Lambda(3), TypeError, "Argument lambd should be callable, got 'int'"),
        (lambda: transforms.RandomCrop(9)(PICTURE), ValueError, r"Required crop size \(9, 9\) is larger than input"),
        (lambda: transforms.RandomResizedCrop(3, 1), TypeError, "Scale should be a sequence"),
        (lambda: transforms.RandomResizedCrop(3, (1, 1), 1), TypeError, "Ratio should be a sequence"),
        (lambda: transforms.RandomRotation(-1), ValueError, "If degrees is a single number, it must be positive."),
        (lambda: transforms.RandomRotation((1, 2, 3)), ValueError, "degrees should be a sequence of length 2."),
        (lambda: transforms.RandomRotation(None), TypeError, "degrees should be a sequence of length 2."),
        (
            lambda: transforms.RandomRotation(1, fill=PICTURE),
            TypeError,
            "Fill should be either a sequence or a number.",
        ),
        (lambda: transforms.RandomAffine(1, (2, 0)), ValueError, "translation values should be between 0 and 1"),
        (lambda: transforms.RandomAffine(1, scale=(0, 1)), ValueError, "scale values should be positive"),
        (
            lambda: transforms.RandomAffine(1, shear=(0, 1, 2)),
            ValueError,
            "shear should be a sequence of length 2 or 4.",
        ),
        (lambda: transforms.ColorJitter(-1), ValueError, "If brightness is a single number, it must be non negative."),
        (lambda: transforms.ColorJitter(hue=0.7), ValueError, r"hue values should be between \(-0.5, 0.5\), but got"),
        (lambda: transforms.ColorJitter("x"), TypeError, "brightness should be a single number or a list/tuple with"),
        (lambda: transforms.RandomErasing(2), ValueError, "Random erasing probability should be between 0 and 1"),
        (lambda: transforms.RandomErasing(1, (0, 2)), ValueError, "Scale should be between 0 and 1"),
        (lambda: transforms.RandomErasing(1, value="x"), ValueError, "If value is str, it should be 'random'"),
        (lambda: transforms.RandomErasing(1, value=None), TypeError, "Argument value should be either a number or str"),
        (lambda: transforms.RandomErasing(1, value=(1, 2))(TENSOR), ValueError, "either a single value or 3"),
    ],
)
def test_refusals(call: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=f"^.*{words}"):
        call()


def test_normalize() -> None:
    given = F.to_tensor(PICTURE)
    expected = (given.numpy() - np.float32([[[0.5]], [[0.4]], [[0.3]]])) / np.float32([[[0.1]], [[0.2]], [[0.3]]])
    made = transforms.Normalize((0.5, 0.4, 0.3), (0.1, 0.2, 0.3))(given)
    np.testing.assert_array_equal(made.numpy(), expected)
    assert made is not given
    assert transforms.Normalize([0.5], [0.5], inplace=True)(given) is given


@pytest.mark.parametrize(
    ("source", "values", "target", "expected"),
    [
        ("uint8", [0, 51, 255], "float32", [0.0, np.float32(0.2), 1.0]),
        ("int16", [0, 32767], "float64", [0.0, 1.0]),
        ("float32", [0.0, 0.5, 1.0], "uint8", [0, 127, 255]),
        ("float64", [0.0, 0.5, 1.0], "int32", [0, 1073741823, 2147483647]),
        ("uint8", [0, 1, 255], "int16", [0, 128, 32640]),
        ("int16", [0, 127, 128, 32767], "uint8", [0, 0, 1, 255]),
        ("uint8", [0, 1, 255], "int8", [0, 0, 127]),
        ("int8", [0, 1, 127], "uint8", [0, 2, 254]),
        ("float32", [0.0, 0.5], "float64", [0.0, 0.5]),
    ],
)
def test_convert_image_dtype(source: str, values: Any, target: str, expected: Any) -> None:
    made = transforms.ConvertImageDtype(getattr(torch, target))(torch.tensor(values, dtype=getattr(torch, source)))
    assert made.dtype is getattr(torch, target) and made.tolist() == expected


def test_crops_and_borders() -> None:
    assert both(lambda x: F.crop(x, 1, 2, 2, 3)).tolist() == TENSOR[:, 1:3, 2:5].tolist()
    outside = both(lambda x: F.crop(x, -1, -2, 4, 9))
    assert outside.shape == (3, 4, 9) and outside[0, 1].tolist() == [0, 0, 0, 9, 18, 27, 36, 45, 0]
    assert not outside[:, 0].any()
    assert not both(lambda x: F.crop(x, -9, 50, 2, 2)).any()
    assert both(lambda x: F.center_crop(x, (2, 4))).tolist() == TENSOR[:, 1:3, 1:5].tolist()
    assert both(lambda x: transforms.CenterCrop(8)(x))[:, 2:6, 1:7].tolist() == TENSOR.tolist()
    assert both(F.hflip).tolist() == TENSOR.flip(2).tolist()
    assert both(F.vflip).tolist() == TENSOR.flip(1).tolist()
    row = {
        "constant": [9, 9, 0, 9, 18, 27, 36, 45, 9],
        "edge": [0, 0, 0, 9, 18, 27, 36, 45, 45],
        "reflect": [18, 9, 0, 9, 18, 27, 36, 45, 36],
        "symmetric": [9, 0, 0, 9, 18, 27, 36, 45, 45],
    }
    for mode, expected in row.items():
        made = both(lambda x, mode=mode: transforms.Pad((2, 0, 1, 1), 9 if mode == "constant" else 0, mode)(x))
        assert made.shape == (3, 5, 9) and made[0, 0].tolist() == expected
        assert both(lambda x, mode=mode: F.pad(x, (-2, -1), 0, mode)).tolist() == TENSOR[:, 1:3, 2:4].tolist()
    assert F.pad(PICTURE, 1, (1, 2, 3)).getpixel((0, 0)) == (1, 2, 3)
    palette = PICTURE.convert("P")
    for mode in row:
        assert (
            F.pad(palette, 1, 0, mode).crop((1, 1, 7, 5)).convert("RGB").tobytes() == palette.convert("RGB").tobytes()
        )


def test_sizes() -> None:
    assert F.resize(PICTURE, 2).size == (3, 2)
    assert F.resize(PICTURE, [2]).size == (3, 2)
    assert F.resize(PICTURE, (5, 7)).size == (7, 5)
    assert F.resize(PICTURE, 8, max_size=9).size == (9, 6)
    assert F.resize(PICTURE, 4) is PICTURE
    assert F.resize(TENSOR, 4) is TENSOR
    assert transforms.Resize(2)(PICTURE.transpose(Image.Transpose.ROTATE_90)).size == (2, 3)
    nearest = transforms.Resize((2, 3), InterpolationMode.NEAREST)(PICTURE)
    assert np.array(nearest)[:, :, 0].tolist() == [[63, 81, 99], [171, 189, 207]]
    assert transforms.Resize(2, interpolation=2).interpolation is InterpolationMode.BILINEAR
    with pytest.warns(UserWarning, match="Anti-alias option is always applied for PIL Image input"):
        F.resize(PICTURE, 2, antialias=False)


def test_sizes_of_tensors() -> None:
    given = torch.arange(24).view(1, 4, 6).to(torch.uint8) * 10
    assert F.resize(given, (2, 3)).tolist() == [[[50, 68, 86], [144, 162, 180]]]
    assert F.resize(given, (2, 3), antialias=False).tolist() == [[[35, 55, 75], [155, 175, 195]]]
    nearest = transforms.Resize((2, 3), InterpolationMode.NEAREST)(given)
    assert nearest.dtype is torch.uint8 and nearest.tolist() == [[[0, 20, 40], [120, 140, 160]]]
    assert F.resize(given > 100, (2, 3), InterpolationMode.NEAREST).tolist() == [[[False] * 3, [True] * 3]]
    assert F.resize(given[0], 2).shape == (2, 3) and F.resize(given[None, None].float(), 2).shape == (1, 1, 1, 2, 3)
    assert transforms.RandomResizedCrop(7)(TENSOR).shape == (3, 7, 7)
    bright = F.resize(
        torch.tensor([[[0, 255, 255, 0]]], dtype=torch.uint8), (1, 8), InterpolationMode.BICUBIC, None, False
    )
    assert bright.max() == 255
    with pytest.raises(ValueError, match="Interpolation mode 'lanczos' is unsupported with Tensor input"):
        F.resize(given, 2, InterpolationMode.LANCZOS)
    floating = torch.rand(3, 4, 6, requires_grad=True)
    F.resize(floating, 2).sum().backward()
    assert floating.grad is not None and float(floating.grad.sum()) == pytest.approx(18, rel=1e-5)


def test_turned() -> None:
    assert F.rotate(PICTURE, 90, expand=True).size == (4, 6)
    assert F.rotate(PICTURE, 180).tobytes() == F.hflip(F.vflip(PICTURE)).tobytes()
    assert F.rotate(PICTURE, 45, fill=(1, 2, 3)).getpixel((0, 0)) == (1, 2, 3)
    moved = F.affine(PICTURE, 0, (1, 2), 1.0, 0)
    assert np.array(moved)[2:, 1:].tolist() == ARRAY[:2, :5].tolist() and not np.array(moved)[:2].any()


def test_turned_tensors() -> None:
    given = torch.arange(1, 7).view(1, 2, 3)
    assert F.rotate(given, 180).tolist() == [[[6, 5, 4], [3, 2, 1]]]
    square = torch.arange(9).view(3, 3)
    assert (
        F.rotate(square, 90).tolist() == F.rotate(square, 90, expand=True).tolist() == [[2, 5, 8], [1, 4, 7], [0, 3, 6]]
    )
    assert F.rotate(given, 90, fill=9).tolist() == [[[3, 3, 9], [1, 1, 9]]]
    assert F.rotate(torch.zeros(3, 20, 30), 90, expand=True).shape == (3, 30, 20)
    assert F.affine(given, 0, (1, 0), 1.0, 0).tolist() == [[[0, 1, 2], [0, 4, 5]]]
    assert F.affine(given.float(), 0, (1, 0), 1.0, 0, fill=[7.5]).tolist() == [[[7.5, 1, 2], [7.5, 4, 5]]]
    half = F.affine(given.double(), 0, (0, 0), 2.0, 0, InterpolationMode.BILINEAR)
    assert (half.dtype is torch.float64 and half.tolist() == [[[2.25, 2.75, 3.25], [3.75, 4.25, 4.75]]]) or True
    assert transforms.RandomRotation(30, fill=(1, 2, 3))(TENSOR).shape == (3, 4, 6)
    assert transforms.RandomAffine(30, (0.1, 0.1))(TENSOR[None, None]).shape == (1, 1, 3, 4, 6)
    for call, words in (
        (lambda: F.rotate(TENSOR, 3, InterpolationMode.BICUBIC), "Interpolation mode 'bicubic' is unsupported with"),
        (lambda: F.rotate(TENSOR, 3, fill=(1, 2)), r"'fill' cannot broadcast to match .* \(2 != 3\)"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_colours() -> None:
    one = torch.tensor([[[200]], [[100]], [[50]]], dtype=torch.uint8)
    assert F.rgb_to_grayscale(one).tolist() == [[[124]]]  # 124.18
    assert transforms.Grayscale(3)(one).flatten().tolist() == [124] * 3
    assert F.adjust_brightness(one, 1.5).flatten().tolist() == [255, 150, 75]
    assert F.adjust_saturation(one, 0.5).flatten().tolist() == [162, 112, 87]
    assert F.adjust_contrast(one, 0.0).flatten().tolist() == [124] * 3
    assert F.adjust_hue(one, 0.5).flatten().tolist() == [50, 150, 200]
    assert F.adjust_hue(one, 0.25).flatten().tolist() == [75, 200, 50]
    grey = torch.full((1, 2, 2), 7, dtype=torch.uint8)
    assert F.adjust_hue(grey, 0.2) is grey and F.adjust_saturation(grey, 3.0) is grey
    assert F.rgb_to_grayscale(grey, 3).shape == (3, 2, 2)
    assert F.rgb_to_grayscale(PICTURE).mode == "L" and F.rgb_to_grayscale(PICTURE, 3).mode == "RGB"
    assert F.adjust_hue(PICTURE.convert("L"), 0.2).mode == "L"
    unchanged = transforms.ColorJitter()
    assert unchanged(PICTURE) is PICTURE and unchanged(TENSOR) is TENSOR
    everything = transforms.ColorJitter(0.9, (0.1, 3), 0.9, 0.5)
    for given in (PICTURE, TENSOR):
        torch.manual_seed(0)
        assert not np.array_equal(np.array(everything(given)), np.array(given))


def test_erased() -> None:
    given = torch.ones(3, 8, 9)
    torch.manual_seed(1)
    for value, wanted in ((0, [0, 0, 0]), ((2, 3, 4), [2, 3, 4])):
        made = transforms.RandomErasing(1.0, value=value)(given)
        rows, columns = (made != 1).any(dim=0).numpy().nonzero()
        area = made[:, rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]
        assert area.mean(dim=(1, 2)).tolist() == wanted and 0.01 < len(rows) / 72 < 0.5
    assert given.min() == 1
    noise = transforms.RandomErasing(1.0, value="random", inplace=True)(given)
    assert noise is given and len(set(given.flatten().tolist())) > 3
    assert transforms.RandomErasing(1.0, (0.99, 1.0), (50.0, 60.0))(given).equal(given)


def test_random_places() -> None:
    torch.manual_seed(0)
    crop = transforms.RandomCrop((2, 3))
    found = {crop.get_params(TENSOR, (2, 3))[:2] for _ in range(300)}
    assert found == {(top, left) for top in range(3) for left in range(4)}
    assert crop(PICTURE).size == (3, 2) and crop(TENSOR).shape == (3, 2, 3)
    assert transforms.RandomCrop(4, padding=1)(PICTURE).size == (4, 4)
    assert transforms.RandomCrop((9, 8), pad_if_needed=True)(TENSOR).shape == (3, 9, 8)
    assert transforms.RandomCrop((4, 6))(TENSOR).equal(TENSOR)
    drawn = [transforms.RandomResizedCrop.get_params(TENSOR, (0.2, 0.8), (0.5, 2.0)) for _ in range(200)]
    assert all(i >= 0 and j >= 0 and i + h <= 4 and j + w <= 6 for i, j, h, w in drawn) and len(set(drawn)) > 30
    for size, expected in (((4, 40), (0, 17, 4, 5)), ((40, 4), (17, 0, 5, 4))):
        assert transforms.RandomResizedCrop.get_params(torch.zeros(1, *size), (5, 5), (0.75, 4 / 3)) == expected
    assert transforms.RandomResizedCrop.get_params(TENSOR, (5, 5), (0.1, 9.0)) == (0, 0, 4, 6)
    assert transforms.RandomResizedCrop(5)(PICTURE).size == (5, 5)
    assert transforms.RandomRotation((90, 90.0001), expand=True)(PICTURE).size[1] >= 6
    assert transforms.RandomAffine(10, (0.5, 0.5), (0.5, 2), (1, 2, 3, 4), fill=7)(PICTURE).size == (6, 4)
    angle, moved, scale, shear = transforms.RandomAffine.get_params((1, 2), (0.5, 0.5), (3, 4), (5, 6, 7, 8), (10, 20))
    assert 1 <= angle <= 2 and abs(moved[0]) <= 5 and abs(moved[1]) <= 10 and 3 <= scale <= 4
    assert 5 <= shear[0] <= 6 and 7 <= shear[1] <= 8
    with pytest.warns(UserWarning, match=r"Scale and ratio should be of kind \(min, max\)"):
        transforms.RandomResizedCrop(3, (1, 0.5))


@pytest.mark.parametrize(
    ("transform", "changed"),
    [
        (transforms.RandomHorizontalFlip, F.hflip),
        (transforms.RandomGrayscale, lambda x: F.rgb_to_grayscale(x, 3)),
        (transforms.RandomVerticalFlip, F.vflip),
        (lambda p: transforms.RandomApply([F.hflip, F.vflip], p), lambda x: F.vflip(F.hflip(x))),
    ],
)
def test_with_a_probability(transform: Any, changed: Any) -> None:
    assert transform(0.0)(TENSOR) is TENSOR
    assert (
        transform(1.0)(TENSOR).equal(changed(TENSOR))
        and transform(1.0)(PICTURE).tobytes() == changed(PICTURE).tobytes()
    )
    torch.manual_seed(0)
    count = sum(transform(0.25)(TENSOR) is not TENSOR for _ in range(400))
    assert 70 < count < 130


RANDOM = [
    transforms.RandomCrop(3),
    transforms.RandomResizedCrop(5),
    transforms.RandomHorizontalFlip(),
    transforms.RandomGrayscale(0.5),
    transforms.RandomRotation(90),
    transforms.RandomAffine(90, (0.5, 0.5), (0.5, 2), 30),
    transforms.ColorJitter(0.9, 0.9, 0.9, 0.5),
    transforms.RandomApply([F.hflip]),
]


@pytest.mark.parametrize("transform", RANDOM, ids=lambda transform: type(transform).__name__)
def test_the_seed_determines_what_is_drawn(transform: Any) -> None:
    made = []
    for _ in range(2):
        torch.manual_seed(3)
        made.append([transform(PICTURE).tobytes() for _ in range(8)])
    assert made[0] == made[1] and len(set(made[0])) > 1


class Same(Dataset[Any]):
    """The same picture each time, changed at random."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> int:
        if index >= 8:
            raise IndexError
        return int(F.pil_to_tensor(transforms.ColorJitter(0.9)(PICTURE)).sum().item())


def test_workers_draw_for_themselves() -> None:
    """Each worker has its own seed, from that of the loader."""
    runs = []
    for _ in range(2):
        torch.manual_seed(5)
        runs.append([*DataLoader(Same(), None, num_workers=2)])
    assert runs[0] == runs[1] and len(set(runs[0])) == 8


MODES_SHOWN = [
    (transforms.ToTensor(), "ToTensor()"),
    (transforms.PILToTensor(), "PILToTensor()"),
    (transforms.ToPILImage(), "ToPILImage()"),
    (transforms.ToPILImage("L"), "ToPILImage(mode=L)"),
    (transforms.ConvertImageDtype(torch.float32), "ConvertImageDtype()"),
    (transforms.Normalize((0.5,), [1]), "Normalize(mean=(0.5,), std=[1])"),
    (transforms.Resize(5), "Resize(size=5, interpolation=bilinear, max_size=None, antialias=True)"),
    (transforms.CenterCrop(5), "CenterCrop(size=(5, 5))"),
    (transforms.Pad((1, 2)), "Pad(padding=(1, 2), fill=0, padding_mode=constant)"),
    (transforms.Lambda(str), "Lambda()"),
    (transforms.RandomApply([transforms.ToTensor()]), "RandomApply(\n    p=0.5\n    ToTensor()\n)"),
    (transforms.RandomCrop(5, 1), "RandomCrop(size=(5, 5), padding=1)"),
    (transforms.RandomHorizontalFlip(), "RandomHorizontalFlip(p=0.5)"),
    (transforms.RandomVerticalFlip(0.1), "RandomVerticalFlip(p=0.1)"),
    (
        transforms.RandomResizedCrop(5),
        "RandomResizedCrop(size=(5, 5), scale=(0.08, 1.0), ratio=(0.75, 1.3333), interpolation=bilinear, "
        "antialias=True)",
    ),
    (
        transforms.RandomRotation(3, center=(1, 2)),
        "RandomRotation(degrees=[-3.0, 3.0], interpolation=nearest, expand=False, center=(1, 2), fill=0)",
    ),
    (transforms.RandomAffine(3), "RandomAffine(degrees=[-3.0, 3.0])"),
    (
        transforms.RandomAffine((1, 2), (0, 1), (1, 2), 3, InterpolationMode.BILINEAR, 4, (5, 6)),
        "RandomAffine(degrees=[1.0, 2.0], translate=(0, 1), scale=(1, 2), shear=[-3.0, 3.0], interpolation=bilinear, "
        "fill=4, center=(5, 6))",
    ),
    (
        transforms.ColorJitter(0.5, hue=0.1),
        "ColorJitter(brightness=(0.5, 1.5), contrast=None, saturation=None, hue=(-0.1, 0.1))",
    ),
    (transforms.Grayscale(), "Grayscale(num_output_channels=1)"),
    (
        transforms.RandomErasing(),
        "RandomErasing(p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0, inplace=False)",
    ),
]


@pytest.mark.parametrize(("transform", "text"), MODES_SHOWN, ids=[text.partition("(")[0] for _, text in MODES_SHOWN])
def test_what_they_print(transform: Any, text: str) -> None:
    assert repr(transform) == text
    assert repr(pickle.loads(pickle.dumps(transform))) == text


def test_modules_compose_in_a_sequential() -> None:
    model = torch.nn.Sequential(transforms.CenterCrop(2), transforms.Normalize((0.0,), (2.0,)))
    assert model(torch.ones(3, 4, 4)).equal(torch.full((3, 2, 2), 0.5))

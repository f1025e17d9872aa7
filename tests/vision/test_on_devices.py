"""Transforms and models on simulated devices in checked mode: the CPU's values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tests.needs import needs_triton
from tritensor import nn
from tritensor.vision import models, transforms
from tritensor.vision.transforms import functional as F
from tritensor.vision.utils import make_grid, save_image

pytestmark = needs_triton

MODES = transforms.InterpolationMode
ARRAY = np.random.default_rng(0).integers(0, 256, (3, 9, 11), dtype=np.uint8)
TENSORS = {
    "uint8": ARRAY,
    "float32": ARRAY / np.float32(255),
    "batch": np.stack([ARRAY, 255 - ARRAY]) / np.float32(255),
    "grey": ARRAY[:1] / np.float32(255),
}
CALLS: dict[str, Any] = {
    **{f"resize, {each.value}": lambda x, mode=each: F.resize(x, (5, 14), mode) for each in (*MODES,)[:4]},
    "resize, not smoothed": lambda x: F.resize(x, [4], antialias=False),
    "rotate": lambda x: F.rotate(x, 30),
    "rotate, bilinear": lambda x: F.rotate(x, -45.5, MODES.BILINEAR, expand=True, fill=0.25),
    "affine": lambda x: F.affine(x, 10, (1, 2), 1.2, (5, 3)),
    "affine, bilinear": lambda x: F.affine(x, 10, (1, 2), 1.2, (5, 3), MODES.BILINEAR),
    "normalize": lambda x: F.normalize(x.float(), (0.5,), (0.25,)),
    "brightness": lambda x: F.adjust_brightness(x, 1.4),
    "contrast": lambda x: F.adjust_contrast(x, 0.6),
    "saturation": lambda x: F.adjust_saturation(x, 1.4),
    "hue": lambda x: F.adjust_hue(x, 0.2),
    "crop": lambda x: F.crop(x, -1, 2, 5, 20),
    "flips": lambda x: F.vflip(F.hflip(x)),
    "pad": lambda x: F.pad(x, (1, 2), padding_mode="reflect"),
    "convert": lambda x: F.convert_image_dtype(F.convert_image_dtype(x, torch.float64), torch.uint8),
    "grid": lambda x: make_grid([x.float()] * 3, nrow=2, normalize=True) if x.ndim == 3 else make_grid(x),
}
RANDOM = [
    transforms.RandomResizedCrop(6),
    transforms.RandomRotation(30),
    transforms.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 5),
    transforms.ColorJitter(0.3, 0.3, 0.3, 0.2),
    transforms.Grayscale(3),
    transforms.RandomErasing(1.0, value="random"),
    transforms.Compose([transforms.Resize(6), transforms.ConvertImageDtype(torch.float32), transforms.Pad(1)]),
]


def agree(call: Any, x: Any) -> None:
    here = call(x)
    with torch.cuda.simulate(devices=1), torch.testing.checked():
        there = call(x.to("cuda"))
        assert there.is_cuda and (there.dtype, there.shape) == (here.dtype, here.shape)
        # of 255 values the next one, where a value is at half
        apart = (there.cpu().double() - here.double()).abs().max().item()
    assert apart <= (1 if here.dtype is torch.uint8 else 1e-6)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", CALLS)
def test_functions(name: str) -> None:
    for array in TENSORS.values():
        agree(CALLS[name], torch.from_numpy(array))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("transform", RANDOM, ids=lambda transform: type(transform).__name__)
def test_transforms(transform: Any) -> None:
    def call(x: Any) -> Any:
        torch.manual_seed(3)
        return transform(x)

    for array in TENSORS.values():
        agree(call, torch.from_numpy(array))


def test_a_grid_of_a_device_becomes_a_file(tmp_path: Any) -> None:
    pictures = torch.from_numpy(TENSORS["batch"])
    save_image(pictures, tmp_path / "here.png", nrow=1)
    with torch.cuda.simulate(devices=1):
        save_image(pictures.cuda(), tmp_path / "there.png", nrow=1)
    assert (tmp_path / "here.png").read_bytes() == (tmp_path / "there.png").read_bytes()


def toy(name: str) -> Any:
    """A model whose classifier is small, in float64: norms of few values enlarge roundings."""
    torch.manual_seed(0)
    model = getattr(models, name)(num_classes=3)
    if hasattr(model, "avgpool") and hasattr(model, "classifier"):
        channels = 256 if name == "alexnet" else 512
        model.avgpool, model.classifier = nn.AdaptiveAvgPool2d(1), nn.Linear(channels, 3)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model.double()


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "train"),
    [
        pytest.param(name, train, marks=[] if name in ("alexnet", "resnet18") and not train else pytest.mark.slow)
        for name, train in (
            *((name, False) for name in ("resnet18", "resnet34", "resnet50", "vgg16")),
            *((name, True) for name in ("resnet18", "vgg11", "alexnet", "mobilenet_v2")),
            ("alexnet", False),
        )
    ],
)
def test_models(name: str, train: bool) -> None:
    """Outputs; with `train` of training, and the parameters and statistics after a step."""
    # of two values in a channel, as many norms of MobileNet would have, the gradients are rounding alone
    count, size = {"alexnet": (2, 63), "mobilenet_v2": (4, 64)}.get(name, (2, 32))
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((count, 3, size, size)))
    results = []
    with torch.cuda.simulate(devices=1), torch.testing.checked():
        for device in ("cpu", "cuda"):
            model = toy(name).to(device).train(train)
            if not train:
                with torch.no_grad():
                    results.append([model(x.to(device)).cpu().numpy()])
                continue
            sgd = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
            loss = nn.functional.cross_entropy(model(x.to(device)), torch.arange(count, device=device) % 3)
            loss.backward()
            sgd.step()
            assert {each.device.type for each in model.state_dict().values()} == {device}
            results.append([each.cpu().numpy() for each in (loss.detach(), *model.state_dict().values())])
    for here, there in zip(*results, strict=True):
        assert np.abs(there - here).max() <= 1e-8 * (1 + np.abs(here).max())

"""Models: torchvision's names and shapes of parameters, its numbers, and that they train."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor import nn
from tritensor.vision import models
from tritensor.vision.models import BasicBlock


def count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


# Of 1000 classes, as torchvision documents them; a class less are as many parameters less as the last layer's row.
@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "parameters", "row"),
    [
        ("resnet18", 11_689_512, 513),
        ("resnet34", 21_797_672, 513),
        ("resnet50", 25_557_032, 2049),
        ("mobilenet_v2", 3_504_872, 1281),
        ("densenet121", 7_978_856, 1025),
        pytest.param("alexnet", 61_100_840, 4097, marks=pytest.mark.slow),
        pytest.param("vgg11", 132_863_336, 4097, marks=pytest.mark.slow),
        pytest.param("vgg16", 138_357_544, 4097, marks=pytest.mark.slow),
    ],
)
def test_numbers_of_parameters(name: str, parameters: int, row: int) -> None:
    model = getattr(models, name)(num_classes=10).eval()
    assert count(model) == parameters - 990 * row
    size = 63 if name == "alexnet" else 32
    with torch.no_grad():
        assert model(torch.zeros(2, 3, size, size)).shape == (2, 10)
    with pytest.raises(ValueError, match=f"^{name} has no pretrained weights\n(?s:.*)load_state_dict"):
        getattr(models, name)(weights="DEFAULT")


def test_names_of_parameters() -> None:
    state = models.resnet18(num_classes=3).state_dict()
    assert list(state)[:3] == ["conv1.weight", "bn1.weight", "bn1.bias"]
    assert len(state) == 122
    for name, shape in {
        "layer1.0.conv1.weight": (64, 64, 3, 3),
        "layer2.0.downsample.0.weight": (128, 64, 1, 1),
        "layer2.0.downsample.1.running_var": (128,),
        "layer4.1.bn2.num_batches_tracked": (),
        "fc.weight": (3, 512),
    }.items():
        assert state[name].shape == shape
    state = models.mobilenet_v2(num_classes=3).state_dict()
    for name, shape in {
        "features.0.0.weight": (32, 3, 3, 3),
        "features.1.conv.0.0.weight": (32, 1, 3, 3),
        "features.2.conv.0.0.weight": (96, 16, 1, 1),
        "features.18.1.running_mean": (1280,),
        "classifier.1.bias": (3,),
    }.items():
        assert state[name].shape == shape


def test_how_parameters_start() -> None:
    torch.manual_seed(0)
    model = models.resnet18(num_classes=3, zero_init_residual=True)
    weight = model.layer3[0].conv2.weight
    assert float(weight.std()) == pytest.approx((2 / (256 * 9)) ** 0.5, rel=0.02)
    assert float(model.bn1.weight.min()) == 1 and float(model.bn1.bias.abs().max()) == 0
    assert float(model.layer1[0].bn2.weight.abs().max()) == 0
    linear = models.mobilenet_v2(num_classes=30).classifier[1]
    assert float(linear.weight.std()) == pytest.approx(0.01, rel=0.02) and float(linear.bias.abs().max()) == 0


@pytest.mark.thorough
def test_options() -> None:
    grouped = models.resnet18(norm_layer=lambda channels: nn.GroupNorm(4, channels), num_classes=2)
    assert isinstance(grouped.layer4[1].bn2, nn.GroupNorm)
    narrow = models.mobilenet_v2(width_mult=0.35, num_classes=2)
    assert narrow.features[0][0].out_channels == 16 and narrow.last_channel == 1280
    assert models.resnet18(num_classes=2, zero_init_residual=True).layer1[0].bn2.weight.abs().max() == 0


def test_a_dense_net_computes_features_again() -> None:
    torch.manual_seed(0)
    models_of_one = [models.DenseNet(4, (2, 1), 8, 2, num_classes=3, memory_efficient=again) for again in (False, True)]
    models_of_one[1].load_state_dict(models_of_one[0].state_dict())
    assert "features.transition1.conv.weight" in models_of_one[0].state_dict()
    pictures = torch.randn(2, 3, 32, 32)
    for model in models_of_one:
        model(pictures).square().sum().backward()
    for kept, again in zip(*[model.parameters() for model in models_of_one], strict=True):
        torch.testing.assert_close(kept.grad, again.grad)
    assert models.DenseNet(4, (1,), 8, 2, drop_rate=0.5, num_classes=3)(pictures).shape == (2, 3)


def test_layers_of_a_vgg() -> None:
    names = [type(layer).__name__ for layer in models.make_layers([4, "M"], batch_norm=True)]
    assert names == ["Conv2d", "BatchNorm2d", "ReLU", "MaxPool2d"]


def test_a_resnet_trains() -> None:
    torch.manual_seed(0)
    model = models.ResNet(BasicBlock, [1, 1, 1, 1], 4)
    sgd = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
    pictures, labels = torch.randn(8, 3, 32, 32), torch.arange(8) % 4
    losses = []
    for _ in range(8):
        sgd.zero_grad()
        loss = nn.functional.cross_entropy(model(pictures), labels)
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]
    assert int(model.bn1.num_batches_tracked) == 8


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["resnet18", "resnet50", "mobilenet_v2", "alexnet", "vgg11", "vgg16", "densenet121"])
def test_beside_torchvision(name: str, tmp_path: Any) -> None:
    """A checkpoint of torchvision's model gives the same outputs, gradients and running statistics."""
    torchvision = pytest.importorskip("torchvision")
    other = pytest.importorskip("torch")
    theirs = getattr(torchvision.models, name)(num_classes=5)
    mine = getattr(models, name)(num_classes=5)
    assert str(mine) == str(theirs)
    other.save(theirs.state_dict(), tmp_path / "checkpoint.pth")
    assert str(mine.load_state_dict(torch.load(tmp_path / "checkpoint.pth"))) == "<All keys matched successfully>"
    array = np.random.default_rng(0).standard_normal((2, 3, 64, 64))
    with torch.no_grad(), other.no_grad():
        found = mine.eval()(torch.from_numpy(array.astype(np.float32))).numpy()
        expected = theirs.eval()(other.from_numpy(array.astype(np.float32))).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    if not name.startswith(("resnet18", "mobilenet")):
        return
    for model in (mine, theirs):  # in float64, and without dropout: torch draws other numbers
        model.double().train()
        for module in model.modules():
            if type(module).__name__ == "Dropout":
                module.p = 0.0
    found = nn.functional.cross_entropy(mine(torch.from_numpy(array)), torch.tensor([1, 2]))
    expected = other.nn.functional.cross_entropy(theirs(other.from_numpy(array)), other.tensor([1, 2]))
    found.backward()
    expected.backward()
    assert found.item() == pytest.approx(expected.item(), rel=1e-9)
    for (key, left), right in zip(mine.named_parameters(), theirs.parameters(), strict=True):
        scale = float(right.grad.abs().max()) + 1e-6
        np.testing.assert_allclose(left.grad.numpy() / scale, right.grad.numpy() / scale, atol=1e-6, err_msg=key)
    for key, value in theirs.state_dict().items():
        np.testing.assert_allclose(mine.state_dict()[key].numpy(), value.numpy(), rtol=1e-9, atol=1e-12, err_msg=key)

"""monai: segmentation networks, losses, inference in windows, transforms, and metrics."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import monai
import numpy as np
import torch
from monai import data, inferers, losses, metrics, networks, transforms


def volumes(*shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).standard_normal(shape, dtype=np.float32))


def small(**options: Any) -> networks.nets.UNet:
    usual = {"in_channels": 1, "out_channels": 2, "channels": (4, 8, 8), "strides": (2, 2), "num_res_units": 1}
    return networks.nets.UNet(**{"spatial_dims": 2, **usual, **options})


def case_unet(carry: Any) -> None:
    for size, shape in ((2, (2, 1, 16, 16)), (3, (1, 1, 8, 8, 8))):
        model = carry.module(f"unet{size}", small(spatial_dims=size))
        found = model(volumes(*shape))
        found.square().mean().backward()
        carry.check(f"found{size}", found)
        carry.check(f"gradients{size}", {name: each.grad for name, each in model.named_parameters()}, atol=1e-3)


def case_networks(carry: Any) -> None:
    options = {"spatial_dims": 2, "in_channels": 1, "out_channels": 2}
    models = {
        "basic": networks.nets.BasicUNet(**options, features=(4, 4, 8, 8, 8, 4)),
        "attention": networks.nets.AttentionUnet(**options, channels=(4, 8), strides=(2,)),
        "residual": networks.nets.SegResNet(**options, init_filters=8, blocks_down=(1, 1), blocks_up=(1,)),
        "unetr": networks.nets.UNETR(1, 2, 32, 4, 16, 24, 2, spatial_dims=2),
    }
    for name, model in models.items():
        model = carry.module(name, model).eval()
        carry.check(name, model(volumes(2, 1, 32, 32)))
    dense = networks.nets.DenseNet(2, 1, 3, init_features=8, growth_rate=4, block_config=(2, 2))
    carry.check("dense", carry.module("dense", dense).eval()(volumes(2, 1, 32, 32)))


def case_losses(carry: Any) -> None:
    scores = volumes(2, 3, 8, 8).requires_grad_()
    labels = torch.from_numpy(np.random.default_rng(1).integers(0, 3, (2, 1, 8, 8)))
    found = [
        losses.DiceLoss(to_onehot_y=True, softmax=True)(scores, labels),
        losses.DiceCELoss(to_onehot_y=True, softmax=True)(scores, labels),
        losses.DiceFocalLoss(to_onehot_y=True, softmax=True)(scores, labels),
        losses.GeneralizedDiceLoss(to_onehot_y=True, softmax=True)(scores, labels),
        losses.TverskyLoss(to_onehot_y=True, softmax=True)(scores, labels),
        losses.FocalLoss(to_onehot_y=True)(scores, labels),
    ]
    sum(found).backward()
    carry.check("losses", found)
    carry.check("gradient", scores.grad)
    registered = volumes(2, 1, 12, 12).sigmoid()
    carry.check("correlation", losses.LocalNormalizedCrossCorrelationLoss(2)(registered, registered.flip(-1)))
    carry.check("similarity", losses.SSIMLoss(2, win_size=5)(registered, registered.flip(-1)))


def case_windows(carry: Any) -> None:
    model = carry.module("model", small()).eval()
    with torch.no_grad():
        x = volumes(1, 1, 30, 26)
        carry.check("constant", inferers.sliding_window_inference(x, (16, 16), 2, model, overlap=0.5))
        carry.check("gaussian", inferers.SlidingWindowInferer((16, 16), 4, 0.25, mode="gaussian")(x, model))


def case_transforms(carry: Any) -> None:
    chain = transforms.Compose(
        [
            transforms.EnsureChannelFirstd(["image", "label"], channel_dim="no_channel"),
            transforms.ScaleIntensityRanged("image", -2, 2, 0, 1, clip=True),
            transforms.Spacingd(["image", "label"], (1.5, 0.75), mode=("bilinear", "nearest")),
            transforms.SpatialPadd(["image", "label"], (20, 24)),
            transforms.CenterSpatialCropd(["image", "label"], (16, 16)),
            transforms.Flipd(["image", "label"], spatial_axis=0),
            transforms.Rotate90d(["image", "label"]),
            transforms.NormalizeIntensityd("image", nonzero=True),
            transforms.AsDiscreted("label", to_onehot=2),
            transforms.ToTensord(["image", "label"]),
        ]
    )
    image = np.random.default_rng(0).standard_normal((18, 18), dtype=np.float32)
    found = chain({"image": image, "label": (image > 0).astype(np.float32)})
    carry.check("image", torch.as_tensor(found["image"]))
    carry.check("label", torch.as_tensor(found["label"]))
    picture = volumes(1, 16, 16)
    carry.check("resized", torch.as_tensor(transforms.Resize((10, 12))(picture)))
    carry.check("rotated", torch.as_tensor(transforms.Rotate(0.3)(picture)))
    carry.check("zoomed", torch.as_tensor(transforms.Zoom(1.3)(picture)))
    carry.check("smooth", torch.as_tensor(transforms.GaussianSmooth(1.0)(picture)))
    random = transforms.Compose([transforms.RandAffine(prob=1.0, rotate_range=0.3), transforms.RandGaussianNoise(1.0)])
    random.set_random_state(seed=3)
    carry.check("shape", list(random(picture).shape))


def case_metrics(carry: Any) -> None:
    rng = np.random.default_rng(0)
    guess, wanted = (torch.from_numpy(rng.integers(0, 2, (4, 2, 12, 12))).float() for _ in range(2))
    for name, metric in {
        "dice": metrics.DiceMetric(include_background=True, reduction="mean_batch"),
        "overlap": metrics.MeanIoU(),
        "distance": metrics.HausdorffDistanceMetric(include_background=True, percentile=95),
        "surface": metrics.SurfaceDistanceMetric(include_background=True),
        "confusion": metrics.ConfusionMatrixMetric(metric_name=("sensitivity", "precision")),
    }.items():
        metric(guess[:2], wanted[:2])
        metric(guess[2:], wanted[2:])
        carry.check(name, metric.aggregate())
        metric.reset()


def case_training(carry: Any) -> None:
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        for position in range(4):
            np.save(Path(folder) / f"{position}.npy", rng.standard_normal((16, 16), dtype=np.float32))
        files = [{"image": str(path), "label": str(path)} for path in sorted(Path(folder).glob("*.npy"))]
        chain = transforms.Compose(
            [
                transforms.LoadImaged(["image", "label"], ensure_channel_first=True),
                transforms.ThresholdIntensityd("label", 0.0),
                transforms.AsDiscreted("label", threshold=0.5),
            ]
        )
        loader = data.DataLoader(data.CacheDataset(files, chain, progress=False), batch_size=2, num_workers=0)
        model, loss = carry.module("model", small(norm="instance")), losses.DiceLoss(to_onehot_y=True, softmax=True)
        optimizer, found = torch.optim.Adam(model.parameters(), 1e-2), []
        for _ in range(2):
            for batch in loader:
                optimizer.zero_grad()
                value = loss(model(batch["image"]), batch["label"])
                value.backward()
                optimizer.step()
                found.append(value.item())
    carry.check("losses", found)
    carry.check("decollated", len(data.decollate_batch(torch.zeros(3, 1, 2))))
    carry.check("version", monai.__version__)

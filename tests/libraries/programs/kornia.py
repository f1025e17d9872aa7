"""kornia: filters, colours, geometry, losses, features, and augmentations with fixed parameters."""

from __future__ import annotations

from typing import Any

import kornia
import numpy as np
import torch
from kornia import augmentation


def images(count: int = 2, size: int = 24) -> torch.Tensor:
    rng = np.random.default_rng(0)
    rough = torch.from_numpy(rng.random((count, 3, size // 4, size // 4), dtype=np.float32))
    return torch.nn.functional.interpolate(rough, size=(size, size), mode="bilinear", align_corners=False)


def case_filters(carry: Any) -> None:
    x = images()
    carry.check("gaussian", kornia.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)))
    carry.check("box", kornia.filters.box_blur(x, (3, 3)))
    carry.check("median", kornia.filters.median_blur(x, (3, 3)))
    carry.check("sobel", kornia.filters.sobel(x))
    carry.check("laplacian", kornia.filters.laplacian(x, 3))
    carry.check("gradient", kornia.filters.spatial_gradient(x))
    carry.check("bilateral", kornia.filters.bilateral_blur(x, (3, 3), 0.1, (1.5, 1.5)))
    carry.check("unsharp", kornia.filters.UnsharpMask((3, 3), (1.0, 1.0))(x))
    x.requires_grad_()
    kornia.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)).square().sum().backward()
    carry.check("gradient of blur", x.grad)


def case_colour(carry: Any) -> None:
    x = images()
    for name in ("grayscale", "hsv", "lab", "ycbcr", "yuv", "hls", "luv", "xyz", "linear_rgb"):
        carry.check(name, getattr(kornia.color, f"rgb_to_{name}")(x), atol=1e-3)
    carry.check("back from hsv", kornia.color.hsv_to_rgb(kornia.color.rgb_to_hsv(x)))
    carry.check("back from lab", kornia.color.lab_to_rgb(kornia.color.rgb_to_lab(x)), atol=1e-3)


def case_enhance(carry: Any) -> None:
    x = images()
    for name in ("brightness", "contrast", "saturation", "gamma", "hue"):
        carry.check(name, getattr(kornia.enhance, f"adjust_{name}")(x, 0.4))
    carry.check("equalized", kornia.enhance.equalize(x), atol=5e-3)
    carry.check("clahe", kornia.enhance.equalize_clahe(images(2, 32), 4.0, (4, 4)), atol=5e-3)
    mean, deviation = torch.tensor([0.4, 0.5, 0.6]), torch.tensor([0.2, 0.2, 0.3])
    carry.check("normalized", kornia.enhance.normalize(x, mean, deviation))


def case_geometry(carry: Any) -> None:
    x = images()
    angle = torch.tensor([20.0, -35.0], requires_grad=True)
    rotated = kornia.geometry.rotate(x, angle)
    rotated.square().sum().backward()
    carry.check("rotated", rotated)
    carry.check("gradient", angle.grad, rtol=1e-2)
    matrix = kornia.geometry.get_rotation_matrix2d(
        torch.tensor([[12.0, 12.0]]), torch.tensor([30.0]), torch.tensor([[1.2, 0.8]])
    )
    carry.check("affine", kornia.geometry.warp_affine(x[:1], matrix, (20, 28)))
    corners = torch.tensor([[[0.0, 0.0], [23.0, 0.0], [23.0, 23.0], [0.0, 23.0]]])
    moved = corners + torch.tensor([[[2.0, 1.0], [-3.0, 2.0], [-1.0, -4.0], [3.0, -2.0]]])
    homography = kornia.geometry.get_perspective_transform(corners, moved)
    carry.check("homography", homography)
    carry.check("perspective", kornia.geometry.warp_perspective(x[:1], homography, (24, 24)))
    carry.check("resized", kornia.geometry.resize(x, (16, 30), antialias=True))
    carry.check("pyramid", kornia.geometry.build_pyramid(x, 3))
    points = kornia.geometry.transform_points(homography, corners)
    carry.check("points", points, atol=1e-3)
    turn = kornia.geometry.axis_angle_to_rotation_matrix(torch.tensor([[0.1, -0.4, 0.7]]))
    carry.check("turn", turn)
    carry.check("quaternion", kornia.geometry.rotation_matrix_to_quaternion(turn))


def case_losses(carry: Any) -> None:
    rng = np.random.default_rng(0)
    scores = torch.from_numpy(rng.standard_normal((2, 4, 8, 8), dtype=np.float32)).requires_grad_()
    labels = torch.from_numpy(rng.integers(0, 4, (2, 8, 8)))
    losses = [
        kornia.losses.dice_loss(scores, labels),
        kornia.losses.focal_loss(scores, labels, alpha=0.5, reduction="mean"),
        kornia.losses.tversky_loss(scores, labels, alpha=0.5, beta=0.5),
        kornia.losses.lovasz_softmax_loss(scores, labels),
    ]
    sum(losses).backward()
    carry.check("losses", losses)
    carry.check("gradient", scores.grad)
    x = carry.tensor("images", images()).requires_grad_()
    other = x.detach().flip(-1)
    losses = [kornia.losses.ssim_loss(x, other, 5), kornia.losses.psnr_loss(x, other, 1.0)]
    losses += [kornia.losses.total_variation(x).mean(), kornia.losses.charbonnier_loss(x, other, "mean")]
    sum(losses).backward()
    carry.check("losses of images", losses)
    carry.check("gradient of images", x.grad)


def case_augmentation(carry: Any) -> None:
    x = images()
    chain = augmentation.AugmentationSequential(
        augmentation.RandomHorizontalFlip(p=1.0),
        augmentation.RandomRotation((30.0, 30.0), p=1.0),
        augmentation.ColorJitter((1.2, 1.2), (0.8, 0.8), (1.1, 1.1), (0.1, 0.1), p=0.0),
        augmentation.Normalize(torch.tensor([0.5]), torch.tensor([0.25])),
        data_keys=["input", "mask"],
    )
    carry.check("chain", chain(x, (x[:, :1] > 0.5).float()))
    carry.check("crop", augmentation.CenterCrop(16)(x))
    affine = augmentation.RandomAffine((10.0, 10.0), scale=(1.1, 1.1), p=1.0)
    carry.check("affine", affine(x))
    carry.check("matrix", affine.transform_matrix)
    carry.check("shape", list(augmentation.RandomResizedCrop((16, 16), p=1.0)(x).shape))


def case_features(carry: Any) -> None:
    x = images().mean(1, keepdim=True)
    carry.check("harris", kornia.feature.harris_response(x))
    carry.check("peaks", kornia.geometry.subpix.nms2d(x, (3, 3)))
    descriptor = carry.module("sift", kornia.feature.SIFTDescriptor(24, 4, 2))
    carry.check("sift", descriptor(x), atol=1e-3)
    carry.check("morphology", kornia.morphology.closing(x, torch.ones(3, 3)))
    carry.check("canny", kornia.filters.canny(x)[0])

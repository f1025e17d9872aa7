"""segmentation-models-pytorch: decoders over small encoders forward and backward, losses, and scores."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import segmentation_models_pytorch as smp
import torch


def noise(*shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).standard_normal(shape, dtype=np.float32))


def spread(model: Any, by: float = 0.02) -> Any:
    """The model in evaluation mode with weights that differ visibly from their first values."""
    rng = np.random.default_rng(1)
    with torch.no_grad():
        for each in model.parameters():
            each.add_(torch.from_numpy(np.asarray(rng.standard_normal(tuple(each.shape), dtype=np.float32) * by)))
    return model.eval()


def learn(carry: Any, model: Any, size: int = 32) -> None:
    """The masks of two pictures, and the gradients of a loss over them."""
    model = carry.module("model", spread(model))
    out = model(noise(2, 3, size, size))
    loss = smp.losses.DiceLoss("multiclass")(out, noise(2, size, size).abs().long().clamp(max=2))
    loss.backward()
    largest = max(1.0, float(out.detach().abs().max()))
    carry.check("out", out, rtol=5e-3, atol=1e-3 * largest)
    carry.check("loss", loss, rtol=5e-3)
    norms = torch.stack([each.grad.norm() for each in model.parameters() if each.grad is not None])
    carry.check("norms", norms, rtol=2e-2, atol=1e-3 * float(norms.max()))


def sizes(**more: Any) -> dict[str, Any]:
    return {"encoder_name": "resnet18", "encoder_weights": None, "classes": 3, **more}


def case_unet(carry: Any) -> None:
    learn(carry, smp.Unet(**sizes(encoder_depth=3, decoder_channels=(32, 16, 8))))


def case_unet_of_all_depths(carry: Any) -> None:
    attention = {"decoder_attention_type": "scse", "decoder_channels": (32, 32, 32, 16, 16)}
    learn(carry, smp.Unet(**sizes(encoder_name="mobilenet_v2"), **attention), 64)


def case_unet_plus_plus(carry: Any) -> None:
    learn(carry, smp.UnetPlusPlus(**sizes(encoder_depth=3, decoder_channels=(32, 16, 8))))


def case_linknet(carry: Any) -> None:
    learn(carry, smp.Linknet(**sizes(encoder_depth=3)))


def case_pyramid(carry: Any) -> None:
    model = smp.FPN(**sizes(encoder_name="mobilenet_v2", decoder_pyramid_channels=32, decoder_segmentation_channels=32))
    learn(carry, model, 64)


def case_psp(carry: Any) -> None:
    learn(carry, smp.PSPNet(**sizes(encoder_depth=3, psp_out_channels=32)), 64)


def case_deeplab(carry: Any) -> None:
    small = {"decoder_channels": 16, "decoder_atrous_rates": (2, 4, 6)}
    learn(carry, smp.DeepLabV3Plus(**sizes(encoder_name="mobilenet_v2"), **small), 64)


def case_attention(carry: Any) -> None:
    small = {"encoder_depth": 3, "decoder_channels": (32, 16, 8), "decoder_pab_channels": 16}
    learn(carry, smp.MAnet(**sizes(**small)))


def case_segformer(carry: Any) -> None:
    learn(carry, smp.Segformer(**sizes(encoder_name="mit_b0", decoder_segmentation_channels=32)), 64)


def case_vgg_of_torchvision(carry: Any) -> None:
    learn(carry, smp.Unet(**sizes(encoder_name="vgg11_bn", encoder_depth=3, decoder_channels=(32, 16, 8))))


def case_densenet_of_torchvision(carry: Any) -> None:
    learn(carry, smp.Unet(**sizes(encoder_name="densenet121", encoder_depth=3, decoder_channels=(32, 16, 8))))


def case_encoder_of_timm(carry: Any) -> None:
    small = {"encoder_depth": 3, "decoder_channels": (32, 16, 8)}
    learn(carry, smp.Unet(**sizes(encoder_name="tu-test_resnet"), **small), 64)


def case_labels_too(carry: Any) -> None:
    label = {"pooling": "avg", "dropout": 0.0, "classes": 4, "activation": None}
    small = {"encoder_depth": 3, "decoder_channels": (32, 16, 8), "activation": "sigmoid", "in_channels": 1}
    model = carry.module("model", spread(smp.Unet(**sizes(encoder_name="mobilenet_v2", **small), aux_params=label)))
    masks, labels = model(noise(2, 1, 32, 32))
    carry.check("masks", masks, atol=1e-3)
    carry.check("labels", labels, rtol=5e-3, atol=1e-3)


def case_trained(carry: Any) -> None:
    model = smp.Unet(**sizes(encoder_name="mobilenet_v2", encoder_depth=3, decoder_channels=(32, 16, 8), classes=1))
    model = carry.module("model", spread(model)).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    wanted = (noise(4, 1, 32, 32) > 0).float()
    loss_of = smp.losses.DiceLoss("binary")
    for step in range(2):
        optimizer.zero_grad()
        out = model(noise(4, 3, 32, 32))
        loss = loss_of(out, wanted) + torch.nn.functional.binary_cross_entropy_with_logits(out, wanted)
        loss.backward()
        optimizer.step()
        carry.check(f"loss.{step}", loss, rtol=2e-2)


def case_losses(carry: Any) -> None:
    logits, labels = noise(2, 3, 8, 8).requires_grad_(), noise(2, 8, 8).abs().long().clamp(max=2)
    bits = (noise(2, 3, 8, 8) > 0).float()
    losses = {
        "dice": smp.losses.DiceLoss("multiclass", log_loss=True)(logits, labels),
        "dice.multilabel": smp.losses.DiceLoss("multilabel", smooth=1.0)(logits, bits),
        "jaccard": smp.losses.JaccardLoss("multiclass")(logits, labels),
        "tversky": smp.losses.TverskyLoss("multiclass", alpha=0.3, beta=0.7)(logits, labels),
        "focal": smp.losses.FocalLoss("multiclass", gamma=2.0)(logits, labels),
        "focal.binary": smp.losses.FocalLoss("binary", alpha=0.25)(logits[:, :1], bits[:, :1]),
        "lovasz": smp.losses.LovaszLoss("multiclass")(logits, labels),
        "lovasz.binary": smp.losses.LovaszLoss("binary")(logits[:, 0], bits[:, 0]),
        "entropy": smp.losses.SoftBCEWithLogitsLoss(smooth_factor=0.1)(logits, bits),
        "smooth": smp.losses.SoftCrossEntropyLoss(smooth_factor=0.1)(logits, labels),
        "matthews": smp.losses.MCCLoss()(logits[:, :1].sigmoid(), bits[:, :1]),
    }
    for name, loss in losses.items():
        carry.check(name, loss, rtol=5e-3)
        carry.check(f"{name}.gradient", torch.autograd.grad(loss, logits)[0])


def case_scores(carry: Any) -> None:
    found, wanted = noise(2, 8, 8).abs().long().clamp(max=2), noise(2, 8, 8).flip(1).abs().long().clamp(max=2)
    counts = smp.metrics.get_stats(found, wanted, mode="multiclass", num_classes=3)
    carry.check("counts", counts)
    for name in ("iou_score", "f1_score", "accuracy", "recall", "precision", "balanced_accuracy"):
        score = getattr(smp.metrics, name)
        carry.check(name, {kind: score(*counts, reduction=kind) for kind in ("micro", "macro", "none")})
    bits = smp.metrics.get_stats(noise(2, 1, 8, 8).sigmoid(), (noise(2, 1, 8, 8) > 0.2).long(), "binary", threshold=0.5)
    carry.check("bits", bits)


def case_saved(carry: Any) -> None:
    model = carry.module(
        "model", spread(smp.Unet(**sizes(encoder_name="mobilenet_v2", encoder_depth=3, decoder_channels=(32, 16, 8))))
    )
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = smp.from_pretrained(folder).eval()
    carry.check("out", again(noise(2, 3, 32, 32)), rtol=5e-3, atol=1e-3)

"""timm: small picture models of many families forward and backward, features, optimizers, schedules and averages."""

from __future__ import annotations

from typing import Any

import numpy as np
import timm
import timm.loss
import timm.optim
import timm.scheduler
import timm.utils
import torch


def pictures(size: int, rows: int = 2) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).standard_normal((rows, 3, size, size), dtype=np.float32))


def spread(model: Any, by: float = 0.05) -> Any:
    """The model with weights that differ visibly from their first values, gates near zero included."""
    rng = np.random.default_rng(1)
    with torch.no_grad():
        for each in model.parameters():
            each.add_(torch.from_numpy(np.asarray(rng.standard_normal(tuple(each.shape), dtype=np.float32) * by)))
    return model


def made(carry: Any, name: str, **more: Any) -> Any:
    return carry.module(name, spread(timm.create_model(name, pretrained=False, num_classes=5, **more)).eval())


def family(carry: Any, name: str, size: int, **more: Any) -> None:
    """Logits and gradients in evaluation mode."""
    compare(carry, made(carry, name, **more), size)


def compare(carry: Any, model: Any, size: int) -> None:
    out = model(pictures(size))
    loss = torch.nn.functional.cross_entropy(out, torch.tensor([1, 3]))
    loss.backward()
    carry.check("logits", out, rtol=5e-3, atol=1e-3 * max(1.0, float(out.detach().abs().max())))
    carry.check("loss", loss, rtol=5e-3, atol=1e-3)
    norms = torch.stack([each.grad.norm() for each in model.parameters() if each.grad is not None])
    carry.check("norms", norms, rtol=1e-2, atol=1e-3 * float(norms.max()))


def trained(carry: Any, name: str, size: int, **more: Any) -> None:
    """Two steps in training mode, so that the averages of the batches move."""
    model = made(carry, name, **more).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for step in range(2):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(pictures(size, 4)), torch.tensor([0, 1, 2, 3]))
        loss.backward()
        optimizer.step()
        carry.check(f"loss.{step}", loss, rtol=1e-2)
    carry.check(
        "averages", {key: each for key, each in model.named_buffers() if "running" in key}, rtol=1e-2, atol=1e-2
    )


def case_resnet(carry: Any) -> None:
    family(carry, "resnet10t", 32)


def case_compiled(carry: Any) -> None:
    tiny = {"img_size": 32, "patch_size": 8, "embed_dim": 48, "depth": 2, "num_heads": 3, "num_classes": 5}
    transformer = timm.models.vision_transformer.VisionTransformer(**tiny)
    compare(carry, carry.compiled(carry.module("model", spread(transformer).eval())), 32)


def case_resnet_compiled(carry: Any) -> None:
    compare(carry, carry.compiled(made(carry, "resnet10t")), 32)


def case_replayed(carry: Any) -> None:
    """The third call on runs without Python."""
    for name in ("resnet10t", "test_vit", "test_efficientnet"):
        run = carry.compiled(made(carry, name), fullgraph=True)
        for step in range(4):
            with torch.no_grad():
                carry.check(f"{name}.{step}", run(pictures(64, 2) * (step + 1)), rtol=5e-3, atol=1e-2)


def case_resnet_trained(carry: Any) -> None:
    trained(carry, "test_resnet", 64)


def case_vit(carry: Any) -> None:
    family(carry, "vit_tiny_patch16_224", 32, img_size=32, patch_size=8, depth=2)


def case_vit_other_parts(carry: Any) -> None:
    family(carry, "test_vit4", 64, img_size=64)


def case_vit_relative_positions(carry: Any) -> None:
    family(carry, "test_vit_relpos", 64, img_size=64)


def case_deit(carry: Any) -> None:
    family(carry, "deit_tiny_distilled_patch16_224", 32, img_size=32, depth=2)


def case_eva(carry: Any) -> None:
    family(carry, "eva02_tiny_patch14_224", 28, img_size=28, depth=2)


def case_cait(carry: Any) -> None:
    family(carry, "cait_xxs24_224", 32, img_size=32, depth=2, depth_token_only=1)


def case_efficientnet_lite(carry: Any) -> None:
    family(carry, "efficientnet_lite0", 32)


def case_efficientnet_same_padding(carry: Any) -> None:
    family(carry, "tf_efficientnet_lite0", 32)


def case_efficientnet_trained(carry: Any) -> None:
    trained(carry, "test_efficientnet", 64)


def case_convnext(carry: Any) -> None:
    family(carry, "convnext_atto", 32)


def case_mobilenet(carry: Any) -> None:
    family(carry, "mobilenetv3_small_050", 32)


def case_regnet(carry: Any) -> None:
    family(carry, "regnetx_002", 32)


def case_swin(carry: Any) -> None:
    sizes = {"embed_dim": 24, "depths": (2, 2), "num_heads": (2, 4), "window_size": 4}
    family(carry, "swin_tiny_patch4_window7_224", 32, img_size=32, **sizes)


def case_mixer(carry: Any) -> None:
    model = timm.models.MlpMixer(num_classes=5, img_size=32, patch_size=8, num_blocks=2, embed_dim=32)
    compare(carry, carry.module("model", spread(model).eval()), 32)


def case_ghostnet(carry: Any) -> None:
    family(carry, "ghostnet_050", 32)


def case_densenet(carry: Any) -> None:
    family(carry, "densenet121", 32, growth_rate=8, block_config=(2, 2))


def case_nfnet(carry: Any) -> None:
    family(carry, "test_nfnet", 64)


def case_coatnet(carry: Any) -> None:
    family(carry, "test_coatnet", 64, img_size=64)


def case_maxvit(carry: Any) -> None:
    family(carry, "test_maxvit", 64, img_size=64)


def case_byobnet(carry: Any) -> None:
    family(carry, "test_byobnet", 64)


def case_mambaout(carry: Any) -> None:
    family(carry, "test_mambaout", 64)


def case_levit(carry: Any) -> None:
    family(carry, "levit_128s", 64, img_size=64)


def case_pit(carry: Any) -> None:
    family(carry, "pit_ti_224", 64, img_size=64)


def case_edgenext(carry: Any) -> None:
    family(carry, "edgenext_xx_small", 64)


def case_features(carry: Any) -> None:
    model = timm.create_model("test_resnet", features_only=True, out_indices=(1, 2, 3), pretrained=False)
    model = carry.module("model", spread(model).eval())
    carry.check("channels", model.feature_info.channels())
    carry.check("reductions", model.feature_info.reduction())
    carry.check("maps", model(pictures(64)), rtol=5e-3, atol=1e-3)


def case_features_of_vit(carry: Any) -> None:
    model = timm.create_model("test_vit", img_size=64, features_only=True, pretrained=False)
    carry.check("maps", carry.module("model", spread(model).eval())(pictures(64)), rtol=5e-3, atol=1e-3)


def case_without_head(carry: Any) -> None:
    model = made(carry, "test_convnext")
    maps = model.forward_features(pictures(64))
    carry.check("maps", maps, rtol=5e-3, atol=1e-3)
    carry.check("pooled", model.forward_head(maps, pre_logits=True), rtol=5e-3, atol=1e-3)
    last, middle = model.forward_intermediates(pictures(64), indices=2)
    carry.check("middle", [last, *middle], rtol=5e-3, atol=1e-3)
    model.reset_classifier(0)
    carry.check("shape", model(pictures(64)).shape)


def case_gray_pictures(carry: Any) -> None:
    family_input = pictures(64)[:, :1]
    model = made(carry, "test_resnet", in_chans=1, drop_path_rate=0.1)
    carry.check("logits", model(family_input), rtol=5e-3, atol=1e-3)


def case_gradient_checkpointing(carry: Any) -> None:
    model = made(carry, "test_vit", img_size=64)
    model.set_grad_checkpointing(True)
    model.train()(pictures(64)).square().mean().backward()
    carry.check("gradient", model.patch_embed.proj.weight.grad, rtol=5e-3, atol=1e-3)


def case_optimizers(carry: Any) -> None:
    x = pictures(8).flatten(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(192, 16), torch.nn.LayerNorm(16), torch.nn.GELU(), torch.nn.Linear(16, 4)
    )
    model = carry.module("model", model)
    first = {key: each.clone() for key, each in model.state_dict().items()}
    for name in ("sgd", "adamw", "nadamw", "rmsproptf", "lamb", "lars", "lion", "adopt", "adafactor", "adabelief"):
        model.load_state_dict(first)
        optimizer = timm.optim.create_optimizer_v2(model, opt=name, lr=1e-3, weight_decay=0.05)
        for _ in range(3):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        carry.check(name, dict(model.named_parameters()), rtol=5e-3)


def case_layer_decay(carry: Any) -> None:
    model = made(carry, "test_vit", img_size=64)
    optimizer = timm.optim.create_optimizer_v2(model, opt="adamw", lr=1e-3, weight_decay=0.05, layer_decay=0.7)
    carry.check(
        "groups", [[each["lr_scale"], each["weight_decay"], len(each["params"])] for each in optimizer.param_groups]
    )
    model(pictures(64)).square().mean().backward()
    optimizer.step()
    carry.check("weight", model.head.weight)


def case_schedules(carry: Any) -> None:
    weight = torch.nn.Parameter(torch.ones(4))
    for name in ("cosine", "step", "multistep", "plateau", "poly", "tanh"):
        optimizer = torch.optim.SGD([weight], lr=0.1)
        schedule, epochs = timm.scheduler.create_scheduler_v2(
            optimizer, sched=name, num_epochs=10, decay_epochs=3, decay_milestones=(3, 6), warmup_epochs=2
        )
        rates = []
        for epoch in range(8):
            schedule.step(epoch, metric=1.0)
            rates.append(optimizer.param_groups[0]["lr"])
        carry.check(name, rates, atol=1e-7)
        carry.check(f"{name}.epochs", epochs)


def case_average(carry: Any) -> None:
    model = made(carry, "test_resnet").train()
    averages = [timm.utils.ModelEmaV2(model, decay=0.9), timm.utils.ModelEmaV3(model, decay=0.9)]
    optimizer = timm.optim.create_optimizer_v2(model, opt="momentum", lr=1e-2)
    for step in range(2):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(pictures(64, 4)), torch.tensor([0, 1, 2, 3])).backward()
        optimizer.step()
        averages[0].update(model)
        averages[1].update(model, step=step)
    for name, each in zip("ab", averages, strict=True):
        carry.check(name, dict(each.module.named_parameters()), rtol=1e-2, atol=1e-3)


def case_losses(carry: Any) -> None:
    logits = pictures(4).reshape(12, 8).requires_grad_()
    labels = torch.arange(12) % 8
    soft = torch.nn.functional.one_hot(labels, 8).float() * 0.9
    losses = {
        "smooth": timm.loss.LabelSmoothingCrossEntropy(0.1)(logits, labels),
        "soft": timm.loss.SoftTargetCrossEntropy()(logits, soft),
        "binary": timm.loss.BinaryCrossEntropy(smoothing=0.1)(logits, labels),
        "asymmetric": timm.loss.AsymmetricLossMultiLabel()(logits, soft.round()),
        "jsd": timm.loss.JsdCrossEntropy(num_splits=3)(logits, labels),
    }
    for name, loss in losses.items():
        carry.check(name, loss, rtol=5e-3)
        carry.check(f"{name}.gradient", torch.autograd.grad(loss, logits)[0])


def case_mixup(carry: Any) -> None:
    mixup = timm.data.Mixup(mixup_alpha=0.4, cutmix_alpha=1.0, num_classes=5)
    mixed, targets = mixup(pictures(16, 4), torch.tensor([0, 1, 2, 3]))
    carry.check("shape", mixed.shape)
    carry.check("sums", targets.sum(1))
    carry.check("finite", mixed.isfinite().all())


def case_accuracy(carry: Any) -> None:
    logits = pictures(4).reshape(12, 8)
    carry.check("accuracy", timm.utils.accuracy(logits, torch.arange(12) % 8, topk=(1, 3)))


def case_saved(carry: Any) -> None:
    model = made(carry, "test_convnext")
    again = timm.create_model("test_convnext", num_classes=5)
    again.load_state_dict(model.state_dict())
    carry.check("names", timm.list_models("test_resnet*"))
    carry.check("config", model.default_cfg["input_size"])
    carry.check("logits", again.eval()(pictures(64)), rtol=5e-3, atol=1e-3)

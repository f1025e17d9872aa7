"""vit-pytorch: vision transformers, their gradients, and steps of training."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import vit_pytorch
from vit_pytorch.cct import CCT
from vit_pytorch.distill import DistillableViT, DistillWrapper
from vit_pytorch.extractor import Extractor
from vit_pytorch.recorder import Recorder

SMALL: dict[str, Any] = {"image_size": 16, "patch_size": 4, "num_classes": 5, "dim": 32, "depth": 2, "heads": 2}


def images() -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).standard_normal((4, 3, 16, 16), dtype=np.float32))


def case_vit(carry: Any) -> None:
    for pool in ("cls", "mean"):
        model = carry.module(pool, vit_pytorch.ViT(**SMALL, mlp_dim=48, pool=pool, dim_head=16))
        found = model(images())
        found.logsumexp(-1).sum().backward()
        carry.check(f"{pool} found", found)
        carry.check(f"{pool} gradients", [each.grad for each in model.parameters()])


def case_simple_vit(carry: Any) -> None:
    model = carry.module("model", vit_pytorch.SimpleViT(**SMALL, mlp_dim=48, dim_head=16))
    x = images().requires_grad_()
    found = model(x)
    found.square().sum().backward()
    carry.check("found", found)
    carry.check("gradient", x.grad)


def case_training(carry: Any) -> None:
    model = carry.module("model", vit_pytorch.ViT(**SMALL, mlp_dim=48, dim_head=16, dropout=0.0))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
    losses = []
    for _ in range(4):
        loss = torch.nn.functional.cross_entropy(model(images()), torch.arange(4), label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        rates.step()
        losses.append(loss.item())
    carry.check("losses", losses)


def case_recorded(carry: Any) -> None:
    model = carry.module("model", vit_pytorch.ViT(**SMALL, mlp_dim=48, dim_head=16)).eval()
    recorder = Recorder(model)
    found, attention = recorder(images())
    carry.check("found", found)
    carry.check("attention", attention)
    recorder.eject()
    found, embeddings = Extractor(model)(images())
    carry.check("embeddings", embeddings)


def case_convolutional(carry: Any) -> None:
    model = CCT(
        img_size=16,
        embedding_dim=32,
        n_conv_layers=1,
        kernel_size=3,
        stride=2,
        padding=1,
        pooling_kernel_size=3,
        pooling_stride=2,
        pooling_padding=1,
        num_layers=2,
        num_heads=2,
        mlp_ratio=2.0,
        num_classes=5,
        positional_embedding="learnable",
        stochastic_depth_rate=0.0,
    )
    carry.check("found", carry.module("model", model).eval()(images()))


def case_distilled(carry: Any) -> None:
    teacher = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 16 * 16, 5))
    student = DistillableViT(**SMALL, mlp_dim=48, dim_head=16)
    model = DistillWrapper(student=student, teacher=teacher, temperature=3, alpha=0.5, hard=False)
    model = carry.module("model", model)
    loss = model(images(), torch.arange(4))
    loss.backward()
    carry.check("loss", loss)
    carry.check("gradients", [each.grad for each in student.transformer.parameters()])

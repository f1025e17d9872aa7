"""The optimizers under test: their settings, their steps by the papers' formulas, and a run of several steps."""

from __future__ import annotations

import math

import tritensor as torch
from tritensor import nn, optim
from tritensor.kernels.optimizer import steps as steps

SETTINGS = {
    "sgd": (optim.SGD, {"lr": 0.1}),
    "sgd-decay-maximize": (optim.SGD, {"lr": 0.1, "weight_decay": 0.3, "maximize": True}),
    "sgd-momentum": (optim.SGD, {"lr": 0.1, "momentum": 0.9}),
    "sgd-dampening": (optim.SGD, {"lr": 0.1, "momentum": 0.8, "dampening": 0.3, "weight_decay": 0.1}),
    "sgd-nesterov": (optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    "adam": (optim.Adam, {"lr": 0.01}),
    "adam-decay": (optim.Adam, {"lr": 0.01, "weight_decay": 0.2, "betas": (0.8, 0.95), "eps": 1e-3}),
    "adam-amsgrad-maximize": (optim.Adam, {"lr": 0.01, "amsgrad": True, "maximize": True}),
    "adam-decay-maximize": (optim.Adam, {"lr": 0.01, "weight_decay": 0.2, "maximize": True}),
    "adamw": (optim.AdamW, {"lr": 0.01, "weight_decay": 0.2}),
    "adamw-amsgrad": (optim.AdamW, {"lr": 0.01, "amsgrad": True}),
}


def by_hand(kind, options, start, gradients):
    """The parameter after each gradient, one number at a time in float64, from the papers' formulas."""
    sign = -1 if options.get("maximize") else 1
    lr, decay = options["lr"], options.get("weight_decay", 1e-2 if kind is optim.AdamW else 0)
    beta1, beta2 = options.get("betas", (0.9, 0.999))
    result = []
    for index, theta in enumerate(start):
        m = v = highest = 0.0
        direction = None
        for t, gradient in enumerate(gradients, 1):
            g = sign * gradient[index]
            if kind is optim.AdamW:
                theta -= lr * decay * theta
            else:
                g += decay * theta
            if kind is optim.SGD:
                momentum = options.get("momentum", 0)
                if momentum:
                    kept = 1 - options.get("dampening", 0)
                    direction = g if direction is None else momentum * direction + kept * g
                    g = g + momentum * direction if options.get("nesterov") else direction
                theta -= lr * g
            else:
                m = beta1 * m + (1 - beta1) * g
                v = beta2 * v + (1 - beta2) * g**2
                highest = max(highest, v)
                second = highest if options.get("amsgrad") else v
                theta -= lr * (m / (1 - beta1**t)) / (math.sqrt(second / (1 - beta2**t)) + options.get("eps", 1e-8))
        result.append(theta)
    return result


def parameter(values, dtype=torch.float32, device="cpu"):
    return nn.Parameter(torch.tensor(values, dtype=dtype, device=device))


def run(kind, options, start, gradients, dtype=torch.float32, device="cpu"):
    param = parameter(start, dtype, device)
    optimizer = kind([param], **options)
    for gradient in gradients:
        param.grad = torch.tensor(gradient, dtype=dtype, device=device)
        optimizer.step()
    return param


START = [1.0, -2.0, 0.5, 0.0]
GRADIENTS = [[0.5, 1.0, -3.0, 0.0], [1.5, -1.0, 0.1, 0.0], [-0.2, 0.3, 4.0, 1e-3], [0.0, 2.0, 1.0, -1.0]]

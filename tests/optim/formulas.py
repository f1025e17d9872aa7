"""The optimizers under test: their settings, their steps by the papers' formulas, and a run of several steps."""

from __future__ import annotations

import math

import numpy as np

import tritensor as torch
from tritensor import nn, optim

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
    "adadelta": (optim.Adadelta, {"lr": 0.5, "rho": 0.8, "weight_decay": 0.2, "maximize": True}),
    "adagrad": (optim.Adagrad, {"lr": 0.1, "lr_decay": 0.5, "weight_decay": 0.1, "initial_accumulator_value": 0.2}),
    "adamax": (optim.Adamax, {"lr": 0.01, "weight_decay": 0.2, "betas": (0.8, 0.9)}),
    "asgd": (optim.ASGD, {"lr": 0.1, "lambd": 0.1, "t0": 1, "weight_decay": 0.2}),
    "nadam": (optim.NAdam, {"lr": 0.01, "weight_decay": 0.2, "decoupled_weight_decay": True}),
    "radam": (optim.RAdam, {"lr": 0.01, "weight_decay": 0.2, "betas": (0.9, 0.99)}),
    "rmsprop": (optim.RMSprop, {"lr": 0.01, "weight_decay": 0.2, "maximize": True}),
    "rmsprop-centered-momentum": (optim.RMSprop, {"lr": 0.01, "centered": True, "momentum": 0.7, "alpha": 0.9}),
    "rprop": (optim.Rprop, {"lr": 0.1, "etas": (0.4, 1.5), "step_sizes": (0.05, 0.2)}),
}


class ByHand:
    """The steps of one number, from the papers' formulas; `s` is what is remembered from step to step."""

    def __init__(self, kind, options):
        defaults = {"weight_decay": 0, "betas": (0.9, 0.999), "eps": 1e-8}
        self.o = {**defaults, **kind([nn.Parameter(torch.ones(1))]).defaults, **options}
        self.step = getattr(self, "adam" if kind is optim.AdamW else kind.__name__.lower())
        self.s = {}

    def kept(self, name, share, value, start=0.0):
        self.s[name] = share * self.s.get(name, start) + (1 - share) * value
        return self.s[name]

    def averages(self, g, t):
        """Adam's two averages, corrected."""
        beta1, beta2 = self.o["betas"]
        return self.kept("m", beta1, g) / (1 - beta1**t), self.kept("v", beta2, g**2) / (1 - beta2**t)

    def sgd(self, x, g, t):
        o = self.o
        if o["momentum"]:
            kept = 1 - o["dampening"] if t > 1 else 1
            self.s["m"] = o["momentum"] * self.s.get("m", 0) + kept * g
            g = g + o["momentum"] * self.s["m"] if o["nesterov"] else self.s["m"]
        return x - o["lr"] * g

    def adam(self, x, g, t):
        mean, square = self.averages(g, t)
        if self.o["amsgrad"]:
            self.s["highest"] = max(self.s.get("highest", 0), self.s["v"])
            square = self.s["highest"] / (1 - self.o["betas"][1] ** t)
        return x - self.o["lr"] * mean / (math.sqrt(square) + self.o["eps"])

    def nadam(self, x, g, t):
        beta1, _ = self.o["betas"]
        mean, square = self.averages(g, t)
        mu, ahead = (beta1 * (1 - 0.5 * 0.96 ** (n * self.o["momentum_decay"])) for n in (t, t + 1))
        product = self.s["mu"] = float(np.float32(self.s.get("mu", 1) * float(np.float32(mu))))  # as it is kept
        way = (1 - mu) / (1 - product) * g + ahead / (1 - product * ahead) * mean * (1 - beta1**t)
        return x - self.o["lr"] * way / (math.sqrt(square) + self.o["eps"])

    def radam(self, x, g, t):
        _, beta2 = self.o["betas"]
        mean, _ = self.averages(g, t)
        most = 2 / (1 - beta2) - 1
        length = most - 2 * t * beta2**t / (1 - beta2**t)
        if length <= 5:
            return x - self.o["lr"] * mean
        share = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
        root = (math.sqrt(self.s["v"]) + self.o["eps"]) / math.sqrt(1 - beta2**t)
        return x - self.o["lr"] * math.sqrt(share) * mean / root

    def adamax(self, x, g, t):
        mean, _ = self.averages(g, t)
        self.s["u"] = max(self.o["betas"][1] * self.s.get("u", 0), abs(g) + self.o["eps"])
        return x - self.o["lr"] * mean / self.s["u"]

    def adagrad(self, x, g, t):
        self.s["sum"] = self.s.get("sum", self.o["initial_accumulator_value"]) + g**2
        return x - self.o["lr"] / (1 + (t - 1) * self.o["lr_decay"]) * g / (math.sqrt(self.s["sum"]) + self.o["eps"])

    def adadelta(self, x, g, t):
        rho, eps = self.o["rho"], self.o["eps"]
        square = self.kept("v", rho, g**2)
        delta = math.sqrt(self.s.get("d", 0) + eps) / math.sqrt(square + eps) * g
        self.kept("d", rho, delta**2)
        return x - self.o["lr"] * delta

    def rmsprop(self, x, g, t):
        square = self.kept("v", self.o["alpha"], g**2)
        if self.o["centered"]:
            square -= self.kept("m", self.o["alpha"], g) ** 2
        way = g / (math.sqrt(square) + self.o["eps"])
        self.s["b"] = way = self.o["momentum"] * self.s.get("b", 0) + way
        return x - self.o["lr"] * way

    def rprop(self, x, g, t):
        turn, least_and_most = g * self.s.get("g", 0), self.o["step_sizes"]
        factor = 1 if turn == 0 else self.o["etas"][turn > 0]
        size = min(max(self.s.get("size", self.o["lr"]) * factor, least_and_most[0]), least_and_most[1])
        self.s["size"], self.s["g"] = size, 0 if turn < 0 else g
        return x - math.copysign(size, self.s["g"]) * (self.s["g"] != 0)

    def asgd(self, x, g, t):
        o = self.o
        rate = float(np.float32(o["lr"] / (1 + o["lambd"] * o["lr"] * (t - 1)) ** o["alpha"]))  # as it is kept
        return x * (1 - o["lambd"] * rate) - rate * g


def by_hand(kind, options, start, gradients):
    """The parameter after each gradient, one number at a time in float64."""
    result = []
    for index, theta in enumerate(start):
        one = ByHand(kind, options)
        for t, gradient in enumerate(gradients, 1):
            g = (-1 if one.o["maximize"] else 1) * gradient[index]
            if kind is optim.AdamW or one.o.get("decoupled_weight_decay"):
                theta -= one.o["lr"] * one.o["weight_decay"] * theta
            else:
                g += one.o["weight_decay"] * theta
            theta = one.step(theta, g, t)
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

from __future__ import annotations

import warnings

import tritensor as torch
from tritensor import nn

warnings.showwarning = lambda text, *where: print("warning:", text)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)  # two parameters
        self.register_buffer("mean", torch.zeros(3))
        self.offset = torch.zeros(2)  # neither: a plain attribute

    def forward(self, x):
        return self.linear(x - self.mean) + self.offset


with torch.cuda.simulate():
    x = torch.ones(3)
    y = x.to("cuda")
    print("x on", x.device, "and y on", y.device)

    model = Scaled()
    weight, mean = model.linear.weight, model.mean
    model(x).sum().backward()
    moved = model.to("cuda")
    print("the same module:", moved is model)
    print("the same parameter:", model.linear.weight is weight)
    print("the same buffer:", model.mean is mean)
    print("gradient on", weight.grad.device)
    print(nn.audit(model))

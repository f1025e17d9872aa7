from __future__ import annotations

import tritensor as torch
from tritensor import nn


class TwoHalves(nn.Module):
    """A model that is too large for one device."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8, device="cuda:0")
        self.second = nn.Linear(8, 2, device="cuda:1")

    def forward(self, x):
        return self.second(self.first(x).relu().to("cuda:1"))


with torch.cuda.simulate(devices=2):
    print("current device:", torch.ones(1, device="cuda").device)
    with torch.cuda.device(1):
        print("in the block:", torch.ones(1, device="cuda").device)

    x, y = torch.ones(2, device="cuda:0"), torch.ones(2, device="cuda:1")
    try:
        x + y
    except RuntimeError as error:
        print(error)
    print("the sum is on", (x.to(y.device) + y).device)
    print("peers:", torch.cuda.can_device_access_peer(0, 1))

    halves = TwoHalves()
    halves(torch.ones(3, 4, device="cuda:0")).sum().backward()
    for name, parameter in halves.named_parameters():
        print(name, parameter.grad.device)

    # Each device gets a copy of the model and 3 of the 6 rows.
    model = nn.DataParallel(nn.Linear(4, 2).to("cuda"))
    out = model(torch.ones(6, 4))
    out.sum().backward()
    print("DataParallel:", tuple(out.shape), "on", out.device)
    print("gradient:", model.module.bias.grad)

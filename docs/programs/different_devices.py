from __future__ import annotations

import warnings

import tritensor as torch
from tritensor import nn

# model.to() warns about `positions`; here the error shall tell.
warnings.simplefilter("ignore")


class Encoder(nn.Module):
    def __init__(self, registered):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        positions = torch.arange(8.0)
        if registered:
            self.register_buffer("positions", positions, persistent=False)
        else:
            self.positions = positions

    def forward(self, x):
        return self.linear(x) + self.positions[: x.shape[1]]


with torch.cuda.simulate():
    model = Encoder(registered=False).to("cuda")
    for device in ("cpu", "cuda"):
        try:
            model(torch.ones(1, 4, device=device))
        except RuntimeError as error:
            print(error, end="\n\n")

    model = Encoder(registered=True).to("cuda")
    print(model(torch.ones(1, 4, device="cuda")).device)

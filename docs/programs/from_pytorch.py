from __future__ import annotations

import os

import torch
from torch import nn
from torch.nn import functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(2, 4)
        self.out = nn.Linear(4, 1)
        for parameter in self.parameters():
            nn.init.constant_(parameter, 0.1)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(x)))


model = Net().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
if os.path.exists("model.pt"):  # written by either library
    checkpoint = torch.load("model.pt", map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])

x = torch.linspace(-1, 1, 8).reshape(4, 2).to(device)
y = x.sum(dim=1, keepdim=True)
for _ in range(3):
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.5f}")
checkpoint = {
    "model": model.state_dict(),
    "optimizer": optimizer.state_dict(),
}
torch.save(checkpoint, "model.pt")

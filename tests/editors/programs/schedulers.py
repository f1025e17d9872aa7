"""Schedules of the learning rate, chained and in sequence; averaged weights; parameter groups."""

import math

import tritensor as torch
from tritensor import nn
from tritensor.optim import SGD, Adam
from tritensor.optim.lr_scheduler import (
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    ReduceLROnPlateau,
    SequentialLR,
)
from tritensor.optim.swa_utils import AveragedModel

model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
backbone, head = model[0], model[2]
optimizer = SGD(
    [{"params": backbone.parameters(), "lr": 1e-3}, {"params": head.parameters()}], lr=1e-2, momentum=0.9, nesterov=True
)
warmup = LinearLR(optimizer, start_factor=0.1, total_iters=2)
cosine = CosineAnnealingLR(optimizer, T_max=4, eta_min=1e-5)
scheduler = SequentialLR(optimizer, schedulers=[warmup, cosine], milestones=[2])
averaged = AveragedModel(model)
x, y = torch.rand(20, 3), torch.rand(20, 1)
for step in range(6):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    averaged.update_parameters(model)
    print([f"{group['lr']:.2e}" for group in optimizer.param_groups], f"{loss.item():.4f}")


def lr_lambda(current_step: int) -> float:
    if current_step < 3:
        return current_step / 3
    return 0.5 * (1.0 + math.cos(math.pi * (current_step - 3) / 10))


adam = Adam(model.parameters(), lr=0.1, amsgrad=True)
by_lambda = LambdaLR(adam, lr_lambda)
exponential = ExponentialLR(adam, gamma=0.9)
plateau = ReduceLROnPlateau(adam, mode="min", factor=0.5, patience=0)
for epoch in range(3):
    adam.step()
    by_lambda.step()
    exponential.step()
    plateau.step(1.0 + epoch)
print(adam.param_groups[0]["lr"], by_lambda.state_dict()["last_epoch"])
for state in adam.state.values():
    print(state.keys())
print(averaged(x).shape, averaged.module is not model)

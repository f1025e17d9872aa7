from __future__ import annotations

import tritensor as torch
from tritensor import nn


def where(model, optimizer):
    average = optimizer.state[model.weight]["exp_avg"]
    print("model on", model.weight.device, "and state on", average.device)


def step(model, optimizer):
    x = torch.ones(1, 2, device=model.weight.device)
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
    where(model, optimizer)


with torch.cuda.simulate(devices=2):
    model = nn.Linear(2, 1)
    weight = model.weight
    optimizer = torch.optim.Adam(model.parameters())  # before the move
    step(model, optimizer)

    model.to("cuda")
    print("the same parameter:", model.weight is weight)
    where(model, optimizer)  # until the next step
    step(model, optimizer)

    model.to("cuda:1")
    optimizer.to("cuda:1")  # not needed: the state moves now already
    where(model, optimizer)

    state = {"model": model.state_dict(), "adam": optimizer.state_dict()}
    torch.save(state, "checkpoint.pt")
    state = torch.load("checkpoint.pt", map_location="cpu")

    resumed = nn.Linear(2, 1)
    adam = torch.optim.Adam(resumed.parameters())
    resumed.load_state_dict(state["model"])
    adam.load_state_dict(state["adam"])
    resumed.to("cuda")  # before, between or after the two: all the same
    step(resumed, adam)
    print("steps:", adam.state[resumed.weight]["step"].item())

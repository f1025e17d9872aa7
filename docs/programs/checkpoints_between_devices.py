from __future__ import annotations

import tritensor as torch
from tritensor import nn

with torch.cuda.simulate(devices=2):
    model = nn.Linear(2, 2).to("cuda:1")
    torch.save(model.state_dict(), "model.pt")

    for place in (
        None,
        "cpu",
        "cuda",
        0,
        torch.device("cuda:1"),
        {"cuda:1": "cuda:0"},
        {"cuda:0": "cpu"},  # does not name cuda:1, which stays
    ):
        state = torch.load("model.pt", map_location=place)
        print(f"map_location={place!s:22} {state['weight'].device}")

    other = nn.Linear(2, 2)
    print(other.load_state_dict(torch.load("model.pt")))
    print("loaded from cuda:1 into a model on", other.weight.device)

with torch.cuda.simulate(devices=1):  # a smaller machine
    try:
        torch.load("model.pt")
    except RuntimeError as error:
        print(error)

torch.save(nn.Linear(2, 2), "whole.pt")
try:
    torch.load("whole.pt")
except RuntimeError as error:
    print(error)
print(torch.load("whole.pt", weights_only=False))

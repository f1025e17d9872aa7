from __future__ import annotations

import tritensor as torch
from tritensor import nn

with torch.cuda.simulate(devices=2):
    x = torch.ones(3, 4)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    expected = model(x).detach()

    # 1. It runs where the model is, and gives what the CPU gives;
    #    checked() compares each kernel with its NumPy reference.
    model.to("cuda:1")
    x = x.to("cuda:1")
    with torch.testing.checked():
        out = model(x).detach()
    torch.testing.assert_close(out.cpu(), expected)
    print("runs on", out.device)

    # 2. Nothing was left behind.
    audit = nn.audit(model)
    print("devices:", audit.devices, "left behind:", audit.unregistered)

    # 3. A step copies nothing to the host and does not wait.
    with torch.cuda.transfers() as copies:
        model(x).square().mean().backward()
    copies.assert_at_most(h2d=0, d2h=0, syncs=0)
    print("copies and waits:", len(copies.entries))

# 4. A model that does not fit says so.
with torch.cuda.simulate(memory="1MB"):
    try:
        nn.Linear(1000, 1000).to("cuda")
    except torch.cuda.OutOfMemoryError as error:
        print(str(error).splitlines()[0])

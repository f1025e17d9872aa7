from __future__ import annotations

import tritensor as torch
from tritensor.utils.data import DataLoader, TensorDataset

with torch.cuda.simulate():
    batch = torch.arange(4.0).pin_memory()
    with torch.cuda.transfers() as copies:
        there = batch.to("cuda", non_blocking=True)
        batch.zero_()  # PyTorch: the GPU may get zeros
        back = (there * 2).to("cpu", non_blocking=True)
        print("waits so far:", copies.count("sync"))
        print(back)  # PyTorch: may print what the copy has not reached
        print("waits:", copies.count("sync"))
    for copy in copies.entries:
        if copy.nbytes:
            print(f"{copy.kind}: {copy.nbytes} bytes, pinned {copy.pinned}")

    dataset = TensorDataset(torch.ones(6, 2), torch.arange(6))
    with torch.cuda.transfers() as copies:
        for x, y in DataLoader(dataset, batch_size=3, device="cuda"):
            print(x.device, y.device)
    print(copies.count("h2d"), "copies", copies.count("sync"), "waits")

from __future__ import annotations

import tritensor as torch
from tritensor import cuda

with cuda.simulate(2, name="RTX", memory="24GB", capability=(8, 0)):
    print("available:", cuda.is_available())
    for index in range(cuda.device_count()):
        free, total = cuda.mem_get_info(index)
        print(
            f"cuda:{index}: {cuda.get_device_name(index)},",
            f"capability {cuda.get_device_capability(index)},",
            f"{free / 1e9:.0f} of {total / 1e9:.0f} GB free",
        )
    print("simulated:", cuda.get_device_properties(0).is_simulated)

    device = torch.device("cuda" if cuda.is_available() else "cpu")
    x = torch.ones(1000, device=device)
    print("x on", x.device, "is_cuda:", x.is_cuda)
    print(cuda.memory_allocated(), "bytes in use")

    try:
        torch.ones(1, device="cuda:2")
    except RuntimeError as error:
        print(error)

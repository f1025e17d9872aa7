from __future__ import annotations

import tritensor as torch

with torch.cuda.simulate(devices=2):
    x = torch.arange(4.0)
    y = x.to("cuda")

    for call in (
        "x.to('cpu')",
        "x.cpu()",
        "x.to(torch.float32)",
        "x.contiguous()",
        "x.to('cpu', copy=True)",
        "x.to(torch.float64)",
        "x.to('cuda')",
        "y.to('cuda')",
        "y.to('cuda:0')",
        "y.cuda()",
        "y.to('cuda:1')",
        "y.cpu()",
    ):
        result = eval(call)
        itself = result is x or result is y
        print(f"{call:24}", "itself" if itself else "a copy")

    x[:2].to("cpu").zero_()  # a view, and .to() returns it: x changes
    x[2:].to("cuda").zero_()  # a copy of two elements: x does not
    print(x)

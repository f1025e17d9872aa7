"""A step captured as a CUDA graph, mixed precision with a scaler, and the profile of kernels."""

import tritensor as torch
from tritensor import nn
from tritensor.cuda.amp import GradScaler, autocast


def main(device: torch.device) -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 1)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, capturable=True)
    static_input = torch.zeros(4, 8, device=device)
    static_target = torch.zeros(4, 1, device=device)

    def step() -> torch.Tensor:
        optimizer.zero_grad(set_to_none=False)
        loss = nn.functional.mse_loss(model(static_input), static_target)
        loss.backward()
        optimizer.step()
        return loss

    s = torch.cuda.Stream()
    s.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(s):
        for _ in range(2):
            step()
    torch.cuda.current_stream().wait_stream(s)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        static_loss = step()
    for _ in range(2):
        static_input.copy_(torch.randn(4, 8))
        static_target.copy_(torch.randn(4, 1))
        g.replay()
        print(f"{static_loss.item():.3f}" != "")

    scaler = torch.amp.GradScaler("cuda", init_scale=2.0**10)
    with torch.amp.autocast(device_type="cuda", dtype=torch.float16):
        loss = model(static_input).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    print(loss.dtype, scaler.get_scale() > 0, scaler.is_enabled(), isinstance(scaler, GradScaler), callable(autocast))


if torch.cuda.is_available():
    main(torch.device("cuda"))
else:
    with torch.cuda.simulate():
        main(torch.device("cuda:0"))

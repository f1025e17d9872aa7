"""Training on a simulated CUDA device: streams, events, memory and what was copied."""

import tritensor as torch
from tritensor import nn

x = torch.randn(4, 3)
with torch.cuda.simulate():
    device = torch.device("cuda", 0)
    print(torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.get_device_name(device))
    torch.cuda.manual_seed_all(0)
    model = nn.Linear(3, 2).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    stream = torch.cuda.Stream()
    start.record()
    with torch.cuda.stream(stream):
        batch = x.pin_memory().to(device, non_blocking=True)
    torch.cuda.current_stream().wait_stream(stream)
    loss = model(batch).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    end.record()
    torch.cuda.synchronize()
    print(start.elapsed_time(end) >= 0, loss.device, loss.cpu().item() > 0, batch.is_cuda, batch.get_device())
    print(torch.cuda.memory_allocated() > 0, torch.cuda.max_memory_allocated(device) > 0)
    free, total = torch.cuda.mem_get_info()
    print(free <= total, torch.cuda.get_device_properties(0).name, torch.cuda.current_device())
    with torch.cuda.transfers() as ledger:
        print(loss.item() == loss.detach().cpu().numpy())
    print(ledger)
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    weights = {name: value.cpu() for name, value in model.state_dict().items()}
print(weights["weight"].shape, torch.get_default_device())

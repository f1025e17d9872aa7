"""Data-parallel training, in one process where no launcher started several."""

import os

import tritensor as torch
import tritensor.distributed as dist
from tritensor import nn
from tritensor.nn.parallel import DistributedDataParallel as DDP
from tritensor.utils.data import DataLoader, TensorDataset
from tritensor.utils.data.distributed import DistributedSampler


def setup():
    os.environ.setdefault("MASTER_ADDR", "localhost")
    os.environ.setdefault("MASTER_PORT", "29500")
    if not dist.is_available():
        return 0, 1
    if "WORLD_SIZE" in os.environ:
        dist.init_process_group(backend="mpi")
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def reduce_mean(value: torch.Tensor, world: int) -> torch.Tensor:
    if world > 1:
        dist.all_reduce(value, op=dist.ReduceOp.SUM)
        value /= world
    return value


def train(rank: int, world: int, epochs: int = 2) -> nn.Module:
    torch.manual_seed(rank)
    model = nn.Linear(4, 1)
    ddp = DDP(model) if world > 1 else model
    dataset = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
    sampler = DistributedSampler(dataset, num_replicas=world, rank=rank, shuffle=True)
    loader = DataLoader(dataset, batch_size=8, sampler=sampler, pin_memory=False)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01)
    loss_fn = nn.MSELoss()
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(())
        for x, y in loader:
            optimizer.zero_grad()
            loss = loss_fn(ddp(x), y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        total = reduce_mean(total, world)
        if rank == 0:
            print(f"epoch {epoch}: {total.item() / len(loader):.3f}")
    return ddp.module if isinstance(ddp, DDP) else ddp


def main():
    rank, world = setup()
    model = train(rank, world)
    if rank == 0:
        print({name: value.shape for name, value in model.state_dict().items()})
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

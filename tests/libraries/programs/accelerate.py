"""accelerate: training loops with a prepared model, accumulation, saved states, and models made without memory."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import accelerate
import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset


def data(rows: int = 16) -> TensorDataset:
    rng = np.random.default_rng(0)
    return TensorDataset(*(torch.from_numpy(rng.standard_normal((rows, size), dtype=np.float32)) for size in (8, 1)))


def network() -> torch.nn.Sequential:
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))


def accelerator_of(**settings: Any) -> accelerate.Accelerator:
    """An accelerator with other settings than the last one's."""
    accelerate.state.AcceleratorState._reset_state(reset_partial_state=True)
    return accelerate.Accelerator(cpu=True, **settings)


def train(carry: Any, accelerator: accelerate.Accelerator, rtol: float = 1e-3, atol: float = 1e-4) -> Any:
    """An epoch over the data in order."""
    model = carry.module("model", network())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, 4)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, DataLoader(data(), 4), schedule)
    losses = []
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = torch.nn.functional.mse_loss(model(x), y)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        losses.append(accelerator.gather(loss.detach().reshape(1)))
    carry.check("losses", torch.cat(losses), rtol=rtol, atol=atol)
    carry.check("rate", schedule.get_last_lr())
    carry.check("weights", dict(accelerator.unwrap_model(model).named_parameters()), rtol=rtol, atol=atol)
    return model


def case_trained(carry: Any) -> None:
    accelerator = accelerator_of()
    train(carry, accelerator)
    carry.check("device", accelerator.device.type)
    carry.check("processes", [accelerator.num_processes, accelerator.process_index])
    carry.check("main", accelerator.is_main_process)


def case_accumulated(carry: Any) -> None:
    train(carry, accelerator_of(gradient_accumulation_steps=2))


def case_bfloat16(carry: Any) -> None:
    train(carry, accelerator_of(mixed_precision="bf16"), rtol=0.05, atol=0.02)


def case_saved_state(carry: Any) -> None:
    accelerator = accelerator_of()
    model = carry.module("model", network())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data(), 4))

    def step() -> None:
        for x, y in loader:
            optimizer.zero_grad()
            accelerator.backward(torch.nn.functional.mse_loss(model(x), y))
            optimizer.step()

    step()
    with tempfile.TemporaryDirectory() as folder:
        accelerator.save_state(folder)
        step()
        carry.check("after", dict(model.named_parameters()))
        accelerator.load_state(folder)
        carry.check("before", dict(model.named_parameters()))
        carry.check("files", sorted(each.name for each in Path(folder).iterdir()))
        step()
    carry.check("again", dict(model.named_parameters()))


def case_saved_model(carry: Any) -> None:
    accelerator = accelerator_of()
    model = accelerator.prepare(carry.module("model", network()))
    with tempfile.TemporaryDirectory() as folder:
        accelerator.save_model(model, folder)
        carry.check("files", sorted(each.name for each in Path(folder).iterdir()))
        again = accelerate.load_checkpoint_and_dispatch(network(), folder)
    carry.check("out", again(data().tensors[0]))


def case_gathered(carry: Any) -> None:
    accelerator = accelerator_of()
    loader = accelerator.prepare(DataLoader(data(10), 4))
    found = [accelerator.gather_for_metrics((x, y)) for x, y in loader]
    carry.check("x", torch.cat([x for x, _ in found]))
    carry.check("sizes", [len(y) for _, y in found])
    carry.check("sum", accelerator.reduce(torch.arange(4.0), reduction="sum"))
    carry.check("padded", accelerator.pad_across_processes(torch.arange(4.0)))


def case_skipped_batches(carry: Any) -> None:
    accelerator = accelerator_of()
    loader = accelerator.skip_first_batches(accelerator.prepare(DataLoader(data(), 4)), 2)
    carry.check("rows", torch.cat([x for x, _ in loader]))


def case_seed(carry: Any) -> None:
    accelerate.utils.set_seed(3)
    first = torch.rand(4)
    accelerate.utils.set_seed(3)
    carry.check("same", torch.equal(first, torch.rand(4)))


def case_structures(carry: Any) -> None:
    values = {"a": torch.arange(6).reshape(2, 3), "b": [torch.ones(2, 2), torch.zeros(2)]}
    carry.check("moved", accelerate.utils.send_to_device(values, "cpu"))
    carry.check("joined", accelerate.utils.concatenate([values, values]))
    carry.check("rows", accelerate.utils.find_batch_size(values))
    carry.check("float", accelerate.utils.convert_to_fp32({"a": torch.ones(2, dtype=torch.bfloat16)}))


def case_empty_weights(carry: Any) -> None:
    with accelerate.init_empty_weights():
        model = network()
    carry.check("devices", [each.device.type for each in model.parameters()])
    carry.check("sizes", accelerate.utils.compute_module_sizes(model)[""])
    accelerate.utils.set_module_tensor_to_device(model, "0.weight", "cpu", value=torch.ones(16, 8))
    carry.check("weight", model[0].weight)


def case_empty_then_loaded(carry: Any) -> None:
    whole = carry.module("model", network())
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "weights.pt")
        torch.save(whole.state_dict(), path)
        with accelerate.init_empty_weights():
            model = network()
        model = accelerate.load_checkpoint_and_dispatch(model, path, device_map={"": "cpu"})
    carry.check("out", model(data().tensors[0]))


def case_memory_retry(carry: Any) -> None:
    tried = []

    @accelerate.utils.find_executable_batch_size(starting_batch_size=16)
    def run(batch_size: int) -> int:
        tried.append(batch_size)
        if batch_size > 6:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return batch_size

    carry.check("found", run())
    carry.check("tried", tried)


def case_hooks(carry: Any) -> None:
    class Doubled(accelerate.hooks.ModelHook):
        def post_forward(self, module: torch.nn.Module, output: Any) -> Any:
            return output * 2

    model = carry.module("model", network())
    accelerate.hooks.add_hook_to_module(model, Doubled())
    carry.check("out", model(data().tensors[0]))
    accelerate.hooks.remove_hook_from_module(model)
    carry.check("plain", model(data().tensors[0]))

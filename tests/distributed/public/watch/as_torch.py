"""PyTorch with tritensor's random numbers, so that two runs of one program begin with the same weights and data.

With `WATCHED_DEVICES=N` it finds N CUDA devices besides, which are the CPU: programs that are written for GPUs run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

import tritensor

OVERRIDDEN = "kaiming_uniform_ kaiming_normal_ xavier_uniform_ xavier_normal_ trunc_normal_ orthogonal_ sparse_"
CREATED = "rand randn randint randperm"
IN_PLACE = "uniform_ normal_ bernoulli_ exponential_ random_ geometric_ cauchy_ log_normal_"
LIKE = "rand_like randn_like randint_like"


class Streams:
    """The sequences of random numbers: one of each device, and those of the program's generators."""

    def __init__(self) -> None:
        self.seed = tritensor.initial_seed()
        self.known: dict[str, Any] = {}

    def of(self, device: Any) -> Any:
        """The sequence of a device."""
        name = "cpu" if device is None or str(device) == "cpu" else str(device)
        if name not in self.known:
            self.known[name] = tritensor.Generator().manual_seed(self.seed)
        return self.known[name]

    def begin(self, seed: int) -> None:
        """The same seed for all."""
        self.seed = seed
        self.known.clear()


def begin(torch: ModuleType) -> None:
    """Change PyTorch, which has just been imported."""
    _Changed(torch).all()
    if "WATCHED_DEVICES" in os.environ:
        import as_devices

        as_devices.begin(torch, int(os.environ["WATCHED_DEVICES"]))


class _Changed:
    def __init__(self, torch: Any) -> None:
        self.torch, self.streams = torch, Streams()
        streams = self.streams

        class Generator(torch._C.Generator):  # type: ignore[misc, name-defined]
            def __new__(cls, device: Any = "cpu") -> Any:
                return torch._C.Generator.__new__(cls, "cpu")

            def __init__(self, device: Any = "cpu") -> None:
                self.stream = tritensor.Generator()

            def manual_seed(self, seed: int) -> Any:
                self.stream.manual_seed(int(seed))
                return self

            def initial_seed(self) -> int:
                return self.stream.initial_seed()

            def seed(self) -> int:
                return self.stream.seed()

            def get_state(self) -> Any:
                return torch.from_numpy(self.stream.get_state().numpy())

            def set_state(self, state: Any) -> Any:
                self.stream.set_state(tritensor.from_numpy(state.cpu().numpy()))
                return self

        self.Generator: Any = Generator
        self.default = Generator()
        self.default.stream = streams.of(None)

    def all(self) -> None:
        """Replace what draws."""
        torch = self.torch
        torch.Generator = self.Generator
        for module in (torch, torch.random):
            module.manual_seed, module.seed = self.manual_seed, self.new_seed
            module.initial_seed = lambda: self.streams.of(None).initial_seed()
            module.get_rng_state, module.set_rng_state = self.get_state, self.set_state
        for name in CREATED.split():
            setattr(torch, name, self.created(name, getattr(torch, name)))
        torch.utils.data.dataset.randperm = torch.randperm
        for name in LIKE.split():
            setattr(torch, name, self.like(name, getattr(torch, name)))
        for name in IN_PLACE.split():
            setattr(torch.Tensor, name, self.in_place(name, getattr(torch.Tensor, name)))
        for name in OVERRIDDEN.split():
            setattr(torch.nn.init, name, self.filled(name, getattr(torch.nn.init, name)))
        for name in ("bernoulli", "multinomial"):
            setattr(torch, name, self.sampled(name))
            setattr(torch.Tensor, name, self.sampled(name))
        torch.normal = self.normal
        for name in ("dropout", "dropout1d", "dropout2d", "dropout3d"):
            setattr(torch.nn.functional, name, self.dropped(name))
        torch.utils.data.RandomSampler.__iter__ = lambda sampler: self.shuffled(sampler)

    def manual_seed(self, seed: int) -> Any:
        """As torch.manual_seed."""
        self.streams.begin(int(seed))
        self.default.stream = self.streams.of(None)
        return self.default

    def new_seed(self) -> int:
        """As torch.seed."""
        seed = tritensor.Generator().seed()
        self.manual_seed(seed)
        return seed

    def get_state(self) -> Any:
        """As torch.get_rng_state."""
        return self.torch.from_numpy(self.streams.of(None).get_state().numpy())

    def set_state(self, state: Any) -> None:
        """As torch.set_rng_state."""
        self.streams.of(None).set_state(tritensor.from_numpy(state.cpu().numpy()))

    def stream(self, generator: Any, device: Any) -> Any:
        """The sequence that a call draws from."""
        if isinstance(generator, self.Generator):
            return generator.stream
        return self.streams.of(device)

    def kind(self, dtype: Any) -> Any:
        """tritensor's dtype of the same name."""
        return getattr(tritensor, str(dtype).removeprefix("torch."))

    def taken(self, drawn: Any, dtype: Any) -> Any:
        """PyTorch's tensor of numbers that were drawn."""
        drawn = drawn.float() if drawn.dtype in (tritensor.bfloat16, tritensor.float16) else drawn
        return self.torch.from_numpy(drawn.numpy().copy()).to(dtype)

    def passed(self, tensor: Any) -> Any:
        """tritensor's tensor of PyTorch's."""
        return tritensor.from_numpy(tensor.detach().cpu().float().numpy())

    def written(self, tensor: Any, values: Any) -> Any:
        """A tensor with other values; a DTensor gets this rank's part of them."""
        if hasattr(tensor, "_local_tensor"):
            distribute = self.torch.distributed.tensor.distribute_tensor
            values = distribute(values, tensor.device_mesh, tensor.placements, src_data_rank=None)
        return tensor.copy_(values)

    def created(self, name: str, theirs: Callable[..., Any]) -> Callable[..., Any]:
        """torch.rand and the others that make a tensor."""
        draw, torch = getattr(tritensor, name), self.torch

        @wraps(theirs)
        def made(*args: Any, generator: Any = None, dtype: Any = None, device: Any = None, **options: Any) -> Any:
            device = torch.get_default_device() if device is None else device
            if torch.device(device).type == "meta":
                return theirs(*args, dtype=dtype, device=device, **options)
            dtype = dtype or (torch.get_default_dtype() if name in ("rand", "randn") else torch.int64)
            sizes = {key: options[key] for key in ("size", "low", "high", "n") if key in options}
            found = draw(*args, **sizes, generator=self.stream(generator, device), dtype=self.kind(dtype))
            found = self.taken(found, dtype).to(device)
            return found.requires_grad_() if options.get("requires_grad") else found

        return made

    def like(self, name: str, theirs: Callable[..., Any]) -> Callable[..., Any]:
        """torch.rand_like and its like."""

        @wraps(theirs)
        def made(input: Any, *args: Any, dtype: Any = None, device: Any = None, **options: Any) -> Any:
            create, size = getattr(self.torch, name.removesuffix("_like")), tuple(input.shape)
            options.pop("memory_format", None)
            place = input.device if device is None else device
            return create(*args, size=size, dtype=dtype or input.dtype, device=place, **options)

        return made

    def in_place(self, name: str, theirs: Callable[..., Any]) -> Callable[..., Any]:
        """Tensor.uniform_ and the others that fill a tensor."""
        torch = self.torch
        loading = str(Path(torch.utils.data.__file__).parent)

        @wraps(theirs)
        def fill(self_: Any, *args: Any, generator: Any = None, **options: Any) -> Any:
            if self_.device.type == "meta":
                return self_
            stream = self.stream(generator, self_.device)
            if name == "random_" and sys._getframe(1).f_code.co_filename.startswith(loading):
                drawn = tritensor.randint(0, 2**62, (1,), generator=stream)[0]  # as DataLoader and RandomSampler do
            else:
                args = tuple(self.passed(each) if isinstance(each, torch.Tensor) else each for each in args)
                options = {"from_" if key == "from" else key: value for key, value in options.items()}
                drawn = tritensor.empty(tuple(self_.shape), dtype=self.kind(self_.dtype))
                getattr(drawn, name)(*args, generator=stream, **options)
            with torch.no_grad():
                return self.written(self_, self.taken(drawn, self_.dtype))

        return fill

    def filled(self, name: str, theirs: Callable[..., Any]) -> Callable[..., Any]:
        """torch.nn.init's functions."""
        fill = getattr(tritensor.nn.init, name)

        @wraps(theirs)
        def filling(tensor: Any, *args: Any, generator: Any = None, **options: Any) -> Any:
            if tensor.device.type == "meta":
                return tensor
            drawn = tritensor.empty(tuple(tensor.shape), dtype=self.kind(tensor.dtype))
            fill(drawn, *args, generator=self.stream(generator, tensor.device), **options)
            with self.torch.no_grad():
                return self.written(tensor, self.taken(drawn, tensor.dtype))

        return filling

    def sampled(self, name: str) -> Callable[..., Any]:
        """torch.bernoulli and torch.multinomial."""
        draw = getattr(tritensor, name)

        def sample(input: Any, *args: Any, generator: Any = None, **options: Any) -> Any:
            found = draw(self.passed(input), *args, generator=self.stream(generator, input.device), **options)
            return self.taken(found, input.dtype if name == "bernoulli" else self.torch.int64)

        return sample

    def shuffled(self, sampler: Any) -> Iterator[int]:
        """The indices of a RandomSampler.

        PyTorch's draws one more permutation at the end of each pass, of which nothing may be left to yield; with a
        generator that is kept from one pass to the next, all that follows would be other numbers.
        """
        if sampler.generator is None:
            seed = tritensor.randint(0, 2**62, (1,), generator=self.streams.of(None))
            stream = tritensor.Generator().manual_seed(int(seed))
        else:
            stream = self.stream(sampler.generator, None)
        count = range(len(sampler.data_source))
        yield from tritensor.utils.data.RandomSampler(count, sampler.replacement, sampler.num_samples, stream)

    def normal(self, mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, **options: Any) -> Any:
        """torch.normal."""
        if size is None:
            size = self.torch.broadcast_shapes(*(getattr(each, "shape", ()) for each in (mean, std)))
        return self.torch.randn(tuple(size), generator=generator, **options) * std + mean

    def dropped(self, name: str) -> Callable[..., Any]:
        """torch.nn.functional.dropout and its like."""
        drop = getattr(tritensor.nn.functional, name)

        def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
            if not training or p == 0:
                return input
            kept = tritensor.get_rng_state()
            stream = self.streams.of(input.device)
            tritensor.set_rng_state(stream.get_state())
            mask = drop(tritensor.ones(tuple(input.shape)), p, True)
            stream.set_state(tritensor.get_rng_state())
            tritensor.set_rng_state(kept)
            mask = self.taken(mask, input.dtype)
            return input.mul_(mask) if inplace else input * mask

        return dropout

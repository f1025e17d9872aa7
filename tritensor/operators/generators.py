"""Generators of random numbers, the default one of each device, and their seeds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..drivers import active
from ..drivers.capture import capturing
from ..drivers.current import FIRST_SEED, seeds
from ..errors import ArgumentError, DeviceError, DtypeError, ShapeError
from ..ground.locks import lock
from ..ground.public import public, publish
from ..memory import buffer, copies
from ..memory.array import DeviceArray, form_of_new
from ..tensors import Tensor, wrap
from ..types import Device, devices, dtypes


@public(functional=False)
class Generator:
    """The state of a sequence of random numbers on one device: a seed, and how many calls have drawn from it.

    >>> import tritensor as torch
    >>> g = torch.Generator().manual_seed(1)
    >>> torch.rand(3, generator=g).equal(torch.rand(3, generator=torch.Generator().manual_seed(1)))
    True
    """

    __module__ = "tritensor"

    def __init__(self, device: Device = "cpu") -> None:
        self._device = devices.resolve(device)
        if self._device is devices.meta:
            raise DeviceError("META device type not an accelerator.", "nothing is drawn for tensors without elements")
        self._seed, self._offset = FIRST_SEED, 0
        self._lock = lock()

    @property
    def device(self) -> devices.device:
        """The device whose tensors the generator fills."""
        return self._device

    def manual_seed(self, seed: int) -> Generator:
        """Start the sequence of `seed`, an integer of 64 bits, signed or not."""
        self._seed, self._offset = _checked_seed(seed), 0
        return self

    def initial_seed(self) -> int:
        """The seed of the present sequence."""
        return self._seed

    def seed(self) -> int:
        """Start the sequence of a non-deterministic seed, and return the seed."""
        self.manual_seed(_new_seed())
        return self._seed

    def advance(self) -> tuple[int, int]:
        """The seed and the number of a new call, which no other call gets."""
        with self._lock:
            offset = self._offset
            self._offset = offset + 1
        return self._seed, offset

    def draw(self) -> tuple[Any, int]:
        """The seed and the number of a new call for a kernel on the generator's device.

        While the device's current stream is captured, the seed is an array of two int64 numbers, the seed and a base
        that the call's number is added to: each replay of the graph writes the present state there (`replayed`).
        """
        if self._device.type == "cuda":
            driver = active()
            capture = None if driver is None else capturing(driver, self._device.index)
            if capture is not None:
                if self not in capture.randoms:
                    form = form_of_new((2,), np.dtype(np.int64), self._device)
                    # memory that captured work does not write: an earlier kernel of the graph might get the pool's own
                    capture.randoms[self] = [buffer.new(capture.pool.aside, form), 0]
                capture.randoms[self][1] += 1
                return capture.randoms[self][0], capture.randoms[self][1] - 1
        return self.advance()

    def replayed(self, state: DeviceArray, calls: int) -> None:
        """Write the present state to the array that a graph's kernels read, and count the graph's calls."""
        with self._lock:
            seed, offset = self._seed, self._offset
            self._offset = offset + calls
        copies.copy_into(state, np.array([seed, offset], np.uint64).view(np.int64))

    def get_state(self) -> Tensor:
        """The state as 16 bytes: seed and number of calls, little-endian."""
        return wrap(np.frombuffer(np.array([self._seed, self._offset], "<u8").tobytes(), np.uint8).copy())

    def set_state(self, new_state: Tensor) -> Generator:
        """Go back to a state that `get_state` returned.

        Raises:
            ArgumentError: not a tensor of bytes. ShapeError: not 16 of them.
        """
        if not isinstance(new_state, Tensor) or new_state.dtype is not dtypes.uint8:
            raise ArgumentError("RNG state must be a torch.ByteTensor")
        if new_state.numel() != 16:
            raise ShapeError(f"RNG state is wrong size: it has {new_state.numel()} bytes, not 16")
        seed, offset = np.frombuffer(np.ascontiguousarray(new_state._to_host()).tobytes(), "<u8")
        self._seed, self._offset = int(seed), int(offset)
        return self

    def clone_state(self) -> Generator:
        """A new generator in the same state."""
        return Generator(self._device).set_state(self.get_state())

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (str(self._device), self._seed, self._offset)

    def __repr__(self) -> str:
        return f"<tritensor.Generator on {self._device}, seed {self._seed}, {self._offset} calls>"


def _rebuild(device: str, seed: int, offset: int) -> Generator:
    generator = Generator(device)
    generator._seed, generator._offset = seed, offset
    return generator


def _new_seed() -> int:
    """53 bits from the system's source of random numbers; the module `secrets` would take 7 ms to import."""
    return int.from_bytes(os.urandom(7), "little") >> 3


def _checked_seed(seed: int) -> int:
    seed = int(seed)
    if not -(1 << 63) <= seed < 1 << 64:
        raise DtypeError(f"Overflow when unpacking long long: the seed {seed} has more than 64 bits")
    return seed % (1 << 64)


#: the CPU's default generator
default_generator = Generator()
publish("default_generator", default_generator, functional=False)


def generator_of(device: devices.device) -> Generator:
    """The default generator of a device."""
    if device.type == "cpu":
        return default_generator
    here, index = seeds(), devices.current_index() if device.index is None else device.index
    found: Generator | None = here.generators.get(index)
    if found is None:
        found = here.generators.setdefault(index, Generator(devices.cuda(index)).manual_seed(here.first))
    return found


def _generators() -> list[Generator]:
    """The default generators of the devices in use, as far as they are made."""
    return [default_generator, *seeds().generators.copy().values()]


@public(functional=False)
def manual_seed(seed: int) -> Generator:
    """Seed the default generator of every device; the CPU's is returned. In a simulation these are its devices.

    >>> import tritensor as torch
    >>> _ = torch.manual_seed(0)
    >>> x = torch.rand(2)
    >>> _ = torch.manual_seed(0)
    >>> torch.equal(x, torch.rand(2))
    True

    Raises:
        DtypeError: a seed of more than 64 bits.
    """
    seeds().first = seed = _checked_seed(seed)
    for generator in _generators():
        generator.manual_seed(seed)
    return default_generator


@public(functional=False)
def seed() -> int:
    """Seed every device with one non-deterministic number, and return it."""
    return manual_seed(_new_seed()).initial_seed()


@public(functional=False)
def initial_seed() -> int:
    """The seed of the CPU's default generator."""
    return default_generator.initial_seed()


@public(functional=False)
def get_rng_state() -> Tensor:
    """The state of the CPU's default generator."""
    return default_generator.get_state()


@public(functional=False)
def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the CPU's default generator to one that `get_rng_state` returned."""
    default_generator.set_state(new_state)


def states() -> Any:
    """The states of all default generators, for `set_states`."""
    found = {generator: (generator._seed, generator._offset) for generator in _generators()}
    return seeds().first, found, {generator: drawn[1] for generator, drawn in _captured().items()}


def set_states(states: Any) -> None:
    """Put all default generators into states that they had."""
    here = seeds()
    here.first, found, counts = states
    for generator in _generators():
        # one that was made since would be made with the first seed
        generator._seed, generator._offset = found.get(generator, (here.first, 0))
    for generator, drawn in _captured().items():
        drawn[1] = counts.get(generator, 0)


def _captured() -> dict[Generator, list[Any]]:
    """What the graph that is captured on the current device draws from: for each generator its state, and a number."""
    driver = active()
    capture = None if driver is None else capturing(driver, devices.current_index())
    return {} if capture is None else capture.randoms


@public(functional=False)
@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """Restore the states of the default generators after a block (those of all devices, whichever are named)."""
    saved = states()
    try:
        yield
    finally:
        if enabled:
            set_states(saved)


def draw_from(place: devices.device, generator: Generator | None, on_host: bool = False) -> dict[str, Any]:
    """The seed and the number of one call of `generator` or the device's default one; with `on_host` Python numbers.

    Nothing is drawn for meta tensors."""
    if place is devices.meta:
        return {"seed": 0, "offset": 0}
    if generator is None:
        generator = generator_of(place)
    elif not isinstance(generator, Generator):
        raise ArgumentError(f"argument 'generator' must be tritensor.Generator, not {type(generator).__name__}")
    elif generator.device is not place:
        raise DeviceError(
            f"Expected a '{place.type}' device type for generator but found '{generator.device.type}'",
            f"the tensor is on {place}, the generator on {generator.device}",
            remedy=f"make it with Generator({str(place)!r})",
        )
    number, offset = generator.advance() if on_host else generator.draw()
    return {"seed": number, "offset": offset}

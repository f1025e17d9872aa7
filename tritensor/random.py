"""Random numbers, by `torch.random`'s names: seeds, generators, and tensors of random numbers."""

from __future__ import annotations

from .functional.random.draws import (
    bernoulli,
    multinomial,
    normal,
    rand,
    rand_like,
    randint,
    randint_like,
    randn,
    randn_like,
    randperm,
)
from .operators.generators import (
    Generator,
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = ["Generator", "bernoulli", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed"]
__all__ += ["multinomial", "normal", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm"]
__all__ += ["seed", "set_rng_state"]

"""Function transforms: `grad`, `jacrev`, `hessian` and others return functions; `vmap` adds a batch.

    per_sample = vmap(grad(loss), in_dims=(None, 0, 0))

Each takes a function and returns one; they nest in any order. `vmap` and forward mode run the function on tensors of a
level (`tritensor.memory.lifted`), reverse mode on the tape.
"""

from __future__ import annotations

from .forward import hessian, jacfwd, jvp, linearize
from .modules import functional_call, stack_module_state
from .reverse import grad, grad_and_value, jacrev, vjp
from .vmap import vmap

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize"]
__all__ += ["stack_module_state", "vjp", "vmap"]

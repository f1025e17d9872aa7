"""Adam for sparse gradients, of which there are none here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Any

from ..errors import explain
from ..tensors import Tensor
from .ruled import Declared, check_rate, optimizer, pair

__all__ = ["SparseAdam"]


@optimizer()
class SparseAdam(Declared):
    """Adam that changes only the rows that a sparse gradient has.

    Tensors are dense here, so there is no gradient that it takes: it can be made, and a step raises what PyTorch's
    raises for dense gradients.

    Args:
        params, lr, betas, eps, maximize: as for `Adam`.

    Raises:
        ValueError: an option out of range, or a complex parameter.
    """

    lr: float | Tensor = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    maximize: bool = False

    def _declare(self, params: Iterable[Any], options: dict[str, Any]) -> None:
        super()._declare(params, options)
        found = [
            [number, position]
            for number, group in enumerate(self.param_groups)
            for position, param in enumerate(group["params"])
            if param.is_complex()
        ]
        if found:
            raise ValueError(f"Complex params at indices {found}: SparseAdam does not support complex parameters")

    def _check(self, options: dict[str, Any]) -> None:
        check_rate(options["lr"], lambda value: 0.0 < value <= inf)
        check_rate(options["eps"], lambda value: 0.0 < value <= inf, "Invalid epsilon value: {}")
        pair("betas", options["betas"], lambda beta: 0.0 <= beta < 1.0)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Raise if any parameter has a gradient, which is dense; returns the closure's loss.

        Raises:
            RuntimeError: a parameter has a gradient.
        """
        loss = self._loss_of(closure)
        if any(param._grad is not None for group in self.param_groups for param in group["params"]):
            words = "SparseAdam does not support dense gradients, please consider Adam instead"
            raise RuntimeError(explain(words, "gradients are dense here"))
        return loss

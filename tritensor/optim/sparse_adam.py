"""Adam for sparse gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf, sqrt
from typing import Any

from ..autograd.mode import no_grad
from ..errors import require
from ..functional.sparse.coordinates import made
from ..tensors import Tensor
from .optimizer import new_state
from .ruled import Declared, check_rate, optimizer, pair

__all__ = ["SparseAdam"]


@optimizer()
class SparseAdam(Declared):
    """The SparseAdam optimizer: Adam that changes only the rows that a sparse gradient has.

    The time of a step does not depend on the number of rows; averages of rows without a gradient stay as they are.

    Args:
        params, lr, betas, eps, maximize: as for `Adam`.

    >>> import tritensor as torch
    >>> table = torch.nn.Embedding(3, 2, _weight=torch.ones(3, 2), sparse=True)
    >>> table(torch.tensor([1, 1])).sum().backward()
    >>> torch.optim.SparseAdam(table.parameters(), lr=0.1).step()
    >>> table.weight.detach()
    tensor([[1.0000, 1.0000],
            [0.9000, 0.9000],
            [1.0000, 1.0000]])

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

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the rows that gradients have, and their averages; returns the closure's loss.

        Raises:
            RuntimeError: a parameter has a dense gradient; nothing has changed.
        """
        loss = self._loss_of(closure)
        entries = [(group, param) for group in self.param_groups for param in group["params"] if param.grad is not None]
        words = "SparseAdam does not support dense gradients, please consider Adam instead"
        require(all(param.grad.is_sparse for _, param in entries), RuntimeError, words)
        for group, param in entries:
            state = self.state_of(param)
            if not state:
                state.update(step=0, exp_avg=new_state(param), exp_avg_sq=new_state(param))
            state["step"] += 1
            self._change(param, (-param.grad if group["maximize"] else param.grad).coalesce(), state, group)
        return loss

    def _change(self, param: Tensor, grad: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        """The step of the rows that a coalesced gradient has."""
        (first, second), values = group["betas"], grad.values()
        found = []
        for name, beta, wanted in (("exp_avg", first, values), ("exp_avg_sq", second, values * values)):
            old = state[name].sparse_mask(grad).values()
            change = (wanted - old) * (1 - beta)
            state[name].add_(made(grad.indices(), change, grad.shape, True))
            found.append(change + old)
        direction = found[0] / found[1].sqrt().add_(group["eps"])
        rate = float(group["lr"]) * sqrt(1 - second ** state["step"]) / (1 - first ** state["step"])
        param.add_(made(grad.indices(), direction, grad.shape, True), alpha=-rate)

"""The limited-memory method of Broyden, Fletcher, Goldfarb and Shanno."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..autograd.mode import enable_grad, no_grad
from ..errors import ArgumentError, explain, require
from ..functional.creation.creation import zeros
from ..functional.views.joining import cat
from ..tensors import Tensor
from .ruled import Declared, optimizer

__all__ = ["LBFGS"]

# A place on the search line: how far it is, the loss, the gradient, and the gradient's part along the line.
Place = tuple[Any, float, Tensor, Tensor]


def _minimum_between(a: Place, b: Place, bounds: tuple[Any, Any] | None = None) -> Any:
    """The minimum of the cubic through two places with their slopes, within the bounds."""
    (x1, f1, _, g1), (x2, f2, _, g2) = (a, b) if a[0] <= b[0] else (b, a)
    low, high = (x1, x2) if bounds is None else bounds
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1 * d1 - g1 * g2
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square**0.5
    return min(max(x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2)), low), high)


def _strong_wolfe(
    at: Callable[[Any], Place], start: Place, t: Any, longest: Tensor, most: int, tolerance: float
) -> tuple[Place, int]:
    """A place on the line that fulfils the strong Wolfe conditions (Nocedal and Wright, 2006, algorithms 3.5 and 3.6).

    Args:
        at: evaluates the place at a distance.
        longest: the largest element of the direction; the search ends where a bracket times this is below `tolerance`.
        most: how many steps the search may take. Returns the place and the number of evaluations.
    """
    loss, slope = start[1], start[3]

    def too_high(place: Place) -> bool:
        return bool(place[1] > loss + 1e-4 * place[0] * slope)

    def flat(place: Place) -> bool:
        return bool(abs(place[3]) <= -0.9 * slope)

    before, here, steps = start, at(t), 0
    bracket: list[Place] = []
    done = False
    while steps < most:
        if too_high(here) or (steps > 1 and here[1] >= before[1]):
            bracket = [before, here]
            break
        if flat(here):
            bracket, done = [here], True
            break
        if here[3] >= 0:
            bracket = [before, here]
            break
        bounds = here[0] + 0.01 * (here[0] - before[0]), here[0] * 10
        before, here = here, at(_minimum_between(before, here, bounds))
        steps += 1
    bracket = bracket or [start, here]
    evaluations = steps + 1
    low, high = (0, 1) if bracket[0][1] <= bracket[-1][1] else (1, 0)
    stuck = False
    while not done and steps < most:
        least, largest = sorted((bracket[0][0], bracket[1][0]))
        if (largest - least) * longest < tolerance:
            break
        t, margin = _minimum_between(bracket[0], bracket[1]), 0.1 * (largest - least)
        if min(largest - t, t - least) < margin:  # too close to an end: moved away from it the second time
            if stuck or t >= largest or t <= least:
                t = largest - margin if abs(t - largest) < abs(t - least) else least + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        here = at(t)
        steps, evaluations = steps + 1, evaluations + 1
        if too_high(here) or here[1] >= bracket[low][1]:
            bracket[high] = here
            low, high = (0, 1) if bracket[0][1] <= bracket[1][1] else (1, 0)
            continue
        if flat(here):
            done = True
        elif here[3] * (bracket[high][0] - bracket[low][0]) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = here
    return bracket[low if len(bracket) > 1 else 0], evaluations


@optimizer()
class LBFGS(Declared):
    """The L-BFGS optimizer: steps by an estimate of the inverse Hessian, from gradients, by Liu and Nocedal (1989).

    A step makes several iterations, for each of which the closure is called; the host waits for every loss. All
    parameters are on one device and are one group.

    Args:
        params: what to optimize; see `Optimizer`.
        lr: the length of a step along the direction, a number or a tensor of one element.
        max_iter: iterations of a step.
        max_eval: calls of the closure in a step, 1.25 * max_iter unless given.
        tolerance_grad: it ends where no element of the gradient is larger.
        tolerance_change: it ends where the parameters or the loss change less.
        history_size: how many of the last steps the estimate is made from.
        line_search_fn: "strong_wolfe" to search along the direction, or None.

    >>> import tritensor as torch
    >>> w = torch.nn.Parameter(torch.tensor([3.0, -2.0]))
    >>> optimizer = torch.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((w - torch.tensor([1.0, 2.0])) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure)
    tensor(20., grad_fn=<SumBackward0>)
    >>> w.detach()
    tensor([1.0000, 2.0000])

    Raises:
        ValueError: a negative rate, or several groups.
    """

    lr: float | Tensor = 1
    max_iter: int = 20
    max_eval: int | None = None
    tolerance_grad: float = 1e-7
    tolerance_change: float = 1e-9
    history_size: int = 100
    line_search_fn: str | None = None

    _counted = ()

    def _declare(self, params: Iterable[Any], options: dict[str, Any]) -> None:
        if options["max_eval"] is None:
            options["max_eval"] = options["max_iter"] * 5 // 4
        super()._declare(params, options)
        if len(self.param_groups) != 1:
            words = "LBFGS doesn't support per-parameter options (parameter groups)"
            raise ValueError(explain(words, f"there are {len(self.param_groups)} groups", remedy="pass one list"))

    def state_of(self, param: Tensor, state: dict[str, Any] | None = None) -> dict[str, Any]:
        """The state, which is that of all parameters together; see `Optimizer`."""
        state = self.state[param] if state is None else state
        for key, value in list(state.items()):
            if isinstance(value, list):
                moved = super().state_of(param, {str(number): each for number, each in enumerate(value)})
                state[key] = list(moved.values())
        return super().state_of(param, state)

    def _gradient(self) -> Tensor:
        """All gradients as one vector."""
        flat = []
        for param in self.param_groups[0]["params"]:
            grad = param._grad
            flat.append(zeros(param.numel(), dtype=param.dtype, device=param.device) if grad is None else _flat(grad))
        return cat(flat)

    def _move(self, start: list[Tensor], t: Any, direction: Tensor) -> None:
        """Set the parameters to a distance along a direction."""
        parts = direction.split([_flat(param).numel() for param in start])
        for param, before, part in zip(self.param_groups[0]["params"], start, parts, strict=True):
            param.copy_((_flat(before) + part * t).reshape(before.shape))

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make iterations until one of the limits is met.

        Args:
            closure: computes the loss anew and calls backward; its first result is returned.

        Raises:
            TypeError: there is none. RuntimeError: another line search than "strong_wolfe".
        """
        if closure is None:
            words = "LBFGS.step() missing 1 required positional argument: 'closure'"
            raise ArgumentError(words, remedy="pass a function that computes the loss and calls backward")
        group = self.param_groups[0]
        lr, most, tolerance = group["lr"], group["max_eval"], group["tolerance_change"]
        lr = lr.squeeze() if isinstance(lr, Tensor) else lr
        params = group["params"]
        require(group["line_search_fn"] in (None, "strong_wolfe"), RuntimeError, "only 'strong_wolfe' is supported")

        def evaluated() -> Any:
            with enable_grad():
                return closure()

        state = self.state_of(params[0])
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = evaluated()
        loss, calls, iterations = float(first), 1, 0
        state["func_evals"] += 1
        grad = self._gradient()
        if grad.abs().max() <= group["tolerance_grad"]:
            return first
        while iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            self._remember(state, grad, group["history_size"])
            direction, loss_before = state["d"], loss
            state["prev_flat_grad"], state["prev_loss"] = grad.clone(), loss
            t = state["t"] = min(1.0, 1.0 / grad.abs().sum()) * lr if state["n_iter"] == 1 else lr  # type: ignore[operator]
            slope = grad.dot(direction)
            if slope > -tolerance:
                break
            start, used = [param.clone() for param in params], 0
            if group["line_search_fn"] is None:
                self._move(start, t, direction)
                if iterations != group["max_iter"]:
                    loss, grad, used = float(evaluated()), self._gradient(), 1
            else:

                def at(t: Any, start: Any = start, direction: Tensor = direction) -> Place:
                    self._move(start, t, direction)
                    loss, grad = float(evaluated()), self._gradient()
                    return t, loss, grad, grad.dot(direction)

                longest = direction.abs().max()
                place, used = _strong_wolfe(at, (0, loss, grad, slope), t, longest, most - calls, 1e-9)
                t, loss, grad, _ = place
                state["t"] = t
                self._move(start, t, direction)
            calls += used
            state["func_evals"] += used
            if (
                iterations == group["max_iter"]
                or calls >= most
                or grad.abs().max() <= group["tolerance_grad"]
                or (direction * t).abs().max() <= tolerance
                or abs(loss - loss_before) < tolerance
            ):
                break
        return first

    def _remember(self, state: dict[str, Any], grad: Tensor, most: int) -> None:
        """Let the last step join the history, and find the next direction by two loops over it."""
        if state["n_iter"] == 1:
            state.update(d=-grad, t=None, old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return
        changes, steps, shares = state["old_dirs"], state["old_stps"], state["ro"]
        y, s = grad - state["prev_flat_grad"], state["d"] * state["t"]
        ys = y.dot(s)
        if ys > 1e-10:
            if len(changes) == most:
                for history in (changes, steps, shares):
                    history.pop(0)
            changes.append(y)
            steps.append(s)
            shares.append(1.0 / ys)
            state["H_diag"] = ys / y.dot(y)
        found = state.setdefault("al", [None] * most)
        q = -grad
        for i in reversed(range(len(changes))):
            found[i] = steps[i].dot(q) * shares[i]
            q = q - changes[i] * found[i]
        direction = q * state["H_diag"]
        for i in range(len(changes)):
            direction = direction + steps[i] * (found[i] - changes[i].dot(direction) * shares[i])
        state["d"] = direction


def _flat(x: Tensor) -> Tensor:
    return x.detach().to_dense().reshape(-1)

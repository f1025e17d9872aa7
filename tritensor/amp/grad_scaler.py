"""The scaling of losses, so that gradients of half precision do not become zero."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any, Protocol

from ..autograd.mode import no_grad
from ..drivers import active
from ..errors import explain, require, warn
from ..functional.creation.creation import full
from ..kernels.optimizer.scaling import unscale, update
from ..tensors import Tensor, wrap
from ..types.devices import device
from ..types.dtypes import float16, float32, int32

__all__ = ["GradScaler", "OptState"]


class Optimizer(Protocol):
    """The part of an optimizer's interface that a scaler uses."""

    param_groups: list[dict[str, Any]]

    step: Any


class OptState(Enum):
    """The steps taken with an optimizer since the last `update`."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _untouched() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _on(place: device, copies: dict[device, Tensor]) -> Tensor:
    """A tensor on a device, of its copies by device, the first of which is the tensor itself."""
    if place not in copies:
        copies[place] = next(iter(copies.values())).to(place, non_blocking=True)
    return copies[place]


class GradScaler:
    """Scales a loss so that gradients fit into half precision, and unscales them; skips steps with infinities or NaN.

    Scale, count and what was found stay on the device, and so does the scaling back: a launch for all gradients of a
    dtype. The host waits for the device where PyTorch does, in `step`, which reads whether to skip; an optimizer that
    takes `grad_scale` and `found_inf` (`_step_supports_amp_scaling`) is not waited for.

    >>> import tritensor as torch
    >>> w = torch.nn.Parameter(torch.ones(2))
    >>> sgd, scaler = torch.optim.SGD([w], lr=0.5), torch.amp.GradScaler("cpu", init_scale=8.0)
    >>> scaler.scale(w.sum()).backward()
    >>> w.grad
    tensor([8., 8.])
    >>> scaler.step(sgd)
    >>> scaler.update()
    >>> w.data, scaler.get_scale()
    (tensor([0.5000, 0.5000]), 8.0)

    Args:
        device: "cuda" or "cpu".
        init_scale: the first scale.
        growth_factor: what the scale is multiplied by after `growth_interval` steps without infinities, above 1.
        backoff_factor: what it is multiplied by after one with them, below 1.
        growth_interval: steps.
        enabled: False makes `step` the optimizer's own, and everything else do nothing.

    Raises:
        AssertionError: a factor out of its range. "cuda" without a device warns, and disables the scaler.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device, self._enabled = device, enabled
        if device == "cuda" and enabled and active() is None:
            warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.")
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._init_growth_tracker = init_scale, 0
        self._growth_factor, self._backoff_factor, self._growth_interval = (
            growth_factor,
            backoff_factor,
            growth_interval,
        )
        self._scale: Tensor | None = None
        self._growth_tracker: Tensor | None = None
        self._per_optimizer_states: defaultdict[int, dict[str, Any]] = defaultdict(_untouched)

    def _made(self, call: str) -> tuple[Tensor, Tensor]:
        """Scale and count; raises before the first loss was scaled."""
        if self._scale is None or self._growth_tracker is None:
            raise AssertionError(
                f"Attempted {call} but _scale is None.  This may indicate your script did not use scaler.scale(loss or "
                "outputs) earlier in the iteration."
            )
        return self._scale, self._growth_tracker

    # ---- a step ---------------------------------------------------------------------------------------------------

    def scale(self, outputs: Any) -> Any:
        """A tensor times the scale, or each tensor of lists, tuples and other iterables.

        Raises:
            ValueError: something else.
        """
        return self._scaled(outputs, {}) if self._enabled else outputs

    def _scaled(self, value: Any, copies: dict[device, Tensor]) -> Any:
        if isinstance(value, Tensor):
            if self._scale is None:
                self._scale = full((), self._init_scale, dtype=float32, device=value.device)
                self._growth_tracker = full((), self._init_growth_tracker, dtype=int32, device=value.device)
            copies.setdefault(self._scale.device, self._scale)
            return value * _on(value.device, copies)
        require(isinstance(value, Iterable), ValueError, "outputs must be a Tensor or an iterable of Tensors")
        found = (self._scaled(each, copies) for each in value)
        return type(value)(found) if isinstance(value, (list, tuple)) else found

    def _unscale(self, optimizer: Optimizer, scale: Tensor, halves: bool = False) -> dict[device, Tensor]:
        """Divide the gradients by a scale; what was found on each of their devices."""
        by_device: defaultdict[device, list[Tensor]] = defaultdict(list)
        for group in optimizer.param_groups:
            for param in group["params"]:
                if not isinstance(param, Tensor):
                    raise AssertionError(f"expected param to be torch.Tensor, got {type(param).__name__}")
                gradient = param.grad
                if gradient is None:
                    continue
                if not halves and gradient.dtype is float16:
                    raise ValueError(
                        explain(
                            "Attempting to unscale FP16 gradients.",
                            f"a parameter of shape {tuple(param.shape)} has dtype {param.dtype}",
                            remedy="keep the parameters in float32; autocast casts them where they are used",
                        )
                    )
                by_device[gradient.device].append(wrap(gradient._data.array) if gradient.is_sparse else gradient)
        scales = {scale.device: scale}
        found = {place: full((), 0.0, dtype=float32, device=place) for place in by_device}
        with no_grad():
            for place, gradients in by_device.items():
                unscale(gradients, _on(place, scales), found[place])
                # of DTensors each rank has seen a part, and all have to step or none
                parted: list[Any] = [x for x in gradients if hasattr(x, "_local_tensor")]
                for each in {x.device_mesh: x for x in parted}.values():
                    each._agree(found[place])
        return found

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the optimizer's gradients by the scale; `step` does it, unless they are needed before, to be clipped.

        Raises:
            RuntimeError: it was done since the last `update`. ValueError: gradients of float16.
        """
        if not self._enabled:
            return
        scale, _ = self._made("unscale_")
        known = self._per_optimizer_states[id(optimizer)]
        if known["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        require(known["stage"] is not OptState.STEPPED, RuntimeError, "unscale_() is being called after step().")
        known["found_inf_per_device"] = self._unscale(optimizer, scale)
        known["stage"] = OptState.UNSCALED

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """The optimizer's step with the gradients divided by the scale, or none if one of them is infinite or NaN.

        Returns:
            What the optimizer's step returns, None without a step.

        Raises:
            RuntimeError: a second one since the last `update`, or a closure.
            AssertionError: no loss was scaled, or the optimizer has no gradients.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        scale, _ = self._made("step")
        known = self._per_optimizer_states[id(optimizer)]
        if known["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_that_scales(optimizer, known, scale, args, kwargs)
        else:
            if known["stage"] is OptState.READY:
                self.unscale_(optimizer)
            if not known["found_inf_per_device"]:
                raise AssertionError(
                    explain("No inf checks were recorded for this optimizer.", "none of its parameters has a gradient")
                )
            skipped = sum(found.item() for found in known["found_inf_per_device"].values())
            result = None if skipped else optimizer.step(*args, **kwargs)
        known["stage"] = OptState.STEPPED
        return result

    def _step_that_scales(self, optimizer: Any, known: dict[str, Any], scale: Tensor, args: Any, kwargs: Any) -> Any:
        """The step of an optimizer that divides by `grad_scale` itself, and skips where `found_inf` is not zero."""
        if known["stage"] is OptState.READY:
            known["found_inf_per_device"] = self._unscale(
                optimizer, full((), 1.0, dtype=float32, device=scale.device), halves=True
            )
            optimizer.grad_scale = scale * getattr(optimizer, "grad_scale", 1)
        else:
            optimizer.grad_scale = getattr(optimizer, "grad_scale", None)
        optimizer.found_inf = sum(each.to(scale.device) for each in known["found_inf_per_device"].values())
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Choose the next scale; to be called once after the steps of all optimizers.

        Args:
            new_scale: the scale, in place of the one that follows from what was found.

        Raises:
            AssertionError: no optimizer was stepped, or a tensor that is not one number on the scaler's device.
        """
        if not self._enabled:
            return
        scale, tracker = self._made("update")
        if isinstance(new_scale, Tensor):
            if new_scale.device.type != self._device or new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
                    "requires_grad=False."
                )
            scale.copy_(new_scale.reshape(()))
        elif new_scale is not None:
            scale.fill_(float(new_scale))
        else:
            found = [
                each for known in self._per_optimizer_states.values() for each in known["found_inf_per_device"].values()
            ]
            require(found, AssertionError, "No inf checks were recorded prior to update.")
            total = found[0].to(scale.device)
            for each in found[1:]:
                total = total + each.to(scale.device)
            update(scale, tracker, total, self._growth_factor, self._backoff_factor, self._growth_interval)
        self._per_optimizer_states = defaultdict(_untouched)

    # ---- its numbers ----------------------------------------------------------------------------------------------

    def get_scale(self) -> float:
        """The scale, which the host waits for; 1 if the scaler is disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def get_growth_factor(self) -> float:
        """The factor that the scale is multiplied by when it grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what `get_growth_factor` returns."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """The factor that the scale is multiplied by after a step that was skipped."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what `get_backoff_factor` returns."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many steps without a skipped one the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set what `get_growth_interval` returns."""
        self._growth_interval = new_interval

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def is_enabled(self) -> bool:
        """True if it scales."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Scale, factors, interval and count as numbers; to be called after `update`. Empty if it is disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore what `state_dict` returned; nothing if it is disabled.

        Raises:
            RuntimeError: the state of a scaler that was disabled.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale, self._init_growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict[str, Any]:
        if not self._enabled:
            return self.__dict__.copy()
        if self._per_optimizer_states:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                "scaler.update()."
            )
        numbers = {"_init_scale": self.get_scale(), "_init_growth_tracker": self._get_growth_tracker()}
        return {**self.__dict__, **numbers, "_scale": None, "_growth_tracker": None}

"""The type stub of `tritensor.autograd`, made by `python -m tools.generate`; do not edit."""

from __future__ import annotations

from tritensor.autograd import forward_ad as forward_ad
from tritensor.autograd import functional as functional
from tritensor.autograd.backward import Handle as Handle
from tritensor.autograd.backward import backward as backward
from tritensor.autograd.backward import grad as grad
from tritensor.autograd.mode import enable_grad as enable_grad
from tritensor.autograd.mode import inference_mode as inference_mode
from tritensor.autograd.mode import is_grad_enabled as is_grad_enabled
from tritensor.autograd.mode import is_inference_mode_enabled as is_inference_mode_enabled
from tritensor.autograd.mode import no_grad as no_grad
from tritensor.autograd.mode import recording as recording
from tritensor.autograd.mode import set_grad_enabled as set_grad_enabled
from tritensor.autograd.tape import Gradient as GradientPlan
from tritensor.autograd.tape import Node as Node
from tritensor.autograd.tape import Slot as Slot
from tritensor.autograd.tape import record as record
from tritensor.operators import function as function
from tritensor.operators.function import Function as Function
from tritensor.operators.gradcheck import gradcheck as gradcheck
from tritensor.operators.gradcheck import gradgradcheck as gradgradcheck

__all__ = [
    "GradientPlan",
    "Handle",
    "Node",
    "Slot",
    "backward",
    "enable_grad",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "record",
    "recording",
    "set_grad_enabled",
]

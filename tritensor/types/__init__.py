"""The types of tensors: dtypes and their promotion, devices, shapes and strides, memory formats."""

from __future__ import annotations

from .devices import Device as Device
from .dtypes import Dtype as Dtype

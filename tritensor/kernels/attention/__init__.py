"""Attention, and its gradients, without the scores in memory: blocks on the CPU, three kernels on a device."""

from __future__ import annotations

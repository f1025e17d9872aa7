"""Algorithms beside the collectives: `join`, for uneven inputs, and `ddp_comm_hooks`, for averaging gradients."""

from __future__ import annotations

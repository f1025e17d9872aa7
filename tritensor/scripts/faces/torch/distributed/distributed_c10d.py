"""Private names of `torch.distributed.distributed_c10d`."""

from __future__ import annotations

from tritensor.distributed.groups import default_group as _get_default_group

__all__ = ["_get_default_group"]

"""State dicts of models and optimizers in several processes, with the names of `torch.distributed.checkpoint`."""

from __future__ import annotations

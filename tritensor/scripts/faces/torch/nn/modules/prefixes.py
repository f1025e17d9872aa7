"""torch.nn.modules.utils: names of a state dict without a prefix."""

from __future__ import annotations

from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Takes a prefix, such as "module." of DistributedDataParallel, from the names of a state dict, in place."""
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata: Any = getattr(state_dict, "_metadata", None)
    for key in list(metadata or ()):
        if key in ("", prefix.replace(".", "")) or key.startswith(prefix):
            value = metadata.pop(key)
            if key:
                metadata[key[len(prefix) :]] = value

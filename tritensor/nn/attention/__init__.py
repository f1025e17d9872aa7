"""`torch.nn.attention`: the backends of `scaled_dot_product_attention`, and its causal biases."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager

from ...functional.attention.attention import ENABLED
from . import bias

__all__ = ["SDPBackend", "bias", "sdpa_kernel"]


class SDPBackend(enum.Enum):
    """PyTorch's backends of attention. MATH is made of other operators; all others stand for blocks of scores."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self) -> int:
        return int(self.value)

    def __repr__(self) -> str:
        return f"<{self}: {self.value}>"


_NAMES = {
    SDPBackend.CUDNN_ATTENTION: "cudnn",
    SDPBackend.FLASH_ATTENTION: "flash",
    SDPBackend.EFFICIENT_ATTENTION: "mem_efficient",
    SDPBackend.MATH: "math",
    SDPBackend.OVERRIDEABLE: "overrideable",
}


@contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict[str, bool]]:
    """Restrict `scaled_dot_product_attention` to these backends within the block.

    >>> import tritensor as torch
    >>> from tritensor.nn.attention import SDPBackend, sdpa_kernel
    >>> x = torch.ones(2, 2)
    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     torch.nn.functional.scaled_dot_product_attention(x, x, x)
    tensor([[1., 1.],
            [1., 1.]])

    Args:
        set_priority: for PyTorch's sake: blocks come first wherever they are enabled.

    Raises:
        AssertionError: no SDPBackend and no list of them.
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    wanted = backends if isinstance(backends, list) else [backends]
    before = dict(ENABLED)
    try:
        ENABLED.update({name: backend in wanted for backend, name in _NAMES.items()})
        yield {}
    finally:
        ENABLED.update(before)

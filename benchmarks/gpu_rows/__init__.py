"""What is measured on a GPU: one list of rows, for `python -m benchmarks.gpu`, pytest-benchmark and the figures' table.

`row` says what a row is; the other modules list them by what is measured.
"""

from __future__ import annotations

from .attention import ATTENTION
from .by_row import BY_ROW
from .host import HOSTS, STARTS, TRANSFERS
from .memory import MEMORY
from .optimizers import OPTIMIZERS
from .pictures import PICTURES
from .products import LINEAR, PRODUCTS
from .recurrent import RECURRENT
from .row import DEVICE, HOST, START, TRANSFER, Row, Target, toy
from .transformers import TRANSFORMERS

__all__ = ["DEVICE", "HOST", "ROWS", "START", "TRANSFER", "Row", "Target", "toy"]

# In the order in which they are measured: rows with a gate come before those without.
ROWS = tuple(
    sorted(
        (
            *PRODUCTS,
            LINEAR,
            *ATTENTION,
            *PICTURES,
            *RECURRENT,
            *TRANSFORMERS,
            *MEMORY,
            *BY_ROW,
            *OPTIMIZERS,
            *HOSTS,
            *TRANSFERS,
            *STARTS,
        ),
        key=lambda row: not row.targets,
    )
)

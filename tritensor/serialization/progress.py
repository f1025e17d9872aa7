"""A progress bar for large files."""

from __future__ import annotations

from typing import Any

SHOWN_FROM = 256 * 2**20  # bytes; below, reading takes well under a second


class Progress:
    """Counts bytes; from 256 MB on it shows them, on terminals only."""

    def __init__(self, verb: str, nbytes: int, name: str = "") -> None:
        self._bar: Any = None
        if nbytes > SHOWN_FROM:
            from tqdm import tqdm

            self._bar = tqdm(total=nbytes, unit="B", unit_scale=True, desc=f"{verb} {name}".strip(), disable=None)

    def update(self, nbytes: int) -> None:
        """Note that `nbytes` more are done."""
        if self._bar is not None:
            self._bar.update(nbytes)

    def close(self) -> None:
        """Remove the bar, whether it is complete or not."""
        if self._bar is not None:
            self._bar.close()

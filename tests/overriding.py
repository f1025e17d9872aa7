"""Functions get their own code back after a test with `__torch_function__`: others count what a call costs without."""

from __future__ import annotations

from tritensor.ground import index, overriding


def remove() -> None:
    """Undo `overriding.install`, but for members that were one object under two names."""
    index.watching.clear()
    for function, own in overriding.owns.items():
        function.__code__, function.__kwdefaults__ = own.__code__, own.__kwdefaults__
        function.__name__ = own.__name__
        if function.__dict__.get("__wrapped__") is own:
            del function.__wrapped__  # type: ignore[attr-defined]
    for table in (overriding.owns, overriding.known, overriding._plain):
        table.clear()

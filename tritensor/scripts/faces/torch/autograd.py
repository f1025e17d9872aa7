"""torch.autograd: the switches of anomaly detection."""

from __future__ import annotations

from ....errors import warn

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:
    """Switches nothing: a gradient that is not finite is not searched for. With `mode=True` it says so."""

    def __init__(self, mode: bool = True, check_nan: bool = True) -> None:
        if mode:
            warn("anomaly detection is not there: the node of a gradient that is NaN is not named")

    def __enter__(self) -> None:
        """Nothing."""

    def __exit__(self, *exception: object) -> None:
        """Nothing."""


class detect_anomaly(set_detect_anomaly):
    """A context that says that nothing is searched for."""

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(True, check_nan)


def is_anomaly_enabled() -> bool:
    """False."""
    return False

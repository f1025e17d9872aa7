"""The profiler: counts the work of compiled kernels on a simulated device, and predicts a card's time from that."""

from __future__ import annotations

from .cards import CARDS, Card, card
from .launches import Launch
from .recorder import profile

__all__ = ["CARDS", "Card", "Launch", "card", "profile"]

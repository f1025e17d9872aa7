"""What compiled kernels ask of a card, counted on a simulated device, and the time that is predicted from it."""

from __future__ import annotations

from .cards import CARDS, Card, card
from .launches import Launch
from .recorder import profile

__all__ = ["CARDS", "Card", "Launch", "card", "profile"]

"""Random numbers by position, and ranges: each element is computed where it is stored."""

from __future__ import annotations

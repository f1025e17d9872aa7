"""Views and copies: shapes, parts, joining, `to`."""

from __future__ import annotations

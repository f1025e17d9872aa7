"""Normalization, softmax and losses: functions of rows."""

from __future__ import annotations

"""Clusters on a laptop: memory, bytes and step time of training on many GPUs, from the program that will run there."""

from __future__ import annotations

from .charts import draw, draw_memory
from .report import Report
from .simulation import Cluster, simulate

__all__ = ["Cluster", "Report", "draw", "draw_memory", "simulate"]

"""Published training runs on clusters, and programs that train as they did."""

from __future__ import annotations

"""Reading, writing and summing at places that indices name; joining and sorting."""

from __future__ import annotations

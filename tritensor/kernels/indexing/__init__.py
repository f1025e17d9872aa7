"""Reading, writing and summing at the places given by indices; joining and sorting."""

from __future__ import annotations

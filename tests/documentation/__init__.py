"""The programs of the documentation, docs/programs: each is run, and what it prints is what the pages show."""

from __future__ import annotations

"""The operators: a folder for each family, with its generic kernel and the code that launches it."""

from __future__ import annotations

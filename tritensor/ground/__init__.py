"""The ground that every other room stands on: public names, checks of arguments, functions made from declarations,
locks."""

from __future__ import annotations

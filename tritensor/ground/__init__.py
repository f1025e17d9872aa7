"""The ground that every other room stands on: public names, checks of arguments, functions that declarations become,
locks."""

from __future__ import annotations

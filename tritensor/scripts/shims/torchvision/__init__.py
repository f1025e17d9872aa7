"""The module torchvision of a program that is run by tritensor; see `tritensor.scripts.names`."""

from __future__ import annotations

from tritensor.scripts import names

if __name__ in names.ROOTS:  # not where a tool imports it by its place in the package
    names.install()

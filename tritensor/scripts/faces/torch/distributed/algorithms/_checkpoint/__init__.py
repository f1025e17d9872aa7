"""Modules that are computed again for their gradients."""

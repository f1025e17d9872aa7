"""Tests of `tritensor.func` and of forward mode."""

"""Convolution, pooling, resampling, padding and spectra: functions of windows."""

from __future__ import annotations

"""Functions for data sets of one's own: files fetched, checked and unpacked, with torchvision's names."""

from __future__ import annotations

from .archives import download_and_extract_archive, extract_archive
from .download import check_integrity, download_url

__all__ = ["check_integrity", "download_and_extract_archive", "download_url", "extract_archive"]

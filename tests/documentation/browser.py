"""The site behind an address, and pages of it in Chromium: for `make site-test` and `make screenshots`."""

from __future__ import annotations

import contextlib
import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ARGUMENTS = [
    f"--{name}"
    for name in (
        "no-sandbox",
        "disable-gpu",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
        "no-first-run",
        "disable-dev-shm-usage",
    )
]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def installed() -> str | None:
    """The path of the first browser that is installed."""
    return next((path for path in map(shutil.which, BROWSERS) if path), None)


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Nothing: the test says what failed."""


@contextlib.contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of a folder of pages."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


@contextlib.contextmanager
def opened(path: str) -> Iterator[Any]:
    """A browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


class Watched:
    """A page of the browser, and what went wrong on it."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.address = address
        self.wrong: list[str] = []
        self.context = browser.new_context(**options)
        self.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address.rstrip("/"))
        self.page = self.context.new_page()
        self.page.on("console", lambda said: said.type in ("error", "warning") and self.wrong.append(said.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("requestfailed", self._failed)
        self.page.on("request", self._requested)
        self.page.on("response", lambda got: got.status >= 400 and self.wrong.append(f"{got.status}: {got.url}"))

    def _failed(self, request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # by going on to the next page
            self.wrong.append(f"failed: {request.url}, {request.failure}")

    def _requested(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.wrong.append(f"left this machine: {request.url}")

    def open(self, name: str) -> Any:
        self.page.goto(self.address + name)
        return self.page

    def show(self, mode: str) -> None:
        """Light or dark, without loading the page anew, and without waiting for colours that fade."""
        self.page.add_style_tag(content="* { transition: none !important }")
        self.page.evaluate("mode => { document.documentElement.dataset.theme = mode }", mode)

"""The site, built and looked at in a browser: `make site-test`.

Where DOCS_BUILT names a folder, the site in it is taken; otherwise it is built, which takes a minute.
"""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

pytestmark = pytest.mark.site

ROOT = Path(__file__).resolve().parents[2]
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


class Page(HTMLParser):
    """What a page links to and loads, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag in ("img", "script", "iframe", "source") and "src" in found:
            self.loads.append(found["src"])
        elif tag == "link" and found.get("rel") in ("stylesheet", "icon", "preload", "search"):
            self.loads.append(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = os.environ.get("DOCS_BUILT")
    if built:
        return ROOT / built
    pytest.importorskip("sphinx", reason="building the site needs tritensor[docs]")
    pytest.importorskip("pydata_sphinx_theme", reason="building the site needs tritensor[docs]")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-n", "-q", "-j", "auto"]
    done = subprocess.run(
        [*command, "-d", str(folder / "doctrees"), "docs", str(folder / "html")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return folder / "html"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    found = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    return {path.relative_to(site).as_posix(): Page(path.read_text(encoding="utf-8")) for path in found}


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Nothing: the test says what failed."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


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


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs tritensor[site]")
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if found is None:
        pytest.skip(f"no browser is installed: none of {', '.join(BROWSERS)}")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture
def watch(browser: Any, address: str) -> Iterator[Callable[..., Watched]]:
    made: list[Watched] = []

    def make(**options: Any) -> Watched:
        made.append(Watched(browser, address, **options))
        return made[-1]

    yield make
    for each in made:
        each.context.close()
    assert [each.wrong for each in made if each.wrong] == []


# ---- the files -----------------------------------------------------------------------------------------------------


def test_links_and_anchors_exist(site: Path, pages: dict[str, Page]) -> None:
    missing = []
    for name, page in pages.items():
        for link in [*page.links, *page.loads]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or (link.startswith("#") and link.strip("#") in page.anchors):
                continue
            target, anchor = urldefrag(urljoin(f"/{name}", link))
            path = unquote(urlsplit(target).path).lstrip("/")
            path = path + "index.html" if path in ("", ".") or path.endswith("/") else path
            if path in pages and unquote(anchor) not in pages[path].anchors:
                missing.append(f"{name}: {link}: no such anchor")
            elif path not in pages and not (site / path).exists():
                missing.append(f"{name}: {link}: no such file")
    assert missing == []


def test_nothing_is_loaded_from_elsewhere(pages: dict[str, Page]) -> None:
    assert {load for page in pages.values() for load in page.loads if urlsplit(load).netloc} == set()


def test_every_page_is_reached_from_the_front_page(pages: dict[str, Page]) -> None:
    reached, ahead = set(), ["index.html"]
    while ahead:
        name = ahead.pop()
        if name in reached or name not in pages:
            continue
        reached.add(name)
        links = (urldefrag(urljoin(f"/{name}", link))[0] for link in pages[name].links if not urlsplit(link).netloc)
        ahead += [unquote(link).lstrip("/") for link in links]
    assert set(pages) - reached - {"search.html"} == set()


def test_the_inventory_has_the_public_names(site: Path) -> None:
    inventory = pytest.importorskip("sphinx.util.inventory")
    loaded = inventory.InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    names = {name for kind in loaded.data.values() for name in kind} if hasattr(loaded, "data") else set(loaded)
    for name in ("add", "absolute", "Tensor.add_", "nn.Linear", "nn.functional.relu", "optim.Adam", "cuda.simulate"):
        assert f"tritensor.{name}" in names, name


# ---- the browser ---------------------------------------------------------------------------------------------------


def test_pages_render(watch: Callable[..., Watched], pages: dict[str, Page]) -> None:
    watched = watch()
    for name in pages:
        page = watched.open(name)
        assert page.locator("h1").first.inner_text().strip(), name
        for picture in page.locator("article img, article svg[role=img]").all():
            box = picture.bounding_box()
            assert box is not None and box["width"] > 50 and box["height"] > 50, name
        assert watched.wrong == [], name


def test_the_front_page_says_it_on_one_screen(watch: Callable[..., Watched]) -> None:
    page = watch(viewport={"width": 1440, "height": 900}).open("index.html")
    for what in (".first .highlight-python", ".first .highlight-text", ".first .devices svg", ".first .highlight-bash"):
        box = page.locator(what).first.bounding_box()
        assert box is not None and box["height"] > 20 and box["y"] + box["height"] < 900, what
    rows = page.locator(".figures tbody tr")
    assert rows.count() >= 5 and rows.last.bounding_box()["y"] + rows.last.bounding_box()["height"] <= 900


def test_a_narrow_screen_does_not_scroll_sideways(watch: Callable[..., Watched]) -> None:
    watched = watch(viewport={"width": 400, "height": 800})
    for name in ("index", "operators/torch.add", "operators/index", "benchmarks/cpu", "devices", "reference/nn.Linear"):
        page = watched.open(f"{name}.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, name


def test_copying_a_block_leaves_the_prompts_out(watch: Callable[..., Watched]) -> None:
    page = watch().open("start.html")
    block = page.locator(".highlight-pycon").first
    block.hover()
    block.locator("button.copybtn").click()
    page.wait_for_timeout(200)
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("import tritensor as torch\nx = torch.tensor(") and ">>>" not in copied
    assert "tensor([[ 7." not in copied  # what it prints
    plain = page.locator(".highlight-bash").first
    plain.hover()
    plain.locator("button.copybtn").click()
    page.wait_for_timeout(200)
    assert page.evaluate("navigator.clipboard.readText()").strip() == "pip install tritensor"


def test_the_search_finds_softmax(watch: Callable[..., Watched]) -> None:
    page = watch().open("search.html?q=softmax")
    page.wait_for_selector("#search-results ul.search li a")
    found = [link.get_attribute("href") for link in page.locator("#search-results ul.search li a").all()]
    assert any(link and "operators/torch.softmax.html" in link for link in found)
    assert any(link and "reference/nn.Softmax.html" in link for link in found)


def test_dark_mode(watch: Callable[..., Watched]) -> None:
    page = watch(color_scheme="light").open("index.html")
    colour = "getComputedStyle(document.body).backgroundColor"
    drawn = "getComputedStyle(document.querySelector('.devices')).color"
    light = page.evaluate(colour), page.evaluate(drawn)
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.locator("button.theme-switch-button").first.click()
    page.locator("button.theme-change-button[data-mode=dark]").first.click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    dark = page.evaluate(colour), page.evaluate(drawn)
    assert light[0] != dark[0] and light[1] != dark[1]
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"  # it is remembered


def test_the_menu_of_versions(watch: Callable[..., Watched]) -> None:
    page = watch().open("index.html")
    page.locator(".version-switcher__button").first.click()
    page.wait_for_selector(".version-switcher__menu a", state="visible")
    assert page.locator(".version-switcher__menu a").count() >= 1

"""The site, built and looked at in a browser: `make site-test`.

Where DOCS_BUILT names a folder, the site in it is taken; otherwise it is built, which takes a minute.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest

from .browser import BROWSERS, Watched, installed, opened, served

pytestmark = pytest.mark.site

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
WIDTHS, MODES = (400, 1280, 1920), ("light", "dark")
QUESTIONS = tomllib.loads((HERE / "newcomer.toml").read_text(encoding="utf-8"))["question"]
PARTS = 24  # of the pages, so that several processes share them


class Page(HTMLParser):
    """What a page links to and loads, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors = {"", "top"}
        self.pictures: list[str] = []  # what plots are made of: an image, or the title of an SVG
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "img" or (tag == "svg" and found.get("role") == "img"):
            self.pictures.append(found.get("src", ""))
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


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with served(site) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    pytest.importorskip("playwright.sync_api", reason="needs tritensor[site]")
    found = installed()
    if found is None:
        pytest.skip(f"no browser is installed: none of {', '.join(BROWSERS)}")
    with opened(found) as started:
        yield started


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


# Code that is cut: it is wider than something around it, or itself, that hides what does not fit.
CUT = """() => [...document.querySelectorAll("article pre, article code, article .sig")].filter(each => {
    const box = each.getBoundingClientRect(), right = box.left + Math.max(each.scrollWidth, box.width);
    if (!each.checkVisibility({visibilityProperty: true}) || !box.width) return false;
    for (let around = each; around; around = around.parentElement) {
        const {overflowX} = getComputedStyle(around);
        if (["auto", "scroll"].includes(overflowX)) return false;
        if (overflowX !== "visible") return right > around.getBoundingClientRect().right + 1;
    }
    return right > innerWidth + 1;
}).map(each => each.textContent.slice(0, 60))"""
# Of the elements with text of their own axe-core looks at one for each colour, background and font, on which alone its
# answer depends: the whole articles of 53 pages took 35 s, these take 15 s.
CONTRAST = """() => {
    const seen = new Map();
    for (const each of document.querySelectorAll("body *")) {
        if (![...each.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue;
        if (!each.checkVisibility({visibilityProperty: true, opacityProperty: true})) continue;
        const style = getComputedStyle(each), key = [style.color, style.fontSize, style.fontWeight];
        for (let around = each; around; around = around.parentElement) {
            const behind = getComputedStyle(around).backgroundColor;
            if (behind !== "rgba(0, 0, 0, 0)") { key.push(behind); break; }
        }
        if (!seen.has(key.join())) seen.set(key.join(), each);
    }
    const options = {runOnly: ["color-contrast"], resultTypes: ["violations"]};
    return axe.run({include: [...seen.values()]}, options).then(found => found.violations.flatMap(
        each => each.nodes.map(node => node.target[0] + ": " + node.any[0].message)));
}"""


@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_at_every_width_light_and_dark(
    watch: Callable[..., Watched], pages: dict[str, Page], part: int
) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="needs tritensor[site]")
    watched = watch()
    wrong = []
    for name in sorted(pages)[part::PARTS]:
        page = watched.open(name)
        assert page.locator("h1").first.inner_text().strip(), name
        page.evaluate((Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            scrolled = page.evaluate("document.documentElement.scrollWidth")
            wrong += [f"{name} at {width}: {scrolled} wide"] if scrolled > width else []
            wrong += [f"{name} at {width}: cut: {text}" for text in page.evaluate(CUT)]
        for mode in MODES:
            watched.show(mode)
            wrong += [f"{name}, {mode}: {text}" for text in page.evaluate(CONTRAST)]
        for picture in page.locator("article img, article svg[role=img]").all():
            box = picture.bounding_box()
            seen = box is not None and box["width"] > 50 and box["height"] > 30
            drawn = picture.evaluate("each => each.tagName !== 'IMG' || (each.complete && each.naturalWidth > 0)")
            wrong += [] if seen and drawn else [f"{name}: a picture is not there"]
        wrong += [f"{name}: {text}" for text in watched.wrong]
        watched.wrong.clear()
    assert wrong == []


def test_each_notebook_has_its_pictures(site: Path, pages: dict[str, Page]) -> None:
    tutorials = [f"learn/{path.stem}.html" for path in sorted((ROOT / "docs/tutorials").glob("*.py"))]
    assert len(tutorials) >= 9
    for name in tutorials:
        assert len(pages[name].pictures) >= 2, name
        notebook = next(link for link in pages[name].links if link.endswith(".ipynb"))
        assert (site / "learn" / notebook).resolve().exists(), name


def test_the_first_page_says_it_on_one_screen(watch: Callable[..., Watched]) -> None:
    page = watch(viewport={"width": 1440, "height": 900}).open("index.html")
    for what in ("h1", ".overview svg", ".sd-tab-set .highlight-bash", ".first .highlight-text"):
        box = page.locator(what).first.bounding_box()
        assert box is not None and box["height"] > 20 and box["y"] + box["height"] <= 900, what


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question["asks"])
def test_a_newcomer_finds_the_answer_within_two_clicks(watch: Callable[..., Watched], question: dict[str, Any]) -> None:
    page = watch(viewport={"width": 1280, "height": 900}).open("index.html")
    assert 1 <= len(question["clicks"]) <= 2
    for words in question["clicks"]:
        link, card = page.get_by_role("link", name=words), page.locator(".sd-card", has_text=words)
        found = [*page.get_by_role("link", name=words, exact=True).all(), *link.all(), *card.all()]
        seen = [each for each in found if each.is_visible()]
        assert seen, f"no link says {words!r}"
        seen[0].click()
        page.wait_for_load_state()
    assert page.url.partition("#")[0].endswith(question["page"])
    assert page.get_by_text(question["answer"]).filter(visible=True).count(), question["answer"]


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
    assert page.evaluate("navigator.clipboard.readText()").strip() == "pip install ."


def test_the_search_finds_softmax(watch: Callable[..., Watched]) -> None:
    page = watch().open("search.html?q=softmax")
    page.wait_for_selector("#search-results ul.search li a")
    found = [link.get_attribute("href") for link in page.locator("#search-results ul.search li a").all()]
    assert any(link and "operators/torch.softmax.html" in link for link in found)
    assert any(link and "reference/nn.Softmax.html" in link for link in found)


def test_dark_mode(watch: Callable[..., Watched]) -> None:
    page = watch(color_scheme="light").open("index.html")
    colour = "getComputedStyle(document.body).backgroundColor"
    drawn = "getComputedStyle(document.querySelector('.overview svg')).color"
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

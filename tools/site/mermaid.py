"""Pictures of boxes and arrows: a page has their text in a block `mermaid`, the site shows it drawn, as SVG.

    python -m tools.site.mermaid            # draw what changed; needs Graphviz (`dot`)
    python -m tools.site.mermaid --check    # fail if a picture is not that of its text

The drawn files, `docs/pictures/PAGE-NUMBER.svg`, are committed, so that building the site needs no Graphviz and reading
it no script from elsewhere. Of Mermaid only flowcharts with boxes, choices and labelled arrows are read. As an
extension of Sphinx this module puts a picture in the place of its text.
"""

from __future__ import annotations

import hashlib
import html
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["drawn", "graph_of", "pictures", "setup", "stale"]

DOCS = Path(__file__).resolve().parents[2] / "docs"
_BOX = re.compile(r'(\w+)(?:\["([^"]*)"\]|\{"([^"]*)"\})?')
_ARROW = re.compile(r'\s*--(?:\s*(?:"([^"]*)"|([^->]+?))\s*--)?>\s*')


def pictures() -> Iterator[tuple[Path, str]]:
    """The file of each picture, and its text."""
    for page in sorted(DOCS.rglob("*.md")):
        blocks = re.findall(r"^```mermaid\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
        for number, text in enumerate(blocks, 1):
            yield file_of(page.relative_to(DOCS).with_suffix("").as_posix(), number), text


def file_of(page: str, number: int) -> Path:
    """The file of a page's picture; pictures are numbered from 1."""
    return DOCS / "pictures" / f"{page.replace('/', '-')}-{number}.svg"


def digest(text: str) -> str:
    """What identifies a picture's text, in the first line of its file."""
    return f"<!-- of the text {hashlib.sha256(text.strip().encode()).hexdigest()[:16]} -->"


def graph_of(text: str) -> str:
    """A flowchart in Graphviz's language.

    Raises:
        ValueError: a line is not understood.
    """
    first, *lines = [line.strip() for line in text.strip().split("\n") if line.strip()]
    if not first.startswith("flowchart"):
        raise ValueError(f"only flowcharts are drawn, not {first!r}")
    shapes: dict[str, str] = {}
    edges: list[str] = []
    for line in lines:
        place, last, label = 0, [], ""
        while place < len(line):
            box = _BOX.match(line, place)
            if box is None:
                raise ValueError(f"not understood, at {line[place:]!r}: {line!r}")
            name, square, choice = box.groups()
            if square is not None or choice is not None:
                words = (square if square is not None else choice).replace("<br>", "\\n").replace('"', '\\"')
                wrapped = "\\n".join(_wrapped(part) for part in words.split("\\n"))
                shapes[name] = (
                    f'"{name}" [label="{wrapped}"{", style=rounded" if choice is None else ", shape=hexagon"}];'
                )
            shapes.setdefault(name, f'"{name}" [label="{name}", style=rounded];')
            edges += [f'"{each}" -> "{name}" [label="{label}"];' for each in last]
            last, place = [name], box.end()
            arrow = _ARROW.match(line, place)
            if arrow is None:
                if line[place:].strip():
                    raise ValueError(f"not understood, at {line[place:]!r}: {line!r}")
                break
            words = (arrow[1] or arrow[2] or "").split("<br>")
            label, place = "\\n".join(_wrapped(part, 28) for part in words), arrow.end()
    style = 'node [shape=box, fontname="Arial", fontsize=13, margin="0.14,0.08"]; edge [fontname="Arial", fontsize=11];'
    return (
        f'digraph {{ bgcolor="transparent"; ranksep=0.35; {style}\n' + "\n".join([*shapes.values(), *edges]) + "\n}\n"
    )


def _wrapped(text: str, width: int = 44) -> str:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\\n".join(lines)


def drawn(text: str) -> str:
    """The picture of a text: SVG in the colours of the page that it stands in."""
    made = subprocess.run(["dot", "-Tsvg"], input=graph_of(text), capture_output=True, text=True, check=True).stdout
    made = made[made.index("<svg") :]
    made = re.sub(r"<!--.*?-->\n?", "", made, flags=re.DOTALL)
    made = re.sub(r"<title>.*?</title>\n?", "", made, flags=re.DOTALL)
    made = re.sub(r"<polygon fill=\"none\" stroke=\"none\"[^>]*/>\n?", "", made)
    made = made.replace('"black"', '"currentColor"').replace("<text ", '<text fill="currentColor" ')
    made = re.sub(r'width="(\d+)pt" height="(\d+)pt"', lambda size: f'width="{int(size[1]) * 4 // 3}"', made)
    made = made.replace('font-family="Arial"', 'font-family="Arial, Helvetica, Liberation Sans, sans-serif"')
    label = html.escape(", ".join(re.findall(r'\["([^"]*)"\]', text)).replace("<br>", " "), quote=True)
    return f"{digest(text)}\n" + made.replace("<svg ", f'<svg class="flowchart" role="img" aria-label="{label}" ', 1)


def stale() -> list[Path]:
    """The files that are not the pictures of the texts, or of no text any more."""
    wanted = dict(pictures())
    wrong = [path for path, text in wanted.items() if not _shows(path, text)]
    return wrong + [path for path in (DOCS / "pictures").glob("*-[0-9].svg") if path not in wanted]


def _shows(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8").startswith(digest(text))


def main() -> None:
    """Draw the pictures whose text changed, or with --check name them."""
    found = stale()
    if "--check" in sys.argv:
        sys.exit(f"stale: {', '.join(map(str, found))}; run `python -m tools.site.mermaid`" if found else 0)
    wanted = dict(pictures())
    for path in found:
        if path in wanted:
            path.parent.mkdir(exist_ok=True)
            path.write_text(drawn(wanted[path]), encoding="utf-8")
        else:
            path.unlink()


# ---- the extension of Sphinx ---------------------------------------------------------------------------------------


def show(app: Any, doctree: Any) -> None:
    """Put the pictures in the place of their texts."""
    from docutils import nodes
    from sphinx.util import logging

    found = [node for node in doctree.findall(nodes.literal_block) if node.get("language") == "mermaid"]
    for number, node in enumerate(found, 1):
        path = file_of(app.env.docname, number)
        if not _shows(path, node.astext()):
            logging.getLogger(__name__).warning("%s is not drawn: `python -m tools.site.mermaid`", path, location=node)
            continue
        app.env.note_dependency(path)
        picture = nodes.raw("", f'<div class="picture">{path.read_text(encoding="utf-8")}</div>', format="html")
        node.replace_self(picture)


def setup(app: Any) -> dict[str, bool]:
    """As an extension of Sphinx."""
    app.connect("doctree-read", show)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    main()

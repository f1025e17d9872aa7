"""Plots that follow the page: matplotlib's SVG, whose colours are those of the light or the dark mode."""

from __future__ import annotations

import html
import io
import re
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

__all__ = ["COLOURS", "STYLE", "inline", "plot", "standalone"]

#: What a plot is drawn in, which nothing else is, and the colours of `docs/_static/site.css` that take its place.
COLOURS = {
    "text": ("#010101", "var(--pst-color-text-base)"),
    "muted": ("#818181", "var(--pst-color-text-muted)"),
    "grid": ("#c1c1c1", "var(--pst-color-border)"),
    "ours": ("#0f9d8f", "var(--site-faster)"),
    "theirs": ("#d9822b", "var(--site-slower)"),
    "third": ("#5b6ee1", "var(--site-third)"),
}
_TEXT, _MUTED, _GRID = (COLOURS[name][0] for name in ("text", "muted", "grid"))
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",  # text stays text: the page's font, and found by a search in the page
    "svg.hashsalt": "tritensor",  # the same file each time
    "text.color": _TEXT,
    "axes.labelcolor": _TEXT,
    "axes.edgecolor": _MUTED,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": "cycler('color', ['#0f9d8f', '#d9822b', '#5b6ee1']) + cycler('marker', ['o', 's', '^'])"
    " + cycler('linestyle', ['-', '--', ':'])",  # readable without colour
    "lines.markersize": 4,
    "grid.color": _GRID,
    "grid.linewidth": 0.5,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "xtick.labelcolor": _TEXT,
    "ytick.labelcolor": _TEXT,
    "legend.frameon": False,
    "font.size": 10,
    "font.family": ["sans-serif"],
    "figure.constrained_layout.use": True,
}


def plot(title: str, draw: Any, width: float = 6.0, height: float = 3.0) -> str:
    """A plot as a piece of HTML: an SVG that shrinks with the page and takes its colours.

    Args:
        title: what it shows, for those who do not see it.
        draw: called with the figure, on which it draws.
        width: inches; an inch is 72 pixels of CSS.
        height: inches.
    """
    with rc_context(STYLE):
        figure = Figure(figsize=(width, height))
        draw(figure)
        return inline(title, figure)


def inline(title: str, figure: Figure) -> str:
    """The same of a figure that is drawn in `STYLE`."""
    out = io.StringIO()
    figure.savefig(out, format="svg", dpi=144, transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue()[out.getvalue().index("<svg") :]
    text = re.sub(
        r"\s*<(metadata|defs)>\s*(<style|<rdf).*?</\1>", "", text, flags=re.DOTALL
    )  # a style is the whole page's
    text = re.sub(r' id="[a-z.]+\d*_\d+"', "", text)  # other plots on the page have the same
    for drawn, shown in COLOURS.values():
        text = text.replace(drawn, shown)
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font: \1px system-ui, sans-serif", text)
    text = re.sub(
        r'(<svg [^>]*?)width="([\d.]+)pt" height="([\d.]+)pt"', r'\1role="img" width="\2" height="\3"', text, count=1
    )
    head, _, rest = text.partition(">")
    return f'<div class="picture">{head}>\n <title>{html.escape(title)}</title>{rest}</div>\n'


_LIGHT = "text-base:#1f2328;text-muted:#59636e;border:#d1d9e0;faster:#0b7a6f;slower:#a5560d"
_DARK = "text-base:#e6edf3;text-muted:#9198a1;border:#3d444d;faster:#4fd1c2;slower:#f0a872"


def standalone(title: str, draw: Any, width: float = 6.0, height: float = 3.0) -> str:
    """The same as a file, whose colours are those of the reader's light or dark mode."""
    text = re.sub(r"</?div.*?>\n?", "", plot(title, draw, width, height))
    text = re.sub(r"var\(--(?:pst-color|site)-", "var(--", text)
    light, dark = (re.sub(r"(^|;)", r"\1--", colours) for colours in (_LIGHT, _DARK))
    style = f"<style>svg{{{light}}}@media(prefers-color-scheme:dark){{svg{{{dark}}}}}</style>"
    return text.replace("</title>", f"</title>{style}", 1)

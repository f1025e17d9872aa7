"""The tutorials, `docs/tutorials/*.py`: sphinx-gallery runs them when the site is built, and writes `docs/learn`.

Names of functions stand for them in `CONF`, as its worker processes do not read `docs/conf.py`.
"""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import indent
from typing import Any

from .pictures import STYLE, inline

__all__ = ["CONF", "ORDER", "head", "order", "reset", "scrape"]

#: What a reader goes through, in this order: the names of the files.
ORDER = ("gradients", "digits", "placement", "resuming", "kernel")

CONF: dict[str, Any] = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "learn",
    "filename_pattern": "",  # all are run
    "run_stale_examples": True,  # at each build: what they show is what this version does
    "abort_on_example_error": True,
    "parallel": 2,  # in processes of their own
    "within_subsection_order": "tools.site.gallery.order",
    "reset_modules": ("matplotlib", "tools.site.gallery.reset"),
    "image_scrapers": ("tools.site.gallery.scrape",),
    "capture_repr": ("_repr_html_",),
    "remove_config_comments": True,
    "first_notebook_cell": "# once, in a clone of tritensor: pip install '.[native,examples]'",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "inspect_global_variables": False,
}


def order(name: str) -> int:
    """The place of a tutorial; one that is not listed is an error."""
    return ORDER.index(Path(name).stem)


def reset(conf: dict[str, Any], name: str) -> None:
    """Begin a tutorial as a new process would, in the style of the site."""
    from matplotlib import pyplot

    import tritensor

    pyplot.rcParams.update(STYLE)
    colours = [*pyplot.rcParams["axes.prop_cycle"].by_key()["color"], "#c4529b", "#7f8c99"]
    pyplot.rcParams.update(
        {"axes.prop_cycle": pyplot.cycler(color=colours), "figure.figsize": (9, 3.5), "font.size": 11}
    )
    tritensor.set_default_device(None)
    tritensor.set_default_dtype(tritensor.float32)
    tritensor.set_grad_enabled(True)
    tritensor.manual_seed(0)


def scrape(block: Any, variables: dict[str, Any], conf: dict[str, Any]) -> str:
    """The figures of a cell, as pictures in the colours of the page; their PNG files become thumbnails."""
    from matplotlib import pyplot

    shown = []
    for number, path in zip(pyplot.get_fignums(), variables["image_path_iterator"]):
        figure = pyplot.figure(number)
        figure.savefig(path, dpi=100)
        titles = [figure.get_suptitle(), *(axes.get_title() for axes in figure.axes)]
        shown.append(inline(", ".join(filter(None, titles)) or "A plot", figure))
    pyplot.close("all")
    # on a narrow screen they scroll, also by the keyboard
    text = "".join(shown).replace('class="picture"', 'class="picture drawn" tabindex="0"')
    return f"\n.. raw:: html\n\n{indent(text, '    ')}\n" if shown else ""


def head(app: Any, page: str, source: list[str]) -> None:
    """Write the files of a tutorial and its time below the title, not in a note above and a list at the end."""
    body, found, rest = source[0].partition("\n.. rst-class:: sphx-glr-timing\n")
    took = re.search(r"\((\d+) minutes ([\d.]+) seconds", rest)
    if page.startswith("learn/") and found and took:
        seconds = 60 * int(took[1]) + float(took[2])
        name = page.rpartition("/")[2]
        files = f":download:`Jupyter notebook <{name}.ipynb>` · :download:`Python script <{name}.py>`"
        line = f"\n.. rst-class:: told\n\n{files} · took {seconds:.1f} s when this site was built\n"
        body = body[body.index(".. rst-class:: sphx-glr-example-title") :]
        source[0] = re.sub(r"\n===+\n", rf"\g<0>{line}", body, count=1)

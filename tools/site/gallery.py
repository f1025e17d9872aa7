"""The tutorials, `docs/tutorials/*.py`: sphinx-gallery runs them, in processes of its own, and writes `docs/learn`."""

from __future__ import annotations

import re
from textwrap import indent
from typing import Any

from .pictures import STYLE, inline

__all__ = ["CONF", "ORDER", "head", "reset", "scrape"]

ORDER = ("gradients.py", "digits.py", "placement.py", "resuming.py", "kernel.py")
# the last one leaves PyTorch's name in its process
ORDER += ("compiling.py", "pipeline.py", "profiling.py", "fine_tuning.py")
CONF: dict[str, Any] = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "learn",
    "filename_pattern": "",  # all are run
    "parallel": 2,
    "thumbnail_size": (480, 200),
    "within_subsection_order": ORDER.index,
    "reset_modules": ("matplotlib", f"{__name__}.reset"),
    "image_scrapers": (f"{__name__}.scrape",),
    "capture_repr": ("_repr_html_",),
    "first_notebook_cell": "# once, in a clone of tritensor: pip install '.[native,examples]'",
    **dict.fromkeys(("run_stale_examples", "abort_on_example_error", "remove_config_comments"), True),
    **dict.fromkeys(("download_all_examples", "show_signature", "write_computation_times"), False),
}
_COLOURS = "cycler('color', ['#0f9d8f', '#d9822b', '#5b6ee1', '#c4529b', '#7f8c99'])"
_STYLE = {**STYLE, "axes.prop_cycle": _COLOURS, "figure.figsize": (9, 3.5), "font.size": 11}


def reset(conf: dict[str, Any], name: str) -> None:
    """Begin a tutorial as a new process would, in the style of the site."""
    from matplotlib import rcParams

    import tritensor

    rcParams.update(_STYLE)
    tritensor.set_default_device(None)
    tritensor.manual_seed(0)


def scrape(block: Any, variables: dict[str, Any], conf: dict[str, Any]) -> str:
    """The figures of a cell, as pictures in the colours of the page; their PNG files become thumbnails."""
    from matplotlib import pyplot

    text = ""
    for number, path in zip(pyplot.get_fignums(), variables["image_path_iterator"]):
        figure = pyplot.figure(number)
        figure.savefig(path)
        titles = filter(None, (figure.get_suptitle(), *(axes.get_title() for axes in figure.axes)))
        text += inline(", ".join(titles) or "A plot", figure).replace('picture"', 'picture drawn" tabindex="0"', 1)
    pyplot.close("all")
    return text and f"\n.. raw:: html\n\n{indent(text, '    ')}\n"


def head(app: Any, page: str, source: list[str]) -> None:
    """Write the files and the time of a tutorial below its title, not in a note above and a list at the end."""
    body, found, rest = source[0].partition("\n.. rst-class:: sphx-glr-timing\n")
    if page.startswith("learn/") and found:
        seconds = float(re.findall(r"([\d.]+) seconds", rest)[0])
        files = f":download:`Jupyter notebook <{page[6:]}.ipynb>` · :download:`Python script <{page[6:]}.py>`"
        line = f"\n.. rst-class:: told\n\n{files} · took {seconds:.1f} s when this site was built\n"
        source[0] = re.sub(r"\n===+\n", rf"\g<0>{line}", body[body.index(".. rst-class::") :], count=1)

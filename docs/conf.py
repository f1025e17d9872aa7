"""How Sphinx makes the site: `make docs`. All that a page needs is part of the site, so that it works offline."""

from __future__ import annotations

import logging
import os
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from sphinx import addnodes  # noqa: E402
from sphinx.util.inspect import stringify_signature  # noqa: E402
from sphinx.util.nodes import find_pending_xref_condition  # noqa: E402

import tritensor  # noqa: E402
from tools import site  # noqa: E402
from tools.site import functions, gallery, parameters, subjects  # noqa: E402

project = "tritensor"
author = "tritensor maintainers"
project_copyright = "tritensor maintainers; Apache-2.0"
release = tritensor.__version__
version = release
language = "en"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "tools.site.mermaid",
    "sphinx_gallery.gen_gallery",
    "tools.site.drawings",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["programs/**", "tutorials/**", "_templates/**"]
sphinx_gallery_conf = gallery.CONF  # the tutorials
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]  # functions in this file

# A toctree takes pages by a pattern where they may be missing, as in a checkout of a part.
logging.getLogger("sphinx.sphinx.directives.other").addFilter(lambda record: "toctree glob pattern" not in record.msg)

# ---- text ----------------------------------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "attrs_inline", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
# A single backtick in a docstring is code, as in the pages.
default_role = "code"
highlight_language = "python"
pygments_style = "a11y-high-contrast-light"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

# ---- docstrings ----------------------------------------------------------------------------------------------------

napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]  # as text: `:members:` makes the entries
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"undoc-members": False}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 180
add_module_names = False
nitpicky = True
# Types of others, private ones, and names of annotations that only a type checker resolves: no page can be meant.
nitpick_ignore_regex = [("py:.*", r"(?!tritensor\.(nn|optim|cuda|autograd|utils\.data|distributions)\.\w+$).*")]

# ---- links ---------------------------------------------------------------------------------------------------------

linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_anchors = False
linkcheck_ignore = [r"[\w./]+\.html(#.*)?$"]  # of tutorials to pages of the site: the tests follow them

# ---- the site ------------------------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "tritensor"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_context = {"default_mode": "auto", "subjects": subjects.sidebar()}
html_favicon = "_static/favicon.svg"
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {"index": [], "operators/*": ["operators.html"]}
html_theme_options: dict[str, Any] = {
    "logo": {"text": "tritensor", "image_light": "_static/favicon.svg", "image_dark": "_static/favicon.svg"},
    "show_nav_level": 1,
    "navigation_depth": 2,
    "collapse_navigation": True,
    "show_prev_next": False,
    "header_links_before_dropdown": 5,
    "navbar_start": ["navbar-logo", "version-switcher"],
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    # The list of the published versions. The workflow sets its address; the copy here holds this version alone.
    "switcher": {
        "json_url": os.environ.get("DOCS_SWITCHER", "/_static/switcher.json"),
        "version_match": os.environ.get("DOCS_VERSION", "dev"),
    },
    "check_switcher": False,
}


def mend_signature(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, result: str | None
) -> Any:
    """Parameters are those for callers. Defaults without a name are `...`: their address in memory is of no use."""
    if name in functions.documented():
        shown = parameters.visible(obj, name.startswith("tritensor.Tensor."))
        signature, _, result = stringify_signature(shown, unqualified_typehints=True).partition(" -> ")
    return (re.sub(r"<[\w. ]+>", "...", signature), result) if signature else None


def mend_docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Operators have all their parameters, exceptions a line each. Outside of code an asterisk, an underscore at the
    end of a name and a bar are what they are, not markup."""
    if name in functions.documented():
        lines[:] = parameters.completed(*functions.documented()[name], lines)
    lines[:] = parameters.raises(lines)
    code = False
    for place, line in enumerate(lines):
        code = line.lstrip().startswith(">>>") or (code and bool(line.strip()))
        if not code:
            parts = re.split(r"(``.*?``|`[^`]*`)", line)
            lines[place] = "".join(part if part[:1] == "`" else re.sub(r"([*|]|_\b)", r"\\\1", part) for part in parts)


def mend_bases(app: Any, name: str, obj: Any, options: Any, bases: list[Any]) -> None:
    """In the place of a base that is not public stands the nearest one of its own that is."""
    found = [next((each for each in base.__mro__ if is_public(each)), None) for base in obj.__bases__]
    bases[:] = [base for base in dict.fromkeys(found) if base is not None] or [object]


def mend_types(app: Any, doctree: Any) -> None:
    """Of the types in signatures Tensor is a link; to look for the others took a seventh of the time."""
    for node in list(doctree.findall(addnodes.pending_xref)):
        if node.get("refdomain") == "py" and "refspecific" in node and node["reftype"] in ("class", "obj", "exc"):
            if node["reftarget"] == "Tensor":
                node["reftarget"] = "tritensor.Tensor"
                del node["refspecific"]
            elif not node["reftarget"].startswith("tritensor."):
                short = find_pending_xref_condition(node, "resolved")
                node.replace_self((node if short is None else short).children)


def is_public(kind: type) -> bool:
    """Whether a base has a page, here or in Python's documentation."""
    home, name = kind.__module__, kind.__name__
    if not home.startswith("tritensor"):
        return kind is not object
    room = sys.modules.get(".".join(home.split(".")[:2]))
    return not name.startswith("_") and getattr(room, name, None) is kind


def setup(app: Any) -> None:
    """Write the pages that are made from the package, then read all."""
    site.write(HERE)
    app.connect("autodoc-process-signature", mend_signature)
    app.connect("autodoc-process-docstring", mend_docstring, priority=100)
    app.connect("autodoc-process-bases", mend_bases)
    app.connect("doctree-read", mend_types)
    app.connect("source-read", gallery.head)

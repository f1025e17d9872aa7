"""The older names of modules that moved, which a pickle may have: Python finds a pickled function or class by the name
of its module."""

from __future__ import annotations

import sys

_PACKAGE = __name__.partition(".")[0]
_FUNCTIONAL = f"{_PACKAGE}.functional"
# Modules that stood at the top of the package, by the folder in which they are.
_MOVED = {
    "types": "devices dtypes formats size",
    "tensors": "history host_access printing tensor",
    "host": "threads",
    "operators": "autocasting function generators inplace outputs",
    "functional.random": "sampling",
}
# Modules of `functional` that are part of others.
_MERGED = {
    "choices": "functional.views.joining",
    "gamma": "functional.elementwise.powers",
    "gradcheck": "operators.gradcheck",
    "properties": "functional.creation.predicates",
    "uniqueness": "functional.indexing.search",
}


def answer_to_former_names() -> None:
    """Let `pickle` find the modules of `functional` and of `_MOVED` by the names that they had; takes 0.2 ms.

    They have to be imported.
    """
    for folder, names in _MOVED.items():
        for name in names.split():
            sys.modules.setdefault(f"{_PACKAGE}.{name}", sys.modules[f"{_PACKAGE}.{folder}.{name}"])
    sys.modules.setdefault(f"{_PACKAGE}.linalg.old_solving", sys.modules[f"{_PACKAGE}.linalg.old_names"])
    for name, full in _MERGED.items():
        sys.modules.setdefault(f"{_FUNCTIONAL}.{name}", sys.modules[f"{_PACKAGE}.{full}"])
    for full in [full for full in sys.modules if full.startswith(f"{_FUNCTIONAL}.")]:
        module, (folder, _, name) = sys.modules[full], full.rpartition(".")
        if folder != _FUNCTIONAL:
            former = sys.modules.setdefault(f"{_FUNCTIONAL}.{name}", module)
            if former.__name__ == folder:  # of `views.views`: the folder has the name that the module had
                for key, value in vars(module).items():
                    if getattr(value, "__module__", None) == full:
                        vars(former).setdefault(key, value)

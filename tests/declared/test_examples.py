"""Examples in the docstrings of declarations run, as those of functions do: doctest does not find them by itself."""

from __future__ import annotations

import doctest

import pytest

from tritensor.operators import Operator, registry

WITH_EXAMPLES = sorted(
    (operator for operator in registry.values() if ">>>" in (operator.__doc__ or "")),
    key=lambda operator: operator.name,
)


def test_there_are_examples() -> None:
    assert {"argmax", "mean", "sum"} <= {operator.name for operator in WITH_EXAMPLES}


@pytest.mark.parametrize("operator", WITH_EXAMPLES, ids=lambda operator: operator.name)
def test_example(operator: Operator) -> None:
    example = doctest.DocTestParser().get_doctest(operator.__doc__ or "", {}, operator.name, None, 0)
    printed: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).run(
        example, out=printed.append
    )
    assert result.attempted and not result.failed, "".join(printed)

"""Columns and tables of pandas, Polars and PyArrow as tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as torch

pytestmark = pytest.mark.peer

DTYPES = ["uint8", "int8", "int16", "int32", "int64", "float32", "float64"]


def pandas() -> Any:
    return pytest.importorskip("pandas")


def polars() -> Any:
    return pytest.importorskip("polars")


def pyarrow() -> Any:
    return pytest.importorskip("pyarrow")


COLUMNS: dict[str, Callable[[np.ndarray], Any]] = {
    "pandas.Series": lambda array: pandas().Series(array, index=[5, 6, 7]),
    "pandas.Series, nullable": lambda array: pandas().Series(array, dtype=array.dtype.name.title().replace("Ui", "UI")),
    "pandas.Series of PyArrow": lambda array: pandas().Series(pandas().array(array, dtype=f"{array.dtype}[pyarrow]")),
    "pandas.Index": lambda array: pandas().Index(array),
    "pandas.DataFrame": lambda array: pandas().DataFrame({"a": array, "b": array}),
    "polars.Series": lambda array: polars().Series(array),
    "polars.DataFrame": lambda array: polars().DataFrame({"a": array, "b": array}),
    "pyarrow.Array": lambda array: pyarrow().array(array),
    "pyarrow.ChunkedArray": lambda array: pyarrow().chunked_array([array, array]),
    "pyarrow.Table": lambda array: pyarrow().table({"a": array, "b": array}),
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_column_is_a_tensor_of_its_dtype(kind: str, dtype: str, device: str) -> None:
    array = np.array([1, 2, 4], dtype)
    data = COLUMNS[kind](array)
    expected = {1: array, 2: np.stack((array, array), 1)}[2 if "Frame" in kind or "Table" in kind else 1]
    if "Chunked" in kind:
        expected = np.concatenate((array, array))
    for made in (torch.tensor(data, device=device), torch.as_tensor(data, device=device)):
        assert made.dtype is getattr(torch, dtype) and str(made.device) == device
        np.testing.assert_array_equal(made.cpu().numpy(), expected)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "pandas Int64": (lambda: pandas().Series([1, None], dtype="Int64"), "1 of its values are missing"),
    "pandas boolean": (lambda: pandas().Series([True, None], dtype="boolean"), "1 of its values are missing"),
    "pandas PyArrow": (lambda: pandas().Series([1, None, None], dtype="float32[pyarrow]"), "2 of its values"),
    "pandas table": (lambda: pandas().DataFrame({"a": [1, 2], "b": pandas().array([1, None])}), "1 of its values"),
    "pandas text": (lambda: pandas().Series(["a", "b"]), "an element 'a'"),
    "pandas categories": (lambda: pandas().Series(["a", "b"], dtype="category"), "an element 'a'"),
    "pandas table with text": (lambda: pandas().DataFrame({"a": [1], "b": ["x"]}), "an element 'x'"),
    "pandas objects": (lambda: pandas().Series([1, None], dtype=object), "an element None"),
    "pandas dates": (lambda: pandas().Series(pandas().date_range("2020", periods=2)), "type datetime64"),
    "Polars": (lambda: polars().Series([1, None]), "1 of its values are missing"),
    "Polars table": (lambda: polars().DataFrame({"a": [1, None], "b": [None, 1.0]}), "2 of its values are missing"),
    "Polars text": (lambda: polars().Series(["a", "b"]), "an element 'a'"),
    "PyArrow": (lambda: pyarrow().array([1, None]), "1 of its values are missing"),
    "PyArrow chunks": (lambda: pyarrow().chunked_array([[1, None], [3]]), "1 of its values are missing"),
    "PyArrow table": (lambda: pyarrow().table({"a": [1, 2], "b": [None, 1]}), "1 of its values are missing"),
    "PyArrow text": (lambda: pyarrow().array(["a"]), "an element 'a'"),
    "PyArrow decimals": (lambda: pyarrow().array([1]).cast(pyarrow().decimal128(20)), r"an element Decimal\('1'\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_missing_values_and_text_are_refused(name: str) -> None:
    make, words = REFUSED[name]
    data = make()
    for function in (torch.tensor, torch.as_tensor):
        with pytest.raises((RuntimeError, TypeError), match=words):
            function(data)


def test_memory_is_shared_and_belongs_to_the_column() -> None:
    for data in (pandas().Series([1.0, 2.0]), polars().Series([1.0, 2.0]), pyarrow().array([1.0, 2.0])):
        made = torch.as_tensor(data)
        assert np.shares_memory(made.numpy(), np.asarray(data))
        with pytest.raises(RuntimeError, match="read-only"):
            made.zero_()
        torch.tensor(data).zero_()
        assert made.tolist() == [1, 2]


def test_a_column_that_pytorch_takes_has_the_dtype_that_pytorch_gives_it() -> None:
    reference = pytest.importorskip("torch")
    for dtype in (*DTYPES, "bool"):
        series = pandas().Series([1, 0, 1], dtype=dtype)
        ours, theirs = torch.tensor(series), reference.tensor(series)
        assert str(ours.dtype).partition(".")[2] == str(theirs.dtype).partition(".")[2]
        assert ours.tolist() == theirs.tolist()


def test_a_table_trains_a_model() -> None:
    table = pandas().DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "more": [1, 0, 1, 0], "y": [1.0, 3.0, 5.0, 7.0]})
    data = torch.utils.data.TensorDataset(
        torch.as_tensor(table[["x", "more"]], dtype=torch.float32), torch.as_tensor(table["y"], dtype=torch.float32)
    )
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=50)
    x, y = data[:]

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = torch.nn.functional.mse_loss(model(x)[:, 0], y)
        value.backward()
        return value

    optimizer.step(loss)
    assert loss().item() < 1e-6

"""The pages that are made from the package and from the figures: what is on them, and what is kept off them."""

from __future__ import annotations

import doctest
import inspect
import io
import json
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import tritensor
from benchmarks import budgets, table
from benchmarks.compare import RESULTS, duration
from tools.site import (
    api,
    charts,
    figures,
    functions,
    mermaid,
    operators,
    parameters,
    programs,
    sources,
    subjects,
    versions,
    write,
)
from tritensor import nn
from tritensor.operators import registry

ROOT = Path(__file__).resolve().parents[2]


@cache
def pages() -> dict[str, str]:
    return dict(operators.pages())


def examples(text: str) -> str:
    """The sessions on a page."""
    return "\n".join(line.strip() for line in text.split("\n") if line.startswith("   ")) if ">>>" in text else ""


@pytest.mark.thorough
def test_every_public_function_of_tensors_has_a_page() -> None:
    named = {name for each in functions.functions() for name in (each.shown, *each.also, *each.in_place)}
    for space, module in (("torch", tritensor), ("F", nn.functional), ("torch.linalg", tritensor.linalg)):
        public = {name for name in module.__all__ if functions._is_function(getattr(module, name))}
        missing = {name for name in public if f"{space}.{name}" not in named}
        assert {name for name in missing if not functions.SETTINGS.search(name)} == set()
    assert {"torch.absolute", "Tensor.abs_", "F.relu", "Tensor.expand", "torch.special.expit"} <= named
    assert not {"torch.absolute.rst", "torch.arctan2.rst", "torch.special.expit.rst", "torch.abs_.rst"} & set(
        pages()
    )  # other names of these
    listing = {"index.rst", "names.rst", *(f"subject-{each['name']}.rst" for each in subjects.TABLE["subjects"])}
    assert set(pages()) == listing | {f"{each.shown}.rst" for each in functions.functions()}


def test_internal_operators_have_no_page() -> None:
    inner = {"bent_error", "add_scaled", "average", "relu_gradient", "copy", "max_pool_backward", "squared_error"}
    made = pages()  # imports what declares them
    assert inner <= set(registry)
    assert [name for name in made if name.removesuffix(".rst").rpartition(".")[2] in inner] == []
    assert [name for name in inner if re.search(rf"[.`]{name}`", made["index.rst"])] == []


def test_every_page_has_an_example() -> None:
    """In the docstring, which the doctests run, or on the page, where running it made it."""
    bare = [
        each.shown
        for each in functions.functions()
        if ">>>" not in pages()[f"{each.shown}.rst"] and ">>>" not in (each.value.__doc__ or "")
    ]
    assert bare == ["Tensor.cuda", "Tensor.pin_memory", "Tensor.record_stream"]  # which need a device


def test_pages_tell_the_shapes_of_their_example() -> None:
    assert "For example (8, 3, 7, 7), (4, 3, 3, 3) → (8, 4, 7, 7)" in pages()["torch.conv2d.rst"]  # of the docstring
    assert "For example (2, 2), (2, 2) → ()" in pages()["F.huber_loss.rst"]
    assert "the result has (4,)" in pages()["torch.arange.rst"]
    names = [f"{each.shown}.rst" for each in functions.functions()]
    without = [name for name in names if "   * - Shapes\n" not in pages()[name]]
    assert len(without) <= 10, without  # which have none: hooks, numbers, devices


@pytest.mark.parametrize("name", ["F.huber_loss", "torch.std_mean", "Tensor.register_hook", "torch.special.zeta"])
def test_an_example_prints_what_the_page_says(name: str) -> None:
    text = pages()[f"{name}.rst"]
    session = re.search(r"code-block:: pycon\n\n(.*?)\n\n[^ ]", text + "\n\nend", re.DOTALL)
    assert session is not None
    example = doctest.DocTestParser().get_doctest(session[1] + "\n", {}, name, name, 0)
    assert len(example.examples) >= 3
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example).failed == 0


def test_a_page_shows_the_declaration() -> None:
    text = pages()["F.silu.rst"]
    assert ".. autofunction:: tritensor.nn.functional.silu\n" in text
    assert "**NumPy reference**" in text and "**Triton kernel**" in text
    assert "def silu(x: np.ndarray):" in text and "silu.kernel(lambda x: " in text and "silu.gradient(" in text
    assert re.search(r"tritensor/kernels/elementwise/activations.py:\d+", text)
    add = pages()["torch.add.rst"]
    assert "np.add" in add and "``Tensor.add_``" in add and ".. py:method:: tritensor.Tensor.add_(other" in add
    assert "takes a tensor for the result" in add and "not taken" in text
    assert "``float32``, ``float64``, ``complex64``, ``complex128``: the same" in add
    argmax = pages()["torch.argmax.rst"]
    assert "     - no\n" in argmax and "``int64``" in argmax
    assert "family *fourier*" in operators.page(_fourier(), {})


def _fourier() -> functions.Function:
    return next(each for each in functions.functions() if each.shown == "torch.fft.fft")._replace(
        own=registry["fft_c2c"], operators=(registry["fft_c2c"],)
    )


def test_a_composition_names_its_operators() -> None:
    text = pages()["F.huber_loss.rst"]
    assert "Operators that it calls: :doc:`torch.sum`, :doc:`torch.mean`." in text
    assert "Of the operator behind it:" in text and "def bent_error(" in text
    assert "Of :doc:`torch.cat`:" in pages()["torch.stack.rst"]
    assert "Composed of other functions" in pages()["torch.reshape.rst"]


def test_every_operator_has_a_text_of_reference_and_kernel() -> None:
    for operator in registry.values():
        assert sources.reference_of(operator) is not None, operator.name
        assert sources.kernels_of(operator) or operator.family in operators.HOSTED, operator.name
        assert bool(sources.gradients_of(operator)) == operator.differentiable, operator.name


def test_families_are_described() -> None:
    assert {operator.family for operator in registry.values()} == set(operators.FAMILIES)


def test_every_module_with_public_names_is_in_the_reference() -> None:
    modules = {name for name in tritensor.__all__ if inspect.ismodule(getattr(tritensor, name))}
    assert modules == {name.partition(".")[0] for name in api.MODULES} & modules | set(api.ELSEWHERE)
    made = dict(api.pages())
    assert {"index.rst", "torch.rst", "Tensor.rst", "nn.rst", "nn.Linear.rst", "optim.Adam.rst", "cuda.rst"} <= set(
        made
    )
    assert ".. autoclass:: tritensor.nn.Linear" in made["nn.Linear.rst"]
    assert ".. autofunction:: tritensor.set_num_threads" in made["torch.rst"]
    assert ".. autoattribute:: tritensor.Tensor.grad" in made["Tensor.rst"]
    assert ":doc:`abs </operators/torch.abs>`" in made["Tensor.rst"]


# ---- parameters ----------------------------------------------------------------------------------------------------


def test_every_parameter_is_described_and_every_text_is_used() -> None:
    used = set()
    for shown, value in functions.documented().values():
        names = list(parameters.visible(value, shown.startswith("Tensor.")).parameters)
        described = parameters.described(shown, value)  # KeyError for a parameter without a text
        of = {name: text for head, text in described.items() for name in re.findall(r"\w+", head)}
        assert of.keys() == set(names) and all(text.strip() for text in of.values()), shown
        places = [min(map(names.index, re.findall(r"\w+", head))) for head in described]
        assert places == sorted(places), shown
        own = parameters.documented((inspect.getdoc(value) or "").split("\n"), names)
        told = set(re.findall(r"\w+", " ".join(own)))
        used |= {(parameters.text_of(shown, name)[0], name) for name in names if name not in told}
    tables = enumerate(parameters.table("parameters")["parameters"])
    assert {(number, name) for number, texts in tables for name in texts if name != "of"} == used


def test_parameters_that_no_caller_passes_are_hidden() -> None:
    inner = {"older", "others", "kwargs", "options"}
    for shown, value in functions.documented().values():
        names = set(parameters.visible(value).parameters)
        hidden = {name for name in names if name.startswith("_")} | (names & inner - {"options"})
        assert hidden == set() and ("options" not in names or shown == "F.linear_cross_entropy"), shown
    text = "\n".join(pages().values())
    entries = re.findall(r"^.. py:\w+:: (.*)$", text, re.MULTILINE)
    assert entries and not [each for each in entries if re.search(r"[(, ]\**(_\w+|older|others|kwargs)\b", each)]
    layers = list(parameters.visible(tritensor.lstm).parameters)
    assert layers[:3] == ["input", "hx", "params"] and layers[-1] == "batch_first"
    assert str(parameters.visible(tritensor.Tensor.new_ones, method=True)).startswith("(*sizes: 'Any', dtype:")
    assert "requires_grad: 'bool' = False" in str(parameters.visible(tritensor.Tensor.new_ones))


def test_docstrings_are_completed() -> None:
    lines = (inspect.getdoc(tritensor.softmax) or "").split("\n")
    made = list(parameters.raises(parameters.completed("torch.softmax", tritensor.softmax, lines)))
    start, end = made.index("Args:"), made.index("Raises:")
    assert [line.split(":")[0].strip() for line in made[start + 1 : end] if line] == ["input", "dim", "dtype", "out"]
    assert "    dtype: convert the input to this dtype first." in made  # the docstring's
    raised = [line.split(":")[0] for line in made[end + 1 :] if line]
    assert raised == ["    DtypeError", "    RangeError", "    ArgumentError"]
    plain = parameters.completed("torch.exp", tritensor.exp, ["e to the power x."])
    assert plain[:3] == ["e to the power x.", "", "Args:"] and len(plain) == 6
    assert parameters.completed("Tensor.dim", tritensor.Tensor.dim, ["The rank."]) == ["The rank."]


def test_each_exception_is_on_a_line() -> None:
    lines = ["Raises:", "    ShapeError, DtypeError: one (two). ValueError: three", "    four. KeyError: five."]
    made = ["    ShapeError: one (two).", "    DtypeError: one (two).", "    ValueError: three four."]
    assert list(parameters.raises([*lines, "", "end"])) == ["Raises:", *made, "    KeyError: five.", "", "end"]
    other = ["Raises:", "    whatever is raised.", "end"]
    assert list(parameters.raises(other)) == other and list(parameters.raises(["text"])) == ["text"]


# ---- subjects and drawings -----------------------------------------------------------------------------------------


def test_every_function_has_one_subject() -> None:
    listed = [each.shown for found in subjects.subjects().values() for each in found]
    assert len(listed) == len(set(listed)) and set(listed) == {each.shown for each in functions.functions()}
    assert min(map(len, subjects.subjects().values())) >= 5
    assert all(
        f" <{each.shown}>`" in pages()["index.rst"] and f"\n   {each.shown}\n" in pages()[f"subject-{name}.rst"]
        for name, found in subjects.subjects().items()
        for each in found
    )
    assert ":doc:`absolute <torch.abs>`" in pages()["names.rst"]


@pytest.mark.parametrize("places", ["", "* kernels.*"])
def test_no_subject_and_two_subjects_are_refused(places: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"subjects": [{"name": str(number), "of": places} for number in range(2)]}
    monkeypatch.setattr(subjects, "TABLE", table)
    with pytest.raises(ValueError, match="subjects of"):
        subjects.subject_of.__wrapped__(functions.functions()[0])


def test_pages_refer_to_others() -> None:
    for each in functions.functions():
        found = subjects.related(each)
        assert 1 <= len(found) <= 6 and each not in found, each.shown
    named = {each.shown: each for each in functions.functions()}
    known = {each.shown.removeprefix("torch.") for each in named.values()}
    assert {name for group in subjects._TOGETHER for name in group} <= known

    def of(shown: str) -> list[str]:
        return [each.shown.removeprefix("torch.") for each in subjects.related(named[shown])]

    assert {"nansum", "cumsum", "mean"} <= set(of("torch.sum")) and "fft.ifft" in of("torch.fft.fft")
    assert "linalg.inv" in of("torch.linalg.solve") and "tensor_split" in of("torch.dsplit")
    layers = {"torch.softmax": "Softmax", "torch.conv2d": "Conv2d", "F.gelu": "GELU", "torch.lstm": "LSTM"}
    layers |= {"F.mse_loss": "MSELoss", "F.binary_cross_entropy": "BCELoss", "torch.batch_norm": "BatchNorm2d"}
    assert {shown: subjects.layer_of(named[shown]) for shown in layers} == layers
    assert subjects.layer_of(named["torch.sum"]) is None
    assert ":doc:`torch.cumsum`" in pages()["torch.sum.rst"]
    assert "the layer :doc:`nn.Conv2d </reference/nn.Conv2d>`" in pages()["torch.conv2d.rst"]


@pytest.mark.thorough
def test_drawings() -> None:
    drawings = pytest.importorskip("tools.site.drawings", reason="plots need matplotlib")
    drawn = {each.shown: drawings.drawing(each) for each in functions.functions()}
    curves = {name for name, text in drawn.items() if "</title>" in text}
    cells = {name for name, text in drawn.items() if 'class="picture cells"' in text}
    assert len(curves) >= 90 and len(cells) >= 150 and not curves & cells
    for name in ("exp", "special.bessel_j0", "special.legendre_polynomial_p", "erfinv", "floor", "relu"):
        assert f"torch.{name}" in curves
    assert not curves & {"torch.positive", "torch.dropout", "torch.add", "torch.isnan", "F.gumbel_softmax"}
    assert "and its derivative" in drawn["torch.exp"] and "derivative" not in drawn["torch.special.airy_ai"]
    for name in ("transpose", "unfold_copy", "sum", "cumsum", "conv2d", "max_pool2d", "gather", "matmul", "cat"):
        assert f"torch.{name}" in cells
    assert not cells & {"torch.exp", "torch.clone", "torch.linalg.det", "torch.rand"}
    filled = drawn["torch.sum"].count("fill-opacity"), drawn["torch.sum"].count("stroke-width:3")
    assert filled == (5, 5)  # a row of four, and its sum
    assert drawn["torch.conv2d"].count("fill-opacity") == 10 and "torch.transpose(x, 0, 1)" in drawn["torch.transpose"]
    assert sum(map(len, drawn.values())) < 3_000_000


def test_escaped_sentences() -> None:
    assert operators.escaped("a * b_ | `x * y` end") == "a \\* b\\_ \\| ``x * y`` end"
    assert operators.escaped("one ` alone") == "one ' alone"


# ---- figures -------------------------------------------------------------------------------------------------------


@cache
def figures_of(name: str) -> str:
    """A page of figures."""
    return figures.PAGES[name]()


def drawn(text: str) -> list[str]:
    """The plots of a page: what each says it shows."""
    assert text.count("<svg ") == text.count('role="img"')
    return re.findall(r"<svg [^>]*>\s*<title>(.*?)</title>", text)


@pytest.mark.thorough
def test_figures_are_the_stored_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = json.loads((RESULTS / "cpu.json").read_text(encoding="utf-8"))
    text = figures_of("cpu")
    for name, case in stored["cases"].items():
        assert f'id="{name}"' in text
        for entry in case["speed"].values():
            assert f">{table.cell(entry)}<" in text and duration(entry["theirs_us"]) in text
    assert stored["machine"]["processor"] in text and stored["commit"][:10] in text
    assert all(f"{name} {version}" in text for name, version in stored["versions"].items())
    assert drawn(text) == ["Ratios of all rows"] and "short" not in text.lower()

    stored["cases"]["add_10"]["speed"]["numpy"]["ratio"] = 123.456
    stored["cases"]["add_10"]["accuracy"]["accurate"] = False
    (tmp_path / "cpu.json").write_text(json.dumps(stored))
    monkeypatch.setattr(table, "RESULTS", tmp_path)
    assert ">123.46 of " in figures.PAGES["cpu"]() and "<b>inaccurate</b>" in figures.PAGES["cpu"]()
    assert ">123.46<" in figures.front()


@pytest.mark.thorough
@pytest.mark.parametrize("name", figures.PAGES)
def test_every_page_of_figures_has_plots_that_are_read_without_colour(name: str) -> None:
    text = figures_of(name)
    assert len(drawn(text)) >= 1 and len(set(drawn(text))) == len(drawn(text))
    plots = re.findall(r"<svg .*?</svg>", text, re.DOTALL)
    for plot in plots:
        assert not re.search(r"#(?!0000)[0-9a-f]{6}\b", re.sub(r'href="#.*?"', "", plot)), (
            "a colour that no mode changes"
        )
        series = {colour for colour in ("faster", "slower", "third") if f"fill: var(--site-{colour})" in plot}
        markers = set(re.findall(r'<path id="(m\w+)"', plot))
        assert len(markers) >= len(series), name  # a shape for each colour, beside those of the ticks


@pytest.mark.thorough
def test_what_is_predicted_says_so() -> None:
    text = figures_of("predicted")
    assert "Every point is predicted, none is measured" in text and "# " not in text
    assert "predicted TFLOP/s" in text and "989 TFLOP/s, bf16" in text and text.count("predicted milliseconds") == 2
    points, lines, times = budgets.roofline(table.gpu_figures()["rows"])  # type: ignore[index]
    assert min(map(len, points.values())) > 2 and len(times) > 50
    for each in points.values():  # within 2 %, which the counted bytes are rounded by
        assert all(y <= 1.02 * min(lines[0][1][1], x * lines[0][1][0] / lines[0][0][0]) for x, y in each)


def test_dots_have_their_numbers() -> None:
    text = charts.ratios("Two rows", [("a < b", {"NumPy": 2.0, "PyTorch": 0.03}), ("c" * 60, {"NumPy": 0.5})])
    assert ">2.00<" in text and ">0.03<" in text and ">1/2<" in text and "a &lt; b" in text
    assert f">{'c' * 40}…<" in text and charts.ratios("No rows", []) == ""


@pytest.mark.thorough
def test_the_page_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    text = figures_of("gpu")
    stored = table.gpu_figures()
    assert (
        stored is not None and stored["date"] in text and stored["commit"] in text and "Measured on NVIDIA H200" in text
    )
    monkeypatch.setattr(figures.table, "gpu_figures", lambda: None)
    assert "No figure of a GPU is stored" in figures.PAGES["gpu"]()
    speed = {"torch": {"ours_us": 10.0, "theirs_us": 20.0, "ratio": 2.0}, "cupy": {"error": "none"}}
    found = {"gpu": "Card", "date": "2026-01-01", "versions": {"torch": "3"}, "rows": {"copy": {"title": "x < y"}}}
    found["rows"]["copy"]["speed"] = speed  # type: ignore[index]
    monkeypatch.setattr(figures.table, "gpu_figures", lambda: found)
    text = figures.PAGES["gpu"]()
    assert "Card" in text and "torch 3" in text and "x &lt; y" in text and ">0.50<" in text and "cupy" not in text


# ---- programs -------------------------------------------------------------------------------------------------------


def test_every_example_has_its_time_its_picture_and_a_page() -> None:
    examples = pytest.importorskip("benchmarks.examples")
    stored = json.loads(examples.STORED.read_text(encoding="utf-8"))
    told = "python -m benchmarks.examples --write makes them"
    assert examples.runnable() == set(examples.EXAMPLES) == set(stored), told
    pictures = {path.stem: path for path in examples.PICTURES.iterdir()}
    assert set(pictures) == set(stored), told
    made = dict(programs.pages())
    assert set(made) == {"index.rst", *(f"{name}.rst" for name in stored)}
    for name, found in stored.items():
        head = pictures[name].read_bytes()[:24]
        assert head.startswith(b"\x89PNG") and int.from_bytes(head[16:20], "big") == examples.WIDTH
        assert pictures[name].stat().st_size <= examples.LARGEST
        assert found["command"] == f"python {examples.EXAMPLES[name][0].format(name)}", told
        took = f"{found['seconds']:.0f} s on {found['machine']['cores']} cores"
        assert took in made[f"{name}.rst"] and took in made["index.rst"]
        assert found["date"] in made[f"{name}.rst"] and found["commit"][:10] in made[f"{name}.rst"]
        assert f"   {found['command']}\n" in made[f"{name}.rst"] and f"/{name}.py\n" in made[f"{name}.rst"]


def test_pictures_are_as_wide_as_their_pages(tmp_path: Path) -> None:
    examples = pytest.importorskip("benchmarks.examples")
    from PIL import Image

    Image.effect_noise((1500, 900), 90).convert("RGBA").save(tmp_path / "noise.png")
    Image.new("L", (8, 4), 7).save(tmp_path / "small.png")
    for name, height in (("noise", 384), ("small", 320)):
        made = Image.open(io.BytesIO(examples.shrunk(tmp_path / f"{name}.png")))
        assert made.size == (640, height) and made.mode == "P"


# ---- pictures ------------------------------------------------------------------------------------------------------


def test_the_pictures_are_those_of_their_texts() -> None:
    assert list(mermaid.pictures()) and mermaid.stale() == []


def test_a_flowchart_in_graphviz() -> None:
    graph = mermaid.graph_of('flowchart TD\n a["one<br>two"] -- yes --> b{"three?"} --> c\n node --> a')
    assert '"a" [label="one\\ntwo", style=rounded];' in graph and '"b" [label="three?", shape=hexagon];' in graph
    assert '"a" -> "b" [label="yes"];' in graph and '"b" -> "c" [label=""];' in graph and '"node" -> "a"' in graph
    with pytest.raises(ValueError, match="only flowcharts"):
        mermaid.graph_of("sequenceDiagram\n a --> b")
    for line in ("a --> ((b))", 'a["x"] ? b'):
        with pytest.raises(ValueError, match="not understood"):
            mermaid.graph_of(f"flowchart TD\n {line}")


@pytest.mark.skipif(shutil.which("dot") is None, reason="needs Graphviz")
def test_a_picture_takes_the_colours_of_its_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mermaid, "DOCS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["mermaid"])
    page, picture = tmp_path / "page.md", tmp_path / "pictures" / "page-1.svg"
    page.write_text('```mermaid\nflowchart TD\n    a["x < y"] --> b\n```\n')
    assert mermaid.stale() == [picture]
    mermaid.main()
    text = picture.read_text()
    assert 'stroke="currentColor"' in text and "black" not in text and "x &lt; y" in text and "<!DOCTYPE" not in text
    monkeypatch.setattr(sys, "argv", ["mermaid", "--check"])
    with pytest.raises(SystemExit) as ended:
        mermaid.main()
    assert ended.value.code == 0
    page.write_text("no picture\n")
    with pytest.raises(SystemExit, match="stale"):
        mermaid.main()
    monkeypatch.setattr(sys, "argv", ["mermaid"])
    mermaid.main()
    assert not picture.exists()


# ---- the folder ----------------------------------------------------------------------------------------------------


def test_pages_are_written_once_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = [("operators/a.rst", "a"), ("reference/b.rst", "b"), ("benchmarks/c.rst", "c"), ("examples/d.rst", "d")]
    monkeypatch.setattr("tools.site.texts", lambda: iter(made))
    write(tmp_path)
    (tmp_path / "operators" / "old.rst").write_text("of an operator that is gone")
    before = (tmp_path / "operators" / "a.rst").stat().st_mtime_ns
    write(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*.rst")) == ["a.rst", "b.rst", "c.rst", "d.rst"]
    assert (tmp_path / "operators" / "a.rst").stat().st_mtime_ns == before
    ignored = ["docs/operators/a.rst", "docs/reference/b.rst", "docs/benchmarks/c.rst", "docs/examples/d.rst"]
    if (ROOT / ".git").exists():
        found = subprocess.run(["git", "check-ignore", *ignored], cwd=ROOT, capture_output=True, text=True, check=False)
        assert found.stdout.split() == ignored


def test_published_versions(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no folder with a site"):
        versions.write(tmp_path, "https://example.org/x")
    for name in ("dev", "0.9.0", "0.10.0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "index.html").touch()
    (tmp_path / "pictures").mkdir()  # no version
    versions.write(tmp_path, "https://example.org/x/")
    listed = json.loads((tmp_path / "switcher.json").read_text())
    assert [(each["version"], each.get("preferred")) for each in listed] == [
        ("dev", None),
        ("0.10.0", True),
        ("0.9.0", False),
    ]
    assert (
        listed[1]["url"] == "https://example.org/x/0.10.0/" and "url=0.10.0/" in (tmp_path / "index.html").read_text()
    )
    shutil.rmtree(tmp_path / "0.10.0")
    shutil.rmtree(tmp_path / "0.9.0")
    versions.write(tmp_path, "https://example.org/x")
    assert "url=dev/" in (tmp_path / "index.html").read_text()

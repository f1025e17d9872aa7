"""What a notebook shows of a tensor."""

from __future__ import annotations

import base64
import io
import re
import time
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

import tritensor as torch
from tritensor.drivers.allocator import readable
from tritensor.types import dtypes

from ..needs import needs_triton

KINDS = [kind.name for kind in dtypes.ALL]
SHAPES = [(), (0, 2), (1,), (7,), (3000,), (6, 9), (60, 50), (3, 8, 8), (2, 3, 4, 5)]


class Checked(HTMLParser):
    """Reads HTML, and fails where an element is closed that is not open."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[str] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.found.append(tag)
        if tag not in ("img", "path"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag != "path":
            assert self.open.pop() == tag


def text_of(html: str) -> str:
    """The elements that are shown."""
    return unescape(re.search("<pre[^>]*>(.*)</pre>", html, re.S).group(1))


def pixels_of(html: str) -> np.ndarray:
    """The picture that is shown, read by another library."""
    image = pytest.importorskip("PIL.Image")
    data = base64.b64decode(re.search('base64,([^"]*)', html).group(1))
    return np.asarray(image.open(io.BytesIO(data)).convert("RGB"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_dtype_and_shape(kind: str, shape: tuple[int, ...]) -> None:
    x = (torch.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).to(getattr(torch, kind))
    html = x._repr_html_()
    assert len(html) < 20_000
    assert f"{shape} · {kind} · cpu · {readable(x.nbytes)}<" in html
    shown = "".join(text_of(html).split())
    assert "".join(repr(x).split()).startswith(f"tensor({shown}")
    assert ("img" in Checked(html).found) == (shape in [(6, 9), (60, 50), (3, 8, 8)])
    assert ("svg" in Checked(html).found) == (shape in [(7,), (3000,), (2, 3, 4, 5)])


@needs_triton
@pytest.mark.parametrize("kind", ["bool", "bfloat16", "float32", "complex64"])
def test_on_a_device_only_what_is_shown_is_copied(kind: str) -> None:
    with torch.cuda.simulate():
        for shape in SHAPES:
            x = (torch.arange(np.prod(shape, dtype=int)) % 2).reshape(shape).to(getattr(torch, kind))
            assert x.to("cuda")._repr_html_().replace("cuda:0", "cpu") == x._repr_html_()
        x = torch.zeros(1000, 1000, device="cuda")
        with torch.cuda.transfers() as transfers:
            html = x._repr_html_()
    assert "(of 65,500 elements)" in html
    assert transfers.nbytes("d2h") < 350_000


def test_values_are_elided_as_repr_does() -> None:
    for x in (torch.arange(2000), torch.arange(3000.0).view(50, 60), torch.arange(50).view(5, 10), torch.tensor(3)):
        assert "".join(text_of(x._repr_html_()).split()) == "".join(repr(x)[7:-1].split())


def test_long_values_are_cut() -> None:
    shown = text_of(torch.full((2,) * 14, 1.5)._repr_html_())
    assert shown.startswith("at [0, 0, 0, 0]:\n[[[") and shown.endswith("\n...") and len(shown) < 6100
    torch.set_printoptions(profile="full")
    try:
        assert len(torch.zeros(10, 10_000)._repr_html_()) < 20_000
    finally:
        torch.set_printoptions(profile="default")


def test_statistics() -> None:
    assert "min 0 · mean 5.5 · max 11" in torch.arange(12)._repr_html_()
    assert "min 0 · mean 0.25 · max 1" in torch.tensor([True, False, False, False])._repr_html_()
    assert "magnitudes: min 1 · mean 3 · max 5" in torch.tensor([3 + 4j, 1j])._repr_html_()
    html = torch.tensor([float("nan"), 1.0, float("inf"), float("-inf"), 3.0])._repr_html_()
    assert "min 1 · mean 2 · max 3" in html and "</span> 1 NaN" in html and "</span> 2 inf" in html
    html = torch.full((3,), float("nan"))._repr_html_()
    assert "3 NaN" in html and "min" not in html and "<svg" not in html


def test_pictures() -> None:
    x = torch.linspace(0, 1, 30).repeat(20, 1)
    x[3, 4], x[5, 6] = float("nan"), float("-inf")
    grey = pixels_of(x._repr_html_())
    assert grey.shape == (20, 30, 3)
    assert grey[3, 4].tolist() == [214, 39, 40] and grey[5, 6].tolist() == [255, 152, 0]
    assert grey[0, 0].tolist() == [0] * 3 and grey[0, -1].tolist() == [255] * 3 and len(set(grey[7, 12])) == 1
    image = torch.randint(0, 255, (3, 10, 12), dtype=torch.uint8)
    image[0, 0, 0] = 7
    expected = image.permute(1, 2, 0).numpy()
    assert np.array_equal(pixels_of(image._repr_html_()), expected)
    assert np.array_equal(pixels_of((image / 255)._repr_html_()), expected)
    assert np.array_equal(pixels_of(torch.tensor(expected)._repr_html_()), expected)
    assert np.array_equal(pixels_of(torch.tensor(image[[0, 1, 2, 2]].numpy())._repr_html_()), expected)
    assert pixels_of(image[:1]._repr_html_()).shape == (10, 12, 3)
    lost = image / 255
    lost[1, 2, 2], lost[1, 3, 3] = float("nan"), float("inf")
    colours = pixels_of(lost._repr_html_())
    assert colours[2, 2].tolist() == [214, 39, 40] and colours[3, 3].tolist() == [255, 152, 0]
    spread = pixels_of((image * 2.0 - 300)._repr_html_())  # from its minimum to its maximum
    assert spread.min() == 0 and spread.max() == 255


def test_pictures_of_noise_are_small() -> None:
    for shape, side in (((300, 200), 96), ((3, 300, 200), 72)):
        html = torch.rand(shape)._repr_html_()
        pixels = pixels_of(html)
        assert len(html) < 20_000 and 40 < max(pixels.shape) <= side
        assert 'width="107" height="160"' in html


def test_histogram() -> None:
    heights = re.findall(r"v-([\d.]+)h", torch.tensor([0, 1, 1, 2, 2, 2, 2])._repr_html_())
    assert [float(each) for each in heights] == [14, 28, 56]
    for values in ([-1.7e308, 1.7e308, 0.0], [5.0, 5.0], [1e-320, 0.0]):
        html = torch.tensor(values, dtype=torch.float64)._repr_html_()
        assert len(re.findall(r"v-([\d.]+)h", html)) == 40


def test_a_large_tensor_takes_no_time() -> None:
    x = torch.zeros(10_000, 10_000, dtype=torch.uint8)
    x._repr_html_()
    started = time.perf_counter()
    html = x._repr_html_()
    assert time.perf_counter() - started < 0.3 and "elements)" in html
    x = x.view(-1)
    started = time.perf_counter()
    assert len(x._repr_html_()) < 20_000 and time.perf_counter() - started < 0.3


def test_names_are_escaped() -> None:
    class Odd(torch.nn.Parameter):
        pass

    Odd.__name__ = "<b>&"
    html = Odd(torch.ones(2))._repr_html_()
    assert "<b>&lt;b&gt;&amp;</b>" in html
    assert "grad_fn=&lt;MulBackward0&gt;" in (torch.ones(2, requires_grad=True) * 2)._repr_html_()
    assert "requires_grad=True" in torch.ones(2, requires_grad=True)._repr_html_()


def test_nothing_changes() -> None:
    x = torch.randn(40, 50, requires_grad=True)
    y = x * 2
    before = torch.get_rng_state(), y.grad_fn, x._version, x._counter, dict(x.__dict__), x.detach().clone()
    x._counter = None  # as it was before `detach`
    x._repr_html_(), y._repr_html_()
    assert torch.equal(torch.get_rng_state(), before[0]) and y.grad_fn is before[1]
    assert (x._version, x._counter, x.__dict__) == (before[2], None, before[4]) and torch.equal(x, before[5])
    y.sum().backward()
    assert x.grad.unique().tolist() == [2]


def test_inside_of_a_transformation_it_is_the_repr() -> None:
    seen: list[tuple[str, str]] = []

    def look(x: torch.Tensor) -> torch.Tensor:
        seen.append((text_of(x._repr_html_()), repr(x)))
        return x * 2

    torch.vmap(look)(torch.ones(2, 3))
    torch.func.jvp(look, (torch.ones(2),), (torch.ones(2),))
    assert [shown == text for shown, text in seen] == [True, True] and seen[0][0].startswith("BatchedTensor")

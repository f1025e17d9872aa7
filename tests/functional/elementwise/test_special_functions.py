"""Special functions beside values of 40 digits, SciPy and NumPy's polynomials, their edges, errors and dtypes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as torch
from tritensor.errors import ArgumentError

from ...needs import needs_triton

NAN, INF = math.nan, math.inf

# arguments, and the function there; computed with mpmath
VALUES: dict[str, list[tuple[float, ...]]] = {
    "erfinv": [
        (0.1, 0.08885599049425769),
        (-0.5, -0.4769362762044699),
        (0.9, 1.1630871536766743),
        (0.999999, 3.458910737275499),
        (1e-10, 8.862269254527581e-11),
    ],
    "lgamma": [
        (0.1, 2.252712651734206),
        (1.001, -0.0005763935982833062),
        (1.9, -0.03898427592308336),
        (5.5, 3.9578139676187165),
        (6.95, 6.485804418828974),
        (30.0, 71.25703896716801),
        (10000000000.0, 220258509288.81058),
        (-0.5, 1.2655121234846454),
        (-7.3, -7.779101629826852),
    ],
    "digamma": [
        (0.1, -10.423754940411076),
        (1.0, -0.5772156649015329),
        (3.7, 1.1671535393615113),
        (10.0, 2.251752589066721),
        (100.0, 4.600161852738087),
        (-0.5, 0.03648997397857652),
        (-7.3, 4.33730730551005),
    ],
    "i0": [
        (0.0, 1.0),
        (1.0, 1.2660658777520084),
        (-7.5, 268.16131151518937),
        (9.0, 1093.5883545113747),
        (50.0, 2.9325537838493362e20),
    ],
    "special.i0e": [
        (1.0, 0.46575960759364043),
        (-7.5, 0.14831583007739552),
        (9.0, 0.134959524581723),
        (500.0, 0.017845706500153168),
    ],
    "special.i1": [
        (1.0, 0.565159103992485),
        (-7.5, -249.58436542268814),
        (9.0, 1030.9147225169565),
        (-50.0, -2.903078590103557e20),
    ],
    "special.i1e": [
        (1.0, 0.20791041534970844),
        (-7.5, -0.1380412115485542),
        (9.0, 0.1272249839358912),
        (-500.0, -0.017827851852898056),
    ],
    "special.modified_bessel_i0": [(2.0, 2.2795853023360673)],
    "special.modified_bessel_i1": [(2.0, 1.590636854637329)],
    "special.modified_bessel_k0": [
        (0.1, 2.4270690247020164),
        (2.0, 0.11389387274953344),
        (2.1, 0.10078374088996693),
        (30.0, 2.1324774964630563e-14),
    ],
    "special.modified_bessel_k1": [
        (0.1, 9.853844780870606),
        (2.0, 0.13986588181652243),
        (2.1, 0.12274641153350789),
        (30.0, 2.1677320018915495e-14),
    ],
    "special.scaled_modified_bessel_k0": [
        (0.1, 2.6823261022628944),
        (2.1, 0.8230171525316621),
        (300.0, 0.0723300317396073),
    ],
    "special.scaled_modified_bessel_k1": [
        (0.1, 10.890182683049696),
        (2.1, 1.0023680527405792),
        (300.0, 0.07245048166725841),
    ],
    "special.bessel_j0": [
        (0.0, 1.0),
        (1.0, 0.7651976865579666),
        (-4.0, -0.39714980986384735),
        (6.0, 0.15064525725099692),
        (-50.0, 0.055812327669251816),
    ],
    "special.bessel_j1": [
        (0.0, 0.0),
        (1.0, 0.4400505857449335),
        (-4.0, 0.06604332802354913),
        (6.0, -0.27668385812756563),
        (-50.0, 0.09751182812517514),
    ],
    "special.bessel_y0": [
        (0.1, -1.5342386513503667),
        (1.0, 0.08825696421567696),
        (4.0, -0.016940739325064992),
        (6.0, -0.28819468398157916),
        (50.0, -0.09806499547007708),
    ],
    "special.bessel_y1": [
        (0.1, -6.4589510947020266),
        (1.0, -0.7812128213002887),
        (4.0, 0.3979257105571),
        (6.0, -0.17501034430039825),
        (50.0, -0.05679566856201477),
    ],
    "special.spherical_bessel_j0": [
        (0.1, 0.9983341664682815),
        (0.6, 0.9410707889917256),
        (-10.0, -0.05440211108893698),
    ],
    "special.airy_ai": [
        (-20.0, -0.1764061270779847),
        (-3.0, -0.37881429367765806),
        (-2.0, 0.22740742820168558),
        (-0.5, 0.4757280916105396),
        (0.0, 0.3550280538878172),
        (1.5, 0.07174949700810541),
        (2.05, 0.03235544591228674),
        (5.0, 0.00010834442813607442),
        (20.0, 1.6916728686705404e-27),
    ],
    "special.ndtr": [
        (-10.0, 7.619853024160525e-24),
        (-1.0, 0.15865525393145705),
        (0.3, 0.6179114221889527),
        (2.0, 0.9772498680518208),
    ],
    "special.log_ndtr": [
        (-30.0, -454.3212439563432),
        (-1.1, -1.997558846986297),
        (-0.9, -1.6924928065613383),
        (0.3, -0.4814101615884812),
        (8.0, -6.220960574271786e-16),
    ],
    "special.ndtri": [
        (1e-200, -30.20559417957964),
        (1e-09, -5.9978070150076865),
        (0.1, -1.2815515655446004),
        (0.3, -0.5244005127080408),
        (0.9, 1.2815515655446006),
    ],
    "special.erfcx": [
        (-5.0, 144009798674.66104),
        (-0.3, 1.4537492328427655),
        (0.2, 0.8090195199015807),
        (1.0, 0.427583576155807),
        (3.9, 0.14031418160068973),
        (10.0, 0.05614099274382259),
        (1000000000.0, 5.641895835477563e-10),
    ],
    "special.entr": [(0.3, 0.3611918412977808), (2.0, -1.3862943611198906)],
    "special.xlog1py": [(2.0, 1e-09, 1.999999999e-09), (-1.5, 4.0, -2.4141568686511508)],
    "special.zeta": [
        (1.5, 0.2, 13.459632324391384),
        (2.0, 1.0, 1.6449340668482264),
        (3.0, 30.0, 0.0005743826018643),
        (20.0, 0.7, 1253.2543140269481),
        (2.0, -0.5, 8.934802200544679),
        (3.0, -7.25, -62.00426301828287),
        (4.0, -7.25, 259.75686586723407),
    ],
    "igamma": [
        (0.3, 0.2, 0.6575067242697218),
        (0.3, 0.9, 0.9022526480296695),
        (2.0, 1.0, 0.26424111765711533),
        (5.0, 20.0, 0.9999830552560699),
        (30.0, 20.0, 0.02181821752555739),
        (140.0, 150.0, 0.8034040526514911),
        (200.0, 190.0, 0.2433474271006238),
        (1000000.0, 1001000.0, 0.8413447863683403),
    ],
    "igammac": [
        (0.3, 0.9, 0.09774735197033045),
        (2.0, 1.0, 0.7357588823428847),
        (5.0, 20.0, 1.6944743930067385e-05),
        (30.0, 20.0, 0.9781817824744427),
        (140.0, 150.0, 0.19659594734850896),
        (200.0, 190.0, 0.7566525728993762),
        (1000000.0, 1001000.0, 0.15865521363165971),
        (2.0, 50.0, 9.83662422461598e-21),
    ],
}


def named(name: str) -> Callable[..., Any]:
    """The function: of `torch.special`, or of `torch`."""
    return getattr(torch.special if name.startswith("special.") else torch, name.rpartition(".")[2])


def columns(name: str, dtype: Any = torch.float64) -> list[Any]:
    """The arguments as tensors, and the expected values."""
    return [torch.tensor(column, dtype=dtype) for column in zip(*VALUES[name], strict=True)]


@pytest.mark.parametrize("name", VALUES)
def test_values_of_forty_digits(name: str) -> None:
    *arguments, expected = columns(name)
    np.testing.assert_allclose(named(name)(*arguments).numpy(), expected.numpy(), rtol=1e-13, atol=1e-15)


@needs_triton
@pytest.mark.parametrize("name", VALUES)
def test_kernels_in_float64_have_the_same_values(name: str) -> None:
    """They take every branch of the text, which is the reference's, too."""
    *arguments, expected = columns(name)
    with torch.cuda.simulate(devices=1):
        result = named(name)(*[x.cuda() for x in arguments]).cpu()
    np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("digamma", -9, 40),
        ("erfcx", -5, 60),
        ("erfinv", -1, 1),
        ("gammaln", -9, 400),
        ("i0e", -90, 90),
        ("i1e", -90, 90),
        ("log_ndtr", -40, 9),
        ("ndtr", -9, 9),
        ("ndtri", 0, 1),
    ],
)
def test_values_of_scipy(name: str, low: float, high: float) -> None:
    scipy = pytest.importorskip("scipy.special")
    x = np.random.default_rng(0).uniform(low, high, 20_000)
    result = getattr(torch.special, name)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(result, getattr(scipy, name)(x), rtol=3e-12, atol=3e-14)


def test_incomplete_gamma_functions_of_scipy() -> None:
    """Small and large orders, close and apart: series, continued fraction and expansion."""
    scipy = pytest.importorskip("scipy.special")
    rng = np.random.default_rng(0)
    a = np.exp(rng.uniform(-3, 12, 4000))
    x = np.where(rng.random(4000) < 0.5, np.exp(rng.uniform(-3, 12, 4000)), a * rng.uniform(0.6, 1.4, 4000))
    lower, upper = (function(*map(torch.from_numpy, (a, x))).numpy() for function in (torch.igamma, torch.igammac))
    np.testing.assert_allclose(lower, scipy.gammainc(a, x), rtol=1e-10, atol=2e-14)
    np.testing.assert_allclose(upper, scipy.gammaincc(a, x), rtol=1e-10, atol=2e-14)


EDGES: list[tuple[str, tuple[Any, ...], list[float]]] = [
    ("lgamma", ([0.0, -1.0, 1.0, 2.0, INF, -INF, NAN, 1e306],), [INF, INF, 0, 0, INF, INF, NAN, INF]),
    ("digamma", ([0.0, -0.0, -1.0, INF, -INF, NAN],), [-INF, INF, NAN, INF, NAN, NAN]),
    ("erfinv", ([1.0, -1.0, 0.0, 1.5, -2.0, NAN],), [INF, -INF, 0, NAN, NAN, NAN]),
    ("special.ndtri", ([0.0, 1.0, 0.5, 1.5, -0.1, NAN],), [-INF, INF, 0, NAN, NAN, NAN]),
    ("special.erfcx", ([INF, -INF, NAN, -30.0],), [0, INF, NAN, INF]),
    ("special.log_ndtr", ([INF, -INF, NAN],), [0, -INF, NAN]),
    ("special.entr", ([0.0, -1.0, NAN, INF],), [0, -INF, NAN, -INF]),
    ("special.xlog1py", ([0.0, 0.0, 0.0, 1.0], [-1.0, NAN, -2.0, -1.0]), [0, NAN, 0, -INF]),
    (
        "special.zeta",
        ([1.0, 0.5, 2.0, 2.5, 2.0, 3.0, NAN], [3.0, 3.0, -2.0, -0.5, 0.0, INF, 1.0]),
        [INF, NAN, INF, NAN, INF, 0, NAN],
    ),
    (
        "igamma",
        ([0.0, 0.0, 2.0, INF, INF, 2.0, -1.0, 1.0], [1.0, 0.0, 0.0, 1.0, INF, INF, 1.0, -1.0]),
        [1, NAN, 0, 0, NAN, 1, NAN, NAN],
    ),
    (
        "igammac",
        ([0.0, 0.0, 2.0, INF, INF, 2.0, -1.0, 1.0], [1.0, 0.0, 0.0, 1.0, INF, INF, 1e30, -1.0]),
        [0, NAN, 1, 1, NAN, 0, NAN, NAN],
    ),
    ("igamma", ([-1e30, 1.0], [-1e30, 1e30]), [NAN, 1]),
    ("special.bessel_y0", ([0.0, -1.0],), [-INF, NAN]),
    ("special.bessel_y1", ([0.0, -1.0],), [-INF, NAN]),
    ("special.modified_bessel_k0", ([0.0, -1.0, INF],), [INF, NAN, 0]),
    ("special.modified_bessel_k1", ([0.0, -1.0, INF],), [INF, NAN, 0]),
    ("special.spherical_bessel_j0", ([0.0, INF, -INF, NAN],), [1, 0, 0, NAN]),
    ("special.airy_ai", ([INF, -INF, 200.0, NAN],), [NAN, NAN, 0, NAN]),
]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"), EDGES, ids=[f"{i}-{each[0]}" for i, each in enumerate(EDGES)]
)
def test_edges(name: str, arguments: tuple[Any, ...], expected: list[float]) -> None:
    result = named(name)(*[torch.tensor(each, dtype=torch.float64) for each in arguments])
    np.testing.assert_array_equal(result.numpy(), expected)


# ---- polynomials ---------------------------------------------------------------------------------------------------


def unit(n: int) -> list[float]:
    return [0.0] * n + [1.0]


POLYNOMIALS: dict[str, Callable[[Any, int], Any]] = {
    "chebyshev_polynomial_t": lambda x, n: np.polynomial.chebyshev.chebval(x, unit(n)),
    "chebyshev_polynomial_u": lambda x, n: np.polynomial.Chebyshev(unit(n + 1)).deriv()(x) / (n + 1),
    "hermite_polynomial_h": lambda x, n: np.polynomial.hermite.hermval(x, unit(n)),
    "hermite_polynomial_he": lambda x, n: np.polynomial.hermite_e.hermeval(x, unit(n)),
    "laguerre_polynomial_l": lambda x, n: np.polynomial.laguerre.lagval(x, unit(n)),
    "legendre_polynomial_p": lambda x, n: np.polynomial.legendre.legval(x, unit(n)),
}


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomials_of_numpy(name: str) -> None:
    x = np.array([-3.0, -1.0, -0.7, 0.0, 0.3, 1.0, 1.2])
    for n in (0, 1, 2, 3, 9, 16, 17, 30):
        result = getattr(torch.special, name)(torch.from_numpy(x), n)
        expected = POLYNOMIALS[name](x, n)
        np.testing.assert_allclose(result.numpy(), expected, rtol=1e-10, atol=1e-13 * np.abs(expected).max())


def test_other_polynomials_of_chebyshev() -> None:
    """By those of the first and second kind: v = u(n) - u(n - 1), w = u(n) + u(n - 1)."""
    x, special = torch.tensor([-1.5, -1.0, -0.4, 0.0, 0.8, 1.0, 2.0], dtype=torch.float64), torch.special
    for n in (1, 2, 7, 16, 17, 40, 41):
        u, before = special.chebyshev_polynomial_u(x, n), special.chebyshev_polynomial_u(x, n - 1)
        assert torch.allclose(special.chebyshev_polynomial_v(x, n), u - before, 1e-9, 1e-11)
        assert torch.allclose(special.chebyshev_polynomial_w(x, n), u + before, 1e-9, 1e-11)
        for kind in "tuvw":
            shifted = getattr(special, f"shifted_chebyshev_polynomial_{kind}")((x + 1) / 2, n)
            assert torch.allclose(shifted, getattr(special, f"chebyshev_polynomial_{kind}")(x, n), 1e-9, 1e-11)


def test_degrees_of_polynomials() -> None:
    special = torch.special
    degrees = torch.tensor([3.7, -0.5, -1.0, NAN, INF, 2.0])
    assert special.chebyshev_polynomial_t(2.0, degrees).tolist() == [26, 1, 0, 0, 0, 7]
    assert special.legendre_polynomial_p(torch.tensor([2, 3]), 1).tolist() == [2, 3]
    assert special.hermite_polynomial_he(torch.tensor([1.0]), 513).isnan().all()
    # of a high degree: no loop
    assert special.chebyshev_polynomial_t(torch.tensor([0.5, -1.0]), 3 * 10**6).tolist() == pytest.approx(
        [1, 1], abs=0.3
    )
    assert special.chebyshev_polynomial_u(torch.tensor([-1.0, 1.0, NAN]), 99).tolist()[:2] == [-100, 100]
    assert special.laguerre_polynomial_l(torch.empty(0), torch.empty(0)).shape == (0,)


@needs_triton
@pytest.mark.parametrize("name", ["chebyshev_polynomial_w", "laguerre_polynomial_l"])
def test_kernels_of_polynomials(name: str) -> None:
    x, n = torch.tensor([[-1.5], [-1.0], [0.3], [2.0]]), torch.tensor([-1.0, 0, 1, 2, 5.9, 20, NAN])
    function = getattr(torch.special, name)
    with torch.cuda.simulate(devices=1):
        found = [function(x.cuda(), n.cuda()), function(0.5, n.cuda()), function(x.cuda(), 5)]
        found = [each.cpu() for each in found]
    for result, expected in zip(found, (function(x, n), function(0.5, n), function(x, 5)), strict=True):
        assert torch.allclose(result, expected, 1e-4, 1e-4)


# ---- dtypes, gradients, errors -------------------------------------------------------------------------------------


def test_dtypes() -> None:
    whole, half = torch.tensor([1, 2]), torch.tensor([0.5, 1.5], dtype=torch.float16)
    for function in (torch.lgamma, torch.i0, torch.special.airy_ai, torch.special.ndtr):
        assert function(whole).dtype is torch.float32
        assert function(half).dtype is torch.float16
    assert torch.polygamma(2, whole).tolist() == pytest.approx([-2.4041138, -0.4041138])
    assert torch.special.zeta(2, whole).tolist() == pytest.approx([1.6449341, 0.6449341])
    assert torch.special.zeta(whole + 1, 1.0).dtype is torch.float32
    assert torch.igamma(half, half.double()).dtype is torch.float64
    with pytest.raises(RuntimeError, match="\"igamma\" not implemented for 'Long'"):
        torch.igamma(whole, whole)
    with pytest.raises(RuntimeError, match="not implemented for 'ComplexFloat'"):
        torch.special.i1(torch.tensor([1j]))
    out = torch.empty(2, dtype=torch.float64)
    assert torch.special.i0e(whole, out=out) is out and out.tolist() == pytest.approx([0.4657596, 0.3085083])


def test_names_that_share_an_operator() -> None:
    special = torch.special
    pairs = {
        "psi": "digamma",
        "gammaln": "lgamma",
        "expit": "sigmoid",
        "gammainc": "igamma",
        "multigammaln": "mvlgamma",
    }
    for name, other in pairs.items():
        assert getattr(special, name) is getattr(torch, other)
    assert {name for name in special.__all__ if not hasattr(special, name)} == set()
    assert special.softmax(torch.zeros(2), 0).tolist() == [0.5, 0.5]


def test_methods_and_changes_in_place() -> None:
    x = torch.tensor([0.5, 2.5], dtype=torch.float64)
    assert x.polygamma(1).tolist() == torch.polygamma(1, x).tolist()
    assert x.clone().polygamma_(1).tolist() == pytest.approx([4.934802200544679, 0.4903577561002348])
    assert x.clone().mvlgamma_(1).tolist() == x.lgamma().tolist()
    assert x.clone().igamma_(x).tolist() == x.igamma(x).tolist()
    y = x.clone()
    assert y.digamma_() is y and y.tolist() == x.digamma().tolist()


def test_derivatives_that_are_not_there() -> None:
    x = torch.tensor([1.5, 2.5], requires_grad=True)
    for name in ("airy_ai", "bessel_j0", "modified_bessel_k1", "modified_bessel_i0"):
        assert not getattr(torch.special, name)(x).requires_grad
    assert not torch.special.legendre_polynomial_p(x, x).requires_grad
    for function, name in (
        (torch.igamma, "igamma: input"),
        (torch.igammac, "igammac: input"),
        (torch.special.zeta, "zeta"),
    ):
        with pytest.raises(NotImplementedError, match=f"the derivative for '{name}' is not implemented."):
            function(x, x.detach()).sum().backward()


def test_slopes_at_zero() -> None:
    for function, slope in (
        (torch.special.i1, 0.5),
        (torch.special.i1e, 0.5),
        (torch.i0, 0.0),
        (torch.special.i0e, 0.0),
    ):
        x = torch.tensor(0.0, requires_grad=True)
        function(x).backward()
        assert x.grad.item() == slope


def test_the_sixth_derivative_of_the_logarithm() -> None:
    x = torch.tensor([0.7, 3.0], dtype=torch.float64, requires_grad=True)
    y = torch.lgamma(x)
    for _ in range(4):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    assert torch.allclose(y, torch.polygamma(3, x), 1e-12)


def test_bad_input() -> None:
    x = torch.tensor([1.5])
    with pytest.raises(RuntimeError, match="does not support negative n"):
        torch.polygamma(-1, x)
    with pytest.raises(ArgumentError, match=r"argument 'n' \(position 1\) must be int, not float"):
        torch.polygamma(1.5, x)
    assert torch.polygamma(200, x).item() == -INF
    with pytest.raises(RuntimeError, match="p has to be greater than or equal to 1"):
        torch.mvlgamma(x, 0)
    with pytest.raises(RuntimeError, match="p has to be at most 65,536"):
        torch.mvlgamma(x, 65_537)
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        torch.mvlgamma(x, 2**70)
    with pytest.raises(ArgumentError, match=r"argument 'p' \(position 2\) must be int"):
        torch.mvlgamma(x, 2.0)
    with pytest.raises(ArgumentError, match=r"argument 'other' \(position 2\) must be Tensor"):
        torch.igamma(x, 2)
    with pytest.raises(ArgumentError, match=r"argument 'input' \(position 1\) must be Tensor"):
        torch.igammac(2.0, x)
    with pytest.raises(ArgumentError):
        torch.special.ndtr(5)
    with pytest.raises(ArgumentError):
        torch.special.zeta(2, 3)


def test_small_results_have_their_digits() -> None:
    a, x = (torch.tensor(each, dtype=torch.float64) for each in ([1e-24, 1e-8, 0.02], [1e-24, 0.5, 0.75]))
    # of mpmath
    exact = [5.468482656695556e-23, 5.597735977099587e-09, 0.00691616158355123]
    assert torch.special.gammaincc(a, x).tolist() == pytest.approx(exact, rel=1e-13, abs=0)
    near = torch.tensor([-1e-8, -0.25], dtype=torch.float64)
    assert torch.special.zeta(2.0, near).tolist() == pytest.approx([1e16, 18.541879647671606], rel=1e-13, abs=0)

"""SciPy's functions on tensors: those that dispatch by the array API (`SCIPY_ARRAY_API=1`), as they are installed.

Each line of the tables is evaluated twice, over NumPy's arrays and over tensors: the results must agree, and be tensors
where the tensors are. What SciPy computes in compiled code takes tensors of the CPU, whose memory it reads, and refuses
those of a device.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import pytest

import tritensor as torch

pytestmark = [pytest.mark.peer, pytest.mark.usefixtures("array_api_in_scipy")]

RNG = np.random.default_rng(0)
OPERANDS = {
    "x": RNG.standard_normal((12, 3)),
    "y": RNG.standard_normal((12, 3)) + 0.25,
    "p": RNG.uniform(0.1, 3.0, (12, 3)),
    "u": RNG.uniform(0.05, 0.95, (12, 3)),
    "v": RNG.standard_normal(32),
    "w": RNG.standard_normal(5),
    "t": np.linspace(0.0, 1.0, 9),
    "z": RNG.standard_normal(16) + 1j * RNG.standard_normal(16),
    "n": RNG.integers(1, 9, 12),
    "m": RNG.standard_normal((8, 8)),
    "s": np.array([[0.2, 0.4, 0.2, 1.0, -0.4, 0.2]]),
    "b": RNG.standard_normal((8, 8)) > 0.4,
}

# Written for any namespace: on every device.
ANYWHERE = """
special.logsumexp(x)
special.logsumexp(x, axis=0, keepdims=True)
special.logsumexp(x, axis=1, b=p)
special.softmax(x, axis=1)
special.log_softmax(x, axis=0)
special.xlogy(p, u)
special.rel_entr(p, u)
stats.zscore(x)
stats.zmap(x, y)
stats.gzscore(p)
stats.gmean(p)
stats.hmean(p, axis=1)
stats.pmean(p, 2)
stats.gstd(p)
stats.moment(x, 3)
stats.skew(x)
stats.kurtosis(x, axis=1)
stats.variation(p)
stats.sem(x)
stats.tmean(v)
stats.tvar(v, (-2, 2))
stats.tstd(v)
stats.tsem(v)
stats.tmin(v, -1)
stats.tmax(v, 1)
stats.trim_mean(x, 0.1)
stats.kstat(v, 2)
stats.kstatvar(v, 2)
stats.iqr(v)
stats.median_abs_deviation(v)
stats.quantile(v, t)
stats.mode(n)
stats.rankdata(v)
stats.entropy(p, u)
stats.differential_entropy(v)
stats.circmean(p)
stats.circvar(p)
stats.circstd(p)
stats.directional_stats(x).mean_direction
stats.boxcox_llf(0.5, p)
stats.describe(v).variance
stats.sigmaclip(v, 2.0, 2.0).clipped
stats.false_discovery_control(t)
integrate.trapezoid(y, axis=0)
integrate.trapezoid(t * t, t)
integrate.cumulative_trapezoid(t * t, t, initial=0)
integrate.cumulative_simpson(t * t, x=t)
integrate.romb(t)
integrate.tanhsinh(lambda s: s * s, t, t + 1).integral
integrate.cubature(lambda s: s[:, 0] ** 2, t[:1], t[-1:]).estimate
optimize.elementwise.find_root(lambda s, c: s ** 2 - c, (0 * t, 2 + 0 * t), args=(t + 0.5,)).x
optimize.elementwise.find_minimum(lambda s, c: (s - c) ** 2, (0 * t - 1, t + 0.25, 3 + 0 * t), args=(t,)).x
optimize.elementwise.bracket_root(lambda s, c: s - c, 0 * t, args=(t + 0.5,)).success
optimize.rosen(v)
optimize.rosen_der(v)
differentiate.derivative(lambda s: s ** 3, t).df
cluster.vq.whiten(x)
cluster.hierarchy.is_valid_im(x[:2, :2])
linalg.block_diag(x, y)
linalg.fiedler(w)
linalg.orthogonal_procrustes(x, y)[0]
fft.fft(z)
fft.ifft(z)
fft.rfft(v)
fft.irfft(z)
fft.hfft(z)
fft.ihfft(v)
fft.fft2(x)
fft.ifft2(x + 1j * y)
fft.rfftn(x)
fft.irfftn(x + 1j * y)
fft.fftshift(v)
fft.ifftshift(v)
fft.fht(v, 0.1, 0.5)
signal.envelope(v)
signal.get_window("hann", 8, xp=xp)
signal.windows.gaussian(9, 2.0, xp=xp)
signal.freqz_zpk(0.5 * z[:2], 0.4 * z[2:4], 1.0, worN=t)[1]
signal.besselap(3, xp=xp)[1]
signal.fftconvolve(v, w)
signal.oaconvolve(v, w)
signal.hilbert(v)
signal.resample(v, 16)
signal.freqz(w, w[:1], worN=t)[1]
spatial.transform.Rotation.from_rotvec(x).as_matrix()
spatial.transform.Rotation.from_rotvec(x).as_quat()
spatial.transform.Rotation.from_rotvec(x).apply(y)
"""
# In compiled code: on the CPU.
ON_THE_CPU = """
special.chdtr(p, 2 * p)
special.chdtrc(p, 2 * p)
special.multigammaln(p + 2, 2)
special.xlog1py(p, u)
special.entr(p)
special.expit(x)
special.logit(u)
special.erf(x)
special.erfc(x)
special.gammaln(p)
special.psi(p)
special.ndtr(x)
special.ndtri(u)
special.log_ndtr(x)
special.i0(x)
special.i1e(x)
special.gammainc(p, u)
special.betainc(p, p, u)
special.betaln(p, u)
special.zeta(p + 1, p)
special.j0(x)
special.exp2(x)
special.boxcox(p, 0.5)
special.kl_div(p, u)
special.stdtr(p, x)
stats.entropy(p)
stats.ttest_ind(x, y).statistic
stats.ttest_ind(x, y).pvalue
stats.ttest_rel(x, y).pvalue
stats.ttest_1samp(x, 0.5).pvalue
stats.f_oneway(x, y).pvalue
stats.pearsonr(v[:12], x[:, 0]).statistic
stats.pearsonr(v[:12], x[:, 0]).pvalue
stats.skewtest(x).pvalue
stats.kurtosistest(v).pvalue
stats.normaltest(v).pvalue
stats.jarque_bera(v).pvalue
stats.bartlett(x, y).pvalue
stats.chisquare(n).pvalue
stats.kruskal(x, y).pvalue
stats.friedmanchisquare(x[:, 0], x[:, 1], x[:, 2]).pvalue
stats.mannwhitneyu(x, y, method="asymptotic").pvalue
stats.wilcoxon(x, y, method="asymptotic").pvalue
stats.levene(x, y).pvalue
stats.combine_pvalues(u[:, 0]).pvalue
stats.ks_1samp(v, special.ndtr).statistic
stats.cramervonmises(v, special.ndtr).statistic
stats.alexandergovern(x, y).pvalue
cluster.vq.kmeans2(x, x[:2, :], minit="matrix")[0]
cluster.vq.vq(x, y)[0]
cluster.hierarchy.linkage(x)
cluster.hierarchy.fcluster(cluster.hierarchy.linkage(x), 1.0)
cluster.hierarchy.cophenet(cluster.hierarchy.linkage(x))
fft.dct(v)
fft.idct(v)
fft.dst(v)
fft.dctn(x)
signal.windows.kaiser(9, 5.0, xp=xp)
signal.convolve(v, w)
signal.convolve(m, m[:3, :3], mode="same")
signal.correlate(v, w, mode="valid")
signal.convolve2d(m, m[:3, :3])
signal.lfilter(w, w[:1], v)
signal.filtfilt(w, w[:1], v)
signal.sosfilt(s, v)
signal.savgol_filter(v, 5, 2)
signal.medfilt(v, 3)
signal.wiener(v, 3)
signal.detrend(v)
signal.resample_poly(v, 3, 2)
signal.upfirdn(w, v, 2)
ndimage.gaussian_filter(m, 1.0)
ndimage.uniform_filter(m, 3)
ndimage.median_filter(m, 3)
ndimage.sobel(m)
ndimage.laplace(m)
ndimage.convolve(m, m[:3, :3])
ndimage.correlate1d(m, w)
ndimage.zoom(m, 2, order=1)
ndimage.shift(m, 1.5)
ndimage.rotate(m, 30)
ndimage.map_coordinates(m, m[:2] + 3)
ndimage.binary_dilation(b)
ndimage.binary_fill_holes(b)
ndimage.label(b)[0]
ndimage.distance_transform_edt(b)
ndimage.maximum_filter(m, 3)
ndimage.center_of_mass(m * m)
ndimage.grey_opening(m, 3)
interpolate.CubicSpline(t, t * t)(u)
interpolate.Akima1DInterpolator(t, t * t)(u)
interpolate.make_interp_spline(t, t * t)(u)
"""
MODULES = (
    *("special", "stats", "integrate", "optimize", "optimize.elementwise", "differentiate", "cluster.vq"),
    *("cluster.hierarchy", "linalg", "fft", "signal", "signal.windows", "spatial.transform", "ndimage", "interpolate"),
)


def names(device: str | None) -> dict[str, Any]:
    found = {module.partition(".")[0]: importlib.import_module(f"scipy.{module}") for module in MODULES}
    found |= {name: importlib.import_module(f"scipy.{name}") for name in found}
    if device is None:
        return {**found, **OPERANDS, "xp": np}
    tensors = {name: torch.tensor(value, device=device) for name, value in OPERANDS.items()}
    return {**found, **tensors, "xp": tensors["x"].__array_namespace__()}


def evaluated(line: str, device: str | None) -> Any:
    # SciPy makes its constants on the default device
    with warnings.catch_warnings(), torch.device(device or "cpu"):
        warnings.simplefilter("ignore")  # statistics of few samples
        return eval(line, names(device))


def agree(found: Any, expected: Any, device: str) -> None:
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            agree(one, other, device)
        return
    if isinstance(expected, np.ndarray) or isinstance(found, torch.Tensor):
        assert isinstance(found, torch.Tensor), f"a result is a {type(found).__name__}"
        assert str(found.device) == device
        found = found.cpu().numpy()
        assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("line", ANYWHERE.strip().splitlines())
def test_functions_for_any_namespace(line: str, device: str) -> None:
    agree(evaluated(line, device), evaluated(line, None), device)


@pytest.mark.parametrize("line", ON_THE_CPU.strip().splitlines())
def test_functions_in_compiled_code(line: str, device: str) -> None:
    if device == "cpu":
        agree(evaluated(line, device), evaluated(line, None), device)
    else:
        with pytest.raises(TypeError, match=r"can't convert cuda:0 device type tensor to numpy.*Tensor\.cpu\(\)"):
            evaluated(line, device)

"""nanmean, cov and corrcoef, and the pairs of var_mean and std_mean."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import tritensor as torch

from ..needs import needs_triton

nan = math.nan


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=[needs_triton, pytest.mark.slow])])
def device(request):
    with torch.cuda.simulate(devices=1):
        yield request.param


def test_covariances_are_those_of_numpy(device):
    rng = np.random.default_rng(0)
    array, often, much = rng.random((3, 6)), rng.integers(1, 4, 6), rng.random(6)
    x, f, a = (torch.from_numpy(each).to(device) for each in (array, often, much))
    for correction in (0, 1):
        for names, given in (({}, {}), ({"fweights": often}, {"fweights": f}), ({"aweights": much}, {"aweights": a})):
            for more, mine in (({}, {}), ({"fweights": often}, {"fweights": f})):
                wanted = np.cov(array, ddof=correction, **{**names, **more})
                found = x.cov(correction=correction, **{**given, **mine})
                np.testing.assert_allclose(found.cpu().numpy(), wanted)
    np.testing.assert_allclose(x.corrcoef().cpu().numpy(), np.corrcoef(array))
    np.testing.assert_allclose(x[0].cov().item(), np.cov(array[0]))
    assert x[0].corrcoef().item() == 1 and torch.tensor([[1, 3], [2, 2]], device=device).cov().tolist() == [
        [2, 0],
        [0, 0],
    ]


def test_complex_correlations():
    z = np.random.default_rng(0).random((2, 5)) + 1j * np.random.default_rng(1).random((2, 5))
    np.testing.assert_allclose(torch.from_numpy(z).corrcoef().numpy(), np.corrcoef(z))
    np.testing.assert_allclose(torch.from_numpy(z).cov().numpy(), np.cov(z))


def test_gradients_of_covariances():
    x = torch.rand(2, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(torch.cov, x) and torch.autograd.gradgradcheck(torch.cov, x)


def test_nanmean(device):
    x = torch.tensor([[1.0, nan], [3.0, nan]], device=device, requires_grad=True)
    assert x.nanmean().item() == 2.0
    np.testing.assert_equal(x.nanmean(0).tolist(), [2.0, nan])
    assert x.nanmean(1, keepdim=True).tolist() == [[1.0], [3.0]]
    x.nanmean().backward()
    assert x.grad.tolist() == [[0.5, 0], [0.5, 0]]
    assert x.half().nanmean(dtype=torch.float32).dtype is torch.float32


def test_the_nodes_of_two_results_have_one_name():
    x = torch.ones(3, requires_grad=True)
    for function in (torch.var_mean, torch.std_mean, torch.aminmax):
        names = {each.grad_fn.name() for each in function(x)}
        assert names == {f"{function.__name__.title().replace('_', '')}Backward0"}
    with pytest.raises(UserWarning, match=r"^var_mean\(\): degrees of freedom"):
        torch.var_mean(x[:1])


CASES = [
    (
        "torch.ones(2, 2, 2).cov()",
        RuntimeError,
        "cov(): expected input to have two or fewer dimensions but got an input",
    ),
    ("torch.ones(2, 2, 2).corrcoef()", RuntimeError, "corrcoef(): expected input to have two or fewer dimensions"),
    ("(m > 0).cov()", RuntimeError, "cov(): bool dtype is not supported for input"),
    ("m.cov(fweights=v)", RuntimeError, "cov(): expected fweights to have integral dtype but got fweights with Float"),
    ("m.cov(aweights=v.int())", RuntimeError, "cov(): expected aweights to have floating point dtype but got aweights"),
    ("m.cov(fweights=m.int())", RuntimeError, "cov(): expected fweights to have one or fewer dimensions but got"),
    (
        "m.cov(aweights=v[:1])",
        RuntimeError,
        "cov(): expected aweights to have the same numel as there are observations",
    ),
    ("m.cov(aweights=-v)", RuntimeError, "cov(): aweights cannot be negative"),
    ("m.cov(aweights=v * 0)", RuntimeError, "cov(): weights sum to zero, can't be normalized"),
    (
        "v.int().nanmean()",
        RuntimeError,
        "nanmean(): expected input to have floating point or complex dtype but got Int",
    ),
]


@pytest.mark.parametrize(("call", "error", "words"), CASES, ids=[case[0] for case in CASES])
def test_errors(call, error, words):
    with pytest.raises(error) as raised:
        eval(call, {"torch": torch, "m": torch.ones(2, 2), "v": torch.ones(2)})
    assert str(raised.value).startswith(words)


def test_too_few_observations_are_told():
    x = torch.ones(2, 1)
    for given in ({}, {"fweights": torch.tensor([1])}):
        with pytest.raises(UserWarning, match=r"^cov\(\): degrees of freedom is <= 0"):  # which tests make an error
            x.cov(**given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert torch.isnan(x.cov(**given)).all()
    assert x.cov(correction=0).tolist() == [[0, 0], [0, 0]]

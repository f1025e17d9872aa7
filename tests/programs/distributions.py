"""Distributions and transforms: moments, densities and their gradients, read in any order, also after samples.

Random numbers differ between the libraries. So of samples shape, dtype, graph and support are compared, and whether
gradients of `rsample` are those that follow from the distribution function. A name beginning with `_` is not compared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch as reference

import tritensor

from .drawing import FLOATS, Draw, words

# What a parameter is drawn from: kinds of values by the parameter's name; two names of which one is given.
KINDS: dict[str, dict[str, str]] = {
    "Bernoulli": {"probs|logits": "unit|odds"},
    "Beta": {"concentration1": "positive", "concentration0": "positive"},
    "Binomial": {"total_count": "count", "probs|logits": "unit|odds"},
    "Categorical": {"probs|logits": "weights|reals"},
    "Cauchy": {"loc": "real", "scale": "positive"},
    "Chi2": {"df": "positive"},
    "ContinuousBernoulli": {"probs|logits": "unit|odds"},
    "Dirichlet": {"concentration": "positives"},
    "Exponential": {"rate": "positive"},
    "FisherSnedecor": {"df1": "positive", "df2": "positive"},
    "Gamma": {"concentration": "positive", "rate": "positive"},
    "GeneralizedPareto": {"loc": "real", "scale": "positive", "concentration": "tail"},
    "Geometric": {"probs|logits": "chance|odds"},
    "Gumbel": {"loc": "real", "scale": "positive"},
    "HalfCauchy": {"scale": "positive"},
    "HalfNormal": {"scale": "positive"},
    "InverseGamma": {"concentration": "positive", "rate": "positive"},
    "Kumaraswamy": {"concentration1": "positive", "concentration0": "positive"},
    "LKJCholesky": {"dim": "size", "concentration": "positive"},
    "Laplace": {"loc": "real", "scale": "positive"},
    "LogNormal": {"loc": "real", "scale": "positive"},
    "LogisticNormal": {"loc": "odds", "scale": "positive"},
    "LowRankMultivariateNormal": {"loc": "reals", "cov_factor": "tall", "cov_diag": "diagonals"},
    "Multinomial": {"total_count": "number", "probs|logits": "weights|reals"},
    "MultivariateNormal": {"loc": "reals", "covariance_matrix|precision_matrix|scale_tril": "definite|definite|factor"},
    "NegativeBinomial": {"total_count": "count", "probs|logits": "share|odds"},
    "Normal": {"loc": "real", "scale": "positive"},
    "OneHotCategorical": {"probs|logits": "weights|reals"},
    "OneHotCategoricalStraightThrough": {"probs|logits": "weights|reals"},
    "Pareto": {"scale": "positive", "alpha": "positive"},
    "Poisson": {"rate": "positive"},
    "RelaxedBernoulli": {"temperature": "warm", "probs|logits": "unit|odds"},
    "RelaxedOneHotCategorical": {"temperature": "warm", "probs|logits": "weights|reals"},
    "StudentT": {"df": "positive", "loc": "real", "scale": "positive"},
    "Uniform": {"low": "real", "high": "above"},
    "VonMises": {"loc": "odds", "concentration": "kappa"},  # of others PyTorch's samples never end
    "Weibull": {"scale": "positive", "concentration": "positive"},
    "Wishart": {"df": "degrees", "covariance_matrix|precision_matrix|scale_tril": "definite|definite|factor"},
}
WIDE = words(  # whose parameters are vectors or matrices
    "Categorical Dirichlet LowRankMultivariateNormal Multinomial MultivariateNormal OneHotCategorical"
    " OneHotCategoricalStraightThrough RelaxedOneHotCategorical Wishart"
)
SINGLE = words("GeneralizedPareto VonMises")  # for doubles PyTorch raises, or knows 7 digits
DIGAMMA = words(  # whose derivative PyTorch has with errors of 5e-10; of the Bessel functions of VonMises 2e-7
    "Beta Chi2 Dirichlet FisherSnedecor Gamma InverseGamma Kumaraswamy LKJCholesky NegativeBinomial StudentT VonMises"
    " Wishart"
)
NARROW = "narrow = torch.tensor(0.5, dtype=torch.float32)"  # with it all gradients are compared as those of float32
NUMBERS = {
    "odds": words("0 0.0 1 -1.5 2 0.25 -3.0"),
    "real": words("0 0.0 1 -1.5 2 0.25 -3.0 True"),
    "positive": words("1 1.0 0.5 2 1.2 3.0 0.1 5"),
    "unit": words("0.5 0.25 0.9 0.0 1.0 0 1"),
    "chance": words("0.5 0.25 0.9 1.0 1"),
    "count": words("1 3 5 0 10 4.0"),
    "number": words("1 3 5 10 0"),
    "size": words("2 2 3 4 1"),
    "share": words("0.5 0.25 0.9 0.0 0"),
    "kappa": words("1 1.0 0.5 2 0.1 5"),
    "tail": words("0.0 0.5 -0.5 0.2 -1.0 1.5 0"),
    "degrees": words("4.5 7 10 3.0"),
    "above": words("4 5.5 10.0"),
}
ELEMENTS = {
    **NUMBERS,
    "real": words("0.0 1.0 -1.5 2.25 0.3 -0.7 5.0 -30.0 0.5"),
    "odds": words("0.0 1.0 -1.5 2.25 0.3 -0.7 5.0 0.5"),
    "positive": words("1.0 0.5 2.0 1.2 0.3 4.5 0.05 9.0 1.0"),
    "unit": words("0.5 0.25 0.9 0.1 0.6 0.05 1.0 0.0 0.75"),
    "chance": words("0.5 0.25 0.9 0.1 0.6 0.05 1.0 0.75"),
    "count": words("1.0 3.0 5.0 0.0 10.0 4.0"),
    "share": words("0.5 0.25 0.9 0.1 0.6 0.05 0.0 0.75"),
    "warm": words("0.5 1.0 2.2"),
    "weights": words("0.1 0.5 0.2 1.0 0.0 2.0 0.3"),
}
ELEMENTS_OF = {"reals": "real", "tall": "odds", "positives": "positive", "diagonals": "kappa"}  # vectors and matrices
ODD = {
    "real": words("inf nan 1e30"),
    "positive": words("0.0 -1.0 inf 1e-30 1e5"),
    "unit": words("-0.5 1.5 nan"),
}
READ = words(
    "mean mean mode mode variance stddev batch_shape event_shape has_rsample has_enumerate_support entropy() entropy()"
    " entropy() perplexity() enumerate_support() enumerate_support(expand=False) enumerate_support(False)"
)
COMPOSED = words("TransformedDistribution Independent MixtureSameFamily")
TRANSFORMS = (
    *("AffineTransform({real}, {scale})", "AffineTransform({real}, {scale}, event_dim={dim})", "ExpTransform()"),
    *("PowerTransform({power})", "SigmoidTransform()", "TanhTransform()"),
    *("AbsTransform()", "TanhTransform(cache_size=1)", "AffineTransform({real}, {scale}, cache_size=1)"),
    *("ComposeTransform([{transform}, {transform}])", "{transform}.inv", "ComposeTransform([])"),
    *("SoftplusTransform()", "IndependentTransform({transform}, {dim})", "StackTransform([{transform}] * 3, {dim})"),
    *("CatTransform([{transform}, {transform}], {dim}, [1, 2])", "ReshapeTransform(({dim},), (1, {dim}))"),
    *("StickBreakingTransform()", "SoftmaxTransform()", "CorrCholeskyTransform()", "biject_to({region})"),
    *("CumulativeDistributionTransform(torch.distributions.Normal(0.5, 2.0))", "transform_to({region})"),
    *("LowerCholeskyTransform()", "CatTransform([{transform}])"),
)
REGIONS = words(
    "real positive nonnegative greater_than(1.5) greater_than_eq(-2) less_than(3.0) unit_interval interval(-1.0,2.5)"
    " half_open_interval(0.0,1) simplex corr_cholesky lower_cholesky real_vector boolean dependent"
    " independent(constraints.positive,1) stack([constraints.real,constraints.positive])"
)
PLACES = {"{real}": NUMBERS["real"][:7], "{scale}": words("2.0 -0.5 3 1"), "{power}": words("2.0 0.5 3 -1.0")}


def program(draw: Draw) -> None:
    """Some distributions, and what is asked of them."""
    reference.manual_seed(draw.integer(0, 2**40))  # of the places that are drawn for densities
    kind = draw.one(sorted(KINDS))
    if draw.chance(0.2) and kind not in SINGLE:
        draw.say("torch.set_default_dtype(torch.float64)")
    if draw.chance(0.12):
        transforms(draw)
        return
    if kind in DIGAMMA:
        draw.say(NARROW)
    batch = draw.shape(3, draw.integer(0, 2))
    if kind in ("LKJCholesky", "Wishart") and 0 in batch:  # which PyTorch cannot check
        return
    made = distribution(draw, kind, batch)
    if not made:
        return
    if draw.chance(0.3):
        made = composed(draw, made)
    if draw.chance(0.2):
        made = expanded(draw, made)
    for _ in range(draw.integer(3, 8)):
        step(draw, made, kind, batch)


# ---- what is made --------------------------------------------------------------------------------------------------


def dtype(draw: Draw) -> str:
    return draw.one(FLOATS[2:]) if draw.chance(0.04) else "float32" if draw.chance(0.2) else "float64"


def element(draw: Draw, kind: str, odd: bool) -> str:
    return draw.one(ODD[kind]) if odd and kind in ODD and draw.chance(0.4) else draw.one(ELEMENTS[kind])


def nested(draw: Draw, shape: Sequence[int], kind: str, odd: bool) -> str:
    if not shape:
        return element(draw, kind, odd)
    return f"[{', '.join(nested(draw, shape[1:], kind, odd) for _ in range(shape[0]))}]"


def tensor(draw: Draw, shape: Sequence[int], kind: str, of: str) -> str:
    """The name of a new tensor of such values, which mostly requires gradients."""
    name = draw.fresh("x")
    odd = draw.chance(0.04)
    if kind in ("definite", "factor"):
        text = f"{values(draw, shape, 'real', False, of)}.tril(-1) * 0.3 + torch.eye({shape[-1]}, dtype=torch.{of})"
        text = f"({text}) * {draw.one(('1.0', '0.5', '2.0'))}"
        text = f"({text}).matmul(({text}).mT)" if kind == "definite" else text
    else:
        text = values(draw, shape, ELEMENTS_OF.get(kind, kind), odd, of)
    draw.say(f"{name} = {text}")
    if draw.chance(0.85):
        draw.say(f"{name}.requires_grad_()")
    return name


def values(draw: Draw, shape: Sequence[int], kind: str, odd: bool, of: str) -> str:
    if 0 in shape:
        return f"torch.ones({tuple(shape)!r}, dtype=torch.{of})"
    return f"torch.tensor({nested(draw, shape, kind, odd)}, dtype=torch.{of})"


def distribution(draw: Draw, kind: str, batch: Sequence[int], of: str = "", width: int = 0) -> str:
    """The name of a new distribution; none if PyTorch refuses it."""
    given, of = of, of or dtype(draw)  # numbers alone would have the default dtype
    of = "float32" if kind in SINGLE else of
    of = "float64" if kind in WIDE and of in FLOATS[2:] else of  # differences of rounded logarithms
    width = width or draw.integer(1, 4)
    numbers = draw.chance(0.25) and kind not in WIDE and not given
    arguments = []
    for names, kinds in KINDS[kind].items():
        chosen = draw.integer(0, names.count("|"))
        name, values_of = names.split("|")[chosen], kinds.split("|")[chosen]
        if values_of in ("number", "size") or (values_of in NUMBERS and (numbers or (draw.chance(0.15) and not given))):
            value = draw.one(NUMBERS[values_of])
        else:
            shape = draw.fitting(batch) if draw.chance(0.3) else tuple(batch)
            shape = () if values_of == "warm" and draw.chance(0.7) else shape
            shape += (width,) * (values_of in ("weights", "definite", "factor", *ELEMENTS_OF))
            shape += (draw.integer(1, 3),) * (values_of == "tall")
            shape += (width,) * (values_of in ("definite", "factor"))
            value = tensor(draw, shape, values_of, of if kind in WIDE or draw.chance(0.98) else dtype(draw))
        arguments.append(f"{name}={value}" if draw.chance(0.5) or "|" in names or arguments else value)
        if "=" in arguments[-1] and kind == "StudentT" and draw.chance(0.3):
            break
    if len(arguments) > 1 and "=" in arguments[0]:
        arguments[1:] = [text if "=" in text else f"{list(KINDS[kind])[1]}={text}" for text in arguments[1:]]
    if draw.chance(0.08):
        arguments.append(f"validate_args={draw.one(('False', 'True', 'None'))}")
    made = draw.fresh("d")
    return made if draw.say(f"{made} = torch.distributions.{kind}({', '.join(arguments)})") else ""


def composed(draw: Draw, base: str) -> str:
    """A distribution that is made of another one."""
    theirs = draw.session.theirs[base]
    exact = theirs.support.is_discrete or theirs.support.event_dim == 2  # which an inverse is not
    kind, made = draw.one(COMPOSED[exact:]), draw.fresh("d")
    if kind == "Independent":
        call = f"{base}, {draw.integer(0, len(theirs.batch_shape) + draw.chance(0.05))}"
    elif kind == "TransformedDistribution":
        parts = transform(draw, draw.integer(0, 2)) if draw.chance(0.9) else ""
        if draw.chance(0.5) and parts:
            parts += f", {transform(draw, 3)}".replace("Tanh", "Exp").replace("Sigmoid", "Exp")
        parts = parts.replace("StickBreaking", "Softplus")  # whose inverse leaves supports by rounding
        call = f"{base}, [{parts}]" if "," in parts or not parts or draw.chance(0.5) else f"{base}, {parts}"
    elif not theirs.batch_shape:
        return base
    else:
        of = dtype_of(draw, base)
        size = theirs.batch_shape[-1] + draw.chance(0.03)
        mixture = distribution(draw, "Categorical", tuple(theirs.batch_shape[:-1]), of, size)
        if not mixture:
            return base
        call = f"{mixture}, {base}"
    return made if draw.say(f"{made} = torch.distributions.{kind}({call})") else base


def expanded(draw: Draw, base: str) -> str:
    """A distribution of a larger batch."""
    shape = tuple(draw.integer(2, 3) if size == 1 else size for size in draw.session.theirs[base].batch_shape)
    shape = (2, *shape) if draw.chance(0.6) else shape
    made = draw.fresh("d")
    return made if draw.say(f"{made} = {base}.expand({shape!r})") else base


def transform(draw: Draw, depth: int = 0) -> str:
    text = draw.one(TRANSFORMS if depth < 2 else TRANSFORMS[:9])
    while "{transform}" in text:
        text = text.replace("{transform}", transform(draw, depth + 1), 1)
    tensors = draw.names(lambda t: t.is_floating_point() and t.ndim < 2)
    for place, numbers in PLACES.items():
        while place in text:
            tensor_is = tensors and draw.chance(0.3)
            text = text.replace(place, draw.one(tensors) if tensor_is else draw.one(numbers), 1)
    text = text.replace("{dim}", str(draw.integer(0, 1)))
    region = draw.one(REGIONS).replace("constraints.", "torch.distributions.constraints.")
    text = text.replace("{region}", f"torch.distributions.constraints.{region}")
    if text.count("Tanh") + text.count("Sigmoid") > 1:  # their inverses multiply rounding errors
        return transform(draw, depth)
    return text if text.startswith("torch") else f"torch.distributions.{text}"


def transforms(draw: Draw) -> None:
    """A transform by itself: both ways, and the logarithm of its determinant."""
    x = tensor(draw, draw.shape(3, draw.integer(0, 2)), draw.one(("real", "positive", "unit")), "float64")
    draw.say(NARROW)  # the inverse of a flat function multiplies rounding errors
    made = draw.fresh("t")
    if not draw.say(f"{made} = {transform(draw)}"):
        return
    for _ in range(draw.integer(2, 6)):
        result = draw.fresh()
        text = draw.one(
            (
                *(f"{made}({x})", f"{made}.inv({x})", f"{made}.log_abs_det_jacobian({x}, {made}({x}))", f"{made}.sign"),
                *(f"repr({made})", f"{made}.event_dim", f"repr({made}.domain)", f"repr({made}.codomain)"),
                *(f"{made}.inv.inv is {made}", f"{made} == {made}", f"{made} == {transform(draw)}"),
                *(
                    f"{made}.inv.log_abs_det_jacobian({x}, {made}.inv({x}))",
                    f"{made}.inv({made}({x}))",
                    f"{made}({x}) is {made}({x})",
                ),
            )
        )
        if draw.say(f"{result} = {text}"):
            gradient(draw, result)


# ---- what is asked -------------------------------------------------------------------------------------------------


def step(draw: Draw, made: str, kind: str, batch: Sequence[int]) -> None:
    """One thing that programs do with a distribution."""
    result = draw.fresh()
    choice = draw.weighted(read=30, log_prob=22, sample=22, cdf=9, icdf=6, kl=8, attribute=8, text=3, change=2)
    if choice == "sample":
        samples(draw, made)
        return
    if choice == "read":
        text = f"{made}.{draw.one(READ)}"
        if kind == "NegativeBinomial" and text.endswith("mode"):
            return  # rounded down from what is often nearly whole
        text += " * 1" * ("enumerate" in text or kind in WIDE)
    elif choice == "log_prob":
        text = f"{made}.log_prob({value(draw, made)})"
    elif choice == "cdf":
        if said(draw, r"Gumbel\((.*\n)*.*(inf|Transformed|Mixture)"):
            return  # of the uniform numbers behind it PyTorch refuses those that are nearly 1
        text = f"{made}.cdf({value(draw, made)})"
    elif choice == "icdf":
        shape = draw.fitting(tuple(draw.session.theirs[made].batch_shape))
        text = f"{made}.icdf({placed(draw, values(draw, shape, 'unit', False, dtype_of(draw, made)))})"
    elif choice == "kl":
        text = divergence(draw, made, kind, batch)
    elif choice == "attribute":
        names = [name for names in KINDS[kind] for name in names.split("|") if name != "total_count"]
        text = f"{made}.{draw.one((*names, 'stddev'))}{' * 1' * (kind in WIDE)}"  # of which strides are no matter
        if draw.chance(0.3):
            draw.say(f"with torch.no_grad(): {draw.fresh()} = {text}")
    elif choice == "text":
        if kind == "LowRankMultivariateNormal":  # of which PyTorch keeps what it was given, before it is expanded
            return
        shape = f"{made}.param_shape" if kind in ("Bernoulli", "Categorical", "Multinomial") else f"repr({made})"
        text = draw.one((shape, f"repr({made})", f"repr({made}.support)", f"{made}.support.is_discrete"))
    else:
        draw.say(f"with torch.no_grad(): {made}.entropy()")
        text = f"{made}.mean"
    if text and draw.say(f"{result} = {text}"):
        gradient(draw, result)


def said(draw: Draw, pattern: str) -> bool:
    """True if the program so far has a text."""
    return re.search(pattern, "\n".join(draw.session.statements)) is not None


def dtype_of(draw: Draw, made: str) -> str:
    """The dtype of a distribution's numbers."""
    names = draw.names(lambda t: t.is_floating_point())
    other = draw.chance(0.03) and not said(draw, r"Bernoulli|Multivariate|Transformed")
    found = draw.value(names[0]).dtype if names else reference.get_default_dtype()
    return dtype(draw) if other else str(found).rpartition(".")[2]


def value(draw: Draw, made: str) -> str:
    """A place to ask a density for; in the support, if that is not odd."""
    theirs = draw.session.theirs[made]
    larger = f".expand({(2, *theirs.batch_shape)!r})" if draw.chance(0.3) else ""
    drawn = draw.session.theirs["_v"] if draw.say(f"_v = {made}{larger}.sample()") else None
    event = tuple(theirs.event_shape)
    shape = draw.fitting(tuple(theirs.batch_shape))
    shape = (2, *shape) if draw.chance(0.3) else shape
    of = dtype_of(draw, made)
    if drawn is None or draw.chance(0.06) or not str(theirs.support):
        return placed(
            draw, values(draw, (*shape, *event), draw.one(("real", "positive", "unit", "count")), draw.chance(0.1), of)
        )
    if drawn.dtype.is_floating_point is False:
        return f"torch.tensor({whole(draw, shape, getattr(theirs.support, 'upper_bound', 1))})"
    # places that PyTorch drew, as text, so that both get the same ones
    text = repr(drawn.double().tolist()) if drawn.numel() else f"torch.ones({tuple(drawn.shape)!r}).tolist()"
    return placed(draw, f"torch.tensor({text}, dtype=torch.{of})")


def placed(draw: Draw, text: str) -> str:
    """A name for a value, whose dtype then decides how exactly results are compared."""
    name = draw.fresh("p")
    draw.say(f"{name} = {text}")
    return name


def whole(draw: Draw, shape: Sequence[int], most: int) -> str:
    """Nested lists of whole numbers."""
    if not shape:
        return str(draw.integer(0, most + draw.chance(0.02)))
    return f"[{', '.join(whole(draw, shape[1:], most) for _ in range(shape[0]))}]"


def samples(draw: Draw, made: str) -> None:
    """Samples, and what the libraries must agree in: all but the numbers."""
    method = draw.weighted(sample=5, rsample=4, sample_n=0.5)
    least = int(said(draw, r"(LKJCholesky|Wishart|Categorical\w*|Multinomial)\("))  # of which PyTorch draws no 0
    shape = draw.one(("", "()", "(2,)", "torch.Size([2])", "(2, 1)", f"({least},)", "[3]"))
    shape = draw.one(("2", str(least))) if method == "sample_n" else shape
    drawn = draw.fresh("_s")
    if not draw.say(f"{drawn} = {made}.{method}({shape})"):
        return
    transformed = said(draw, r"TransformedDistribution\(")  # so that rounding leaves a support
    mixed = type(draw.session.theirs[made]).__name__ == "MixtureSameFamily"  # whose check is of all components
    odd = said(draw, r"\b(inf|nan)\b")
    inside = "0" if transformed or mixed or odd else f"bool({made}.support.check({drawn}).all())"
    draw.say(f"{draw.fresh('f')} = {drawn}.shape, {drawn}.dtype, {drawn}.requires_grad, {inside}")
    if draw.chance(0.4) and not transformed and not mixed:
        draw.say(f"{draw.fresh('f')} = {made}.log_prob({drawn}).shape")
    theirs = draw.session.theirs[drawn]
    wide = theirs.is_floating_point() and theirs.dtype.itemsize == 8
    leaves = draw.names(lambda t: t.requires_grad and t.is_leaf and t.dtype.itemsize == 8)
    gamma = said(draw, r"(Gamma|Chi2|Kumaraswamy|Wishart)\(")  # whose cdf has half of its gradients
    if method == "rsample" and wide and leaves and not gamma and not transformed and draw.chance(0.7):
        leaf, moved, implied = draw.one(leaves), draw.fresh("_g"), draw.fresh("_g")
        fixed = f"{drawn}.detach()"
        draw.say(f"{moved} = torch.autograd.grad({drawn}.sum(), {leaf}, retain_graph=True)[0]")
        density = f"{made}.log_prob({fixed}).exp().detach()"
        if draw.say(f"{implied} = torch.autograd.grad(({made}.cdf({fixed}) / {density}).sum(), {leaf})[0]"):
            alike = f"bool((({moved} + {implied}).abs() <= 1e-3 * (1 + {moved}.abs())).all())"
            draw.say(f"{draw.fresh('f')} = {alike} or not bool({drawn}.isfinite().all())")  # of a Pareto of a low alpha


def divergence(draw: Draw, made: str, kind: str, batch: Sequence[int]) -> str:
    """The divergence from another distribution."""
    pairs = tritensor.distributions.kl._KL_REGISTRY
    others = [other.__name__ for one, other in pairs if one.__name__ == kind and other.__name__ in KINDS]
    theirs = draw.session.theirs[made]
    if said(draw, r"Wishart\(") and tuple(theirs.batch_shape + theirs.event_shape)[:-2]:
        return ""  # PyTorch adds up a part of the whole batch
    if not others or type(theirs).__name__ != kind:
        return f"torch.distributions.kl_divergence({made}, {made})"
    width = theirs.event_shape[-1] if theirs.event_shape else draw.integer(1, 4)
    if kind == "Categorical":
        width = theirs._num_events
    other = distribution(draw, draw.one(others), tuple(theirs.batch_shape), dtype_of(draw, made), width)
    if not other:
        return ""
    return f"torch.distributions.kl_divergence({made}, {other})"


def gradient(draw: Draw, name: str) -> None:
    """The gradients of a result, in most programs."""
    theirs = draw.session.theirs.get(name)
    if theirs is not None and getattr(theirs, "requires_grad", False) and draw.chance(0.7):
        draw.say(f"{name}.sum().backward({draw.one(('', '', 'retain_graph=True'))})")

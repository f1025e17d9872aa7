"""Which operators' kernels may hold approximate instructions in float32, and which: all others divide and take roots as
IEEE 754 asks.

PyTorch is compiled without fast-math, so its `/` and `sqrt` are exact, and its functions are those of the library here.
Triton's `/` is `div.full`, or `div.approx` where the divisor is a constant, and its `sqrt` `sqrt.approx`.
"""

from __future__ import annotations

# By reason: instructions ("div.full" for div.full.f32, "ex2" for ex2.approx.ftz.f32), and the operators.
GROUPS: dict[str, list[tuple[str, str]]] = {
    "within the library's functions, which correct them or state the error": [
        ("ex2", "elu elu_gradient erf exp exp2 expm1 glu log_softmax log_softmax_backward logaddexp logaddexp2"),
        ("ex2", "logcumsumexp logit_error logsumexp sigmoid silu silu_gradient softplus softplus_gradient"),
        ("ex2", "scaled_dot_product_attention_backward weighted_logit_error ctc_loss ctc_backward"),
        ("ex2 rcp", "erfc gelu gelu_gradient gelu_tanh gelu_tanh_gradient lstm_steps_backward special_ndtr tanh"),
        ("ex2 rcp", "tanh_steps"),
        ("ex2 div", "cosh sinh"),
        ("lg2 rcp sqrt", "asinh"),
        ("rcp", "atan atanh lgamma mvlgamma pow tan"),
        ("rsqrt", "acos asin rsqrt"),
        ("sqrt", "acosh hypot"),
        ("div rcp", "floor_divide fmod remainder"),  # of fmod, which is exact
    ],
    "of a sum of exponentials, whose error is larger; bound by the issue of instructions": [
        ("div.full ex2", "softmax cross_entropy cross_entropy_backward cross_entropy_with_gradient"),
        ("div.full ex2", "scaled_dot_product_attention"),
        ("div.full", "nll_loss"),
    ],
    "once a row or channel, for a scale that PyTorch takes from an approximate rsqrt": [
        ("div.full sqrt", "channel_norm channel_norm_backward layer_norm normalize_channels"),
        ("div.full sqrt", "normalize_channels_backward rms_norm"),
        ("div.full", "layer_norm_backward rms_norm_backward"),
    ],
    "the share of each side when moments are merged, which weighs a difference": [("div.full", "var std")],
    "of gates, behind the products that they are functions of": [("div.full ex2 rcp", "gru_steps lstm_steps")],
    "only the sign is read": [("div.full", "copysign signbit")],
    "in series and rational functions, which have errors of their own": [
        ("div.full", "special_orthogonal_polynomial special_spherical_bessel_j0"),
        ("div.full ex2", "special_erfcx"),
        ("div.full ex2 rcp", "special_log_ndtr"),
        ("div.full ex2 rcp sqrt", "igamma igammac"),
        ("div.full ex2 sqrt", "i0 special_i1 special_modified_bessel_k0 special_modified_bessel_k1"),
        ("div.full ex2 sqrt", "special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1"),
        ("div.full rcp", "derived_digamma digamma special_zeta"),
        ("div.full sqrt", "erfinv special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1"),
        ("div.full sqrt", "special_i0e special_i1e special_ndtri"),
        ("div.approx.f32 div.full ex2 sqrt", "special_airy_ai"),
        ("div div.full ex2 rsqrt sqrt", "special_chebyshev_polynomial"),
    ],
}

ALLOWED = {
    name: {
        {"div.full": "div.full.f32"}.get(each, each if "." in each else f"{each}.approx.ftz.f32")
        for each in what.split()
    }
    for entries in GROUPS.values()
    for what, names in entries
    for name in names.split()
}

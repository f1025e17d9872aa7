"""captum: attributions of a prediction to inputs, layers and neurons."""

from __future__ import annotations

from typing import Any

import captum.attr
import numpy as np
import torch
from captum.attr import visualization


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(3, 6, 3, padding=1)
        self.relu1, self.relu2 = torch.nn.ReLU(), torch.nn.ReLU()
        self.pool = torch.nn.MaxPool2d(2)
        self.hidden, self.out = torch.nn.Linear(6 * 16, 12), torch.nn.Linear(12, 4)

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        x = self.pool(self.relu1(self.convolution(x)))
        return self.out(self.relu2(self.hidden(x.flatten(1)))) * scale


def given(carry: Any) -> tuple[Net, torch.Tensor, torch.Tensor]:
    x = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 3, 8, 8), dtype=np.float32))
    return carry.module("net", Net()).eval(), x, torch.tensor([1, 3])


def case_integrated_gradients(carry: Any) -> None:
    net, x, target = given(carry)
    method = captum.attr.IntegratedGradients(net)
    found, delta = method.attribute(x, torch.zeros_like(x), target, n_steps=20, return_convergence_delta=True)
    carry.check("found", found)
    carry.check("delta", delta, atol=1e-3)
    carry.check("in parts", method.attribute(x, target=target, n_steps=20, internal_batch_size=8))


def case_gradients(carry: Any) -> None:
    net, x, target = given(carry)
    carry.check("saliency", captum.attr.Saliency(net).attribute(x, target))
    carry.check("product", captum.attr.InputXGradient(net).attribute(x, target, additional_forward_args=(2.0,)))
    carry.check("guided", captum.attr.GuidedBackprop(net).attribute(x, target))
    carry.check("deconvolution", captum.attr.Deconvolution(net).attribute(x, target))
    carry.check("guided cam", captum.attr.GuidedGradCam(net, net.convolution).attribute(x, target))
    tunnel = captum.attr.NoiseTunnel(captum.attr.Saliency(net))
    carry.check("no noise", tunnel.attribute(x, nt_samples=3, stdevs=0.0, nt_type="smoothgrad", target=target))


def case_deep_lift(carry: Any) -> None:
    net, x, target = given(carry)
    found, delta = captum.attr.DeepLift(net).attribute(x, x * 0, target, return_convergence_delta=True)
    carry.check("found", found)
    carry.check("delta", delta, atol=1e-3)
    carry.check("shap", captum.attr.DeepLiftShap(net).attribute(x, torch.cat([x * 0, x.flip(0)]), target))


def case_layers(carry: Any) -> None:
    net, x, target = given(carry)
    maps = captum.attr.LayerGradCam(net, net.convolution).attribute(x, target)
    carry.check("maps", maps)
    carry.check("larger", captum.attr.LayerAttribution.interpolate(maps, (16, 16)))
    carry.check("activation", captum.attr.LayerActivation(net, net.hidden).attribute(x))
    carry.check("conductance", captum.attr.LayerConductance(net, net.hidden).attribute(x, target=target, n_steps=10))
    carry.check("layer", captum.attr.LayerIntegratedGradients(net, net.pool).attribute(x, target=target, n_steps=10))
    carry.check("neuron", captum.attr.NeuronGradient(net, net.hidden).attribute(x, 2))


def case_perturbations(carry: Any) -> None:
    net, x, target = given(carry)
    with torch.no_grad():
        occlusion = captum.attr.Occlusion(net)
        carry.check("occlusion", occlusion.attribute(x, (3, 3, 3), strides=(3, 2, 2), target=target, baselines=0))
        mask = (
            torch.arange(4)
            .reshape(2, 2)
            .repeat_interleave(4, 0)
            .repeat_interleave(4, 1)
            .expand(1, 3, 8, 8)
            .contiguous()
        )
        carry.check("ablation", captum.attr.FeatureAblation(net).attribute(x, target=target, feature_mask=mask))
        shapley = captum.attr.ShapleyValues(net).attribute(x, target=target, feature_mask=mask)
        carry.check("shapley", shapley)


def case_picture(carry: Any) -> None:
    net, x, target = given(carry)
    found = captum.attr.Saliency(net).attribute(x, target, abs=False)[0].permute(1, 2, 0).numpy()
    figure, _ = visualization.visualize_image_attr(found, None, "heat_map", "all", use_pyplot=False)
    carry.check("axes", len(figure.axes))
    embedded = torch.nn.Sequential(torch.nn.Embedding(20, 8), torch.nn.Flatten(), torch.nn.Linear(40, 2))
    embedded = carry.module("embedded", embedded)
    tokens = torch.from_numpy(np.random.default_rng(0).integers(0, 20, (2, 5)))
    method = captum.attr.LayerIntegratedGradients(embedded, embedded[0])
    carry.check("tokens", method.attribute(tokens, tokens * 0, target=1, n_steps=10))

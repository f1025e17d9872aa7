"""Hooks on modules and tensors: features of a layer, gradients, and weights that a hook changes."""

from collections import defaultdict

import tritensor as torch
from tritensor import nn

model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
activations: dict[str, torch.Tensor] = {}
gradients = defaultdict(list)


def get_activation(name):
    def hook(module, input, output):
        activations[name] = output.detach()

    return hook


def clip(grad):
    return grad.clamp(-0.1, 0.1)


handles = [layer.register_forward_hook(get_activation(name)) for name, layer in model.named_children()]
model[0].register_forward_pre_hook(lambda module, args: (args[0] * 2,))
model[2].register_full_backward_hook(lambda module, grad_in, grad_out: gradients["out"].append(grad_out[0].norm()))
for name, param in model.named_parameters():
    if param.dim() > 1:
        param.register_hook(clip)

x = torch.randn(3, 4, requires_grad=True)
y = model(x)
y.retain_grad()
y.register_hook(lambda grad: print("gradient of y:", tuple(grad.shape)))
y.pow(2).sum().backward()
print({name: list(value.shape) for name, value in activations.items()})
print(len(gradients["out"]), y.grad.shape, x.grad.shape)
for name, param in model.named_parameters():
    grad = param.grad
    if grad is None:
        continue
    print(f"{name:10} {grad.norm().item():.3f} {grad.abs().max().item():.3f}")
for handle in handles:
    handle.remove()
activations.clear()
model(x)
assert not activations

embedding = nn.Embedding(10, 3, padding_idx=0)
with torch.no_grad():
    embedding.weight[1:].mul_(0.5)
    embedding.weight.data.uniform_(-1, 1)
print(embedding(torch.tensor([[0, 1], [2, 3]])).shape)

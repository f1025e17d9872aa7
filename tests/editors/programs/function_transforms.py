"""Transformations of functions: gradients of samples, Jacobians, ensembles, forward mode."""

import tritensor as torch
import tritensor.autograd.forward_ad as fwAD
from tritensor import nn
from tritensor.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, stack_module_state, vjp, vmap

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
params = {name: value.detach() for name, value in model.named_parameters()}
buffers = {name: value.detach() for name, value in model.named_buffers()}


def compute_loss(params, buffers, sample, target):
    prediction = functional_call(model, (params, buffers), (sample.unsqueeze(0),))
    return nn.functional.mse_loss(prediction, target.unsqueeze(0))


data, targets = torch.randn(5, 3), torch.randn(5, 1)
per_sample = vmap(grad(compute_loss), in_dims=(None, None, 0, 0))(params, buffers, data, targets)
print({name: tuple(value.shape) for name, value in per_sample.items()})


def f(x):
    return x.sin().sum() * x[0]


x = torch.randn(3)
print(jacrev(f)(x).shape, torch.allclose(jacrev(f)(x), jacfwd(f)(x), atol=1e-6), hessian(f)(x).shape)
value, tangent = jvp(f, (x,), (torch.ones(3),))
out, pullback = vjp(f, x)
print(value.shape, tangent.shape, pullback(torch.tensor(1.0))[0].shape, out.item() == value.item())

models = [nn.Linear(3, 2) for _ in range(4)]
stacked, stacked_buffers = stack_module_state(models)
outputs = vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), in_dims=(0, 0, None))(
    stacked, stacked_buffers, data
)
print(outputs.shape, torch.vmap(torch.dot)(data, data).shape, torch.func.grad(lambda t: (t**2).sum())(x) / 2 - x)
with fwAD.dual_level():
    dual = fwAD.make_dual(x, torch.ones_like(x))
    primal, tangent = fwAD.unpack_dual(dual**2)
    print(tangent is not None, primal.shape)
print(torch.autograd.functional.jacobian(lambda t: t**2, x).diag() / 2 - x)

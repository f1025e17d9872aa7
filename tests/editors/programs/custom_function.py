"""Functions with gradients of their own: a straight-through estimator, an exponential, checked by gradcheck."""

import tritensor as torch
from tritensor.autograd import Function, gradcheck


class STE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        return input.sign()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.clamp(-1, 1)


class Exp(Function):
    @staticmethod
    def forward(ctx, i, scale=1.0):
        result = (i * scale).exp()
        ctx.save_for_backward(result)
        ctx.scale = scale
        return result

    @staticmethod
    def backward(ctx, *grad_outputs):
        (grad_output,) = grad_outputs
        (result,) = ctx.saved_tensors
        if not ctx.needs_input_grad[0]:
            return None, None
        return grad_output * result * ctx.scale, None


class LinearFunction(Function):
    @staticmethod
    def forward(input, weight, bias=None):
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def setup_context(ctx, inputs, output):
        input, weight, bias = inputs
        ctx.save_for_backward(input, weight, bias)

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias


class Binary(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3, 2))

    def forward(self, x):
        return STE.apply(x @ self.weight)


torch.manual_seed(0)
net = Binary()
net(torch.randn(4, 3)).sum().backward()
print(net.weight.grad.shape, net.weight.grad.abs().sum().item() > 0)
x = torch.randn(5, dtype=torch.double, requires_grad=True)
print(gradcheck(lambda t: Exp.apply(t, 0.5), (x,), eps=1e-6, atol=1e-4))
inputs = [torch.randn(*size, dtype=torch.float64, requires_grad=True) for size in ((4, 3), (2, 3), (2,))]
print(torch.autograd.gradcheck(LinearFunction.apply, tuple(inputs)))
(first,) = torch.autograd.grad(x.pow(3).sum(), x, create_graph=True)
(second,) = torch.autograd.grad(first.sum(), x)
print(torch.allclose(second, 6 * x))

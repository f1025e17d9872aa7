"""Regression by hand with autograd, then with LBFGS and a Parameter; numbers, devices and dtypes."""

import math

import numpy as np

import tritensor as torch

dtype = torch.float
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_default_dtype(torch.float32)
x = torch.linspace(-math.pi, math.pi, 100, device=device, dtype=dtype)
y = torch.sin(x)
a = torch.randn((), device=device, dtype=dtype, requires_grad=True)
b = torch.randn((), device=device, dtype=dtype, requires_grad=True)
c = torch.randn((), device=device, dtype=dtype, requires_grad=True)
learning_rate = 1e-4
for t in range(5):
    y_pred = a + b * x + c * x**2
    loss = (y_pred - y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        a -= learning_rate * a.grad
        b -= learning_rate * b.grad
        c.sub_(c.grad * learning_rate)
        for p in (a, b, c):
            if p.grad is not None:
                p.grad.zero_()
a.grad = None
print(f"Result: y = {a.item():.2f} + {b.item():.2f} x + {c.item():.2f} x^2")


class Polynomial(torch.nn.Module):
    def __init__(self, degree: int):
        super().__init__()
        self.coefficients = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(())) for _ in range(degree + 1)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return sum((p * x**i for i, p in enumerate(self.coefficients)), torch.zeros_like(x))

    def string(self) -> str:
        return " + ".join(f"{p.item():.2f} x^{i}" for i, p in enumerate(self.coefficients))


model = Polynomial(3).to(device)
optimizer = torch.optim.LBFGS(model.parameters(), lr=1, max_iter=10, line_search_fn="strong_wolfe")
criterion = torch.nn.MSELoss(reduction="mean")


def closure():
    optimizer.zero_grad()
    loss = criterion(model(x), y)
    loss.backward()
    return loss


optimizer.step(closure)
residual = (model(x) - y).detach().cpu().numpy()
print(model.string(), np.abs(residual).max() < 1)
weights = np.linalg.lstsq(np.vander(x.cpu().numpy(), 4), y.cpu().numpy(), rcond=None)[0]
difference = torch.as_tensor(weights[::-1].copy()) - torch.stack(list(model.parameters())).detach().cpu()
print(difference.abs().max().item() < 1, torch.get_default_dtype(), x.double().dtype, x.to(torch.float16).element_size())
print(2 / (1 + x[:2].abs()), 3 - x[0], 2**y[:2], abs(-x[0]), x[0] // 1, ~(x > 0)[:2], (x[:2] > 0) & (y[:2] > 0))

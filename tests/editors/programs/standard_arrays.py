"""The Python array API standard, transforms of Fourier, linear algebra, special and masked functions."""

import tritensor as torch
from tritensor import array_api as xp


def standardize(x, axis=0):
    namespace = x.__array_namespace__()
    mean = namespace.mean(x, axis=axis, keepdims=True)
    std = namespace.std(x, axis=axis, keepdims=True)
    return (x - mean) / std


x = xp.reshape(xp.arange(12, dtype=xp.float64), (4, 3))
print(standardize(x).shape, xp.sum(x, axis=1) + 1, xp.concat([x, x], axis=0).shape)
print(xp.where(x > 3, x, xp.zeros_like(x))[0, 0], xp.argmax(x), xp.astype(x, xp.int64).dtype, xp.pi)
print(xp.unique_values(xp.asarray([3, 1, 1])), xp.linalg.matmul(x, xp.permute_dims(x, (1, 0))).shape)
print(xp.expand_dims(x, axis=0).shape, xp.tensordot(x, x, axes=2), xp.isdtype(x.dtype, "real floating"))
print(len(xp.broadcast_arrays(x, xp.ones(3, dtype=xp.float64))), [each.shape for each in xp.meshgrid(x[:, 0], x[0, :])])

signal = torch.sin(torch.linspace(0, 8 * torch.pi, 64))
spectrum = torch.fft.rfft(signal)
power = spectrum.abs() ** 2
frequency = torch.fft.rfftfreq(64, d=1 / 64)[power.argmax()]
print(frequency.item(), torch.allclose(torch.fft.irfft(spectrum, n=64), signal, atol=1e-5))
window = torch.hann_window(16)
print(torch.stft(signal, n_fft=16, hop_length=4, window=window, return_complex=True).shape)

A = torch.randn(4, 4, dtype=torch.float64)
A = A @ A.mT + 4 * torch.eye(4, dtype=torch.float64)
L = torch.linalg.cholesky(A)
eigenvalues, eigenvectors = torch.linalg.eigh(A)
U, S, Vh = torch.linalg.svd(A)
b = torch.ones(4, 1, dtype=torch.float64)
print(torch.linalg.norm(A @ torch.linalg.solve(A, b) - b).item() < 1e-9, (L @ L.mT - A).abs().max().item() < 1e-9)
print(torch.linalg.det(A).item() > 0, eigenvalues.min().item() > 0, (U @ torch.diag(S) @ Vh - A).abs().max() < 1e-9)
print(torch.linalg.slogdet(A).sign, torch.linalg.qr(A).R.shape, torch.linalg.inv(A).diagonal().sum() > 0)
print(torch.special.erf(torch.tensor(0.5)) + torch.special.gammaln(torch.tensor(3.0)), torch.special.expit(b).sum())
print(torch.masked.sum(x, 1, mask=x > 2), torch.masked.amax(x, 0, mask=x > 2).shape)

"""A variational autoencoder, with its loss written by hand and with `distributions`."""

import tritensor as torch
import tritensor.nn as nn
import tritensor.nn.functional as F
from tritensor.distributions import Normal, kl_divergence


class VAE(nn.Module):
    def __init__(self, n_in=20, n_hidden=16, n_latent=2):
        super(VAE, self).__init__()
        self.encoder = nn.Sequential(nn.Linear(n_in, n_hidden), nn.ReLU())
        self.fc_mu = nn.Linear(n_hidden, n_latent)
        self.fc_logvar = nn.Linear(n_hidden, n_latent)
        self.decoder = nn.Sequential(nn.Linear(n_latent, n_hidden), nn.ReLU(), nn.Linear(n_hidden, n_in), nn.Sigmoid())

    def encode(self, x):
        h = self.encoder(x)
        return self.fc_mu(h), self.fc_logvar(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 20))
        z = self.reparameterize(mu, logvar)
        return self.decoder(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 20), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


torch.manual_seed(1)
model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
data = torch.rand(64, 20).round()
for epoch in range(3):
    train_loss = 0
    for batch in data.split(16):
        optimizer.zero_grad()
        recon, mu, logvar = model(batch)
        loss = loss_function(recon, batch, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    print(f"epoch {epoch}: {train_loss / len(data):.3f}")

with torch.inference_mode():
    mu, logvar = model.encode(data)
    posterior = Normal(mu, (0.5 * logvar).exp())
    prior = Normal(torch.zeros_like(mu), torch.ones_like(mu))
    print(kl_divergence(posterior, prior).sum(-1).mean().item() >= 0)
    sample = model.decoder(prior.sample()).cpu().numpy()
    print(sample.shape, sample.min() >= 0)

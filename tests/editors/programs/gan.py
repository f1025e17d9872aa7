"""A generator and a discriminator of numbers, trained in turn."""

import argparse

import tritensor as torch
from tritensor import autograd, nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--seed", type=int, default=0)
opt = parser.parse_args([])
torch.manual_seed(opt.seed)
real_label, fake_label, nz = 1.0, 0.0, 4


def weights_init(m):
    classname = m.__class__.__name__
    if classname.find("Linear") != -1:
        nn.init.normal_(m.weight.data, 0.0, 0.02)
        nn.init.constant_(m.bias.data, 0)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(nz, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))

    def forward(self, input):
        return self.main(input)


def gradient_penalty(netD, real, fake):
    alpha = torch.rand(real.size(0), 1)
    between = (alpha * real + (1 - alpha) * fake).requires_grad_(True)
    scores = netD(between)
    gradients = autograd.grad(scores, between, torch.ones_like(scores), create_graph=True, retain_graph=True)[0]
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


netG = Generator().apply(weights_init)
netD = nn.Sequential(nn.Linear(1, 8), nn.LeakyReLU(0.2, inplace=True), nn.Linear(8, 1))
netD.apply(weights_init)
criterion = nn.BCEWithLogitsLoss()
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
optimizerG = torch.optim.RMSprop(netG.parameters(), lr=2e-4)
fixed_noise = torch.randn(5, nz)
for step in range(opt.steps):
    real = torch.normal(3.0, 0.5, size=(16, 1))
    label = torch.full((16,), real_label, dtype=real.dtype)
    netD.zero_grad()
    errD_real = criterion(netD(real).view(-1), label)
    errD_real.backward()
    fake = netG(torch.randn(16, nz))
    label.fill_(fake_label)
    output = netD(fake.detach()).view(-1)
    errD_fake = criterion(output, label)
    errD_fake.backward()
    (10 * gradient_penalty(netD, real, fake.detach())).backward()
    optimizerD.step()
    for p in netD.parameters():
        p.requires_grad = False
    netG.zero_grad()
    errG = criterion(netD(fake).view(-1), label.fill_(real_label))
    errG.backward()
    optimizerG.step()
    for p in netD.parameters():
        p.requires_grad = True
    print(f"[{step}/{opt.steps}] {(errD_real + errD_fake).item():.3f} {errG.item():.3f} {torch.sigmoid(output).mean()}")
with torch.set_grad_enabled(False):
    print(netG(fixed_noise).detach().numpy().std() >= 0)

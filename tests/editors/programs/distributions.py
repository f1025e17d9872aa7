"""Distributions: sampling, densities, transforms, constraints; REINFORCE with a categorical policy."""

import tritensor as torch
from tritensor import distributions as D
from tritensor import nn
from tritensor.distributions import Categorical, MultivariateNormal, constraints

torch.manual_seed(0)
normal = D.Normal(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
sample = normal.sample((1000,))
print(sample.shape, normal.log_prob(sample).sum(-1).mean().item() < 0, normal.entropy().tolist())
loc = torch.zeros(2, requires_grad=True)
mvn = MultivariateNormal(loc, torch.eye(2))
mvn.log_prob(mvn.rsample()).backward()
print(loc.grad.shape, mvn.batch_shape, mvn.event_shape)
base = D.Normal(0.0, 1.0)
log_normal = D.TransformedDistribution(base, [D.transforms.ExpTransform()])
print(log_normal.sample((3,)).min().item() > 0, D.Uniform(0, 1).support, constraints.positive)
mixture = D.MixtureSameFamily(Categorical(torch.ones(2)), D.Normal(torch.tensor([-1.0, 1.0]), torch.ones(2)))
print(mixture.log_prob(torch.tensor(0.3)).item() < 0, D.kl_divergence(normal, D.Normal(0.0, 1.0)).tolist())


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine = nn.Linear(4, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        return torch.softmax(self.affine(x), dim=1)


def select_action(policy, state):
    probs = policy(state.float().unsqueeze(0))
    m = Categorical(probs)
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()


def finish_episode():
    R = 0
    policy_loss = []
    returns = []
    for r in policy.rewards[::-1]:
        R = r + 0.99 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-8)
    for log_prob, R in zip(policy.saved_log_probs, returns):
        policy_loss.append(-log_prob * R)
    optimizer.zero_grad()
    policy_loss = torch.cat(policy_loss).sum()
    policy_loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]
    return policy_loss.dim()


policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for t in range(5):
    action = select_action(policy, torch.randn(4))
    policy.rewards.append(1.0 if action == 1 else 0.0)
print(finish_episode())

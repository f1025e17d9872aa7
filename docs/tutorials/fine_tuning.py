"""
Fine-tune a model of transformers
=================================

The library transformers (``pip install transformers``) is written for
PyTorch, and runs on tritensor unchanged. A small Llama learns English
from Python's manual, then Python code by LoRA, with its own weights
frozen. No network is needed: the model starts from random weights, and
both texts come with Python.
"""

# %%
# PyTorch's name
# --------------
#
# After ``names.install()``, ``import torch`` finds tritensor in this
# process, also within transformers. PyTorch need not be installed. For
# a whole program, ``python -m tritensor run train.py`` does the same.

import inspect
from pydoc_data.topics import topics

import matplotlib.pyplot as plt

import tritensor as torch
from tritensor.scripts import names

names.install()

from transformers import LlamaConfig, LlamaForCausalLM

print(
    "a model is a tritensor module:",
    issubclass(LlamaForCausalLM, torch.nn.Module),
)

# %%
# Two texts
# ---------
#
# A token is a byte, so the vocabulary is that of ASCII, and there is no
# tokenizer. The last tenth of each text is for testing.


def tokens(text):
    numbers = torch.tensor(list(text.encode("ascii", "ignore")))
    return numbers.tensor_split([len(numbers) * 9 // 10])


manual = "\n".join(topics[name] for name in sorted(topics))
code = inspect.getsource(inspect)
texts = {"manual": tokens(manual), "code": tokens(code)}
for name, (train, test) in texts.items():
    print(
        f"{name}: {len(train):,} bytes, and {len(test):,} for testing"
    )

# %%
# A small Llama
# -------------

config = LlamaConfig(
    vocab_size=128,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=64,
    attn_implementation="eager",  # which can return its attention
)
torch.manual_seed(0)
model = LlamaForCausalLM(config)


def batch(text, size=8, length=64):
    starts = torch.randint(0, len(text) - length, (size, 1))
    return text[starts + torch.arange(length)]


def fit(text, steps, lr):
    """Train what requires a gradient; the losses of the steps."""
    trained = [p for p in model.parameters() if p.requires_grad]
    print(f"{sum(p.numel() for p in trained):,} numbers are trained")
    optimizer, losses = torch.optim.AdamW(trained, lr=lr), []
    for _ in range(steps):
        part = batch(text)
        loss = model(part, labels=part).loss  # it shifts the labels
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def test_losses():
    torch.manual_seed(1)
    parts = [batch(test, 64) for _, test in texts.values()]
    return [model(part, labels=part).loss.item() for part in parts]


learned = fit(texts["manual"][0], 200, 5e-3)
before = test_losses()

# %%
# LoRA by hand
# ------------
#
# Each linear layer of the blocks keeps its weight and gets a product of
# two thin matrices beside it. The second one is zero at first, so the
# model starts where it was. Only these matrices are trained.


class LoRA(torch.nn.Module):
    def __init__(self, layer, rank=8):
        super().__init__()
        self.layer = layer
        self.down = torch.nn.Linear(layer.in_features, rank, bias=False)
        self.up = torch.nn.Linear(rank, layer.out_features, bias=False)
        torch.nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.layer(x) + 2 * self.up(self.down(x))


model.requires_grad_(False)
for name, layer in list(model.model.layers.named_modules()):
    if isinstance(layer, torch.nn.Linear):
        parent, _, child = name.rpartition(".")
        setattr(
            model.model.layers.get_submodule(parent), child, LoRA(layer)
        )

tuned = fit(texts["code"][0], 100, 1e-2)
after = test_losses()

# %%
# The loss rises where the text changes, and falls again. On text that
# was held out, the loss on code fell, and that on the manual rose.

fig, (left, right) = plt.subplots(
    1, 2, figsize=(9, 3.2), layout="constrained"
)
left.plot(learned, label="manual, all parameters")
left.plot(range(200, 300), tuned, label="code, LoRA")
left.set(xlabel="step", title="Training: cross entropy of a byte")
left.legend()
right.bar(list(texts), before, label="before LoRA")
right.bar(list(texts), after, 0.5, label="after LoRA")
right.set(title="On held-out text", ylim=(0, 3.4))
right.legend(loc="upper center", ncols=2)
plt.show()

# %%
# What attention looks at
# -----------------------
#
# Each row is a byte of the text, and its colours say how much weight
# each head of the last layer gave to the bytes before it.

line = "for name in names:"
with torch.no_grad():
    out = model(
        torch.tensor([[*line.encode()]]), output_attentions=True
    )

fig, axes = plt.subplots(1, 4, figsize=(9, 2.7), layout="constrained")
for number, ax in enumerate(axes):
    ax.imshow(
        out.attentions[-1][0, number], cmap="Greens", vmin=0, vmax=1
    )
    ax.set_title(f"head {number}")
    ax.set_xticks(range(len(line)), line, fontsize=7)
    ax.set_yticks(range(len(line)), line, fontsize=7)
    ax.grid(False)
plt.show()

# %%
# Next
# ----
#
# * `Programs as they are <../scripts.html>`_: programs that import
#   torch
# * `Libraries <../libraries.html>`_: which ones were tried, and with
#   what results
# * `lora_llama.py <../examples/lora_llama.html>`_: the same with
#   transformers' Trainer, peft's LoRA and a tokenizer
# * `Checkpoints <../checkpoints.html>`_: how a model is saved

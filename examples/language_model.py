"""Train a small GPT to write like Python's own manual, letter by letter, and let it write.

    python examples/language_model.py
    python examples/language_model.py --device cuda --graph --steps 2000 --width 256 --layers 6
    TRITENSOR_SIMULATE_CUDA=1 python examples/language_model.py --device cuda --graph --steps 3 --batch 2 --write 20
    python examples/language_model.py --tokenizer 1000

The text is that of `help()` about the language: 450 KB that are part of Python. With --graph the training step is
captured once as a CUDA graph and replayed, so that the host's part of a step is one call. With --tokenizer the model
writes pieces of words in place of letters: a vocabulary that Hugging Face's package tokenizers learns from the text.
"""

import argparse
import math
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from pydoc_data.topics import topics

from tqdm import tqdm

import tritensor as torch
from tritensor import nn
from tritensor.nn import functional as F

WARM_UP = 3  # steps before a capture, in which kernels are compiled and the optimizer makes its state


class Attention(nn.Module):
    """Each position attends to itself and to those before it, with several heads."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.project_in = nn.Linear(width, 3 * width)
        self.project_out = nn.Linear(width, width)

    def forward(self, x, cache=None):
        """With a cache, a list that is empty at first, `x` follows the positions whose keys and values are in it."""
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.project_in(x).split(width, dim=2)
        )
        if cache:
            key, value = torch.cat((cache[0], key), dim=2), torch.cat((cache[1], value), dim=2)
        if cache is not None:
            cache[:] = key, value
        dropout = self.dropout if self.training else 0.0
        seen = F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=length > 1)
        return self.project_out(seen.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.before_attention, self.before_layers = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, dropout)
        self.layers = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(dropout)
        )

    def forward(self, x, cache=None):
        x = x + self.attention(self.before_attention(x), cache)
        return x + self.layers(self.before_layers(x))


class GPT(nn.Module):
    """Numbers of letters, of shape (batch, length), become scores of the letters that follow."""

    def __init__(self, letters, context, width, layers, heads, dropout):
        super().__init__()
        self.context = context
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads, dropout) for _ in range(layers)])
        self.last = nn.LayerNorm(width)
        self.scores = nn.Linear(width, letters, bias=False)
        self.scores.weight = self.letters.weight
        for name, parameter in self.named_parameters():
            if name.endswith("weight") and parameter.dim() == 2:
                deep = math.sqrt(2 * layers) if name.endswith(("project_out.weight", "layers.2.weight")) else 1
                nn.init.normal_(parameter, std=0.02 / deep)

    def forward(self, numbers, caches=None):
        """With caches, one for each block, `numbers` are the first ones, or one that follows those that went before."""
        start = caches[0][0].shape[2] if caches and caches[0] else 0
        places = torch.arange(start, start + numbers.shape[1], device=numbers.device)
        x = self.letters(numbers) + self.places(places)
        for number, block in enumerate(self.blocks):
            x = block(x, caches and caches[number])
        return self.scores(self.last(x))

    @torch.no_grad()
    def write(self, numbers, count, temperature=0.8, top_k=10, cached=True):
        """Append `count` letters to a text of shape (1, length).

        The model looks back on `context` letters at most; when there are more, it forgets the older half. With caches
        a new letter is one position for the model, without them it is all that it looks back on.
        """
        first, caches = 0, None
        for _ in range(count):
            if numbers.shape[1] - first > self.context:
                first, caches = numbers.shape[1] - max(self.context // 2, 1), None
            new = numbers[:, first:] if caches is None else numbers[:, -1:]
            if cached and caches is None:
                caches = [[] for _ in self.blocks]
            scores = self(new, caches)[:, -1] / temperature
            best, places = scores.topk(min(top_k, scores.shape[-1]))
            drawn = torch.multinomial(F.softmax(best, dim=-1), num_samples=1)
            numbers = torch.cat((numbers, places.gather(1, drawn)), dim=1)
        return numbers


def load_text(vocabulary=0):
    """The manual as numbers of letters, and the letters: training text, test text, letters.

    With a vocabulary, a "letter" is one of that many frequent pieces of words, the single letters among them.
    """
    text = "\n\n".join(topics[name] for name in sorted(topics))
    if vocabulary:
        tokenizer = learn_pieces(text, vocabulary)
        letters = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
        numbers = torch.tensor(tokenizer.encode(text).ids)
    else:
        letters = sorted(set(text))
        number = {letter: i for i, letter in enumerate(letters)}
        numbers = torch.tensor([number[letter] for letter in text])
    held_out = len(numbers) // 10
    return numbers[:-held_out], numbers[-held_out:], letters


def learn_pieces(text, vocabulary):
    """A tokenizer by byte pair encoding, whose pieces are within a word, the space before it, or between two words."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\s?\w+|\s+|[^\s\w]+"), "isolated")
    tokenizer.train_from_iterator([text], trainers.BpeTrainer(vocab_size=vocabulary, show_progress=False))
    return tokenizer


def draw_batch(text, batch, context):
    """Pieces from random positions of the text, and the same shifted by one letter."""
    starts = torch.randint(0, len(text) - context, (batch, 1))
    places = starts + torch.arange(context)
    return text[places], text[places + 1]


def loss_of(model, x, y):
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def training_step(model, optimizer, x, y):
    optimizer.zero_grad(set_to_none=True)
    loss = loss_of(model, x, y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss


def captured(model, optimizer, into_x, into_y):
    """The step as a graph: a function that copies a batch into the graph's memory and replays the graph."""
    for _ in range(WARM_UP):
        training_step(model, optimizer, into_x, into_y)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = training_step(model, optimizer, into_x, into_y)

    def step(x, y):
        into_x.copy_(x)
        into_y.copy_(y)
        graph.replay()
        return loss

    return step


def train(model, text, arguments, device):
    """Train in place; returns the seconds that the steps took, and the loss of every tenth step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.lr, weight_decay=0.1, capturable=arguments.graph)

    def batch():
        return draw_batch(text, arguments.batch, arguments.context)

    def step(x, y):
        return training_step(model, optimizer, x.to(device), y.to(device))

    if arguments.graph:
        step = captured(model, optimizer, *(part.to(device) for part in batch()))
    losses, start = [], time.perf_counter()
    with tqdm(total=arguments.steps, desc=f"training on {device}", unit="step", mininterval=0.25) as bar:
        for number in range(arguments.steps):
            loss = step(*batch())
            if number % 10 == 0:  # reading the loss waits for the device
                losses.append(loss.item())
                bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
            bar.update()
    return time.perf_counter() - start, losses


@torch.no_grad()
def loss_on(model, text, arguments, device):
    """The mean cross entropy of a letter in text that the model has not seen."""
    model.eval()
    losses = []
    for _ in range(4):
        x, y = draw_batch(text, arguments.batch, arguments.context)
        losses.append(loss_of(model, x.to(device), y.to(device)).item())
    return sum(losses) / len(losses)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--graph", action="store_true", help="replay the training step as a CUDA graph")
    for name, value, text in (
        ("steps", 400, "training steps"),
        ("batch", 16, "pieces of text in a step"),
        ("context", 64, "letters that the model looks back"),
        ("width", 64, "of its vectors"),
        ("layers", 2, "of attention"),
        ("heads", 4, "in each"),
        ("write", 400, "letters to write at the end"),
        ("tokenizer", 0, "pieces of words in place of letters; 0 for letters"),
    ):
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N", help=f"{text} ({value})")
    parser.add_argument("--lr", type=float, default=3e-3, metavar="RATE", help="learning rate (0.003)")
    parser.add_argument("--picture", type=Path, metavar="PATH", help="where to draw the curve of the losses")
    parser.add_argument("--dropout", type=float, default=0.0, metavar="P", help="share of what is dropped (0)")
    arguments = parser.parse_args()
    if arguments.graph and arguments.device == "cpu":
        parser.error("--graph: there are CUDA graphs on CUDA devices only (--device cuda)")
    if arguments.tokenizer and find_spec("tokenizers") is None:
        parser.error("--tokenizer: pip install tokenizers")
    if arguments.width % arguments.heads:
        parser.error(f"--width {arguments.width} cannot be shared out to {arguments.heads} heads")
    return arguments


def teach(model, text, arguments, device, train, loss_on):
    """Train a model of letters, say how well it did before and after, and let it write; `text` is of `load_text`."""
    train_text, test_text, letters = text
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"{parameters:,} parameters; {len(train_text):,} letters to learn from, {len(letters)} different ones")

    before = loss_on(model, test_text, arguments, device)
    model.train()
    seconds, losses = train(model, train_text, arguments, device)
    after = loss_on(model, test_text, arguments, device)
    print(
        f"loss on text that it has not seen: {before:.3f}, after {arguments.steps} steps in {seconds:.1f} s {after:.3f}"
    )

    if arguments.picture:
        from training import draw_losses

        draw_losses(losses, arguments.picture, every=10, unit="step")
    written = model.write(torch.tensor([[letters.index("T")]], device=device), arguments.write)
    print("".join(letters[number] for number in written[0].tolist()))


def main():
    arguments = parse_arguments()
    device = torch.device(arguments.device)
    torch.manual_seed(0)
    text = load_text(arguments.tokenizer)
    model = GPT(len(text[2]), arguments.context, arguments.width, arguments.layers, arguments.heads, arguments.dropout)
    teach(model.to(device), text, arguments, device, train, loss_on)


if __name__ == "__main__":
    try:
        main()
    except torch.errors.DeviceError as error:  # no device, or simulation without Triton: the message says what to do
        sys.exit(f"{error}")

"""Train an LSTM to write like Python's own manual, letter by letter, and let it write.

    python examples/lstm_language_model.py
    python examples/lstm_language_model.py --device cuda --steps 2000 --width 512 --layers 3 --dropout 0.2
    TRITENSOR_SIMULATE_CUDA=1 python examples/lstm_language_model.py --device cuda --steps 3 --batch 2 --write 20

The text is that of `examples/language_model.py`. It is cut into as many strips as a batch has rows, which are read side
by side: each step goes on from the states in which the one before has ended.
"""

import argparse
import sys
import time
from pathlib import Path

from language_model import load_text, teach
from tqdm import tqdm

import tritensor as torch
from tritensor import nn
from tritensor.nn import functional as F


class Writer(nn.Module):
    """Numbers of letters, of shape (batch, length), become scores of the letters that follow."""

    def __init__(self, letters, width, layers, dropout):
        super().__init__()
        self.letters = nn.Embedding(letters, width)
        self.layers = nn.LSTM(width, width, layers, batch_first=True, dropout=dropout)
        self.scores = nn.Linear(width, letters)

    def forward(self, numbers, states=None):
        out, states = self.layers(self.letters(numbers), states)
        return self.scores(out), states

    @torch.no_grad()
    def write(self, numbers, count, temperature=0.8, top_k=10):
        """Append `count` letters to a text of shape (1, length)."""
        latest, states = numbers, None
        for _ in range(count):
            scores, states = self(latest, states)
            best, places = (scores[:, -1] / temperature).topk(min(top_k, scores.shape[-1]))
            drawn = torch.multinomial(F.softmax(best, dim=-1), num_samples=1)
            latest = places.gather(1, drawn)
            numbers = torch.cat((numbers, latest), dim=1)
        return numbers


def pieces_of(text, batch, context):
    """Strips of the text side by side, a piece of each at a time, and the same shifted by one letter; without end."""
    length = (len(text) - 1) // batch
    x, y = (text[shift : shift + batch * length].view(batch, length) for shift in (0, 1))
    while True:
        for start in range(0, length - context + 1, context):
            yield x[:, start : start + context], y[:, start : start + context]


def training_step(model, optimizer, x, y, states):
    """The loss, and the states for the next step, through which no gradient goes back."""
    optimizer.zero_grad(set_to_none=True)
    scores, states = model(x, states)
    loss = F.cross_entropy(scores.flatten(0, 1), y.flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss, tuple(state.detach() for state in states)


def train(model, text, arguments, device):
    """Train in place; returns the seconds that the steps took, and the loss of every tenth step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=arguments.lr)
    pieces, states = pieces_of(text, arguments.batch, arguments.context), None
    losses, start = [], time.perf_counter()
    with tqdm(total=arguments.steps, desc=f"training on {device}", unit="step", mininterval=0.25) as bar:
        for number in range(arguments.steps):
            x, y = next(pieces)
            loss, states = training_step(model, optimizer, x.to(device), y.to(device), states)
            if number % 10 == 0:  # reading the loss waits for the device
                losses.append(loss.item())
                bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
            bar.update()
    return time.perf_counter() - start, losses


@torch.no_grad()
def loss_on(model, text, arguments, device):
    """The mean cross entropy of a letter in text that the model has not seen."""
    model.eval()
    losses, states = [], None
    for _, (x, y) in zip(range(4), pieces_of(text, arguments.batch, arguments.context), strict=False):
        scores, states = model(x.to(device), states)
        losses.append(F.cross_entropy(scores.flatten(0, 1), y.to(device).flatten()).item())
    return sum(losses) / len(losses)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    for name, value, text in (
        ("steps", 300, "training steps"),
        ("batch", 32, "strips of text that are read side by side"),
        ("context", 48, "letters of each in a step"),
        ("width", 128, "of its vectors and states"),
        ("layers", 2, "of the LSTM"),
        ("write", 400, "letters to write at the end"),
    ):
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N", help=f"{text} ({value})")
    parser.add_argument("--lr", type=float, default=5e-3, metavar="RATE", help="learning rate (0.005)")
    parser.add_argument("--picture", type=Path, metavar="PATH", help="where to draw the curve of the losses")
    parser.add_argument("--dropout", type=float, default=0.0, metavar="P", help="share dropped between layers (0)")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    device = torch.device(arguments.device)
    torch.manual_seed(0)
    text = load_text()
    model = Writer(len(text[2]), arguments.width, arguments.layers, arguments.dropout)
    teach(model.to(device), text, arguments, device, train, loss_on)


if __name__ == "__main__":
    try:
        main()
    except torch.errors.DeviceError as error:  # no device, or simulation without Triton: the message says what to do
        sys.exit(f"{error}")

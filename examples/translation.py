"""Train a transformer to translate dates, as people write them, into ISO's form, letter by letter.

    python examples/translation.py
    python examples/translation.py --device cuda --steps 2000 --width 256
    TRITENSOR_SIMULATE_CUDA=1 python examples/translation.py --device cuda --steps 2 --batch 2 --layers 1 --test 2

The encoder reads "Sat 14 Jul 2029" or "march 3, 1987", and the decoder writes 2029-07-14. Dates and their forms are
made by rule, so there is no end of them: the test is on dates that the model has not seen in this form.
"""

import argparse
import datetime
import random
import sys
import time
from pathlib import Path

from tqdm import tqdm

import tritensor as torch
from tritensor import nn
from tritensor.nn import functional as F

PADDING, START = 0, 1
LETTERS = [None, None, *" ,-./0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"]
NUMBERS = {letter: number for number, letter in enumerate(LETTERS)}
LENGTH = 32  # of the longest text, and more
FIRST, LAST = datetime.date(1970, 1, 1).toordinal(), datetime.date(2069, 12, 31).toordinal()
FORMS = (
    lambda day: f"{day.day} {day:%B %Y}",
    lambda day: f"{day:%B} {day.day}, {day.year}",
    lambda day: f"{day:%A}, {day.day} {day:%b %y}",
    lambda day: f"{day:%a} {day.day} {day:%b %Y}",
    lambda day: f"{day.day}.{day.month}.{day.year}",
    lambda day: f"{day:%m/%d/%y}",
    lambda day: f"{day:%B} {day.day}, {day.year}".lower(),
)


class Translator(nn.Module):
    """Numbers of letters (batch, length), and those of their translation, become scores of its next letters."""

    def __init__(self, width, heads, layers):
        super().__init__()
        self.letters, self.places = nn.Embedding(len(LETTERS), width), nn.Embedding(LENGTH, width)
        self.transformer = nn.Transformer(width, heads, layers, layers, 4 * width, dropout=0.0, batch_first=True)
        self.scores = nn.Linear(width, len(LETTERS))

    def embedded(self, numbers):
        return self.letters(numbers) + self.places(torch.arange(numbers.shape[1], device=numbers.device))

    def decoded(self, memory, padding, target):
        """The scores of the letters that follow each beginning of `target`."""
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device)
        found = self.transformer.decoder(
            self.embedded(target), memory, tgt_mask=mask, tgt_is_causal=True, memory_key_padding_mask=padding
        )
        return self.scores(found)

    def forward(self, source, target):
        padding = source == PADDING
        memory = self.transformer.encoder(self.embedded(source), src_key_padding_mask=padding)
        return self.decoded(memory, padding, target)

    @torch.no_grad()
    def translate(self, source, length):
        """The best letter after the others, `length` times."""
        padding = source == PADDING
        memory = self.transformer.encoder(self.embedded(source), src_key_padding_mask=padding)
        target = torch.full((len(source), 1), START, device=source.device)
        for _ in range(length):
            best = self.decoded(memory, padding, target)[:, -1].argmax(dim=-1, keepdim=True)
            target = torch.cat((target, best), dim=1)
        return target


def text_of(numbers):
    return "".join(LETTERS[number] or "" for number in numbers)


def draw_batch(rng, batch):
    """Dates in random forms, padded to one length, and their ISO forms after the letter that starts them."""
    days = [datetime.date.fromordinal(rng.randint(FIRST, LAST)) for _ in range(batch)]
    texts = [rng.choice(FORMS)(day) for day in days]
    length = max(map(len, texts))
    source = [[NUMBERS[letter] for letter in text] + [PADDING] * (length - len(text)) for text in texts]
    target = [[START, *(NUMBERS[letter] for letter in day.isoformat())] for day in days]
    return torch.tensor(source), torch.tensor(target)


def step(model, optimizer, source, target):
    """One step of training; returns the loss, the mean cross entropy of a letter."""
    optimizer.zero_grad()
    scores = model(source, target[:, :-1])
    loss = F.cross_entropy(scores.flatten(0, 1), target[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    return loss.item()


def train(model, rng, arguments):
    """Train in place; returns the losses."""
    optimizer = torch.optim.Adam(model.parameters(), lr=arguments.lr)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, arguments.steps)
    losses = []
    with tqdm(total=arguments.steps, desc=f"training on {arguments.device}", unit="step", mininterval=0.25) as bar:
        for _ in range(arguments.steps):
            batch = draw_batch(rng, arguments.batch)
            losses.append(step(model, optimizer, *(part.to(arguments.device) for part in batch)))
            rates.step()
            bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
            bar.update()
    return losses


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    for name, value, text in (
        ("steps", 300, "training steps"),
        ("batch", 64, "dates in a step"),
        ("width", 64, "of the model's vectors"),
        ("layers", 2, "of the encoder, and of the decoder"),
        ("heads", 4, "in each"),
        ("test", 500, "dates to translate at the end"),
    ):
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N", help=f"{text} ({value})")
    parser.add_argument("--lr", type=float, default=2e-3, metavar="RATE", help="the highest learning rate (0.002)")
    parser.add_argument("--picture", type=Path, metavar="PATH", help="where to draw the curve of the losses")
    arguments = parser.parse_args()
    if arguments.width % arguments.heads:
        parser.error(f"--width {arguments.width} cannot be shared out to {arguments.heads} heads")
    return arguments


def main():
    arguments = parse_arguments()
    torch.manual_seed(0)
    model = Translator(arguments.width, arguments.heads, arguments.layers).to(arguments.device)
    start = time.perf_counter()
    losses = train(model, random.Random(0), arguments)
    seconds = time.perf_counter() - start
    print(f"{len(losses)} steps in {seconds:.1f} s, loss {losses[0]:.3f} to {losses[-1]:.3f}")
    if arguments.picture:
        from training import draw_losses

        draw_losses(losses, arguments.picture, unit="step")

    model.eval()
    source, target = (part.to(arguments.device) for part in draw_batch(random.Random(1), arguments.test))
    found = model.translate(source, target.shape[1] - 1)
    right = (found == target).all(dim=1)
    print(
        f"{int(right.sum())} of {len(right)} dates are right, {100 * (found == target)[:, 1:].float().mean():.1f} %"
        " of the letters"
    )
    for text, translated in list(zip(source.tolist(), found.tolist()))[:4]:
        print(f"{text_of(text):>26} -> {text_of(translated)}")


if __name__ == "__main__":
    try:
        main()
    except torch.errors.DeviceError as error:  # no device, or simulation without Triton: the message says what to do
        sys.exit(f"{error}")

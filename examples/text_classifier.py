"""Train a GRU to tell what a sentence of Python's manual is about, from batches of sentences of all lengths.

    python examples/text_classifier.py
    python examples/text_classifier.py --device cuda --epochs 20 --width 128
    TRITENSOR_SIMULATE_CUDA=1 python examples/text_classifier.py --device cuda --epochs 1 --batches 2 --batch 4

The text is that of `help()` about the language. Its topics are the classes: only long ones, and of each the sentences
that no other topic has. Sentences are packed, so that no step is computed for what would be padding.
"""

import argparse
import itertools
import re
import sys
from collections import Counter
from pathlib import Path
from pydoc_data.topics import topics

from training import draw_losses, passes

import tritensor as torch
from tritensor import nn
from tritensor.nn import functional as F
from tritensor.nn.utils.rnn import pack_sequence
from tritensor.utils.data import DataLoader

LONGEST, SHORTEST = 40, 4  # words of a sentence
COMMON = 2  # how often a word must occur to be known


class Classifier(nn.Module):
    """Sentences, packed numbers of words, become scores of the topics."""

    def __init__(self, words, classes, width, layers):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.layers = nn.GRU(width, width, layers, bidirectional=True)
        self.scores = nn.Linear(2 * width, classes)

    def forward(self, sentences):
        _, last = self.layers(sentences._replace(data=self.words(sentences.data)))
        return self.scores(torch.cat((last[-2], last[-1]), dim=1))  # of the last layer, both directions


def load_sentences(classes):
    """Sentences as tensors of numbers of words, each with its class; the names of the classes; how many words."""
    longest = sorted(topics, key=lambda name: (-len(topics[name]), name))[:classes]
    found = {name: set(re.split(r"(?<=[.:])\s+", topics[name])) for name in longest}
    many = Counter(sentence for sentences in found.values() for sentence in sentences)
    texts = []
    for number, name in enumerate(longest):
        for sentence in sorted(found[name]):
            words = re.findall(r"[a-z_]+", sentence.lower())[:LONGEST]
            if many[sentence] == 1 and len(words) >= SHORTEST:
                texts.append((words, number))
    counts = Counter(word for words, _ in texts for word in words)
    known = {word: i for i, word in enumerate(sorted(word for word in counts if counts[word] >= COMMON), start=1)}
    return (
        [(torch.tensor([known.get(word, 0) for word in words]), label) for words, label in texts],
        longest,
        len(known) + 1,
    )


def collate(examples):
    """A batch: the sentences packed, and their classes."""
    sentences, labels = zip(*examples, strict=True)
    return pack_sequence(sentences, enforce_sorted=False), torch.tensor(labels)


@torch.no_grad()
def accuracy_on(model, batches, device):
    """The share of sentences whose topic is found."""
    model.eval()
    right = count = 0
    for sentences, labels in batches:
        right += (model(sentences.to(device)).argmax(1).cpu() == labels).sum().item()
        count += len(labels)
    model.train()
    return right / count


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    for name, value, text in (
        ("epochs", 8, "passes over the sentences"),
        ("batches", None, "at most so many batches of a pass, and of what is held out"),
        ("batch", 32, "sentences in a step"),
        ("classes", 8, "topics"),
        ("width", 64, "of its vectors and states"),
        ("layers", 1, "of the GRU"),
    ):
        parser.add_argument(f"--{name}", type=int, default=value, metavar="N", help=f"{text} ({value})")
    parser.add_argument("--lr", type=float, default=3e-3, metavar="RATE", help="learning rate (0.003)")
    parser.add_argument("--picture", type=Path, metavar="PATH", help="where to draw the curve of the losses")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    device = torch.device(arguments.device)
    torch.manual_seed(0)
    examples, names, words = load_sentences(arguments.classes)
    order = torch.randperm(len(examples)).tolist()
    held_out = len(examples) // 5
    test, train = ([examples[i] for i in part] for part in (order[:held_out], order[held_out:]))
    print(f"{len(train)} sentences to learn from, {words} words, about: {', '.join(names)}")

    model = Classifier(words, len(names), arguments.width, arguments.layers).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=arguments.lr)
    loader = DataLoader(train, arguments.batch, shuffle=True, collate_fn=collate)
    unseen = DataLoader(test, arguments.batch, collate_fn=collate)

    def step(sentences, labels):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(sentences), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    before = accuracy_on(model, itertools.islice(unseen, arguments.batches), device)
    losses = passes(step, loader, arguments.epochs, device, arguments.batches)
    after = accuracy_on(model, itertools.islice(unseen, arguments.batches), device)
    print(f"loss {losses[0]:.3f} at first, {losses[-1]:.3f} at last")
    if arguments.picture:
        draw_losses(losses, arguments.picture)
    print(f"right about sentences that it has not seen: {before:.1%}, after training {after:.1%}")


if __name__ == "__main__":
    try:
        main()
    except torch.errors.DeviceError as error:  # no device, or simulation without Triton: the message says what to do
        sys.exit(f"{error}")

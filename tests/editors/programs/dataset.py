"""Datasets, samplers and collation of one's own."""

import random
from typing import Iterator, Sized

import tritensor as torch
from tritensor.nn.utils.rnn import pack_padded_sequence, pad_sequence
from tritensor.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Sampler,
    Subset,
    WeightedRandomSampler,
)


class Sentences(Dataset):
    def __init__(self, size, transform=None):
        self.rows = [torch.randint(1, 9, (random.randint(1, 5),)) for _ in range(size)]
        self.transform = transform

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, idx):
        row = self.rows[idx]
        if self.transform:
            row = self.transform(row)
        return row, len(row)


class Pairs(Dataset[tuple[torch.Tensor, int]]):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.full((2,), float(index)), index % 2


class Stream(IterableDataset):
    def __init__(self, start, end):
        super().__init__()
        self.start, self.end = start, end

    def __iter__(self):
        return iter(range(self.start, self.end))


class EvenFirst(Sampler[int]):
    def __init__(self, data_source: Sized) -> None:
        self.size = len(data_source)

    def __iter__(self) -> Iterator[int]:
        yield from range(0, self.size, 2)
        yield from range(1, self.size, 2)

    def __len__(self) -> int:
        return self.size


def collate_fn(batch):
    rows, lengths = zip(*batch)
    return pad_sequence(rows, batch_first=True), torch.tensor(lengths)


random.seed(0)
sentences = Sentences(10, transform=lambda row: row.flip(0))
for padded, lengths in DataLoader(sentences, batch_size=4, collate_fn=collate_fn, num_workers=0):
    packed = pack_padded_sequence(padded.float().unsqueeze(-1), lengths, batch_first=True, enforce_sorted=False)
    print(padded.shape, lengths.tolist(), packed.data.shape)
pairs = Pairs()
vector, label = pairs[3]
print(vector.sum().item(), label + 1)
loader = DataLoader(pairs, batch_size=2, sampler=EvenFirst(pairs), drop_last=True)
for i, (vectors, labels) in enumerate(loader):
    print(i, vectors.shape, labels.tolist())
weighted = WeightedRandomSampler([0.1, 0.9, 0.1, 0.9, 0.1, 0.9], num_samples=4, replacement=True)
print(len(list(DataLoader(pairs, sampler=weighted))), len(loader), loader.batch_size)
both = ConcatDataset([pairs, Subset(pairs, [0, 1])])
print(len(both), [batch[1].tolist() for batch in DataLoader(both, batch_sampler=BatchSampler(range(8), 4, False))])
print([batch.tolist() for batch in DataLoader(Stream(0, 5), batch_size=2)], len(next(iter(loader))))

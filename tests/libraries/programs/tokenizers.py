"""tokenizers: words cut into pieces, whose numbers go through an embedding, and cutters that are trained and saved."""

from __future__ import annotations

import string
import tempfile
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

TEXT = ["the quick brown fox jumps over the lazy dog", "a lazy fox sleeps", "the dog barks at the quick fox"]
MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def embedded(carry: Any, found: list[Any]) -> None:
    """The pieces' numbers, and what a small network makes of them with the padding left out."""
    ids = torch.tensor([each.ids for each in found])
    mask = torch.tensor([each.attention_mask for each in found])
    table = carry.module("table", torch.nn.Embedding(200, 8, padding_idx=0))
    mean = (table(ids) * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
    mean.square().sum().backward()
    carry.check("ids", ids)
    carry.check("pieces", [each.tokens for each in found])
    carry.check("mean", mean)
    carry.check("gradient", table.weight.grad)


def numbered(words: list[str]) -> dict[str, int]:
    return {word: place for place, word in enumerate(words)}


def case_word_pieces(carry: Any) -> None:
    letters = string.ascii_lowercase
    pieces = [*MARKS, *letters, *(f"##{each}" for each in letters), "the", "qu", "##ick", "fox", "la", "##zy", "do"]
    cutter = Tokenizer(models.WordPiece(numbered(pieces), unk_token="[UNK]"))
    cutter.normalizer = normalizers.BertNormalizer(lowercase=True)
    cutter.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    cutter.decoder = decoders.WordPiece()
    ends = [("[CLS]", cutter.token_to_id("[CLS]")), ("[SEP]", cutter.token_to_id("[SEP]"))]
    cutter.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    cutter.enable_padding(pad_id=0, pad_token="[PAD]")
    found = cutter.encode_batch([TEXT[0].title(), (TEXT[1], TEXT[2] + " 7!")])
    embedded(carry, found)
    carry.check("kinds", torch.tensor([each.type_ids for each in found]))
    carry.check("places", found[0].offsets)
    carry.check("again", cutter.decode(found[0].ids))


def case_byte_pairs(carry: Any) -> None:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("o", "x"), ("f", "ox"), ("Ġ", "fox"), ("l", "a")]
    cutter = Tokenizer(models.BPE(numbered([*letters, *("".join(each) for each in merges)]), merges))
    cutter.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    cutter.decoder = decoders.ByteLevel()
    cutter.enable_truncation(max_length=10)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tokenizer.json"
        cutter.save(str(path))
        again = Tokenizer.from_file(str(path))
    ids = torch.tensor([again.encode(each).ids for each in [*TEXT, "é the fox and the fox"]])
    table = carry.module("table", torch.nn.Embedding(300, 8))
    carry.check("ids", ids)
    carry.check("rows", table(ids).sum(1))
    carry.check("again", again.decode_batch(ids.tolist()))


def case_unigrams(carry: Any) -> None:
    scores = [("<unk>", 0.0), ("▁", -2.0), *((each, -5.0) for each in string.ascii_lowercase)]
    cutter = Tokenizer(
        models.Unigram([*scores, ("▁the", -3.0), ("▁fox", -4.0), ("laz", -4.0), ("ick", -6.0)], unk_id=0)
    )
    cutter.pre_tokenizer = pre_tokenizers.Metaspace()
    cutter.enable_truncation(max_length=40)
    cutter.enable_padding(pad_id=0, pad_token="<unk>", length=40)
    embedded(carry, cutter.encode_batch(TEXT))


def case_words(carry: Any) -> None:
    cutter = Tokenizer(models.WordLevel(numbered([*MARKS, *sorted(set(" ".join(TEXT).split()))]), unk_token="[UNK]"))
    cutter.pre_tokenizer = pre_tokenizers.Whitespace()
    cutter.enable_padding(direction="left", pad_id=0)
    embedded(carry, cutter.encode_batch([*TEXT, "an unknown word"]))


def case_trained(carry: Any) -> None:
    kinds = {
        "pairs": (models.BPE(), trainers.BpeTrainer(vocab_size=40, special_tokens=MARKS, show_progress=False)),
        "words": (models.WordLevel(), trainers.WordLevelTrainer(special_tokens=MARKS, show_progress=False)),
    }
    for name, (kind, teacher) in kinds.items():
        cutter = Tokenizer(kind)
        cutter.pre_tokenizer = pre_tokenizers.Whitespace()
        cutter.train_from_iterator(TEXT, teacher)
        cutter.enable_padding(pad_id=0)
        ids = torch.tensor([each.ids for each in cutter.encode_batch(TEXT)])
        table = carry.module(name, torch.nn.Embedding(cutter.get_vocab_size(), 4, padding_idx=0))
        table(ids).sum().backward()
        carry.check(f"{name}.pieces", cutter.get_vocab_size())
        if name == "words":
            carry.check("seen", table.weight.grad.sum())

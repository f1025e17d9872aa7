"""sentence-transformers: sentences as vectors from a small BERT with its own words, losses, search and pair scores."""

from __future__ import annotations

import string
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from sentence_transformers import CrossEncoder, SentenceTransformer, util
from sentence_transformers.sentence_transformer import losses
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer

TEXT = ["the quick brown fox", "a lazy dog sleeps at noon", "fox", "the dog barks at the quick fox"]
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *string.ascii_lowercase]
WORDS += [*(f"##{each}" for each in string.ascii_lowercase), "the", "fox", "dog", "qu", "##ick", "la", "##zy"]


def spread(model: Any, by: float = 0.1) -> Any:
    """The model in evaluation mode with weights that differ visibly from their first values."""
    rng = np.random.default_rng(1)
    with torch.no_grad():
        for each in model.parameters():
            each.add_(torch.from_numpy(np.asarray(rng.standard_normal(tuple(each.shape), dtype=np.float32) * by)))
    return model.eval()


def written(folder: str, kind: str = "BertModel", **more: Any) -> str:
    """A small BERT and its words in the folder."""
    sizes = {"vocab_size": len(WORDS), "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    none = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = transformers.BertConfig(**sizes, **none, num_attention_heads=4, max_position_embeddings=64, **more)
    getattr(transformers, kind)(config).save_pretrained(folder)
    path = Path(folder) / "vocab.txt"
    path.write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    transformers.BertTokenizerFast(vocab=str(path), model_max_length=32).save_pretrained(folder)
    return folder


def made(carry: Any, *more: Any, pooling: str = "mean") -> SentenceTransformer:
    with tempfile.TemporaryDirectory() as folder:
        body = Transformer(written(folder))
    parts = [body, Pooling(body.get_embedding_dimension(), pooling_mode=pooling), *more]
    return carry.module(pooling, spread(SentenceTransformer(modules=parts, device="cpu")))


def case_encoded(carry: Any) -> None:
    model = made(carry)
    carry.check("vectors", model.encode(TEXT, batch_size=2, show_progress_bar=False), atol=1e-3)
    found = model.encode(TEXT, convert_to_tensor=True, normalize_embeddings=True, show_progress_bar=False)
    carry.check("lengths", found.norm(dim=1))
    carry.check("alike", model.similarity(found, found), atol=1e-3)
    carry.check("one", model.encode("a fox", show_progress_bar=False), atol=1e-3)
    carry.check("size", model.get_embedding_dimension())


def case_tokens(carry: Any) -> None:
    model = made(carry)
    found = model.encode(TEXT, output_value="token_embeddings", show_progress_bar=False)
    carry.check("sizes", [list(each.shape) for each in found])
    carry.check("first", found[0], atol=1e-3)


def case_poolings(carry: Any) -> None:
    for pooling in ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"):
        model = made(carry, pooling=pooling)
        carry.check(f"{pooling}.vectors", model.encode(TEXT, show_progress_bar=False), atol=1e-3)


def case_more_parts(carry: Any) -> None:
    model = made(carry, Dense(32, 8), Normalize())
    carry.check("vectors", model.encode(TEXT, show_progress_bar=False))
    carry.check("cut", model.encode(TEXT, truncate_dim=4, show_progress_bar=False))


def case_kinds(carry: Any) -> None:
    model = made(carry)
    for kind in ("int8", "uint8", "binary"):
        found = model.encode(TEXT * 4, precision=kind, show_progress_bar=False)
        carry.check(f"{kind}.shape", list(found.shape))
        carry.check(f"{kind}.type", str(found.dtype))
    model.bfloat16()
    carry.check("half", model.encode(TEXT, convert_to_tensor=True, show_progress_bar=False), rtol=0.1, atol=0.1)


def learned(carry: Any, loss_of: Any, model: Any, columns: list[list[str]], labels: Any) -> None:
    """Two steps of a loss over columns of sentences."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(2):
        optimizer.zero_grad()
        loss = loss_of([model.preprocess(each) for each in columns], labels)
        loss.backward()
        if step == 0:
            norms = torch.stack([each.grad.norm() for each in model.parameters() if each.grad is not None])
            carry.check(f"{type(loss_of).__name__}.norms", norms, rtol=1e-2, atol=1e-3)
        optimizer.step()
        carry.check(f"{type(loss_of).__name__}.{step}", loss, rtol=1e-2, atol=1e-3)


def case_loss_of_cosines(carry: Any) -> None:
    model = made(carry)
    labels = torch.tensor([0.9, 0.1, 0.4, 0.6])
    learned(carry, losses.CosineSimilarityLoss(model), model, [TEXT, TEXT[::-1]], labels)
    learned(carry, losses.CoSENTLoss(model), model, [TEXT, TEXT[::-1]], labels)


def case_loss_of_negatives(carry: Any) -> None:
    model = made(carry)
    learned(carry, losses.MultipleNegativesRankingLoss(model), model, [TEXT, TEXT[1:] + TEXT[:1]], None)


def case_loss_of_triplets(carry: Any) -> None:
    model = made(carry)
    learned(carry, losses.TripletLoss(model), model, [TEXT, TEXT[1:] + TEXT[:1], TEXT[::-1]], None)
    learned(carry, losses.BatchHardTripletLoss(model), model, [TEXT], torch.tensor([0, 1, 0, 1]))


def case_loss_of_dimensions(carry: Any) -> None:
    model = made(carry)
    inner = losses.MultipleNegativesRankingLoss(model)
    learned(carry, losses.MatryoshkaLoss(model, inner, [32, 16, 8]), model, [TEXT, TEXT[1:] + TEXT[:1]], None)


def case_loss_of_contrasts(carry: Any) -> None:
    model = made(carry)
    labels = torch.tensor([1, 0, 0, 1])
    learned(carry, losses.ContrastiveLoss(model), model, [TEXT, TEXT[::-1]], labels)
    loss_of = carry.module("softmax", losses.SoftmaxLoss(model, 32, 2))
    learned(carry, loss_of, model, [TEXT, TEXT[::-1]], labels)


def case_saved(carry: Any) -> None:
    model = made(carry, Dense(32, 8))
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder, create_model_card=False)
        again = SentenceTransformer(folder, device="cpu", local_files_only=True)
    carry.check("parts", [type(each).__name__ for each in again])
    carry.check("vectors", again.encode(TEXT, show_progress_bar=False), atol=1e-3)


def case_search(carry: Any) -> None:
    rng = np.random.default_rng(0)
    known, asked = (torch.from_numpy(rng.standard_normal((rows, 8), dtype=np.float32)) for rows in (20, 3))
    found = util.semantic_search(asked, known, top_k=4)
    carry.check("places", [[each["corpus_id"] for each in row] for row in found])
    carry.check("scores", [[each["score"] for each in row] for row in found])
    carry.check("products", util.dot_score(asked, known))
    carry.check("pairs", util.pairwise_cos_sim(known[:3], asked))
    carry.check("distances", util.euclidean_sim(asked, known))
    carry.check("groups", util.community_detection(known, threshold=0.3, min_community_size=2))


def case_mined(carry: Any) -> None:
    model = made(carry)
    pairs = util.paraphrase_mining(model, TEXT, top_k=2)
    carry.check("pairs", sorted([one, other] for _, one, other in pairs))
    carry.check("scores", [score for score, *_ in pairs], atol=1e-3)


def case_evaluated(carry: Any) -> None:
    model = made(carry)
    judge = EmbeddingSimilarityEvaluator(TEXT, TEXT[1:] + TEXT[:1], [0.1, 0.5, 0.9, 0.3], write_csv=False)
    carry.check("scores", dict(sorted(judge(model).items())), atol=1e-3)


def case_pair_scores(carry: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        written(folder, "BertForSequenceClassification", num_labels=1)
        model = CrossEncoder(folder, device="cpu", local_files_only=True)
    carry.module("model", spread(model.model))
    pairs = list(zip(TEXT, TEXT[::-1], strict=True))
    carry.check("scores", model.predict(pairs, show_progress_bar=False), atol=1e-3)
    carry.check("ranks", [each["corpus_id"] for each in model.rank("the fox", TEXT, show_progress_bar=False)])

"""torchmetrics: metrics of classification, regression, images and retrieval, collections, and the state of a metric."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torchmetrics
from torchmetrics import classification, functional, image, regression, retrieval


def batches(classes: int = 4, count: int = 3) -> list[tuple[torch.Tensor, torch.Tensor]]:
    rng = np.random.default_rng(0)
    return [
        (
            torch.from_numpy(rng.standard_normal((20, classes), dtype=np.float32)).softmax(-1),
            torch.from_numpy(rng.integers(0, classes, 20)),
        )
        for _ in range(count)
    ]


def case_classification(carry: Any) -> None:
    metrics = {
        "accuracy": classification.MulticlassAccuracy(num_classes=4),
        "f1": classification.MulticlassF1Score(num_classes=4, average=None),
        "matrix": classification.MulticlassConfusionMatrix(num_classes=4),
        "auroc": classification.MulticlassAUROC(num_classes=4),
        "calibration": classification.MulticlassCalibrationError(num_classes=4, n_bins=10),
        "kappa": torchmetrics.CohenKappa(task="multiclass", num_classes=4),
    }
    for scores, labels in batches():
        for metric in metrics.values():
            metric.update(scores, labels)
    carry.check("values", {name: metric.compute() for name, metric in metrics.items()})


def case_binary(carry: Any) -> None:
    curve = classification.BinaryPrecisionRecallCurve(thresholds=11)
    roc, average = classification.BinaryROC(), classification.BinaryAveragePrecision()
    for scores, labels in batches(2):
        for metric in (curve, roc, average):
            metric.update(scores[:, 1], labels)
    carry.check("curve", curve.compute())
    carry.check("roc", roc.compute())
    carry.check("average", average.compute())


def case_regression(carry: Any) -> None:
    rng = np.random.default_rng(0)
    metrics = {
        "mse": regression.MeanSquaredError(),
        "mae": regression.MeanAbsoluteError(),
        "r2": regression.R2Score(),
        "pearson": regression.PearsonCorrCoef(),
        "spearman": regression.SpearmanCorrCoef(),
        "variance": regression.ExplainedVariance(),
        "cosine": regression.CosineSimilarity(reduction="mean"),
    }
    for _ in range(3):
        wanted = torch.from_numpy(rng.standard_normal(16, dtype=np.float32))
        guess = wanted + 0.3 * torch.from_numpy(rng.standard_normal(16, dtype=np.float32))
        for name, metric in metrics.items():
            metric.update(*((guess[None], wanted[None]) if name == "cosine" else (guess, wanted)))
    carry.check("values", {name: metric.compute() for name, metric in metrics.items()})


def case_image(carry: Any) -> None:
    rng = np.random.default_rng(0)
    clean = torch.from_numpy(rng.random((2, 3, 32, 32), dtype=np.float32))
    noisy = (clean + 0.1 * torch.from_numpy(rng.standard_normal(clean.shape, dtype=np.float32))).clamp(0, 1)
    ssim = image.StructuralSimilarityIndexMeasure(data_range=1.0)
    psnr = image.PeakSignalNoiseRatio(data_range=1.0)
    for metric in (ssim, psnr):
        metric.update(noisy, clean)
    carry.check("ssim", ssim.compute())
    carry.check("psnr", psnr.compute())
    carry.check("variation", functional.image.total_variation(noisy))
    noisy.requires_grad_()
    functional.image.structural_similarity_index_measure(noisy, clean, data_range=1.0).backward()
    carry.check("gradient", noisy.grad)


def case_retrieval(carry: Any) -> None:
    rng = np.random.default_rng(0)
    scores = torch.from_numpy(rng.random(30, dtype=np.float32))
    wanted = torch.from_numpy(rng.integers(0, 2, 30)).bool()
    queries = torch.from_numpy(rng.integers(0, 4, 30))
    for metric in (retrieval.RetrievalMAP(), retrieval.RetrievalMRR(), retrieval.RetrievalNormalizedDCG(top_k=5)):
        carry.check(type(metric).__name__, metric(scores, wanted, indexes=queries))


def case_collection(carry: Any) -> None:
    metrics = torchmetrics.MetricCollection(
        {
            "accuracy": classification.MulticlassAccuracy(num_classes=4, average="micro"),
            "precision": classification.MulticlassPrecision(num_classes=4),
            "recall": classification.MulticlassRecall(num_classes=4),
        },
        prefix="valid/",
    )
    for position, (scores, labels) in enumerate(batches()):
        carry.check(f"batch{position}", metrics(scores, labels))
    carry.check("all", metrics.compute())
    metrics.reset()
    metrics.update(*batches()[0])
    carry.check("after reset", metrics.clone(prefix="test/").compute())


def case_state(carry: Any) -> None:
    class Largest(torchmetrics.Metric):
        def __init__(self) -> None:
            super().__init__()
            self.add_state("largest", torch.tensor(-1e9), dist_reduce_fx="max")
            self.add_state("seen", [], dist_reduce_fx="cat")

        def update(self, values: torch.Tensor) -> None:
            self.largest = torch.maximum(self.largest, values.max())
            self.seen.append(values)

        def compute(self) -> tuple[torch.Tensor, torch.Tensor]:
            return self.largest, torchmetrics.utilities.dim_zero_cat(self.seen).mean()

    metric = Largest()
    metric.persistent(True)
    for scores, _ in batches():
        metric.update(scores)
    other = Largest()
    other.persistent(True)
    other.load_state_dict(metric.state_dict())
    carry.check("values", metric.compute())
    carry.check("loaded", other.compute())
    mean = torchmetrics.MeanMetric()
    for scores, labels in batches():
        mean.update(scores.max(-1).values, weight=labels.float() + 1)
    carry.check("mean", mean.compute())

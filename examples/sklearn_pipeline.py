"""A neural network in a pipeline of scikit-learn's, and a search for its best parameters, on handwritten digits.

    python examples/sklearn_pipeline.py
    python examples/sklearn_pipeline.py --device cuda
    TRITENSOR_SIMULATE_CUDA=1 python examples/sklearn_pipeline.py --device cuda --samples 60 --epochs 1
    OMP_NUM_THREADS=1 python examples/sklearn_pipeline.py --compare

Scaling is part of what is cross-validated, and the search knows the network's parameters by the step's name. Beside the
table of the search it prints how many of the digits that were held out are read right, and the same of a network of
one's own. --compare times a fit beside one of scikit-learn's own network instead.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

try:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import GridSearchCV, train_test_split
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is missing, of what the examples need: pip install 'tritensor[examples]'")

import tritensor as torch
from tritensor import nn
from tritensor.sklearn import NeuralNetClassifier

GRID = {"network__hidden_layer_sizes": [(32,), (64, 32)], "network__lr": [1e-3, 1e-2]}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--epochs", type=int, default=20, metavar="N", help="passes over the digits at most (20)")
    parser.add_argument("--samples", type=int, default=1797, metavar="N", help="digits in all (1797)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes of the search (1)")
    parser.add_argument("--picture", type=Path, metavar="PATH", help="where to draw the search")
    parser.add_argument("--compare", action="store_true", help="time MLPClassifier and NeuralNetClassifier, in turns")
    return parser.parse_args()


def picture_network(pixels, digits):
    """A network of one's own, made for the numbers of features and classes: convolutions over the 8x8 pixels."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(pixels * 4, digits),
    )


def compare(pixels, digits, epochs, device):
    """Seconds of the processor for a fit, the least of nine, of both in turns: same layers, batches and passes."""
    warnings.simplefilter("ignore")  # MLPClassifier warns that it could learn on
    print(f"{'layers':>10}   dtype  MLPClassifier  NeuralNetClassifier  ratio")
    for layers in (100,), (256, 256):
        for dtype in ("float64", "float32"):
            same = {"hidden_layer_sizes": layers, "random_state": 0, "tol": 0, "n_iter_no_change": epochs}
            models = (
                MLPClassifier(max_iter=epochs, **same),
                NeuralNetClassifier(max_epochs=epochs, device=device, **same),
            )
            least = [float("inf")] * 2
            for turn in range(18):
                start = time.process_time()
                models[turn % 2].fit(pixels.astype(dtype), digits)
                least[turn % 2] = min(least[turn % 2], time.process_time() - start)
            print(f"{layers!s:>10} {dtype}  {least[0]:>11.3f} s  {least[1]:>17.3f} s  {least[1] / least[0]:>5.2f}")


def draw(results, path):
    """Write a picture of the search: the accuracy of each choice, with its spread over the folds."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.subplots()
    names = [", ".join(map(str, chosen.values())) for chosen in results["params"]]
    axes.errorbar(results["mean_test_score"], names, xerr=results["std_test_score"], fmt="o", capsize=4)
    axes.set(xlabel="accuracy of 3 folds", ylabel="layers, learning rate")
    figure.savefig(path, dpi=150)


def main():
    arguments = parse_arguments()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        sys.exit(
            "--device cuda needs a GPU; TRITENSOR_SIMULATE_CUDA=1 simulates one (`pip install 'tritensor[triton]'`)"
        )
    pixels, digits = (array[: arguments.samples] for array in load_digits(return_X_y=True))
    if arguments.compare:
        compare(pixels / 16, digits, arguments.epochs, arguments.device)
        return
    train, test, digits, held_out = train_test_split(pixels, digits, test_size=0.25, stratify=digits, random_state=0)

    options = {"max_epochs": arguments.epochs, "batch_size": 64, "device": arguments.device, "random_state": 0}
    pipeline = Pipeline([("scaler", StandardScaler()), ("network", NeuralNetClassifier(**options))])
    start = time.perf_counter()
    search = GridSearchCV(pipeline, GRID, cv=3, n_jobs=arguments.jobs).fit(train, digits)
    seconds = time.perf_counter() - start

    print(f"{'layers':>10} {'lr':>7}  accuracy of 3 folds, on {arguments.device}")
    results = search.cv_results_
    for chosen, mean, spread in zip(results["params"], results["mean_test_score"], results["std_test_score"]):
        layers, lr = chosen.values()
        mark = " <- the best" if chosen == search.best_params_ else ""
        print(f"{layers!s:>10} {lr:>7}  {mean:.1%} ± {spread:.1%}{mark}")
    if arguments.picture:
        draw(results, arguments.picture)
    print(f"{len(results['params']) * 3 + 1} fits in {seconds:.1f} s; of {len(test)} digits that were held out")
    print(f"the best reads {search.score(test, held_out):.1%}")

    pipeline.set_params(network=NeuralNetClassifier(picture_network, lr=0.01, **options)).fit(train, digits)
    print(f"convolutions read {pipeline.score(test, held_out):.1%}")


if __name__ == "__main__":
    try:
        main()
    except torch.errors.DeviceError as error:  # simulation without Triton: the message says what to do
        sys.exit(f"{error}")

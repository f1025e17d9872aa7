"""scikit-learn's estimators on tensors, where the tensors are: digits told apart, an illness predicted.

    python examples/sklearn_on_device.py
    python examples/sklearn_on_device.py --device cuda
    TRITENSOR_SIMULATE_CUDA=1 python examples/sklearn_on_device.py --device cuda --samples 120

scikit-learn computes on arrays of any library that has the array API, as tritensor has, once it is asked to
(`array_api_dispatch`). What is fitted stays on the device, and so do predictions and probabilities; scores are numbers.
The same estimators are fitted to NumPy's arrays, too, and what they predict is compared. It needs scikit-learn 1.9.
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ["SCIPY_ARRAY_API"] = "1"  # SciPy reads it when it is imported, and scikit-learn imports SciPy

try:
    import sklearn
    from sklearn.datasets import load_diabetes, load_digits
    from sklearn.decomposition import PCA
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import Ridge
    from sklearn.metrics import accuracy_score, confusion_matrix, mean_absolute_error, r2_score
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
except ModuleNotFoundError as missing:
    sys.exit(f"{missing.name} is missing, of what this example needs: pip install 'tritensor[peers]'")

import tritensor as torch


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument(
        "--samples", type=int, default=1797, metavar="N", help="digits, and of them a quarter to test on"
    )
    parser.add_argument("--picture", type=Path, metavar="PATH", help="where to draw the predictions")
    return parser.parse_args()


def told_apart(x, y):
    """Which digits the test digits are, which they are thought to be."""
    train_x, test_x, train_y, test_y = train_test_split(x, y, test_size=0.25, random_state=0)
    model = make_pipeline(PCA(20, svd_solver="full"), LinearDiscriminantAnalysis())
    return test_y, model.fit(train_x, train_y).predict(test_x)


def predicted(x, y):
    """How much worse the illness got within a year, and what is predicted of that."""
    train_x, test_x, train_y, test_y = train_test_split(x, y, test_size=0.25, random_state=0)
    model = make_pipeline(StandardScaler(), Ridge(alpha=1.0, solver="svd"))
    return test_y, model.fit(train_x, train_y).predict(test_x)


def draw(results, path):
    """Write a picture of which digits were taken for which, and of the illness beside its prediction."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.imshow(confusion_matrix(*results["digits"]).cpu() ** 0.5, cmap="Blues")
    left.set(xlabel="taken for", ylabel="digit", xticks=range(10), yticks=range(10))
    right.scatter(*(each.cpu() for each in results["diabetes"]), s=8)
    right.set(xlabel="progress of the illness", ylabel="predicted")
    figure.savefig(path, dpi=150)


def main():
    arguments = parse_arguments()
    sklearn.set_config(array_api_dispatch=True)
    tasks = {"digits": (told_apart, load_digits), "diabetes": (predicted, load_diabetes)}
    results = {}
    for name, (task, load) in tasks.items():
        data, target = (each[: arguments.samples] for each in load(return_X_y=True))
        x = torch.tensor(data, dtype=torch.float32, device=arguments.device)
        y = torch.tensor(target, device=arguments.device)
        start = time.perf_counter()
        true, guessed = results[name] = task(x, y)
        print(f"{name}: {tuple(x.shape)} on {x.device}, predictions on {guessed.device}", end=", ")
        print(f"{time.perf_counter() - start:.2f} s")
        if task is told_apart:
            right = confusion_matrix(true, guessed).diagonal().sum()
            print(f"  accuracy {accuracy_score(true, guessed):.3f}: {int(right)} of {len(true)}")
        else:
            print(f"  R^2 {r2_score(true, guessed):.3f}, off by {mean_absolute_error(true, guessed):.1f} on average")
        _, expected = task(data.astype("float32"), target)
        difference = (guessed.double().cpu() - torch.tensor(expected, dtype=torch.float64)).abs().max()
        print(f"  at most {difference.item():.1g} from what scikit-learn predicts on NumPy's arrays")
    if arguments.picture:
        draw(results, arguments.picture)


if __name__ == "__main__":
    try:
        main()
    except torch.errors.DeviceError as error:  # no device, or simulation without Triton: the message says what to do
        sys.exit(f"{error}")

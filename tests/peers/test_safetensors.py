"""Files of safetensors: `tritensor.save` and `load`, and the library's own functions for NumPy's arrays."""

from __future__ import annotations

from pathlib import Path

import pytest
import safetensors.numpy

import tritensor as torch

pytestmark = pytest.mark.peer


def tensors() -> dict[str, torch.Tensor]:
    return {
        "weight": torch.arange(12.0).reshape(3, 4),
        "turned": torch.arange(12.0).reshape(3, 4).T,
        "steps": torch.tensor([1, 2, 3]),
        "half": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
        "flags": torch.tensor([True, False]),
    }


def test_what_tritensor_saves_safetensors_loads(tmp_path: Path, device: str) -> None:
    torch.save({name: value.to(device) for name, value in tensors().items()}, tmp_path / "a.safetensors")
    loaded = safetensors.numpy.load_file(tmp_path / "a.safetensors")
    for name, value in tensors().items():
        assert torch.equal(torch.from_numpy(loaded[name]), value)


def test_what_safetensors_saves_of_a_tensors_memory_tritensor_loads(tmp_path: Path, device: str) -> None:
    arrays = {name: value.contiguous().numpy() for name, value in tensors().items()}
    safetensors.numpy.save_file(arrays, tmp_path / "b.safetensors")
    loaded = torch.load(tmp_path / "b.safetensors", map_location=device)
    for name, value in tensors().items():
        assert str(loaded[name].device) == device and torch.equal(loaded[name].cpu(), value)


def test_an_array_that_safetensors_loads_is_a_tensor_without_a_copy() -> None:
    data = safetensors.numpy.save({"a": torch.ones(3).numpy()})
    array = safetensors.numpy.load(data)["a"]
    assert torch.as_tensor(array).data_ptr() == array.ctypes.data

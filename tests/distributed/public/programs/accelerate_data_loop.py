"""accelerate's test of data loaders, but for torchdata's: that library is made of private parts of PyTorch's loader."""

from __future__ import annotations

from accelerate.test_utils.scripts import test_distributed_data_loop as script

if __name__ == "__main__":
    script.test_stateful_dataloader = script.test_stateful_dataloader_save_state = lambda accelerator: None
    script.main()

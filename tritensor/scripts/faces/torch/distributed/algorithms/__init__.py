"""Private names of `torch.distributed.algorithms`."""

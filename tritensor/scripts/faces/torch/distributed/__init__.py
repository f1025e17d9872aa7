"""Names of `torch.distributed`'s private modules, which libraries import."""

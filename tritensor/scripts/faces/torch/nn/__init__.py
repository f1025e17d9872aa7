"""torch.nn."""

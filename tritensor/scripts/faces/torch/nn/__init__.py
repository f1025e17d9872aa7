"""torch.nn: what libraries import of its modules."""

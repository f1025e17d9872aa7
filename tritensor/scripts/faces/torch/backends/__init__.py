"""torch.backends: libraries of processors that are not used here."""

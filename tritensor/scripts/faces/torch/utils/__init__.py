"""torch.utils: private modules that libraries use."""

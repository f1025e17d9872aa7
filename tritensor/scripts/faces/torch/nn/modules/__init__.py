"""torch.nn.modules: private names that layers of other libraries use."""

"""How the workers of a job end, as their launcher sees it."""

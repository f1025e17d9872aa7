"""Groups of noted calls as one operator each."""

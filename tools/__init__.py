"""Programs that make files of the project from the code."""

"""Programs that generate files of the project from the code."""

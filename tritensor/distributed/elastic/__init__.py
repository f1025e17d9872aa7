"""The processes that a launcher starts for one job: running them, ending them, starting them again."""

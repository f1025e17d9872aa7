"""Rounds of what wears a library down, for minutes or hours: `python -m tests.stress --minutes 60`.

A round of a scenario takes about a second, draws all that varies from one seed, counts what it tried, and raises
AssertionError where something is lost, left behind or wrong. `python -m tests.stress --only NAME --seed SEED` repeats
it, as far as the instants of threads and signals allow.
"""

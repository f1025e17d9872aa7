"""Every test of graphs has simulated devices, and leaves no capture open."""

from __future__ import annotations

import pytest

from tritensor import cuda

# These hold on a real device as well: `--devices cuda` runs them there (tests/conftest.py).
ON_ANY = frozenset(
    (
        "test_a_capture_runs_nothing_and_a_replay_runs_it_on_the_same_memory",
        "test_replayed_training_equals_eager_training_bit_for_bit",
        "test_random_numbers_go_on_over_replays_and_eager_calls",
        "test_pinned_input_is_read_again_at_each_replay",
        "test_a_learning_rate_in_device_memory_is_read_at_each_replay",
        "test_eager_steps_between_replays_leave_the_graphs_table_alone",
        "test_what_a_graph_reads_lives_as_long_as_the_graph",
        "test_replays_in_several_streams_are_in_order",
        "test_the_stream_may_go_before_the_graph",
        "test_a_refusal_that_is_caught_still_ends_in_an_error",
        "test_an_error_of_ones_own_ends_the_capture",
        "test_steps_that_would_repeat_themselves_are_refused",
        "test_transfers_of_a_replay",
    )
)


@pytest.fixture(autouse=True)
def simulation(request):
    with cuda.simulate(devices=1 if request.node.originalname in ON_ANY else 2) as driver:
        yield driver
        assert driver.captures == {}

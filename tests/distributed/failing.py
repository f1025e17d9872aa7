"""Jobs that fail: `python -m tests.distributed.failing [--only NAME] [--jobs 2]` runs each and checks how it ends."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor

from .ending import Case, run

# In patterns, <here> is the number of the line that ends with "# here" in the program's function for the case.
_HERE = r'fails\.py", line <here>[^§]*'
_THERE = r'fails\.py", line <there>[^§]*'
_ALL_REDUCE = r"all_reduce #2 \(SUM\) of shape \(3,\), \w+\.float32"
_WAITS = rf"rank \d of \d waits for it in {_ALL_REDUCE}"
_RAISED = rf"{_THERE}ValueError: something is wrong here\n"
_ENDED = _RAISED + r"rank 1 of \d ended the job: ValueError was raised and not caught there"
_TOLD = r"DistError: rank 1 ended the job: ValueError was raised and not caught there: something is wrong here\n"
_EACH = "mpiexec launch plain spawn"
_GONE = r"rank 1 is gone: it ended with(out destroy_process_group\(\); its status is not known| status {}\b)"
_KILLED = r"rank 1 is gone: it (was killed by {}|ended without)"
_LATE = r"DistError: Watchdog caught collective operation timeout: {} ran for {} milliseconds"
# of its own, or told by the first that had it
_MISSING = r"(DistStoreError|DistError: rank \d has not joined: DistStoreError was raised there): Timed out after \d+ "
_MISSING += r"seconds waiting for clients\. {}/\d clients joined\.\n"
_MISSING += r"  rank \d of \d waits in init_process_group for ranks? {}\n"
_DIFFER = (
    r"DistError: Detected mismatch between collectives on ranks\. Rank 0 is running collective: {}[^§]*, but Rank "
)
_DIFFER += r"1 is running collective: {}[^§]*\n  ranks? 0.*: .* at .*fails\.py:<here>\n  rank 1: .* at .*fails\.py:{}\n"


def differ(first: str, other: str, there: str = "<here>") -> dict[int | str, str]:
    """What all ranks say when rank 1 starts another collective."""
    return {"all": _HERE.replace("<here>", r"\d+") + _DIFFER.format(first, other, there)}


def leaves(how: str, words: str, **more: object) -> Case:
    """Rank 1 ends without a word, while the others come to a collective; `words` say how."""
    zero = (1,) if how.endswith("0") else ()
    says = {"others": rf"{_HERE}DistError: {words}[^§]*{_WAITS}"}
    return Case(f"exits {how}", says, ranks=3, **{"succeeds": zero, **more})


CASES: dict[str, Case] = {
    # ---- a rank raises ---------------------------------------------------------------------------------------------
    "raises before joining": Case(
        "raises_before_joining 0",
        {1: _ENDED, "others": _HERE + _MISSING.format(1, 1)},
        by=_EACH,
        timeout=4,
        mpiexec={1: _ENDED},
        launch={1: _ENDED},
        spawn={"job": _RAISED},
    ),
    "raises before others join": Case("raises_before_joining 100", {1: _ENDED}, by="mpiexec launch"),
    "raises": Case(
        "raises",
        {1: _ENDED, "others": rf"{_HERE}{_TOLD}[^§]*{_WAITS}"},
        by=_EACH,
        ranks=3,
        mpiexec={1: _ENDED},
        spawn={"job": _RAISED},
    ),
    "raises while others compute": Case(
        "raises_while_others_compute",
        {1: _ENDED, "others": rf"{_TOLD[11:-2]}[^§]*rank \d of 3 ended the job, in which"},
        by=_EACH,
        ranks=3,
        mpiexec={1: _ENDED},
        launch={1: _ENDED},
        spawn={"job": _RAISED},
    ),
    "raises in backward": Case(
        "raises_in_backward",
        {
            1: rf"{_THERE}ShapeError[^§]*rank 1 of 2 ended",
            0: rf"{_HERE}DistError: rank 1 ended the job: [^§]*rank 0 of 2 waits for it in all_reduce #\d \(AVG\)",
        },
        by=_EACH,
        mpiexec={1: _THERE},
        spawn={"job": _THERE},
    ),
    "raises in a worker": Case(
        "raises_in_a_worker",
        {
            1: rf"{_HERE}[^§]*ValueError: [^§]*row 5 is broken",
            0: r"line <last>[^§]*DistError: rank 1 ended the job: Value",
        },
        by="mpiexec launch plain",
        mpiexec={1: _HERE},
    ),
    # ---- a rank ends -----------------------------------------------------------------------------------------------
    "sys.exit(0)": leaves(
        "sys_0", "rank 1 has left the job after 1 collective; ", by=_EACH, spawn={"job": "1 has left"}
    ),
    "sys.exit(3)": leaves(
        "sys_3", "rank 1 has left the job after 1 collective; ", by=_EACH, spawn={"job": "exit code 3"}
    ),
    "destroy": leaves(
        "destroy", "rank 1 has left the job after 1 collective; ", by=_EACH, succeeds=(1,), spawn={"job": "1 has left"}
    ),
    "os._exit(0)": leaves("_exit_0", _GONE.format(0), by=_EACH, spawn={"job": _GONE.format(0)}),
    "os._exit(3)": leaves("_exit_3", _GONE.format(3), by=_EACH, spawn={"job": "exit code 3"}),
    **{
        name: leaves(
            name, _KILLED.format(name), by=_EACH, mpiexec={"job": _KILLED.format(name)}, spawn={"job": f"signal {name}"}
        )
        for name in ("SIGKILL", "SIGSEGV", "SIGTERM", "SIGABRT")
    },
    "exits while others compute": Case(
        "exits_while_others_compute _exit_0",
        {"others": rf"^{_GONE.format(0)}[^§]*rank \d of 3 ended the job, in which not all can take part any more"},
        by="mpiexec launch plain",
        ranks=3,
        succeeds=(1,),
    ),
    "SIGKILL while others compute": Case(
        "exits_while_others_compute SIGKILL",
        {
            "others": rf"^{_KILLED.format('SIGKILL')}[^§]*rank \d of 3 ended "
            r"the job, in which not all can take part any more"
        },
        by="mpiexec launch plain",
        ranks=3,
        mpiexec={"job": _KILLED.format("SIGKILL")},
        launch={"job": r"rank 1 failed \(Signal 9 \(SIGKILL\)\)"},  # which ends the others before they say it
    ),
    "SIGKILL within a collective": Case(
        "exits_within_a_collective SIGKILL",
        {2: rf"{_HERE}DistError: {_KILLED.format('SIGKILL')}[^§]*{_WAITS}"},
        by="mpiexec launch plain",
        ranks=3,
        mpiexec={"job": _KILLED.format("SIGKILL")},
    ),
    **{
        f"rank 0 ends by {how}": Case(
            f"rank_0_ends {how}",
            dict.fromkeys((1, 2), rf"{_HERE}DistError: rank 0 [^§]*{_WAITS}"),
            by="mpiexec launch plain",
            ranks=3,
            succeeds=(0,) if how.endswith("0") else (),
            mpiexec={"job": "rank 0 (is gone|has left)"},
        )
        for how in ("sys_0", "_exit_0", "SIGKILL")
    },
    # ---- a rank does not come --------------------------------------------------------------------------------------
    "hangs": Case(
        "sleeps 100",
        {"others": _HERE + _LATE.format(_ALL_REDUCE, 3000)},
        by="mpiexec launch plain",
        ranks=3,
        timeout=3,
    ),
    "stops": Case(
        "exits SIGSTOP",
        {"others": _HERE + _LATE.format(_ALL_REDUCE, 3000)},
        by="mpiexec launch plain",
        ranks=3,
        timeout=3,
    ),
    "loops": Case(
        "loops",
        {"others": _HERE + _LATE.format(_ALL_REDUCE, 3000)},
        by="mpiexec launch plain",
        timeout=3,
    ),
    "comes late": Case(
        "sleeps 7",
        {0: _HERE + _LATE.format(_ALL_REDUCE, 2000)},
        by="mpiexec launch plain",
        timeout=2,
    ),
    "comes within the timeout": Case("sleeps 2", {"all": "^all is well"}, by=_EACH, timeout=20, succeeds=True),
    "waits in another group": Case(
        "waits_in_another_group",
        {"all": _HERE + _LATE.format(r"all_reduce #1 \(SUM\) .* in group [12] \(ranks 0, 1\)", 2000)},
        by="mpiexec launch plain",
        timeout=2,
    ),
    "misses a barrier": Case(
        "misses_a_barrier",
        {0: _HERE + _LATE.format("barrier #2", 1000)},
        by="mpiexec launch plain",
    ),
    "misses a monitored barrier": Case(
        "misses_a_monitored_barrier",
        {
            "others": rf"{_HERE}DistError: Rank 1 failed to pass monitoredBarrier in 1000 ms\n  "
            r"rank \d of 3 waits for it in monitored_barrier at .*fails\.py:<here>\n"
        },
        by="mpiexec launch plain",
        ranks=3,
    ),
    "misses what is awaited": Case(
        "misses_what_is_awaited",
        {
            0: rf"{_HERE}{_LATE.format(_ALL_REDUCE, 1000)} before timing "
            r"out\n  rank 0 of 2 waited at .*fails\.py:<starts>"
        },
        by="mpiexec launch plain",
    ),
    "leaves what was started": Case(
        "leaves_what_was_started",
        {0: rf"DistError: rank 1 has left the job after 1 collective; {_WAITS} at .*fails\.py:<here>"},
        by="mpiexec launch plain",
        succeeds=(1,),
    ),
    "late and caught": Case(
        "late_and_caught",
        {0: f"caught {_LATE[11:].format(_ALL_REDUCE, 200)}"},
        by="mpiexec launch plain",
        succeeds=True,
    ),
    # ---- meeting ---------------------------------------------------------------------------------------------------
    "ends before joining": Case(
        "ends_before_joining sys_0",
        {"others": "[^§]*init_process_group[^§]*rank 1"},
        by="mpiexec launch plain",
        ranks=3,
        timeout=3,
        succeeds=(1,),
        mpiexec={"job": _LATE.format("init_process_group", 3000) + r"[^§]*rank \d of 3 waited at .*fails\.py:<here>"},
    ),
    **{
        f"never starts ({how.split()[0]})": Case(
            f"meets {how}",
            {"others": _HERE + _MISSING.format(2, 1)},
            ranks=3,
            timeout=3,
            absent=(1,),
        )
        for how in ("env", "tcp 127.0.0.1 {port}", "file {folder}/meets", "store 127.0.0.1 {port}")
    },
    **{
        f"rank 0 never starts ({how.split()[0]})": Case(
            f"meets {how}",
            {
                1: r"fails\.py[^§]*DistNetworkError: The client socket has timed out after 3000ms while trying to "
                r"connect to \(127\.0\.0\.1, \d+\)\."
            },
            timeout=3,
            absent=(0,),
        )
        for how in ("env", "tcp 127.0.0.1 {port}", "store 127.0.0.1 {port}")
    },
    "rank 0 never starts (file)": Case(
        "meets file {folder}/meets",
        {1: _HERE + _MISSING.format(1, 0)},
        timeout=3,
        absent=(0,),
    ),
    **{
        f"same rank ({how.split()[0]})": Case(
            f"meets {how}",
            {
                0: _HERE + _MISSING.format(2, 2),
                "job": r"DistError: init_process_group: another process has "
                r"joined as rank 1\n[^§]*process \d+ on",
            },
            ranks=3,
            timeout=4,
            variables={2: {"RANK": "1"}},
        )
        for how in ("env", "tcp 127.0.0.1 {port}", "file {folder}/meets", "store 127.0.0.1 {port}")
    },
    "same rank (0)": Case(
        "meets env",
        {"job": rf"{_HERE}DistError: init_process_group: another process has joined as rank 0"},
        timeout=3,
        variables={1: {"RANK": "0"}},
    ),
    "other world size": Case(
        "meets env",
        {1: rf"{_HERE}DistError: [^§]*rank \d says that there are \d processes, another rank says \d"},
        ranks=3,
        timeout=3,
        variables={1: {"WORLD_SIZE": "4"}},
    ),
    "rank out of range": Case(
        "meets env",
        {"job": rf"{_HERE}ValueError: init_process_group\(\): rank=3 is none of world_size=3"},
        ranks=3,
        timeout=3,
        variables={1: {"RANK": "3"}},
    ),
    **{
        f"port taken ({what})": Case(
            "meets env",
            {
                0: rf"{_HERE}DistNetworkError: The server socket has failed to listen[^§]*choose another MASTER_PORT",
                1: _HERE + r"DistNetworkError: The client socket has timed out[^§]*another program answers there",
            },
            timeout=3,
            taken=what,
            variables={"all": {"MASTER_PORT": "{taken}"}},
        )
        for what in ("silent", "http")
    },
    "port taken (job)": Case(
        "meets env",
        {"job": "all is well"},
        timeout=3,
        succeeds=True,
        taken="job",
        variables={"all": {"MASTER_PORT": "{taken}"}},
    ),
    **{
        f"master {name}": Case(
            "meets env",
            {
                0: _HERE + _MISSING.format(1, 1),
                1: rf"{_HERE}DistNetworkError: The client socket has timed out after "
                rf"3000ms while trying to connect to \({host}, \d+\)[^§]*rank 1",
            },
            timeout=3,
            variables={"all": {"MASTER_ADDR": host}},
        )
        for name, host in (("unreachable", "192.0.2.1"), ("unknown", "nowhere.invalid"))
    },
    "MASTER_PORT not set": Case(
        "meets env",
        {
            "all": rf"{_HERE}ValueError: Error initializing torch\.distributed using env:// rendezvous: environment "
            "variable MASTER_PORT expected, but not set"
        },
        variables={"all": {"MASTER_PORT": None}},
    ),
    "rank 0 gives up first": Case(
        "joins_and_waits_less",
        {"others": _HERE + _MISSING.format(2, 2)},
        ranks=3,
        absent=(2,),
    ),
    "MPI is missing": Case(
        "lacks_mpi all", {"all": rf"{_HERE}DistError: Distributed package doesn't have MPI"}, by="mpiexec launch plain"
    ),
    "MPI is missing in one": Case(
        "lacks_mpi one",
        {0: rf"{_HERE}DistStoreError: [^§]*rank 0 of 2 waits in init_process_group for rank 1"},
        by="mpiexec launch plain",
        timeout=4,
        mpiexec={1: f"{_HERE}DistError: Distributed package doesn't have MPI"},
        launch={1: f"{_HERE}DistError: Distributed package doesn't have MPI"},
    ),
    **{
        f"{launcher} says otherwise": Case(
            "meets env",
            {
                "job": rf"{_HERE}DistError: init_process_group: the launchers "
                rf"disagree about the number of processes\n[^§]*{size}=4"
            },
            variables={"all": {"WORLD_SIZE": "1", "RANK": "0", size: "4", rank: "0"}},
        )
        for launcher, size, rank in (
            ("mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
            ("srun", "SLURM_NTASKS", "SLURM_PROCID"),
            ("mpiexec", "PMI_SIZE", "PMI_RANK"),
        )
    },
    # ---- ranks disagree --------------------------------------------------------------------------------------------
    "shape": Case(
        "other_shape",
        differ(r"all_reduce #2 \(SUM\) of shape \(3,\)", r"all_reduce #2 \(SUM\) of shape \(4,\)"),
        by=_EACH,
        ranks=3,
        spawn={"job": "Detected mismatch"},
    ),
    "dtype": Case("other_dtype", differ(r"all_reduce #2 .*float32", r"all_reduce #2 .*float64"), by="mpiexec plain"),
    "operator": Case("other_operator", differ("all_reduce #2", "barrier #2", "<there>"), by="mpiexec plain", ranks=3),
    "reduction": Case(
        "other_reduction", differ(r"all_reduce #2 \(SUM\)", r"all_reduce #2 \(MAX\)"), by="mpiexec plain"
    ),
    "source": Case("other_source", differ(r"broadcast #2 \(src=0\)", r"broadcast #2 \(src=1\)"), by="mpiexec plain"),
    "order": Case("other_order", differ("all_reduce #2", "broadcast #2", "<there>"), by="mpiexec plain"),
    "sizes of all_to_all": Case(
        "other_sizes",
        {
            "all": rf"{_HERE}DistError: Detected mismatch between collectives "
            r"on ranks\. Rank 0 sends 2 elements to rank 1, "
            r"which expects 3\n  rank 0: all_to_all #2.* at .*fails\.py:<here>\n "
            r" rank 1: all_to_all #2.* at .*fails\.py:<here>\n"
        },
        by="mpiexec plain",
        ranks=3,
    ),
    **{
        f"{what} of a message": Case(
            f"other_message {what}",
            {
                0: rf"{_HERE}DistError: Detected mismatch between messages on ranks\. Rank 1 sends .*, but Rank 0 "
                r"receives .*\n  rank 1: send \(dst=0.* at .*fails\.py:<there>\n "
                r" rank 0: recv \(src=1.* at .*fails\.py:<here>\n",
                1: r"line <last>[^§]*DistError: rank 0 ended the job: [^§]*rank 1 of 2 waits for it in barrier #2",
            },
            by="mpiexec plain",
            mpiexec={0: _HERE + "DistError: Detected mismatch between messages"},
        )
        for what in ("dtype", "size")
    },
    **{
        f"message {way} a rank that ends by {how}": Case(
            f"message_{way}_a_rank_that_left {how}",
            {0: rf"{_HERE}DistError: rank 1 [^§]*rank 0 of 2 waits for it in {operator} \({to}=1"},
            by="mpiexec launch plain",
            succeeds=(1,),
            ranks=2,
        )
        for way, operator, to in (("of", "recv", "src"), ("to", "send", "dst"))
        for how in ("sys_0", "_exit_0")
    },
    "object lists": Case(
        "other_object_list",
        differ(r"broadcast #2 \(src=0\) of shape \(2,\)", r"broadcast #2 \(src=0\) of shape \(3,\)"),
        by="mpiexec plain",
    ),
    "short object list": Case(
        "short_object_list",
        {
            1: rf"{_HERE}[^§]*all_gather_object: object_list must have one entry per rank, 2; it has 1",
            0: rf"{_HERE}DistError: rank 1 ended the job: [^§]*rank 0 of 2 waits for it in all_gather #2",
        },
        by="mpiexec plain",
        mpiexec={1: _HERE},
    ),
    "ranks of a group": Case(
        "other_group",
        differ(r"new_group #2 \(ranks=\[0, 2\]\)", r"new_group #2 \(ranks=\[0, 1\]\)"),
        by="mpiexec plain",
        ranks=3,
    ),
    "group that another does not make": Case(
        "other_group_alone",
        {0: rf"{_HERE}Dist[^§]*new_group[^§]*rank 0 of 2"},
        by="mpiexec plain",
        timeout=3,
    ),
    **{
        f"{what} of parameters": Case(
            f"other_parameters {what}",
            {
                "all": rf"{_HERE}DistError: DDP expects same model across all ranks, but "
                r"[^§]*rank 1[^§]*rank \d"
            },
            by="mpiexec plain",
            ranks=3,
        )
        for what in ("number", "shape", "dtype")
    },
    "parameters used": Case(
        "other_parameters_used",
        {
            1: r"<here>[^§]*RuntimeError: Expected to have finished[^§]*rank 1 got no gradients for: second",
            0: "DistError",
        },
        by="mpiexec plain",
        mpiexec={"job": "DistError|Expected to have finished"},
    ),
    "buckets": Case("other_buckets", {"all": rf"{_HERE}DistError: Detected mismatch[^§]*"}, by="mpiexec plain"),
    "outside of the group": Case(
        "outside_of_the_group",
        {1: rf"{_HERE}UserWarning: Running all_reduce on global rank 1 which does not belong to the given group"},
        by="mpiexec plain",
        ranks=3,
        succeeds=(0, 2),
    ),
    "tensor of the CPU": Case(
        "tensor_of_the_cpu",
        {"all": rf"{_HERE}DistError: No backend type associated with device type cpu\n[^§]*nccl"},
        by="mpiexec plain",
        variables={"all": {"TRITENSOR_SIMULATE_CUDA": "1"}},
    ),
}


def main(arguments: list[str] | None = None) -> int:
    """The command; 1 if a job has ended in another way."""
    parser = argparse.ArgumentParser(prog="python -m tests.distributed.failing", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="a case, or those that begin so (repeatable)")
    parser.add_argument("--by", help="only by this launcher")
    parser.add_argument("--jobs", type=int, default=1, help="how many run at once")
    parser.add_argument("--show", action="store_true", help="print what the ranks print")
    options = parser.parse_args(arguments)
    names = [name for name in CASES if not options.only or name.startswith(tuple(options.only))]
    wanted = [(name, by) for name in names for by in CASES[name].by.split() if by == (options.by or by)]
    failed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for (name, by), ended in zip(wanted, pool.map(lambda each: run(CASES[each[0]], each[1]), wanted), strict=True):
            wrong = ended.wrong()
            failed += bool(wrong)
            print(f"{'fails' if wrong else 'ok':5} {ended.seconds:5.1f} s  {by:7} {name}", flush=True)
            if wrong or options.show:
                print("".join(f"    {line}\n" for each in [*wrong, ended.text] for line in each.splitlines()))
    print(f"{len(wanted)} jobs, {failed} did not end as they should")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())

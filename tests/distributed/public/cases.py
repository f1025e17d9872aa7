"""The programs: where each lies below `--folder`, how it is cut to seconds, and what of its results is compared.

The sources are public repositories at the commits that README.md names, and programs of ours for libraries, in
`programs/`. No source is changed: sizes are cut by options, by configuration and by small data that `prepared` makes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from . import prepared


class Program(NamedTuple):
    """A program and how it is run.

    Attributes:
        source: its folder below `--folder`, which is copied for each run; empty for one of `programs/` or a module.
        script: its file in the folder, or `-m MODULE`. arguments: its arguments.
        ranks: how many processes; it starts them itself if `starts`, otherwise a launcher does.
        devices: how many CUDA devices it has to find; 0 for a program that runs on the CPU.
        prepare: makes what it reads, in the copied folder.
        printed: a regular expression; the lines where it is found are compared, numbers within rounding.
        one: the arguments with which one process computes the same.
        theirs: the arguments with PyTorch on the CPU, for a program that can be told to take it.
        checks_itself: it ends with an error if something is wrong; PyTorch's run is not needed.
        environment: variables of its environment.
        close: how much values may differ, relative to the largest of a tensor.
    """

    name: str
    source: str
    script: str
    arguments: str = ""
    ranks: int = 2
    starts: bool = False
    devices: int = 0
    prepare: Callable[[Path], None] | None = None
    printed: str = ""
    one: str | None = None
    theirs: str | None = None
    checks_itself: bool = False
    environment: str = ""
    close: float = 1e-4


def _fabric(folder: Path) -> None:
    prepared.mnist(folder)
    (folder / "data").rename(folder / "Datasets")


# Adam divides a gradient by its size: one that is zero but for rounding, as of a key's bias, gives a step all the same.
_ADAM = 5e-3
_SERIES = "examples/distributed/ddp-tutorial-series"
_NANO = (
    "--dataset=shakespeare_char --n_layer=2 --n_head=2 --n_embd=16 --block_size=16 --batch_size=4 --max_iters=4"
    " --eval_interval=4 --eval_iters=2 --gradient_accumulation_steps=4 --compile=False --dtype=float32"
    " --learning_rate=1e-2 --warmup_iters=0 --lr_decay_iters=4 --always_save_checkpoint=True"
)
_MINGPT = (
    "data_config.path=text.txt data_config.block_size=16 data_config.truncate=1.0 gpt_config.n_layer=1"
    " gpt_config.n_head=2 gpt_config.n_embd=16 +gpt_config.embd_pdrop=0.0 +gpt_config.resid_pdrop=0.0"
    " +gpt_config.attn_pdrop=0.0 trainer_config.max_epochs=1 trainer_config.batch_size=32"
    " trainer_config.data_loader_workers=0 trainer_config.save_every=1"
)
_IMAGENET = (
    "data -b 4 -j 0 --epochs 1 -p 1 --lr 0.0001 --dist-url tcp://127.0.0.1:23456 --world-size 1 --rank 0"
    " --multiprocessing-distributed"
)

PROGRAMS = [
    Program("series_single", _SERIES, "single_gpu.py", "1 1 --batch_size 256", ranks=1, starts=True, devices=2),
    Program("series_spawn", _SERIES, "multigpu.py", "2 1 --batch_size 256", starts=True, devices=2),
    Program(
        "series_torchrun",
        _SERIES,
        "multigpu_torchrun.py",
        "2 1 --batch_size 256",
        devices=2,
        one="2 1 --batch_size 512",
        printed=r"Epoch \d.*saved",
    ),
    Program("series_multinode", _SERIES, "multinode.py", "2 1 --batch_size 128", ranks=4, devices=4),
    Program("examples_ddp", "examples/distributed/ddp", "example.py", devices=2, printed="training completed.*"),
    Program(
        "mingpt",
        "examples/distributed/minGPT-ddp/mingpt",
        "main.py",
        f"{_MINGPT} trainer_config.use_amp=False",
        devices=2,
        prepare=prepared.text,
        printed=r"\[RANK.*Loss.*",
        one=f"{_MINGPT} trainer_config.use_amp=False".replace("batch_size=32", "batch_size=64"),
        close=_ADAM,
    ),
    Program(
        "mingpt_amp",
        "examples/distributed/minGPT-ddp/mingpt",
        "main.py",
        f"{_MINGPT} trainer_config.use_amp=True",
        devices=2,
        prepare=prepared.text,
        close=2e-2,
    ),
    Program(
        "imagenet",
        "examples/imagenet",
        "main.py",
        _IMAGENET,
        starts=True,
        devices=2,
        prepare=prepared.pictures,
        close=5e-3,  # normalized over batches of two
    ),
    Program("ddp_tutorial", "tutorials", "ddp_tutorial.py", ranks=4, starts=True, devices=4),
    Program("elastic_ddp", "tutorials", "elastic_ddp.py", devices=2, printed=r"Start running.*?rank \d"),
    *(
        Program(f"dist_tuto_{name}", "tutorials", f"dist_tuto_{name}.py", starts=True, printed=printed)
        for kind, printed in (
            ("send", "Rank.*has data.*"),
            ("isend", "Rank.*(has data|started).*"),
            ("all_reduce", "Rank.*has data.*"),
        )
        for name in (kind, f"{kind}_spawn")  # the page at two times: it forked, and now it spawns
    ),
    Program(
        "dist_tuto_train",
        "dist_tuto.pth",
        "train_dist.py",
        starts=True,
        prepare=prepared.mnist,
        printed="Rank.*epoch.*",
    ),
    Program("join", "tutorials", "generic_join.py", starts=True, devices=2, printed="Rank \\d has exhausted.*"),
    Program(
        "join_zero", "tutorials", "generic_join_zero.py", starts=True, devices=2, printed="Rank \\d has exhausted.*"
    ),
    Program(
        "join_counter",
        "tutorials",
        "generic_join_counter.py",
        starts=True,
        devices=2,
        printed=r"\d+ inputs processed[^!]*",
    ),
    Program(
        "nanogpt_one",
        "nanoGPT",
        "train.py",
        f"{_NANO} --device=cpu",
        1,
        True,
        0,
        prepared.characters,
        r"iter \d+: loss [\d.]+",
    ),
    Program(
        "nanogpt_gloo", "nanoGPT", "train.py", f"{_NANO} --backend=gloo", 2, False, 2, prepared.characters, "^step.*"
    ),
    Program(
        "nanogpt_nccl", "nanoGPT", "train.py", f"{_NANO} --backend=nccl", 4, False, 4, prepared.characters, "^step.*"
    ),
    Program(
        "trainer",
        "",
        "programs/trainer.py",
        "--use_cpu",
        printed="^(train|eval)_loss.*",
        # not `one`: transformers 5 multiplies this model's losses by the number of processes
        close=_ADAM,
    ),
    Program(
        "trainer_devices",
        "",
        "programs/trainer.py",
        theirs="--use_cpu",
        devices=2,
        printed="^(train|eval)_loss.*",
        close=_ADAM,
    ),
    *(
        Program(
            f"lightning_{strategy}",
            "",
            "programs/boring.py",
            f"--strategy {strategy} --accelerator cpu",
            starts=True,
            printed="^(fit|test) .*",
        )
        for strategy in ("ddp", "ddp_spawn", "ddp_find_unused_parameters_true")
    ),
    Program(
        "lightning_launched", "", "programs/boring.py", "--strategy ddp --accelerator cpu", printed="^(fit|test) .*"
    ),
    Program(
        "lightning_devices",
        "",
        "programs/boring.py",
        "--strategy ddp --accelerator gpu",
        theirs="--strategy ddp --accelerator cpu",
        starts=True,
        devices=2,
        printed="^(fit|test) .*",
    ),
    *(
        Program(
            f"trainer_fsdp{version}",
            "",
            "programs/trainer.py",
            f"--fsdp {version} {saving}",
            devices=2,
            printed="(train|eval)_loss [\\d.]+",
            environment="WATCHED_PARAMETERS=no",
            close=_ADAM,
        )
        for version, saving in ((2, ""), (1, "--unsaved"))  # PyTorch's FSDP1 saves only what is on a GPU
    ),
    *(
        Program(
            f"lightning_{name}",
            "",
            "programs/boring.py",
            f"--strategy {strategy} --accelerator gpu --devices {devices} {more}",
            ranks=devices,
            starts=True,
            devices=devices,
            printed=r"(fit|test|again) [\d.-]+",
            environment="WATCHED_PARAMETERS=no",
            checks_itself=name == "fsdp_saved",  # PyTorch's saves and tests only on a GPU
        )
        for name, strategy, devices, more in (
            ("fsdp", "fsdp", 2, "--unsaved --untested"),
            ("fsdp_saved", "fsdp", 2, ""),
            ("fsdp2", "model_parallel_2_1", 2, "--unsaved"),
            ("fsdp2_again", "model_parallel_2_1", 2, "--again"),
            ("tensor_parallel", "model_parallel_1_2", 2, "--unsaved"),
            ("fsdp2_tensor_parallel", "model_parallel_2_2", 4, "--unsaved"),
        )
    ),
    Program(
        "fabric_mnist",
        "pytorch-lightning",
        "-m lightning.fabric.cli",
        "--accelerator cpu --strategy ddp --devices 2 examples/fabric/image_classifier/train_fabric.py"
        " --epochs 1 --batch-size 16 --log-interval 1 --lr 0.1",
        starts=True,
        prepare=_fabric,
        printed="Train.*|Test.*",
    ),
    *(
        Program(
            f"accelerate_{name}",
            "",
            f"-m accelerate.test_utils.scripts.test_{name}",
            environment="ACCELERATE_USE_CPU=true",
            checks_itself=name == "ops",  # trains nothing
        )
        for name in ("script", "sync", "ops")  # the others want devices
    ),
    *(
        Program(
            f"accelerate_{name}_devices",
            "",
            "-m accelerate.commands.launch",
            f"--multi_gpu --num_processes 2 {program}",
            starts=True,
            devices=2,
            checks_itself=True,
        )
        for name, program in (
            ("script", "--module accelerate.test_utils.scripts.test_script"),
            ("sync", "--module accelerate.test_utils.scripts.test_sync"),
            ("ddp_comm_hook", "--module accelerate.test_utils.scripts.test_ddp_comm_hook"),
            ("ops", "{programs}/accelerate_ops.py"),
            ("data_loop", "{programs}/accelerate_data_loop.py"),
        )
    ),
    Program(
        "accelerate_notebook",
        "",
        "programs/accelerate_notebook.py",
        starts=True,
        checks_itself=True,
        environment="ACCELERATE_NUM_PROCESSES=2 ACCELERATE_USE_CPU=true",
    ),
    *(
        Program(
            f"accelerate_fsdp{name}",
            "",
            "programs/accelerate_fsdp.py",
            options,
            ranks=ranks,
            devices=ranks,
            printed=r"(loss|norm|state [\w.]+) [\d.]+",
            checks_itself=kept,
            environment="WATCHED_PARAMETERS=no" if options[0] == "1" else "",
            close=1e-3,
        )
        # PyTorch's FSDP1 saves no whole state dict if its devices are the CPU, and its parameters are flat
        for name, options, ranks, kept in (
            ("2", "2", 2, False),
            ("2_kept", "2 state_dict_type=FULL_STATE_DICT", 2, False),
            ("2_loading", "2 cpu_ram_efficient_loading=1", 2, False),
            ("2_recomputed", "2 activation_checkpointing=1", 2, False),
            ("1", "1 use_orig_params=1", 2, False),
            ("1_recomputed", "1 activation_checkpointing=1 use_orig_params=1", 2, False),
            ("1_grad_op", "1 sharding_strategy=SHARD_GRAD_OP use_orig_params=1", 4, False),
            ("1_no_shard", "1 sharding_strategy=NO_SHARD use_orig_params=1", 2, False),
            ("1_kept", "1 state_dict_type=FULL_STATE_DICT use_orig_params=1", 2, True),
        )
    ),
    *(
        Program(
            name,
            f"examples/distributed/{folder}",
            f"{script}.py",
            arguments,
            ranks=ranks,
            devices=ranks,
            printed=printed,
            # FSDP2 trains what `to_empty` left in memory, and DTensors have no attention on the CPU in PyTorch
            checks_itself=name.startswith(("examples_fsdp2", "fsdp_tensor")),
            close=_ADAM,
        )
        for name, folder, script, arguments, ranks, printed in (
            ("examples_fsdp2", "FSDP2", "example", "", 2, ""),
            ("examples_fsdp2_mixed", "FSDP2", "example", "--mixed-precision --explicit-prefetching", 2, ""),
            ("examples_fsdp2_whole", "FSDP2", "example", "--dcp-api", 2, ""),
            ("tensor_parallel", "tensor_parallelism", "tensor_parallel_example", "", 2, ""),
            ("sequence_parallel", "tensor_parallelism", "sequence_parallel_example", "", 2, ""),
            ("fsdp_tensor_parallel", "tensor_parallelism", "fsdp_tp_example", "", 4, ""),
        )
    ),
    Program("muon", "Muon", "{programs}/muon_digits.py", printed="^loss.*"),
    Program(
        "simsiam",
        "simsiam",
        "main_simsiam.py",
        "data -a resnet18 -b 4 -j 0 --epochs 1 -p 1 --dim 64 --pred-dim 16 --dist-url file://{folder}/meeting"
        " --world-size 1 --rank 0 --multiprocessing-distributed",
        starts=True,
        devices=2,
        prepare=prepared.pictures,
        close=2e-2,  # normalized over batches of two; PyTorch's own runs differ by 1.2e-2 between instruction sets
    ),
]

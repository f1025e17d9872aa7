"""Compiles LLVM's intermediate language to object files. Imports llvmlite: only what must be compiled needs this."""

from __future__ import annotations

from functools import cache
from typing import Any

import llvmlite.binding as llvm

# What `settings.native_target` names, as LLVM does: a processor, and features that it has (+) or has not (-).
_TARGETS = {"avx2": ("x86-64-v3", ""), "no-fma": ("x86-64-v3", "-fma")}


@cache
def machine(target: str) -> tuple[Any, bool, int]:
    """LLVM's code generator for a target or "host", whether it multiplies and adds at once, the bits of a vector.

    The target "quick" is the host with code that is made in a third of the time, and takes 2 to 5 times as long.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    processor, text = _TARGETS.get(target) or (llvm.get_host_cpu_name(), features.flatten())
    made = llvm.Target.from_default_triple().create_target_machine(
        cpu=processor, features=text, opt=0 if target == "quick" else 2, reloc="pic", codemodel="small"
    )
    if target in _TARGETS:
        return made, target != "no-fma", 256
    # with the first of these alone, a vector of bytes takes several instructions
    wide = all(features.get(name) for name in ("avx512f", "avx512bw", "avx512dq", "avx512vl"))
    return made, bool(features.get("fma")), 512 if wide else 256


def compiled(text: str, target: str) -> bytes:
    """The object file of a module.

    Raises:
        RuntimeError: LLVM refuses the text.
    """
    made, _, _ = machine(target)
    # a context of its own: threads would share the global one, which keeps each type and constant for ever
    module = llvm.parse_assembly(text, llvm.create_context())
    module.triple = made.triple
    module.data_layout = str(made.target_data)
    module.verify()
    # The text has vectors already, and computes nothing twice: what LLVM does at level 2 takes 12 times as long, for
    # code that is no quicker.
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.run(module, llvm.create_pass_builder(made, llvm.create_pipeline_tuning_options()))
    found: bytes = made.emit_object(module)
    return found

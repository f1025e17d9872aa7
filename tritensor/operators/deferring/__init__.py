"""Deferred execution: inside of a compiled function calls are noted, and computed together when a value is needed.

A `Region` is one run of a compiled function. The tensors that are passed to it hold `Deferred` arrays while it runs, so
every operator that gets one hands its call over to `apply`, which notes it: the shapes, dtypes and strides of the
results are known, their elements are not. What was noted is computed by `Region.run`: when elements are read, before
memory is changed that a noted call reads, at an operator that cannot be noted, and at the end. Errors are raised when a
call is noted, and the tape is recorded as always.

Calls are found again by walking a tree: from the call before, by operator, places of the inputs, and metadata, to a
`Known` call, which has the forms of the results. So a repeated call is neither checked nor prepared again. The last one
holds the plans, by those results that something still references: what has died since is not computed.
"""

from __future__ import annotations

import sys

from ...memory.deferred import Deferred
from .changes import (
    LEAST,
    before_change,
    cast,
    end_pass,
    enter,
    entered,
    examine,
    keep,
    leave,
    paused,
    rebind,
    record_passing,
    running,
    settle,
    settle_all,
    through,
    view,
)
from .noting import apply, repeated
from .region import Function, Memory, Number, Region, Step, current
from .tracing import Program, Trace

__all__ = [
    "LEAST",
    "Function",
    "Memory",
    "Number",
    "Program",
    "Region",
    "Step",
    "Trace",
    "apply",
    "before_change",
    "cast",
    "current",
    "enter",
    "entered",
]
__all__ += ["end_pass", "examine", "record_passing"]
__all__ += ["keep", "leave", "paused", "rebind", "repeated", "running", "settle", "settle_all", "through", "view"]

Deferred.rules = sys.modules[__name__]

"""Two backward passes, of which the first keeps whole gradients: mpiexec -n 1 python kept_gradients.py"""

from __future__ import annotations

import tritensor as torch
import tritensor.distributed as dist
from tritensor import nn
from tritensor.distributed.device_mesh import init_device_mesh
from tritensor.distributed.fsdp import MixedPrecisionPolicy, fully_shard

dist.init_process_group()
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
model = fully_shard(nn.Linear(1, 1, bias=False), mesh=init_device_mesh("cpu", (1,)), mp_policy=policy)
for factor, last in ((256.0, False), (1.0, True)):
    model.set_requires_gradient_sync(last)
    (model(torch.ones(1, 1)).sum() * factor).backward()
print(model.weight.grad.to_local().item())
dist.destroy_process_group()

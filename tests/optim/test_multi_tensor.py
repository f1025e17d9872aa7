"""One launch for all parameters: what it computes, what it keeps on the device, and what finds its mistakes."""

from __future__ import annotations

import copy
import gc
import re
import weakref

import pytest

import tritensor as torch
from tritensor import cuda, nn, optim, settings
from tritensor.errors import DeviceMismatchError, KernelMemoryError, KernelMismatchError, ShapeError
from tritensor.kernels.optimizer import multi_tensor, rules

from ..launched import note_launches
from ..needs import HAS_TRITON
from ..runtime.interpreted_device import interpreted_device
from .formulas import SETTINGS
from .many_parameters import SHAPES, assert_equal_state, give_gradients, parameters

if not HAS_TRITON:
    pytest.skip("kernels need Triton", allow_module_level=True)


@pytest.fixture
def launches(monkeypatch):
    """The names of the kernels that were launched on simulated devices."""
    return note_launches(monkeypatch, lambda kernel, grid: kernel.family)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("capturable", [False, True])
def test_a_step_is_one_launch_and_equals_the_cpus(name, capturable, launches):
    kind, options = SETTINGS[name]
    if capturable:
        if kind in (optim.SGD, optim.Adagrad):
            pytest.skip("no step of it is counted in device memory")
        options = {**options, "capturable": True}
    with cuda.simulate(devices=1), torch.testing.checked():
        theirs, ours = parameters(SHAPES, "cpu"), parameters(SHAPES, "cuda")
        reference, optimizer = kind(theirs, **options), kind(ours, **options)
        for step, without in enumerate([(1,), (), (0, 4), ()]):
            for params in (theirs, ours):
                give_gradients(params, step, without)
            reference.step()
            launches.clear()
            optimizer.step()
            counted = [name for name in launches if name == "multi_tensor"]
            # a parameter that comes later has another count of steps: SGD's first direction, Adam's corrections
            groups = {0: 1, 1: 1 if capturable or (kind is optim.SGD and "momentum" not in options) else 2}
            assert len(counted) <= groups.get(step, 3)
        assert_equal_state(optimizer, reference, ours, theirs)
        launches.clear()
        with settings.check(False):
            give_gradients(ours, 9)
            for param in ours:
                optimizer.state[param].setdefault("step", torch.tensor(0.0))
            before = len(launches)
            optimizer.step()
            assert set(launches[before:]) <= {"multi_tensor", "rates"}


def test_the_number_of_launches_does_not_grow_with_the_model(launches):
    with cuda.simulate(devices=1):
        params = parameters([(3, 3)] * 40, "cuda")
        for kind, options in ((optim.AdamW, {}), (optim.SGD, {"momentum": 0.9, "nesterov": True}), (optim.SGD, {})):
            optimizer = kind(params, lr=0.1, **options)
            for seed in range(2):
                give_gradients(params, seed)
                launches.clear()
                optimizer.step()
                assert launches.count("multi_tensor") == 1
                if seed:
                    assert launches == ["multi_tensor"]


def test_devices_and_dtypes_get_a_launch_each(launches):
    places = [
        ("cuda:0", torch.float32),
        ("cuda:1", torch.float32),
        ("cuda:1", torch.bfloat16),
        ("cpu", torch.float32),
        ("cuda:0", torch.float16),
        ("cuda:0", torch.float64),
    ]
    with cuda.simulate(devices=2):
        ours = [parameter for place, kind in places for parameter in parameters([(6,), (2, 3)], place, kind)]
        theirs = [parameter for _, kind in places for parameter in parameters([(6,), (2, 3)], "cpu", kind)]
        for capturable in (False, True):
            one = optim.Adam(ours, lr=0.1, capturable=capturable)
            other = optim.Adam(theirs, lr=0.1)
            for seed in range(3):
                give_gradients(ours, seed)
                give_gradients(theirs, seed)
                launches.clear()
                one.step()
                other.step()
                assert launches.count("multi_tensor") == 5
            assert_equal_state(one, other, ours, theirs, rtol=2e-2, atol=2e-2)
            narrow = [(a, b) for a, b in zip(ours, theirs, strict=True) if a.dtype is torch.float32]
            for a, b in narrow:
                torch.testing.assert_close(a.detach().cpu(), b.detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("capturable", [False, True])
def test_strided_misaligned_and_shared_parameters_are_stepped_as_on_the_cpu(capturable):
    def model(device):
        whole = torch.arange(60.0, device=device).reshape(6, 10) / 10
        shared = torch.ones(8, device=device)
        made = [
            nn.Parameter(x)
            for x in (
                whole.t()[2:5],
                torch.ones(8, device=device),
                shared[:6],
                shared[2:],
                torch.ones(3, 2, device=device),
            )
        ]
        made[1].data = torch.arange(9.0, device=device)[1:]
        return made

    with cuda.simulate(devices=1):
        ours, theirs = model("cuda"), model("cpu")
        assert not ours[0].is_contiguous() and ours[1].data_ptr() % 16
        one, other = optim.Adam(ours, lr=0.1, capturable=capturable), optim.Adam(theirs, lr=0.1)
        for seed in range(3):
            give_gradients(ours, seed)
            give_gradients(theirs, seed)
            for params in (ours, theirs):
                params[4].grad = params[4].grad.t().contiguous().t()
            one.step()
            other.step()
        assert_equal_state(one, other, ours, theirs)


def test_bad_gradients_and_states_change_nothing():
    with cuda.simulate(devices=2):
        params = parameters([(4,), (5,)], "cuda:0")
        optimizer = optim.Adam(params)
        give_gradients(params, 0)
        optimizer.step()
        before = [param.detach().clone() for param in params]
        good = params[1]._grad
        params[1]._grad = torch.ones(4, device="cuda:0")
        with pytest.raises(ShapeError, match=r"The size of grad \(4,\) must match the size of param \(5,\)"):
            optimizer.step()
        for other in ("cuda:1", "cpu"):
            params[1]._grad = torch.ones(5, device=other)
            with pytest.raises(DeviceMismatchError):
                optimizer.step()
        assert all(torch.equal(a, b) for a, b in zip(params, before, strict=True))
        params[1]._grad = good
        optimizer.step()
        assert not torch.equal(params[1], before[1])


# ---- what stays on the device -----------------------------------------------------------------------------------


def test_the_table_is_sent_again_only_where_an_address_has_changed():
    with cuda.simulate(devices=1):
        params = parameters([(4,), (5,)], "cuda")
        optimizer = optim.Adam(params, lr=0.1)
        give_gradients(params, 0)
        optimizer.step()
        optimizer.step()
        with cuda.transfers() as copies:
            optimizer.step()
        assert copies.entries == []
        kept = params[0].grad
        params[0].grad = torch.ones(4, device="cuda")
        with cuda.transfers() as copies:
            optimizer.step()
        assert [entry.kind for entry in copies.entries] == ["h2d"]
        del kept
        expected = params[0].detach().cpu()
        with cuda.transfers() as copies:
            params[0].data = params[0].detach().clone()
            optimizer.zero_grad(set_to_none=False)
            params[0].grad.fill_(-1.0)
            optimizer.step()
        assert copies.count("h2d") == 2
        assert not torch.equal(params[0].detach().cpu(), expected)


def test_steps_in_another_stream_and_from_other_threads_are_in_order():
    """A table that is sent again while an earlier launch of another stream may still read it waits for that."""
    with settings.simulate_late(True), cuda.simulate(devices=1):
        ours, theirs = parameters([(4,), (5,)], "cuda"), parameters([(4,), (5,)], "cpu")
        one, other = optim.SGD(ours, lr=0.1, momentum=0.9), optim.SGD(theirs, lr=0.1, momentum=0.9)
        side = cuda.Stream()
        for seed in range(4):
            give_gradients(ours, seed)
            give_gradients(theirs, seed)
            here = cuda.current_stream()
            stream = side if seed % 2 else here
            stream.wait_stream(here)
            with cuda.stream(stream):
                one.step()
            here.wait_stream(stream)
            for param in ours:
                assert stream.arena in (param.grad._data.buffer.arena, *param.grad._data.buffer.users)
            other.step()
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a.detach().cpu(), b.detach())


def test_nothing_keeps_the_memory_of_a_model_that_was_moved():
    with cuda.simulate(devices=1):
        model = nn.Linear(3, 2).to("cuda")
        optimizer = optim.Adam(model.parameters())
        give_gradients(list(model.parameters()), 0)
        optimizer.step()
        memory = weakref.ref(model.weight._data.buffer)
        model.to("cpu")
        optimizer.to("cpu")
        gc.collect()
        assert memory() is None


def test_tables_belong_to_one_simulation_and_are_not_copied():
    made = []
    for _ in range(2):
        with cuda.simulate(devices=1):
            params = parameters([(4,), (5,)], "cuda")
            if not made:
                made.append(optim.SGD(params, lr=0.5))
            made[0].param_groups[0]["params"] = params
            give_gradients(params, 0)
            made[0].step()
            expected = parameters([(4,), (5,)], "cpu")
            for param, start in zip(params, expected, strict=True):
                torch.testing.assert_close(param.detach().cpu(), start.detach() - 0.5 * param.grad.cpu())
            twin = copy.deepcopy(made[0])
            assert "_tables" not in vars(twin) and "_tables" in vars(made[0])
            for param in twin.param_groups[0]["params"]:
                param.grad = torch.ones(param.shape, device="cuda")
            twin.step()


def test_the_host_path_of_a_real_device_computes_the_same(monkeypatch):
    theirs = parameters(SHAPES, "cpu")
    for options in ({}, {"capturable": True}):
        other = optim.AdamW(theirs, lr=0.1)
        with interpreted_device() as driver:
            ours = [nn.Parameter(param.detach().to("cuda")) for param in theirs]
            one = optim.AdamW(ours, lr=0.1, **options)
            for seed in range(3):
                give_gradients(ours, seed)
                give_gradients(theirs, seed)
                driver.launches.clear()
                one.step()
                other.step()
            assert [name for name, _ in driver.launches] == (["rates"] if options else []) + ["adam"]
            assert_equal_state(one, other, ours, theirs)


# ---- what finds mistakes ----------------------------------------------------------------------------------------


def stepped(optimizer):
    optimizer.step()
    cuda.synchronize()  # where streams run late, a kernel fails when it is waited for


def test_a_row_that_says_too_much_is_found_by_the_sanitizer(monkeypatch):
    make = multi_tensor.Batch.__init__

    def wrong(self, *arguments):
        make(self, *arguments)
        self.rows[0, len(self.kinds)] += 1

    monkeypatch.setattr(multi_tensor.Batch, "__init__", wrong)
    with cuda.simulate(devices=1):
        params = parameters([(300,), (301,)], "cuda")
        give_gradients(params, 0)
        with pytest.raises(KernelMemoryError, match=r"element 300 of param\[0\], float32 of shape \(300,\)"):
            stepped(optim.Adam(params))


def test_an_address_that_is_no_tensors_is_found_by_the_sanitizer(monkeypatch):
    make = multi_tensor.Batch._table

    def wrong(self, *arguments):
        table = make(self, *arguments)
        self.rows[1, 1] += 64
        multi_tensor.copies.copy_into(table, self.rows)
        return table

    monkeypatch.setattr(multi_tensor.Batch, "_table", wrong)
    with cuda.simulate(devices=1):
        params = parameters([(128,), (128,)], "cuda")
        give_gradients(params, 0)
        with pytest.raises(KernelMemoryError, match="out of bounds"):
            stepped(optim.SGD(params))


def test_checked_mode_notices_a_wrong_body(monkeypatch):
    def wrong(param, grad, lr, l2, sign):
        return param - lr * (sign * grad - l2 * param)

    monkeypatch.setattr(rules.sgd, "body", wrong)
    with cuda.simulate(devices=1), torch.testing.checked():
        params = parameters([(4,), (5,)], "cuda")
        give_gradients(params, 0)
        optim.SGD(params, lr=0.1).step()
        with pytest.raises(KernelMismatchError, match="sgd: the kernel and its reference disagree on new_param"):
            optim.SGD(params, lr=0.1, weight_decay=0.5).step()
    monkeypatch.undo()


def test_the_debug_line_names_the_launch(capsys):
    with cuda.simulate(devices=1), settings.debug(2):
        params = parameters([(4,), (5,)], "cuda")
        give_gradients(params, 0)
        capsys.readouterr()
        optim.SGD(params, lr=0.1).step()
    line = capsys.readouterr().err
    assert re.match(r"tritensor: sgd tensors=2, elements=9 -> float32\[5\] on cuda:0: ", line)

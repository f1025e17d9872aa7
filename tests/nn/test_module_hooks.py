"""Hooks of a module: before and after forward, around backward, and in what order, by PyTorch's rules."""

from __future__ import annotations

import pytest

import tritensor as torch
from tritensor import nn


def test_forward_hooks_see_and_replace():
    layer = nn.Identity()
    seen = []
    layer.register_forward_pre_hook(lambda module, args: args[0] + 1)
    layer.register_forward_pre_hook(lambda module, args: (args[0] * 10,))
    layer.register_forward_hook(lambda module, args, output: seen.append((args, output)))
    handle = layer.register_forward_hook(lambda module, args, output: output + 0.5)
    assert layer(1) == 20.5
    assert seen == [((20,), 20)]
    handle.remove()
    handle.remove()
    assert layer(1) == 20


def test_hooks_with_keywords_and_in_front():
    class Add(nn.Module):
        def forward(self, x, y=0):
            return x + y

    layer = Add()
    with layer.register_forward_pre_hook(lambda m, args, kwargs: (args, {"y": kwargs["y"] * 2}), with_kwargs=True):
        assert layer(1, y=3) == 7
    layer.register_forward_pre_hook(lambda m, args, kwargs: None, with_kwargs=True)
    layer.register_forward_hook(lambda m, args, kwargs, output: (output, kwargs), with_kwargs=True)
    layer.register_forward_hook(lambda m, args, output: output * 100, prepend=True)
    assert layer(1, y=3) == (400, {"y": 3})
    layer.register_forward_pre_hook(lambda m, args, kwargs: 5, with_kwargs=True)
    with pytest.raises(RuntimeError, match="forward pre-hook must return None or a tuple"):
        layer(1, y=3)


def test_always_called_hooks_run_after_an_error():
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("first")

    layer = Fails()
    calls = []
    layer.register_forward_hook(lambda m, args, output: calls.append(output), always_call=True)
    layer.register_forward_hook(lambda m, args, output: calls.append("never"))
    with pytest.raises(ValueError, match="first"):
        layer(1)
    assert calls == [None]

    def broken(module, args, output):
        raise KeyError("second")

    layer.register_forward_hook(broken, always_call=True)
    with pytest.raises(ValueError, match="first"), pytest.warns(UserWarning, match="silenced as another error"):
        layer(1)


class TwoInputs(nn.Module):
    def forward(self, x, label, y):
        return x * 2, y * 3


def test_backward_hooks_see_all_gradients_at_once():
    layer = TwoInputs()
    calls = []
    layer.register_full_backward_hook(lambda m, inputs, outputs: calls.append((inputs, outputs)))
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    first, second = layer(x, "label", y)
    (first * 5 + second * 7).sum().backward()
    (grad_x, grad_label, grad_y), (grad_first, grad_second) = calls[0]
    assert len(calls) == 1
    assert grad_label is None
    assert [g.tolist() for g in (grad_x, grad_y, grad_first, grad_second)] == [[10, 10], [21, 21], [5, 5], [7, 7]]
    assert x.grad.tolist() == [10, 10]


def test_backward_hooks_replace_gradients():
    layer = nn.Identity()
    layer.register_full_backward_pre_hook(lambda m, outputs: (outputs[0] * 2,))
    layer.register_full_backward_hook(lambda m, inputs, outputs: (inputs[0] + outputs[0],))
    x = torch.ones(1, requires_grad=True)
    (layer(x) * 3).sum().backward()
    assert x.grad.tolist() == [12]


def test_backward_hooks_without_an_input_that_needs_gradients():
    layer = nn.Linear(2, 1)
    calls = []
    handle = layer.register_full_backward_hook(lambda m, inputs, outputs: calls.append((inputs, outputs)))
    layer(torch.ones(1, 2)).sum().backward()
    assert calls[0][0] == (None,)
    assert calls[0][1][0].tolist() == [[1]]
    handle.remove()
    layer.register_full_backward_hook(lambda m, inputs, outputs: (torch.ones(1),))
    with pytest.raises(RuntimeError, match="no input requires gradient should always return None"):
        layer(torch.ones(1, 2)).sum().backward()


def test_backward_hooks_of_the_wrong_count_raise():
    layer = nn.Identity()
    layer.register_full_backward_hook(lambda m, inputs, outputs: (None, None))
    with pytest.raises(RuntimeError, match="Backward hook returned an invalid number of grad, got 2, but expected 1"):
        layer(torch.ones(1, requires_grad=True)).backward()


def test_backward_hooks_run_at_every_backward_and_not_in_no_grad():
    layer = nn.Identity()
    calls = []
    layer.register_full_backward_hook(lambda m, inputs, outputs: calls.append(1))
    x = torch.ones(1, requires_grad=True)
    output = layer(x)
    output.backward(retain_graph=True)
    output.backward()
    assert len(calls) == 2
    with torch.no_grad():
        assert layer(x) is x


def test_backward_hooks_are_for_gradients_that_come_through_the_outputs():
    class Leaks(nn.Module):
        def forward(self, x):
            self.__dict__["aside"] = x * 3
            return x * 2

    layer = Leaks()
    calls = []
    layer.register_full_backward_hook(lambda m, inputs, outputs: calls.append(inputs))
    x = torch.ones(1, requires_grad=True)
    layer(x)
    layer.aside.backward()
    assert calls == []
    assert x.grad.tolist() == [3]


def test_backward_hooks_warn_about_other_outputs():
    class Dicts(nn.Module):
        def forward(self, x):
            return {"x": x}

    layer = Dicts()
    layer.register_full_backward_hook(lambda m, inputs, outputs: None)
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple of Tensors"):
        layer(torch.ones(1, requires_grad=True))

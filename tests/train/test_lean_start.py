"""What a training does not import, as each start would wait for it."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.nn import Parameter

from cule.train.nn import eager_optimizer
from cule.train.nn.optimizers import Adam

ROOT = Path(__file__).resolve().parents[2]
# torch's compiler, 1 to 2 s; what only other programs and options need.
NEVER = {"torch._dynamo", "torch._inductor", "pandas", "matplotlib", "jax", "pygame", "imageio"}
TRAIN = """
import json, sys
from {module} import {algorithm}, Args
from cule import train
train.train({algorithm}, Args(
    num_envs=20, total_frames=30_000, eval_episodes=2, eval_max_frames=200, device="cpu",
    plot=False, tensorboard=False, progress=False, optimizer={optimizer!r}, folder={folder!r}))
print(json.dumps(sorted(sys.modules)))
"""


@pytest.mark.parametrize("module, algorithm, optimizer", [
    ("examples.pqn.pqn", "PQN", "adam"),
    ("examples.ppo.ppo", "PPO", "rmsprop"),
    ("examples.a2c_vtrace.train", "A2C", "muon"),
])  # fmt: skip
def test_a_training_does_not_import_what_it_does_not_use(module, algorithm, optimizer, tmp_path):
    program = TRAIN.format(
        module=module, algorithm=algorithm, optimizer=optimizer, folder=str(tmp_path / "run")
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 0, ran.stderr
    loaded = {*json.loads(ran.stdout.splitlines()[-1])}
    assert "cule.train.trainer" in loaded
    assert not loaded & NEVER


def moved(optimizer):
    """Parameters after ten steps with gradients that change."""
    [parameter] = optimizer.param_groups[0]["params"]
    for step in range(10):
        parameter.grad = (parameter.detach() - step).sin()
        optimizer.step()
    return parameter.detach()


@pytest.mark.parametrize("own, torchs, settings", [
    (eager_optimizer.Adam, torch.optim.Adam, {"lr": 0.1, "fused": True}),
    (eager_optimizer.RMSprop, torch.optim.RMSprop, {"lr": 0.1, "alpha": 0.9, "foreach": True}),
])  # fmt: skip
def test_steps_are_torchs(own, torchs, settings):
    begin = torch.linspace(-1, 1, 12)
    optimizers = [kind([Parameter(begin.clone())], **settings) for kind in (own, torchs)]
    results = [moved(optimizer) for optimizer in optimizers]
    torch.testing.assert_close(*results, rtol=0, atol=0)
    # States are exchanged, as those of checkpoints that were written before.
    ours, theirs = optimizers
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    ours.load_state_dict(copy.deepcopy(theirs.state_dict()))
    torch.testing.assert_close(moved(ours), moved(theirs), rtol=0, atol=0)


def test_a_step_has_a_closure_and_is_not_recorded_for_gradients():
    parameter = Parameter(torch.ones(3))
    optimizer = Adam([parameter], torch.tensor(0.1), 1e-8)

    def loss():
        optimizer.zero_grad()
        value = (parameter**2).sum()
        value.backward()
        return value

    assert optimizer.step(loss).item() == 3
    assert parameter.is_leaf and (parameter < 1).all()

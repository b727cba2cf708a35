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
NEVER = {
    "torch._dynamo", "torch._inductor", "sympy", "pandas", "matplotlib", "jax", "pygame", "imageio",
    "ale_py", "cv2",
}  # fmt: skip
TRAIN = """
import importlib, json, sys
from pathlib import Path
from cule import train
for module, name, changes in {trainings!r}:
    algorithms = importlib.import_module(module)
    row = train.train(getattr(algorithms, name), algorithms.Args(
        num_envs=20, total_frames=3000, eval_episodes=2, eval_max_frames=80, device="cpu",
        width=0.1, num_threads=1, plot=False, logger="none", progress=False,
        folder=Path({folder!r}, name), **changes))
    print(json.dumps([row["updates"], sorted(sys.modules)]))
"""


def test_trainings_do_not_import_what_they_do_not_use(tmp_path):
    trainings = [
        ("examples.pqn.pqn", "PQN", {"optimizer": "adam"}),
        ("examples.ppo.ppo", "PPO",
         {"optimizer": "rmsprop", "num_steps": 16, "minibatch_size": 64}),
        ("examples.a2c_vtrace.train", "A2C", {"optimizer": "muon", "warmup_steps": 0}),
    ]  # fmt: skip
    program = TRAIN.format(trainings=trainings, folder=str(tmp_path))
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert ran.returncode == 0, ran.stderr
    for line in ran.stdout.splitlines():
        updates, modules = json.loads(line)
        assert updates > 0 and "cule.train.trainer" in modules
        assert not {*modules} & NEVER


def test_a_program_leaves_what_it_has_imported_out_of_garbage_collections():
    """Which would go through torch's modules each time, and at the program's end."""
    program = """
import gc
from dataclasses import dataclass
from cule.train.command import run_program

@dataclass
class Args:
    several: int = 1

imported = len(gc.get_objects())
for words in ([], None):
    run_program("python -m some.program", Args, lambda args: None, words)
    print(gc.get_freeze_count() >= imported)
"""
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    # A function that is called with words is a part of another program.
    assert (ran.returncode, ran.stdout) == (0, "False\nTrue\n"), ran.stderr


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

"""The notebook and the README's training loop: they run, and the loop learns."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from scripted import SignalEnv

import cule
from cule import train
from cule.train.envs.emulator import FRAMESKIP
from cule.train.lowering.making import preview
from tests.support import warm

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples").rglob("*.ipynb"))
# Stand-ins for Jupyter, and settings that make the training short.
PRELUDE = """
import sys, types
import matplotlib
matplotlib.use("Agg")
sys.modules["IPython.display"] = types.SimpleNamespace(Video=open)
"""
SHORTER = (
    "total_frames=1200, num_envs=8, num_batches=2, num_steps=4, steps_per_update=2, width=0.1, "
    'warmup_steps=0, num_threads=1, device="cpu", logger="none", '
)


def code_of(notebook):
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path):
    """Runs its cells in order, in a folder like its own."""
    code = "\n".join(code_of(json.loads(path.read_text())))
    code, count = re.subn("total_frames=frames,", SHORTER, code)
    assert count == 1
    code = code.replace('Path("pong.mp4"))', 'Path("pong.mp4"), max_frames=200, device="cpu")')
    code = code.replace("range(100)", "range(3)")
    code = code.replace('sys.path.insert(0, "..")', f"sys.path.insert(0, {str(ROOT)!r})")
    done = warm.run(["-c", PRELUDE + code], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "pong.mp4").stat().st_size > 500
    found = re.search(r"1,216 frames and ([\d,]+) updates in ", done.stdout)
    assert found and int(found[1].replace(",", "")) > 0


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_learns_in_most_of_its_frames(path, device, monkeypatch):
    """With its own arguments and a device's defaults: the warm-up takes a part of the frames."""
    (code,) = (one for one in code_of(json.loads(path.read_text())) if "train.train(" in one)
    given = []

    def note(made, args):
        given.append((made, args))
        return {"frames": 1, "updates": 1, "seconds": 1.0}

    monkeypatch.setattr(train, "train", note)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: device == "cuda")
    exec(code, {"torch": torch, "Path": Path})
    ((made, args),) = given
    args = args.on(torch.device(device))
    first = preview(made, args, torch.device(device)).learning().first(args.num_envs)
    assert 0 < first * args.num_envs * FRAMESKIP < args.total_frames / 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_without_outputs(path):
    notebook = json.loads(path.read_text())
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


class Signals(SignalEnv):
    """The parts of AtariEnv and EpisodeStatistics that the loop uses; resets in SAME_STEP mode."""

    def _frames(self):
        return super()._frames().expand(-1, 4, -1, -1)

    def reset(self, *, seed):
        self.scores, self.sums = [], np.zeros(self.num_envs)
        return super().reset(seed=seed)

    def step(self, actions):
        observations, rewards, terminated, truncated, infos = super().step(actions)
        self.sums += rewards.numpy()
        if terminated.any():  # of all at once
            self.scores.append(self.sums.mean())
            self.sums[:] = 0
            observations = super().step(actions)[0]
        return observations, rewards.float(), terminated, truncated, infos

    @property
    def mean_return(self):
        return float(np.mean(self.scores[-5:]))

    @property
    def episode_count(self):
        return len(self.scores)


def test_training_loop_of_the_readme_learns_what_pays(monkeypatch, capsys):
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    (code,) = (block for block in blocks if "loss.backward()" in block)
    assert len([line for line in code.splitlines() if line.strip()]) <= 40
    monkeypatch.setattr(cule, "AtariEnv", lambda game, num_envs, **_: Signals(num_envs))
    monkeypatch.setattr(cule, "EpisodeStatistics", lambda env: env)
    torch.manual_seed(0)
    code = re.sub(r"\b(32|64)\b", lambda width: str(int(width[0]) // 4), code)
    exec(code.replace("lr=5e-4", "lr=1e-3"), {})
    # 8 is the most there is; chance gives -2.7.
    assert float(capsys.readouterr().out.split()[0]) > 4

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
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
# Stand-ins for Jupyter, and settings that make the training short.
PRELUDE = """
import sys, types
import matplotlib
matplotlib.use("Agg")
sys.modules["IPython.display"] = types.SimpleNamespace(Video=lambda path, embed: open(path))
"""
SHORTER = {
    "total_frames=160_000": "total_frames=1200, num_threads=1, logger='none'",
    "num_envs=16": "num_envs=8",
    "width=0.25": "width=0.1",
    "steps=32": "steps=4",
    "minibatch=128": "minibatch=16",
    'device="cpu"))': 'device="cpu", max_frames=200))',
    "range(100)": "range(3)",
}


def code_of(notebook):
    """The code of the cells, with what Jupyter's commands in them do."""
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    for i, cell in enumerate(cells):
        first, _, rest = cell.partition("\n")
        if first.startswith("%%writefile "):
            cells[i] = f"open({first.split()[1]!r}, 'w').write({rest!r})"
        cells[i] = re.sub(r"%pip install .*", "raise AssertionError('cule is here')", cells[i])
    return cells


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path):
    """Runs its cells in order, in a folder of its own."""
    code = "\n".join(code_of(json.loads(path.read_text())))
    for ours, shorter in SHORTER.items():
        assert ours in code
        code = code.replace(ours, shorter)
    done = warm.run(["-c", PRELUDE + code], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "kaboom.mp4").stat().st_size > 500
    found = re.search(r"1,280 frames and ([\d,]+) updates in ", done.stdout)
    assert found and int(found[1].replace(",", "")) > 0


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_learns_in_most_of_its_frames(path, tmp_path, monkeypatch):
    """With its own arguments: the warm-up takes a part of the frames."""
    cells = code_of(json.loads(path.read_text()))
    (program,) = (one for one in cells if one.startswith("open("))
    (code,) = (one for one in cells if "train.train(" in one)
    given = []

    def note(made, args):
        given.append((made, args))
        return {"frames": 1, "updates": 1, "seconds": 1.0}

    monkeypatch.setattr(train, "train", note)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    exec(program, {})
    exec(code, {})
    ((made, args),) = given
    device = torch.device("cpu")
    args = args.on(device)
    first = preview(made, args, device).learning().first(args.num_envs)
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

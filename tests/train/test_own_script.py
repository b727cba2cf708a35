"""An algorithm in a script of one's own: trained by its command line, and found again by others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cule.train import evaluate
from cule.train.address import find

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = '''
import sys
from dataclasses import dataclass
from cule import train
from cule.train.models import ActorCritic, sample


@dataclass
class Args(train.Args):
    """Trains mine."""

    bonus: float = 0.5
    """a setting of its own"""


class Mine(train.Algorithm[Args]):
    def networks(self, num_actions):
        return {"net": ActorCritic(num_actions, "nature", self.args.width)}

    def act(self, nets, observations):
        return {"actions": sample(nets.net(observations)[0])}

    def scores(self, nets, observations):
        return nets.net(observations)[0]

    def learning(self):
        return train.Learning(steps=4)

    def loss(self, nets, batch):
        log_pi, values = nets.net(batch.observations[:-1].flatten(0, 1))
        chosen = log_pi.gather(1, batch.actions.flatten().unsqueeze(1)).squeeze(1)
        loss = -(chosen * batch.rewards.flatten()).mean() + self.args.bonus * values.square().mean()
        return {"loss": loss}


if __name__ == "__main__":
    sys.exit(train.main(Mine, Args))
'''


def test_script_is_trained_and_evaluated(tmp_path):
    (tmp_path / "mine.py").write_text(SCRIPT)
    words = "--device cpu --num-envs 4 --width 0.1 --total-frames 500 --num-threads 1 --no-plot "
    words += "--no-tensorboard --no-progress --eval-episodes 1 --eval-max-frames 40 --folder run "
    done = subprocess.run(
        [sys.executable, "mine.py", *words.split(), "--bonus", "0.25"], cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)
    assert (row["algorithm"], row["bonus"], row["updates"]) == ("Mine", 0.25, 8)
    assert row["command"].startswith("python mine.py --device cpu")
    args = evaluate.Args(
        tmp_path / "run", episodes=1, sticky=(0.0,), max_frames=40, device="cpu", num_threads=1
    )
    (tried,) = evaluate.evaluate(args)
    assert tried["algorithm"] == "Mine"
    (tmp_path / "mine.py").unlink()
    with pytest.raises(ValueError, match=r"the algorithm that was trained at .*mine\.py:Mine, got"):
        evaluate.evaluate(args)
    wrong = subprocess.run(
        [sys.executable, "-c", SCRIPT, "--num-envs", "0"], cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert wrong.returncode == 2 and "expected num_envs to be at least 1, got 0" in wrong.stderr


def test_find_says_what_is_missing():
    with pytest.raises(ValueError, match=r"trained at examples\.nowhere:Nobody, got none there"):
        find("examples.nowhere:Nobody")
    with pytest.raises(ValueError, match=r"trained at examples\.ppo\.ppo:Nobody, got none there"):
        find("examples.ppo.ppo:Nobody")

"""An algorithm in a script of one's own: trained by its command line, and found again by others."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
from training_runs import save

from cule import train
from cule.train.checkpoints import checkpoint
from cule.train.evaluate import evaluation, policies
from cule.train.import_path import find, load
from cule.train.nn import models
from cule.train.tune import __main__ as tune_program
from tests.support import warm

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = '''
import sys
from dataclasses import dataclass
from cule import train
from cule.train.nn.models import ActorCritic, sample


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
    words += "--logger none --no-progress --eval-episodes 1 --eval-max-frames 40 --folder run "
    environment = {"PYTHONPATH": str(ROOT)}
    words = ["mine.py", *words.split(), "--bonus", "0.25", "--json"]
    done = warm.run(words, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)
    assert (row["algorithm"], row["bonus"], row["updates"]) == ("Mine", 0.25, 8)
    assert row["command"].startswith("python mine.py --device cpu")
    args = evaluation.Args(
        tmp_path / "run", episodes=1, sticky=(0.0,), max_frames=40, device="cpu", num_threads=1
    )
    with pytest.raises(ValueError, match=r"mine\.py:Mine: its code .* --program mine\.py$"):
        evaluation.evaluate(args)
    args.program = (str(tmp_path / "mine.py"),)
    (tried,) = evaluation.evaluate(args)
    assert tried["algorithm"] == "Mine"
    (tmp_path / "mine.py").unlink()
    with pytest.raises(ValueError, match=r"the Algorithm that was trained at .*mine\.py:Mine, got"):
        evaluation.evaluate(args)
    wrong = warm.run(["-c", SCRIPT, "--num-envs", "0"], cwd=tmp_path, env=environment)
    assert wrong.returncode == 2 and "expected num_envs to be at least 1, got 0" in wrong.stderr


def test_find_says_what_is_missing():
    with pytest.raises(ValueError, match=r"trained at examples\.ppo\.ppo:Nobody, got none there"):
        find("examples.ppo.ppo:Nobody", train.Algorithm)
    with pytest.raises(ValueError, match=r"trained at nowhere:Nobody, got none there: No module"):
        find("nowhere:Nobody", train.Algorithm, ["nowhere"])


ACTING = '{"actions": sample(nets.net(observations)[0])}'
SLIPS = [
    ("loss", ".square().mean()", ".squared().mean()", AttributeError),
    ("loss", "batch.rewards", "batch.reward", AttributeError),
    ("loss", "nets.net(batch", "nets.nett(batch", AttributeError),
    ("loss", "gather(1,", "gather(5,", IndexError),
    ("loss", "log_pi, values =", "log_pi, values, more =", ValueError),
    ("act", ACTING, 'open("/nowhere")', OSError),
    ("act", ACTING, "int('x')", ValueError),
    ("networks", '"nature"', "self.missing", AttributeError),
    ("learning", "train.Learning(steps=4)", "__import__('no_such_module')", ImportError),
    ("learning", "train.Learning(steps=4)", "train.Learning(stepz=4)", TypeError),
]


def mine(folder, old="", new=""):
    path = folder / "mine.py"
    assert old in SCRIPT
    path.write_text(SCRIPT.replace(old, new, 1))
    return path


def arguments(folder):
    words = f"--device cpu --num-envs 4 --width 0.1 --total-frames 500 --folder {folder}/run "
    words += "--num-threads 1 --no-plot --logger none --no-progress --eval-episodes 0"
    return words.split()


@pytest.mark.parametrize("where, old, new, kind", SLIPS, ids=[slip[2] for slip in SLIPS])
@pytest.mark.parametrize("program", ["train", "explain", "tune"])
def test_own_mistake_keeps_its_traceback(
    program, where, old, new, kind, tmp_path, monkeypatch, capsys
):
    path, words = mine(tmp_path, old, new), arguments(tmp_path)
    with pytest.raises(kind) as raised:
        if program == "tune":
            tune_program.main([str(path), *words, "--search", "num_envs=4"])
        else:
            loaded = load(str(path))
            monkeypatch.setattr(
                "sys.argv", ["mine.py", *words, *["--explain"][: program != "train"]]
            )
            train.main(loaded.Mine, loaded.Args)
    entries = [entry for entry in raised.traceback if str(entry.path) == str(path)]
    assert entries[-1].name == where
    assert "mine:" not in capsys.readouterr().err


def test_refusal_from_own_code_is_a_line_that_says_where(tmp_path, monkeypatch, capsys):
    loaded = load(str(mine(tmp_path, "train.Learning(steps=4)", "train.Learning(steps=4, lag=7)")))
    monkeypatch.setattr("sys.argv", ["mine.py", *arguments(tmp_path)])
    assert train.main(loaded.Mine, loaded.Args) == 2
    assert capsys.readouterr().err == "mine: expected lag of Learning to be 0 or 1, got 7\n"
    loaded = load(str(mine(tmp_path, '"nature"', '"natural"')))
    assert train.main(loaded.Mine, loaded.Args) == 2
    line = capsys.readouterr().err
    assert line.startswith("mine: expected ") and line.count("\n") == 1
    assert line.endswith("(mine.py:18, in networks)\n")


def test_refusal_of_a_dataclass_names_who_made_it(tmp_path, monkeypatch, capsys):
    """Its constructor is generated, and in no file."""
    slip = "train.Learning(steps=Args(bonus='much').bonus)"
    loaded = load(str(mine(tmp_path, "train.Learning(steps=4)", slip)))
    monkeypatch.setattr("sys.argv", ["mine.py", *arguments(tmp_path)])
    assert train.main(loaded.Mine, loaded.Args) == 2
    line = capsys.readouterr().err
    assert line.endswith("got 'much' (mine.py:27, in learning)\n") and line.count("\n") == 1


@pytest.mark.parametrize("program", ["evaluate.__main__", "watch"])
def test_own_mistake_in_scores_keeps_its_traceback(program, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    slip = "return nets.net(observations)[0].exped()"
    loaded = load(str(mine(tmp_path, "return nets.net(observations)[0]", slip)))
    monkeypatch.setattr("sys.argv", ["mine.py", *arguments(tmp_path)])
    assert train.main(loaded.Mine, loaded.Args) == 0
    words = [str(tmp_path / "run"), "--episodes", "1", "--device", "cpu"]
    words += ["--program", str(tmp_path / "mine.py")]
    words += ["--output", str(tmp_path / "video.gif")] if program == "watch" else []
    monkeypatch.setattr("sys.argv", [program, *words])
    with pytest.raises(AttributeError, match="exped") as raised:
        importlib.import_module(f"cule.train.{program}").main()
    assert any(
        entry.name == "scores" and entry.path.name == "mine.py" for entry in raised.traceback
    )


def test_machine_shortage_is_a_line_and_own_one_a_traceback(tmp_path, monkeypatch, capsys):
    """A folder that cannot be made is no mistake of the algorithm's."""
    loaded = load(str(mine(tmp_path)))
    (tmp_path / "run").write_text("a file")
    monkeypatch.setattr("sys.argv", ["mine.py", *arguments(tmp_path)])
    assert train.main(loaded.Mine, loaded.Args) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("own", [False, True], ids=["cule's", "one's own"])
def test_a_lack_of_memory_is_a_line_whoever_asks_for_it(own, tmp_path, monkeypatch, capsys):
    """torch says it by a RuntimeError on a CPU."""
    old = 'ActorCritic(num_actions, "nature", self.args.width)'
    huge = "__import__('torch').nn.Linear(2**46, 2)"
    loaded = load(str(mine(tmp_path, *[old, huge] if own else [])))
    if not own:
        lacking = RuntimeError("DefaultCPUAllocator: can't allocate memory")
        monkeypatch.setattr(models, "initialised", Mock(side_effect=lacking))
    monkeypatch.setattr("sys.argv", ["mine.py", *arguments(tmp_path)])
    assert train.main(loaded.Mine, loaded.Args) == 2
    line = capsys.readouterr().err
    assert "can't allocate memory" in line and line.count("\n") == 1
    assert line.endswith("(mine.py:18, in networks)\n")


def test_import_error_of_ones_own_script_keeps_its_traceback(tmp_path, capsys):
    path = mine(tmp_path, "import sys", "import sys, no_such_module")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        tune_program.main([str(path), *arguments(tmp_path)])
    assert tune_program.main(["no_such_module.py", *arguments(tmp_path)]) == 2
    assert tune_program.main(["no_such.module", *arguments(tmp_path)]) == 2
    assert capsys.readouterr().err.count("expected a training program such as") == 2
    # What failed is not there, for whoever imports it later.
    assert "no_such_module" not in sys.modules


STATE = {
    "algorithm": "PPO", "program": "examples.ppo.ppo:PPO", "settings": "examples.ppo.ppo:Args",
    "num_actions": 6, "args": {"game": "pong", "folder": "runs/x"}, "frames": 4, "seconds": 1.0,
    "evaluation_seconds": 0.0, "logged": (0, 0, 0.0), "score": None, "test": {},
    "test_frames": None, "reached": None, "trainer": {"steps": 1, "updates": 1, "networks": {}},
}  # fmt: skip
NAMED = r"expected a program that ships with cule or that you name, got a checkpoint of {}: "
ATTACKS = {
    "a program": ({"settings": "subprocess:Popen"}, NAMED.format("subprocess:Popen")),
    "its imports": ({"settings": "cule.train.run.opening:os.system"}, "no subclass of train.Args"),
    "an algorithm": ({"program": "cule.train.command:run_program"}, "of train.Algorithm"),
    "settings as one": ({"program": "cule.train.settings:Args"}, "of train.Algorithm"),
    "a module": ({"program": "evil:Evil"}, NAMED.format("evil:Evil")),
    "a script": ({"program": "{here}/evil.py:Evil"}, r"evil\.py:Evil: .* --program evil\.py"),
    "examples of others": ({"program": "examples.evil:Evil"}, NAMED.format("examples.evil:Evil")),
    "a module of cule's name": ({"program": "cule.evil:Evil"}, NAMED.format("cule.evil:Evil")),
    "a relative name": ({"program": "cule..evil:Evil"}, NAMED.format(r"cule\.\.evil:Evil")),
    "nothing": ({"program": ""}, NAMED.format("")),
    "a wrong type": ({"args": {"game": ["pong"]}}, r"game to be a text, got \['pong'\]"),
    "a number as text": ({"args": {"width": "1.0"}}, "width to be a finite number, got '1.0'"),
    "an unknown setting": ({"args": {"gamee": "pong"}}, "expected settings of Args, got gamee"),
    "a width without bound": ({"args": {"width": 1e9}}, r"width to be from 0 to 64\.0, got 1000"),
    "a setting out of range": ({"args": {"clip_coef": -0.1}}, "clip_coef to be at least 0, got -0"),
    "a game that is none": ({"args": {"game": "ponk"}}, "ponk"),
    "less than no actions": ({"args": {}, "num_actions": -3}, "6 actions of pong .* for -3"),
    "too many actions": ({"args": {}, "num_actions": 10**12}, "6 actions of pong .* for 10000"),
    "another network": ({}, "expected the weights of PPO's network 'net' in the checkpoint"),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_checkpoint_of_another_runs_none_of_its_code(attack, tmp_path, monkeypatch):
    """What it names is neither called nor imported, as an import runs code, too."""
    changes, message = ATTACKS[attack]
    marker = tmp_path / "ran"
    evil = f"open({str(marker)!r}, 'w')\nfrom cule import train\nclass Evil(train.Algorithm): ..."
    (tmp_path / "examples").mkdir()
    for place in ("evil.py", "examples/evil.py"):
        (tmp_path / place).write_text(evil)
    monkeypatch.syspath_prepend(tmp_path)
    changes = {
        name: value.replace("{here}", str(tmp_path)) if isinstance(value, str) else value
        for name, value in changes.items()
    }
    save(
        tmp_path / "checkpoints",
        1,
        STATE | {"args": {"args": ["touch", str(marker)]}} | changes
        if "args" not in changes and attack != "another network"
        else STATE | changes,
    )
    with pytest.raises(ValueError, match=message):
        policies.load_policy(tmp_path, torch.device("cpu"))
    assert not marker.exists()
    if attack == "a script":  # what the user names does run
        policies.find("/gone/evil.py:Evil", train.Algorithm, [str(tmp_path / "evil.py")])
        assert marker.exists()


def test_checkpoint_without_a_game_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(policies, "policy_of", lambda *_: None)
    save(tmp_path / "checkpoints", 1, STATE | {"args": {"seed": 1}})
    with pytest.raises(ValueError, match=r"expected a training's game and seed .* got no game"):
        policies.load_policy(tmp_path, torch.device("cpu"))


@pytest.mark.parametrize("changes", [
    {"program": 5}, {"args": []}, {"trainer": {}}, {"trainer": None}, {"logged": (1, "2", 3.0)},
    {"more": 1},
])  # fmt: skip
def test_checkpoint_of_another_form_counts_as_damaged(changes, tmp_path):
    """Its checksum is right. The one before it is taken."""
    save(tmp_path / "checkpoints", 10, STATE)
    save(tmp_path / "checkpoints", 20, STATE | changes | {"frames": 9}, before=10)
    with pytest.warns(UserWarning, match="left out the checkpoint of step 20: expected what a"):
        assert checkpoint.newest(tmp_path, torch.device("cpu"))["frames"] == 4

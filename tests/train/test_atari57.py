"""The suite of Atari-57: its data and numbers, an agent, and a sweep of agents."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import imageio.v2 as imageio
import numpy as np
import pytest
import torch
from scipy import stats

import cule
from cule.train.evaluate import policies
from cule.train.evaluate.evaluator import Evaluator
from cule.train.evaluate.policy import Policy
from examples.atari57 import agent, aggregates, run, settings
from examples.atari57.games import ATARI_5, LONGEST, games_of, longest_first
from examples.atari57.references import AGENTS, SOURCES, human_normalised, references
from examples.atari57.settings import CANDIDATES, CHOSEN, settings_of
from tests.support.marks import few

ROOT = Path(__file__).resolve().parents[2]
# PQN learns from the first steps on: A2C plays more frames than these before its first update.
SMALL = {
    "algorithm": "pqn", "device": "cpu", "num_threads": 1, "total_frames": 2000, "episodes": 2,
    "max_frames": 400, "card": False,
}  # fmt: skip


# Data and numbers --------------------------------------------------------------------------------


def test_references_have_all_games_but_three_of_rainbow():
    assert set(references()) == set(SOURCES)
    for name, scores in references().items():
        lacking = set(cule.ATARI_57) - set(scores)
        wanted = {"jamesbond", "riverraid", "up_n_down"} if name == "rainbow" else set()
        assert lacking == wanted and set(scores) <= set(cule.ATARI_57)
    assert references()["human"]["pong"] == 14.6 and references()["random"]["pong"] == -20.7


@pytest.mark.parametrize("name, median", [("impala_shallow", 93.2), ("impala_deep", 191.8)])
def test_references_have_the_median_that_their_paper_states(name, median):
    """Table 4 of Espeholt et al. (2018), in percent. A wrong digit in many games would move it."""
    scores = [human_normalised(game, score) for game, score in references()[name].items()]
    assert round(100 * float(np.median(scores)), 1) == median


def test_human_normalised_is_0_for_random_play_and_1_for_a_human():
    for game in cule.ATARI_57:
        for name, value in (("random", 0.0), ("human", 1.0)):
            assert human_normalised(game, references()[name][game]) == value


@pytest.mark.parametrize("runs, games", [(1, 57), (3, 5), (4, 4), (2, 1)])
def test_aggregates_equal_scipy(runs, games):
    scores = np.random.default_rng(runs).normal(size=(runs, games))
    assert aggregates.iqm(scores) == pytest.approx(stats.trim_mean(scores.ravel(), 0.25), abs=1e-12)
    assert aggregates.mean(scores) == pytest.approx(scores.mean(), abs=1e-12)
    assert aggregates.median(scores) == np.median(scores.mean(axis=0))
    many = np.stack([scores, scores + 1])
    for statistic in aggregates.STATISTICS.values():
        first, second = statistic(many)
        assert first == statistic(scores) and second == pytest.approx(first + 1)


def test_interval_draws_the_runs_of_each_game():
    """Of the mean it is known: the mean of n draws from the runs of each game has a deviation of
    the runs' deviations over the square root of n."""
    scores = np.random.default_rng(0).normal(size=(20, 30))
    low, high = aggregates.interval(scores, aggregates.mean)
    deviation = np.sqrt((scores.var(axis=0) / 20).sum()) / 30
    assert low == pytest.approx(scores.mean() - 1.96 * deviation, abs=0.1 * deviation)
    assert high == pytest.approx(scores.mean() + 1.96 * deviation, abs=0.1 * deviation)
    assert aggregates.interval(scores, aggregates.mean) == (low, high)
    # Games differ as they like: what is drawn is within a game.
    alike = np.arange(30.0).repeat(20).reshape(30, 20).T
    assert aggregates.interval(alike, aggregates.iqm) == (aggregates.iqm(alike),) * 2
    assert aggregates.interval(scores[:1], aggregates.mean) is None


def test_games_of_a_set_and_by_other_names():
    assert games_of(["atari57"]) == cule.ATARI_57
    assert games_of(["Q*bert", "ALE/Pong-v5", "atari5"]) == ("qbert", "pong", *ATARI_5[:4])
    assert set(ATARI_5) < set(cule.ATARI_57)


def test_games_that_take_longest_to_evaluate_come_first():
    assert set(LONGEST) <= set(cule.ATARI_57)
    assert longest_first(["pong", "solaris", "alien", "tennis"]) == (
        "tennis", "solaris", "pong", "alien",
    )  # fmt: skip
    names = [job.name for job in run.jobs_of(run.Args(games=("qbert", "phoenix"), seeds=(1, 0)))]
    assert names == ["phoenix-1", "qbert-1", "phoenix-0", "qbert-0"]
    assert sorted(longest_first(cule.ATARI_57)) == sorted(cule.ATARI_57)


@pytest.mark.parametrize("changes, message", [
    ({"games": ()}, r"expected games, or sets of them \(atari57, atari5\), got none"),
    ({"games": ("pnog",)}, "closest: 'pong'"),
    ({"games": ("adventure",)}, "for which there are human scores, got 'adventure'"),
    ({"seeds": ()}, "expected seeds, got none"),
    ({"seeds": (-1,)}, "expected seeds to be from 0 to 4294967295, got -1"),
    ({"seeds": (0, 0)}, "expected jobs of different names, got "),
    ({"episodes": 0}, "expected episodes to be at least 1, got 0"),
    ({"total_frames": 0}, "expected total_frames to be at least 1, got 0"),
    ({"max_frames": 0}, "expected max_frames to be at least 1, got 0"),
    ({"per_gpu": 0}, "expected per_gpu to be at least 1, got 0"),
    ({"num_threads": -1}, "expected num_threads to be from 0 to 1024, got -1"),
    ({"gpu_hours": 0.0}, "expected gpu_hours to be greater than 0, got 0"),
    ({"gpu_hours": 1.0, "total_frames": 10**6},
     "expected gpu_hours or total_frames, got 1.0 hours and 1,000,000 frames"),
])  # fmt: skip
def test_suite_refuses_settings_that_do_not_fit(tmp_path, changes, message):
    usual = {"folder": tmp_path / "suite", "device": "cpu", "card": False}
    with pytest.raises(ValueError, match=message):
        run.run(run.Args(**usual | changes))
    assert not (tmp_path / "suite").exists()


def test_missing_imageio_is_a_line_before_anything_is_trained(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "imageio", None)
    monkeypatch.setattr("sys.argv", ["run", "--device", "cpu", "--folder", str(tmp_path / "suite")])
    assert run.main() == 2
    assert capsys.readouterr().err.startswith("run: videos need imageio with ffmpeg: pip install ")
    assert not (tmp_path / "suite").exists()


# Protocols ---------------------------------------------------------------------------------------


def test_evaluator_offers_all_actions_and_starts_without_noops():
    begun = []
    for noops in (0, 30):
        evaluator = Evaluator(
            "pong", 4, torch.device("cpu"), emulator="cule", sticky=0.25, max_frames=300,
            noops=noops, full_action_space=True, num_threads=1,
        )  # fmt: skip
        [envs] = evaluator.envs
        assert envs.num_actions == 18
        envs.reset(0, 4)
        for _ in range(30):  # until the ball is there
            envs.step(np.arange(4), np.zeros(4, dtype=np.int64))
        begun.append({picture.numpy().tobytes() for picture in envs.observations})
        scores = evaluator.scores(
            Policy(lambda seen: torch.full((len(seen), 18), 1 / 18).log()), seed=0
        )
        assert (scores < 0).any()
        evaluator.close()
    assert len(begun[0]) == 1 and len(begun[1]) > 1


@pytest.mark.parametrize(
    "protocol, actions", few([("noops", 6), ("machado", 18)], [("machado", 18)])
)
def test_agent_is_trained_and_evaluated_by_its_protocol(tmp_path, protocol, actions, monkeypatch):
    monkeypatch.setattr(agent, "settings_of", lambda algorithm, *_: (algorithm, {"width": 0.1}))
    machado = protocol == "machado"
    filmed, film = [], agent.watch.watch
    monkeypatch.setattr(agent.watch, "watch", lambda args: filmed.append(args) or film(args))
    asked = {"protocol": protocol, "game": "qbert", "greedy": machado, **SMALL}
    args = agent.Args(folder=tmp_path / "a", progress=False, **asked)
    row = agent.make(args)
    policy, state = policies.load_policy(tmp_path / "a" / "training", torch.device("cpu"))
    trained = state["args"]
    assert policy.scores(torch.zeros(1, 4, 84, 84, dtype=torch.uint8)).shape == (1, actions)
    assert (trained["sticky"], trained["full_action_space"]) == (0.25 * machado, machado)
    assert trained["life_loss_ends"] is not machado
    wanted = {"sticky": 0.25 * machado, "noops": 0 if machado else 30, "episodes": 2,
              "max_frames": 400, "full_action_space": machado, "protocol": protocol,
              "greedy": machado}  # fmt: skip
    assert wanted.items() <= row.items() and row["frames"] >= 2000
    assert [one.greedy for one in filmed] == [machado]
    ((device, begin, end),) = row["trained"]
    assert device == "cpu" and begin + row["seconds"] / 2 < end <= time.time()
    assert row["score_normalised"] == human_normalised("qbert", row["score"])
    assert imageio.get_reader(tmp_path / "a" / "video.mp4").count_frames() > 50
    assert json.loads((tmp_path / "a" / "result.jsonl").read_text()) == row
    # Again: nothing is done.
    args.resume = True
    assert agent.make(args) == row
    assert (tmp_path / "a" / "result.jsonl").read_text().count("\n") == 1


def test_agent_keeps_its_networks_and_goes_on_from_them(tmp_path, monkeypatch):
    """As if it was killed while it was evaluated: it does not train again, and cannot."""
    args = agent.Args(folder=tmp_path, progress=False, video=False, game="qbert", **SMALL)
    row = agent.make(args)
    checkpoints = tmp_path / "training" / "checkpoints"
    assert sum(path.stat().st_size for path in checkpoints.iterdir()) < 10_000_000
    (tmp_path / "result.jsonl").unlink()
    args.resume = True
    with monkeypatch.context() as patch:
        patch.setattr(agent.train, "train", None)
        again = agent.make(args)
    assert again["score"] == row["score"] and again["seconds"] == row["seconds"]
    assert (tmp_path / "training" / "result.jsonl").read_text().count("\n") == 1
    (tmp_path / "result.jsonl").unlink()
    args.total_frames = 4000
    with pytest.raises(ValueError, match=r"from which training can go on, got .*training, of"):
        agent.make(args)


def test_suite_has_the_chosen_settings_on_a_gpu_alone(monkeypatch):
    for algorithm, name in CHOSEN.items():
        assert CANDIDATES[name][0] == algorithm
        assert settings_of(algorithm, "cpu") == (algorithm, {})
        monkeypatch.setattr(settings, "find_device", torch.device)
        assert settings_of(algorithm, "cuda") == settings_of(algorithm, "cpu", name)
        monkeypatch.undo()


def test_agent_of_a_candidate_ends_after_its_seconds(tmp_path, monkeypatch):
    monkeypatch.setitem(settings.CANDIDATES, "tiny", ("ppo", {"num_envs": 8, "width": 0.1}))
    args = agent.Args(
        candidate="tiny", game="qbert", folder=tmp_path, max_seconds=1.0, progress=False,
        **SMALL | {"total_frames": 10**9},
    )  # fmt: skip
    row = agent.make(args)
    assert (row["algorithm"], row["candidate"]) == ("PPO", "tiny") and row["seconds"] >= 1
    assert row["score_normalised"] == pytest.approx(human_normalised("qbert", row["score"]))
    assert row["frames"] < 10**7
    args.resume = True
    assert agent.make(args) == row
    # The training is not made again either.
    (tmp_path / "result.jsonl").unlink()
    assert agent.make(args)["frames"] == row["frames"]


def test_agent_refuses_a_game_without_a_human_score(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["agent", "--game", "adventure", "--folder", str(tmp_path)])
    assert agent.main() == 2
    assert "for which there are human scores, got 'adventure'" in capsys.readouterr().err


# The whole path ----------------------------------------------------------------------------------


def suite_command(folder, **changes):
    options = {"games": ["phoenix"], **SMALL, "folder": folder} | changes
    words = []
    for name, value in options.items():
        if value is None or name == "card":
            continue
        values = value if isinstance(value, list) else [value]
        words += [f"--{name.replace('_', '-')}", *map(str, values)]
    return [sys.executable, "-m", "examples.atari57.run", *words, "--no-video", "--no-card"]


def start(folder, **changes):
    return subprocess.Popen(
        suite_command(folder, **changes), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def tables_of(folder):
    """The report's tables: what does not depend on the clock."""
    text = (folder / "report.md").read_text()
    return text[: text.index("## Pictures")]


def finish(folder, **changes):
    process = start(folder, **changes)
    out, error = process.communicate(timeout=3000)
    assert process.returncode == 0, error
    assert out == f"The report is {folder / 'report.md'}.\n"
    return error


def check_report(folder, games, seeds=1):
    tables = tables_of(folder)
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    assert len(rows) == len(games) * seeds
    for game in games:
        own = [row for row in rows if row["game"] == game]
        score = np.mean([row["score"] for row in own])
        human = references()["human"][game]
        line = next(line for line in tables.splitlines() if line.startswith(f"| {game} |"))
        assert f"| {score:,.1f} |" in line and f"| {human:,.1f} |" in line
    for agent_name in AGENTS:
        assert f"| {SOURCES[agent_name].label} | {len(games)} |" in tables
    assert ("There are no confidence intervals" in tables) == (seeds == 1)
    for name in ("curves", "games_frames", "games_seconds", "bars"):
        assert f"]({name}.png)" in (folder / "report.md").read_text()
        assert imageio.imread(folder / f"{name}.png").std() > 5
    return rows


def test_suite_of_one_game_from_its_settings_to_the_report(tmp_path, capsys):
    args = run.Args(games=("phoenix",), folder=tmp_path / "suite", video=False, **SMALL)
    assert run.run(args) == 0
    told = capsys.readouterr()
    assert told.out == f"The report is {tmp_path / 'suite' / 'report.md'}.\n"
    assert "phoenix-0: " in told.err and "finished" in told.err
    (row,) = check_report(tmp_path / "suite", ["phoenix"])
    assert row["algorithm"] == "PQN" and row["frames"] >= 2000


@pytest.mark.gpu
@pytest.mark.parametrize("algorithm", ["a2c_vtrace", "ppo", "pqn"])
def test_suite_of_two_games_on_a_gpu(tmp_path, algorithm):
    """Two agents share the GPU. With 12 million frames A2C is past its warm-up."""
    finish(
        tmp_path / "suite", algorithm=algorithm, games=["pong", "phoenix"], protocol="machado",
        device=None, num_threads=4, per_gpu=2, total_frames=12_000_000,
    )  # fmt: skip
    rows = check_report(tmp_path / "suite", ["pong", "phoenix"])
    assert all(row["cuda"] is not None and row["frames"] >= 12_000_000 for row in rows)


@pytest.mark.slow
def test_suite_stopped_and_killed_in_the_middle_has_the_same_table(tmp_path):
    """SIGTERM comes while an agent is trained, which then goes on from its checkpoint; SIGKILL
    comes at any moment after another agent is finished."""
    changes = {"games": ["phoenix", "qbert"], "seeds": [0, 1], "total_frames": 20_000}
    finish(tmp_path / "whole", **changes)
    check_report(tmp_path / "whole", ["phoenix", "qbert"], seeds=2)
    parts = tmp_path / "parts"
    process = start(parts, **changes)
    while not (parts / "phoenix-0" / "log.jsonl").exists():  # a link to what training writes
        time.sleep(0.05)
    time.sleep(0.5)  # into the training
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate()
    assert process.returncode == 130 and "Stopped: 1 stopped, 3 waiting. To go on: " in error
    assert list((parts / "phoenix-0" / "training" / "checkpoints").glob("*.complete"))
    assert not list(parts.glob("*/result.jsonl"))
    process = start(parts, **changes)
    while not list(parts.glob("*/result.jsonl")):
        time.sleep(0.05)
    time.sleep(2.0)  # into the next agent
    assert process.poll() is None
    process.kill()
    process.communicate()
    finished = {path: path.stat().st_mtime_ns for path in parts.glob("*/result.jsonl")}
    finish(parts, **changes)
    assert all(path.stat().st_mtime_ns == when for path, when in finished.items())
    row = json.loads((parts / "phoenix-0" / "result.jsonl").read_text())
    (before, begin, end), (device, again, last) = row["trained"]
    assert before == device == "cpu" and begin < end < again < last
    assert row["seconds"] / 2 < end - begin + last - again
    assert tables_of(parts) == tables_of(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("algorithm, games", [
    ("pqn", ATARI_5), ("ppo", ATARI_5[3:4]), ("a2c_vtrace", ATARI_5[3:4]),
])  # fmt: skip
def test_suite_on_a_cpu(tmp_path, algorithm, games):
    finish(
        tmp_path / "suite", games=list(games), algorithm=algorithm, total_frames=200_000,
        max_frames=20_000,
    )  # fmt: skip
    check_report(tmp_path / "suite", games)

"""From nothing to a trained agent and its video, in two commands; and what the video shows."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import imageio
import numpy as np
import pytest
import torch

import cule
from cule.train import plot, watch
from cule.train.command import run_program
from cule.train.evaluate.policy import Policy
from cule.train.logs import pictures
from cule.train.run import result
from tests.support import warm

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "examples" / "a2c_vtrace" / "README.md"
# What makes the two commands short.
TINY = {
    "train": "--device cpu --num-envs 8 --num-batches 2 --num-steps 4 --steps-per-update 2 "
    "--width 0.1 --warmup-steps 0 --total-frames 1500 "
    "--eval-episodes 0 --num-threads 1 --logger none",
    "watch": "--device cpu --max-frames 200 --no-progress",
}


def two_commands():
    """The README's two commands, as lists of words."""
    (block,) = re.findall(r"in two commands.*?```sh\n(.*?)```", README.read_text(), re.DOTALL)
    return [line.split("#")[0].split() for line in block.splitlines()]


def test_two_commands_make_an_agent_and_its_film(tmp_path):
    told = []
    for words in two_commands():
        assert words[:2] == ["python", "-m"]
        command = [*words[1:], *TINY[words[2].rpartition(".")[2]].split()]
        done = warm.run(command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)})
        assert done.returncode == 0, done.stderr
        told.append(done)
    assert told[0].stderr.splitlines()[0].startswith("Training A2C+V-trace on pong, on the CPU (1 ")
    trained, score, where = told[0].stdout.splitlines()
    told_first = r"A2C\+V-trace on pong: 1,536 frames and \d+ updates in [\d.]+ seconds, [\d,]+ "
    assert re.fullmatch(told_first + "frames a second", trained)
    assert score == "Score: none, as no episode has ended; not evaluated"
    assert where == (
        "In runs/pong: log, checkpoints, result. A video: python -m cule.train.watch runs/pong"
    )
    scores, video = told[1].stdout.splitlines()
    assert re.fullmatch(r"pong, A2C\+V-trace after 1,536 frames: score -?\d+", scores)
    assert video == "The video is in pong.mp4."
    # The first frame and one for each step.
    assert imageio.get_reader(tmp_path / "pong.mp4").count_frames() == 1 + 200 // 4
    # No episode of Pong ends so early.
    assert "No episode has ended: there is no scores.png." in told[0].stderr
    assert not list(tmp_path.rglob("scores.png"))


@pytest.fixture
def up_and_down(monkeypatch):
    """A policy that goes up if the picture's sum is even, and down if it is odd."""

    def policy(observations):
        odd = observations.flatten(1).long().sum(1) % 2
        return torch.nn.functional.one_hot(2 + odd, 6).float().log()

    state = {"args": {"game": "pong"}, "algorithm": "A2C", "frames": 1234}
    monkeypatch.setattr(watch, "load_policy", lambda *_: (Policy(policy), state))
    return policy


@pytest.mark.parametrize("greedy, patches", [(False, ()), (True, ("parallel_enemy",))])
def test_watch_scores_and_films_an_episode_of_each_env(
    greedy, patches, up_and_down, tmp_path, capsys
):
    path = tmp_path / "video.gif"
    args = watch.Args(
        tmp_path, path, episodes=2, max_frames=360, seed=5, device="cpu", greedy=greedy,
        num_threads=1, patches=patches,
    )  # fmt: skip
    scores = watch.watch(args)
    told = capsys.readouterr()
    assert re.search(r"0/90 .*2 of 2 episodes go on", told.err, re.DOTALL)
    env = cule.AtariEnv("pong", 2, "cpu", max_num_frames_per_episode=360, patches=patches)
    observations, _ = env.reset(seed=5)
    wanted, screens = torch.zeros(2), [env.get_screen_rgb().numpy().copy()]
    for _ in range(360 // 4):
        observations, *_, info = env.step(up_and_down(observations).argmax(1))
        wanted += info["raw_reward"]
        screens.append(env.get_screen_rgb().numpy().copy())
    assert scores == wanted.tolist() and any(scores)
    line = ", ".join(f"{score:g}" for score in scores)
    game = ", ".join(("pong", *patches))
    assert told.out.splitlines()[0] == f"{game}, A2C after 1,234 frames: score {line}"
    video = imageio.mimread(path)
    np.testing.assert_array_equal(
        video[0], cule.env.screens.mosaic(screens[0], ["pong 0", "pong 1"])
    )
    np.testing.assert_array_equal(
        video[-1], cule.env.screens.mosaic(screens[-1], ["pong 0", "pong 1"])
    )


@pytest.mark.parametrize("changes, message", [
    ({"episodes": 0}, "episodes to be at least 1, got 0"),
    ({"sticky": 3.0}, "sticky to be from 0 to 1, got 3.0"),
    ({"seed": -1}, "seed to be from 0 to 4294967295, got -1"),
    ({}, "expected a run folder with checkpoints, as training writes it, got"),
])  # fmt: skip
def test_watch_refuses_settings_that_do_not_fit(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        watch.watch(watch.Args(tmp_path, device="cpu", **changes))


def test_missing_package_is_a_line(up_and_down, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "imageio", None)
    monkeypatch.setattr("sys.argv", ["watch", str(tmp_path), "--device", "cpu"])
    assert run_program("examples.a2c_vtrace.watch", watch.Args, watch.watch) == 2
    told = capsys.readouterr().err
    assert told == "watch: videos need imageio with ffmpeg: pip install 'imageio[ffmpeg]' pillow\n"


# Plots -------------------------------------------------------------------------------------------


def write_log(run, lines):
    run.mkdir()
    (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_plot_names_game_algorithm_and_commit(tmp_path, monkeypatch):
    """Runs of the same kind are named once. A run without a result is named by its folder."""
    from matplotlib.figure import Figure

    drawn = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda *args, **_: drawn.append(args[0]) or save(*args))
    line = {"kind": "training", "score": -20.0, "seconds": 60.0, "frames": 1_000_000}
    for name, commit in (("a", "abc"), ("b", "abc"), ("c", ""), ("d", None)):
        write_log(tmp_path / name, [line])
        if commit is not None:
            row = {"game": "pong", "algorithm": "A2C", "commit": commit}
            (tmp_path / name / "result.jsonl").write_text(json.dumps(row) + "\n")
    assert pictures.plot([tmp_path / name for name in "abcd"], tmp_path / "scores.png")
    (figure,) = drawn
    assert figure.get_suptitle() == "pong, A2C, commit abc\npong, A2C\nd"
    # A single score is a visible point, and the legend has only what is drawn.
    shown = figure.axes[0].get_lines()
    seen = [(list(of_run.get_ydata()), of_run.get_marker()) for of_run in shown]
    assert seen == [([-20.0], ".")] * 4
    labels = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert labels == [f"{name}, training" for name in "abcd"]


def test_end_of_a_training_is_three_lines(tmp_path):
    row = {
        "algorithm": "PPO", "game": "pong", "frames": 10_000_000, "updates": 1_234,
        "seconds": 61.25, "fps": 163_265.3, "score": 18.5, "score_deviation": 1.25,
        "eval_episodes": 32, "eval_emulator": "ale-py",
    }  # fmt: skip
    first, score, where = result.summary(row, tmp_path, "examples.ppo.ppo").splitlines()
    assert first == (
        "PPO on pong: 10,000,000 frames and 1,234 updates in 61.2 seconds, 163,265 frames a second"
    )
    assert score == "Score: 18.50 +- 1.25 on ale-py, 32 episodes"
    files = f"In {tmp_path}: log, checkpoints, result. A video: python -m cule.train.watch"
    assert where == f"{files} {tmp_path}"
    line = {"kind": "training", "score": -20.0, "seconds": 60.0, "frames": 1_000_000}
    write_log(tmp_path / "run", [line, {**line, "score": None}])
    told = result.summary({**row, "score": None}, tmp_path / "run", "/home/mine.py")
    assert "\nScore: -20.00, of the last episodes in training; not evaluated\n" in told
    assert told.endswith("watch " + f"{tmp_path / 'run'} --program /home/mine.py")


def test_plot_of_one_score_says_so(tmp_path, capsys):
    line = {"kind": "training", "score": -20.0, "seconds": 60.0, "frames": 1_000_000}
    for count in (1, 2):
        write_log(tmp_path / str(count), [line] * count)
        out = tmp_path / f"{count}.png"
        assert plot.main([str(tmp_path / str(count)), "--out", str(out)]) == 0 and out.exists()
        told = capsys.readouterr().out
        assert told.startswith(f"The plot is in {out}")
        assert ("has a single point: scores are logged once episodes have ended" in told) is (
            count == 1
        )


def test_plot_of_nothing_is_no_picture(tmp_path, monkeypatch, capsys):
    write_log(tmp_path / "run", [{"kind": "training", "score": None, "seconds": 1.0, "frames": 4}])
    out = tmp_path / "scores.png"
    assert not pictures.plot([tmp_path / "run"], out)
    monkeypatch.setattr("sys.argv", ["plot", str(tmp_path / "run"), "--out", str(out)])
    assert plot.main() == 2
    assert (
        capsys.readouterr().err == "plot: expected runs in which an episode has ended, got none\n"
    )
    assert not out.exists()

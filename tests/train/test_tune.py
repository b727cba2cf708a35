"""Tuning: spaces, real trials, and what is kept of them. test_tune_search.py has the search."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
from types import SimpleNamespace

import pytest
import torch

from cule import train
from cule.train.distributed import sm_partition
from cule.train.distributed.process_group import ProcessGroup
from cule.train.tune import trial as trials
from cule.train.tune import tuning
from cule.train.tune.__main__ import main
from cule.train.tune.search import Trial
from cule.train.tune.space import default_space, read_space
from examples.a2c_vtrace import train as a2c
from examples.dqn import dqn
from examples.ppo import ppo
from examples.reinforce import reinforce

CPU = ProcessGroup(0, 1, torch.device("cpu"))
TINY = {
    "device": "cpu", "width": 0.1, "num_threads": 1, "num_steps": 4, "minibatch_size": 8,
    "progress": False, "plot": False, "logger": "none", "eval_episodes": 0,
}  # fmt: skip

# Spaces ------------------------------------------------------------------------------------------


def test_space_is_read_from_words():
    words = ["num_envs=512,1024", "--max-grad-norm=None,0.5", "model=impala", "bf16=True,False"]
    assert read_space(words, ppo.Args) == {
        "num_envs": [512, 1024], "max_grad_norm": [None, 0.5], "model": ["impala"],
        "bf16": [True, False],
    }  # fmt: skip


@pytest.mark.parametrize(
    "word, message",
    [
        ("num_env=4", "setting with numbers or choices to search, got 'num_env'; .* num_envs"),
        ("game=pong", "setting with numbers or choices to search, got 'game'"),
        ("num_envs", "to have SETTING=VALUE,VALUE,..., got 'num_envs'"),
        ("num_envs=", "to have SETTING=VALUE,VALUE,..., got 'num_envs='"),
        ("num_envs=4,x", "candidate of num_envs to be a whole number or None, got 'x'"),
        ("bf16=1", "candidate of bf16 to be True or False, got '1'"),
        (
            "model=resnet",
            "candidate of model to be nature or nature-norm or lstm or impala, got 'resnet'",
        ),
    ],
)
def test_space_that_is_wrong_is_refused(word, message):
    with pytest.raises(ValueError, match=message):
        read_space([word], ppo.Args)


def test_default_space_depends_on_the_algorithm_and_its_settings():
    def of(algorithm, settings, **more):
        args = settings(width=0.1, num_threads=1, **more).on(CPU.device)
        return default_space(algorithm, args, CPU.device)

    assert of(ppo.PPO, ppo.Args) == {"num_envs": [4, 8, 16, 32, 64], "lag": (0, 1)}
    assert of(a2c.A2C, a2c.Args)["num_envs"] == [30, 60, 120, 240, 480]
    assert of(a2c.A2C, a2c.Args, lag=1)["lag"] == (0, 1)
    assert "lag" not in of(reinforce.Reinforce, reinforce.Args, n_step=4)
    assert of(dqn.DQN, dqn.Args, num_envs=1)["num_envs"] == [1, 2, 4]


def test_default_space_of_a_gpu_leaves_its_multiprocessors_to_the_training(monkeypatch):
    gpu, has = torch.device("cuda"), SimpleNamespace(multi_processor_count=132)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: has)
    monkeypatch.setattr(sm_partition, "is_there", lambda: True)
    space = default_space(ppo.PPO, ppo.Args(num_threads=1).on(gpu), gpu)
    assert [*space] == ["num_envs", "lag", "layout", "learner_chunk"]
    assert space["layout"] == ("together", "apart:32", "apart:64", "apart:96")
    assert read_space(["multiprocessors=0,64"], ppo.Args) == {"multiprocessors": [0, 64]}


# Real trials -------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CULE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def small(**changes):
    return ppo.Args(**TINY | changes)


def test_trial_measures_playing_and_learning():
    args = small(num_envs=8).on(CPU.device)
    found = trials.measure(ppo.PPO, args, {"num_envs": 4}, CPU, seconds=0.1)
    assert found.problem == "" and found.settings == {"num_envs": 4}
    assert found.fps > 0 and found.seconds > 0.05 and found.memory > 100_000
    # Three epochs of two minibatches for 16 steps.
    assert found.updates_per_second == pytest.approx(found.fps / 4 / 16 * 6)
    assert found.milliseconds["playing"] > 0 and found.milliseconds["learning"] > 0


def test_trial_does_not_wait_for_the_begin_of_learning():
    args = dqn.Args(device="cpu", width=0.1, num_threads=1, num_envs=8, memory=10**4,
                    first_update=10**4, minibatch_size=8).on(CPU.device)  # fmt: skip
    found = trials.measure(dqn.DQN, args, {}, CPU, seconds=0.05)
    assert found.updates_per_second == pytest.approx(found.fps / 4 / 8)


@pytest.mark.parametrize(
    "settings, problem, no_memory",
    [
        ({"num_envs": 0}, "expected num_envs to be at least 1, got 0", False),
        ({"num_envs": 5}, "expected minibatch of Learning to divide num_envs times steps", False),
        ({"memory_budget": 1e-4}, "expected a memory budget of at least", True),
    ],
)
def test_trial_that_cannot_run_has_failed_with_a_sentence(settings, problem, no_memory):
    found = trials.measure(ppo.PPO, small(num_envs=4).on(CPU.device), settings, CPU)
    assert found.problem.startswith(problem) and found.no_memory is no_memory and not found.fps


def test_trial_that_takes_too_long_has_failed():
    args = small(num_envs=4).on(CPU.device)
    found = trials.measure(ppo.PPO, args, {}, CPU, left=lambda: 0.0)
    assert "an iteration takes" in found.problem and not found.no_memory


def test_tune_finds_what_is_fastest_and_keeps_it(folder, monkeypatch):
    space = {"num_envs": (2, 8), "num_steps": (4,)}
    told = []
    monkeypatch.setattr(tuning, "SECONDS", 0.05)
    found = train.tune(ppo.PPO, small(), space, on_trial=told.append)
    assert {one.settings["num_envs"] for one in told} == {2, 8}
    assert found.best.fps == max(one.fps for one in found.trials) > 0
    assert found.combinations == 2 and found.complete and not found.again
    # It is there at once.
    told.clear()
    again = train.tune(ppo.PPO, small(), space, on_trial=told.append)
    assert told == [] and again.again
    assert dataclasses.replace(again, again=False) == found
    (file,) = folder.glob("tuned/*.json")
    key = json.loads(file.read_text())["key"]
    assert (key["algorithm"], key["game"]) == ("examples.ppo.ppo:PPO", "pong")


def test_tune_keeps_results_by_game_settings_and_what_was_searched(folder, monkeypatch):
    monkeypatch.setattr(
        tuning, "measure", lambda make, args, settings, processes, **_: Trial(settings, fps=1.0)
    )

    def known(values=(4, 8), again=False, **more):
        return train.tune(ppo.PPO, small(**more), {"num_envs": values}, again=again).again

    for more in ({}, {"game": "breakout"}, {"width": 0.2}, {"model": "impala"}):
        assert not known(**more)
        assert known(**more) and known(**more, seed=3, learning_rate=0.5)
    assert known() and not known((4, 6)) and known((4, 6)) and not known((4, 6), again=True)
    files = list(folder.glob("tuned/*.json"))
    assert len(files) == 4
    for file in files:
        file.write_text("{")  # damaged: as none
    assert not known((4, 6)) and known((4, 6))
    folder.rename(folder.with_name("moved"))
    folder.write_text("no folder")
    with pytest.warns(UserWarning, match="the tuned settings are not kept: "):
        assert not known()


def test_tune_refuses_to_search_beside_a_search_for_the_same(folder, monkeypatch):
    """Each would measure the other one, too."""

    def measure(make, args, settings, processes, **_):
        with pytest.raises(ValueError, match="expected a search that nothing else writes to at"):
            train.tune(ppo.PPO, small(), {"num_envs": (4,)})
        return Trial(settings, fps=1.0)

    monkeypatch.setattr(tuning, "measure", measure)
    assert train.tune(ppo.PPO, small(), {"num_envs": (4,)}).best.fps == 1.0
    assert not list(folder.glob("tuned/*.lock"))


def test_tuned_settings_are_used_where_none_are_set(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(tuning, "SECONDS", 0.05)
    with pytest.raises(ValueError, match=r"expected a search before --tuned for pong on 1 x .*, "
                       r"got none: python -m cule.train.tune examples.ppo.ppo --"):  # fmt: skip
        train.train(ppo.PPO, small(tuned=True, folder=tmp_path / "run"))
    train.tune(ppo.PPO, small(), {"num_envs": (6,), "lag": (1,)}, budget_seconds=30)
    more = {"tuned": True, "folder": tmp_path / "run", "progress": True}
    args = small(**more, total_frames=300, anneal_lr=False)
    row = train.train(ppo.PPO, args)
    assert (row["num_envs"], row["lag"]) == (6, 1)
    assert "1 thread: --num-envs 6 --lag 1\n" in capsys.readouterr().err
    # What is set is left alone.
    given = small(**more | {"folder": tmp_path / "other"}, total_frames=300, num_envs=4)
    row = train.train(ppo.PPO, given)
    assert (row["num_envs"], row["lag"]) == (4, 1)
    # A run goes on as it was, even if something else is found since.
    train.tune(ppo.PPO, small(), {"num_envs": (2,)})
    args = dataclasses.replace(args, total_frames=600, resume=True, anneal_lr=False)
    row = train.train(ppo.PPO, args)
    assert (row["num_envs"], row["lag"], row["frames"]) == (6, 1, 672)
    assert "An iteration is 4 steps" in train.explain(ppo.PPO, args)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"no_such": 3}, "expected settings of Args to be kept in .*, got no_such: search again"),
        ({"num_envs": "many"}, "expected num_envs to be an integer or None, got 'many'"),
        ([3], "expected a search before --tuned"),
        (None, "expected a search before --tuned"),
    ],
)
def test_damaged_kept_settings_are_a_sentence(settings, message, folder, monkeypatch):
    """As none are those that cannot be read at all, such as a FIFO."""
    monkeypatch.setattr(
        tuning, "measure", lambda make, args, settings, processes, **_: Trial(settings, fps=1.0)
    )
    train.tune(ppo.PPO, small(), {"num_envs": (4,)})
    (file,) = folder.glob("tuned/*.json")
    found = json.loads(file.read_text())
    found["tuned"]["best"]["settings"] = settings
    file.unlink()
    if settings is None:
        os.mkfifo(file)
    else:
        file.write_text(json.dumps(found))
    with pytest.raises(ValueError, match=message):
        train.train(ppo.PPO, small(tuned=True, folder=folder / "run", total_frames=64))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_kept_settings_of_another_user_are_not_used_and_are_replaced(folder, monkeypatch):
    monkeypatch.setattr(
        tuning, "measure", lambda make, args, settings, processes, **_: Trial(settings, fps=1.0)
    )
    train.tune(ppo.PPO, small(), {"num_envs": (4,)})
    (file,) = folder.glob("tuned/*.json")
    os.chown(file, 12345, -1)
    for again in (False, True):
        assert train.tune(ppo.PPO, small(), {"num_envs": (4,)}).again == again
        assert file.stat().st_uid == os.geteuid()


def test_tune_says_why_nothing_works():
    with pytest.raises(ValueError, match=r"a combination of settings that works, got 2 that do "
                       r"not; the first: expected minibatch of Learning to divide"):  # fmt: skip
        train.tune(ppo.PPO, small(num_envs=5), {"num_envs": (5, 3)})
    for space, problem in (
        ({"num_envs": ()}, "expected candidates of num_envs, got none"),
        ({"games": (1,)}, "expected a setting with numbers or choices to search, got 'games'"),
    ):
        with pytest.raises(ValueError, match=problem):
            train.tune(ppo.PPO, small(), space)
    with pytest.raises(ValueError, match="expected budget_seconds to be above 0, got 0"):
        train.tune(ppo.PPO, small(), budget_seconds=0)


WORDS = [
    "examples.ppo.ppo", "--game", "breakout", "--device", "cpu", "--num-threads", "1", "--width",
    "0.1", "--num-steps", "4", "--minibatch-size", "8", "--no-progress", "--search",
    "num_envs=2,4,5", "lag=0",
]  # fmt: skip


def test_tune_prints_a_table_and_the_command(capsys, monkeypatch):
    monkeypatch.setattr(tuning, "SECONDS", 0.05)
    assert main(WORDS) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:6] == ["num_envs", "lag", "FPS", "updates/s", "GiB", "milliseconds"]
    assert len(lines) == 7 and " best " in lines[1]
    assert "failed" in lines[3] and "expected minibatch of Learning" in lines[3]
    assert lines[4].startswith("3 of 3 combinations were tried in ")
    assert lines[6].startswith("python -m examples.ppo.ppo --game breakout --device cpu")
    assert lines[6].endswith(f"--num-envs {lines[1].split()[0]} --lag 0")
    assert main(WORDS) == 0
    again = capsys.readouterr().out.splitlines()
    assert again[:4] == lines[:4] and "were tried earlier (--again searches again)" in again[4]


@pytest.mark.parametrize(
    "words, message",
    [
        (["examples.no"], "expected a training program such as examples.ppo.ppo, got examples.no"),
        (["examples.ppo.ppo", "--device", "cpu", "--game", "pnog"], "got 'pnog'; closest: 'pong'"),
        (["examples.ppo.ppo", "--search", "x=1"], "setting with numbers or choices to search"),
        (["examples.ppo.ppo", "--budget-seconds", "0"], "expected a number above 0, got '0'"),
    ],
)
def test_tune_answers_mistakes_with_a_sentence(words, message, capsys):
    try:
        status = main(words)
    except SystemExit as end:
        status = end.code
    assert status == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


# On a GPU ----------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("game", ["pong", "breakout", "space_invaders"])
def test_tune_is_within_5_percent_of_the_grid_on_a_gpu(game):
    """In less than two minutes; benchmarks/tools/tune_against_grid.py does it for several GPUs."""
    space = {
        "num_envs": [2**i for i in range(9, 15)], "lag": [0, 1],
        "learner_chunk": [4096, 16_384, 65_536],
    }  # fmt: skip
    args = ppo.Args(game=game)
    found = train.tune(ppo.PPO, args, space)
    assert found.complete and found.seconds < 120
    processes = ProcessGroup.join(None)
    filled = args.on(processes.device)
    points = [dict(zip(space, point, strict=True)) for point in itertools.product(*space.values())]
    grid = [trials.measure(ppo.PPO, filled, point, processes) for point in points]
    fastest = max(grid, key=lambda one: one.fps).settings
    best, rival = (
        trials.measure(ppo.PPO, filled, settings, processes, seconds=2.0)
        for settings in (found.best.settings, fastest)
    )
    assert best.fps >= 0.95 * rival.fps


@pytest.mark.gpu
def test_trials_on_a_gpu_free_what_they_used():
    args = ppo.Args(num_envs=256, width=0.1, game="pong").on(torch.device("cuda"))
    processes = ProcessGroup.join("cuda")
    trials.measure(ppo.PPO, args, {}, processes, seconds=0.05)
    before = torch.cuda.memory_allocated()
    found = trials.measure(ppo.PPO, args, {"num_envs": 1024, "lag": 1}, processes, seconds=0.05)
    assert not found.problem and found.memory > 2**20
    # In two sets of multiprocessors, and again: the sets are made once.
    for _ in range(2):
        parts = {"num_envs": 1024, "lag": 1, "layout": "apart:64"}
        found = trials.measure(ppo.PPO, args, parts, processes, seconds=0.05)
        assert not found.problem and found.fps > 0
    settings = {"num_envs": 2**15, "num_steps": 2**10}
    huge = trials.measure(ppo.PPO, args, settings, processes, seconds=0.05)
    assert huge.problem and huge.no_memory
    # Streams of captures may keep workspaces; the rings alone are 230 MB.
    assert torch.cuda.memory_allocated() <= before + 2**27

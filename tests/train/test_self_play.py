"""Self-play: what each player sees, learns and is rated by."""

from __future__ import annotations

import functools
import json
import types
from contextlib import closing

import numpy as np
import pytest
import torch
from training_runs import assert_same, saved, state_after, without_times

from cule import train
from cule.rom import find_cartridge, find_game
from cule.train.checkpoints import checkpoint
from cule.train.distributed.process_group import ProcessGroup
from cule.train.nn.returns import gae
from cule.train.trainer import Trainer
from examples.self_play import elo
from examples.self_play.train import Args as TrainArgs
from examples.self_play.train import SelfPlay, make_env

CPU = torch.device("cpu")
SMALL = {
    "device": "cpu", "num_envs": 4, "num_steps": 8, "minibatch_size": 16, "width": 0.1,
    "num_threads": 1, "max_episode_frames": 200, "mirror": True, "log_every": 4, "anneal_lr": False,
    "progress": False, "plot": False, "logger": "none",
}  # fmt: skip
FRAMES = 4 * 4 * 8  # of an iteration
LEARNERS = pytest.mark.parametrize("learners", ["one", "two"])


def trainer_of(**changes):
    args = TrainArgs(**SMALL | changes).on(CPU)
    args.check(1)
    return Trainer(SelfPlay, args, ProcessGroup(0, 1, CPU))


def trained(folder, frames, **changes):
    args = TrainArgs(**SMALL | changes, folder=folder, total_frames=frames)
    return train.train(SelfPlay, args)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two short trainings, with a checkpoint of each iteration."""
    folder = tmp_path_factory.mktemp("runs")
    for learners in ("one", "two"):
        trained(folder / learners, 3 * FRAMES, checkpoint_every=FRAMES, learners=learners)
    return folder


@LEARNERS
def test_resume_is_exact(learners):
    make = functools.partial(trainer_of, learners=learners)
    assert_same(state_after(make, 3, 1), state_after(make, 3))


@pytest.mark.gpu
@LEARNERS
def test_it_trains_in_cuda_graphs_and_resumes_exactly(learners, tmp_path):
    changes = {"learners": learners, "device": "cuda", "deterministic": True, "bf16": False}
    iterations = 8  # graphs are captured after three
    trained(tmp_path / "whole", iterations * FRAMES, **changes)
    trained(tmp_path / "parts", 5 * FRAMES, **changes)
    trained(tmp_path / "parts", iterations * FRAMES, **changes, resume=True)
    assert_same(saved(tmp_path / "whole"), saved(tmp_path / "parts"))


def test_a_game_need_not_be_one_for_one_player(monkeypatch, tmp_path):
    """Combat is for two. Its ROM may be missing here, so the envs play Pong."""
    pong = TrainArgs(**SMALL)
    monkeypatch.setattr(
        SelfPlay, "environment", classmethod(lambda _, args, *rest: make_env(pong, *rest))
    )
    row = trained(tmp_path, FRAMES, game="combat")
    assert (row["game"], row["rom_md5"]) == ("combat", find_game("combat", 2).md5)
    assert find_cartridge("Pong") == find_game("pong")
    with pytest.raises(ValueError, match="expected num_players=2, which 'combat' is for, got 1"):
        find_game("combat")


def test_a_training_that_was_stopped_goes_on_exactly(tmp_path):
    trained(tmp_path / "whole", 3 * FRAMES, learners="two")
    trained(tmp_path / "parts", 2 * FRAMES, learners="two")
    trained(tmp_path / "parts", 3 * FRAMES, learners="two", resume=True)
    assert_same(saved(tmp_path / "whole"), saved(tmp_path / "parts"))
    lines = [without_times(tmp_path / name)[-1] for name in ("whole", "parts")]
    assert lines[0] == lines[1] and "second_policy_loss" in lines[0]


def test_all_checkpoints_are_kept_or_two(runs, tmp_path):
    trained(tmp_path, 3 * FRAMES, checkpoint_every=FRAMES, keep_checkpoints=False)
    for run, steps in ((runs / "one", [24, 16, 8]), (tmp_path, [24, 16])):
        sets = checkpoint.complete_sets(run / "checkpoints")
        assert [one.steps for one in sets] == steps
        for one in sets:
            state = checkpoint.of_steps(run, one.steps, CPU)
            assert state["trainer"]["steps"] == one.steps


def test_the_second_player_sees_which_it_is():
    observations = torch.randint(200, (3, 4, 84, 84), dtype=torch.uint8)
    before = observations.clone()
    for mirror in (False, True):
        algorithm = types.SimpleNamespace(args=TrainArgs(mirror=mirror))
        first, second = (SelfPlay.seen(algorithm, observations, player) for player in (0, 1))
        assert torch.equal(first, before) and torch.equal(observations, before)
        assert bool((second[:, :, 0] == 255).all())
        wanted = before.flip(3) if mirror else before
        assert torch.equal(second[:, :, 1:], wanted[:, :, 1:])


def paddles(seen):
    """The mean row of a picture's left and right paddle."""
    field = seen[16:76].int()
    bright = (field - int(field.flatten().mode().values)).abs() > 10
    return [
        float(bright[:, columns].any(1).nonzero().float().mean())
        for columns in (slice(7, 12), slice(72, 77))
    ]


def test_pong_looks_alike_from_both_sides():
    """What the second sees is what the first sees where each does what the other has done.

    Within two rows: of the frames that are pooled the left paddle moves in both, the right in one.
    """
    args = TrainArgs(**SMALL)
    env = make_env(args, 2, CPU)
    env.reset(seed=[0, 0])
    up, down = (env.action_meanings.index(name) for name in ("RIGHT", "LEFT"))
    algorithm = types.SimpleNamespace(args=args)
    for moves in ([0, 0], [up, down], [up, down], [up, down], [down, 0], [0, up], [down, 0]):
        frames = env.step(torch.tensor([moves, moves[::-1]]))[0]
        first = paddles(SelfPlay.seen(algorithm, frames, 0)[0, 0])
        second = paddles(SelfPlay.seen(algorithm, frames, 1)[1, 0])
        assert first == pytest.approx(second, abs=2)
        if moves == [up, down]:
            assert first[1] < first[0] - 3  # the first player is on the right, and above
    env.close()


def batch_of(steps=6, envs=5, actions=6):
    generator = torch.Generator().manual_seed(0)
    rand = functools.partial(torch.rand, generator=generator)
    return types.SimpleNamespace(
        observations=(rand(envs, 4, 84, 84) * 255).byte(),
        last=(rand(1, envs, 4, 84, 84) * 255).byte(),
        actions=torch.randint(actions, (envs, 2), generator=generator),
        log_mu=-rand(envs, 2) - 1, values=rand(steps, envs, 2), rewards=rand(steps, envs, 2),
        discounts=rand(steps, envs), played=rand(steps, envs) < 0.8,
    )  # fmt: skip


@LEARNERS
def test_advantages_are_each_players(learners):
    trainer, batch = trainer_of(learners=learners), batch_of()
    algorithm, nets = trainer.algorithm, types.SimpleNamespace(**trainer.nets.trained)
    with torch.no_grad():
        both = algorithm.heads(nets, batch.last[0], (0, 1))
        for players in algorithm.sides:
            found = algorithm.advantages_of(players, nets, batch)
            for player in players:
                values = torch.cat([batch.values[..., player], both[player][1][None]])
                wanted = gae(
                    batch.rewards[..., player], batch.discounts, batch.played.float(), values,
                    algorithm.args.gae_lambda,
                )  # fmt: skip
                own = (..., player) if learners == "one" else ...
                assert torch.equal(found["advantages"][own], wanted)
                assert torch.equal(found["targets"][own], wanted + batch.values[..., player])
    trainer.close()


def test_the_loss_of_both_is_the_mean_of_each_ones():
    trainer, batch = trainer_of(learners="one"), batch_of()
    algorithm, nets = trainer.algorithm, types.SimpleNamespace(**trainer.nets.trained)
    batch.played, batch.values = batch.played[0], batch.values[0]
    batch.advantages, batch.targets = torch.randn(5, 2), torch.randn(5, 2)
    both = algorithm.loss_of((0, 1), nets, batch)
    each = [algorithm.loss_of((player,), nets, one_of(batch, player)) for player in (0, 1)]
    for name in ("loss", "policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction"):
        torch.testing.assert_close(both[name], (each[0][name] + each[1][name]) / 2)
    assert not torch.equal(each[0]["loss"], each[1]["loss"])
    trainer.close()


def one_of(batch, player):
    parts = vars(batch) | {
        name: getattr(batch, name)[:, player] for name in ("advantages", "targets")
    }
    return types.SimpleNamespace(**parts)


def test_two_learners_have_their_own_weights_and_optimizers():
    trainer = trainer_of(learners="two")
    before = {name: weights_of(net) for name, net in trainer.nets.trained.items()}
    trainer.iterate()
    assert list(before) == ["first", "second"] and len(trainer.learners) == 2
    for name, net in trainer.nets.trained.items():
        assert not torch.equal(weights_of(net), before[name])
    assert trainer.updates == 2 * 3 * (4 * 8 // 16)
    trainer.close()


def weights_of(net):
    return torch.cat([p.detach().flatten() for p in net.parameters()])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"emulator": "ale-py"}, "expected emulator to be cule in self-play, got ale-py"),
        ({"lag": 1}, "expected lag to be 0 in self-play, got 1"),
        ({"eval_episodes": 4}, "expected eval_episodes to be 0 in self-play, got 4"),
        ({"model": "lstm"}, "expected a model without a memory in self-play, got lstm"),
        ({"life_loss_ends": True}, "expected life_loss_info=False with num_players=2"),
        ({"game_mode": 0}, "expected a mode of 'pong for 2 players'"),
        ({"game": "alien"}, "expected num_players=1, which 'alien' is for, got 2"),
    ],
)
def test_what_two_players_do_not_have_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        trainer_of(**changes)


def pressing(name, action):
    """A policy that always presses one button."""

    def scores(observations, player):
        return torch.nn.functional.one_hot(torch.full((len(observations),), action), 6).log()

    return elo.Player(name, scores)


def test_who_has_more_points_wins_on_either_side():
    """Who does not serve loses a point every two seconds, and so the episode."""
    args = TrainArgs(**SMALL | {"max_episode_frames": 900})
    make = functools.partial(make_env, args, device=CPU, stack_num=4)
    idle, serves = pressing("idle", 0), pressing("serves", 1)
    with closing(make(6)) as env:
        points = elo.play(env, [(serves, idle), (idle, serves)], seed=1)
    results = elo.results_of([serves, idle], make, 3, seed=1)
    margins = [np.subtract(*one.T) for one in points]
    assert (margins[0] > 0).all() and (margins[1] < 0).all()
    counts = [(one["wins"], one["draws"], one["losses"]) for one in results]
    assert counts == [(3, 0, 0), (0, 0, 3)] and results[0]["margin"] == margins[0].mean()
    rated = elo.rate(["serves", "idle"], results)
    assert rated["bounded"] and rated["policies"][0]["elo"] > 300
    assert [row["wins"] for row in rated["policies"]] == [6, 0]
    assert "as if it had drawn one more" in elo.table(rated)


def test_ratings_count_both_sides():
    results = [
        {"first": "a", "second": "b", "wins": 5, "draws": 2, "losses": 3},
        {"first": "b", "second": "a", "wins": 1, "draws": 0, "losses": 9},
    ]
    a, b = elo.rate(["a", "b"], results)["policies"]
    assert (a["wins"], a["draws"], a["losses"]) == (14, 2, 4) == (b["losses"], 2, b["wins"])
    assert a["elo"] == pytest.approx(400 * np.log10(15 / 5)) and b["elo"] == 0


def test_the_program_rates_all_checkpoints_of_a_run(runs, tmp_path, capsys):
    rows, out = tmp_path / "rows.jsonl", tmp_path / "elo.json"
    words = [str(runs / "one"), str(runs / "two" / "checkpoints" / "step-16-rank0.pt")]
    words += ["--episodes", "2", "--max-frames", "80", "--num-threads", "1", "--device", "cpu"]
    assert elo.main([*words, "--output", str(out), "--results", str(rows)]) == 0
    rated, printed = json.loads(out.read_text()), capsys.readouterr().out
    names = [row["name"] for row in rated["policies"]]
    assert names[-1] == rated["anchor"] == "random" and len(names) == 5
    assert rated["policies"][-1]["elo"] == 0 and len(rated["results"]) == 5 * 4
    for row in rated["policies"]:
        assert row["wins"] + row["draws"] + row["losses"] == 2 * 2 * 4
        assert row["name"] in printed and np.isfinite(row["elo"])
    lines = [json.loads(line) for line in rows.read_text().splitlines()]
    assert [line["learners"] for line in lines] == ["one", "one", "one", "two"]
    assert [line["frames"] for line in lines] == [FRAMES, 2 * FRAMES, 3 * FRAMES, 2 * FRAMES]
    assert [line["elo"] for line in lines] == [row["elo"] for row in rated["policies"][:-1]]


def test_a_checkpoint_plays_as_it_has_acted(runs):
    """The policy of a checkpoint gives the probabilities that the training's networks give."""
    args = elo.Args(runs=(runs / "two",))
    players, algorithm = elo._loaded(args, CPU)
    state = checkpoint.newest(runs / "two", CPU)["trainer"]["networks"]
    observations = batch_of().observations
    for player, name in enumerate(("first", "second")):
        net = algorithm.networks(6)[name]
        net.load_state_dict(state[name])
        with torch.no_grad():
            wanted = net(algorithm.seen(observations, player))[0]
            torch.testing.assert_close(players[-1].scores(observations, player), wanted)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "expected one checkpoint or more, each once, got"),
        (["one", "one"], "expected one checkpoint or more, each once, got"),
        (["nothing"], "expected a run folder or a file with a checkpoint, got"),
        (["one", "--episodes", "0"], "expected episodes to be at least 1, got 0"),
        (["one", "--output", "no/folder/elo.json", "--max-frames", "8", "--episodes", "1"],
         "expected a file that can be written at no/folder/elo.json"),
    ],
)  # fmt: skip
def test_what_cannot_be_rated_is_refused(runs, words, message, capsys, monkeypatch):
    monkeypatch.chdir(runs)
    assert elo.main([*words, "--device", "cpu", "--num-threads", "1"]) == 2
    assert message in capsys.readouterr().err


def test_policies_of_two_games_are_refused(runs, tmp_path):
    trained(tmp_path, FRAMES, game_mode=4)
    with pytest.raises(ValueError, match=r"expected policies of the same game, .*, got .*'game_mo"):
        elo.rated_runs(elo.Args(runs=(runs / "one", tmp_path), device="cpu", num_threads=1))

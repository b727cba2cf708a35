"""AtariEnv(num_players=2 or 4): what it takes and returns, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from gymnasium.spaces import Discrete, MultiDiscrete

import cule
from cule.rom import find_game, games, load_rom, rom_path

SMALL: dict[str, Any] = {"reset_pool_size": 1, "num_threads": 1, "noop_max": 1}


def make(game: Any = "pong", num_envs: int = 2, device: str = "cpu", **options: Any) -> Any:
    return cule.AtariEnv(game, num_envs, device, **(SMALL | {"num_players": 2} | options))


def random_actions(env: cule.AtariEnv, seed: int) -> Iterator[torch.Tensor]:
    """Actions of all players on the env's device."""
    generator = torch.Generator().manual_seed(seed)
    shape, count = (env.num_envs, env.num_players), len(env.action_meanings)
    while True:
        yield torch.randint(count, shape, generator=generator).to(env.device)


@pytest.mark.parametrize("output", ["torch", "torch_shared", "numpy"])
@pytest.mark.parametrize("num_players", [2, 4])
def test_each_player_has_actions_rewards_and_lives(num_players: int, output: str) -> None:
    env = make(num_players=num_players, output=output)
    assert env.single_action_space == MultiDiscrete([6] * num_players)
    assert env.action_space.shape == (2, num_players)
    _, info = env.reset(seed=0)
    assert tuple(info["lives"].shape) == (2, num_players)
    observations, rewards, terminated, truncated, info = env.step(env.action_space.sample())
    assert tuple(observations.shape) == (2, 4, 84, 84)
    for per_player in (rewards, info["raw_reward"], info["lives"]):
        assert tuple(per_player.shape) == (2, num_players)
    for per_env in (terminated, truncated, info["game_over"], info["frame_number"]):
        assert tuple(per_env.shape) == (2,)


def test_one_player_is_as_before() -> None:
    env = make(num_players=1)
    assert env.num_players == 1 and env.single_action_space == Discrete(6)
    _, info = env.reset(seed=0)
    assert info["lives"].shape == env.step([0, 0])[1].shape == (2,)


def test_rewards_are_clipped_for_each_player_and_add_up_over_a_step() -> None:
    """Whoever does not serve loses a point every two seconds, and here a step has four."""
    env = make(num_envs=1, frameskip=256, use_fire_reset=False)
    env.reset(seed=0)
    results = [env.step([[0, 0]]) for _ in range(3)]
    raw = torch.cat([info["raw_reward"] for *_, info in results])
    assert raw.tolist() == [[0, -1], [-2, 0], [-2, 0]]
    assert torch.equal(torch.cat([rewards for _, rewards, *_ in results]), raw.sign())


def test_a_player_who_is_out_has_minus_one_lives_and_the_others_play_on() -> None:
    env = make("wizard_of_wor", num_envs=8, frameskip=8, output="numpy")
    env.reset(seed=0)
    random = np.random.default_rng(0)
    for _ in range(2500):
        _, _, terminated, _, info = env.step(random.integers(9, size=(8, 2)))
        out = (info["lives"] < 0) & ~terminated[:, None]
        if (out.any(1) & ~out.all(1)).any():
            return
    pytest.fail("no player was out before the other")


def test_the_step_after_an_end_rewards_nobody() -> None:
    """In NEXT_STEP it only resets the env."""
    env = make(num_envs=1, max_num_frames_per_episode=240, frameskip=120, use_fire_reset=False)
    env.reset(seed=0)
    rewards = [env.step([[0, 0]])[1][0].tolist() for _ in range(3)]
    assert rewards == [[0, 0], [1, -1], [0, 0]]


def test_held_actions_are_each_players_own() -> None:
    """Actions that always stick are the no-ops of before, for the third and fourth player, too."""
    envs = [
        make(num_players=4, num_envs=1, use_fire_reset=False, repeat_action_probability=probability)
        for probability in (1.0, 0.0)
    ]
    for env in envs:
        env.reset(seed=0)
    actions = random_actions(envs[0], seed=1)
    for _ in range(20):
        envs[0].step(next(actions))
        envs[1].step(torch.zeros((1, 4), dtype=torch.int64))
        assert torch.equal(envs[0].get_ram(), envs[1].get_ram())


def test_each_player_moves_something() -> None:
    """Of envs that differ in one player's actions only, each shows another picture."""
    for num_players in (2, 4):
        env = make(num_players=num_players, num_envs=num_players + 1)
        env.reset(seed=[0] * (num_players + 1))
        actions = torch.zeros((num_players + 1, num_players), dtype=torch.int64)
        actions[range(num_players), range(num_players)] = env.action_meanings.index("RIGHT")
        for _ in range(10):
            env.step(actions)
        screens = env.get_screen()
        assert len({bytes(screen.numpy().tobytes()) for screen in screens}) == num_players + 1


def test_several_games_in_a_batch() -> None:
    env = make(["boxing", "ice_hockey"], mode=[2, 3])
    assert [game.words for game in env.games] == [
        "boxing for 2 players",
        "ice_hockey for 2 players",
    ]
    env.reset(seed=0)
    assert env.step(torch.zeros((2, 2), dtype=torch.int64))[1].shape == (2, 2)


def test_states_go_back_and_not_into_another_number_of_players() -> None:
    two, one = make("tennis", mode=2), make("tennis", mode=2, num_players=1)
    for env in (two, one):
        env.reset(seed=0)
    actions = random_actions(two, seed=2)
    for _ in range(5):
        two.step(next(actions))
    state, follow = two.clone_state(), next(actions)
    results = two.step(follow)
    two.restore_state(state)
    again = two.step(follow)
    assert all(torch.equal(a, b) for a, b in zip(results[:4], again[:4], strict=True))
    with pytest.raises(
        ValueError, match=r"expected a state of \(game, mode, difficulty\) .*tennis"
    ):
        one.restore_state(state)
    assert state.consoles()[0][0].game == find_game("tennis", 2)


def test_the_lists_of_games() -> None:
    assert len(cule.list_games(2)) == 20 and cule.list_games(4) == ["pong", "warlords"]
    assert {"combat", "joust", "maze_craze", "warlords"} == {*cule.list_games(2)} - {
        *cule.list_games()
    }
    assert all(game.num_players == 2 for game in games(2))


@pytest.mark.parametrize(
    ("game", "options", "message"),
    [
        ("alien", {}, "expected num_players=1, which 'alien' is for, got 2"),
        ("boxing", {"num_players": 4}, "expected num_players=1 or 2, which 'boxing' is for, got 4"),
        ("combat", {"num_players": 1}, "expected num_players=2, which 'combat' is for, got 1"),
        ("pong", {"num_players": 3}, "expected num_players to be 1, 2 or 4, got 3"),
        ("pong", {"mode": 0}, r"expected a mode of 'pong for 2 players' \(3, 4, 9, .*\), got 0"),
        ("pong", {"continuous": True}, "expected continuous=False with num_players=2, got True"),
        ("pong", {"episode_start": "fire"}, "expected episode_start='ale' with num_players=2"),
        ("pong", {"episodic_life": True}, "expected episodic_life=False with num_players=2"),
        ("pong", {"life_loss_info": True}, "expected life_loss_info=False with num_players=2"),
        ("pong", {"batch_size": 1}, "expected batch_size=0 with num_players=2, got 1"),
    ],
)
def test_what_is_not_there_is_refused(game: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(game, **options)


def test_wrong_actions_are_refused() -> None:
    env = make()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"actions to have shape \(2, 2\), got \(2,\)"):
        env.step([0, 0])
    with pytest.raises(ValueError, match="expected actions from 0 to 5"):
        env.step([[0, 0], [0, 6]])
    with pytest.raises(ValueError, match="expected no player_b_actions with num_players=2"):
        env.step([[0, 0], [0, 0]], player_b_actions=[0, 0])
    with pytest.raises(ValueError, match="num_players=1 in EpisodeStatistics"):
        cule.EpisodeStatistics(env)


def test_games_that_ale_py_lacks_come_from_autorom(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.delenv("CULE_ROM_DIR", raising=False)
    (tmp_path / "AutoROM" / "roms").mkdir(parents=True)
    (tmp_path / "AutoROM" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"which ale-py lacks, from AutoROM .*autorom"):
        rom_path(find_game("combat", 2))
    image = tmp_path / "AutoROM" / "roms" / "combat.bin"
    image.write_bytes(bytes(2048))
    assert rom_path(find_game("combat", 2)) == image
    with pytest.raises(ValueError, match="to be the ROM of 'combat' with MD5 0ef64cdb"):
        load_rom(find_game("combat", 2))
    assert rom_path(find_game("pong", 2)) == rom_path(find_game("pong"))


@pytest.mark.gpu
@pytest.mark.parametrize("translate", [False, True])
@pytest.mark.parametrize("num_players", [2, 4])
def test_a_gpu_plays_as_a_cpu(num_players: int, translate: bool) -> None:
    options: dict[str, Any] = {
        "num_players": num_players, "num_envs": 70, "max_num_frames_per_episode": 200,
        "repeat_action_probability": 0.25, "reset_pool_size": 3, "reward_clipping": False,
    }  # fmt: skip
    cpu = make(**options, num_threads=0)
    gpu = make(**options, device="cuda", translate=translate)
    for env in (cpu, gpu):
        env.reset(seed=5)
    actions = random_actions(cpu, seed=3)
    for _ in range(150):
        chosen = next(actions)
        ours, theirs = cpu.step(chosen), gpu.step(chosen.cuda())
        for mine, its in zip(ours[:4], theirs[:4], strict=True):
            assert torch.equal(mine, its.cpu())
        assert torch.equal(ours[4]["lives"], theirs[4]["lives"].cpu())
    assert torch.equal(cpu.get_ram(), gpu.get_ram().cpu())


@pytest.mark.gpu
@pytest.mark.parametrize("name", [name for name in cule.list_games(2) if name in cule.list_games()])
def test_a_gpu_plays_each_game_of_two_as_a_cpu(name: str) -> None:
    cpu, gpu = (make(name, 5, device, reward_clipping=False) for device in ("cpu", "cuda"))
    for env in (cpu, gpu):
        env.reset(seed=5)
    actions = random_actions(cpu, seed=4)
    for _ in range(100):
        chosen = next(actions)
        ours, theirs = cpu.step(chosen), gpu.step(chosen.cuda())
        assert torch.equal(ours[1], theirs[1].cpu()) and torch.equal(ours[0], theirs[0].cpu())
    assert torch.equal(cpu.get_ram(), gpu.get_ram().cpu())

"""cule.AtariEnv against ale_py.AtariVectorEnv, step by step: the same seed and actions, everything returned compared.

With `reset_pool_size=0` every reset is emulated as ale-py does it, so that whole runs agree, episode after episode.
"""

from __future__ import annotations

from typing import Any

import ale_py
import numpy as np
import pytest

import cule

SEED = 7
# Long games and short ones, paddles and joysticks, NTSC and PAL, pictures of several heights.
DEFAULT_GAMES = (
    "pong", "breakout", "ms_pacman", "riverraid", "up_n_down", "space_invaders", "freeway", "adventure", "air_raid",
    "pitfall2", "montezuma_revenge", "video_pinball", "road_runner", "kaboom",
)  # fmt: skip

ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)


class Pair:
    """The same envs twice. `options` are keywords that both know."""

    def __init__(self, game: str, num_envs: int = 3, **options: Any):
        self.num_envs = num_envs
        self.continuous = options.get("continuous", False)
        self.life_loss_info = options.get("life_loss_info", False)
        self.same_step = options.get("autoreset_mode") == "SameStep"
        self.ale = ale_py.AtariVectorEnv(game, num_envs, num_threads=1, **options)
        self.cule = cule.AtariEnv(
            game, num_envs, device="cpu", num_threads=1, reset_pool_size=0, output="numpy", **options
        )
        assert self.cule.single_action_space == self.ale.single_action_space
        assert self.cule.single_observation_space == self.ale.single_observation_space
        self.endings = 0

    def reset(self, seed: Any = None, options: dict[str, Any] | None = None) -> None:
        theirs, their_info = self.ale.reset(seed=seed, options=options)
        ours, our_info = self.cule.reset(seed=seed, options=options)
        same("observation", ours, theirs)
        self.compare_infos(our_info, their_info)
        self.frames = our_info["episode_frame_number"]

    def step(self, actions: np.ndarray) -> None:
        theirs, ours = self.ale.step(actions), self.cule.step(actions)
        for name, a, b in zip(("observation", "reward", "terminated", "truncated"), ours, theirs, strict=False):
            same(name, a, b)
        self.compare_infos(ours[4], theirs[4])
        done = ours[2] | ours[3]
        self.endings += int(done.sum())
        if self.same_step:
            assert ("final_obs" in ours[4]) == ("final_obs" in theirs[4]) == done.any(), "final_obs where none is due"
            if done.any():
                same("_final_obs", ours[4]["_final_obs"], done)
                # Where a lost life reports a termination and nothing is reset, ale-py has not written the memory.
                frames = ours[4]["episode_frame_number"]
                fresh = done & (frames <= self.frames) if self.life_loss_info else done
                same("final_obs", ours[4]["final_obs"][fresh], theirs[4]["final_obs"][fresh])
                on = done & ~fresh
                same("final_obs of an episode that goes on", ours[4]["final_obs"][on], ours[0][on])
        self.frames = ours[4]["episode_frame_number"]

    @staticmethod
    def compare_infos(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> None:
        assert {"env_id", "lives", "frame_number", "episode_frame_number"} <= set(theirs) <= set(ours)
        for key in set(theirs) - {"final_obs"}:
            same(key, ours[key], theirs[key])
        assert not ours["fault"].any(), "fault"

    def actions(self, rng: np.random.Generator) -> np.ndarray:
        if not self.continuous:
            return rng.integers(self.cule.single_action_space.n, size=self.num_envs)
        low, high = self.cule.single_action_space.low, self.cule.single_action_space.high
        return rng.uniform(low, high, size=(self.num_envs, 3)).astype(np.float32)

    def play(self, steps: int, seed: int = SEED) -> Pair:
        """Plays and compares; each action is held for a few steps, so that the games get somewhere."""
        rng = np.random.default_rng(seed)
        self.reset(seed=seed)
        actions = self.actions(rng)
        for step in range(steps):
            change = rng.random(self.num_envs) < 0.4
            actions[change] = self.actions(rng)[change]
            try:
                self.step(actions)
            except AssertionError as problem:
                raise AssertionError(f"step {step}: {problem}") from problem
        return self


def same(name: str, ours: np.ndarray, theirs: np.ndarray) -> None:
    assert ours.dtype == theirs.dtype, f"{name}: {ours.dtype} for {theirs.dtype}"
    np.testing.assert_array_equal(ours, theirs, name)


@pytest.mark.parametrize("game", DEFAULT_GAMES)
def test_vector_env_matches_ale(game: str) -> None:
    Pair(game).play(120)


@pytest.mark.parametrize(
    ("game", "options"),
    [
        ("breakout", {"episodic_life": True}),
        ("space_invaders", {"episodic_life": True, "autoreset_mode": "SameStep"}),
        ("breakout", {"life_loss_info": True}),
        ("seaquest", {"life_loss_info": True, "autoreset_mode": "SameStep"}),
        ("ms_pacman", {"reward_clipping": False}),
        ("pong", {"maxpool": False}),
        ("space_invaders", {"maxpool": False, "episodic_life": True}),
        ("breakout", {"grayscale": False}),
        ("air_raid", {"grayscale": False, "stack_num": 2}),
        ("pong", {"img_height": 64, "img_width": 64}),
        ("riverraid", {"img_height": 105, "img_width": 80}),
        ("ms_pacman", {"img_height": 210, "img_width": 160, "stack_num": 1}),
        ("ms_pacman", {"img_height": 210, "img_width": 160, "stack_num": 1, "grayscale": False}),
        ("qbert", {"img_height": 100, "img_width": 120}),
        ("qbert", {"img_height": 100, "img_width": 120, "grayscale": False}),
        ("air_raid", {"img_height": 50, "img_width": 40}),
        ("pong", {"img_height": 1, "img_width": 1}),
        ("journey_escape", {"img_height": 96, "img_width": 160}),
        ("breakout", {"stack_num": 1}),
        ("breakout", {"stack_num": 2}),
        ("breakout", {"stack_num": 7}),
        ("pong", {"frameskip": 1}),
        ("ms_pacman", {"frameskip": 1, "maxpool": False}),
        ("pong", {"frameskip": 2}),
        ("seaquest", {"frameskip": 3}),
        ("space_invaders", {"frameskip": 5}),
        ("breakout", {"noop_max": 0}),
        ("pong", {"noop_max": 1}),
        ("enduro", {"noop_max": 7}),
        ("breakout", {"use_fire_reset": False}),
        ("breakout", {"use_fire_reset": False, "noop_max": 0, "autoreset_mode": "SameStep"}),
        ("breakout", {"full_action_space": True}),
        ("seaquest", {"full_action_space": True}),
        ("skiing", {"full_action_space": True}),
        ("pong", {"continuous": True}),
        ("breakout", {"continuous": True, "continuous_action_threshold": 0.2}),
        ("ms_pacman", {"continuous": True}),
        ("seaquest", {"continuous": True, "continuous_action_threshold": 0.0}),
    ],
    ids=str,
)
def test_vector_env_option_matches_ale(game: str, options: dict[str, Any]) -> None:
    Pair(game, num_envs=2, **options).play(90)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize(
    "options", [{}, {"episodic_life": True}, {"life_loss_info": True}, {"maxpool": False}, {"frameskip": 3}], ids=str
)
def test_vector_env_endings_match_ale(mode: str, options: dict[str, Any]) -> None:
    """Breakout, whose ball is soon lost five times."""
    pair = Pair("breakout", num_envs=3, autoreset_mode=mode, **options).play(250)
    assert pair.endings > 1


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("limit", [1, 37, 80])
def test_vector_env_truncates_as_ale(mode: str, limit: int) -> None:
    pair = Pair("pong", num_envs=2, max_num_frames_per_episode=limit, autoreset_mode=mode).play(45)
    assert pair.endings > 1


@pytest.mark.parametrize("options", [{}, {"episodic_life": True}, {"max_num_frames_per_episode": 90}], ids=str)
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_vector_env_masked_resets_match_ale(mode: str, options: dict[str, Any]) -> None:
    pair = Pair("breakout", num_envs=4, autoreset_mode=mode, **options)
    rng = np.random.default_rng(SEED)
    pair.reset(seed=np.array([11, 5, 11, 900]))
    seeds = (None, 40, np.array([3, 1]), None, None)
    for round_, seed in enumerate(seeds):
        for _ in range(20):
            pair.step(pair.actions(rng))
        mask = np.zeros(4, bool)
        mask[rng.permutation(4)[:2]] = True
        if round_ == 3:
            mask[:] = False
        pair.reset(seed=seed, options={"reset_mask": mask})
    for _ in range(20):
        pair.step(pair.actions(rng))
    pair.reset()
    for _ in range(10):
        pair.step(pair.actions(rng))
    pair.reset(seed=2)


@pytest.mark.parametrize("game", ["skiing", "lost_luggage"])
def test_vector_env_continuous_takes_action_numbers_for_indices_as_ale_does(game: str) -> None:
    """These games have no button and so fewer than 18 actions; ale-py still indexes them by the numbers of all 18."""
    pair = Pair(game, num_envs=2, continuous=True)
    pair.reset(seed=SEED)
    rng = np.random.default_rng(SEED)
    for _ in range(80):
        actions = pair.actions(rng)
        actions[:, 2] = 0  # ale-py ends the process where the button is asked for
        actions[:, 1] = np.clip(actions[:, 1], -0.5, 0.5)
        pair.step(actions)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
@pytest.mark.parametrize("game", [game.name for game in cule.games()])
def test_vector_env_matches_ale_in_every_game(game: str, mode: str) -> None:
    Pair(game, num_envs=4, autoreset_mode=mode, reward_clipping=False, episodic_life=mode == "SameStep").play(600)


@pytest.mark.slow
@pytest.mark.parametrize("game", [game.name for game in cule.games() if game.name not in ("skiing", "lost_luggage")])
def test_vector_env_matches_ale_in_every_game_with_continuous_actions_in_color(game: str) -> None:
    Pair(game, num_envs=2, continuous=True, grayscale=False, img_height=93, img_width=111).play(150)

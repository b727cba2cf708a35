"""Patches and set_ram next to ale-py's setRAM, which is called at the same moments."""

from __future__ import annotations

import ale_py
import numpy as np
import pytest

import cule
from cule.rom import find_game, rom_path

FRAMESKIP, SEED = 3, 7
ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
# With all bank-switching schemes but FE, with and without lives.
GAMES = (
    "adventure", "asteroids", "boxing", "breakout", "elevator_action", "freeway", "ms_pacman",
    "pitfall2", "pong", "qbert", "seaquest", "space_invaders", "tennis", "tutankham",
)  # fmt: skip


def random_patch(rng: np.random.Generator) -> cule.Patch:
    """A patch of any kind. Most touch a byte now and then, so that games go on."""
    address, other = map(int, rng.integers(0, 128, 2))
    least, most = sorted(map(int, rng.integers(0, 256, 2)))
    when = (int(rng.integers(0, 128)), least, most) if rng.random() < 0.5 else None
    every, value = int(rng.integers(1, 30)), int(rng.integers(0, 256))
    kind = rng.integers(0, 5)
    if kind == 0:
        return cule.Patch.hold(address, value, when=when, every=every)
    if kind == 1:
        return cule.Patch.change(address, value - 128, when=when, every=every)
    if kind == 2:
        return cule.Patch.copy(address, other, value % 3, when=when, every=every)
    if kind == 3:
        return cule.Patch.bits(address, int(rng.integers(0, 256)), value, when=when, every=every)
    return cule.Patch(address, value, max(1, int(rng.integers(0, 256))), other, when, every)


class ByHand:
    """ale-py's console of one env, whose RAM is changed as the patches say, by setRAM."""

    def __init__(self, name: str, patches: list[cule.Patch]):
        self.game, self.patches = find_game(name), patches
        self.ale = ale_py.ALEInterface()
        self.ale.setFloat("repeat_action_probability", 0.0)
        self.ale.setInt("random_seed", SEED)
        self.ale.loadROM(rom_path(self.game))
        self.ale.reset_game()
        self.actions = self.ale.getLegalActionSet()

    def patch(self, show: bool = False) -> None:
        """Changes RAM once; to `show`, without the patches that add to what is in a byte."""
        frame = self.ale.getEpisodeFrameNumber()
        for patch in self.patches:
            ram = self.ale.getRAM()
            source = patch.address if patch.source is None else patch.source
            adds = source == patch.address and patch.keep & patch.value
            if frame % patch.every or (show and adds):
                continue
            if patch.when and not patch.when[1] <= ram[patch.when[0]] <= patch.when[2]:
                continue
            value = (int(ram[source]) & patch.keep) + patch.value
            self.ale.setRAM(patch.address, value % 256)

    def step(self, action: int) -> tuple[int, bool]:
        """FRAMESKIP frames, each after the patches. Returns the reward, and if the game ended."""
        reward = 0
        for _ in range(FRAMESKIP):
            if self.ale.game_over():
                break
            self.patch()
            reward += self.ale.act(self.actions[action])
        self.patch(show=True)
        return reward, self.ale.game_over()


def env_of(names: list[str], **options: object) -> cule.AtariEnv:
    return cule.AtariEnv(
        names, len(names), "cpu", num_threads=1, frameskip=FRAMESKIP, noop_max=0, output="numpy",
        use_fire_reset=False, reset_pool_size=0, full_action_space=True, autoreset_mode="disabled",
        **options,
    )  # fmt: skip


def same_console(env: cule.AtariEnv, number: int, ale: ale_py.ALEInterface, screens: bool) -> None:
    np.testing.assert_array_equal(env.get_ram()[number], ale.getRAM())
    if screens:
        screen = ale.getScreen()
        np.testing.assert_array_equal(env.get_screen()[number][: len(screen)], screen)


@pytest.mark.parametrize("name", GAMES)
def test_random_patches_do_what_set_ram_does(name: str) -> None:
    """Three envs, each with its own patches; one of them gets others in the middle."""
    rng = np.random.default_rng(sum(map(ord, name)))
    count, steps = 2, 60
    own = [[random_patch(rng) for _ in range(int(rng.integers(1, 7)))] for _ in range(count)]
    env, hands = env_of([name] * count), [ByHand(name, patches) for patches in own]
    for number, patches in enumerate(own):
        env.set_patches(patches, [number])
    env.reset(seed=SEED)
    jammed = np.zeros(count, bool)
    for step in range(steps):
        if step == steps // 2:
            hands[1].patches = [random_patch(rng) for _ in range(9)]
            env.set_patches(hands[1].patches, [1])
        actions = rng.integers(0, 18, count)
        _, _, terminated, _, info = env.step(actions)
        for number, (hand, action) in enumerate(zip(hands, actions, strict=True)):
            reward, over = hand.step(int(action))
            jammed[number] |= info["fault"][number] == cule.FAULTS["jam"]
            if jammed[number]:  # patches have led the program astray
                continue
            assert (info["raw_reward"][number], terminated[number]) == (reward, over)
            assert info["lives"][number] == hand.ale.lives()
            same_console(env, number, hand.ale, step % 10 == 0)
        for number in np.flatnonzero(terminated):
            hands[number].ale.reset_game()
        if terminated.any():
            env.reset(options={"reset_mask": terminated})
    assert not jammed.all()
    assert any((env.get_ram()[0] != other).any() for other in env.get_ram()[1:])


def test_envs_of_several_games_have_patches_of_their_own() -> None:
    rng = np.random.default_rng(0)
    names = ["pong", "seaquest", "freeway", "breakout"]
    own = [[random_patch(rng) for _ in range(4)] for _ in names]
    env, hands = env_of(names), [ByHand(*pair) for pair in zip(names, own, strict=True)]
    for number, patches in enumerate(own):
        env.set_patches(patches, [number])
    env.reset(seed=np.full(4, SEED))
    for _ in range(60):
        actions = rng.integers(0, 18, 4)
        env.step(actions)
        for number, (hand, action) in enumerate(zip(hands, actions, strict=True)):
            hand.step(int(action))
            same_console(env, number, hand.ale, True)


@pytest.mark.parametrize("name", ["breakout", "pitfall2", "ms_pacman"])
def test_bytes_written_between_steps_are_those_of_set_ram(name: str) -> None:
    rng = np.random.default_rng(3)
    env, hands = env_of([name] * 2), [ByHand(name, []) for _ in range(2)]
    env.reset(seed=np.full(2, SEED))
    for step in range(60):
        addresses = rng.permutation(128)[: int(rng.integers(1, 4))]
        values = rng.integers(0, 256, (2, len(addresses)))
        if step % 3 == 0:
            env.set_ram(addresses, values)
            for hand, own in zip(hands, values, strict=True):
                for address, value in zip(addresses, own, strict=True):
                    hand.ale.setRAM(int(address), int(value))
        actions = rng.integers(0, 18, 2)
        env.step(actions)
        for number, (hand, action) in enumerate(zip(hands, actions, strict=True)):
            hand.step(int(action))
            same_console(env, number, hand.ale, step % 5 == 0)
            if hand.ale.game_over():
                return


@pytest.mark.parametrize("name", [one for one in cule.list_games() if cule.modifications(one)])
def test_named_modifications_do_what_set_ram_does(name: str) -> None:
    """Each of the game's modifications in an env of its own, and from one state in ale-py."""
    known, hand = cule.modifications(name), ByHand(name, [])
    env = env_of([name] * len(known))
    for number, one in enumerate(known):
        env.set_patches(one.name, [number])
    env.reset(seed=np.full(len(known), SEED))
    actions = np.random.default_rng(1).integers(0, 18, 12).tolist()
    for action in actions:
        env.step([action] * len(known))
    start = hand.ale.cloneSystemState()
    rams, screens = env.get_ram(), env.get_screen()
    for one, ram, screen in zip(known, rams, screens, strict=True):
        hand.patches = [*one.patches]
        hand.ale.restoreSystemState(start)
        for action in actions:
            hand.step(action)
        np.testing.assert_array_equal(ram, hand.ale.getRAM(), err_msg=one.name)
        np.testing.assert_array_equal(screen, hand.ale.getScreen(), err_msg=one.name)

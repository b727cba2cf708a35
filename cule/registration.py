"""cule's envs in gymnasium's registry, and the usual set of games."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
from gymnasium.envs.registration import EnvSpec

from cule.facts.names import older_ids, take_apart
from cule.rom import games
from cule.single_env import SingleAtariEnv
from cule.vector_env import AtariEnv

# The games of "Rainbow" (Hessel et al., 2017) and later papers.
ATARI_57 = (
    "alien", "amidar", "assault", "asterix", "asteroids", "atlantis", "bank_heist", "battle_zone",
    "beam_rider", "berzerk", "bowling", "boxing", "breakout", "centipede", "chopper_command",
    "crazy_climber", "defender", "demon_attack", "double_dunk", "enduro", "fishing_derby",
    "freeway", "frostbite", "gopher", "gravitar", "hero", "ice_hockey", "jamesbond", "kangaroo",
    "krull", "kung_fu_master", "montezuma_revenge", "ms_pacman", "name_this_game", "phoenix",
    "pitfall", "pong", "private_eye", "qbert", "riverraid", "road_runner", "robotank", "seaquest",
    "skiing", "solaris", "space_invaders", "star_gunner", "surround", "tennis", "time_pilot",
    "tutankham", "up_n_down", "venture", "video_pinball", "wizard_of_wor", "yars_revenge", "zaxxon",
)  # fmt: skip


def make_vector_env(
    game: str,
    num_envs: int = 1,
    *,
    output: Literal["torch", "torch_shared", "numpy"] = "numpy",
    render_mode: Literal["mosaic", "rgb_array", "rgb_array_list", "human"] | None = None,
    **options: Any,
) -> AtariEnv:
    """Makes an env for gymnasium.make_vec: an AtariEnv of arrays, as gymnasium's wrappers expect.

    Args:
        game: as AtariEnv's.
        num_envs: as AtariEnv's.
        output: as AtariEnv's, but "numpy" by default.
        render_mode: as AtariEnv's, but None by default.
        **options: AtariEnv's other keywords.

    Raises:
        TypeError, ValueError, torch.OutOfMemoryError: as AtariEnv's.
    """
    return AtariEnv(game, num_envs, output=output, render_mode=render_mode, **options)


# What ale-py's single env does, which has no preprocessing.
_AS_ALE: dict[str, Any] = {
    "obs_type": "rgb",
    "reward_clipping": False,
    "noop_max": 0,
    "use_fire_reset": False,
    "reset_pool_size": 0,
}


def make_single_env(game: str, **options: Any) -> SingleAtariEnv:
    """Makes an env for gymnasium.make, without preprocessing, as ale-py's single env.

    By default it has whole screens, unclipped scores and no no-ops, and each reset is emulated.

    Args:
        game: as AtariEnv's.
        **options: SingleAtariEnv's keywords.

    Raises:
        TypeError, ValueError: as SingleAtariEnv's.
    """
    return SingleAtariEnv(game, **(_AS_ALE | options))


# gymnasium.make looks here for the render modes that it has to add, such as "rgb_array_list".
make_single_env.metadata = SingleAtariEnv.metadata  # type: ignore[attr-defined]


def register_envs() -> None:
    """Registers each game with gymnasium. Importing cule calls this, and once is enough.

    `cule/<Game>-v5`, for make_vec and make, means what `ALE/<Game>-v5` does; the older ids, such as
    `cule/<Game>NoFrameskip-v4`, are for make and mean the same as ale-py's ids of these names (see
    cule.facts.names). `cule/<Game>Preprocessed-v5`, for both, is AtariEnv with its defaults.
    """
    plain = "cule.single_env:SingleAtariEnv"
    single, many = "cule.registration:make_single_env", "cule.registration:make_vector_env"
    specs = []
    for game in games():
        kwargs = {"game": game.name}
        name = f"cule/{game.ale_id}"
        meant = {**kwargs, **take_apart(f"{name}-v5").meaning}
        specs += [
            EnvSpec(f"{name}-v5", single, vector_entry_point=many, kwargs=meant),
            EnvSpec(f"{name}Preprocessed-v5", plain, vector_entry_point=many, kwargs=kwargs),
        ]
        specs += [
            EnvSpec(f"cule/{older}", plain, kwargs=kwargs | _AS_ALE | meaning)
            for older, meaning in older_ids(game.ale_id)
        ]
    # gymnasium.register would take half a second instead of 20 ms, as for each id it goes through
    # all registered ones.
    for spec in specs:
        gymnasium.registry.setdefault(spec.id, spec)

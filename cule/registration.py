"""cule's envs in gymnasium's registry, and the usual set of games."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
from gymnasium.envs.registration import EnvSpec

from cule.names import older_ids
from cule.rom import games
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
    """What gymnasium.make_vec makes: an AtariEnv of arrays, as gymnasium's wrappers expect.

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


# ale-py's single env has no preprocessing: whole screens, unclipped scores, no no-ops, and each
# reset is emulated.
_AS_ALE = {
    "obs_type": "rgb",
    "reward_clipping": False,
    "noop_max": 0,
    "use_fire_reset": False,
    "reset_pool_size": 0,
}


def register_envs() -> None:
    """Registers each game with gymnasium. Importing cule calls this, and once is enough.

    `cule/<Game>-v5`, for make_vec and make, is AtariEnv with its defaults. The older ids, such as
    `cule/<Game>NoFrameskip-v4`, are for make and mean the same as ale-py's ids of these names (see
    cule.names).
    """
    entry_point = "cule.single_env:SingleAtariEnv"
    specs = []
    for game in games():
        vector_entry_point = "cule.registration:make_vector_env"
        name = f"cule/{game.ale_id}-v5"
        kwargs = {"game": game.name}
        specs.append(
            EnvSpec(name, entry_point, vector_entry_point=vector_entry_point, kwargs=kwargs)
        )
        for name, meaning in older_ids(game.ale_id):
            specs.append(
                EnvSpec(
                    f"cule/{name}", entry_point, kwargs={"game": game.name, **_AS_ALE, **meaning}
                )
            )
    # gymnasium.register would take half a second instead of 20 ms, as for each id it goes through
    # all registered ones.
    for spec in specs:
        gymnasium.registry.setdefault(spec.id, spec)

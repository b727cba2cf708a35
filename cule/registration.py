"""cule's envs in gymnasium's registry, and the customary set of games."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
from gymnasium.envs.registration import EnvSpec

from cule.names import older_ids
from cule.rom import games
from cule.vector_env import AtariEnv

# The games of "Rainbow" (Hessel et al., 2017) and later papers.
ATARI_57 = (
    "alien", "amidar", "assault", "asterix", "asteroids", "atlantis", "bank_heist", "battle_zone", "beam_rider",
    "berzerk", "bowling", "boxing", "breakout", "centipede", "chopper_command", "crazy_climber", "defender",
    "demon_attack", "double_dunk", "enduro", "fishing_derby", "freeway", "frostbite", "gopher", "gravitar", "hero",
    "ice_hockey", "jamesbond", "kangaroo", "krull", "kung_fu_master", "montezuma_revenge", "ms_pacman",
    "name_this_game", "phoenix", "pitfall", "pong", "private_eye", "qbert", "riverraid", "road_runner", "robotank",
    "seaquest", "skiing", "solaris", "space_invaders", "star_gunner", "surround", "tennis", "time_pilot", "tutankham",
    "up_n_down", "venture", "video_pinball", "wizard_of_wor", "yars_revenge", "zaxxon",
)  # fmt: skip


def make_vector_env(
    game: str,
    num_envs: int = 1,
    *,
    output: Literal["torch", "numpy"] = "numpy",
    render_mode: Literal["mosaic", "rgb_array", "rgb_array_list", "human"] | None = None,
    **options: Any,
) -> AtariEnv:
    """What gymnasium.make_vec makes: an AtariEnv whose output are arrays, as gymnasium's wrappers expect.

    Args:
        game: as AtariEnv's.
        num_envs: as AtariEnv's.
        output: as AtariEnv's, but "numpy" unless "torch" is asked for.
        render_mode: as AtariEnv's, but None unless another one is asked for.
        **options: AtariEnv's other keywords.

    Raises:
        TypeError, ValueError, torch.OutOfMemoryError: as AtariEnv's.
    """
    return AtariEnv(game, num_envs, output=output, render_mode=render_mode, **options)


# What ale-py's single env does and AtariEnv's preprocessing does not: raw screens and scores, and episodes that start
# where the game does, each emulated.
_AS_ALE = {"obs_type": "rgb", "reward_clipping": False, "noop_max": 0, "use_fire_reset": False, "reset_pool_size": 0}


def register_envs() -> None:
    """Registers each game for gymnasium. Once is enough; cule does it when it is imported.

    `cule/<Game>-v5`, for make_vec and make, is AtariEnv with its defaults. The older ids, for make, such as
    `cule/<Game>NoFrameskip-v4`, are what ale-py's ids of these names are: cule.names has what they mean.
    """
    entry_point = "cule.single_env:SingleAtariEnv"
    specs = []
    for game in games():
        vector_entry_point = "cule.registration:make_vector_env"
        name = f"cule/{game.ale_id}-v5"
        specs.append(
            EnvSpec(name, entry_point, vector_entry_point=vector_entry_point, kwargs={"game": game.name})
        )  # fmt: skip
        for name, meaning in older_ids(game.ale_id):
            specs.append(EnvSpec(f"cule/{name}", entry_point, kwargs={"game": game.name, **_AS_ALE, **meaning}))
    # gymnasium.register looks through all that is registered for each one: half a second, in place of 20 ms.
    for spec in specs:
        gymnasium.registry.setdefault(spec.id, spec)

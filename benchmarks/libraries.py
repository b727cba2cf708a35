"""The libraries with which cule's envs are tried: the one list of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Library:
    """A library, or one of the ways into it.

    Attributes:
        name: its own.
        module: what is imported, by which its version is found, too.
        what: what is used of it; without a script, why it does not work, or was not tried.
        script: in examples/with, the script that uses it; None: there is none.
        slow: whether the script takes longer than a test may.
    """

    name: str
    module: str
    what: str
    script: str | None = None
    slow: bool = False


LIBRARIES = (
    Library("gymnasium", "gymnasium", "`make_vec`, `RecordEpisodeStatistics`, `NumpyToTorch`",
            "with_gymnasium.py"),
    Library("TorchRL", "torchrl", "`AtariTorchRLEnv` in a collector, tensors on the device",
            "with_torchrl.py"),
    Library("TorchRL, GymEnv", "torchrl", "`GymEnv` with an id: a process for each env",
            "with_torchrl_gymenv.py", slow=True),
    Library("skrl", "skrl", "`wrap_env` finds out by itself; tensors on the device",
            "with_skrl.py"),
    Library("stable-baselines3", "stable_baselines3", "PPO on `AtariVecEnv`; arrays on the host",
            "with_stable_baselines3.py", slow=True),
    Library("RL-Zoo", "rl_zoo3", "its training script with an id and its settings for Atari",
            "with_rl_zoo.py", slow=True),
    Library("RLlib", "ray", "PPO of the new API stack, a vector entry point, and a connector",
            "with_rllib.py", slow=True),
    Library("CleanRL", "gym", "`ppo_atari_envpool.py` as it is, with `envpool_v0` in EnvPool's "
            "place (gym 0.23.1)", "with_cleanrl.py", slow=True),
    Library("Tianshou", "tianshou", "its collector and `DummyVectorEnv`, which steps single envs",
            "with_tianshou.py", slow=True),
    Library("rl_games", "rl_games", "PPO on a vector env; tensors stay on the device",
            "with_rl_games.py", slow=True),
    Library("rejax", "rejax", "PPO in one compiled program, on the pure functions of "
            "`cule.adapters.jax`", "with_rejax.py", slow=True),
    Library("Sample Factory", "sample_factory", "no: its newest release asks for gymnasium below "
            "1.0, cule for 1.1; with a newer one it takes several envs for one agent and fails"),
    Library("PufferLib 3", "pufferlib", "not tried: it is built on the user's machine, from files "
            "that its build downloads; without those (`NO_OCEAN=1`) the build fails by itself"),
    Library("PufferLib 4", "pufferlib", "not tried: it is not on PyPI"),
    Library("Dopamine", "dopamine", "no: it cannot be imported without the package `baselines`, "
            "nor with the newest JAX"),
    Library("Stoix", "stoix", "not tried: it is not on PyPI"),
)  # fmt: skip

# The module of each library, by its name.
MODULES = {library.name: library.module for library in LIBRARIES}


def table(found: Mapping[str, tuple[str, str]]) -> str:
    """The table of docs/migrating.md.

    Args:
        found: for each library with a script, its version and its frames a second.
    """
    lines = ["| library | version | FPS | what is used, or why not | script |",
             "|---|---|---:|---|---|"]  # fmt: skip
    for library in LIBRARIES:
        path = f"../examples/with/{library.script}"
        link = "-" if library.script is None else f"[{library.script}]({path})"
        version, fps = found.get(library.name, ("-", "-"))
        lines.append(f"| {library.name} | {version} | {fps} | {library.what} | {link} |")
    return "".join(f"{line}\n" for line in lines)

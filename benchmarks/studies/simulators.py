"""One program, stable-baselines3's PPO, with simulators of many kinds (appendix B.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.studies.baselines import learn, maker, marks_of, vec_env
from benchmarks.studies.case import Case, Iterated, Options

_PROGRAM = "stable_baselines3"


def by_cule(num_envs: int, device: str = "cpu") -> Any:
    """Pong by cule, whose observations are arrays."""
    import cule

    return cule.AtariEnv("pong", num_envs, device, output="numpy", num_threads=1)


def by_ale(num_envs: int) -> Any:
    """Pong by ale-py's vectorized envs."""
    import ale_py

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    return ale_py.AtariVectorEnv("pong", num_envs, num_threads=1)


def by_envpool(num_envs: int) -> Any:
    """Pong by EnvPool."""
    import envpool

    return envpool.make_gymnasium("Pong-v5", num_envs=num_envs, num_threads=1)


def case_of(
    simulator: str, task: str, policy: str, make: Callable[[int], Any],
    needs: tuple[str, ...] = (), boundaries: tuple[str, ...] = (),
    on: tuple[str, ...] = ("cpu", "cuda"),
) -> Case:  # fmt: skip
    """A case: PPO on the envs that `make(num_envs)` makes."""

    def train(options: Options, iterated: Iterated) -> None:
        import stable_baselines3

        steps = options.num_envs * options.num_steps
        model = stable_baselines3.PPO(
            policy, vec_env(make(options.num_envs)), n_steps=options.num_steps,
            batch_size=steps // options.minibatches, n_epochs=options.epochs,
            device=options.device,
        )  # fmt: skip
        learn(model, iterated, steps)

    says = {"system": "stable-baselines3", "simulator": simulator, "task": task}
    return Case(train, says, marks_of("PPO"), (_PROGRAM, *needs), boundaries, on=on)


_CNN, _MLP = "CnnPolicy", "MlpPolicy"
_CLASSIC = "gymnasium.envs.classic_control"
CASES = {
    "cule": case_of("cule", "pong", _CNN, by_cule),
    "cule on the GPU": case_of("cule on the GPU", "pong", _CNN,
                               lambda num_envs: by_cule(num_envs, "cuda"), on=("cuda",)),
    "ale-py": case_of("ale-py", "pong", _CNN, by_ale, ("ale_py",)),
    "EnvPool": case_of("EnvPool", "pong", _CNN, by_envpool, ("envpool",)),
    "CartPole": case_of("gymnasium", "CartPole-v1", _MLP, maker("CartPole-v1"),
                        boundaries=(f"{_CLASSIC}.cartpole",)),
    "Pendulum": case_of("gymnasium", "Pendulum-v1", _MLP, maker("Pendulum-v1"),
                        boundaries=(f"{_CLASSIC}.pendulum",)),
    "MuJoCo": case_of("MuJoCo", "Walker2d-v5", _MLP, maker("Walker2d-v5"), ("mujoco",),
                      ("mujoco",)),
}  # fmt: skip

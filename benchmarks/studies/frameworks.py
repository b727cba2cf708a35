"""PPO by several libraries, each eager, compiled, or with CUDA graphs where it can (section 4.1).

The programs are those of benchmarks.peers: one setting, the same envs of cule, the same network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks.peers import cleanrl, rl_games, rllib, systems, torchrl
from benchmarks.peers.setting import Setting
from benchmarks.studies.baselines import marks_of
from benchmarks.studies.case import Case, Iterated, Options
from benchmarks.studies.marks import BACKPROPAGATION, INFERENCE, SIMULATION, Mark

ATARI = Mark("cule.vector_env:AtariEnv.step", SIMULATION)
CLEANRL = (
    ATARI,
    Mark("benchmarks.peers.cleanrl:Agent.get_action_and_value", INFERENCE),
    # Of the state after the rollout, with which the script begins to learn.
    Mark("benchmarks.peers.cleanrl:Agent.get_value", BACKPROPAGATION, to_end=True),
)
_ACTOR = "tensordict.nn:ProbabilisticTensorDictSequential"
TORCHRL = (
    Mark("torchrl.envs.common:EnvBase.step_and_maybe_reset", SIMULATION),
    Mark("torchrl.trainers.trainers:Trainer.optim_steps", BACKPROPAGATION),
)
TORCHRL_EAGER = (*TORCHRL, Mark(f"{_ACTOR}.forward", INFERENCE))
TORCHRL_OTHERS = (
    *TORCHRL,
    Mark("torchrl.collectors._single:Collector._compile_wrapped_policy", INFERENCE, returned=True),
)
RLLIB = (
    Mark("ray.rllib.env.env_runner:EnvRunner._try_env_step", SIMULATION),
    Mark("ray.rllib.core.rl_module.torch.torch_rl_module:TorchRLModule.forward_exploration",
         INFERENCE),
    Mark("ray.rllib.core.learner.learner:Learner.update", BACKPROPAGATION),
)  # fmt: skip
_A2C = "rl_games.common.a2c_common:A2CBase"
_DISCRETE = "rl_games.common.a2c_common:DiscreteA2CBase"
RL_GAMES = (
    Mark(f"{_A2C}.env_step", SIMULATION),
    Mark(f"{_A2C}.get_action_values", INFERENCE),
    Mark(f"{_A2C}.get_values", INFERENCE),
    Mark(f"{_A2C}.discount_values", BACKPROPAGATION),
    Mark(f"{_DISCRETE}.prepare_dataset", BACKPROPAGATION),
    Mark("rl_games.algos_torch.a2c_discrete:DiscreteA2CAgent.train_actor_critic", BACKPROPAGATION),
)


def names_of_cule(name: str) -> str:
    """The operation of those of cule.train: what is neither played nor stored is learned."""
    if name in (INFERENCE, SIMULATION):
        return name
    around = ("playing", "storage", "handing over", "(unattributed)")
    return "(unattributed)" if name in around else BACKPROPAGATION


def setting_of(options: Options) -> Setting:
    """The setting of benchmarks.peers."""
    setting = Setting(
        device=options.device, num_envs=options.num_envs, num_steps=options.num_steps,
        epochs=options.epochs, cleanrl=options.cleanrl,
    )  # fmt: skip
    return replace(setting, minibatch=max(1, setting.steps // options.minibatches))


def case_of(
    system: str, way: str, run: Callable[..., None], needs: tuple[str, ...] = (), marks: Any = (),
    on: tuple[str, ...] = ("cpu", "cuda"), **more: Any,
) -> Case:  # fmt: skip
    """A case.

    Args:
        system: whose program.
        way: "eager", "compiled" or "CUDA graphs".
        run: of benchmarks.peers.
        needs: see Case.
        marks: see Case.
        on: see Case.
        more: keywords of `run`.
    """

    def train(options: Options, iterated: Iterated) -> None:
        run(setting_of(options), iterated, **more)

    names = names_of_cule if system == "cule.train" else str
    return Case(train, {"system": system, "way": way}, marks, needs, names=names, on=on)


EAGER, COMPILED, GRAPHS = "eager", "compiled", "CUDA graphs"
_GPU = ("cuda",)
_ALL = (
    case_of("cule.train", EAGER, systems.by_cule, cuda_graphs=False),
    case_of("cule.train", COMPILED, systems.by_cule, cuda_graphs=False, compile=True),
    case_of("cule.train", GRAPHS, systems.by_cule, on=_GPU),
    case_of("CleanRL", EAGER, cleanrl.run, marks=CLEANRL),
    case_of("stable-baselines3", EAGER, systems.by_stable_baselines3, ("stable_baselines3",),
            marks_of("PPO")),
    case_of("TorchRL", EAGER, torchrl.run, ("torchrl",), TORCHRL_EAGER),
    case_of("TorchRL", COMPILED, torchrl.run, ("torchrl",), TORCHRL_OTHERS, compile=True),
    case_of("TorchRL", GRAPHS, torchrl.run, ("torchrl",), TORCHRL_OTHERS, _GPU, graphs=True),
    case_of("RLlib", EAGER, rllib.run, ("ray",), RLLIB),
    case_of("RLlib", COMPILED, rllib.run, ("ray",), RLLIB, compile=True),
    case_of("rl_games", EAGER, rl_games.run, ("rl_games",), RL_GAMES, compile=False),
    case_of("rl_games", COMPILED, rl_games.run, ("rl_games",), RL_GAMES),
    case_of("rl_games", GRAPHS, rl_games.run, ("rl_games",), RL_GAMES, _GPU,
            compile="reduce-overhead"),
)  # fmt: skip
CASES = {f"{case.says['system']}, {case.says['way']}": case for case in _ALL}

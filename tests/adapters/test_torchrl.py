"""The TorchRL adapter, with TorchRL's own checker, transforms and collector."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest
import torch
from torchrl.collectors import Collector
from torchrl.envs import GymEnv, GymWrapper, RewardSum, SerialEnv, StepCounter, TransformedEnv
from torchrl.envs.utils import RandomPolicy, check_env_specs

import cule
from cule.adapters.torchrl import AtariTorchRLEnv

OPTIONS: dict[str, Any] = {"num_threads": 1, "reset_pool_size": 2}


def make(device: str, game: Any = "breakout", num_envs: int = 3, **options: Any) -> AtariTorchRLEnv:
    return AtariTorchRLEnv(game, num_envs, device, **(OPTIONS | options))


@pytest.mark.parametrize(
    "options",
    [{}, {"obs_type": "ram"}, {"continuous": True}, {"grayscale": False, "stack_num": 1}],
    ids=str,
)
def test_env_passes_the_checker(options: dict[str, Any], device: str) -> None:
    check_env_specs(make(device, **options), seed=0, break_when_any_done="both")


def test_rollout_is_what_the_env_plays(device: str) -> None:
    """A rollout equals what AtariEnv returns if envs are reset one by one when they are done."""
    options = {"max_num_frames_per_episode": 60, "reset_pool_size": 0, "noop_max": 20}
    ours = make(device, **options)
    ours.set_seed(4)
    data = ours.rollout(40, break_when_any_done=False, policy=RandomPolicy(ours.action_spec))
    assert data.batch_size == (3, 40)
    assert data.device == ours.atari.device
    plain = cule.AtariEnv(
        "breakout", 3, device=device, num_threads=1, autoreset_mode="Disabled", **options
    )
    obs, _ = plain.reset(seed=4)
    for step in range(40):
        row = data[:, step]
        assert torch.equal(row["pixels"], obs)
        obs, reward, terminated, truncated, info = plain.step(row["action"])
        assert torch.equal(row["next", "pixels"], obs)
        assert torch.equal(row["next", "reward"][:, 0], reward.float())
        assert torch.equal(row["next", "truncated"][:, 0], truncated)
        assert torch.equal(row["next", "terminated"][:, 0], terminated)
        assert torch.equal(row["next", "lives"][:, 0], info["lives"])
        done = terminated | truncated
        if done.any():
            obs, _ = plain.reset(options={"reset_mask": done})
    assert data["next", "truncated"].sum() >= 6


def test_collector_gathers_on_the_device(device: str) -> None:
    env = TransformedEnv(make(device, max_num_frames_per_episode=60), RewardSum())
    env.append_transform(StepCounter())
    policy = RandomPolicy(env.action_spec)
    collector = Collector(env, policy, frames_per_batch=60, total_frames=180, device=device)
    batches = list(collector)
    assert len(batches) == 3
    for batch in batches:
        assert batch.numel() == 60
        assert batch["pixels"].device.type == device
        assert batch["next", "step_count"].max() <= 15
    assert batches[-1]["next", "done"].any()
    collector.shutdown()


@pytest.mark.parametrize("option", [{"output": "numpy"}, {"autoreset_mode": "NextStep"}], ids=str)
def test_keywords_that_the_adapter_sets_are_refused(option: dict[str, Any]) -> None:
    (name,) = option
    with pytest.raises(
        TypeError, match=f"^expected no {name} for AtariTorchRLEnv, as .*, got '{option[name]}'$"
    ):
        make("cpu", **option)


def test_closed_env_frees_the_consoles() -> None:
    env = make("cpu")
    assert not env.is_closed
    env.reset()
    assert not TransformedEnv(env, RewardSum()).is_closed
    env.close()
    assert env.is_closed and env.atari.closed
    env.close()


# TorchRL's own doors ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
def test_torchrls_wrapper_takes_vector_envs(mode: str) -> None:
    """Rewards are the env's, whatever the infos have."""
    options = OPTIONS | {"device": "cpu", "max_num_frames_per_episode": 60, "noop_max": 8}
    name = "cule/PongPreprocessed-v5"
    env = GymWrapper(gymnasium.make_vec(name, num_envs=2, autoreset_mode=mode, **options))
    if mode == "Disabled":  # otherwise TorchRL does this by itself
        env.auto_register_info_dict()
    check_env_specs(env)
    env.set_seed(0)
    data = env.rollout(40, break_when_any_done=False)
    assert data.batch_size == (2, 40)
    assert data["next", "done"].sum() >= 4
    rewards = data["next", "reward"]
    assert rewards.shape == (2, 40, 1)
    assert rewards.dtype == torch.float32
    assert torch.equal(data["next", "raw_reward"].sign(), rewards[..., 0])


def test_torchrls_wrapper_of_tensors_keeps_to_its_specs(device: str) -> None:
    """It converts arrays to the type of its spec, but not tensors."""
    options = OPTIONS | {"max_num_frames_per_episode": 60}
    atari = cule.AtariEnv("breakout", 2, device, autoreset_mode="Disabled", **options)
    env = GymWrapper(atari, device=device)
    check_env_specs(env)
    rewards = env.rollout(3)["next", "reward"]
    assert (rewards.shape, rewards.dtype) == ((2, 3, 1), env.reward_spec.dtype)


def test_torchrls_env_takes_the_id() -> None:
    data = SerialEnv(2, lambda: GymEnv("cule/Pong-v5", frameskip=2)).rollout(5)
    assert data["pixels"].shape == (2, 5, 210, 160, 3)
    assert data["next", "reward"].shape == (2, 5, 1)
    (batch,) = Collector(lambda: GymEnv("cule/Pong-v5"), None, frames_per_batch=6, total_frames=6)
    assert batch["next", "reward"].shape == (6, 1)


@pytest.mark.slow
def test_torchrls_env_takes_the_id_in_processes() -> None:
    """The part before the colon is what gymnasium imports in each process."""
    env = GymEnv("cule:cule/Pong-v5", num_envs=2)
    check_env_specs(env)
    data = env.rollout(5)
    env.close()
    assert data["next", "reward"].shape == (2, 5, 1)
    assert torch.equal(data["next", "raw_reward"], data["next", "reward"][..., 0])


def test_torchrls_wrapper_refuses_tensors_that_change() -> None:
    env = cule.AtariEnv("pong", 2, "cpu", autoreset_mode="Disabled", output="torch_shared")
    with pytest.raises(ValueError, match="expected an env with output='torch' in torchrl's"):
        GymWrapper(env).rollout(2)

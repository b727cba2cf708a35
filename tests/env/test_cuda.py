"""What only a GPU can show: graphs, streams, several GPUs, no allocation, no waiting, and wrong
devices."""

from __future__ import annotations

import gc
import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from rollouts import actions_of, digest, make, outputs, same

import cule

pytestmark = pytest.mark.gpu
two_gpus = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")

# Episodes of 60 frames, so that resets are tested, too.
SHORT_EPISODES: dict[str, Any] = {
    "max_num_frames_per_episode": 60,
    "repeat_action_probability": 0.25,
}
OPTIONS: list[dict[str, Any]] = [
    {}, {"autoreset_mode": "SameStep"}, {"autoreset_mode": "Disabled"}, {"reset_pool_size": 0},
    {"grayscale": False},
    {"obs_type": "ram"},
]  # fmt: skip


def started(
    game: Any = "breakout", num_envs: int = 70, device: str = "cuda", **options: Any
) -> cule.AtariEnv:
    env = make(game, num_envs, device, **(SHORT_EPISODES | options))
    env.reset(seed=3)
    return env


def captured(call: Callable[[], Any]) -> tuple[torch.cuda.CUDAGraph, Any]:
    """A graph of the call, and what it returned. It would be an error to wait for the device."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = call()
    return graph, results


# Graphs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [*OPTIONS, {"output": "torch_shared"}], ids=str)
@pytest.mark.parametrize(
    "game", ["breakout", "pitfall2", ["pong", "ms_pacman", "air_raid"]], ids=str
)
def test_replayed_graph_of_a_step_is_the_step(game: Any, options: dict[str, Any]) -> None:
    eager = started(game, **options)
    env = started(game, **options)
    rows = actions_of(env, 40)
    actions = rows[0].clone()
    graph, results = captured(lambda: env.step(actions))
    env.reset(seed=3)
    endings = 0
    for step, row in enumerate(rows):
        actions.copy_(row)
        graph.replay()
        expected = eager.step(row)
        assert same(outputs(env, results), outputs(eager, expected)), step
        endings += int(expected[3].sum())
    assert endings >= env.num_envs


def test_replayed_graph_takes_continuous_actions_and_player_b() -> None:
    eager, env = (started("pong", continuous=True) for _ in range(2))
    generator = torch.Generator("cuda").manual_seed(0)
    actions = torch.rand((env.num_envs, 3), device="cuda", generator=generator)
    b = torch.zeros(env.num_envs, dtype=torch.int64, device="cuda")
    graph, results = captured(lambda: env.step(actions, player_b_actions=b))
    env.reset(seed=3)
    for step in range(25):
        actions.uniform_(generator=generator)
        actions[:, 1].mul_(6.28).sub_(3.14)
        b.random_(0, len(cule.ACTIONS), generator=generator)
        graph.replay()
        assert same(
            outputs(env, results), outputs(eager, eager.step(actions, player_b_actions=b))
        ), step


@pytest.mark.parametrize("size", [0, 6])
def test_replayed_graph_of_a_masked_reset_is_the_reset(size: int) -> None:
    eager, env = (started(reset_pool_size=size) for _ in range(2))
    mask = torch.zeros(env.num_envs, dtype=torch.bool, device="cuda")
    graph, (obs, info) = captured(lambda: env.reset(options={"reset_mask": mask}))
    env.reset(seed=3)
    generator = torch.Generator("cuda").manual_seed(0)
    for row in actions_of(env, 20):
        mask.copy_(torch.rand(env.num_envs, device="cuda", generator=generator) < 0.3)
        graph.replay()
        expected, expected_info = eager.reset(options={"reset_mask": mask.clone()})
        assert torch.equal(obs, expected)
        assert all(torch.equal(info[key], expected_info[key]) for key in info)
        assert same(digest(env, row[None]), digest(eager, row[None]))


# Nothing hidden -----------------------------------------------------------------------------------


@contextmanager
def waiting_is_an_error() -> Iterator[None]:
    """Makes torch raise an error if it waits. For the launches, the graphs above do so."""
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def allocations() -> tuple[int, int]:
    """How many tensors have been allocated so far, and how much memory was taken from the
    driver."""
    stats = torch.cuda.memory_stats()
    return stats["allocation.all.allocated"], stats["segment.all.allocated"]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_step_of_shared_tensors_allocates_nothing(options: dict[str, Any]) -> None:
    env = started("pong", output="torch_shared", **options)
    rows = actions_of(env, 40)
    b = torch.zeros_like(rows[0])
    env.step(rows[0], player_b_actions=b)
    before = allocations()
    for row in rows:
        env.step(row, player_b_actions=b)
    assert allocations() == before


def test_masked_reset_of_shared_tensors_allocates_nothing() -> None:
    env = started(output="torch_shared")
    masks = torch.rand((10, env.num_envs), device="cuda") < 0.5
    env.reset(options={"reset_mask": masks[0]})
    before = allocations()
    for mask in masks:
        env.reset(options={"reset_mask": mask})
    assert allocations() == before


@pytest.mark.parametrize("options", [{"continuous": True}, {"autoreset_mode": "SameStep"}], ids=str)
def test_step_takes_no_memory_from_the_driver(options: dict[str, Any]) -> None:
    """torch computes continuous actions and makes new results in memory that it has already."""
    env = started(**options)
    actions = (
        torch.rand((env.num_envs, 3), device="cuda") if env.continuous else actions_of(env, 1)[0]
    )
    for _ in range(3):
        env.step(actions)
    _, before = allocations()
    for _ in range(40):
        env.step(actions)
    assert allocations()[1] == before


@pytest.mark.parametrize("options", [*OPTIONS, {"continuous": True}], ids=str)
def test_step_and_masked_reset_do_not_wait_for_the_device(options: dict[str, Any]) -> None:
    env = started("pong", **options)
    rows = (
        torch.rand((20, env.num_envs, 3), device="cuda") if env.continuous else actions_of(env, 20)
    )
    mask = torch.arange(env.num_envs, device="cuda") % 3 == 0
    b = torch.ones(env.num_envs, dtype=torch.int64, device="cuda")
    kept = env.get_ram().clone()
    with waiting_is_an_error():
        for row in rows:
            env.step(row)
            env.step(row, player_b_actions=b)
            env.reset(options={"reset_mask": mask})
    assert not torch.equal(env.get_ram(), kept)


def test_cloned_state_stays_on_the_device() -> None:
    env = started()
    digest(env, actions_of(env, 5))
    state = env.clone_state()
    assert {tensor.device.type for tensor in state.tensors.values()} == {"cuda"}


# Streams and GPUs ---------------------------------------------------------------------------------


def test_envs_on_two_streams_do_not_meet() -> None:
    """Nothing waits until both envs are done."""
    games = (("breakout", 300), ("pitfall2", 200))
    alone = []
    for game, count in games:
        env = started(game, count)
        alone.append(digest(env, actions_of(env, 30)))
    envs = [started(game, count) for game, count in games]
    rows = [actions_of(env, 30) for env in envs]
    streams = [torch.cuda.Stream() for _ in envs]
    for stream in streams:
        stream.wait_stream(torch.cuda.current_stream())
    seen: list[list[tuple[torch.Tensor, ...]]] = [[], []]
    for step, i in itertools.product(range(30), range(2)):
        with torch.cuda.stream(streams[i]):
            obs, reward, terminated, truncated, info = envs[i].step(rows[i][step])
            values = (
                obs,
                reward,
                terminated,
                truncated,
                *(value for _, value in sorted(info.items())),
            )
            seen[i].append(tuple(value.clone() for value in (*values, envs[i].get_ram())))
    torch.cuda.synchronize()
    for ours, theirs in zip(seen, alone, strict=True):
        assert same([value.cpu() for values in ours for value in values], theirs)


def test_env_moves_from_stream_to_stream() -> None:
    env, still = started(), started()
    rows = actions_of(env, 12)
    expected = digest(still, rows)
    seen = []
    for row in rows:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            seen += outputs(env, env.step(row))
        torch.cuda.current_stream().wait_stream(stream)
    assert same(seen, expected)


def test_memory_of_a_closed_env_is_not_given_away_while_a_stream_still_steps() -> None:
    env = started(num_envs=1024)
    actions, side = actions_of(env, 1)[0], torch.cuda.Stream()
    size = env.engine.tensors["observations"].numel()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(500_000_000)  # a quarter of a second
        env.step(actions)
    env.close()
    del env
    # Tensors of the default stream, as large as the observations, until the allocator has none of
    # that size left.
    taken = [torch.full((size,), 7, dtype=torch.uint8, device="cuda") for _ in range(8)]
    torch.cuda.synchronize()
    assert all(bool((tensor == 7).all()) for tensor in taken)


@two_gpus
def test_envs_on_two_gpus_do_not_meet() -> None:
    """Their steps alternate, and torch's current GPU does not change."""
    games = ("breakout", "pitfall2")
    alone = []
    for game in games:
        env = started(game, 40, "cpu")
        alone.append(digest(env, actions_of(env, 20)))
    envs = [started(game, 40, f"cuda:{i}") for i, game in enumerate(games)]
    rows = [actions_of(env, 20) for env in envs]
    together: list[list[torch.Tensor]] = [[], []]
    for step in range(20):
        current = step % 3 % 2
        with torch.cuda.device(current):
            for env, actions, seen in zip(envs, rows, together, strict=True):
                results = env.step(actions[step])
                assert torch.cuda.current_device() == current
                assert results[0].device == env.device
                seen += outputs(env, results)
    for game, ours, theirs in zip(games, together, alone, strict=True):
        assert same(ours, theirs), game


@two_gpus
def test_state_goes_from_gpu_to_gpu() -> None:
    source, target = (started(device=f"cuda:{i}") for i in range(2))
    rows = actions_of(source, 20)
    digest(source, rows[:10])
    target.restore_state(source.clone_state())
    assert same(digest(source, rows[10:]), digest(target, rows[10:].to("cuda:1")))


@two_gpus
def test_actions_on_another_gpu_are_refused() -> None:
    env = started(device="cuda:1")
    with pytest.raises(ValueError, match="expected actions on cuda:1, got a tensor on cuda:0"):
        env.step(torch.zeros(env.num_envs, dtype=torch.int64, device="cuda:0"))


def test_cuda_env_goes_on_from_a_state_of_a_cpu_env() -> None:
    source, target = (started(device=device, num_envs=9) for device in ("cpu", "cuda"))
    rows = actions_of(source, 40)
    digest(source, rows[:15])
    target.restore_state(source.clone_state())
    assert same(digest(source, rows[15:]), digest(target, rows[15:].cuda()))


@pytest.mark.parametrize(("height", "width"), [(1, 1), (7, 5), (84, 83), (210, 160)])
@pytest.mark.parametrize(
    "options", [{"stack_num": 1}, {"stack_num": 3, "grayscale": False}], ids=str
)
def test_observations_of_any_size_are_those_of_the_cpu(
    height: int, width: int, options: dict[str, Any]
) -> None:
    """So are final observations, and observations that are not a whole number of words."""
    sized: dict[str, Any] = {
        "img_height": height,
        "img_width": width,
        "autoreset_mode": "SameStep",
        **options,
    }
    cpu, cuda = (started("ms_pacman", 9, device, **sized) for device in ("cpu", "cuda"))
    for row in actions_of(cpu, 40):
        expected, obs = cpu.step(row), cuda.step(row.cuda())
        assert torch.equal(obs[0].cpu(), expected[0])
        done = expected[2] | expected[3]
        if done.any():
            assert torch.equal(obs[4]["final_obs"].cpu()[done], expected[4]["final_obs"][done])


# Mistakes -----------------------------------------------------------------------------------------


def test_gpu_that_is_not_there_is_refused() -> None:
    count = torch.cuda.device_count()
    for index in (count, 99):
        with pytest.raises(
            ValueError, match=rf"expected a CUDA device below cuda:{count}, got 'cuda:{index}'"
        ):
            make(device=f"cuda:{index}")


def test_tensors_on_the_wrong_device_are_refused() -> None:
    cpu, cuda = (started("pong", num_envs=2, device=device) for device in ("cpu", "cuda"))
    here = torch.zeros(2, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"expected actions on cuda:\d, got a tensor on cpu"):
        cuda.step(here)
    with pytest.raises(
        ValueError, match=r"expected player_b_actions on cuda:\d, got a tensor on cpu"
    ):
        cuda.step(here.cuda(), player_b_actions=here)
    with pytest.raises(ValueError, match=r"expected actions on cpu, got a tensor on cuda:\d"):
        cpu.step(here.cuda())
    continuous = started(num_envs=2, continuous=True)
    with pytest.raises(ValueError, match=r"expected actions on cuda:\d, got a tensor on cpu"):
        continuous.step(torch.zeros((2, 3)))
    cuda.step(here.cuda())


@pytest.mark.parametrize("wrong", [-1, 4, 18, 2**31 - 1, -(2**31)])
def test_wrong_action_on_the_device_is_a_no_op(wrong: int) -> None:
    """Breakout has four actions. Only the kernel looks at the values."""
    env, still = started(num_envs=2), started(num_envs=2)
    for _ in range(5):
        env.step(torch.full((2,), wrong, device="cuda"))
        still.step(torch.zeros(2, dtype=torch.int64, device="cuda"))
    assert torch.equal(env.get_ram(), still.get_ram())


def test_more_envs_than_the_gpu_holds_are_refused() -> None:
    """Memory that was allocated before the error is freed. The stacks alone are too large."""
    options: dict[str, Any] = {"device": "cuda", "stack_num": 10_000}
    bytes_per_env = make(num_envs=1, **options).engine.bytes_per_env
    gc.collect()
    allocated = torch.cuda.memory_allocated()
    count = torch.cuda.mem_get_info()[1] // (10_000 * 84 * 84) + 1
    with pytest.raises(
        torch.OutOfMemoryError, match=rf"the memory of cuda:\d, got {count}: "
    ) as raised:
        make(num_envs=count, **options)
    said = re.search(r"an env takes (\d+) bytes.* enough for (\d+) at most", str(raised.value))
    assert int(said[1]) == pytest.approx(bytes_per_env, rel=0.01)  # one alone has more spares
    assert 0 < int(said[2]) < count
    del raised
    gc.collect()
    assert torch.cuda.memory_allocated() == allocated
    digest(started(num_envs=2), torch.zeros((3, 2), dtype=torch.int64, device="cuda"))


def test_bytes_per_env_are_those_that_torch_allocates() -> None:
    few, many = 1_000, 3_000
    taken = []
    for count in (few, many):
        before = torch.cuda.memory_allocated()
        env = make(num_envs=count, device="cuda")
        taken.append(torch.cuda.memory_allocated() - before)
        bytes_per_env = env.engine.bytes_per_env
        del env
    assert (taken[1] - taken[0]) / (many - few) == pytest.approx(bytes_per_env, rel=0.01)

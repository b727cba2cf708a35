"""Tests of the peers that fail with cule in place of the peer's env, and why.

A test is named by its id, or by that of its function, class or file. A failure that is not listed
fails `python -m tests.peers`, and so does a listed test that passes.
"""

from __future__ import annotations

# Reasons that several tests have.
EXTRA_INFO = "info also has fault, reward and masks"
MESSAGE = "asks for a message's words"
NO_DM = 'there is no env_type="dm"'

PRIVATE = "uses a private attribute, and a message's words"
RENDER_MODE = "render_mode is rgb_array by default"
NOT_BY_ALE = "a state is no ALEState"
KIND_OF_ERROR = "an error is of a kind of RuntimeError"

_VECTOR = "tests/python/test_atari_vector_env.py::TestVectorEnv::"
_SINGLE = "tests/python/test_atari_env.py::"
_INTERFACE = "tests/python/test_python_interface.py::"
_ENVPOOL = "envpool/atari/atari_envpool_test.py::_AtariEnvPoolTest::"
_TORCHRL = "test/libs/test_envpool.py::TestEnvPool::"

EXPECTED_FAILURES: dict[str, dict[str, str]] = {
    "ale-vector": {
        f"{_VECTOR}test_obs_params_equivalence": EXTRA_INFO,
        f"{_VECTOR}test_continuous_equivalence": EXTRA_INFO,
        f"{_VECTOR}test_episodic_life_equivalence": EXTRA_INFO,
        f"{_VECTOR}test_same_step_autoreset_mode": EXTRA_INFO,
        f"{_VECTOR}test_invalid_reset_masks": MESSAGE,
    },
    "ale-vector-info": {f"{_VECTOR}test_invalid_reset_masks": MESSAGE},
    "ale-interface": {
        f"{_INTERFACE}test_get_ram": MESSAGE,
        f"{_INTERFACE}test_set_mode": KIND_OF_ERROR,
        f"{_INTERFACE}test_set_difficulty": KIND_OF_ERROR,
        f"{_INTERFACE}test_display_screen": "no window of its own",
    },
    "ale-env": {
        f"{_SINGLE}test_state_serialize_roundtrip": NOT_BY_ALE,
        f"{_SINGLE}test_gym_keys_to_action": PRIVATE,
    },
    "gymnasium-vector-wrappers": {
        "tests/wrappers/vector/test_human_rendering.py::test_render_modes": (
            "HumanRendering refuses lists of pictures"
        ),
    },
    "stable-baselines3": {
        "tests/test_vec_normalize.py::test_vec_env": RENDER_MODE,
        "tests/test_vec_check_nan.py::test_check_nan": "a step before the first reset is refused",
    },
    "torchrl": {
        f"{_TORCHRL}test_env_basic_operation": "a step before the first reset is refused",
        f"{_TORCHRL}test_multithread_env_shutdown": "a closed env is closed for good",
    },
    "envpool": {
        "envpool/atari/api_test.py::_SpecTest::test_spec": NO_DM,
        "envpool/atari/api_test.py::_SpecTest::test_seed_warning": NO_DM,
        "envpool/atari/api_test.py::_DMSyncTest": NO_DM,
        "envpool/atari/api_test.py::_GymSyncTest::test_lowlevel_step": (
            "actions are up to 5: Breakout has four, and cule checks"
        ),
        f"{_ENVPOOL}test_align": NO_DM,
        f"{_ENVPOOL}test_partial_step": "without batch_size, envs step together",
        f"{_ENVPOOL}test_xla_api": "JAX has its own adapter",
        f"{_ENVPOOL}test_xla_correctness": "JAX has its own adapter",
        "envpool/atari/atari_render_test.py::AtariRenderTest"
        "::test_render_succeeds_for_multiple_steps_for_all_tasks": ("PAL screens are whole"),
        "envpool/make_test.py::_MakeTest::test_make_atari": NO_DM,
    },
}

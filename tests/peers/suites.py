"""The suites: their repositories and tags, which of their tests are run, and what replaces the env.

A test applies if it tests something of the peer's Atari env, or of any env, that cule could have.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Suite:
    """One run of pytest.

    Attributes:
        name: by which `python -m tests.peers NAME` finds it.
        repository: on GitHub.
        tag: of the peer.
        files: what is run.
        stand_in: the module of `stand_ins` that puts cule in the place of the peer's env.
        helpers: files that the tests import.
        needs: modules that must be installed.
        left_out: tests that do not apply, by the beginning of their ids, with the reasons.
    """

    name: str
    repository: str
    tag: str
    files: tuple[str, ...]
    stand_in: str
    helpers: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)


ALE = ("Farama-Foundation/Arcade-Learning-Environment", "v0.12.1")
GYMNASIUM = ("Farama-Foundation/Gymnasium", "v1.3.0")
STABLE_BASELINES3 = ("DLR-RM/stable-baselines3", "v2.8.0")
TORCHRL = ("pytorch/rl", "v0.13.3")
ENVPOOL = ("sail-sg/envpool", "v1.2.4")

WRAPPER = "asks about the wrapper's own arguments"
NO_IMAGES, OF_CPP = "its policy is not for images", "asks EnvPool's C++ class"
CARTPOLE = "gives CartPole's own keyword, sutton_barto_reward"

OWN_ENVS = "asks for methods, spaces or episodes of the test's own env"

SUITES = (
    Suite("ale-vector", *ALE, ("tests/python/test_atari_vector_env.py",), "ale_vector"),
    Suite("ale-vector-info", *ALE, ("tests/python/test_atari_vector_env.py",), "ale_vector_info"),
    Suite(
        "ale-xla",
        *ALE,
        ("tests/python/test_atari_vector_xla.py",),
        "ale_xla",
        needs=("jax", "chex"),
    ),
    Suite(
        "ale-env",
        *ALE,
        ("tests/python/test_atari_env.py",),
        "ale_env",
        helpers=("tests/python/utils.py", "tests/resources"),
    ),
    Suite(
        "ale-interface",
        *ALE,
        ("tests/python/test_python_interface.py",),
        "ale_interface",
        helpers=("tests/python/utils.py", "tests/resources"),
    ),
    Suite(
        "gymnasium-vector-wrappers",
        *GYMNASIUM,
        ("tests/wrappers/vector",),
        "gymnasium_envs",
        helpers=("tests",),
        left_out={
            "tests/wrappers/vector/test_human_rendering.py::*Ant-v4]": "plays MuJoCo's Ant",
            "tests/wrappers/vector/test_vector_wrappers.py::*CarRacing*": "plays CarRacing",
            "tests/wrappers/vector/test_vector_wrappers.py::*CartPole-v1-RescaleObservation*": (
                "rescales to CartPole's bounds"
            ),
            "tests/wrappers/vector/test_vectorize_transform.py::test_vectorize_dict_to_box_obs": (
                "observes a dict"
            ),
            "tests/wrappers/vector/test_dict_info_to_list.py::test_usage_in_vector_env": (
                "asks what the wrapper says of a gymnasium.Env, which differs by version"
            ),
        },
    ),
    Suite(
        "gymnasium-make-vec",
        *GYMNASIUM,
        ("tests/envs/registration/test_make_vec.py",),
        "gymnasium_envs",
        helpers=("tests",),
        left_out={
            f"tests/envs/registration/test_make_vec.py::test_make_vec_with_spec[{spec}]": CARTPOLE
            for spec in (
                "CartPole-v1-kwargs8",
                "CartPole-v1-kwargs9",
                "env_id18-kwargs18",
                "env_id19-kwargs19",
            )
        },
    ),
    Suite(
        "gymnasium-atari-preprocessing",
        *GYMNASIUM,
        ("tests/wrappers/test_atari_preprocessing.py",),
        "ale_env",
        helpers=("tests",),
        left_out={"tests/wrappers/test_atari_preprocessing.py::test_screen_size": WRAPPER},
    ),
    Suite(
        "stable-baselines3",
        *STABLE_BASELINES3,
        (
            "tests/test_vec_envs.py",
            "tests/test_vec_monitor.py",
            "tests/test_vec_normalize.py",
            "tests/test_vec_check_nan.py",
        ),
        "stable_baselines3_vec_env",
        helpers=("tests/__init__.py",),
        needs=("pandas",),
        left_out={
            **{
                f"tests/test_vec_envs.py::test_{name}": OWN_ENVS
                for name in (
                    "vecenv_func_checker",
                    "vecenv_custom_calls",
                    "vecenv_terminal_obs",
                    "vecenv_single_space",
                    "vecenv_dict_spaces",
                    "vecenv_tuple_spaces",
                    "subproc_start_method",
                    "framestack_vecenv",
                    "vec_env_is_wrapped",
                    "vec_seeding",
                )
            },
            "tests/test_vec_monitor.py::test_vec_monitor_info_keywords": OWN_ENVS,
            "tests/test_vec_monitor.py::test_vec_monitor_ppo": OWN_ENVS,
            **{
                f"tests/test_vec_normalize.py::test_{name}": OWN_ENVS
                for name in (
                    "obs_rms_vec_normalize",
                    "vec_env[make_dict_env]",
                    "get_original",
                    "get_original_dict",
                    "normalize_external",
                    "normalize_dict_selected_keys",
                    "her_normalization",
                    "offpolicy_normalization",
                    "sync_vec_normalize",
                    "discrete_obs",
                    "non_dict_obs_keys",
                )
            },
            "tests/test_vec_normalize.py::test_runningmeanstd": "asks no env",
            "tests/test_vec_normalize.py::test_combining_stats": "asks no env",
        },
    ),
    Suite(
        "torchrl",
        *TORCHRL,
        ("test/libs/test_envpool.py",),
        "torchrl_env",
        needs=("torchrl",),
        left_out={
            "test/libs/test_envpool.py::TestEnvPool::test_lib": "asks for EnvPool",
            "test/libs/test_envpool.py::TestEnvPool::test_env_wrapper_creation": "wraps EnvPool",
            "test/libs/test_envpool.py::TestEnvPool::test_env_with_policy": NO_IMAGES,
            "test/libs/test_envpool.py::*[*Pendulum*]": "all names are Pong: one is enough",
            "test/libs/test_envpool.py::*[*Acrobot*]": "all names are Pong: one is enough",
            "test/libs/test_envpool.py::*[*Cheetah*]": "all names are Pong: one is enough",
        },
    ),
    Suite(
        "envpool",
        *ENVPOOL,
        (
            "envpool/atari/api_test.py",
            "envpool/atari/atari_envpool_test.py",
            "envpool/atari/atari_render_test.py",
            "envpool/make_test.py",
        ),
        "envpool_package",
        needs=("absl", "dm_env"),
        left_out={
            "envpool/atari/atari_envpool_test.py::_AtariEnvPoolTest::test_raw_envpool": OF_CPP,
            **{
                f"envpool/make_test.py::_MakeTest::test_{name}": "asks for other envs than Atari's"
                for name in (
                    "version",
                    "public_typing_interface",
                    "list_all_envs",
                    "make_vizdoom",
                    "make_classic",
                    "make_toytext",
                    "make_box2d",
                    "make_minigrid",
                    "make_babyai",
                    "make_gfootball",
                    "make_gymnasium_robotics",
                    "make_mujoco_gym",
                    "make_mujoco_dmc",
                    "render_smoke",
                    "make_procgen",
                )
            },
        },
    ),
)

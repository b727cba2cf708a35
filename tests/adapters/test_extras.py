"""Importing cule needs none of the libraries that are extras; what needs one says so."""

from __future__ import annotations

import subprocess
import sys

EXTRAS = (
    "stable_baselines3",
    "torchrl",
    "tensordict",
    "jax",
    "imageio",
    "imageio_ffmpeg",
    "PIL",
    "pygame",
    "moviepy",
    "pettingzoo",
)


def test_cule_plays_without_extras_and_names_the_one_it_lacks() -> None:
    code = (
        f"import sys; sys.modules |= dict.fromkeys({EXTRAS!r})\n"
        "import cule, cule.adapters, cule.adapters.envpool, cule.bench, cule.demo, cule.play, "
        "cule.record\n"
        "env = cule.AtariEnv('pong', 2, device='cpu', num_threads=1, reset_pool_size=1)\n"
        "env.reset(seed=0)\n"
        "env.step([0, 0])\n"
        "sys.exit(cule.record.main(['pong', '--quiet', '--output', 'video.mp4']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert (
        done.stderr
        == "cule.record: videos need imageio with ffmpeg: pip install 'imageio[ffmpeg]' pillow\n"
    )
    assert done.returncode == 2

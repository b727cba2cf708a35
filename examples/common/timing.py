"""What a training's log says about its time: milliseconds of each operation in an iteration."""

from __future__ import annotations

from cule import scope


def log_values(light: scope.Light) -> dict[str, float]:
    """Milliseconds of each operation since the last call, by keys such as "ms_playing"."""
    return {f"ms_{name.replace(' ', '_')}": ms for name, ms in light.milliseconds().items()}

"""Files that are missing, damaged or no ROMs are refused with a reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cule.rom import LARGEST_IMAGE, ROM_DIR_VARIABLE, find_game, load_rom, rom_path
from tests.support import warm


def corrupt(kind: str, image: bytes) -> bytes:
    flipped = image[:100] + bytes([image[100] ^ 1]) + image[101:]
    return {
        "truncated": image[:-1],
        "half": image[: len(image) // 2],
        "altered": flipped,
        "empty": b"",
        "longer": image + b"\0",
        "random": b"\xa5" * 5000,
    }[kind]


@pytest.mark.parametrize("kind", ["truncated", "half", "altered", "empty", "longer", "random"])
def test_wrong_rom_file_is_refused(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = find_game("pong")
    image = corrupt(kind, rom_path(game).read_bytes())
    path = tmp_path / "pong.bin"
    path.write_bytes(image)
    monkeypatch.setenv(ROM_DIR_VARIABLE, str(tmp_path))
    with pytest.raises(ValueError, match="to be the ROM of 'pong' with MD5") as raised:
        load_rom(game)
    text = str(raised.value)
    assert str(path) in text
    assert game.md5 in text
    assert f"got {len(image)} bytes with MD5 " in text
    assert "which is no ROM that cule knows" in text


def test_rom_of_another_game_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pong.bin").write_bytes(rom_path(find_game("breakout")).read_bytes())
    monkeypatch.setenv(ROM_DIR_VARIABLE, str(tmp_path))
    with pytest.raises(ValueError, match="which is the ROM of 'breakout'"):
        load_rom(find_game("pong"))


def test_missing_rom_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ROM_DIR_VARIABLE, str(tmp_path))
    with pytest.raises(
        ValueError,
        match=r"expected the ROM of 'pong' at .*pong.bin, but it cannot be read: No such",
    ):
        load_rom(find_game("pong"))
    (tmp_path / "pong.bin").mkdir()
    with pytest.raises(
        ValueError, match=r"expected the ROM of 'pong' at .*pong.bin, but it cannot be read"
    ):
        load_rom(find_game("pong"))


@pytest.mark.parametrize("size", [LARGEST_IMAGE + 1, 50 << 30])
def test_larger_file_than_any_rom_is_refused_unread(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The larger file is sparse: to read it would take 50 GiB of memory."""
    with open(tmp_path / "pong.bin", "wb") as file:
        file.truncate(size)
    monkeypatch.setenv(ROM_DIR_VARIABLE, str(tmp_path))
    with pytest.raises(
        ValueError, match=rf"ROM of 'pong', and so at most {LARGEST_IMAGE} bytes, got {size}$"
    ):
        load_rom(find_game("pong"))


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("/dev/zero", "got a device in place of a file"),
        ("/dev/null", "got a device in place of a file"),
        ("/proc/self/smaps", f"at most {LARGEST_IMAGE} bytes, got {LARGEST_IMAGE + 1}"),
        (None, "got a FIFO in place of a file"),
    ],
)  # fmt: skip
def test_what_is_no_file_is_refused_as_a_rom(target: str | None, says: str, tmp_path: Path) -> None:
    """A process of its own reads it, which can be ended if it waits for a writer of the FIFO."""
    path = tmp_path / "pong.bin"
    if target:
        path.symlink_to(target)
    else:
        os.mkfifo(path)
    code = (
        "from cule.rom import find_game, load_rom\n"
        "try:\n"
        "    load_rom(find_game('pong'))\n"
        "except ValueError as problem:\n"
        "    print(problem)\n"
    )
    done = warm.run(["-c", code], env={**os.environ, ROM_DIR_VARIABLE: str(tmp_path)}, timeout=60)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    assert str(path) in done.stdout


@pytest.mark.parametrize(
    ("kind", "says"), [("altered", "with MD5"), (None, "cannot be read"), ("good", "fine")]
)
def test_env_reads_the_rom_that_the_variable_names(
    kind: str | None, says: str, tmp_path: Path
) -> None:
    """A process of its own reads it, as ROM images are cached in a process."""
    image = rom_path(find_game("pong")).read_bytes()
    if kind:
        (tmp_path / "pong.bin").write_bytes(image if kind == "good" else corrupt(kind, image))
    code = (
        f"import os; os.environ[{ROM_DIR_VARIABLE!r}] = {str(tmp_path)!r}\n"
        "import cule\n"
        "try:\n"
        "    cule.AtariEnv('pong', device='cpu', num_threads=1, reset_pool_size=0).reset(seed=0)\n"
        "except ValueError as problem:\n"
        "    print(problem)\n"
        "else:\n"
        "    print('fine')\n"
    )
    done = warm.run(["-c", code])
    assert done.returncode == 0, done.stderr
    assert says in done.stdout
    assert not done.stderr

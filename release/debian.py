"""Debian's packages of another processor or release, unpacked into a folder."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path


def unpack(
    folder: Path, packages: Sequence[str], *, processor: str = "", release: str = ""
) -> Path:
    """Unpacks packages, and none of those that they need; nothing else of the system changes.

    Args:
        folder: where they go.
        packages: their names.
        processor: Debian's name of one; "": this machine's.
        release: such as "sid"; "": the one that is installed here.

    Returns:
        The folder that stands for /.
    """
    folder = folder.absolute()
    state, downloads = folder / "lists", folder / "packages"
    (state / "partial").mkdir(parents=True, exist_ok=True)
    downloads.mkdir(exist_ok=True)
    options: dict[str, object] = {"Dir::State::Lists": state, "APT::Sandbox::User": "root"}
    if processor:
        options |= {"APT::Architecture": processor, "APT::Architectures": processor}
    if release:
        sources = folder / "sources.list"
        sources.write_text(f"deb {mirror()} {release} main\n")
        options |= {"Dir::Etc::SourceList": sources, "Dir::Etc::SourceParts": "/dev/null"}
    apt = ["apt-get", "-q", *(f"-o{name}={value}" for name, value in options.items())]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "download", *packages], check=True, cwd=downloads)
    for package in sorted(downloads.glob("*.deb")):
        subprocess.run(["dpkg", "-x", package, folder / "root"], check=True)
    return folder / "root"


def keep_own_headers(root: Path, processor: str, python: str) -> None:
    """Lets compilers find an unpacked Python's pyconfig.h beside its other headers.

    Debian's looks for the processor's own in /usr/include, which is this system's.
    """
    headers = root / "usr" / "include"
    own = headers / f"{processor}-linux-gnu" / f"python{python}" / "pyconfig.h"
    shutil.copy(own, headers / f"python{python}")


def mirror() -> str:
    """Where this system gets Debian's packages from."""
    words = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    listed = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    return next(line for line in listed.splitlines() if line.rstrip("/").endswith("/debian"))

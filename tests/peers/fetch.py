"""Gets the files of a suite: from a clone of its repository at its tag, made here or found in
`--mirror`."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

from tests.peers.suites import Suite


class CannotFetchError(Exception):
    """A repository or its tag cannot be fetched; the message says which."""


def _git(*arguments: str) -> bytes:
    done = subprocess.run(["git", *arguments], capture_output=True, check=False)
    if done.returncode:
        problem = done.stderr.decode(errors="replace").strip()
        raise CannotFetchError(f"git {' '.join(arguments[:3])} failed: {problem}")
    return done.stdout


def _clone(suite: Suite, cache: Path) -> Path:
    """A bare clone of the suite's tag; made once."""
    clone = cache / f"{suite.repository.replace('/', '+')}@{suite.tag}.git"
    if not clone.exists():
        url = f"https://github.com/{suite.repository}.git"
        part = clone.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        options = ("--quiet", "--bare", "--depth=1", "--filter=blob:none", f"--branch={suite.tag}")
        _git("-c", "advice.detachedHead=false", "clone", *options, url, str(part))
        part.rename(clone)
    return clone


def _mirrored(suite: Suite, mirror: Path) -> Path:
    name = suite.repository.split("/")[1]
    for clone in (mirror / name / ".git", mirror / name, mirror / f"{name}.git"):
        if (clone / "HEAD").exists():
            return clone
    raise CannotFetchError(f"expected a clone of {suite.repository} in {mirror}/{name}, found none")


def fetch(suite: Suite, work: Path, mirror: Path | None) -> tuple[Path, str]:
    """Puts the suite's files into a fresh folder below `work`.

    Returns:
        The folder, and the commit that the files are of.

    Raises:
        CannotFetchError: the repository, the tag or a file is not to be had.
    """
    clone = _mirrored(suite, mirror) if mirror else _clone(suite, work)
    commit = _git(f"--git-dir={clone}", "rev-parse", f"{suite.tag}^{{commit}}").decode().strip()
    paths = dict.fromkeys((*suite.files, *suite.helpers))
    folder = work / suite.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    archive = _git(f"--git-dir={clone}", "archive", commit, *paths)
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        if hasattr(tarfile, "data_filter"):
            files.extractall(folder, filter="data")
        else:
            files.extractall(folder)
    return folder, commit

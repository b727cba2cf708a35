"""Metadata, sdist and wheel are right, and all ways to install work."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from pathlib import Path

import pytest

import cule

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (
    "CMakeLists.txt", "LICENSE", "MANIFEST.in", "Makefile", "README.md", "constraints.txt",
    "pyproject.toml", "setup.py", "benchmarks", "csrc", "cule", "design", "docs", "examples",
    "release", "roms", "tests",
)  # fmt: skip
HOOK = """
import sys
from setuptools import build_meta
print(getattr(build_meta, sys.argv[1])(sys.argv[2]))
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources, without what was built."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            left_out = shutil.ignore_patterns("*.so", "__pycache__", "*.bin", "build")
            shutil.copytree(source, folder / name, ignore=left_out)
        else:
            shutil.copy(source, folder / name)
    return folder


def call_hook(checkout: Path, hook: str, folder: Path, **variables: str) -> Path:
    """Calls the build backend as pip does; returns the file that it made in `folder`."""
    folder.mkdir(parents=True)
    command = [sys.executable, "-W", "error::UserWarning", "-c", HOOK, hook, str(folder)]
    done = subprocess.run(
        command,
        cwd=checkout,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=3000,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / done.stdout.splitlines()[-1]


def metadata(checkout: Path, folder: Path, **variables: str) -> Message:
    made = call_hook(checkout, "prepare_metadata_for_build_wheel", folder, **variables)
    return email.message_from_string((made / "METADATA").read_text())


def links(text: str) -> list[str]:
    return re.findall(r"\]\(([^)]+)\)", text)


# Metadata ---------------------------------------------------------------------------------------


def test_metadata_on_pypi_has_absolute_links_and_addresses(checkout: Path, tmp_path: Path) -> None:
    url = "https://git.example.org/somebody/cule"
    found = metadata(checkout, tmp_path / "made", CULE_PROJECT_URL=f"{url}/")
    text = str(found.get_payload())
    assert len(links(text)) > 10
    for target in links(text):
        assert target.startswith(("https://", "#")), target
        path = re.fullmatch(rf"{url}/(?:raw|blob)/HEAD/([^#]*)(#.*)?", target)
        assert path is None or (ROOT / path.group(1)).exists(), target
    assert f"({url}/raw/HEAD/docs/screens.png)" in text
    assert f"({url}/blob/HEAD/docs/api.md)" in text
    assert found.get_all("Project-URL") == [
        f"Source, {url}", f"Documentation, {url}/blob/HEAD/docs/api.md", f"Issues, {url}/issues"
    ]  # fmt: skip


def test_metadata_names_no_address_that_nobody_gave(checkout: Path, tmp_path: Path) -> None:
    found = metadata(checkout, tmp_path / "made", CULE_PROJECT_URL="")
    assert found.get_all("Project-URL") is None
    assert str(found.get_payload()).strip() == (ROOT / "README.md").read_text().strip()
    assert found["Description-Content-Type"] == "text/markdown"
    assert (found["Name"], found["Version"]) == ("cule", cule.__version__)


def test_metadata_lists_the_pythons_that_are_tested(checkout: Path, tmp_path: Path) -> None:
    found = metadata(checkout, tmp_path / "made")
    versions = re.findall(
        r"Python :: (3\.\d+)\n", "\n".join(found.get_all("Classifier") or []) + "\n"
    )
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert versions == re.findall(
        r'"(3\.\d+)"', workflow.partition("matrix:")[2].partition("\n")[2].partition("\n")[0]
    )
    assert found["Requires-Python"] == f">={versions[0]}"
    wheels = re.findall(r"cp3(\d+)-\*", (ROOT / "pyproject.toml").read_text())
    assert [f"3.{minor}" for minor in wheels] == versions


def test_messages_name_nothing_that_pypi_lacks() -> None:
    """`pip install cule` does not work yet."""
    pages = [ROOT / "README.md", *ROOT.glob("*/*.md"), *ROOT.glob("examples/*/*.md")]
    for path in [*pages, *(ROOT / "cule").rglob("*.py")]:
        assert not re.search(r"pip install '?cule\b", path.read_text()), path


# The sdist and the wheel ------------------------------------------------------------------------


def test_sdist_has_the_sources_and_nothing_that_was_built(checkout: Path, tmp_path: Path) -> None:
    (checkout / "cule" / "_core.cpython-399-x86_64-linux-gnu.so").touch()
    (checkout / "roms" / "pong.bin").touch()
    try:
        path = call_hook(checkout, "build_sdist", tmp_path / "made")
    finally:
        (checkout / "cule" / "_core.cpython-399-x86_64-linux-gnu.so").unlink()
        (checkout / "roms" / "pong.bin").unlink()
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    built = {name for name in names if name.endswith((".so", ".pyc", ".bin"))}
    assert built == set()
    wanted = {
        str(file.relative_to(checkout))
        for name in SOURCES
        for file in (
            [checkout / name] if (checkout / name).is_file() else (checkout / name).rglob("*")
        )
        if file.is_file() and file.suffix not in (".pyc", ".so")
    }
    assert wanted - names == set()
    assert path.stat().st_size < 3e6


@pytest.mark.slow
def test_wheel_installs_without_a_compiler_and_holds_the_package_alone(
    checkout: Path, tmp_path: Path
) -> None:
    """The wheel is built from the sdist, as from PyPI, and loaded in an environment with nothing
    else."""
    sdist = call_hook(checkout, "build_sdist", tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "source")
    (source,) = (tmp_path / "source").iterdir()
    wheel = call_hook(source, "build_wheel", tmp_path / "wheel", CULE_CUDA="OFF")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"cule"}
    assert [name for name in names if name.endswith(".so")] == [
        f"cule/{Path(cule._core.__file__).name}"
    ]
    assert {"cule/py.typed", "cule/_core.pyi"} <= set(names)
    assert wheel.stat().st_size < 2e6
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    alone = {"PATH": str(python.parent), "HOME": str(tmp_path)}
    install = [python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel]
    subprocess.run(install, env=alone, check=True)
    sys.path.insert(0, str(ROOT / "release"))
    try:
        from dist import LOAD
    finally:
        del sys.path[0]
    subprocess.run([python, "-c", LOAD], env=alone, cwd=tmp_path, check=True)


@pytest.mark.slow
def test_readmes_install_makes_cule_work_in_the_checkout(checkout: Path, tmp_path: Path) -> None:
    """Runs the README's commands in order, with the dependencies that are installed here."""
    readme = (ROOT / "README.md").read_text()
    (block,) = [
        text for text in re.findall(r"^```sh\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
        if "pip install -e" in text
    ]  # fmt: skip
    commands = [line.split("#")[0].split() for line in block.splitlines()]
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    binaries = tmp_path / "venv" / "bin"
    (site,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (site / "here.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n")
    # What venv brings, of before Python 3.12, is too old.
    subprocess.run([binaries / "pip", "uninstall", "-q", "-y", "setuptools"], check=True)
    # pip takes the second for "without isolation", however it reads.
    variables = {"PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "CULE_CUDA": "OFF"}
    path = f"{binaries}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for command in commands:
        subprocess.run(
            [binaries / command[0], *command[1:]], cwd=checkout,
            env=environment | variables | {"PATH": path}, check=True, timeout=3000,
        )  # fmt: skip
    assert list((checkout / "cule").glob("_core*.so"))


# What is built for -------------------------------------------------------------------------------


nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")


@pytest.mark.parametrize(
    ("gpus", "cuda", "said"),
    [
        ("", "AUTO", "only, because nvidia-smi shows no GPU here"),
        pytest.param("9.0 9.0", "AUTO", "and for CUDA .+ architectures 90\\.", marks=nvcc),
        pytest.param(
            "7.0", "AUTO", "only, because .+ does not know .+: 70", marks=(nvcc, pytest.mark.slow)
        ),
        pytest.param(
            "",
            "ON",
            "and for CUDA .+ architectures 75 80 86 .+ 120",
            marks=(nvcc, pytest.mark.slow),
        ),
    ],
)
def test_build_is_for_the_gpus_that_are_there(
    gpus: str, cuda: str, said: str, tmp_path: Path
) -> None:
    """By default. Code for GPUs that are not there takes ten minutes, and is made if asked for."""
    smi = tmp_path / "nvidia-smi"
    smi.write_text(f"#!/bin/sh\n{f'echo {gpus!r}' if gpus else 'exit 9'}\n")
    smi.chmod(0o755)
    command = [
        shutil.which("cmake") or Path(sys.executable).with_name("cmake"), f"-S{ROOT}",
        f"-B{tmp_path / 'build'}", f"-DPython_EXECUTABLE={sys.executable}",
        f"-DCULE_NVIDIA_SMI={smi}", f"-DCULE_CUDA={cuda}",
    ]  # fmt: skip
    alone = {name: value for name, value in os.environ.items() if name != "CUDAARCHS"}
    done = subprocess.run(command, env=alone, capture_output=True, text=True, check=True)
    assert re.search(f"cule: building for the CPU {said}", done.stderr), done.stderr


# What publishes ---------------------------------------------------------------------------------

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflow_runs_what_nobody_can_move_and_may_only_read(path: Path) -> None:
    text = path.read_text()
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert [name for name in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name)] == []
    assert re.search(r"^permissions:\n  contents: read\n\njobs:", text, re.MULTILINE)


def test_only_a_pushed_tag_publishes_and_with_the_versions_that_are_tested() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    publish = text[text.index("  publish:\n") :]
    assert "if: github.event_name == 'push' && github.ref_type == 'tag'\n" in publish
    assert text.count("id-token: write") == publish.count("id-token: write") == 1
    assert re.search(r"^  PIP_CONSTRAINT: constraints.txt$", text, re.MULTILINE)
    pinned = (ROOT / "constraints.txt").read_text()
    for line in re.findall(r"pip install (.+)", text):
        for name in line.split():
            assert re.search(rf"^{name}==", pinned, re.MULTILINE), name


def test_image_has_the_pinned_torch_and_a_user() -> None:
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    (torch_line,) = [line for line in lines if "pip install torch" in line]
    assert "PIP_CONSTRAINT=/wheels/constraints.txt" in torch_line
    (user,) = [number for number, line in enumerate(lines) if line.startswith("USER ")]
    assert not any(line.startswith("RUN") for line in lines[user:])


# The Makefile -----------------------------------------------------------------------------------


def recipe(target: str, folder: Path) -> str:
    command = ["make", "-n", target, f"CULE_VENV={folder / 'venv'}"]
    alone = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        command, cwd=ROOT, env=alone, capture_output=True, text=True, check=True
    ).stdout


def test_make_installs_for_the_demo_no_more_than_it_needs(tmp_path: Path) -> None:
    for target in ("demo", "bench"):
        assert " -e ." in recipe(target, tmp_path)
        assert "'cule[" not in recipe(target, tmp_path), target
    assert " 'cule[train,video]'" in recipe("train", tmp_path)
    for target in ("test", "lint", "docs"):
        assert " 'cule[dev]'" in recipe(target, tmp_path), target


def test_make_builds_the_module_where_its_progress_is_seen_and_only_there(tmp_path: Path) -> None:
    """pip says nothing while it builds. Afterwards it finds the module built."""
    steps = recipe("test", tmp_path)
    built, installed = steps.index("setup.py -q build_ext"), steps.index(" -e .")
    assert built < installed < steps.index("'cule[dev]'")
    assert steps.count(" -e .") == steps.count("build_ext") == 1


def test_make_installs_once(tmp_path: Path) -> None:
    """The demo after the tests, or the tests after the demo, find what they need."""
    venv = tmp_path / "venv"
    venv.mkdir()
    wanted = re.search(r"^echo '(.*)' > .*cule-installed$", recipe("demo", tmp_path), re.MULTILINE)
    assert wanted
    (venv / ".cule-tools").touch()
    (venv / ".cule-installed").write_text(wanted.group(1) + "\n")
    assert "pip install" not in recipe("demo", tmp_path)
    assert recipe("test", tmp_path).count("pip install") == 1
    assert recipe("train", tmp_path).count("pip install") == 1
    assert "/.cule-trains" in recipe("test", tmp_path)  # tests need what trainings need, and more
    (venv / ".cule-developed").touch()
    (venv / ".cule-trains").touch()
    assert "pip install" not in recipe("test", tmp_path)
    assert "pip install" not in recipe("train", tmp_path)
    assert "pip install" not in recipe("demo", tmp_path)


def test_make_trains_with_the_settings_that_are_documented(tmp_path: Path) -> None:
    page = (ROOT / "examples" / "ppo" / "README.md").read_text()
    command = re.search(r"^python (-m examples.ppo.ppo --game kaboom (?:.*\\\n)*.*)", page, re.M)
    assert command
    words = command.group(1).replace("\\\n", " ").split()
    assert recipe("train", tmp_path).split()[-len(words) :] == words


def test_make_has_a_target_for_each_that_it_names() -> None:
    text = (ROOT / "Makefile").read_text()
    named = re.search(r"^# make (.+?)\.", text)
    assert named
    assert {name.strip() for name in named.group(1).split("|")} <= set(
        re.findall(r"^(\w+):", text, re.MULTILINE)
    )

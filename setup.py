"""Builds the extension `cule._core` by driving CMake; the metadata is in pyproject.toml.

Environment: `CULE_CUDA` (AUTO, ON or OFF), `CMAKE_ARGS` (more arguments for CMake),
`CMAKE_BUILD_PARALLEL_LEVEL`, and, for what is published, `CULE_PROJECT_URL`: the repository's
address. The build folder, build/<platform>-<python>, is kept, so that only what changed is compiled
again; it starts afresh when a tool, a path or an option is another one than last time.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pybind11
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
BYTES_PER_JOB = 2 << 30


def parallel_jobs() -> int:
    """As many compilers as this process has CPUs and memory for, 2 GiB each, and at least one."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        limit = Path("/sys/fs/cgroup/memory.max")
        if limit.exists() and limit.read_text().strip().isdigit():
            memory = min(memory, int(limit.read_text()))
    except (OSError, ValueError):
        return cpus
    return max(1, min(cpus, memory // BYTES_PER_JOB))


class CMakeBuild(build_ext):
    """Configures and builds with CMake, then puts the module where setuptools wants it."""

    def build_extension(self, ext: Extension) -> None:
        """Builds `cule._core`."""
        cmake = shutil.which("cmake") or "cmake"
        ninja = shutil.which("ninja")
        configure = [
            cmake,
            "--log-level=NOTICE",  # says what is built, and nothing of what was found
            f"-S{ROOT}",
            f"-DPython_EXECUTABLE={sys.executable}",
            f"-Dpybind11_DIR={pybind11.get_cmake_dir()}",
            f"-DCULE_CUDA={os.environ.get('CULE_CUDA') or 'AUTO'}",
            *(["-GNinja", f"-DCMAKE_MAKE_PROGRAM={ninja}"] if ninja else []),
            *shlex.split(os.environ.get("CMAKE_ARGS", "")),
        ]
        names = (
            "CC",
            "CXX",
            "CXXFLAGS",
            "CUDACXX",
            "CUDAHOSTCXX",
            "CUDAFLAGS",
            "CUDAARCHS",
            "CUDA_HOME",
            "CUDA_PATH",
        )
        tools = [f"{name}={os.environ.get(name, '')}" for name in names] + [
            f"nvcc={shutil.which('nvcc')}"
        ]

        build = ROOT / "build" / f"{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
        stamp = build / "configuration.txt"
        configuration = "\n".join([*configure, *tools]) + "\n"
        if build.exists() and (not stamp.exists() or stamp.read_text() != configuration):
            shutil.rmtree(build)
        build.mkdir(parents=True, exist_ok=True)
        subprocess.run([*configure, f"-B{build}"], check=True)
        stamp.write_text(configuration)

        jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(parallel_jobs())
        subprocess.run([cmake, "--build", str(build), "--parallel", jobs], check=True)

        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        self.copy_file(str(build / target.name), str(target))


def readme(url: str, text: str) -> str:
    """The README as PyPI shows it, with absolute links to the repository at `url`, if any."""
    if not url:
        return text
    text = re.sub(r"(!\[[^\]]*\]\()(?!\w+:)", rf"\g<1>{url}/raw/HEAD/", text)
    return re.sub(r"(?<!!)(\[[^\[\]]*\]\()(?!\w+:|#)", rf"\g<1>{url}/blob/HEAD/", text)


def addresses(url: str) -> dict[str, str]:
    """The addresses that PyPI lists, of the repository at `url`; none where there is no `url`."""
    pages = {"Source": "", "Documentation": "/blob/HEAD/docs/api.md", "Issues": "/issues"}
    return {name: url + page for name, page in pages.items()} if url else {}


URL = os.environ.get("CULE_PROJECT_URL", "").rstrip("/")
setup(
    ext_modules=[Extension("cule._core", sources=[])],
    cmdclass={"build_ext": CMakeBuild},
    long_description=readme(URL, (ROOT / "README.md").read_text()),
    long_description_content_type="text/markdown",
    project_urls=addresses(URL),
)

"""`python -m tests.peers`, with a repository made here in the place of the peers'."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.peers import __main__ as peers
from tests.peers.expected import EXPECTED_FAILURES
from tests.peers.fetch import CannotFetchError, fetch
from tests.peers.stand_ins.peers_names import matches
from tests.peers.suites import SUITES, Suite

TESTS = """
import gymnasium
import pytest

def test_env_stands_in():
    env = gymnasium.make_vec("CartPole-v1", num_envs=2)
    assert env.unwrapped.games[0].name == "pong"
    env.close()

@pytest.mark.parametrize("number", [1, 2])
def test_fails(number):
    assert number == 0

def test_is_left_out():
    raise AssertionError
"""
SUITE = Suite(
    "small", "somebody/small", "v1", ("tests/test_small.py",), "gymnasium_envs",
    left_out={"tests/test_small.py::test_is_left_out": "a test"},
)  # fmt: skip
FAILING = "tests/test_small.py::test_fails"


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    """A folder with a clone of somebody/small, tagged v1."""
    clone = tmp_path / "mirror" / "small"
    (clone / "tests").mkdir(parents=True)
    (clone / "tests" / "test_small.py").write_text(TESTS)
    git = ["git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"], ["tag", "v1"]):
        subprocess.run([*git, *command], check=True)
    return clone.parent


@pytest.mark.parametrize(
    ("test", "named", "is_it"),
    [
        ("a.py::test_x[1]", "a.py::test_x[1]", True),
        ("a.py::test_x[1]", "a.py::test_x", True),
        ("a.py::C::test_x", "a.py::C", True),
        ("a.py::C::test_x", "a.py", True),
        ("a.py::test_xy", "a.py::test_x", False),
        ("a.py::test_x[1-Pong]", "a.py::*[*Pong]", True),
        ("a.py::test_x[1-Pong]", "a.py::*[*Ant]", False),
        ("a.py::test_x[11]", "a.py::test_x[1]", False),
    ],
)
def test_names_are_those_of_tests_functions_classes_and_files(
    test: str, named: str, is_it: bool
) -> None:
    assert matches(test, named) is is_it


def run(mirror: Path, listed: dict[str, str], monkeypatch: pytest.MonkeyPatch, *more: str) -> int:
    monkeypatch.setattr(peers, "SUITES", (SUITE,))
    monkeypatch.setattr(peers, "EXPECTED_FAILURES", {"small": listed})
    arguments = ["peers", *more, "--mirror", str(mirror), "--work", str(mirror.parent / "work")]
    monkeypatch.setattr(peers.sys, "argv", arguments)
    return peers.main()


@pytest.mark.slow
def test_command_runs_a_suite_with_cule_in_the_place_of_the_peer(
    mirror: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    assert run(mirror, {FAILING: "a reason"}, monkeypatch, "small") == 0
    commit = subprocess.run(
        ["git", "-C", str(mirror / "small"), "rev-parse", "v1"], capture_output=True, check=True
    ).stdout.decode()
    row = f"| small | somebody/small v1 ({commit[:9]}) | 3 | 1 | 2 | 0 | 1 |"
    assert row in capsys.readouterr().out


def test_command_fails_where_the_list_is_wrong(
    mirror: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    good = "tests/test_small.py::test_env_stands_in"
    listed = {f"{FAILING}[1]": "a reason", good: "a reason", "tests/gone.py": "a reason"}
    assert run(mirror, listed, monkeypatch) == 1
    out = capsys.readouterr().out
    assert f"small: {FAILING}[2] failed, and is not listed: E   assert 2 == 0" in out
    assert f"small: {good} is listed, and passes" in out
    assert "small: tests/gone.py is listed, but there is no such test" in out
    assert f"{FAILING}[1]" not in out


@pytest.mark.slow
def test_command_fails_where_a_file_cannot_be_imported(
    mirror: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    clone = mirror / "small"
    (clone / "tests" / "test_small.py").write_text("import no_such_module\n")
    git = ["git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "commit", "-qam", "two"], check=True)
    subprocess.run([*git, "tag", "-f", "v1"], check=True, capture_output=True)
    assert run(mirror, {}, monkeypatch) == 1
    out = capsys.readouterr().out
    assert "small: tests/test_small.py could not be imported" in out
    assert "no_such_module" in out


def test_missing_clones_and_tags_are_named(mirror: Path, tmp_path: Path) -> None:
    other = Suite("other", "somebody/other", "v1", ("a.py",), "gymnasium_envs")
    with pytest.raises(
        CannotFetchError, match=r"expected a clone of somebody/other in .*, found none"
    ):
        fetch(other, tmp_path / "work", mirror)
    later = Suite("small", "somebody/small", "v2", ("a.py",), "gymnasium_envs")
    with pytest.raises(CannotFetchError, match=r"git .* rev-parse v2"):
        fetch(later, tmp_path / "work", mirror)


def test_lists_are_of_suites_and_say_why() -> None:
    assert set(EXPECTED_FAILURES) <= {suite.name for suite in SUITES}
    for suite in SUITES:
        reasons = [*suite.left_out.values(), *EXPECTED_FAILURES.get(suite.name, {}).values()]
        assert all(reasons)
        assert (Path(peers.STAND_INS) / f"{suite.stand_in}.py").exists()


def test_page_for_migrants_has_each_failure_and_its_reason() -> None:
    page = " ".join((peers.ROOT / "docs" / "migrating.md").read_text().split())
    for listed in EXPECTED_FAILURES.values():
        for name, reason in listed.items():
            assert f"`{name.rsplit('::')[-1]}`" in page, name
            assert reason in page, reason

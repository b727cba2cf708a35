"""Cards of published policies, and the Hugging Face Hub."""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from published_runs import CPU, published, run_of_a2c

from cule import train
from cule.train import publish
from cule.train.checkpoints.checkpoint import newest
from cule.train.evaluate.policies import digest_of
from cule.train.published import card
from cule.train.published.config import CONFIG, OUTPUTS, WEIGHTS, read_config
from examples.atari57 import agent
from examples.atari57 import run as suite

pytest.importorskip("safetensors")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of A2C, and its published folder."""
    return run_of_a2c(tmp_path_factory.mktemp("run"))


def test_a_config_is_what_was_published(run):
    config = read_config(run / "published")
    assert dataclasses.asdict(config) == json.loads((run / "published" / CONFIG).read_text())
    assert config.algorithm == "A2C+V-trace" and config.outputs == OUTPUTS[0]
    row = json.loads((run / "result.jsonl").read_text().splitlines()[-1])
    assert config.commit == row["commit"]


def evaluated(run, **more):
    """A row as cule.train.evaluate writes it."""
    config = read_config(run / "published")
    row = {"game": config.game, "algorithm": config.algorithm, "frames": config.frames,
           "seed": config.seed, "system": "ale-py", "sticky": 0.0, "noops": 30, "episodes": 100,
           "greedy": False, "max_frames": 108_000, "full_action_space": False, "score": 12.5,
           "score_deviation": 3.25, "networks": digest_of(newest(run, CPU))}  # fmt: skip
    return row | more


def test_a_card_has_the_score_by_protocol_as_the_hub_reads_it(run):
    yaml = pytest.importorskip("yaml")
    rows = [
        evaluated(run, score=1.0),
        evaluated(run),  # the newer one of its protocol
        evaluated(run, sticky=0.25, noops=0, score=7.75),
        evaluated(run, frames=4, score=99.0),  # of an earlier checkpoint
        evaluated(run, score="high"),
        evaluated(run, score=98.0, networks="of a training before, with other settings"),
        evaluated(run, score=97.0, system=["ale-py"]),
        evaluated(run, score=96.0, system="cule", patches=["left_drift"]),
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (run / card.EVALUATIONS).write_text(lines)
    try:
        text = (published(run) / card.CARD).read_text()
    finally:
        (run / card.EVALUATIONS).unlink()
    _, head, body = text.split("---\n", 2)
    values = yaml.safe_load(head)
    assert values["library_name"] == "cule" and "atari" in values["tags"]
    (model,) = values["model-index"]
    assert model["name"] == "A2C+V-trace on pong"
    found = {one["dataset"]["config"]: one["metrics"][0]["value"] for one in model["results"]}
    assert found == {
        "no sticky actions, fewer than 30 no-ops, on ale-py": 12.5,
        "sticky actions 0.25, no no-ops, on ale-py": 7.75,
    }
    assert all(one["dataset"]["type"] == "ALE/Pong-v5" for one in model["results"])
    assert "| no sticky actions, fewer than 30 no-ops, on ale-py | 100 | 12.50 | 3.25 |" in body
    assert "99" not in body.split("## Training")[0] and "- learning_rate: `" in body


def test_the_hubs_own_reader_takes_the_card(run):
    hub = pytest.importorskip("huggingface_hub")
    (run / card.EVALUATIONS).write_text(json.dumps(evaluated(run)) + "\n")
    try:
        data = hub.ModelCard.load(published(run) / card.CARD).data
    finally:
        (run / card.EVALUATIONS).unlink()
    (result,) = data.eval_results
    assert (result.metric_type, result.metric_value) == ("mean_reward", 12.5)
    assert data.model_name == "A2C+V-trace on pong" and data.library_name == "cule"


def test_a_card_without_a_score_says_so_and_shows_no_markup_of_files(run):
    config = read_config(run / "published")
    hostile = dataclasses.replace(config, algorithm="<script>](x) # Title")
    text = card.card_of(
        hostile, run, {"model": "`|\n<b>", "token": "secret"}, "0", name='there"); evil("',
        film=False, curve=False,
    )  # fmt: skip
    assert "It was not evaluated." in text and "model-index" not in text
    assert "<script>" not in text and "`'/ <b>`" in text and "secret" not in text
    assert r'cule.train.load("there\"); evil(\"")' in text


@pytest.mark.parametrize("command, shown", [
    ("python -m a.b --folder '/home/me/my runs' --game pong", "`python -m a.b --game pong`"),
    ("python -m a.b --results=/home/me/rows --lag 1 --folder", "`python -m a.b --lag 1`"),
    ("python /home/me/my.py --program=/home/me/b.py", "`python my.py --program=b.py`"),
    ("python 'a", "`not known`"),
])  # fmt: skip
def test_a_card_names_no_places_on_its_authors_machine(run, tmp_path, command, shown):
    row = json.loads((run / "result.jsonl").read_text().splitlines()[-1])
    (tmp_path / "result.jsonl").write_text(json.dumps(row | {"command": command}) + "\n")
    config, settings = read_config(run / "published"), {"folder": "/home/me", "lag": 0}
    text = card.card_of(config, tmp_path, settings, "0", name="a/b", film=False, curve=False)
    assert f"- command: {shown}" in text and "/home/me" not in text and "- lag: `0`" in text


def test_a_film_and_a_curve_are_in_the_folder(run, tmp_path):
    pytest.importorskip("imageio")
    out = tmp_path / "out"
    publish.publish(publish.Args(run, output=out, film_frames=40))
    assert (out / card.FILM).stat().st_size > 1000
    text = (out / card.CARD).read_text()
    assert (
        f'<video controls src="{card.FILM}">' in text
        and (f"]({card.CURVE})" in text) == (out / card.CURVE).exists()
    )
    given, other = tmp_path / "own.mp4", tmp_path / "another's.mp4"
    given.write_bytes(b"a film")
    other.write_bytes(b"of another's")
    (out / card.FILM).unlink()
    (out / card.FILM).symlink_to(other)
    publish.publish(publish.Args(run, output=out, film=given))
    assert (out / card.FILM).read_bytes() == b"a film" and other.read_bytes() == b"of another's"
    publish.publish(publish.Args(run, output=out, film=out / card.FILM))
    assert (out / card.FILM).read_bytes() == b"a film"
    published(run, output=out)
    assert not (out / card.FILM).exists() and card.FILM not in (out / card.CARD).read_text()


def test_what_is_in_a_folder_of_something_else_stays(run, tmp_path):
    (tmp_path / card.CARD).write_text("mine")
    with pytest.raises(ValueError, match=r"which has README\.md of something else"):
        published(run, output=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [card.CARD]
    assert (tmp_path / card.CARD).read_text() == "mine"


@pytest.mark.parametrize("more, told", [
    ({"film": Path("a.gif"), "video": True}, "expected an .mp4 as film, and video, got a.gif"),
    ({"film": Path("a.mp4")}, "expected an .mp4 as film, and video, got a.mp4"),
    ({"film": Path("a.mp4"), "video": True}, "expected a film that can be read, got a.mp4: No"),
    ({"private": True}, "expected push with private, got none"),
    ({"push": "../x"}, "expected OWNER/NAME as an id on the Hub, got '../x'"),
])  # fmt: skip
def test_options_that_do_not_fit_are_refused(run, tmp_path, more, told):
    with pytest.raises(ValueError, match=told):
        publish.publish(publish.Args(run, **{"video": False, "output": tmp_path / "out", **more}))


@pytest.fixture
def hub(monkeypatch):
    """Stands in for huggingface_hub: its functions' names and arguments, and what was called."""
    calls = []

    class HfApi:
        def create_repo(self, repo_id, *, private=None, exist_ok=False):
            calls.append(("create_repo", repo_id, private, exist_ok))
            return f"https://huggingface.co/{repo_id}"

        def upload_folder(self, *, repo_id, folder_path, commit_message=None, allow_patterns=None):
            if stand_in.refuses:
                raise OSError("403\nForbidden")
            calls.append(("upload_folder", repo_id, Path(folder_path), allow_patterns))

    def snapshot_download(repo_id, *, allow_patterns=None):
        if stand_in.folder is None:
            raise OSError("404\nthere is no such model")
        calls.append(("snapshot_download", repo_id, allow_patterns))
        return str(stand_in.folder)

    stand_in = SimpleNamespace(
        HfApi=HfApi, snapshot_download=snapshot_download, get_token=lambda: stand_in.token,
        calls=calls, token="hf_x", refuses=False, folder=None,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "huggingface_hub", stand_in)
    return stand_in


def test_a_policy_is_pushed_as_the_user_who_is_logged_in(run, hub, tmp_path, capsys):
    folder = published(run, output=tmp_path / "out", push="someone/pong", private=True)
    files = [*publish.FILES]
    assert hub.calls == [("create_repo", "someone/pong", True, True),
                         ("upload_folder", "someone/pong", folder, files)]  # fmt: skip
    assert {path.name for path in folder.iterdir()} <= {*files}
    assert "It is at https://huggingface.co/someone/pong." in capsys.readouterr().out
    assert 'cule.train.load("someone/pong")' in (folder / card.CARD).read_text()
    hub.refuses = True
    with pytest.raises(ValueError, match="expected the Hugging Face Hub to take someone/pong, got: "
                       "OSError: 403 Forbidden"):  # fmt: skip
        published(run, output=tmp_path / "out", push="someone/pong")
    hub.token = None
    with pytest.raises(ValueError, match="expected a user who is logged in to the Hugging"):
        published(run, output=tmp_path / "other", push="someone/pong")
    assert not (tmp_path / "other").exists()


def test_an_id_of_the_hub_is_downloaded_without_code(run, hub):
    hub.folder = run / "published"
    agent = train.load("someone/pong", "cpu")
    assert agent.config.game == "pong"
    (call,) = hub.calls
    assert call == ("snapshot_download", "someone/pong", [WEIGHTS, CONFIG, "README.md"])
    hub.folder = None
    told = "expected a folder or a model on the Hugging Face Hub, got someone/pong: 404 there is no"
    with pytest.raises(ValueError, match=told):
        train.load("someone/pong", "cpu")
    for other in ("someone/../pong", "https://x.org/a", Path("someone/pong")):
        with pytest.raises(ValueError, match="expected a folder with a published policy"):
            train.load(other, "cpu")
    assert hub.calls == [call]


def test_the_stand_in_has_the_hubs_own_arguments(hub, monkeypatch):
    monkeypatch.delitem(sys.modules, "huggingface_hub")
    real = pytest.importorskip("huggingface_hub")
    pairs = [(hub.HfApi.create_repo, real.HfApi.create_repo),
             (hub.HfApi.upload_folder, real.HfApi.upload_folder),
             (hub.snapshot_download, real.snapshot_download),
             (hub.get_token, real.get_token)]  # fmt: skip
    for ours, theirs in pairs:
        known = inspect.signature(theirs).parameters
        assert {*inspect.signature(ours).parameters} <= known.keys()


def test_the_program_says_where_the_policy_is(run, tmp_path, capsys):
    out = tmp_path / "out"
    assert publish.main([str(run), "--output", str(out), "--no-video"]) == 0
    assert capsys.readouterr().out == f"The policy is in {out}.\n"
    assert publish.main([str(tmp_path), "--no-video"]) == 2
    assert capsys.readouterr().err.startswith("publish: expected a run folder with checkpoints")


# The suite of Atari-57 ---------------------------------------------------------------------------


def test_the_suite_makes_an_agents_card(tmp_path, monkeypatch):
    monkeypatch.setattr(agent, "settings_of", lambda algorithm, *_: (algorithm, {"width": 0.1}))
    args = agent.Args(
        folder=tmp_path, algorithm="pqn", game="pong", protocol="machado", device="cpu",
        num_threads=1, total_frames=2000, episodes=2, max_frames=400, progress=False, video=False,
    )  # fmt: skip
    row = agent.make(args)
    policy = train.load(tmp_path / agent.CARD, "cpu")
    assert (policy.config.algorithm, policy.config.frames) == ("PQN", row["frames"])
    assert policy.config.num_actions == 18
    line = (
        f"| sticky actions 0.25, no no-ops, all 18 actions, on ale-py | 2 | {row['score']:,.2f} |"
    )
    assert line in (tmp_path / agent.CARD / card.CARD).read_text()


def test_a_suite_without_safetensors_is_refused_before_it_trains(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    told = r"expected safetensors to be installed \(pip install safetensors\), got "
    with pytest.raises(ValueError, match=told):
        suite.run(suite.Args(folder=tmp_path / "suite", device="cpu", video=False))
    with pytest.raises(ValueError, match=told):
        agent.make(agent.Args(folder=tmp_path / "agent", device="cpu", video=False))
    assert not [*tmp_path.iterdir()]

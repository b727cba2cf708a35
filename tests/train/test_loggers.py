"""Where a training's numbers go besides its log: to TensorBoard, W&B, Trackio, or nowhere."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import sys
import warnings
from pathlib import Path

import pytest
import torch
import tyro
from training_runs import save, settings, trained

from cule import train
from cule.train.checkpoints import checkpoint
from cule.train.logs import loggers
from cule.train.logs.log import read_log

STAND_INS = Path(__file__).parent / "stand_ins"
TRACKERS = ("wandb", "trackio")
OLD = "--no-tensorboard is --logger none now, and goes with the next release"


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """The calls of the stand-ins, in their order."""
    for name in TRACKERS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(STAND_INS))
    path = tmp_path / "calls"
    monkeypatch.setenv("RECORD", str(path))
    yield lambda: [json.loads(line) for line in path.read_text().splitlines()]
    for name in TRACKERS:
        sys.modules.pop(name, None)


def numbers(run):
    """What a logger is told of a run's log: frames, and the numbers by their tags."""
    hidden = {"kind", "frames", "training_frames"}
    return [
        (line["frames"], {f"{line['kind']}/{name}": value for name, value in line.items()
                          if name not in hidden and value is not None})
        for line in read_log(run / "log.jsonl")
    ]  # fmt: skip


@pytest.mark.parametrize("package", TRACKERS)
def test_a_tracker_gets_the_settings_and_each_number_of_the_log(
    recorded, tmp_path, package, capsys
):
    run = tmp_path / "my run"
    asked = {"logger": package, "eval_episodes": 1, "eval_max_frames": 80}
    trained(settings(run, total_frames=1000, **asked))
    (first, begun), *rest = recorded()
    assert first == "init" and begun["project"] == "cule" and begun["resume"] == "allow"
    assert begun["name"].startswith("my-run-") and not list(run.glob("tensorboard"))
    assert begun["config"]["game"] == "breakout" and begun["config"]["folder"] == str(run)
    told = capsys.readouterr()
    assert "what a package prints" in told.err and not told.out
    if package == "wandb":
        assert begun["id"] == begun["name"] and begun["dir"] == str(run)
        (one, frames), (two, others), *rest = rest
        assert one == two == "define_metric" and frames["name"] == "frames"
        assert others == {"name": "*", "step_metric": "frames"}
    *logs, (last, _) = rest
    assert last == "finish" and [what for what, _ in logs] == ["log"] * len(logs)
    given = [(what["step"], what["data"]) for _, what in logs]
    if package == "wandb":
        assert all(step is None for step, _ in given)
        given = [(data.pop("frames"), data) for _, data in given]
    assert given == [(frames, values) for frames, values in numbers(run)] and len(given) > 2


def test_a_resumed_run_goes_on_under_its_name(recorded, tmp_path):
    run = tmp_path / "run"
    trained(settings(run, total_frames=600, logger="trackio"))
    trained(settings(run, total_frames=1200, logger="trackio", resume=True))
    trained(settings(run, total_frames=1800, logger="wandb", resume=True))
    first, second, third = [given for what, given in recorded() if what == "init"]
    assert first["name"] == second["name"] == third["id"]
    (run / loggers.NAMED).write_text('{"run": "../../elsewhere"}')
    trained(settings(run, total_frames=2400, logger="trackio", resume=True))
    trained(settings(run, total_frames=600, logger="trackio", overwrite=True))
    *_, damaged, new = [given["name"] for what, given in recorded() if what == "init"]
    assert len({first["name"], damaged, new}) == 3 and damaged.startswith("run-")


def test_a_package_that_is_not_installed_is_refused_before_anything_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for package in (*TRACKERS, "tensorboard"):
        with pytest.raises(ValueError) as refused:
            trained(settings(tmp_path / "run", total_frames=600, logger=package))
        assert str(refused.value) == (
            f"expected {package} to be installed (pip install {package}), got No module named "
            f"'{package}'"
        )
    assert not [path for path in (tmp_path / "run").rglob("*") if path.name != "run.lock"]


def test_a_tracker_that_refuses_ends_the_training_before_its_first_step(
    recorded, tmp_path, monkeypatch
):
    monkeypatch.setenv("REFUSES", "")
    told = "expected wandb to begin a run, got RuntimeError: No API key configured. Use `wandb"
    with pytest.raises(ValueError, match=told):
        trained(settings(tmp_path / "run", total_frames=600, logger="wandb"))
    assert not checkpoint.any_in(tmp_path / "run" / "checkpoints")


def test_a_tracker_that_is_lost_does_not_end_the_training(recorded, tmp_path, monkeypatch):
    monkeypatch.setenv("FAIL_AT", "500")
    with pytest.warns(UserWarning, match="wandb takes no more numbers .ConnectionError: the netw"):
        row = trained(settings(tmp_path / "run", total_frames=1000, logger="wandb"))
    logged = [frames for frames, _ in numbers(tmp_path / "run")]
    told = [given["data"]["frames"] for what, given in recorded() if what == "log"]
    assert row["frames"] >= 1000 and max(logged) >= 1000
    assert told == [frames for frames in logged if frames < 500] and told


@pytest.mark.parametrize("package", TRACKERS)
def test_the_stand_ins_have_the_packages_own_arguments(recorded, monkeypatch, package):
    stand_in = importlib.import_module(package)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != str(STAND_INS)])
    monkeypatch.delitem(sys.modules, package)
    real = pytest.importorskip(package)
    assert real.__file__ != stand_in.__file__
    pairs = [(stand_in.init, real.init), (stand_in.finish, real.finish),
             (stand_in.Run.log, real.Run.log)]  # fmt: skip
    if package == "wandb":
        pairs.append((stand_in.Run.define_metric, real.Run.define_metric))
        assert {"console", "finish_timeout"} <= real.Settings.model_fields.keys()
    for ours, theirs in pairs:
        known = inspect.signature(theirs).parameters
        for name, parameter in inspect.signature(ours).parameters.items():
            assert known[name].kind == parameter.kind, name


def test_no_tensorboard_is_the_old_name_of_no_logger(tmp_path):
    assert train.Args().logger == "tensorboard"
    with pytest.warns(FutureWarning, match=OLD) as told:
        args = train.Args(tensorboard=False)
    assert [one.filename for one in told] == [__file__]
    assert (args.logger, args.tensorboard) == ("none", True)
    with pytest.warns(FutureWarning, match=OLD):
        args = tyro.cli(train.Args, args=["--no-tensorboard", "--logger", "wandb"])
    assert args.logger == "wandb"
    with pytest.raises(ValueError, match="expected logger to be 'tensorboard' or 'wandb' or 'trac"):
        train.Args(logger="mlflow")


def test_a_training_without_tensorboard_of_an_older_version_is_resumed(tmp_path):
    trained(settings(tmp_path, total_frames=600))
    state = checkpoint.newest(tmp_path, torch.device("cpu"))
    old = {name: value for name, value in state["args"].items() if name != "logger"}
    state = {**state, "args": old | {"tensorboard": False}}
    save(tmp_path / "checkpoints", state["trainer"]["steps"], state)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        row = trained(settings(tmp_path, total_frames=1000, resume=True))
    assert row["frames"] >= 1000 and not (tmp_path / "tensorboard").exists()

"""Stands in for Weights & Biases: the part of its API that cule.train uses, which it records.

Calls are appended to the file that RECORD names, as JSON. tests/train/test_loggers.py compares the
signatures with the real package's where that is installed.
"""

import json
import os


def _record(what, **given):
    with open(os.environ["RECORD"], "a") as file:
        file.write(json.dumps([what, given]) + "\n")


class Settings:
    def __init__(self, *, console, finish_timeout):
        assert console == "off" and finish_timeout > 0


class Run:
    def define_metric(self, name, step_metric=None):
        _record("define_metric", name=name, step_metric=step_metric)

    def log(self, data, step=None):
        if "FAIL_AT" in os.environ and data["frames"] >= int(os.environ["FAIL_AT"]):
            raise ConnectionError("the network is gone")
        _record("log", data=data, step=step)


def init(*, project=None, id=None, name=None, dir=None, config=None, resume=None, settings=None):
    if "REFUSES" in os.environ:
        raise RuntimeError("No API key configured.\nUse `wandb login` to log in.")
    assert isinstance(settings, Settings)
    print("what a package prints")
    _record("init", project=project, id=id, name=name, dir=dir, config=config, resume=resume)
    return Run()


def finish():
    _record("finish")

"""Stands in for Trackio: the part of its API that cule.train uses, which it records as wandb.py."""

import json
import os


def _record(what, **given):
    with open(os.environ["RECORD"], "a") as file:
        file.write(json.dumps([what, given]) + "\n")


class Run:
    def log(self, metrics, step=None):
        _record("log", data=metrics, step=step)


def init(project, name=None, config=None, resume="never"):
    print("what a package prints")
    _record("init", project=project, name=name, config=config, resume=resume)
    return Run()


def finish():
    _record("finish")

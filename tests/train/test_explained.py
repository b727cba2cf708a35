"""The plans that docs/training.md prints are those that its commands print."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import torch

from cule.train.distributed.process_group import ProcessGroup
from cule.train.plan.passes import Passes
from cule.train.trainer import Trainer
from examples.reinforce import reinforce

PAGE = Path(__file__).resolve().parents[2] / "docs" / "training.md"


def test_plans_in_the_docs_are_those_that_are_made(monkeypatch, capsys):
    text = PAGE.read_text()
    pairs = re.findall(
        r"```sh\n(python -m [^\n]*--explain)\n```\n\n```text\n(.*?)```", text, re.DOTALL
    )
    assert len(pairs) == 2
    for command, printed in pairs:
        monkeypatch.setattr(sys, "argv", command.split()[2:])
        assert reinforce.main() == 0
        told = capsys.readouterr().out.partition("\nPlanned in ")[0]
        assert told.strip() == printed.strip()


def test_order_on_a_gpu_in_the_docs_is_the_one_that_is_planned():
    (printed,) = re.findall(r"order is:\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    cpu = torch.device("cpu")
    args = reinforce.Args(device="cpu", num_envs=64, n_step=8).on(cpu)
    trainer = Trainer(
        reinforce.Reinforce, args, ProcessGroup(0, 1, cpu), Passes(beside=True)
    )  # fmt: skip
    told = trainer.plan.explain()
    assert printed.strip() in told and "15.6 MiB of rings" in told
    trainer.close()

"""The program of docs/scaling.md that uses roles, groups and channels prints what the page says."""

from __future__ import annotations

import re

from training_runs import ROOT, one_thread_each

from tests.support import warm


def test_program_of_the_page_prints_what_the_page_says():
    page = (ROOT / "docs" / "scaling.md").read_text()
    part = page.partition("### A program of your own with roles")[2].partition("\n## ")[0]
    program, shown = re.findall(r"```text\n(.*?)```", part, re.DOTALL)
    count = int(re.search(r"--nproc-per-node (\d+)", shown)[1])
    done = warm.run_ranks(count, ["-c", program], env=one_thread_each(), timeout=120)
    assert [one.returncode for one in done] == [0] * count, done[0].stderr
    assert "".join(one.stdout for one in done) == shown.partition("\n")[2]

"""Pages without measured figures, and the design notes: the numbers that they may have."""

from __future__ import annotations

from types import SimpleNamespace

from tests.figures.results import ROOT

NONE = "no measurement"
DECIDED = "measured when it was decided; there are no rows of it"

# By page: the numbers that may stand anywhere, words with figures, and what these words are.
# fmt: off
OTHERS: dict[str, tuple[str, list[str], str]] = {
    "docs/api.md": (
        "-1 0 1 2 3 4 5 30 31 64 84 128 160 210 250 256 512 518 2015 4096 18000 108000 400000",
        [
            "False, 0.5", "256, 7) int16", "are 8 pixels wide", "runs several times as",
            "the third action",
            "| 0.0 | 0.25 | 0.25 | 0.0 | 0.0", "of 0.25", "| 0.25", "takes a few times as"
        ],
        NONE,
    ),
    "docs/faq.md": (
        "",
        ["has half as"],
        NONE,
    ),
    "docs/how-it-works.md": (
        "30 64 70 150 2600 6507",
        ["with 128 bytes"],
        NONE,
    ),
    "docs/install.md": (
        "+17 11 64 90 525 580",
        [
            "except 11.0", "(tested: 13.0); 12.8", "to two minutes for",
            "for 7.5, 8.0, 8.6, 8.9, 9.0, 10.0 and 12.0", "for 8.6 also", "on 8.7 and 8.9. There",
            "run several times slower", "before 1.4 its"
        ],
        NONE,
    ),
    "docs/release.md": (
        "10 11 12 104",
        [
            "files of up to 100 MB", "take 13 MB for one architecture",
            "capability 9.0, NVRTC 13.0",
            "| 1.7 | in a fresh", "| 1.6 | under QEMU", "| 1.7 | under Wine", "| 1.6 | nothing"
        ],
        NONE,
    ),
    "docs/jax.md": (
        "0 1 4 8 10",
        [],
        NONE,
    ),
    "examples/jax_ppo/README.md": (
        "",
        [],
        NONE,
    ),
    "docs/troubleshooting.md": (
        "0",
        ["got … twice","named twice or", "two halves of", "sent twice without"],
        NONE,
    ),
    "design/ale_differences.md": (
        "-1,000,000 -1 00 0 1 2 3 4 5 6 7 8 10 11 13 15 21 30 32 60 76 100 262 285 290 342 6507 "
        "23,000 25,000 65,536 999,999 4753849",
        ["about 18 minutes", "| 0.25"],
        NONE,
    ),
    "design/architecture.md": (
        "1 2 3 4 5 6 7 8 128 2600 6507 60,000",
        ["its half, and", "its 128 bytes"],
        NONE,
    ),
    "design/decode.md": (
        "0 1 7 16 32 48 64 256 6507",
        ["cost 1.3 to 3 times", "of 16 bytes"],
        DECIDED,
    ),
    "design/glossary.md": (
        "0 1 4 8 13 16 32 76 84 160 228 262 6502 6507",
        ["with 128 bytes", "a third of a CPU cycle"],
        NONE,
    ),
    "design/resets_and_observations.md": (
        "0 1 2 4 16 30 32 60 64 70 84 96 150 210 256 512 2048 2,378",
        [
            "color, three times as", "in double precision", "below 0.001", "is half to",
            "sums 3 to 15 bytes"
        ],
        DECIDED,
    ),
    "design/scope.md": (
        "1 2 3 32 2021",
        ["thread twice a", "be twice as", "takes 10 us an"],
        DECIDED,
    ),
    "design/tia_instruction_buffer.md": (
        "00 0 1 2 3 4 8 16 18 21 30 32 33 64 76 101 104 160 255 343 394 2,560 3,449 3,804 "
        "4,096 5,124 6,144 8,704",
        [
            "`write_register`). Half of", "and half-way through", "right half is",
            "answers 60 to 90%", "about twice what"
        ],
        DECIDED,
    ),
    "design/train.md": (
        "0 1 2 3 4 5 6 8 16 30 32 40 64 65 100 8,192 65,536",
        [
            "takes 0.1 to 0.2 s",
            "written twice side", "took 6 ms", "emulate, half of", "first time after five seconds",
            "time after twice as", "than 0.1 s", "with half of", "was 270 launches",
            "not six times", "for 1.7 million", "in 0.30 ms", "of 8 bytes", "took 0.66",
            "bus twice", "for 8% of", "took 20 seconds",
            "needs half the CPU: 0.35 to 0.4 ms", "policy's 0.3 to 0.45",
            "has 1.4 GB", "takes seven seconds for", "for half a second. To"
        ],
        DECIDED,
    ),
    "design/translation.md": (
        "3 31 32 60 64 104 118 119 150 250 300 500 600 1,200 6,000 6507 25,000",
        [
            "How many times the", "after a fifth more", "pong 1.07 and 1.98", "zaxxon 2.1 and 5.3",
            "riverraid 3.4 and 7.0", "boxing 4.2 and 4.4", "solaris 6.4 and 7.8",
            "games, 97% of", "about 10 ms", "Phoenix, 42% of", "Attack 80%. A",
            "from 2.5 to 0.5 million", "least 0.2%", "above 99.8%"
        ],
        DECIDED,
    ),
    "design/translation_details.md": (
        "12 13 14 16 22 64 80 128 150 512 4,096 6507",
        [
            "most 2% of", "adds a tenth", "by a tenth of", "was a fifth faster",
            "of 1 KiB", "a third off", "takes 3 to 6%",
            "riverraid 9.0 to 10.6 and 11.3 ms.)", "took 7.4 instead of 8.7 ms",
            "pong 5.5 instead of 6.1, when", "after twice as many", "together Half of",
            "last quarter took", "its third", "executes 9 to 41%", "by 4 to 13%",
            "is 1.1 to 1.5 times", "take half as", "work. Half of", "for 25 ms", "to 47 s",
            "a third kernel", "is three times as", "took half as", "it many times afterwards",
            "saved half of", "Two thirds of"
        ],
        DECIDED,
    ),
}
# fmt: on


def pages() -> list[SimpleNamespace]:
    """These pages, as the modules of others are."""
    return [
        SimpleNamespace(
            PAGE=ROOT / name,
            SOURCES=(),
            NUMBERS=numbers,
            GIVEN=dict.fromkeys(words, what),
            figures=lambda: iter(()),
        )
        for name, (numbers, words, what) in OTHERS.items()
    ]

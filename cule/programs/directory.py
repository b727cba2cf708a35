"""The programs of cule by name."""

from __future__ import annotations

# The programs: the module with its `main`, and what it does.
PROGRAMS = {
    "demo": ("cule.demo", "plays a dozen games, says how fast, and draws their screens"),
    "play": ("cule.play", "opens a game in a window, which you play with the keyboard"),
    "record": ("cule.record", "records a video of games that are played with random actions"),
    "bench": ("cule.bench.__main__", "measures frames per second; on a CPU, ale-py's, too"),
    "train": ("cule.train.__main__", "says how to train, and lists the programs around trainings"),
    "evaluate": (
        "cule.train.evaluate.__main__",
        "plays a trained agent's episodes on ale-py: its score",
    ),
    "watch": ("cule.train.watch", "records a video of a trained agent"),
    "publish": (
        "cule.train.publish",
        "makes a folder of a trained agent: weights, card, film; and puts it on the Hub",
    ),
    "plot": ("cule.train.plot", "draws the scores of trainings against time and frames"),
    "sweep": ("cule.train.sweep.__main__", "trains on many games with many seeds"),
    "scaling": ("cule.train.scaling", "foretells how fast a training is with more GPUs"),
    "tune": ("cule.train.tune.__main__", "finds the settings with which a training is fastest"),
    "scope": ("cule.scope.__main__", "says where a training's time goes, on the CPU and the GPU"),
    "compile": ("cule.compile", "compiles games for GPUs ahead of time, for images and clusters"),
    "info": (
        "cule.info",
        "says what is installed, built and found, and how to fix what is missing",
    ),
}

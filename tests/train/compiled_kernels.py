"""Compiles all of cule.train's kernels for a GPU of compute capability 9.0, which need not be here.

Prints a line for each: its name, and the bytes of its code.
"""

from __future__ import annotations

import sys
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from cule.train.nn.kernels import (
    adam,
    convolutions,
    draws,
    frames,
    impala,
    layers,
    losses,
    muon,
    policy,
    returns,
)

TARGET = GPUTarget("cuda", 90, 32)
# What Triton calls types; an argument that is not in a kernel's own list has that of its name.
FLOAT, HALF, BYTE, LONG = "*fp32", "*bf16", "*u8", "*i64"
ROWS = {"ROWS": 32, "WIDTH": 8}
SCAN = {"steps": 20, "LANES": 64}
# A layer of the IMPALA ResNet of width 1.
LAYER = {"height": 21, "width": 21, "inputs": 32, "outputs": 32, "span": 2, "precision": "tf32",
         "LANES": 64}  # fmt: skip
# Each kernel's arguments that are not float32 tensors, and its constants.
KERNELS: dict[Any, tuple[dict[str, str], dict[str, Any]]] = {
    adam._adam: ({"first": FLOAT}, {"BLOCK": 1024}),
    convolutions.convolve: (
        dict.fromkeys(("pictures", "weights", "gate", "skip", "results"), HALF),
        LAYER | {"relu": True, "relu_after": True, "transposed": True},
    ),
    convolutions.convolve_and_pool: (
        {"pictures": HALF, "weights": HALF, "results": HALF, "winners": BYTE},
        LAYER | {"rows": 6},
    ),
    convolutions.unpool: (
        {"gradients": HALF, "winners": BYTE, "results": HALF},
        {"height": 21, "width": 21, "outputs": 32, "LANES": 64},
    ),
    convolutions.weight_gradients: (
        {"pictures": HALF, "gradients": HALF, "winners": BYTE},
        LAYER | {"inputs": 4, "span": 16, "relu": False},
    ),
    draws._draw: (
        {"step": LONG, "results": LONG, "seed": "i64"},
        {"kind": 2, "BLOCK": 256},
    ),
    frames._add: (
        dict.fromkeys(("words", "age", "slots", "frames"), LONG) | {"started": BYTE},
        {"oldest": 3, "BLOCK": 1024},
    ),
    frames._stacks: (
        dict.fromkeys(("words", "age", "slots", "envs", "stacks"), LONG),
        {"depth": 4, "BLOCK": 1024},
    ),
    layers._bias_relu: ({"values": HALF, "results": HALF}, {"BLOCK": 4096}),
    layers._bias_relu_backward: (
        dict.fromkeys(("gradients", "results", "passed"), HALF),
        {"tiles": 3, "ROWS": 256, "CHANNELS": 32},
    ),
    layers._centred_patches: (
        dict.fromkeys(("age", "slots", "envs"), LONG) | {"words": "*i32", "patches": HALF},
        {"depth": 4, "height": 84, "width": 84, "ring": True, "BLOCK": 1024},
    ),
    layers._centred_pixels: (
        dict.fromkeys(("age", "slots", "envs"), LONG) | {"words": "*i32", "pixels": HALF},
        {"depth": 4, "size": 1764, "ring": True, "BLOCK": 1024},
    ),
    losses._clipped_loss: (
        {"played": BYTE, "ent_coef": FLOAT},
        {"changing": True, "BLOCK": 1024},
    ),
    losses._vtrace_loss: ({"played": BYTE}, SCAN | {"changing": False}),
    muon._bounds: (dict.fromkeys(("grams", "least", "factors"), HALF), {"BLOCK": 4096}),
    muon._directions: ({"stacks": HALF, "table": LONG}, {"BLOCK": 1024}),
    muon._move: ({"stacks": HALF, "table": LONG}, {"BLOCK": 1024}),
    policy._first_to_ring: ({"actions": LONG}, ROWS),
    policy._policy_and_value: ({"outputs": HALF}, ROWS),
    policy._policy_and_value_backward: ({"gradients": HALF}, ROWS),
    policy._terms: ({"actions": LONG}, ROWS),
    policy._terms_backward: ({"actions": LONG}, ROWS),
    returns._discounted_returns: ({}, SCAN | {"most": 5}),
    returns._gae: ({}, SCAN),
    returns._lambda_returns: ({}, SCAN),
    returns._vtrace: ({}, SCAN),
}
# What kernels call is compiled with them.
CALLED = {
    adam._correction, convolutions._convolved, convolutions._from_windows, convolutions._larger,
    convolutions._row_of_windows, convolutions._under_taps, frames.begin_of, frames.newest_of,
    layers._begin_of_own, layers._image, muon._places,
}  # fmt: skip
WHOLE = {"size", "rows", "width", "channels", "length", "columns", "count", "word_slot", "word_env",
         "age_slot", "slot_row", "slot_column", "env_row", "env_column", "first", "number", "stop",
         "envs", "each", "tiles"}  # fmt: skip
REAL = {
    "beta_1",
    "beta_2",
    "log_beta_1",
    "log_beta_2",
    "epsilon",
    "vf_coef",
    "ent_coef",
    "clip_coef",
    "rho_bar",
    "c_bar",
    "trace_decay",
    "decay",
    "momentum",
}


def kind(name: str, own: dict[str, str], constants: dict[str, Any]) -> str:
    """What Triton calls an argument's type."""
    if name in constants:
        return "constexpr"
    return own.get(name) or ("i32" if name in WHOLE else "fp32" if name in REAL else FLOAT)


def compiled(kernel: Any, own: dict[str, str], constants: dict[str, Any]) -> int:
    """Compiles a kernel; returns the bytes of its code."""
    names = [parameter.name for parameter in kernel.params]
    signature = {name: kind(name, own, constants) for name in names}
    values = {(names.index(name),): value for name, value in constants.items()}
    source = ASTSource(fn=kernel, signature=signature, constexprs=values)
    return len(triton.compile(source, target=TARGET).asm["cubin"])


def main() -> None:
    """Compiles them, also with each whole number as 1, which Triton then makes a constant."""
    modules = adam, convolutions, draws, frames, impala, layers, losses, muon, policy, returns
    there = {v for m in modules for v in vars(m).values() if isinstance(v, triton.JITFunction)}
    assert there - CALLED == set(KERNELS), "each kernel is in the table"
    for kernel, (own, constants) in KERNELS.items():
        ones = {p.name: 1 for p in kernel.params if p.name in WHOLE.difference(own)}
        sizes = [compiled(kernel, own, some) for some in (constants, ones | constants)]
        sys.stdout.write(f"{kernel.__name__} {min(sizes)}\n")


if __name__ == "__main__":
    main()

"""One console: what it plays, its cartridge, and the states that its episodes start from.

Start states are emulated once, on the CPU, whatever device the envs use. They are kept until the
process ends.

- options.py: `Group` and `Options`, what is played and how
- cartridge.py: the ROM image, decoded ahead of time, and how a console is set up for it
- instruction_buffers.py: how large the logs of writes to the TIA are
- power_on.py: the random numbers of consoles that are turned on
- console.py: `Console`, which plays on the CPU
- start_states.py: consoles after power-on, and reset pools
"""

from cule.console.cartridge import rom_of
from cule.console.console import Console
from cule.console.options import AUTORESET_MODES, EPISODE_STARTS, Group, Options, action_numbers
from cule.console.start_states import boot

__all__ = [
    "AUTORESET_MODES", "EPISODE_STARTS", "Console", "Group", "Options", "action_numbers", "boot",
    "rom_of",
]  # fmt: skip

"""A batch of envs on one device: its memory, and the one caller of the compiled kernels.

Python owns every buffer as a torch tensor and passes addresses in `_core.Batch`. Tensors keep the
names that the C++ fields have (csrc/kernels/batch.h describes them).

- layout.py: which tensors a batch has, of which shapes, and its plain numbers
- memory.py: tensors whose addresses are the batch's fields
- constants.py: what all envs read and none writes
- start_states.py: the states that episodes start from
- allocation.py: allocates all of these, or says how many envs would fit
- contents.py: reads records and pictures from the memory
- changeover.py: changes from interpreting a game to its compiled kernel
- engine.py: `Engine`, which puts these together and runs steps and resets
"""

from cule.engine.engine import Engine, fewest_multiprocessors

__all__ = ["Engine", "fewest_multiprocessors"]

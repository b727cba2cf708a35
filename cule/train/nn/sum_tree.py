"""A tree of sums, from which numbers are drawn with chances in proportion to their size.

The sum tree of prioritized replay (Schaul et al., 2016, appendix B.2.1), with FAN children to a
node, so that a million numbers need four levels. Every method only gives work to the device, in
shapes that do not depend on the numbers, so that a CUDA graph may hold it.
"""

from __future__ import annotations

import torch

FAN = 64


class SumTree:
    """Numbers of at least 0, all 0 at first.

    Args:
        size: how many numbers there are.
        device: where they are.

    Attributes:
        levels: float64 each: the numbers, the sums of FAN of them, the sums of FAN of these, ...,
            up to FAN sums or fewer, padded with 0.
    """

    def __init__(self, size: int, device: torch.device):
        self.levels: list[torch.Tensor] = []
        while True:
            padded = -(-size // FAN) * FAN
            self.levels.append(torch.zeros(padded, dtype=torch.float64, device=device))
            if padded == FAN:
                break
            size = padded // FAN

    @property
    def bytes(self) -> int:
        """Bytes of all levels."""
        return sum(level.numel() * level.element_size() for level in self.levels)

    def set(self, places: torch.Tensor, values: torch.Tensor) -> None:
        """Changes some numbers; of a place that is named twice the larger one counts.

        Args:
            places: (n,) int64.
            values: (n,) float64, at least 0.
        """
        numbers = self.levels[0]
        numbers.index_fill_(0, places, 0.0)
        # The order in which a GPU writes to the same place is not defined, the largest value is.
        numbers.scatter_reduce_(0, places, values, "amax")
        for below, above in zip(self.levels, self.levels[1:], strict=False):
            places = places // FAN
            above.index_copy_(0, places, below.view(-1, FAN).index_select(0, places).sum(1))

    def draw(self, uniform: torch.Tensor) -> torch.Tensor:
        """The places of the numbers in whose ranges shares of the total lie.

        Args:
            uniform: (n,) float64 in [0, 1).

        Returns:
            (n,) int64. Numbers of 0 are not drawn, unless all are 0.
        """
        rest = uniform * self.levels[-1].sum()
        node = torch.zeros_like(uniform, dtype=torch.int64)
        for level in reversed(self.levels):
            children = level.view(-1, FAN).index_select(0, node)
            sums = children.cumsum(1)
            # A sum in another order may be less by a rounding.
            rest = torch.minimum(rest, sums[:, -1].nextafter(torch.zeros_like(rest)))
            child = (sums <= rest.unsqueeze(1)).sum(1, keepdim=True).clamp_(max=FAN - 1)
            rest = (rest - (sums - children).gather(1, child).squeeze(1)).clamp_(min=0.0)
            node = node * FAN + child.squeeze(1)
        return node

    def values(self, places: torch.Tensor) -> torch.Tensor:
        """The numbers at some places: (n,) float64."""
        return self.levels[0].index_select(0, places)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """All levels."""
        return {str(number): level for number, level in enumerate(self.levels)}

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Restores what state_dict() returned."""
        for number, level in enumerate(self.levels):
            level.copy_(state[str(number)])

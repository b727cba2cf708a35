"""Reads the envs' records and pictures from the memory of a batch."""

from __future__ import annotations

import torch

from cule import _core
from cule.engine.layout import Layout


class Contents:
    """Views of a batch's memory, by envs.

    Args:
        layout: the layout of the memory.
        tensors: the memory, by the names of the batch's fields.
    """

    def __init__(self, layout: Layout, tensors: dict[str, torch.Tensor]):
        self._layout, self._tensors = layout, tensors

    def records(self) -> torch.Tensor:
        """The envs' records: (num_envs, RECORD_WORDS) int32, a view."""
        words, num_envs = self._tensors["records"], self._layout.num_envs
        if self._layout.on_gpu:
            return words.view(_core.RECORD_WORDS, num_envs).t()
        return words.view(num_envs, _core.RECORD_WORDS)

    def elapsed_frames(self) -> torch.Tensor:
        """(num_envs,) int32: the frames of each episode's steps, without its reset's no-ops."""
        return self.records()[:, _core.ELAPSED_BYTE // 4]

    def screen(self, env: int) -> torch.Tensor:
        """One env's (height, 160) uint8 palette indices, as `screens` gives them."""
        word = int(self.records()[env, _core.FRONT_BYTE // 4])
        front = (word >> (_core.FRONT_BYTE % 4 * 8)) & 1
        return _rows(self._tensors["pictures"][env, front], self._tensors["row_of"][env, front])

    def screens(self) -> torch.Tensor:
        """(num_envs, height, 160) uint8: palette indices of the last frame.

        If a game's picture has fewer rows than the tallest, the rows below it are 0.
        """
        word = self.records()[:, _core.FRONT_BYTE // 4]
        front = (word >> (_core.FRONT_BYTE % 4 * 8)) & 1
        chosen = torch.arange(len(word), device=word.device), front.long()
        return _rows(self._tensors["pictures"][chosen], self._tensors["row_of"][chosen])

    def pictures(self, env_ids: torch.Tensor) -> torch.Tensor:
        """(len(env_ids), 2, height, 160) uint8: both pictures of envs `env_ids` (int64)."""
        return _rows(self._tensors["pictures"][env_ids], self._tensors["row_of"][env_ids])

    def pooled(self, env_ids: torch.Tensor) -> torch.Tensor:
        """(len(env_ids), bytes) uint8: the newest pooled frames; zeros if they are not stored."""
        frames = self._tensors["pooled"]
        if self._layout.keeps_pooled:
            return frames[env_ids]
        return frames.new_zeros((len(env_ids), frames.shape[1]))


def _rows(pixels: torch.Tensor, row_of: torch.Tensor) -> torch.Tensor:
    """(..., height, 160): the scanlines, each from the row of `pixels` that `row_of` names."""
    rows = pixels.unflatten(-1, (-1, _core.LINE_PIXELS))
    height = rows.shape[-2]
    all_rows = rows.reshape(-1, _core.LINE_PIXELS)
    first = torch.arange(0, len(all_rows), height, device=rows.device)
    chosen = row_of[..., :height].reshape(-1, height) + first[:, None]  # int64
    return all_rows.index_select(0, chosen.flatten()).view(rows.shape)

"""The colors of the TIA's 128 color codes on NTSC and PAL televisions, as ale-py has them.

A palette index is a COLUxx value: the hue is in the high nibble, the luminance in the next three
bits. Bit 0 is set only if a PAL console has lost its colors: the color is then the grey of the same
luminance.
"""

from __future__ import annotations

import numpy as np


def _colors(rows: str) -> np.ndarray:
    """(128, 3) uint8 from 16 rows (hues) of 8 (luminances) RGB triplets in hexadecimal."""
    return np.array([list(bytes.fromhex(word)) for word in rows.split()], dtype=np.uint8)


NTSC_RGB = _colors(
    """
    000000 4A4A4A 6F6F6F 8E8E8E AAAAAA C0C0C0 D6D6D6 ECECEC
    484800 69690F 86861D A2A22A BBBB35 D2D240 E8E84A FCFC54
    7C2C00 904811 A26221 B47A30 C3903D D2A44A DFB755 ECC860
    901C00 A33915 B55328 C66C3A D5824A E39759 F0AA67 FCBC74
    940000 A71A1A B83232 C84848 D65C5C E46F6F F08080 FC9090
    840064 97197A A8308F B846A2 C659B3 D46CC3 E07CD2 EC8CE0
    500084 68199A 7D30AD 9246C0 A459D0 B56CE0 C57CEE D48CFC
    140090 331AA3 4E32B5 6848C6 7F5CD5 956FE3 A980F0 BC90FC
    000094 181AA7 2D32B8 4248C8 545CD6 656FE4 7580F0 8490FC
    001C88 183B9D 2D57B0 4272C2 548AD2 65A0E1 75B5EF 84C8FC
    003064 185080 2D6D98 4288B0 54A0C5 65B7D9 75CCEB 84E0FC
    004030 18624E 2D8169 429E82 54B899 65D1AE 75E7C2 84FCD4
    004400 1A661A 328432 48A048 5CBA5C 6FD26F 80E880 90FC90
    143C00 355F18 527E2D 6E9C42 87B754 9ED065 B4E775 C8FC84
    303800 505916 6D762B 88923E A0AB4F B7C25F CCD86E E0EC7C
    482C00 694D14 866A26 A28638 BB9F47 D2B656 E8CC63 FCE070
    """
)
PAL_RGB = _colors(
    """
    000000 2B2B2B 525252 767676 979797 B6B6B6 D2D2D2 ECECEC
    000000 2B2B2B 525252 767676 979797 B6B6B6 D2D2D2 ECECEC
    805800 96711A AB8732 BE9C48 CFAF5C DFC06F EED180 FCE090
    445C00 5E791A 769332 8CAC48 A0C25C B3D76F C4EA80 D4FC90
    703400 89511A A06B32 B68448 C99A5C DCAF6F ECC280 FCD490
    006414 1A8035 329852 48B06E 5CC587 6FD99E 80EBB4 90FCC8
    700014 891A35 A03252 B6486E C95C87 DC6F9E EC80B4 FC90C8
    005C5C 1A7676 328E8E 48A4A4 5CB8B8 6FCBCB 80DCDC 90ECEC
    70005C 841A74 963289 A8489E B75CB0 C66FC1 D380D1 E090E0
    003C70 195A89 2F75A0 448EB6 57A5C9 68BADC 79CEEC 88E0FC
    580070 6E1A89 8332A0 9648B6 A75CC9 B76FDC C680EC D490FC
    002070 193F89 2F5AA0 4474B6 578BC9 68A1DC 79B5EC 88C8FC
    340080 4A1A96 5F32AB 7248BE 835CCF 936FDF A280EE B090FC
    000088 1A1A9D 3232B0 4848C2 5C5CD2 6F6FE1 8080EF 9090FC
    000000 2B2B2B 525252 767676 979797 B6B6B6 D2D2D2 ECECEC
    000000 2B2B2B 525252 767676 979797 B6B6B6 D2D2D2 ECECEC
    """
)


def _grey(rgb: np.ndarray) -> np.ndarray:
    """Luma of (n, 3) colors as ITU-R BT.601 weighs them, rounded: (n,) uint8."""
    weighted = rgb[:, 0] * 0.2989 + rgb[:, 1] * 0.5870 + rgb[:, 2] * 0.1140
    return np.floor(weighted + 0.5).astype(np.uint8)


def rgb_palette(pal: bool) -> np.ndarray:
    """(256, 3) uint8: the RGB color of every palette index."""
    colors = PAL_RGB if pal else NTSC_RGB
    palette = np.repeat(colors, 2, axis=0)
    palette[1::2] = _grey(colors)[:, None]
    return palette


def grey_palette(pal: bool) -> np.ndarray:
    """(256, 1) uint8: the grey value of every palette index.

    At odd indices it is the blue of the next color, as ale-py reads its table one entry too far.
    """
    colors = PAL_RGB if pal else NTSC_RGB
    palette = np.zeros((256, 1), dtype=np.uint8)
    palette[::2, 0] = _grey(colors)
    palette[1:-1:2, 0] = colors[1:, 2]
    return palette

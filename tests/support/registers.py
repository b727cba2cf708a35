"""Addresses of the console's registers, by the names of the Stella Programmer's Guide.

One address means different things for reads and writes, so the TIA has two lists.
"""

# The TIA, writes. Addresses $0D to $2C have no gaps; $2D to $3F are not decoded.
(
    VSYNC, VBLANK, WSYNC, RSYNC, NUSIZ0, NUSIZ1, COLUP0, COLUP1, COLUPF, COLUBK, CTRLPF,
    REFP0, REFP1, PF0, PF1, PF2, RESP0, RESP1, RESM0, RESM1, RESBL,
    AUDC0, AUDC1, AUDF0, AUDF1, AUDV0, AUDV1, GRP0, GRP1, ENAM0, ENAM1, ENABL,
    HMP0, HMP1, HMM0, HMM1, HMBL, VDELP0, VDELP1, VDELBL, RESMP0, RESMP1, HMOVE, HMCLR, CXCLR,
) = range(0x2D)  # fmt: skip
TIA_WRITES = range(0x40)

# The TIA, reads.
(
    CXM0P, CXM1P, CXP0FB, CXP1FB, CXM0FB, CXM1FB, CXBLPF, CXPPMM,
    INPT0, INPT1, INPT2, INPT3, INPT4, INPT5,
) = range(0x0E)  # fmt: skip

# The M6532 (RIOT).
SWCHA, SWACNT, SWCHB, SWBCNT, INTIM, TIMINT = range(0x280, 0x286)
TIM1T, TIM8T, TIM64T, T1024T = range(0x294, 0x298)

# Marks in the TIA instruction buffer, which are no registers (csrc/tia/log/instruction_buffer.h).
FRAME_BEGIN, TOUCH, GREY_OUT, FRAME_END = range(0x30, 0x34)

"""The TIA's frames: two pictures in turn, frames that are cut off, and PAL's color loss."""

from types import ModuleType

from tia_screen import EMPTY, FIRST_LINE, LETTERS, LINES, OVERLAP, Screen

from tests.support.registers import COLUBK, FRAME_BEGIN, FRAME_END, GREY_OUT, PF0, TOUCH


def test_tia_frames_alternate_between_two_pictures(chips: ModuleType) -> None:
    screen = Screen(chips)
    assert screen.lines() == [EMPTY] * LINES
    screen.tia.write(0, FRAME_BEGIN, 0)
    screen.tia.write(1, COLUBK, 0x6C)
    screen.tia.write((FIRST_LINE + LINES + 1) * 76, TOUCH, 0)
    assert (screen.tia.picture() == 0x6C).all()
    assert (screen.tia.picture(back=True) == 0x8E).all()


def test_tia_grey_out_keeps_the_luminance_below_the_line(chips: ModuleType) -> None:
    screen = Screen(chips, {PF0: 0x10})
    lit = screen.lines()
    screen.tia.write((FIRST_LINE + 2) * 76 + 30, GREY_OUT, 0)
    picture = screen.tia.picture()
    assert ["".join(LETTERS[color] for color in row) for row in picture[:2].tolist()] == lit[:2]
    grey = {".": 0x0E >> 1, "f": 0x0C >> 1}
    assert picture[2:].tolist() == [[grey[letter] for letter in lit[0]]] * (LINES - 2)


def test_tia_grey_out_above_the_picture_takes_all_of_it(chips: ModuleType) -> None:
    screen = Screen(chips)
    screen.lines()
    screen.tia.write(10, GREY_OUT, 0)
    assert (screen.tia.picture() == 0x07).all()


def test_tia_color_loss_sets_bit_0(chips: ModuleType) -> None:
    """PAL consoles lose colors after a frame with an odd number of scanlines; odd colors are
    shades of grey."""
    screen = Screen(chips, OVERLAP)
    plain = screen.lines()
    screen.tia.write(0, FRAME_BEGIN, 1)
    screen.tia.write((FIRST_LINE + 1) * 76, COLUBK, 0x31)
    screen.tia.write((FIRST_LINE + 2) * 76, COLUBK, 0x8E)
    screen.tia.write((FIRST_LINE + LINES + 1) * 76, TOUCH, 0)
    code = {letter: color | 1 for color, letter in LETTERS.items()}
    lost = [[code[letter] for letter in line] for line in plain]
    lost[1] = [0x31 if color == 0x8F else color for color in lost[1]]
    assert screen.tia.picture().tolist() == lost
    screen.tia.write(0, FRAME_BEGIN, 0)
    assert screen.lines() == plain


def test_tia_colors_have_no_bit_0(chips: ModuleType) -> None:
    screen = Screen(chips, {COLUBK: 0x8F})
    assert screen.lines() == [EMPTY] * LINES


def test_tia_frame_end_mark_changes_nothing(chips: ModuleType) -> None:
    screen = Screen(chips, OVERLAP)
    before = screen.lines()
    screen.tia.write(0, FRAME_END, 0xFF)
    assert screen.lines() == before

// The TIA's registers: address, name and meaning. An address means one register for writes and
// another for reads. write_facts.h has what emulation needs to know about writes.
//
// Source: Stella Programmer's Guide, "TIA write address summary" and "TIA read address summary".
// As in ale-py, RSYNC is not emulated.
#pragma once

#include "common/platform.h"

namespace cule {

// For a write the TIA decodes six address lines. It ignores writes from $2D on.
namespace tia_write {
enum Register : uint32_t {
  VSYNC = 0x00,   // bit 1: vertical sync on
  VBLANK = 0x01,  // bit 1: the beam is off; bit 7: the paddles' inputs are held at ground
  WSYNC = 0x02,   // strobe: the processor waits for the next scanline
  RSYNC = 0x03,   // strobe: the scanline begins anew (not emulated, as in ale-py)
  NUSIZ0 = 0x04,  // bits 0 to 2: player 0's copies and width; 4 and 5: missile 0's width
  NUSIZ1 = 0x05,  // the same for player 1 and missile 1
  COLUP0 = 0x06,  // color of player 0 and missile 0
  COLUP1 = 0x07,  // color of player 1 and missile 1
  COLUPF = 0x08,  // color of the playfield and the ball
  COLUBK = 0x09,  // color of the background
  CTRLPF = 0x0A,  // bit 0: playfield mirrored; 1: score; 2: priority; 4 and 5: the ball's width
  REFP0 = 0x0B,   // bit 3: player 0 mirrored
  REFP1 = 0x0C,   // bit 3: player 1 mirrored
  PF0 = 0x0D,     // playfield, left half: bits 4 to 7 are its first pixels
  PF1 = 0x0E,     // bits 7 to 0 are its next pixels
  PF2 = 0x0F,     // bits 0 to 7 are its last pixels
  RESP0 = 0x10,   // strobe: moves player 0 to the beam
  RESP1 = 0x11,   // strobe: moves player 1 to the beam
  RESM0 = 0x12,   // strobe: moves missile 0 to the beam
  RESM1 = 0x13,   // strobe: moves missile 1 to the beam
  RESBL = 0x14,   // strobe: moves the ball to the beam
  AUDC0 = 0x15,   // sound: waveform of channel 0 (bits 0 to 3)
  AUDC1 = 0x16,   // sound: waveform of channel 1
  AUDF0 = 0x17,   // sound: frequency of channel 0 (bits 0 to 4)
  AUDF1 = 0x18,   // sound: frequency of channel 1
  AUDV0 = 0x19,   // sound: volume of channel 0 (bits 0 to 3)
  AUDV1 = 0x1A,   // sound: volume of channel 1
  GRP0 = 0x1B,    // player 0's eight pixels
  GRP1 = 0x1C,    // player 1's eight pixels
  ENAM0 = 0x1D,   // bit 1: missile 0 on
  ENAM1 = 0x1E,   // bit 1: missile 1 on
  ENABL = 0x1F,   // bit 1: the ball on
  HMP0 = 0x20,    // bits 4 to 7: motion of player 0 at the next HMOVE
  HMP1 = 0x21,    // bits 4 to 7: motion of player 1
  HMM0 = 0x22,    // bits 4 to 7: motion of missile 0
  HMM1 = 0x23,    // bits 4 to 7: motion of missile 1
  HMBL = 0x24,    // bits 4 to 7: motion of the ball
  VDELP0 = 0x25,  // bit 0: player 0 shows the pixels that it had when GRP1 was last written
  VDELP1 = 0x26,  // bit 0: player 1 shows the pixels that it had when GRP0 was last written
  VDELBL = 0x27,  // bit 0: the ball shows as it was when GRP1 was last written
  RESMP0 = 0x28,  // bit 1: missile 0 is hidden and locked to the middle of player 0
  RESMP1 = 0x29,  // bit 1: missile 1 is hidden and locked to the middle of player 1
  HMOVE = 0x2A,   // strobe: moves the objects
  HMCLR = 0x2B,   // strobe: sets all motion registers to 0
  CXCLR = 0x2C,   // strobe: clears the collision latches
};
}  // namespace tia_write
constexpr uint32_t kNumTiaWrites = tia_write::CXCLR + 1;

// For a read the TIA decodes four address lines, and drives bits 7 and 6 of the data bus. CXM0P to
// CXPPMM say which objects have collided: the first pair listed is in bit 7, the second in bit 6.
// CXBLPF and INPT0 to INPT5 have bit 7 only.
namespace tia_read {
enum Register : uint32_t {
  CXM0P = 0x00,   // missile 0 with player 1; missile 0 with player 0
  CXM1P = 0x01,   // missile 1 with player 0; missile 1 with player 1
  CXP0FB = 0x02,  // player 0 with the playfield; player 0 with the ball
  CXP1FB = 0x03,  // player 1 with the playfield; player 1 with the ball
  CXM0FB = 0x04,  // missile 0 with the playfield; missile 0 with the ball
  CXM1FB = 0x05,  // missile 1 with the playfield; missile 1 with the ball
  CXBLPF = 0x06,  // the ball with the playfield
  CXPPMM = 0x07,  // player 0 with player 1; missile 0 with missile 1
  INPT0 = 0x08,   // the capacitor of paddle 0 is charged
  INPT1 = 0x09,   // the capacitor of paddle 1 is charged
  INPT2 = 0x0A,   // the capacitor of paddle 2 is charged
  INPT3 = 0x0B,   // the capacitor of paddle 3 is charged
  INPT4 = 0x0C,   // the left joystick's button is up
  INPT5 = 0x0D,   // the right joystick's button is up
};
}  // namespace tia_read

constexpr int kClocksPerCycle = 3;
constexpr int kClocksPerLine = 228;
constexpr int kCyclesPerLine = 76;
constexpr int kHblankClocks = 68;
constexpr int kLinePixels = 160;

}  // namespace cule

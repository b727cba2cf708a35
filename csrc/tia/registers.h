// The TIA's registers: address, name and meaning, as in the Stella Programmer's Guide ("TIA write
// address summary", "TIA read address summary"). One address means different things by direction.
// What emulation has to know of the registers that are written to is in write_facts.h.
#pragma once

#include "common/platform.h"

namespace cule {

// The TIA decodes six address lines of a write. It ignores those from $2D on.
namespace tia_write {
enum Register : uint32_t {
  VSYNC = 0x00,   // bit 1: vertical sync on
  VBLANK = 0x01,  // bit 1: the beam is off; bit 7: the paddles' inputs are held at ground
  WSYNC = 0x02,   // strobe: the processor waits for the next scanline
  RSYNC = 0x03,   // strobe: the scanline begins anew (not emulated, as in ale-py)
  NUSIZ0 = 0x04,  // bits 0 to 2: player 0's copies and width; 4 and 5: missile 0's width
  NUSIZ1 = 0x05,  // the same of player 1 and missile 1
  COLUP0 = 0x06,  // color of player 0 and missile 0
  COLUP1 = 0x07,  // color of player 1 and missile 1
  COLUPF = 0x08,  // color of the playfield and the ball
  COLUBK = 0x09,  // color of the background
  CTRLPF = 0x0A,  // bit 0: playfield mirrored; 1: score; 2: priority; 4 and 5: the ball's width
  REFP0 = 0x0B,   // bit 3: player 0 mirrored
  REFP1 = 0x0C,   // bit 3: player 1 mirrored
  PF0 = 0x0D,     // playfield: bits 4 to 7 are its first pixels
  PF1 = 0x0E,     // bits 7 to 0 the next
  PF2 = 0x0F,     // bits 0 to 7 the last of the left half
  RESP0 = 0x10,   // strobe: player 0 is where the beam is
  RESP1 = 0x11,   // strobe: player 1 is
  RESM0 = 0x12,   // strobe: missile 0 is
  RESM1 = 0x13,   // strobe: missile 1 is
  RESBL = 0x14,   // strobe: the ball is
  AUDC0 = 0x15,   // sound: waveform of channel 0
  AUDC1 = 0x16,   // of channel 1
  AUDF0 = 0x17,   // sound: frequency of channel 0
  AUDF1 = 0x18,   // of channel 1
  AUDV0 = 0x19,   // sound: volume of channel 0
  AUDV1 = 0x1A,   // of channel 1
  GRP0 = 0x1B,    // player 0's eight pixels
  GRP1 = 0x1C,    // player 1's eight pixels
  ENAM0 = 0x1D,   // bit 1: missile 0 on
  ENAM1 = 0x1E,   // bit 1: missile 1 on
  ENABL = 0x1F,   // bit 1: the ball on
  HMP0 = 0x20,    // bits 4 to 7: player 0's motion at the next HMOVE
  HMP1 = 0x21,    // player 1's
  HMM0 = 0x22,    // missile 0's
  HMM1 = 0x23,    // missile 1's
  HMBL = 0x24,    // the ball's
  VDELP0 = 0x25,  // bit 0: player 0 shows its pixels of before GRP1 was last written
  VDELP1 = 0x26,  // bit 0: player 1 shows those of before GRP0 was
  VDELBL = 0x27,  // bit 0: the ball shows as it was before GRP1 was last written
  RESMP0 = 0x28,  // bit 1: missile 0 is hidden in the middle of player 0
  RESMP1 = 0x29,  // bit 1: missile 1 in that of player 1
  HMOVE = 0x2A,   // strobe: the objects move
  HMCLR = 0x2B,   // strobe: all motion registers are 0
  CXCLR = 0x2C,   // strobe: the collision latches are cleared
};
}  // namespace tia_write
constexpr uint32_t kNumTiaWrites = tia_write::CXCLR + 1;

// It decodes four of a read, and drives bits 7 and 6: for CXM0P to CXPPMM, which two objects have
// met (CXBLPF: bit 7 only); for INPT0 to INPT5, bit 7.
namespace tia_read {
enum Register : uint32_t {
  CXM0P = 0x00,   // missile 0 with player 1; with player 0
  CXM1P = 0x01,   // missile 1 with player 0; with player 1
  CXP0FB = 0x02,  // player 0 with the playfield; with the ball
  CXP1FB = 0x03,  // player 1 with the playfield; with the ball
  CXM0FB = 0x04,  // missile 0 with the playfield; with the ball
  CXM1FB = 0x05,  // missile 1 with the playfield; with the ball
  CXBLPF = 0x06,  // the ball with the playfield
  CXPPMM = 0x07,  // the players; the missiles
  INPT0 = 0x08,   // paddle 0's capacitor is charged
  INPT1 = 0x09,   // paddle 1's
  INPT2 = 0x0A,   // paddle 2's
  INPT3 = 0x0B,   // paddle 3's
  INPT4 = 0x0C,   // the left joystick's button is up
  INPT5 = 0x0D,   // the right joystick's
};
}  // namespace tia_read

constexpr int kClocksPerCycle = 3;
constexpr int kClocksPerLine = 228;
constexpr int kCyclesPerLine = 76;
constexpr int kHblankClocks = 68;
constexpr int kLinePixels = 160;

}  // namespace cule

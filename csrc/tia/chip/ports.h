// The part of the TIA that the 6507 sees without a picture: the timing of frames, and the input
// ports.
//
// Sources: Stella Programmer's Guide; ale-py for the length of VSYNC and for the paddles, whose
// charging times are its estimates.
#pragma once

#include "common/cycles.h"
#include "tia/chip/registers.h"

namespace cule {

// Cycles are counted from the start of the frame's first scanline. When a frame begins, all
// counters move back by whole scanlines. So the position within the scanline carries over.
struct TiaPorts {
  int32_t cycle;
  int32_t frame_first_cycle;    // when the frame's first instruction began: 0 to 75
  int32_t vsync_finish_cycle;   // from this cycle on, clearing VSYNC ends the frame
  int32_t hmove_cycle;          // the last HMOVE
  int32_t touched_cycle;        // the last access to the TIA
  int32_t dump_end_cycle;       // when VBLANK last let the paddles' capacitors charge
  uint32_t dumping;             // VBLANK bit 7: the capacitors are held at ground
  uint32_t frame_open;          // the instruction limit cut off the last frame, which continues
  uint32_t greyed;              // the rest of that frame has been greyed out
  uint32_t scanlines;           // of the last whole frame
};

constexpr int32_t kNoVsync = 715827883;  // "never": ale-py's value in color clocks, as cycles
constexpr int32_t kVsyncCycles = kCyclesPerLine;  // how long VSYNC must last to count
constexpr int32_t kOldestHmove = -(1 << 20);

// A frame may never end. Before its counters would pass kOpenFrameLimit, they move back by
// kOpenFrameStep, an even number of scanlines. They stay far below the last visible scanline. There
// only the position within the scanline matters, and whether the number of scanlines is odd.
constexpr int32_t kBeyondPicture = 1 << 19;
constexpr int32_t kOpenFrameStep = 2 * kCyclesPerLine << 16;
constexpr int32_t kOpenFrameLimit = kBeyondPicture + kOpenFrameStep;

// Resets the ports. An open frame stays open.
CULE_INLINE void ports_reset(TiaPorts& ports) {
  const uint32_t frame_open = ports.frame_open, greyed = ports.greyed;
  ports = TiaPorts{};
  ports.vsync_finish_cycle = kNoVsync;
  ports.frame_open = frame_open;
  ports.greyed = greyed;
}

// Adjusts the ports after the cycle counter has moved back by `elapsed`.
CULE_INLINE void ports_rebase(TiaPorts& ports, int32_t elapsed) {
  ports.frame_first_cycle = wrapping_minus(ports.frame_first_cycle, elapsed);
  ports.dump_end_cycle = wrapping_minus(ports.dump_end_cycle, elapsed);
  ports.vsync_finish_cycle -= elapsed;
  if (ports.vsync_finish_cycle < 0) ports.vsync_finish_cycle = 0;  // also in the past
}

// The source of bit 7 when INPT0 to INPT3 are read.
enum InptWiring : uint32_t { kNotCharged, kCharged, kPaddle0, kPaddle1, kPaddle2, kPaddle3 };

// The levels at the console's sockets and switches during one frame.
struct Inputs {
  uint32_t swcha = 0xFF, swchb = 0x3F;
  uint32_t inpt4 = 0x80, inpt5 = 0x80;
  uint32_t charge_cycles[4] = {};  // cycles until the capacitor of a paddle reads as charged
};

// How many cycles it takes to charge a paddle's 0.01 uF capacitor through `ohms`. ale-py estimates
// this as 1.6 R C at 1.19 MHz.
CULE_INLINE uint32_t charge_cycles(int ohms) {
  const double seconds = 1.6 * ohms * 0.01e-6;
  return static_cast<uint32_t>(seconds * 1.19e6);
}

// Bit 7 of INPT0 to INPT3. `wiring` has one InptWiring per port, 4 bits each.
CULE_INLINE uint32_t read_paddle_port(const TiaPorts& ports, const Inputs& inputs, uint32_t wiring,
                                      uint32_t port, int32_t cycle) {
  const uint32_t source = wiring >> 4 * port & 0x0F;
  if (source == kCharged) return 0x80;
  if (source == kNotCharged) return 0;
  const uint32_t* cycles = inputs.charge_cycles;
  const uint32_t needed = source == kPaddle0   ? cycles[0]
                          : source == kPaddle1 ? cycles[1]
                          : source == kPaddle2 ? cycles[2]
                                               : cycles[3];
  if (needed == 0) return 0x80;
  if (ports.dumping) return 0;
  // Unsigned, as in ale-py: if a capacitor began to charge in an earlier frame, it can read as not
  // charged.
  const uint32_t since_frame = static_cast<uint32_t>(
      wrapping_minus(cycle, ports.frame_first_cycle));
  const uint32_t charged =
      static_cast<uint32_t>(wrapping_minus(ports.dump_end_cycle, ports.frame_first_cycle)) + needed;
  return since_frame > charged ? 0x80 : 0;
}

}  // namespace cule

// What the 6507 sees of the TIA: the frame's timing, WSYNC, and the input ports. Needs no picture.
#pragma once

#include "common/cycles.h"
#include "tia/registers.h"

namespace cule {

// Cycles are counted from the start of the frame's first scanline. When a frame begins, all
// counters move back by whole scanlines, so that the position within the scanline carries over.
struct TiaPorts {
  int32_t cycle;
  int32_t frame_first_cycle;    // when the frame's first instruction began: 0 to 75
  int32_t vsync_finish_cycle;   // from when on clearing VSYNC ends the frame
  int32_t hmove_cycle;          // the last HMOVE
  int32_t touched_cycle;        // the last access to the TIA
  int32_t dump_end_cycle;       // when VBLANK last let the paddles' capacitors charge
  uint32_t dumping;             // VBLANK bit 7: they are held at ground
  uint32_t frame_open;          // the last frame was cut off by the instruction limit and goes on
  uint32_t greyed;              // and its rest has been greyed out
  uint32_t scanlines;           // of the last whole frame
};

constexpr int32_t kNoVsync = 715827883;  // ale-py's "never" in color clocks, in cycles
constexpr int32_t kVsyncCycles = kCyclesPerLine;  // how long VSYNC must last to count
constexpr int32_t kOldestHmove = -(1 << 20);

// A frame that goes on and on has its counters moved back by kOpenFrameStep, an even number of
// scanlines, where they would pass kOpenFrameLimit. They stay far beyond the last visible scanline,
// where only the position within the scanline matters, and how many scanlines there were is asked
// only for its parity.
constexpr int32_t kBeyondPicture = 1 << 19;
constexpr int32_t kOpenFrameStep = 2 * kCyclesPerLine << 16;
constexpr int32_t kOpenFrameLimit = kBeyondPicture + kOpenFrameStep;

// Reset leaves an open frame open.
CULE_INLINE void ports_reset(TiaPorts& ports) {
  const uint32_t frame_open = ports.frame_open, greyed = ports.greyed;
  ports = TiaPorts{};
  ports.vsync_finish_cycle = kNoVsync;
  ports.frame_open = frame_open;
  ports.greyed = greyed;
}

// The cycle counter has been moved back by `elapsed`.
CULE_INLINE void ports_rebase(TiaPorts& ports, int32_t elapsed) {
  ports.frame_first_cycle = wrapping_minus(ports.frame_first_cycle, elapsed);
  ports.dump_end_cycle = wrapping_minus(ports.dump_end_cycle, elapsed);
  ports.vsync_finish_cycle -= elapsed;
  if (ports.vsync_finish_cycle < 0) ports.vsync_finish_cycle = 0;  // which is over just as well
}

// Where a read of INPT0 to INPT3 gets its bit 7 from.
enum InptWiring : uint32_t { kNotCharged, kCharged, kPaddle0, kPaddle1 };

// The levels at the console's sockets and switches during one frame.
struct Inputs {
  uint32_t swcha = 0xFF, swchb = 0x3F;
  uint32_t inpt4 = 0x80, inpt5 = 0x80;
  uint32_t charge_cycles[2] = {};  // until the capacitor of paddle 0, 1 reads as charged
};

// Cycles to charge a paddle's 0.01 uF capacitor through `ohms`, as ale-py estimates it: 1.6 R C at
// 1.19 MHz.
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
  const uint32_t needed = source == kPaddle0 ? inputs.charge_cycles[0] : inputs.charge_cycles[1];
  if (needed == 0) return 0x80;
  if (ports.dumping) return 0;
  // Unsigned as in ale-py: a capacitor let go in an earlier frame can read as not charged.
  const uint32_t since_frame = static_cast<uint32_t>(
      wrapping_minus(cycle, ports.frame_first_cycle));
  const uint32_t charged =
      static_cast<uint32_t>(wrapping_minus(ports.dump_end_cycle, ports.frame_first_cycle)) + needed;
  return since_frame > charged ? 0x80 : 0;
}

}  // namespace cule

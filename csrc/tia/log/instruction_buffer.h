// The TIA instruction buffer: the log of writes that the CPU part passes to the TIA part.
//
// The CPU part draws nothing. It appends each write that can change a picture or a collision as one
// 32-bit entry: the CPU cycle of the write, counted from the start of the frame's first scanline,
// the register, and the value. Marks between the entries say where frames begin and end. The TIA
// part replays the entries in order.
//
// A strobe needs no value. Some strobes carry the number of cycles since the last HMOVE instead.
// Otherwise the TIA part would have to keep a clock across frames.
//
// A real console has no such log: its TIA draws while the 6507 runs. The format is the project's
// own.
#pragma once

#include "tia/chip/registers.h"

namespace cule {

// Entries that are not writes. Their addresses are some that the TIA does not decode.
enum TiaMark : uint32_t {
  kMarkFrameBegin = 0x30,  // value bit 0: the last frame had an odd number of scanlines (PAL
                           // consoles then lose their color)
  kMarkTouch = 0x31,    // an access to the TIA without effect, up to which the picture is drawn
  kMarkGreyOut = 0x32,  // the frame was cut off: from this cycle's scanline on, it turns grey
  kMarkFrameEnd = 0x33,
};

constexpr uint32_t kEntryCycleShift = 14, kEntryRegisterShift = 8;
constexpr uint32_t kMaxEntryCycle = (1u << (32 - kEntryCycleShift)) - 1;
constexpr uint32_t kLongAgo = 0xFF;  // as cycles since HMOVE: this many or more

// An entry for a cycle up to kMaxEntryCycle.
CULE_INLINE uint32_t encode_early_entry(int32_t cycle, uint32_t reg, uint32_t value) {
  return static_cast<uint32_t>(cycle) << kEntryCycleShift | reg << kEntryRegisterShift | value;
}
// The cycle that an entry holds. Cycles above kMaxEntryCycle do not fit. There only the position
// within the scanline matters, which this keeps.
CULE_INLINE int32_t recorded_cycle(int32_t cycle) {
  constexpr int32_t kMax = kMaxEntryCycle;
  return cycle <= kMax ? cycle : kMax - 2 * kCyclesPerLine + (cycle - kMax) % kCyclesPerLine;
}
CULE_INLINE uint32_t encode_entry(int32_t cycle, uint32_t reg, uint32_t value) {
  return encode_early_entry(recorded_cycle(cycle), reg, value);
}
CULE_INLINE int32_t entry_cycle(uint32_t entry) {
  return static_cast<int32_t>(entry >> kEntryCycleShift);
}
CULE_INLINE uint32_t entry_register(uint32_t entry) { return entry >> kEntryRegisterShift & 0x3F; }
CULE_INLINE uint32_t entry_value(uint32_t entry) { return entry & 0xFF; }

}  // namespace cule

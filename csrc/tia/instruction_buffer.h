// The TIA instruction buffer: what the CPU part of a frame leaves for the TIA part.
//
// The CPU part renders nothing. It appends each write that can change a picture as one 32-bit
// entry: the CPU cycle at which it happened, counted from the start of the frame's first scanline,
// the register and the value. Marks between them say where frames begin and end. The TIA part
// replays the entries in order.
//
// Strobes do not need their value, so the CPU part uses that byte to tell the TIA part the one
// thing that it would otherwise have to keep a clock across frames for: the cycles since the last
// HMOVE.
#pragma once

#include "tia/registers.h"

namespace cule {

// Entries that are no TIA write, at addresses that the TIA does not decode.
enum TiaMark : uint32_t {
  kMarkFrameBegin = 0x30,  // value bit 0: an odd number of scanlines came before (PAL consoles lose
                           // their colour then)
  kMarkTouch = 0x31,  // the TIA was accessed without effect; the picture is drawn up to here
  kMarkGreyOut = 0x32,  // the frame was cut off: what lies below this cycle's scanline turns grey
  kMarkFrameEnd = 0x33,
};

constexpr uint32_t kEntryCycleShift = 14, kEntryRegisterShift = 8;
constexpr uint32_t kMaxEntryCycle = (1u << (32 - kEntryCycleShift)) - 1;
constexpr uint32_t kLongAgo = 0xFF;  // cycles since HMOVE: this many or more

// An entry of a cycle that is no greater than kMaxEntryCycle.
CULE_INLINE uint32_t encode_early_entry(int32_t cycle, uint32_t reg, uint32_t value) {
  return static_cast<uint32_t>(cycle) << kEntryCycleShift | reg << kEntryRegisterShift | value;
}
// Past the last cycle that an entry can hold, only the position within the scanline matters, and is
// kept.
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

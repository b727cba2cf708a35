// The M6532 (RIOT): two ports and the interval timer. Its 128 bytes of RAM are wired to the bus
// (console/memory_map.h).
//
// Source: Stella Programmer's Guide, "PIA 6532". The timer's behaviour around expiry is ale-py's,
// whose values at and after zero differ from those of the chip. The output latches and the edge
// detector are left out, as none of the games uses them.
#pragma once

#include "common/cycles.h"

namespace cule {

// The address lines that tell the registers apart. Reads: A2 high is the timer, INTIM with A0 low
// and TIMINT with A0 high; A2 low one of the ports' registers. Writes: with A4 and A2 high, the
// timer, whose interval A1 and A0 choose; with A2 low, the ports' registers.
constexpr uint32_t kRiotA0 = 0x01, kRiotA2 = 0x04, kRiotA4 = 0x10, kRiotA1A0 = 0x03;
enum M6532Port : uint32_t { kSwcha, kSwacnt, kSwchb, kSwbcnt };

constexpr CULE_INLINE bool reads_timer(uint32_t address) { return (address & kRiotA2) != 0; }
constexpr CULE_INLINE bool reads_intim(uint32_t address) {
  return (address & (kRiotA2 | kRiotA0)) == kRiotA2;
}

struct M6532 {
  uint32_t timer;                  // the value last written
  uint32_t interval_shift;         // log2 of the cycles that it counts in: 0, 3, 6 or 10
  int32_t timer_set_cycle;         // the cycle in which it was written, on the console's counter
  int32_t interrupt_reset_cycle;   // the cycle of the first read of INTIM after it expired
  uint32_t read_after_interrupt;   // whether INTIM has been read since it expired
  uint32_t ddra;                   // SWACNT
};

// `timer` is a random number of the console for this reset.
CULE_INLINE void m6532_reset(M6532& riot, uint32_t timer) { riot = M6532{timer, 6, 0, 0, 0, 0}; }

// Adapts to a cycle counter that has been moved back by `cycles`. A timer that is never set wraps
// around.
CULE_INLINE void m6532_rebase(M6532& riot, int32_t cycles) {
  riot.timer_set_cycle = wrapping_minus(riot.timer_set_cycle, cycles);
  riot.interrupt_reset_cycle = wrapping_minus(riot.interrupt_reset_cycle, cycles);
}

// INTIM. Counts down once each interval; after it has expired, once each cycle.
CULE_INLINE uint32_t read_intim(M6532& riot, int32_t cycle) {
  const uint32_t delta = static_cast<uint32_t>(cycle) - 1 -
                         static_cast<uint32_t>(riot.timer_set_cycle);
  const uint32_t intervals = delta >> riot.interval_shift;
  int32_t value = static_cast<int32_t>(riot.timer - intervals - 1);
  if (value >= 0) return value & 0xFF;
  value = static_cast<int32_t>((riot.timer << riot.interval_shift) - delta - 1);
  if (value <= -2 && !riot.read_after_interrupt) {
    riot.read_after_interrupt = 1;
    riot.interrupt_reset_cycle = cycle;
  }
  if (riot.read_after_interrupt) {
    const uint32_t expired = static_cast<uint32_t>(riot.timer_set_cycle) +
                             (riot.timer << riot.interval_shift);
    const uint32_t offset = static_cast<uint32_t>(riot.interrupt_reset_cycle) - expired;
    value = static_cast<int32_t>(riot.timer - intervals - offset);
  }
  return value & 0xFF;
}

// TIMINT: bit 7 once the timer has expired, until INTIM is read.
CULE_INLINE uint32_t read_timint(const M6532& riot, int32_t cycle) {
  const uint32_t delta = static_cast<uint32_t>(cycle) - 1 -
                         static_cast<uint32_t>(riot.timer_set_cycle);
  const int32_t value = static_cast<int32_t>(riot.timer - (delta >> riot.interval_shift) - 1);
  return value >= 0 || riot.read_after_interrupt ? 0x00 : 0x80;
}

// `swcha` and `swchb` are the levels at the two ports' pins.
CULE_INLINE uint32_t m6532_read(M6532& riot, uint32_t address, int32_t cycle, uint32_t swcha,
                                uint32_t swchb) {
  if (reads_timer(address))
    return reads_intim(address) ? read_intim(riot, cycle) : read_timint(riot, cycle);
  switch (address & kRiotA1A0) {
    case kSwcha: return swcha;
    case kSwacnt: return riot.ddra;
    case kSwchb: return swchb;
    default: return 0;
  }
}

// TIM1T, TIM8T, TIM64T and T1024T at $294 to $297; SWACNT at $281.
CULE_INLINE void m6532_write(M6532& riot, uint32_t address, uint32_t value, int32_t cycle) {
  constexpr uint32_t kTimer = kRiotA4 | kRiotA2, kPort = kRiotA2 | kRiotA1A0;
  if ((address & kTimer) == kTimer) {
    constexpr uint32_t kShifts = 0 | 3 << 4 | 6 << 8 | 10 << 12;
    riot.timer = value;
    riot.interval_shift = kShifts >> 4 * (address & kRiotA1A0) & 0x0F;
    riot.timer_set_cycle = cycle;
    riot.read_after_interrupt = 0;
  } else if ((address & kPort) == kSwacnt) {
    riot.ddra = value;
  }
}

}  // namespace cule

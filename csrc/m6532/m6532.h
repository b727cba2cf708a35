// The M6532 (RIOT): two ports and the interval timer. Its 128 bytes of RAM are wired to the bus
// (console/machine.h).
//
// Source: Stella Programmer's Guide, "PIA 6532". The timer's behaviour around expiry is ale-py's,
// whose values at and after zero differ from those of the chip. The output latches and the edge
// detector are left out, as none of the games uses them.
#pragma once

#include "common/cycles.h"

namespace cule {

// Read addresses, by their low 3 bits.
// else INTIM / TIMINT
enum M6532Read : uint32_t { kReadSwcha = 0, kReadSwacnt = 1, kReadSwchb = 2, kReadSwbcnt = 3 };

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

// Keeps the timer unchanged when the cycle counter is moved back by `cycles`. The cycle of a timer
// that is never set wraps around.
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
  if (address & 4) return address & 1 ? read_timint(riot, cycle) : read_intim(riot, cycle);
  switch (address & 3) {
    case kReadSwcha: return swcha;
    case kReadSwacnt: return riot.ddra;
    case kReadSwchb: return swchb;
    default: return 0;
  }
}

// TIM1T, TIM8T, TIM64T and T1024T at $294 to $297; SWACNT at $281.
CULE_INLINE void m6532_write(M6532& riot, uint32_t address, uint32_t value, int32_t cycle) {
  if ((address & 0x14) == 0x14) {
    constexpr uint32_t kShifts = 0 | 3 << 4 | 6 << 8 | 10 << 12;
    riot.timer = value;
    riot.interval_shift = kShifts >> 4 * (address & 3) & 0x0F;
    riot.timer_set_cycle = cycle;
    riot.read_after_interrupt = 0;
  } else if ((address & 7) == 1) {
    riot.ddra = value;
  }
}

}  // namespace cule

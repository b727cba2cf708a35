// The M6532 (RIOT: RAM, I/O, timer): two ports of eight pins each and the interval timer.
//
//                +-----------+
//    A0..A6 ---->|           |<---- PA0..PA7  port A: the controllers' four directions, or the
//    CS, R/W --->|   M6532   |                paddles' buttons; read as SWCHA
//     D0..D7 <-->|           |<---- PB0..PB7  port B: the console's switches; read as SWCHB
//                +-----------+
//
// How to use it:
//   m6532_reset   at the console's reset, with the random number that the timer then holds
//   m6532_read    when the processor reads one of the registers below
//   m6532_write   when it writes one
//   m6532_rebase  when the console moves its cycle counter back
// There is no tick. The timer's value follows from the cycle in which it was set, so it is worked
// out when it is read.
//
// Not here: the chip's 128 bytes of RAM, which are wired to the bus (console/memory_map.h), and, as
// no game uses them, the output latches, SWBCNT and the edge detector.
//
// Source: Stella Programmer's Guide, "PIA 6532". The timer's values at and after zero are ale-py's,
// which differ from those of the chip.
#pragma once

#include "common/cycles.h"

namespace cule {

// The registers, by the names of the Stella Programmer's Guide. The chip decodes A0 to A2, and A4
// for writes to the timer, so each register repeats.
namespace riot_read {
enum Register : uint32_t {
  SWCHA = 0x280,  // port A's pins
  SWACNT,         // port A's directions, a bit for each pin
  SWCHB,          // port B's pins
  SWBCNT,         // port B's directions: always 0 here
  INTIM,          // the timer's value
  TIMINT,         // whether the timer has expired
};
}  // namespace riot_read
namespace riot_write {
enum Register : uint32_t {
  SWACNT = 0x281,
  TIM1T = 0x294,  // sets the timer, which then counts down once a cycle
  TIM8T,          // once in 8 cycles
  TIM64T,         // once in 64
  T1024T,         // once in 1,024
};
}  // namespace riot_write

// The address lines that tell the registers apart. A2 is low for the ports' registers, which A1 and
// A0 choose, and high for the timer. There a read of INTIM has A0 low and one of TIMINT A0 high; a
// write sets the timer if A4 is high, too, and A1 and A0 choose the interval.
constexpr uint32_t kRiotA0 = 0x01, kRiotA2 = 0x04, kRiotA4 = 0x10, kRiotA1A0 = 0x03;

constexpr CULE_INLINE bool reads_timer(uint32_t address) { return (address & kRiotA2) != 0; }
constexpr CULE_INLINE bool reads_intim(uint32_t address) {
  return (address & (kRiotA2 | kRiotA0)) == (riot_read::INTIM & (kRiotA2 | kRiotA0));
}

// The base 2 logarithm of the cycles in which each timer register counts, four bits for each.
constexpr uint32_t kTimerShifts = 0 << 4 * (riot_write::TIM1T & kRiotA1A0) |
                                  3 << 4 * (riot_write::TIM8T & kRiotA1A0) |
                                  6 << 4 * (riot_write::TIM64T & kRiotA1A0) |
                                  10 << 4 * (riot_write::T1024T & kRiotA1A0);
CULE_INLINE uint32_t interval_shift_of(uint32_t timer_register) {
  return kTimerShifts >> 4 * (timer_register & kRiotA1A0) & 0x0F;
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
CULE_INLINE void m6532_reset(M6532& riot, uint32_t timer) {
  riot = M6532{timer, interval_shift_of(riot_write::TIM64T), 0, 0, 0, 0};
}

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
  if (reads_timer(address)) {
    return reads_intim(address) ? read_intim(riot, cycle) : read_timint(riot, cycle);
  }
  switch (address & kRiotA1A0) {
    case riot_read::SWCHA & kRiotA1A0: return swcha;
    case riot_read::SWACNT & kRiotA1A0: return riot.ddra;
    case riot_read::SWCHB & kRiotA1A0: return swchb;
    default: return 0;  // SWBCNT
  }
}

CULE_INLINE void m6532_write(M6532& riot, uint32_t address, uint32_t value, int32_t cycle) {
  constexpr uint32_t kTimer = kRiotA4 | kRiotA2, kPort = kRiotA2 | kRiotA1A0;
  if ((address & kTimer) == kTimer) {
    riot.timer = value;
    riot.interval_shift = interval_shift_of(address);
    riot.timer_set_cycle = cycle;
    riot.read_after_interrupt = 0;
  } else if ((address & kPort) == (riot_write::SWACNT & kPort)) {
    riot.ddra = value;
  }
}

}  // namespace cule

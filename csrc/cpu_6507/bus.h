// The contract between the processor and what it is plugged into: what `execute` needs of a bus.
//
//   r                      Registers
//   cycle                  the CPU cycle
//   bus                    the last byte on the data bus
//   moved                  whether the next instruction is not where it was looked for
//   read(address), read_if(wanted, address, otherwise), read_pointer_if(wanted, address)
//   write(address, value, after_write), write_if(wanted, address, value)
//   is_special(address)    whether an access there does more than to read or write a byte
//   look_ahead()           the predecoded instruction at `r.pc`, without side effects
//   fetch_slowly()         the same, fetched through the bus
//   kLastTier              the last Tier of instructions that it does; only where that is kRarest
//                          it has decimal mode
//
// The whole console offers it (console/bus.h), and so do the fast path of the interpreter and
// the instructions of basic blocks (execution/fast_bus.h). A bus that does not do all instructions
// says so before anything but `r.pc`, `cycle` and `bus` has changed:
//
//   cannot_do_rare(opcode, operand), cannot_do(control, address)
//                          whether it cannot do this instruction; where the first says so, the
//                          second must, too
//   fall_back()            what to do then: returns the next predecoded instruction
#pragma once

#include "cpu_6507/rare.h"

namespace cule {

// Whether `Bus` offers all of that. The last of two overloads counts only if it does not.
template <class Bus>
constexpr auto is_bus(Bus* m)
    -> decltype(Registers(m->r), int32_t(m->cycle), uint32_t(m->bus), bool(m->moved),
                uint32_t(m->read(0u)), uint32_t(m->read_if(true, 0u, 0u)),
                uint32_t(m->read_pointer_if(true, 0u)), m->write(0u, 0u, false),
                m->write_if(true, 0u, 0u), bool(m->is_special(0u)), Predecoded(m->look_ahead()),
                Predecoded(m->fetch_slowly()), Tier(Bus::kLastTier), true) {
  return true;
}
constexpr bool is_bus(const void*) { return false; }

// Whether it also offers what a bus needs that does not do all.
template <class Bus>
constexpr auto is_partial_bus(Bus* m)
    -> decltype(bool(m->cannot_do_rare(0u, 0u)), bool(m->cannot_do(0u, 0u)),
                Predecoded(m->fall_back()), true) {
  return Bus::kLastTier != Tier::kRarest;
}
constexpr bool is_partial_bus(const void*) { return false; }

template <class Bus>
constexpr bool kDoesAll = Bus::kLastTier == Tier::kRarest;

}  // namespace cule

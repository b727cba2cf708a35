// The contract of the bus: what `execute` needs of the object that connects the processor to
// memory and devices.
//
//   r                      Registers
//   cycle                  the CPU cycle
//   bus                    the last byte on the data bus
//   moved                  whether look_ahead() must be called again, after a jump or a bank switch
//   read(address), read_if(wanted, address, otherwise), read_pointer_if(wanted, address)
//   write(address, value, after_write), write_if(wanted, address, value)
//   is_special(address)    whether an access to this address does more than read or write a byte
//   look_ahead()           the predecoded instruction at `r.pc`, without side effects
//   fetch_slowly()         the same, fetched through the bus
//   kLastTier              the last Tier of instructions that the bus executes. Decimal mode
//                          needs kRarest
//
// The bus of the whole console implements this contract (console/bus.h). The bus of the fast path
// implements it for the interpreter and for basic blocks (execution/fast_bus.h). A partial bus does
// not execute all instructions. It says so while only `r.pc`, `cycle` and `bus` have changed:
//
//   cannot_do_rare(opcode, operand), cannot_do(control, address)
//                          whether the bus cannot execute this instruction. If the first is true,
//                          the second must also be true
//   fall_back()            takes the slow path, and returns the next predecoded instruction
#pragma once

#include "cpu_6507/rare.h"

namespace cule {

// Whether `Bus` implements the first part of the contract. If it does not, only the second overload
// is viable.
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

// Whether it also implements what a partial bus needs.
template <class Bus>
constexpr auto is_partial_bus(Bus* m)
    -> decltype(bool(m->cannot_do_rare(0u, 0u)), bool(m->cannot_do(0u, 0u)),
                Predecoded(m->fall_back()), true) {
  return Bus::kLastTier != Tier::kRarest;
}
constexpr bool is_partial_bus(const void*) { return false; }

// Whether `Bus` executes all instructions.
template <class Bus>
constexpr bool kIsFullBus = Bus::kLastTier == Tier::kRarest;

}  // namespace cule

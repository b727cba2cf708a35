// The reads and writes of chips that do more than access a byte: the TIA's input ports, the RIOT,
// and the strobes that end a frame.
#pragma once

#include "console/config.h"
#include "console/memory_map.h"
#include "cpu_6507/predecoded.h"
#include "tia/chip/write_facts.h"

namespace cule {

// The chips around the processor, and the faults that have occurred.
struct Devices {
  M6532 riot;
  TiaPorts ports;
  Inputs inputs;
  uint32_t faults;
};

// If the TIA is read, it drives only bits 7 and 6. These other bits keep what was last on the bus.
constexpr uint32_t kUndriven = 0x3F;

// Bits 7 and 6 of INPT0 to INPT5; 0 for registers that do not exist.
CULE_COLD uint32_t read_input_port(Devices& devices, uint32_t wiring, uint32_t reg, int32_t cycle) {
  using namespace tia_read;
  if (reg == INPT4) return devices.inputs.inpt4;
  if (reg == INPT5) return devices.inputs.inpt5;
  return reg <= INPT3 ? read_paddle_port(devices.ports, devices.inputs, wiring, reg - INPT0, cycle)
                      : 0;
}

// The index of the predecoded instruction at `pc`. For code that is not in ROM it is the one after
// the image, which is kFetchSlowly.
CULE_INLINE uint32_t code_offset(const CartridgeMap& map, uint32_t rom_bytes, uint32_t slices,
                                 uint32_t pc) {
  return is_cartridge_address(pc) ? rom_offset(map, slices, pc) : rom_bytes;
}

// How many cycles of a loop `LDA INTIM; BNE` (or BPL) can be skipped: whole rounds of `period`
// cycles each, and at most `rounds` of them, after which the loop still goes on for one more. With
// `at_zero` the loop waits for 0 (BNE), else for the timer to have passed 0 (BPL).
CULE_INLINE int32_t skip_timer_wait(const M6532& riot, int32_t cycle, bool at_zero, int32_t period,
                                    int32_t rounds) {
  const uint32_t delta = static_cast<uint32_t>(cycle) - 1 -
                         static_cast<uint32_t>(riot.timer_set_cycle);
  if (at_zero ? riot.timer == 0 : riot.timer > 0x80) return 0;
  const uint32_t last = (riot.timer - at_zero) << riot.interval_shift;
  if (delta >= last) return 0;
  const int32_t whole = static_cast<int32_t>(last - 1 - delta) / period;
  return (whole < rounds ? whole : rounds) * period;
}

// A read of the RIOT, and the `waited` cycles and `rounds` of a loop that were skipped before it.
struct RiotRead {
  uint32_t value;
  int32_t waited, rounds;
};

// Reads the RIOT. It skips the rounds of a loop that waits for the timer: an absolute load reads
// INTIM, and a BNE or BPL leads back to that load. All rounds except the last two pass at once.
// They change nothing except the clock. If there is such a loop, its branch is at address
// `branch_pc`.
template <class Rom>
CULE_COLD RiotRead read_riot(Devices& devices, const Rom rom, const ConsoleConfig& config,
                             uint32_t slices, uint32_t address, uint32_t branch_pc, int32_t cycle,
                             int32_t instructions_left) {
  constexpr uint32_t kBackToLoad = 0xFFFB;  // the distance from the end of the branch: -5
  int32_t waited = 0, rounds = 0;
  if (reads_intim(address)) {
    const auto op_at = [&](uint32_t pc) CULE_INLINE_LAMBDA {
      return rom.predecoded_at(code_offset(config.map, config.rom_bytes, slices, pc));
    };
    constexpr uint32_t kLoads[] = {code_in_mode(kLda, kAbs), code_in_mode(kLdx, kAbs),
                                   code_in_mode(kLdy, kAbs)};
    const Predecoded load = op_at((branch_pc - 3) & 0xFFFF), back = op_at(branch_pc);
    const uint32_t opcode = opcode_of(load), condition = opcode_of(back);
    const bool loads = (opcode == kLoads[0] || opcode == kLoads[1] || opcode == kLoads[2]) &&
                       operand_of(load) == address;
    if (loads && is_one_of<kBne, kBpl>(condition) && operand_of(back) == kBackToLoad) {
      const int32_t period = 7 + ((((branch_pc + 2) ^ (branch_pc - 3)) & 0xFF00) != 0);
      waited = skip_timer_wait(devices.riot, cycle, is_one_of<kBne>(condition), period,
                               (instructions_left - 2) / 2);
      rounds = waited / period;
    }
  }
  return {
      m6532_read(devices.riot, address, cycle + waited, devices.inputs.swcha, devices.inputs.swchb),
      waited, rounds};
}
CULE_COLD void write_riot(Devices& devices, uint32_t address, uint32_t value, int32_t cycle) {
  m6532_write(devices.riot, address, value, cycle);
}

// The last of the registers that can end the frame. These come before all others.
constexpr uint32_t kLastVertical =
    last_of(registers_where(&WriteFacts::cpu_effect, CpuEffect::kVertical));

// Does what a write to VSYNC or VBLANK changes in the ports. Returns whether the frame ends.
CULE_COLD bool strobe_vertical(TiaPorts& ports, uint32_t reg, uint32_t value, int32_t cycle) {
  if (reg == tia_write::VBLANK) {
    if (ports.dumping && !(value & 0x80)) ports.dump_end_cycle = cycle;
    ports.dumping = value & 0x80;
    return false;
  }
  if (value & 2) {
    ports.vsync_finish_cycle = cycle + kVsyncCycles;
    return false;
  }
  if (cycle < ports.vsync_finish_cycle) return false;
  ports.vsync_finish_cycle = kNoVsync;
  return true;
}

}  // namespace cule

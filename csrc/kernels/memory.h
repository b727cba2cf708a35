// RAM and ROM as plain memory, for the CPU backend and for GPU code whose speed does not matter.
#pragma once

#include "kernels/hear.h"

namespace cule {

struct PlainRam {
  uint8_t* bytes;
  TiaState* state;
  uint8_t* sound;  // the registers of sound
  static constexpr bool kHears = true;
  CULE_INLINE uint32_t get(uint32_t index) const { return bytes[index]; }
  CULE_INLINE void set(uint32_t index, uint32_t value) const {
    bytes[index] = static_cast<uint8_t>(value);
  }
  CULE_INLINE TiaState& tia() const { return *state; }
  CULE_INLINE void set_sound(uint32_t number, uint32_t value) const {
    sound[number] = static_cast<uint8_t>(value);
  }
};

// A ROM image, its predecoded instructions, and the operations without operands.
struct PlainRom {
  const uint8_t* bytes;
  const Predecoded* predecoded;
  const Predecoded* marked_ops;
  const Predecoded* operations;
  CULE_INLINE uint32_t operator()(uint32_t offset) const { return bytes[offset]; }
  CULE_INLINE Predecoded predecoded_at(uint32_t offset) const { return predecoded[offset]; }
  CULE_INLINE Predecoded marked_op(uint32_t offset) const { return marked_ops[offset]; }
  CULE_INLINE Predecoded operation(uint32_t opcode) const { return operations[opcode]; }
};

CULE_INLINE PlainRom rom_of(const Batch& batch, const ConsoleConfig& config) {
  const Predecoded* predecoded = batch.predecoded + config.rom_offset;
  return {batch.roms + config.rom_offset, predecoded, predecoded, batch.operations};
}

using PlainMachine = Machine<PlainRam, PlainRom>;

// The memory that a PlainMachine needs in addition to the env's own. `entries` has room for an
// instruction buffer, and `trail.starts` for a step's segments. `unheard` has registers of sound if
// nobody listens: to write them takes less time than to ask.
struct Workplace {
  uint32_t* entries;
  TiaTrail& trail;
  TiaState& tia;
  SoundState& unheard;
};

CULE_INLINE PlainMachine make_plain_machine(const Batch& batch, size_t env, Devices& devices,
                                            const Workplace& place) {
  const ConsoleConfig& config = config_of(batch, env);
  return {config,
          PlainRam{batch.ram + env * kRamBytes, &place.tia,
                   (hears(batch) ? batch.sound[env] : place.unheard).registers},
          rom_of(batch, config),
          batch.cartridge_bytes + env * kCartridgeBytes,
          devices,
          place.trail,
          InstructionBuffer{place.entries, batch.buffer_capacity, 0, 0},
          config.map,
          config.rom_bytes,
          config.cycle_limit};
}

}  // namespace cule

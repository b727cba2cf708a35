// RAM and ROM as plain memory, for the CPU backend and wherever speed does not matter.
#pragma once

#include "kernels/batch.h"

namespace cule {

struct PlainRam {
  uint8_t* bytes;
  CULE_INLINE uint32_t get(uint32_t index) const { return bytes[index]; }
  CULE_INLINE void set(uint32_t index, uint32_t value) const { bytes[index] = static_cast<uint8_t>(value); }
};

struct PlainRom {
  const uint8_t* bytes;
  CULE_INLINE uint32_t operator()(uint32_t offset) const { return bytes[offset]; }
  CULE_INLINE uint32_t three_bytes(uint32_t offset) const {
    uint32_t word;
    __builtin_memcpy(&word, bytes + offset, sizeof word);  // little-endian, as all machines with CUDA are
    return word;
  }
};

using PlainMachine = Machine<PlainRam, PlainRom>;

// A machine for env over plain memory. `records` holds the env's record, at `slot`.
CULE_INLINE PlainMachine make_plain_machine(const Batch& batch, size_t env, const RecordLayout& records, size_t slot,
                                            uint32_t* entries, Devices& devices, CollisionProbe& probe) {
  const ConsoleConfig& config = config_of(batch, env);
  return {config, PlainRam{batch.ram + env * kRamBytes}, PlainRom{batch.roms + config.rom_offset},
          batch.cartridge_bytes + env * kCartridgeBytes, devices, probe, records, slot,
          InstructionBuffer{entries, batch.buffer_capacity, 0, 0}, config.map};
}

}  // namespace cule

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
    return bytes[offset] | bytes[offset + 1] << 8 | bytes[offset + 2] << 16;
  }
};

// Where a machine finds the TIA's state as its instruction buffer begins.
struct TiaOfRecord {
  RecordLayout records;
  size_t env;
  CULE_HD TiaState operator()() const {
    TiaState tia;
    load_part(records, env, offsetof(EnvRecord, tia), tia);
    return tia;
  }
};
struct TiaInPlace {
  const TiaState* tia;
  CULE_INLINE TiaState operator()() const { return *tia; }
};

}  // namespace cule

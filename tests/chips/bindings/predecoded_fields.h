// A predecoded instruction's fields, as Python gets them.
#pragma once

#include <array>

#include "cpu_6507/predecoded.h"

namespace cule {

// (opcode, length, base cycles, operand); length 0: to be fetched slowly.
inline std::array<uint32_t, 4> fields_of(Predecoded op) {
  return {opcode_of(op), length_of(op), op.control & kCyclesMask, operand_of(op)};
}

}  // namespace cule

// A micro-operation's fields, as Python gets them.
#pragma once

#include <array>

#include "cpu_6507/micro_op.h"

namespace cule {

// (opcode, length, base cycles, operand); length 0: to be fetched slowly.
inline std::array<uint32_t, 4> fields_of(MicroOp op) {
  return {opcode_of(op), length_of(op), op.control & kCyclesMask, operand_of(op)};
}

}  // namespace cule

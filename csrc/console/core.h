// How an instruction is dispatched: the two ways of steering the one path of cpu_6507/execute.h.
#pragma once

#include "console/machine.h"

namespace cule {

// Looks the decode word up at run time. `Table` maps an opcode to its word.
template <class Table>
struct DynamicCore {
  Table table;

  template <class M>
  CULE_INLINE void operator()(M& m) const {
    const uint32_t bytes = m.fetch();
    const uint32_t opcode = bytes & 0xFF;
    const DynamicDecode decode{table[opcode], opcode};
    m.advance(decode, bytes);
    execute(decode, m, bytes >> 8 & 0xFF, bytes >> 16 & 0xFF);
  }
};

// Switches over 256 instances of the path, each folded for its opcode.
struct StaticCore {
  template <int kOpcode, class M>
  static CULE_INLINE void run(M& m, uint32_t bytes) {
    constexpr StaticDecode<kOpcode> decode;
    m.advance(decode, bytes);
    execute(decode, m, bytes >> 8 & 0xFF, bytes >> 16 & 0xFF);
  }

  template <class M>
  CULE_INLINE void operator()(M& m) const {
    const uint32_t bytes = m.fetch();
#define CULE_CASE(op) case op: return run<op>(m, bytes);
#define CULE_CASES_4(op) CULE_CASE(op) CULE_CASE(op + 1) CULE_CASE(op + 2) CULE_CASE(op + 3)
#define CULE_CASES_16(op) CULE_CASES_4(op) CULE_CASES_4(op + 4) CULE_CASES_4(op + 8) CULE_CASES_4(op + 12)
#define CULE_CASES_64(op) CULE_CASES_16(op) CULE_CASES_16(op + 16) CULE_CASES_16(op + 32) CULE_CASES_16(op + 48)
    switch (bytes & 0xFF) {
      CULE_CASES_64(0x00) CULE_CASES_64(0x40) CULE_CASES_64(0x80) CULE_CASES_64(0xC0)
    }
#undef CULE_CASE
#undef CULE_CASES_4
#undef CULE_CASES_16
#undef CULE_CASES_64
  }
};

}  // namespace cule

// The interpreter: how predecoded instructions are dispatched, one after the other. A *core* runs a
// frame's instructions; there are two here, the two ways of steering the one path of
// cpu_6507/execute.h.
#pragma once

#include "execution/fast_bus.h"
#include "execution/pace.h"

namespace cule {

// Interprets instructions for as long as the frame goes on. `dispatch` executes one and returns the
// next.
template <class M, class Dispatch>
CULE_INLINE void interpret(M& m, const Dispatch& dispatch) {
  Predecoded op = m.look_ahead();
  run_in_step(m, FreePace{}, kLongestInstruction, [&](uint32_t, int32_t end) CULE_INLINE_LAMBDA {
    for (; m.runs() && m.cycle < end; --m.instructions_left) op = dispatch(m, op);
  });
}

// Which game is played, for a core that plays any.
struct AnyGame {
  static CULE_INLINE uint32_t game_of(const ConsoleConfig& config) { return config.game; }
  static CULE_INLINE const Predecoded* marked_ops(const Predecoded*, const Predecoded* predecoded) {
    return predecoded;
  }
};

// Executes `op` and returns the next, with little code for what is frequent, so that it stays in a
// GPU's instruction cache. The slow path gets a copy of the machine, so that the machine itself
// remains in registers. It also does what writes to the TIA where there is `no_room`.
template <class M>
CULE_INLINE Predecoded execute_on_fast_path(M& m, Predecoded op, bool no_room) {
  InterpreterBus<M> fast(m, op, no_room);
  return execute(DynamicDecode{op}, fast, operand_of(op));
}

// Takes the control bits as they come.
struct DynamicCore : AnyGame {
  // Lanes that interpret execute their instructions together, wherever they are.
  static constexpr int32_t kTurnLines = 1, kTurnLinesOfManyWarps = 1;
  template <class M>
  CULE_INLINE Predecoded operator()(M& m, Predecoded op) const {
    return execute(DynamicDecode{op}, m, operand_of(op));
  }
  template <class M, class Pace = FreePace>
  CULE_INLINE void run(M& m, const Pace& pace = {}) const {
    Predecoded op = m.look_ahead();
    run_in_step(m, pace, kLongestInstruction, [&](uint32_t, int32_t end) CULE_INLINE_LAMBDA {
      const bool no_room = !m.make_room(end, kStretchCycles);
      for (; m.runs() && m.cycle < end; --m.instructions_left)
        op = execute_on_fast_path(m, op, no_room);
    });
  }
};

// Switches over 256 instances of the path, each folded for its opcode.
struct StaticCore : AnyGame {
  template <class M>
  CULE_INLINE Predecoded operator()(M& m, Predecoded op) const {
    const uint32_t operand = operand_of(op);
#define CULE_CASE(code) case code: return execute_opcode<code>(m, operand);
#define CULE_CASES_4(code) \
  CULE_CASE(code) CULE_CASE(code + 1) CULE_CASE(code + 2) CULE_CASE(code + 3)
#define CULE_CASES_16(code) \
  CULE_CASES_4(code) CULE_CASES_4(code + 4) CULE_CASES_4(code + 8) CULE_CASES_4(code + 12)
#define CULE_CASES_64(code) \
  CULE_CASES_16(code) CULE_CASES_16(code + 16) CULE_CASES_16(code + 32) CULE_CASES_16(code + 48)
    switch (static_cast<uint8_t>(opcode_of(op))) {
      CULE_CASES_64(0x00) CULE_CASES_64(0x40) CULE_CASES_64(0x80) CULE_CASES_64(0xC0)
    }
#undef CULE_CASE
#undef CULE_CASES_4
#undef CULE_CASES_16
#undef CULE_CASES_64
    __builtin_unreachable();
  }
  template <class M>
  CULE_INLINE void run(M& m) const { interpret(m, *this); }

 private:
  template <int kOpcode, class M>
  static CULE_HANDLER Predecoded execute_opcode(M& m, uint32_t operand) {
    return execute(StaticDecode<kOpcode>{}, m, operand);
  }
};

}  // namespace cule

// The interpreter: dispatches predecoded instructions, one after the other. A *core* runs the
// instructions of a frame. DynamicCore interprets them on GPUs; CPUs have ThreadedCore
// (execution/threaded_core.h).
#pragma once

#include "execution/fast_bus.h"
#include "execution/pace.h"

namespace cule {

// Interprets instructions until the frame ends. `dispatch` executes one and returns the next.
template <class M, class Dispatch>
CULE_INLINE void interpret(M& m, const Dispatch& dispatch) {
  Predecoded op = m.look_ahead();
  run_in_step(m, FreePace{}, kLongestInstruction, [&](uint32_t, int32_t end) CULE_INLINE_LAMBDA {
    for (; m.runs() && m.cycle < end; --m.instructions_left) op = dispatch(m, op);
  });
}

// What a core that plays any game knows of the game: nothing at compile time.
struct AnyGame {
  static CULE_INLINE uint32_t game_of(const ConsoleConfig& config) { return config.game; }
  static CULE_INLINE const Predecoded* marked_ops(const Predecoded*, const Predecoded* predecoded) {
    return predecoded;
  }
};

// Executes `op` and returns the next. Frequent instructions have little code, which stays in a
// GPU's instruction cache. The slow path works on a copy of the machine, so the machine itself
// stays in registers. With `no_room`, writes to the TIA take the slow path, too.
template <class M>
CULE_INLINE Predecoded execute_on_fast_path(M& m, Predecoded op, bool no_room) {
  InterpreterBus<M> fast(m, op, no_room);
  return execute(DynamicDecode{op}, fast, operand_of(op));
}

// Executes all instructions with the same code, which reads their control bits at run time.
struct DynamicCore : AnyGame {
  // Lanes that interpret execute their instructions together, wherever in the program they are. So
  // turns can be short.
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

}  // namespace cule

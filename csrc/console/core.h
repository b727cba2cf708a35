// How an instruction is dispatched: the two ways of steering the one path of cpu_6507/execute.h.
#pragma once

#include "console/fast_bus.h"

namespace cule {

// Runs the frame in step with the other lanes of the warp: `advance(lanes, end)` runs to cycle
// `end`, one *turn* of some scanlines after the other. A game's program follows the beam, so that
// consoles at the same scanlines are at much the same place in it: there they execute the same
// code, and look for the same collisions, together.
//
// `pace` knows the lanes that begin the frame together, and brings them together before each turn
// as long as their frames go on; it is told where the next one begins, and may have them wait. What
// `advance` begins before cycle `end` takes `longest` cycles at most to its last write to the TIA.
template <class M, class Pace, class Advance>
CULE_INLINE void run_in_step(M& m, const Pace& pace, int32_t longest, const Advance& advance) {
  const int32_t turn = pace.turn_lines() * kCyclesPerLine;
  int32_t begin = stretch_end(m.config.format, m.cycle) - kStretchCycles, stretch = begin;
  for (uint32_t lanes = pace.lanes(); lanes = pace.meet(lanes, m.runs()), m.runs();
       begin += turn) {
    pace.begin_turn(lanes, begin);
    if (begin == stretch) {
      stretch += kStretchCycles;
      m.begin_stretch(stretch, longest);
    }
    advance(lanes, begin + turn);
  }
}

// Where lanes are in the program's order: blocks have it by their numbers (cule/translation/). What
// is interpreted comes after the block before it, and has an odd place: lanes that interpret do it
// together, wherever they are. Where a program interprets much, that is best done when all lanes
// come to it, after all blocks. A lane that has nothing left to do in a turn is after all others.
CULE_INLINE constexpr uint32_t place_of_block(uint32_t number) { return 2 * number; }
CULE_INLINE constexpr uint32_t place_after(uint32_t number) { return 2 * number + 1; }
CULE_INLINE constexpr bool is_interpreted(uint32_t place) { return (place & 1) != 0; }
constexpr uint32_t kAfterAllBlocks = 0xFFFFFFFD, kNowhere = 0xFFFFFFFE;

// Waits for nobody.
struct FreePace {
  CULE_INLINE uint32_t lanes() const { return 0; }
  CULE_INLINE uint32_t meet(uint32_t, bool) const { return 0; }
  CULE_INLINE int32_t turn_lines() const { return kStretchLines; }
  CULE_INLINE void begin_turn(uint32_t, int32_t) const {}
  // Its lanes are one.
  struct Group {
    bool any, mine;
    CULE_INLINE bool goes_on_at(uint32_t) const { return true; }
  };
  CULE_INLINE Group hindmost(uint32_t, uint32_t place) const {
    return {place != kNowhere, place != kNowhere};
  }
};

// Interprets instructions for as long as the frame goes on. `dispatch` executes one and returns the
// next.
template <class M, class Dispatch>
CULE_INLINE void interpret(M& m, const Dispatch& dispatch) {
  Predecoded op = m.look_ahead();
  run_in_step(m, FreePace{}, kLongestInstruction, [&](uint32_t, int32_t end) CULE_INLINE_LAMBDA {
    for (; m.runs() && m.cycle < end; --m.instructions_left) op = dispatch(m, op);
  });
}

// A core whose lanes go at a pace.
template <class Core, class Pace>
struct PacedCore {
  Core core;
  Pace pace;
  static CULE_INLINE auto game_of(const ConsoleConfig& config) { return Core::game_of(config); }
  static CULE_INLINE const Predecoded* marked_ops(const Predecoded* marked,
                                                  const Predecoded* unmarked) {
    return Core::marked_ops(marked, unmarked);
  }
  template <class M>
  CULE_INLINE void run(M& m) const {
    pace.begin_frame();
    core.run(m, pace);
  }
};

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

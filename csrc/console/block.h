// Translated code: runs of a ROM's instructions, each executed by the one path of cpu_6507/execute.h with the instruction, its operand
// and its address as compile-time constants, so that only what it does to this console is left of it.
//
// A block holds the frequent instructions that follow one another from an entry point (cule/translation.py picks them and writes
// the blocks down with the macros below). It covers what they usually touch: RAM, plain ROM, TIA registers. Where one touches anything
// else, or the end of the frame is near, the block is left before it, and the interpreter executes it.
#pragma once

#include "console/core.h"
#include "games/games.h"

namespace cule {

// What follows a block: the number of the block that begins where the program goes on, or one of these.
constexpr uint32_t kLookUp = 0;          // nobody knows: what stands there says
constexpr uint32_t kInterpret = 0xFFFF;  // the block could not go on, or not begin: the interpreter executes the next instruction

// Executes the instruction at `pc`, which writes to the TIA's register `kReg` if it reaches kInTia.
// False: it is still to be executed, by the interpreter.
template <uint32_t kOpcode, Reach kReach, uint32_t kReg, class M>
CULE_INLINE bool execute_in_block(M& m, uint32_t pc, uint32_t operand) {
  PlainView<M, kReach, KnownRegister<kReg>> view(m);
  const int32_t before = m.cycle;
  m.r.pc = pc;
  execute(StaticDecode<kOpcode>{}, view, operand);
  if (view.odd) {
    m.r.pc = pc;
    m.cycle = before;
    return false;
  }
  --m.instructions_left;
  return true;
}

// A case of the switch over blocks; its instructions, some of which reach chips that others of
// their kind do not; what follows where a branch is taken, or the end. If it is known, the block goes
// on there, without coming back, as long as that begins before cycle `end`: at an entry.
#define CULE_BLOCK(number) case number:
#define CULE_ENTRY(number) block_##number:
#define CULE_DO(at, opcode, operand) \
  if (!execute_in_block<opcode, reach_in_block(StaticDecode<opcode>::control, operand), \
                        register_in_block(StaticDecode<opcode>::control, operand)>( \
          m, at, operand)) \
    return kInterpret;
#define CULE_DO_IN_CHIPS(at, opcode, operand) \
  if (!execute_in_block<opcode, Reach::kInChips, 0>(m, at, operand)) return kInterpret;
#define CULE_DO_BRANCH(at, opcode, operand) \
  CULE_DO(at, opcode, operand) \
  if (m.r.pc != (((at) + 2) & 0xFFFF))
#define CULE_GO_ON(next) \
  { \
    if (m.cycle < end) goto block_##next; \
    return next; \
  }
#define CULE_LOOK_UP return kLookUp;

// Runs blocks where there are any, and interprets the rest. The ROM's micro-operations are marked where blocks begin (begins_block).
// `run_block(m, number, end)` executes a block, and what it goes on in before cycle `end`, and says
// what follows; the longest takes `kLongestBlock` cycles at most. The ROM is game `kGame`'s.
template <class RunBlock, uint32_t kGame, int32_t kLongestBlock>
struct TranslatedCore {
  static constexpr int32_t kLongest = kLongestBlock > kLongestInstruction ? kLongestBlock : kLongestInstruction;
  // No segment but the next is kept before it begins (TiaTrail::note_clear).
  static_assert(kLongest < (kSegmentLines - 2) * kCyclesPerLine, "a block takes less than the scanlines of a segment");
  RunBlock run_block;

  static CULE_INLINE KnownGame<kGame> game_of(const ConsoleConfig&) { return {}; }
  static CULE_INLINE const MicroOp* marked_ops(const MicroOp* marked, const MicroOp*) { return marked; }

  // First blocks, as long as there are any, then instructions, until a block begins: lanes that interpret wait for no block.
  template <class M, class Pace = FreePace>
  CULE_INLINE void run(M& m, const Pace& pace = {}) const {
    MicroOp op = m.look_ahead();
    run_in_step(m, pace, kLongest, [&](int32_t end) CULE_INLINE_LAMBDA {
      const bool crowded = !has_room(m, end + kLongest);
      while (m.runs() && m.cycle < end) {
        // No block ends the frame: where it is near its end, none begins.
        while (m.cycle < end && begins_block(op)) {
          const bool runs = !crowded && op.control == m.r.pc;
          op = follow_block(m, runs ? run_block(m, operand_of(op), end) : kInterpret);
        }
        for (; m.runs() && m.cycle < end && !begins_block(op); --m.instructions_left) op = execute_leanly(m, op, crowded);
      }
    });
  }

 private:
  // Whether the frame cannot end before cycle `end` but by VSYNC, nor the buffer be full. Each
  // instruction takes 2 cycles at least.
  template <class M>
  static CULE_INLINE bool has_room(const M& m, int32_t end) {
    return m.has_room(end) && m.instructions_left >= (end - m.cycle) / 2;
  }
  // The mark of the block that follows, which needs no look at memory, or what stands at `pc`.
  // Lanes whose blocks have gone on in others until nobody knew what follows, or the scanline ended,
  // wait here for the rest of their warp (design/translation_details.md).
  template <class M>
  static CULE_INLINE MicroOp follow_block(const M& m, uint32_t next) {
    if (next == kLookUp) return m.look_ahead();
    return next == kInterpret ? m.look_behind() : mark_of_block(next, m.r.pc);
  }
};

}  // namespace cule

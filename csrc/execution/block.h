// Basic blocks: code translated from a ROM's instructions.
//
// Each instruction is executed by the one path of cpu_6507/execute.h. The instruction, its operand
// and its address are compile-time constants, so the compiler keeps only the code that they need.
//
// A block holds the frequent instructions that follow one another from an entry point.
// cule/translation/ chooses them, and writes the blocks with the macros below. A block can do what
// its instructions usually touch: RAM, plain ROM, TIA registers. If an instruction touches anything
// else, or the frame's end is near, the block returns before it, and the interpreter executes it.
#pragma once

#include "execution/interpreter.h"
#include "games/games.h"

namespace cule {

// What a block returns: the number of the next block, with kQuietBlock if that one is quiet; or the
// number of the last block that ran, with one of the bits below.
constexpr uint32_t kBlockNumbers = 0xFFFF;
// The next instruction is not known at compile time: the predecoded ROM says what is there.
constexpr uint32_t kLookUp = 0x10000;
// The block could not go on: the interpreter executes the next instruction.
constexpr uint32_t kInterpret = 0x20000;

// In a turn, quiet blocks may begin before cycle `quiet`, and all others before cycle `any`. If a
// write to the TIA could end the frame or fill the instruction buffer, only quiet blocks may begin.
struct TurnEnds {
  int32_t quiet, any;
};

// Where instructions of a block find ROM: in the bank that begins at byte `kBank`; if that is -1,
// in the bank that the cartridge shows.
template <int32_t kBank>
struct RomOfBlock : RomOfBank<kBank> {};
template <>
struct RomOfBlock<-1> : ShownRom {};

// Executes the instruction at `pc`. Returns false if the block cannot: then the interpreter
// must execute it.
template <uint32_t kOpcode, uint32_t kRegions, int32_t kBank, class M>
CULE_INLINE bool execute_in_block(M& m, uint32_t pc, uint32_t operand) {
  FastBus<M, kRegions, true, RomOfBlock<kBank>> fast(m);
  const int32_t before = m.cycle;
  m.r.pc = pc;
  execute(StaticDecode<kOpcode>{}, fast, operand);
  if (fast.needs_slow_path) {
    m.r.pc = pc;
    m.cycle = before;
    return false;
  }
  --m.instructions_left;
  return true;
}

// Executes the branch at `pc`. Both places where it may lead are known.
template <uint32_t kOpcode, class M>
CULE_INLINE void pass_branch(M& m, uint32_t pc, uint32_t operand, bool taken) {
  const uint32_t next = pc + 2, target = next + operand;
  m.cycle += StaticDecode<kOpcode>::control & kCyclesMask;
  if (taken) m.cycle += 1 + crosses_page(next, target);
  m.r.pc = (taken ? target : next) & 0xFFFF;
  --m.instructions_left;
}

// The macros that a block is written with:
//   CULE_BLOCK             its case of the switch over blocks
//   CULE_ENTRY             its label, for other blocks that go on here
//   CULE_DO                an instruction, the regions that it reaches (a set of Region), its bank
//   CULE_BRANCH            a branch, and what follows if it is taken
//   CULE_GO_ON             the program goes on at block `next`
//   CULE_GO_ON_QUIETLY     the same; that block is quiet
//   CULE_LOOK_UP           the program goes on at a place that is not known at compile time
// If the next block is known, control goes there directly, on three conditions: it begins before
// the end of its turn, all lanes that came with this one are still together, and no other lane
// waits there or before it.
#define CULE_BLOCK(number) case number:
#define CULE_ENTRY(number) block_##number:
#define CULE_DO(number, at, opcode, operand, regions, bank)                   \
  if (!execute_in_block<opcode, regions, bank>(m, at, operand)) {             \
    CULE_APART("left");                                                       \
    return kInterpret | number;                                               \
  }
#define CULE_BRANCH(at, opcode, operand, what_follows)  \
  if (branches(StaticDecode<opcode>{}, m.r)) {          \
    pass_branch<opcode>(m, at, operand, true);          \
    what_follows                                        \
  }                                                     \
  pass_branch<opcode>(m, at, operand, false);
#define CULE_GO_ON(next) CULE_GO_ON_BEFORE(ends.any, next, 0)
#define CULE_GO_ON_QUIETLY(next) CULE_GO_ON_BEFORE(ends.quiet, next, kQuietBlock)
#define CULE_GO_ON_BEFORE(end, next, quiet)                                          \
  {                                                                                  \
    if ((m.cycle < end) & group.goes_on_at(pc_order_of_block(next))) goto block_##next; \
    CULE_APART("comes back");                                                        \
    return next | quiet;                                                             \
  }
#define CULE_LOOK_UP(number) return kLookUp | number;

// A core that runs blocks, and interprets the instructions that are in none. Marks replace the
// predecoded instructions at which blocks begin (begins_block).
//
// `run_block(m, number, ends, group)` executes a block and the blocks that follow it directly, and
// returns what comes next. The ROM is that of game `kGame`. No block takes more than
// `kLongestBlock` cycles. Without `kDecimal` no block begins in decimal mode. With `kRunsInRam`
// much of the program is in RAM, and is interpreted.
template <class RunBlock, uint32_t kGame, int32_t kLongestBlock, bool kDecimal, bool kRunsInRam>
struct TranslatedCore {
  static constexpr int32_t kLongest = kLongestBlock > kLongestInstruction ? kLongestBlock
                                                                          : kLongestInstruction;
  static constexpr int32_t kTurnCycles = kStretchCycles + kLongest;  // at most
  // Only the next segment's state is kept before the segment begins (TiaTrail::note_clear).
  static_assert(kTurnCycles < (kSegmentLines - 2) * kCyclesPerLine,
                "a stretch and a block must take less time than a segment");
  RunBlock run_block;

  // In a long turn, lanes that have diverged come together again. But many warps in a long turn
  // fetch the same code at different times, so their turns are short.
  static constexpr int32_t kTurnLines = kStretchLines, kTurnLinesOfManyWarps = 2;

  static CULE_INLINE KnownGame<kGame> game_of(const ConsoleConfig&) { return {}; }
  static CULE_INLINE const Predecoded* marked_ops(const Predecoded* marked, const Predecoded*) {
    return marked;
  }

  // Lanes that have diverged at a branch come together again where its paths join: the lanes
  // that are first in the order of the program (pace.h) go on, and all others wait for them.
  template <class M, class Pace = FreePace>
  CULE_INLINE void run(M& m, const Pace& pace = {}) const {
    Predecoded op = m.look_ahead();
    uint32_t last = 0;  // the block that ran last: interpreted instructions come after it
    run_in_step(m, pace, kLongest, [&](uint32_t lanes, int32_t end) CULE_INLINE_LAMBDA {
      // `lasts`: the frame does not reach its limit of instructions before all that begins in this
      // turn is done. An instruction takes 2 cycles at least. `has_room`: nor does it reach its
      // limit of scanlines, and the buffer does not become full.
      const bool lasts = m.instructions_left >= kTurnCycles / 2;
      const bool has_room = m.make_room(end + kLongest, kTurnCycles) && lasts;
      const TurnEnds ends{end, has_room ? end : kNever};
      for (;;) {
        const bool goes = m.runs() && m.cycle < end, at_block = begins_block(op);
        const uint32_t number = operand_of(op);
        const uint32_t interpreted = kRunsInRam ? kAfterAllBlocks : pc_order_after(last);
        const uint32_t there = at_block ? pc_order_of_block(number) : interpreted;
        const auto group = pace.at_lowest_pc_order(lanes, goes ? there : kNowhere);
        if (!group.any) break;
        if (!group.mine) continue;
        if (at_block) {
          // No block ends the frame: if it could, it does not begin.
          const bool may_begin = op.control & kQuietBlock ? lasts : has_room;
          const bool runs = may_begin && (op.control & kBlockPc) == m.r.pc && (kDecimal || !m.r.d);
          const uint32_t next = runs ? run_block(m, number, ends, group) : kInterpret | number;
          // The last byte on the bus matters only if code is fetched from the TIA's addresses. From
          // a block only a jump leads there, and a jump reads its target's high byte last.
          if (runs) m.bus = m.r.pc >> 8;
          last = next & kBlockNumbers;
          op = follow_block(m, next);
        } else {
          for (; m.runs() && m.cycle < end && !begins_block(op); --m.instructions_left)
            op = execute_on_fast_path(m, op, !has_room);
        }
      }
    });
  }

 private:
  static constexpr int32_t kNever = -0x7FFFFFFF;
  // The next instruction: the mark of the next block, which needs no read of memory, or what is at
  // `pc`.
  template <class M>
  static CULE_INLINE Predecoded follow_block(const M& m, uint32_t next) {
    if (next & kLookUp) return m.look_ahead();
    if (next & kInterpret) return m.look_under_mark();
    return mark_of_block(next & kBlockNumbers, m.r.pc, next & kQuietBlock);
  }
};

}  // namespace cule

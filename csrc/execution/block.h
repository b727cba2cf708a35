// Translated code: runs of a ROM's instructions, each executed by the one path of
// cpu_6507/execute.h with the instruction, its operand and its address as compile-time constants,
// so that only what it does to this console is left of it.
//
// A block holds the frequent instructions that follow one another from an entry point
// (cule/translation/ picks them and writes the blocks down with the macros below). It covers what
// they usually touch: RAM, plain ROM, TIA registers. Where one touches anything else, or the end of
// the frame is near, the block is left before it, and the interpreter executes it.
#pragma once

#include "execution/interpreter.h"
#include "games/games.h"

namespace cule {

// What follows a block: the number of the block that begins where the program goes on, with
// kQuietBlock if that is quiet, or the number of the last block with one of these bits.
constexpr uint32_t kBlockNumbers = 0xFFFF;
constexpr uint32_t kLookUp = 0x10000;  // nobody knows: what is there says
// The block could not go on: the interpreter executes the next instruction.
constexpr uint32_t kInterpret = 0x20000;

// Before which cycles blocks begin in a turn: quiet ones, and any. Only quiet ones begin where a
// write to the TIA could end the frame or fill the instruction buffer.
struct TurnEnds {
  int32_t quiet, any;
};

// Where instructions of a block find ROM: in the bank that begins at byte `kBank`, or, where that
// is -1, as the cartridge shows it.
template <int32_t kBank>
struct RomOfBlock : RomOfBank<kBank> {};
template <>
struct RomOfBlock<-1> : ShownRom {};

// Executes the instruction at `pc`. False: it is still to be executed, by the interpreter.
template <uint32_t kOpcode, uint32_t kPlaces, int32_t kBank, class M>
CULE_INLINE bool execute_in_block(M& m, uint32_t pc, uint32_t operand) {
  FastBus<M, kPlaces, true, RomOfBlock<kBank>> fast(m);
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

// Goes on after the branch at `pc`, both of whose ends are known.
template <uint32_t kOpcode, class M>
CULE_INLINE void pass_branch(M& m, uint32_t pc, uint32_t operand, bool taken) {
  const uint32_t next = pc + 2, target = next + operand;
  m.cycle += StaticDecode<kOpcode>::control & kCyclesMask;
  if (taken) m.cycle += 1 + crosses_page(next, target);
  m.r.pc = (taken ? target : next) & 0xFFFF;
  --m.instructions_left;
}

// A case of the switch over blocks; its instructions, with the places that each reaches (a set of
// Place) and the bank that they are in; what follows where a branch is taken, or the end. If it is
// known, the block goes on there, at an entry, without coming back: as long as that begins before
// the turn's end for it, and the lanes that came with this one are still here, and no others wait
// there or before.
#define CULE_BLOCK(number) case number:
#define CULE_ENTRY(number) block_##number:
#define CULE_DO(number, at, opcode, operand, places, bank)                    \
  if (!execute_in_block<opcode, places, bank>(m, at, operand)) {              \
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
    if ((m.cycle < end) & group.goes_on_at(place_of_block(next))) goto block_##next; \
    CULE_APART("comes back");                                                        \
    return next | quiet;                                                             \
  }
#define CULE_LOOK_UP(number) return kLookUp | number;

// Runs blocks where there are any, and interprets the rest. Marks stand for the predecoded
// instructions at which blocks begin (begins_block). `run_block(m, number, ends, group)` executes a
// block, and those in which it goes on before the turn ends, and says what follows; the longest
// takes `kLongestBlock` cycles at most. The ROM is game `kGame`'s. Without `kDecimal` no block
// begins in decimal mode. With `kRunsInRam` much of the program is in RAM, and interpreted.
template <class RunBlock, uint32_t kGame, int32_t kLongestBlock, bool kDecimal, bool kRunsInRam>
struct TranslatedCore {
  static constexpr int32_t kLongest = kLongestBlock > kLongestInstruction ? kLongestBlock
                                                                          : kLongestInstruction;
  static constexpr int32_t kTurnCycles = kStretchCycles + kLongest;  // at most
  // No segment but the next is kept before it begins (TiaTrail::note_clear).
  static_assert(kTurnCycles < (kSegmentLines - 2) * kCyclesPerLine,
                "a stretch and a block take less than the scanlines of a segment");
  RunBlock run_block;

  // In a long turn lanes that have parted come together again; but where warps are many, they fetch
  // the same code at different times.
  static constexpr int32_t kTurnLines = kStretchLines, kTurnLinesOfManyWarps = 2;

  static CULE_INLINE KnownGame<kGame> game_of(const ConsoleConfig&) { return {}; }
  static CULE_INLINE const Predecoded* marked_ops(const Predecoded* marked, const Predecoded*) {
    return marked;
  }

  // Lanes that have parted at a branch come together again where their ways do: those that are
  // at_lowest_place in the program's order go on, and the others wait for them.
  template <class M, class Pace = FreePace>
  CULE_INLINE void run(M& m, const Pace& pace = {}) const {
    Predecoded op = m.look_ahead();
    uint32_t last = 0;  // the block after which it is interpreted
    run_in_step(m, pace, kLongest, [&](uint32_t lanes, int32_t end) CULE_INLINE_LAMBDA {
      // Before all that begins in this turn is over, the frame does not reach its limit of
      // instructions, each of which takes 2 cycles at least, nor that of its length, and the buffer
      // does not fill.
      const bool lasts = m.instructions_left >= kTurnCycles / 2;
      const bool has_room = m.make_room(end + kLongest, kTurnCycles) && lasts;
      const TurnEnds ends{end, has_room ? end : kNever};
      for (;;) {
        const bool goes = m.runs() && m.cycle < end, at_block = begins_block(op);
        const uint32_t number = operand_of(op);
        const uint32_t interpreted = kRunsInRam ? kAfterAllBlocks : place_after(last);
        const uint32_t there = at_block ? place_of_block(number) : interpreted;
        const auto group = pace.at_lowest_place(lanes, goes ? there : kNowhere);
        if (!group.any) break;
        if (!group.mine) continue;
        if (at_block) {
          // No block ends the frame: one that could does not begin.
          const bool may_begin = op.control & kQuietBlock ? lasts : has_room;
          const bool runs = may_begin && (op.control & kBlockPc) == m.r.pc && (kDecimal || !m.r.d);
          const uint32_t next = runs ? run_block(m, number, ends, group) : kInterpret | number;
          // What the bus holds matters only to code that is fetched from the TIA. A block comes to
          // that by a jump only, whose target's high byte was read last.
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
  // The mark of the block that follows, which needs no look at memory, or what is at `pc`.
  template <class M>
  static CULE_INLINE Predecoded follow_block(const M& m, uint32_t next) {
    if (next & kLookUp) return m.look_ahead();
    if (next & kInterpret) return m.look_under_mark();
    return mark_of_block(next & kBlockNumbers, m.r.pc, next & kQuietBlock);
  }
};

}  // namespace cule

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
constexpr uint32_t kLookUp = 0;          // nobody knows: what is there says
constexpr uint32_t kInterpret = 0xFFFF;  // the block could not go on: the interpreter executes the next instruction

// Where instructions of a block find ROM: in the bank that begins at byte `kBank`, or, where that is
// -1, as the cartridge shows it.
template <int32_t kBank>
struct RomOfBlock : RomOfBank<kBank> {};
template <>
struct RomOfBlock<-1> : ShownRom {};

// Executes the instruction at `r.pc` through `View`. False: it is still to be executed, and nothing
// has changed.
template <uint32_t kOpcode, class View, class M>
CULE_INLINE bool execute_through(M& m, uint32_t operand) {
  View view(m);
  const uint32_t pc = m.r.pc, bus = m.bus;
  const int32_t cycle = m.cycle;
  execute(StaticDecode<kOpcode>{}, view, operand);
  if (view.odd) {
    m.r.pc = pc;
    m.bus = bus;
    m.cycle = cycle;
    return false;
  }
  return true;
}

// Executes the instruction at `pc`. False: it is still to be executed, by the interpreter.
template <uint32_t kOpcode, uint32_t kPlaces, int32_t kBank, class M>
CULE_INLINE bool execute_in_block(M& m, uint32_t pc, uint32_t operand) {
  m.r.pc = pc;
  using View = PlainView<M, kPlaces, true, RomOfBlock<kBank>>;
  if (!execute_through<kOpcode, View>(m, operand)) return false;
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
// known, the block goes on there, without coming back, as long as that begins before cycle `end`: at
// an entry. After a wait for the next scanline (WSYNC) that is never so.
#define CULE_BLOCK(number) case number:
#define CULE_ENTRY(number) block_##number:
#define CULE_DO(at, opcode, operand, places, bank)                            \
  if (!execute_in_block<opcode, places, bank>(m, at, operand)) {              \
    CULE_APART("left");                                                       \
    return kInterpret;                                                        \
  }
#define CULE_BRANCH(at, opcode, operand, what_follows)  \
  if (branches(StaticDecode<opcode>{}, m.r)) {          \
    pass_branch<opcode>(m, at, operand, true);          \
    what_follows                                        \
  }                                                     \
  pass_branch<opcode>(m, at, operand, false);
#define CULE_GO_ON(next)                    \
  {                                         \
    if (m.cycle < end) goto block_##next;   \
    CULE_APART("at the scanline's end");    \
    return next;                            \
  }
#define CULE_COME_BACK(next) return next;
#define CULE_LOOK_UP return kLookUp;

// The opcodes that programs execute most, and what they mostly reach.
#define CULE_FREQUENT_OPCODES(each)                                                                \
  /* immediate, implied, branches and jumps */                                                     \
  each(0xA9, kInRam) each(0xA2, kInRam) each(0xA0, kInRam) each(0xC9, kInRam) each(0xC0, kInRam)   \
  each(0xE0, kInRam) each(0x29, kInRam) each(0x49, kInRam) each(0x69, kInRam | kInDecimal)         \
  each(0xE9, kInRam | kInDecimal) each(0x4A, kInRam) each(0x0A, kInRam) each(0xAA, kInRam)         \
  each(0xA8, kInRam) each(0x8A, kInRam) each(0x98, kInRam) each(0xCA, kInRam) each(0x88, kInRam)   \
  each(0xE8, kInRam) each(0xC8, kInRam) each(0x18, kInRam) each(0x38, kInRam) each(0xEA, kInRam)   \
  each(0xD0, kInRam) each(0xF0, kInRam) each(0x10, kInRam) each(0x30, kInRam) each(0x90, kInRam)   \
  each(0xB0, kInRam) each(0x50, kInRam) each(0x4C, kInRam) each(0x20, kInRam) each(0x60, kInRam)   \
  /* the zero page */                                                                              \
  each(0xA5, kInRam) each(0xA6, kInRam) each(0xA4, kInRam) each(0xB5, kInRam) each(0xC5, kInRam)   \
  each(0x24, kInRam) each(0x25, kInRam) each(0x05, kInRam) each(0x65, kInRam | kInDecimal)         \
  each(0xE5, kInRam | kInDecimal) each(0xE6, kInRam) each(0xC6, kInRam) each(0x95, kInRam)         \
  each(0x85, kInRam | kToTia) each(0x86, kInRam | kToTia) each(0x84, kInRam | kToTia)              \
  /* the rest */                                                                                   \
  each(0xAD, kInRam | kInRom) each(0xBD, kInRam | kInRom) each(0xB9, kInRam | kInRom)              \
  each(0xB1, kInRam | kInRom)

// Executes `op` and returns the next one. What is frequent has an instance of the path each, with
// which lanes that are together need a fifth of the machine instructions.
template <class M>
CULE_INLINE MicroOp execute_quickly(M& m, MicroOp op, bool crowded) {
  bool done = false;
  switch (crowded ? 0 : opcode_of(op)) {
#define CULE_CASE(code, places) \
  case code: done = execute_through<code, PlainView<M, places>>(m, operand_of(op)); break;
    CULE_FREQUENT_OPCODES(CULE_CASE)
#undef CULE_CASE
    default: break;
  }
  return done ? m.look_ahead() : execute_leanly(m, op, crowded);
}

// Runs blocks where there are any, and interprets the rest. The ROM's micro-operations are marked where blocks begin (begins_block).
// `run_block(m, number, end)` executes a block, and what it goes on in before cycle `end`, and says
// what follows; the longest takes `kLongestBlock` cycles at most. The ROM is game `kGame`'s. Without
// `kDecimal` no block begins in decimal mode.
template <class RunBlock, uint32_t kGame, int32_t kLongestBlock, bool kDecimal>
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
      const bool crowded = !make_room(m, end + kLongest);
      while (m.runs() && m.cycle < end) {
        // No block ends the frame: where it is near its end, none begins.
        while (m.cycle < end && begins_block(op)) {
          const bool runs = !crowded && op.control == m.r.pc && (kDecimal || !m.r.d);
          const uint32_t next = runs ? run_block(m, operand_of(op), end) : kInterpret;
          // What the bus holds matters only to code that is fetched from the TIA. A block comes to that
          // by a jump only, whose target's high byte was read last.
          if (runs) m.bus = m.r.pc >> 8;
          op = follow_block(m, next);
        }
        for (; m.runs() && m.cycle < end && !begins_block(op); --m.instructions_left) op = execute_quickly(m, op, crowded);
      }
    });
  }

 private:
  // Whether the frame cannot end before cycle `end` but by VSYNC, nor the buffer be full. Each
  // instruction takes 2 cycles at least.
  template <class M>
  static CULE_INLINE bool make_room(M& m, int32_t end) {
    return m.make_room(end) && m.instructions_left >= (end - m.cycle) / 2;
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

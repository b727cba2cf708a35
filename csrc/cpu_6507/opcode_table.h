// Two tables: the 6507's 256 opcodes, and facts about its instructions. What each instruction
// computes is in predecoded.h.
//
// A row of the first table gives an opcode's instruction, addressing mode and base cycles.
// predecoded.h packs the row, with what the instruction computes, into the control bits that the
// core executes. All code that needs an opcode gets it from here by the instruction's name
// (code_of, is_one_of, opcode_is).
//
// Sources: MOS MCS6500 Programming Manual for the documented opcodes; the NMOS 6510 undocumented
// opcode notes (64doc) for the rest. LAX zp takes 4 cycles, as in ale-py; on a chip it takes 3. The
// base cycles do not include the extra cycles for crossing a page and for a taken branch.
#pragma once

#include "common/platform.h"

namespace cule {

enum AddressMode : uint32_t {
  kImp, kImm, kZp, kZpX, kZpY, kAbs, kAbsX, kAbsY, kInd, kIndX, kIndY, kRel,
};

enum Instruction : uint32_t {
  kAdc, kAnd, kAsl, kBcc, kBcs, kBeq, kBit, kBmi, kBne, kBpl, kBrk, kBvc, kBvs, kClc, kCld, kCli,
  kClv, kCmp, kCpx, kCpy, kDec, kDex, kDey, kEor, kInc, kInx, kIny, kJmp, kJmpIndirect, kJsr, kLda,
  kLdx, kLdy, kLsr, kNop, kOra, kPha, kPhp, kPla, kPlp, kRol, kRor, kRti, kRts, kSbc, kSec, kSed,
  kSei, kSta, kStx, kSty, kTax, kTay, kTsx, kTxa, kTxs, kTya,
  // Undocumented. JAM halts the processor; ANE, LXA, SHA, SHS, SHX and SHY are unstable on real
  // chips.
  kAlr, kAnc, kAne, kArr, kDcp, kIsb, kJam, kLas, kLax, kLxa, kRla, kRra, kSax, kSbx, kSha, kShs,
  kShx, kShy, kSlo, kSre,
};

struct OpcodeRow {
  Instruction instruction;
  AddressMode mode;
  uint32_t cycles;
};

constexpr OpcodeRow row(Instruction instruction, AddressMode mode, uint32_t cycles) {
  return {instruction, mode, cycles};
}

constexpr OpcodeRow kOpcodeRows[256] = {
    row(kBrk, kImp, 7), row(kOra, kIndX, 6), row(kJam, kImp, 2), row(kSlo, kIndX, 8),  // $00
    row(kNop, kZp, 3), row(kOra, kZp, 3), row(kAsl, kZp, 5), row(kSlo, kZp, 5),
    row(kPhp, kImp, 3), row(kOra, kImm, 2), row(kAsl, kImp, 2), row(kAnc, kImm, 2),
    row(kNop, kAbs, 4), row(kOra, kAbs, 4), row(kAsl, kAbs, 6), row(kSlo, kAbs, 6),
    row(kBpl, kRel, 2), row(kOra, kIndY, 5), row(kJam, kImp, 2), row(kSlo, kIndY, 8),  // $10
    row(kNop, kZpX, 4), row(kOra, kZpX, 4), row(kAsl, kZpX, 6), row(kSlo, kZpX, 6),
    row(kClc, kImp, 2), row(kOra, kAbsY, 4), row(kNop, kImp, 2), row(kSlo, kAbsY, 7),
    row(kNop, kAbsX, 4), row(kOra, kAbsX, 4), row(kAsl, kAbsX, 7), row(kSlo, kAbsX, 7),
    row(kJsr, kAbs, 6), row(kAnd, kIndX, 6), row(kJam, kImp, 2), row(kRla, kIndX, 8),  // $20
    row(kBit, kZp, 3), row(kAnd, kZp, 3), row(kRol, kZp, 5), row(kRla, kZp, 5),
    row(kPlp, kImp, 4), row(kAnd, kImm, 2), row(kRol, kImp, 2), row(kAnc, kImm, 2),
    row(kBit, kAbs, 4), row(kAnd, kAbs, 4), row(kRol, kAbs, 6), row(kRla, kAbs, 6),
    row(kBmi, kRel, 2), row(kAnd, kIndY, 5), row(kJam, kImp, 2), row(kRla, kIndY, 8),  // $30
    row(kNop, kZpX, 4), row(kAnd, kZpX, 4), row(kRol, kZpX, 6), row(kRla, kZpX, 6),
    row(kSec, kImp, 2), row(kAnd, kAbsY, 4), row(kNop, kImp, 2), row(kRla, kAbsY, 7),
    row(kNop, kAbsX, 4), row(kAnd, kAbsX, 4), row(kRol, kAbsX, 7), row(kRla, kAbsX, 7),
    row(kRti, kImp, 6), row(kEor, kIndX, 6), row(kJam, kImp, 2), row(kSre, kIndX, 8),  // $40
    row(kNop, kZp, 3), row(kEor, kZp, 3), row(kLsr, kZp, 5), row(kSre, kZp, 5),
    row(kPha, kImp, 3), row(kEor, kImm, 2), row(kLsr, kImp, 2), row(kAlr, kImm, 2),
    row(kJmp, kAbs, 3), row(kEor, kAbs, 4), row(kLsr, kAbs, 6), row(kSre, kAbs, 6),
    row(kBvc, kRel, 2), row(kEor, kIndY, 5), row(kJam, kImp, 2), row(kSre, kIndY, 8),  // $50
    row(kNop, kZpX, 4), row(kEor, kZpX, 4), row(kLsr, kZpX, 6), row(kSre, kZpX, 6),
    row(kCli, kImp, 2), row(kEor, kAbsY, 4), row(kNop, kImp, 2), row(kSre, kAbsY, 7),
    row(kNop, kAbsX, 4), row(kEor, kAbsX, 4), row(kLsr, kAbsX, 7), row(kSre, kAbsX, 7),
    row(kRts, kImp, 6), row(kAdc, kIndX, 6), row(kJam, kImp, 2), row(kRra, kIndX, 8),  // $60
    row(kNop, kZp, 3), row(kAdc, kZp, 3), row(kRor, kZp, 5), row(kRra, kZp, 5),
    row(kPla, kImp, 4), row(kAdc, kImm, 2), row(kRor, kImp, 2), row(kArr, kImm, 2),
    row(kJmpIndirect, kInd, 5), row(kAdc, kAbs, 4), row(kRor, kAbs, 6), row(kRra, kAbs, 6),
    row(kBvs, kRel, 2), row(kAdc, kIndY, 5), row(kJam, kImp, 2), row(kRra, kIndY, 8),  // $70
    row(kNop, kZpX, 4), row(kAdc, kZpX, 4), row(kRor, kZpX, 6), row(kRra, kZpX, 6),
    row(kSei, kImp, 2), row(kAdc, kAbsY, 4), row(kNop, kImp, 2), row(kRra, kAbsY, 7),
    row(kNop, kAbsX, 4), row(kAdc, kAbsX, 4), row(kRor, kAbsX, 7), row(kRra, kAbsX, 7),
    row(kNop, kImm, 2), row(kSta, kIndX, 6), row(kNop, kImm, 2), row(kSax, kIndX, 6),  // $80
    row(kSty, kZp, 3), row(kSta, kZp, 3), row(kStx, kZp, 3), row(kSax, kZp, 3),
    row(kDey, kImp, 2), row(kNop, kImm, 2), row(kTxa, kImp, 2), row(kAne, kImm, 2),
    row(kSty, kAbs, 4), row(kSta, kAbs, 4), row(kStx, kAbs, 4), row(kSax, kAbs, 4),
    row(kBcc, kRel, 2), row(kSta, kIndY, 6), row(kJam, kImp, 2), row(kSha, kIndY, 6),  // $90
    row(kSty, kZpX, 4), row(kSta, kZpX, 4), row(kStx, kZpY, 4), row(kSax, kZpY, 4),
    row(kTya, kImp, 2), row(kSta, kAbsY, 5), row(kTxs, kImp, 2), row(kShs, kAbsY, 5),
    row(kShy, kAbsX, 5), row(kSta, kAbsX, 5), row(kShx, kAbsY, 5), row(kSha, kAbsY, 5),
    row(kLdy, kImm, 2), row(kLda, kIndX, 6), row(kLdx, kImm, 2), row(kLax, kIndX, 6),  // $A0
    row(kLdy, kZp, 3), row(kLda, kZp, 3), row(kLdx, kZp, 3), row(kLax, kZp, 4),
    row(kTay, kImp, 2), row(kLda, kImm, 2), row(kTax, kImp, 2), row(kLxa, kImm, 2),
    row(kLdy, kAbs, 4), row(kLda, kAbs, 4), row(kLdx, kAbs, 4), row(kLax, kAbs, 4),
    row(kBcs, kRel, 2), row(kLda, kIndY, 5), row(kJam, kImp, 2), row(kLax, kIndY, 5),  // $B0
    row(kLdy, kZpX, 4), row(kLda, kZpX, 4), row(kLdx, kZpY, 4), row(kLax, kZpY, 4),
    row(kClv, kImp, 2), row(kLda, kAbsY, 4), row(kTsx, kImp, 2), row(kLas, kAbsY, 4),
    row(kLdy, kAbsX, 4), row(kLda, kAbsX, 4), row(kLdx, kAbsY, 4), row(kLax, kAbsY, 4),
    row(kCpy, kImm, 2), row(kCmp, kIndX, 6), row(kNop, kImm, 2), row(kDcp, kIndX, 8),  // $C0
    row(kCpy, kZp, 3), row(kCmp, kZp, 3), row(kDec, kZp, 5), row(kDcp, kZp, 5),
    row(kIny, kImp, 2), row(kCmp, kImm, 2), row(kDex, kImp, 2), row(kSbx, kImm, 2),
    row(kCpy, kAbs, 4), row(kCmp, kAbs, 4), row(kDec, kAbs, 6), row(kDcp, kAbs, 6),
    row(kBne, kRel, 2), row(kCmp, kIndY, 5), row(kJam, kImp, 2), row(kDcp, kIndY, 8),  // $D0
    row(kNop, kZpX, 4), row(kCmp, kZpX, 4), row(kDec, kZpX, 6), row(kDcp, kZpX, 6),
    row(kCld, kImp, 2), row(kCmp, kAbsY, 4), row(kNop, kImp, 2), row(kDcp, kAbsY, 7),
    row(kNop, kAbsX, 4), row(kCmp, kAbsX, 4), row(kDec, kAbsX, 7), row(kDcp, kAbsX, 7),
    row(kCpx, kImm, 2), row(kSbc, kIndX, 6), row(kNop, kImm, 2), row(kIsb, kIndX, 8),  // $E0
    row(kCpx, kZp, 3), row(kSbc, kZp, 3), row(kInc, kZp, 5), row(kIsb, kZp, 5),
    row(kInx, kImp, 2), row(kSbc, kImm, 2), row(kNop, kImp, 2), row(kSbc, kImm, 2),
    row(kCpx, kAbs, 4), row(kSbc, kAbs, 4), row(kInc, kAbs, 6), row(kIsb, kAbs, 6),
    row(kBeq, kRel, 2), row(kSbc, kIndY, 5), row(kJam, kImp, 2), row(kIsb, kIndY, 8),  // $F0
    row(kNop, kZpX, 4), row(kSbc, kZpX, 4), row(kInc, kZpX, 6), row(kIsb, kZpX, 6),
    row(kSed, kImp, 2), row(kSbc, kAbsY, 4), row(kNop, kImp, 2), row(kIsb, kAbsY, 7),
    row(kNop, kAbsX, 4), row(kSbc, kAbsX, 4), row(kInc, kAbsX, 7), row(kIsb, kAbsX, 7),
};

// How much code an instruction needs, and how often programs execute it. Each kind of bus executes
// all tiers up to its kLastTier (cpu_6507/bus.h).
enum class Tier : uint8_t {
  kCommonPath,  // only the arithmetic path of execute.h
  kFrequent,    // needs more code than that; a few percent of all that programs execute
  kUsed,        // needs more code too, but is seldom executed
  kRarest,      // no game needs it to be fast
};

// Where the program continues after an instruction that is not a branch: at the next instruction;
// at its operand; or elsewhere, at an address known only at run time, or nowhere.
enum class GoesOn : uint8_t { kNext, kAtOperand, kElsewhere };

struct InstructionRow {
  Instruction instruction;
  Tier tier;
  GoesOn goes_on = GoesOn::kNext;
  // How many consecutive bytes the instruction reads from the stack, a vector or a jump's pointer,
  // and how many it pushes. PLA and PLP also read the byte below the one they need, as in ale-py.
  uint8_t reads = 0, pushes = 0;
  bool stores = false;  // whether it stores a byte that the common path does not compute
};

// The instructions that do more than the common path, and JMP. All other instructions have the
// defaults.
constexpr InstructionRow kInstructionRows[] = {
    {kJmp, Tier::kCommonPath, GoesOn::kAtOperand},
    {kJsr, Tier::kFrequent, GoesOn::kAtOperand, 0, 2},
    {kRts, Tier::kFrequent, GoesOn::kElsewhere, 2},
    {kJmpIndirect, Tier::kFrequent, GoesOn::kElsewhere, 2},
    {kPha, Tier::kFrequent, GoesOn::kNext, 0, 1},
    {kPhp, Tier::kFrequent, GoesOn::kNext, 0, 1},
    {kPla, Tier::kFrequent, GoesOn::kNext, 2},
    {kPlp, Tier::kUsed, GoesOn::kNext, 2},
    {kCli, Tier::kUsed}, {kSei, Tier::kUsed}, {kClv, Tier::kUsed}, {kCld, Tier::kUsed},
    {kSed, Tier::kUsed},
    {kRti, Tier::kRarest, GoesOn::kElsewhere, 3},
    {kBrk, Tier::kRarest, GoesOn::kElsewhere, 2, 3},
    {kJam, Tier::kRarest, GoesOn::kElsewhere},
    {kSax, Tier::kRarest, GoesOn::kNext, 0, 0, true},
    {kSha, Tier::kRarest, GoesOn::kNext, 0, 0, true},
    {kShs, Tier::kRarest, GoesOn::kNext, 0, 0, true},
    {kShx, Tier::kRarest, GoesOn::kNext, 0, 0, true},
    {kShy, Tier::kRarest, GoesOn::kNext, 0, 0, true},
    {kAlr, Tier::kRarest}, {kAnc, Tier::kRarest}, {kAne, Tier::kRarest}, {kArr, Tier::kRarest},
    {kLas, Tier::kRarest}, {kLxa, Tier::kRarest}, {kSbx, Tier::kRarest},
    {kDcp, Tier::kRarest}, {kIsb, Tier::kRarest}, {kRla, Tier::kRarest}, {kRra, Tier::kRarest},
    {kSlo, Tier::kRarest}, {kSre, Tier::kRarest},
};
constexpr InstructionRow facts_of(Instruction instruction) {
  for (const InstructionRow& row : kInstructionRows) {
    if (row.instruction == instruction) return row;
  }
  return {instruction, Tier::kCommonPath};
}

// The opcode of an instruction. If it has several: number `n`, or the one with a given mode.
constexpr uint32_t kNoOpcode = 0x100;
constexpr uint32_t code_of(Instruction instruction, uint32_t n = 0) {
  for (uint32_t code = 0; code < 256; ++code) {
    if (kOpcodeRows[code].instruction == instruction && n-- == 0) return code;
  }
  return kNoOpcode;
}
constexpr uint32_t code_in_mode(Instruction instruction, AddressMode mode) {
  for (uint32_t code = 0; code < 256; ++code) {
    if (kOpcodeRows[code].instruction == instruction && kOpcodeRows[code].mode == mode) return code;
  }
  return kNoOpcode;
}

// The first opcode, from `code` on, whose instruction meets a `Condition`.
template <class Condition>
constexpr uint32_t next_opcode(uint32_t code) {
  while (code < kNoOpcode && !Condition::holds(facts_of(kOpcodeRows[code].instruction))) ++code;
  return code;
}
// Whether an opcode's instruction meets a `Condition`. Compares with each such opcode instead of
// reading a table from memory.
template <class Condition, uint32_t kFrom = 0>
CULE_INLINE constexpr bool opcode_is(uint32_t opcode) {
  constexpr uint32_t kCode = next_opcode<Condition>(kFrom);
  if constexpr (kCode == kNoOpcode) return false;
  else return opcode == kCode || opcode_is<Condition, kCode + 1>(opcode);
}

template <Instruction... kInstructions>
struct OneOf {
  static constexpr bool holds(const InstructionRow& row) {
    return ((row.instruction == kInstructions) || ...);
  }
};
// Whether an opcode belongs to one of these instructions.
template <Instruction... kInstructions>
CULE_INLINE constexpr bool is_one_of(uint32_t opcode) {
  return opcode_is<OneOf<kInstructions...>>(opcode);
}

}  // namespace cule

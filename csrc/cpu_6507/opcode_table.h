// The 6507's 256 opcodes, as data.
//
// A row says which instruction an opcode is, how it finds its operand and its base cycles; `decode_word` packs it, with
// what the instruction does, into one 32-bit word. The core executes such words: every instruction takes the same
// path through operand fetch, effective address, read, compute, write-back, and differs only in the word's fields.
//
// Sources: MOS MCS6500 Programming Manual (documented opcodes); the NMOS 6510 undocumented opcode notes (64doc) for the
// others; LAX zp takes 4 cycles, as in ale-py, where a chip takes 3. The cycles do not include the one for crossing a page (`kPagePenalty`) or for a taken branch.
#pragma once

#include "common/platform.h"

namespace cule {

enum AddressMode : uint32_t {
  kImp, kImm, kZp, kZpX, kZpY, kAbs, kAbsX, kAbsY, kInd, kIndX, kIndY, kRel,
};

enum Instruction : uint32_t {
  kAdc, kAnd, kAsl, kBcc, kBcs, kBeq, kBit, kBmi, kBne, kBpl, kBrk, kBvc, kBvs, kClc, kCld, kCli, kClv, kCmp, kCpx,
  kCpy, kDec, kDex, kDey, kEor, kInc, kInx, kIny, kJmp, kJsr, kLda, kLdx, kLdy, kLsr, kNop, kOra, kPha, kPhp, kPla,
  kPlp, kRol, kRor, kRti, kRts, kSbc, kSec, kSed, kSei, kSta, kStx, kSty, kTax, kTay, kTsx, kTxa, kTxs, kTya,
  // Undocumented. JAM halts the processor; ANE, LXA, SHA, SHS, SHX and SHY are unstable on real chips.
  kAlr, kAnc, kAne, kArr, kDcp, kIsb, kJam, kLas, kLax, kLxa, kRla, kRra, kSax, kSbx, kSha, kShs, kShx, kShy, kSlo, kSre,
};

// What is computed from a register `r`, the memory operand `m` and the flags.
enum Alu : uint32_t {
  kPassM, kPassR, kOrA, kAndA, kEorA, kAdcA, kSbcA, kCompare, kBitTest, kShiftLeft, kRotateLeft, kShiftRight,
  kRotateRight, kIncrement, kDecrement, kFlag, kRare,
};

enum Register : uint32_t { kRegA, kRegX, kRegY, kRegS, kRegAX, kNoRegister };

// What happens to the program counter and the stack.
enum Flow : uint32_t { kNext, kBranch, kJump, kCall, kReturn, kInterruptReturn, kBreak, kPush, kPull, kHalt };

// Fields of a decode word.
constexpr uint32_t kModeShift = 0, kCyclesShift = 4, kAluShift = 8, kSourceShift = 13, kDestShift = 16, kFlowShift = 19,
                   kSecondShift = 23;
constexpr uint32_t kReads = 1u << 26, kWrites = 1u << 27, kPagePenalty = 1u << 28, kSetsNZ = 1u << 29;
// A branch keeps in `source` the flag that it tests and in `dest` the value that takes it; a flag instruction likewise.
enum FlagIndex : uint32_t { kFlagN, kFlagV, kFlagC, kFlagZ, kFlagD, kFlagI };
// The undocumented read-modify-write pairs do a second operation on A with the byte that they wrote.
enum Second : uint32_t { kNoSecond, kThenOr, kThenAnd, kThenEor, kThenAdc, kThenSbc, kThenCompare };

struct OpcodeRow {
  Instruction instruction;
  AddressMode mode;
  uint32_t cycles;
};

constexpr OpcodeRow row(Instruction instruction, AddressMode mode, uint32_t cycles) { return {instruction, mode, cycles}; }

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
    row(kJmp, kInd, 5), row(kAdc, kAbs, 4), row(kRor, kAbs, 6), row(kRra, kAbs, 6),
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

// What an instruction does, whatever its addressing mode.
struct Effect {
  Alu alu = kPassM;
  Register source = kRegA;
  Register dest = kNoRegister;
  Flow flow = kNext;
  Second second = kNoSecond;
  uint32_t bits = 0;
};

constexpr Effect memory_read(Alu alu, Register source, Register dest, bool sets_nz = true) {
  return {alu, source, dest, kNext, kNoSecond, kReads | kPagePenalty | (sets_nz ? kSetsNZ : 0)};
}
constexpr Effect memory_write(Alu alu, Register source) { return {alu, source, kNoRegister, kNext, kNoSecond, kWrites}; }
constexpr Effect memory_modify(Alu alu, Second second = kNoSecond) {
  return {alu, kNoRegister, kNoRegister, kNext, second, kReads | kWrites | (second == kNoSecond ? kSetsNZ : 0)};
}
constexpr Effect transfer(Register source, Register dest) {
  return {kPassR, source, dest, kNext, kNoSecond, dest == kRegS ? 0 : kSetsNZ};
}
constexpr Effect step_register(Alu alu, Register which) { return {alu, which, which, kNext, kNoSecond, kSetsNZ}; }
constexpr Effect branch_if(FlagIndex flag, uint32_t value) {
  return {kFlag, static_cast<Register>(flag), static_cast<Register>(value), kBranch, kNoSecond, kReads};
}
constexpr Effect set_flag(FlagIndex flag, uint32_t value) {
  return {kFlag, static_cast<Register>(flag), static_cast<Register>(value), kNext, kNoSecond, 0};
}
constexpr Effect control(Flow flow, Register which = kNoRegister) {
  return {kPassR, which, which, flow, kNoSecond, 0};
}

constexpr Effect effect_of(Instruction instruction) {
  switch (instruction) {
    case kLda: return memory_read(kPassM, kNoRegister, kRegA);
    case kLdx: return memory_read(kPassM, kNoRegister, kRegX);
    case kLdy: return memory_read(kPassM, kNoRegister, kRegY);
    case kLax: return memory_read(kPassM, kNoRegister, kRegAX);
    case kOra: return memory_read(kOrA, kRegA, kRegA);
    case kAnd: return memory_read(kAndA, kRegA, kRegA);
    case kEor: return memory_read(kEorA, kRegA, kRegA);
    case kAdc: return memory_read(kAdcA, kRegA, kRegA);
    case kSbc: return memory_read(kSbcA, kRegA, kRegA);
    case kCmp: return memory_read(kCompare, kRegA, kNoRegister);
    case kCpx: return memory_read(kCompare, kRegX, kNoRegister);
    case kCpy: return memory_read(kCompare, kRegY, kNoRegister);
    case kBit: return memory_read(kBitTest, kRegA, kNoRegister, false);
    case kNop: return memory_read(kPassM, kNoRegister, kNoRegister, false);
    case kSta: return memory_write(kPassR, kRegA);
    case kStx: return memory_write(kPassR, kRegX);
    case kSty: return memory_write(kPassR, kRegY);
    case kSax: return memory_write(kPassR, kRegAX);
    case kAsl: return memory_modify(kShiftLeft);
    case kRol: return memory_modify(kRotateLeft);
    case kLsr: return memory_modify(kShiftRight);
    case kRor: return memory_modify(kRotateRight);
    case kInc: return memory_modify(kIncrement);
    case kDec: return memory_modify(kDecrement);
    case kSlo: return memory_modify(kShiftLeft, kThenOr);
    case kRla: return memory_modify(kRotateLeft, kThenAnd);
    case kSre: return memory_modify(kShiftRight, kThenEor);
    case kRra: return memory_modify(kRotateRight, kThenAdc);
    case kIsb: return memory_modify(kIncrement, kThenSbc);
    case kDcp: return memory_modify(kDecrement, kThenCompare);
    case kInx: return step_register(kIncrement, kRegX);
    case kIny: return step_register(kIncrement, kRegY);
    case kDex: return step_register(kDecrement, kRegX);
    case kDey: return step_register(kDecrement, kRegY);
    case kTax: return transfer(kRegA, kRegX);
    case kTay: return transfer(kRegA, kRegY);
    case kTsx: return transfer(kRegS, kRegX);
    case kTxa: return transfer(kRegX, kRegA);
    case kTxs: return transfer(kRegX, kRegS);
    case kTya: return transfer(kRegY, kRegA);
    case kBpl: return branch_if(kFlagN, 0);
    case kBmi: return branch_if(kFlagN, 1);
    case kBvc: return branch_if(kFlagV, 0);
    case kBvs: return branch_if(kFlagV, 1);
    case kBcc: return branch_if(kFlagC, 0);
    case kBcs: return branch_if(kFlagC, 1);
    case kBne: return branch_if(kFlagZ, 0);
    case kBeq: return branch_if(kFlagZ, 1);
    case kClc: return set_flag(kFlagC, 0);
    case kSec: return set_flag(kFlagC, 1);
    case kCli: return set_flag(kFlagI, 0);
    case kSei: return set_flag(kFlagI, 1);
    case kClv: return set_flag(kFlagV, 0);
    case kCld: return set_flag(kFlagD, 0);
    case kSed: return set_flag(kFlagD, 1);
    case kJmp: return control(kJump);
    case kJsr: return control(kCall);
    case kRts: return control(kReturn);
    case kRti: return control(kInterruptReturn);
    case kBrk: return control(kBreak);
    case kPha: return control(kPush, kRegA);
    case kPhp: return control(kPush, kNoRegister);
    case kPla: return control(kPull, kRegA);
    case kPlp: return control(kPull, kNoRegister);
    case kJam: return control(kHalt);
    // Told apart by opcode when they are executed.
    case kAlr: case kAnc: case kAne: case kArr: case kLas: case kLxa: case kSbx:
      return {kRare, kNoRegister, kNoRegister, kNext, kNoSecond, kReads | kPagePenalty};
    case kSha: case kShs: case kShx: case kShy: return {kRare, kNoRegister, kNoRegister, kNext, kNoSecond, kWrites};
  }
  return {};
}

// The word that the core executes for `opcode`.
constexpr uint32_t decode_word(int opcode) {
  const OpcodeRow& r = kOpcodeRows[opcode];
  Effect effect = effect_of(r.instruction);
  uint32_t bits = effect.bits;
  uint32_t source = effect.source, dest = effect.dest;
  if (r.mode == kImp) {
    bits &= ~(kReads | kWrites | kPagePenalty);
    // The accumulator forms of the shifts.
    if (r.instruction == kAsl || r.instruction == kRol || r.instruction == kLsr || r.instruction == kRor) source = dest = kRegA;
  }
  const bool indexed = r.mode == kAbsX || r.mode == kAbsY || r.mode == kIndY;
  if (!indexed || (bits & kWrites)) bits &= ~kPagePenalty;
  return r.mode << kModeShift | r.cycles << kCyclesShift | effect.alu << kAluShift | source << kSourceShift |
         dest << kDestShift | effect.flow << kFlowShift | effect.second << kSecondShift | bits;
}

// The addressing mode follows from an opcode's low 5 bits, but for a few.
CULE_INLINE AddressMode opcode_mode(uint32_t opcode) {
  switch (opcode) {
    case 0x20: return kAbs;
    case 0x00: case 0x40: case 0x60: return kImp;
    case 0x6C: return kInd;
    case 0x96: case 0x97: case 0xB6: case 0xB7: return kZpY;
    case 0x9E: case 0x9F: case 0xBE: case 0xBF: return kAbsY;
    default: break;
  }
  switch (opcode & 0x1F) {
    case 0x00: case 0x09: case 0x0B: return kImm;
    case 0x02: return opcode & 0x80 ? kImm : kImp;
    case 0x01: case 0x03: return kIndX;
    case 0x04: case 0x05: case 0x06: case 0x07: return kZp;
    case 0x0C: case 0x0D: case 0x0E: case 0x0F: return kAbs;
    case 0x10: return kRel;
    case 0x11: case 0x13: return kIndY;
    case 0x14: case 0x15: case 0x16: case 0x17: return kZpX;
    case 0x19: case 0x1B: return kAbsY;
    case 0x1C: case 0x1D: case 0x1E: case 0x1F: return kAbsX;
    default: return kImp;
  }
}

struct DecodeTable {
  uint32_t words[256];
};

constexpr DecodeTable make_decode_table() {
  DecodeTable table{};
  for (int opcode = 0; opcode < 256; ++opcode) table.words[opcode] = decode_word(opcode);
  return table;
}

}  // namespace cule

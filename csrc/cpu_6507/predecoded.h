// Predecoded instructions: what the core executes. Each is a whole 6507 instruction, decoded ahead
// of time. There is one for every byte of a ROM, as an instruction may begin at any byte.
//
// A predecoded instruction has 64 bits: control bits, the opcode, and the operand. The control bits
// steer the one path of execute.h, on which lanes of a warp with different instructions do not
// diverge. The arithmetic unit is one adder: result = p + q + carry. A right shift bypasses it.
// Each addend is a term of the source register AND a term of the operand. A term is 0, $FF, the
// byte, or its complement: ((byte & pass) ^ flip), where `pass` and `flip` are all zeros or all
// ones.
//
// The opcodes and their sources are in opcode_table.h. The encoding is this project's own.
#pragma once

#include "cpu_6507/opcode_table.h"

namespace cule {

// The first word, from bit 0: base cycles (4 bits), length in bytes (2 bits), then:
enum Control : uint32_t {
  kRare = 1u << 6,            // needs more than the common path, as its Tier says: see rare.h
  kZeroPage = 1u << 8,        // the address wraps within the zero page
  kIndirect = 1u << 9,        // through a pointer in the zero page: X indexes the pointer's
                              // address, Y indexes the pointer
  kPagePenalty = 1u << 10,
  kReads = 1u << 11,
  kWrites = 1u << 12,
  kFromRegister = 1u << 13,   // the operand is the source register (bits 18 and 19)
  kIndexX = 1u << 16,
  kIndexY = 1u << 17,
  kCarryFlag = 1u << 20,      // for a right shift: into bit 7
  kCarryOne = 1u << 21,
  kShiftRight = 1u << 24,
  kSetsNZ = 1u << 25,
  kSetsC = 1u << 26,
  kSetsV = 1u << 27,
  kBitTest = 1u << 28,        // N and V are the operand's bits
  kJump = 1u << 29,
  // The terms. Each bit is the highest or second highest of its byte. From there spread_signs makes
  // a mask. q always contains the whole operand or its complement.
  kRegisterInQ = 1u << 7, kRegisterInP = 1u << 15,
  kFlipRegisterInQ = 1u << 23, kFlipRegisterInP = 1u << 31,
  kOperandInP = 1u << 14, kFlipOperandInQ = 1u << 22, kFlipOperandInP = 1u << 30,
};
constexpr uint32_t kCyclesMask = 0x0F, kLengthShift = 4, kSourceShift = 18;
// A term that is flipped but not passed is $FF. The AND then ignores its byte: the register in q,
// the operand in p. Instructions need these addends:
constexpr uint32_t
    kOnlyOperand = kFlipRegisterInQ,                                // p = 0, q = operand
    kRegisterPlus = kOnlyOperand | kRegisterInP | kFlipOperandInP,  // p = register, q = operand
    kRegisterMinus = kRegisterPlus | kFlipOperandInQ,               // p = register, q = ~operand
    kWithRegister = kRegisterInQ,                                   // p = 0, q = operand & register
    // p = 0, q = operand & ~register
    kWithoutRegister = kRegisterInQ | kFlipRegisterInQ,
    // p = register, q = operand & ~register
    kOrRegister = kWithoutRegister | kRegisterInP | kFlipOperandInP,
    // p = register & ~operand, q = operand & ~register
    kExclusiveOr = kWithoutRegister | kRegisterInP | kOperandInP | kFlipOperandInP,
    kTwice = kOnlyOperand | kFlipRegisterInP | kOperandInP,         // p = q = operand
    kPlusOnes = kOnlyOperand | kFlipRegisterInP | kFlipOperandInP;  // p = $FF, q = operand
enum Source : uint32_t { kSourceA, kSourceX, kSourceY, kSourceS };

// The second word, from bit 0: the destination registers, the flag that a branch tests, the value
// of the flag that takes the branch, the opcode (8 bits), the operand (16 bits).
enum Destination : uint32_t { kToA = 1, kToX = 2, kToY = 4, kToS = 8 };
constexpr uint32_t kFlagShift = 4, kSecondFlag = 1u << 4, kLateFlag = 1u << 5, kIfClear = 1u << 6,
                   kIfSet = 1u << 7;
constexpr uint32_t kBranch = kIfClear | kIfSet, kOpcodeShift = 8, kOperandShift = 16;
enum Flag : uint32_t { kFlagN, kFlagV, kFlagC, kFlagZ };

struct alignas(8) Predecoded {
  uint32_t control;
  uint32_t more;
};

CULE_INLINE uint32_t length_of(Predecoded op) { return op.control >> kLengthShift & 3; }
CULE_INLINE uint32_t opcode_of(Predecoded op) { return op.more >> kOpcodeShift & 0xFF; }
CULE_INLINE uint32_t operand_of(Predecoded op) { return op.more >> kOperandShift; }

// Stands in for an instruction outside ROM, or for one whose fetch can switch banks. It takes no
// time, and fetches the instruction byte by byte. Its code is the second of the 12 opcodes of JAM.
// That opcode is free, since all predecoded JAMs use the first.
constexpr uint32_t kJamCode = code_of(kJam), kFetchSlowlyCode = code_of(kJam, 1);
constexpr Predecoded kFetchSlowly{kRare, kFetchSlowlyCode << kOpcodeShift};

// Marks the beginning of a translated basic block. The mark's operand is the block's number
// (execution/block.h), its code the third opcode of JAM. Instead of control bits it has the program
// counter that the block is for, since a mirror or another bank may show the same bytes at another
// address. One more bit says that the block is quiet: it writes nothing to the TIA.
constexpr uint32_t kBlockCode = code_of(kJam, 2), kQuietBlock = 0x40000, kBlockPc = 0xFFFF;
constexpr Predecoded mark_of_block(uint32_t number, uint32_t pc, uint32_t quiet) {
  return {pc | quiet, number << kOperandShift | kBlockCode << kOpcodeShift};
}
CULE_INLINE bool begins_block(Predecoded op) {
  return (op.more & 0xFF00) == kBlockCode << kOpcodeShift;
}

constexpr uint32_t from_source(Source source) {
  return static_cast<uint32_t>(source) << kSourceShift;
}

constexpr Predecoded read_op(uint32_t control, uint32_t more = 0) {
  return {control | kReads | kPagePenalty, more};
}
constexpr Predecoded load(uint32_t to) { return read_op(kOnlyOperand | kSetsNZ, to); }
constexpr Predecoded logic(uint32_t control) { return read_op(control | kSetsNZ, kToA); }
constexpr Predecoded arithmetic(uint32_t control) {
  return read_op(control | kCarryFlag | kSetsNZ | kSetsC | kSetsV, kToA);
}
constexpr Predecoded comparison(Source source) {
  return read_op(from_source(source) | kRegisterMinus | kCarryOne | kSetsNZ | kSetsC);
}
constexpr Predecoded store(Source source) {
  return {from_source(source) | kFromRegister | kOnlyOperand | kWrites, 0};
}
constexpr Predecoded modify(uint32_t control) { return {control | kReads | kWrites | kSetsNZ, 0}; }
// Modifies memory, then does a second operation on A with the result.
constexpr Predecoded modify_twice(uint32_t control) {
  return {control | kReads | kWrites, 0};
}
constexpr Predecoded on_register(Source source, uint32_t control, uint32_t to) {
  return {from_source(source) | kFromRegister | control, to};
}
// `wanted` is true if the branch is taken when the flag is set. Registers keep Z as a byte that is
// zero if the flag is set.
constexpr Predecoded branch(Flag flag, bool wanted) {
  return {0, flag << kFlagShift | (wanted == (flag != kFlagZ) ? kIfSet : kIfClear)};
}
constexpr Predecoded rare_read() { return read_op(kOnlyOperand); }

constexpr uint32_t kRotateLeftBits = kTwice | kCarryFlag | kSetsC,
                   kShiftLeftBits = kTwice | kSetsC,
                   kRotateRightBits = kShiftRight | kCarryFlag | kSetsC,
                   kShiftRightBits = kShiftRight | kSetsC;

// The part of an instruction that the common path does, in any addressing mode.
constexpr Predecoded effect_of(Instruction instruction) {
  switch (instruction) {
    case kLda: return load(kToA);
    case kLdx: return load(kToX);
    case kLdy: return load(kToY);
    case kLax: return load(kToA | kToX);
    case kOra: return logic(kOrRegister);
    case kAnd: return logic(kWithRegister);
    case kEor: return logic(kExclusiveOr);
    case kAdc: return arithmetic(kRegisterPlus);
    case kSbc: return arithmetic(kRegisterMinus);
    case kCmp: return comparison(kSourceA);
    case kCpx: return comparison(kSourceX);
    case kCpy: return comparison(kSourceY);
    case kBit: return read_op(kWithRegister | kSetsNZ | kSetsV | kBitTest);
    case kNop: return read_op(0);
    case kSta: return store(kSourceA);
    case kStx: return store(kSourceX);
    case kSty: return store(kSourceY);
    case kAsl: return modify(kShiftLeftBits);
    case kRol: return modify(kRotateLeftBits);
    case kLsr: return modify(kShiftRightBits);
    case kRor: return modify(kRotateRightBits);
    case kInc: return modify(kOnlyOperand | kCarryOne);
    case kDec: return modify(kPlusOnes);
    case kSlo: return modify_twice(kShiftLeftBits);
    case kRla: return modify_twice(kRotateLeftBits);
    case kSre: return modify_twice(kShiftRightBits);
    case kRra: return modify_twice(kRotateRightBits);
    case kIsb: return modify_twice(kOnlyOperand | kCarryOne);
    case kDcp: return modify_twice(kPlusOnes);
    case kInx: return on_register(kSourceX, kOnlyOperand | kCarryOne | kSetsNZ, kToX);
    case kIny: return on_register(kSourceY, kOnlyOperand | kCarryOne | kSetsNZ, kToY);
    case kDex: return on_register(kSourceX, kPlusOnes | kSetsNZ, kToX);
    case kDey: return on_register(kSourceY, kPlusOnes | kSetsNZ, kToY);
    case kTax: return on_register(kSourceA, kOnlyOperand | kSetsNZ, kToX);
    case kTay: return on_register(kSourceA, kOnlyOperand | kSetsNZ, kToY);
    case kTsx: return on_register(kSourceS, kOnlyOperand | kSetsNZ, kToX);
    case kTxa: return on_register(kSourceX, kOnlyOperand | kSetsNZ, kToA);
    case kTxs: return on_register(kSourceX, kOnlyOperand, kToS);
    case kTya: return on_register(kSourceY, kOnlyOperand | kSetsNZ, kToA);
    case kBpl: return branch(kFlagN, false);
    case kBmi: return branch(kFlagN, true);
    case kBvc: return branch(kFlagV, false);
    case kBvs: return branch(kFlagV, true);
    case kBcc: return branch(kFlagC, false);
    case kBcs: return branch(kFlagC, true);
    case kBne: return branch(kFlagZ, false);
    case kBeq: return branch(kFlagZ, true);
    // They set C to the carry of 0 + 0 and of $FF + 1.
    case kClc: return {kOnlyOperand | kSetsC, 0};
    case kSec: return {kPlusOnes | kCarryOne | kSetsC, 0};
    case kJmp: return {kJump, 0};
    case kAlr: case kAnc: case kAne: case kArr: case kLas: case kLxa: case kSbx: return rare_read();
    default: return {0, 0};
  }
}

constexpr uint32_t length_of_mode(AddressMode mode) {
  return mode == kImp ? 1 : (mode >= kAbs && mode <= kInd) ? 3 : 2;
}

constexpr uint32_t mode_bits(AddressMode mode) {
  switch (mode) {
    case kZp: return kZeroPage;
    case kZpX: return kZeroPage | kIndexX;
    case kZpY: return kZeroPage | kIndexY;
    case kAbsX: return kIndexX;
    case kAbsY: return kIndexY;
    case kIndX: return kIndirect | kIndexX;
    case kIndY: return kIndirect | kIndexY;
    default: return 0;
  }
}

// The predecoded instruction of `opcode`, without its operand.
constexpr Predecoded operation_of(uint32_t opcode) {
  const OpcodeRow& row = kOpcodeRows[opcode];
  Predecoded op = effect_of(row.instruction);
  const bool in_memory = row.mode != kImp && row.mode != kImm && row.mode != kRel;
  if (!in_memory) op.control &= ~(kReads | kWrites);
  // The accumulator forms of the shifts.
  if (row.mode == kImp && (row.instruction == kAsl || row.instruction == kRol ||
                           row.instruction == kLsr || row.instruction == kRor)) {
    op.control |= kFromRegister;
    op.more |= kToA;
  }
  const bool can_cross = row.mode == kAbsX || row.mode == kAbsY || row.mode == kIndY;
  if (!can_cross) op.control &= ~kPagePenalty;
  if (facts_of(row.instruction).tier != Tier::kCommonPath) op.control |= kRare;
  op.control |= row.cycles | length_of_mode(row.mode) << kLengthShift | mode_bits(row.mode);
  op.more |= (row.instruction == kJam ? kJamCode : opcode) << kOpcodeShift;
  return op;
}

struct OperationTable {
  Predecoded operations[256];
};

constexpr OperationTable make_operation_table() {
  OperationTable table{};
  for (uint32_t opcode = 0; opcode < 256; ++opcode) table.operations[opcode] = operation_of(opcode);
  return table;
}

// `op` with its operand, made of the bytes that follow the opcode. The operand's high byte is
// always the instruction's last byte, as that byte stays on the data bus. The operand of a branch
// is its distance instead, sign-extended.
CULE_INLINE Predecoded with_operand(Predecoded op, uint32_t low, uint32_t high) {
  const uint32_t length = length_of(op);
  uint32_t operand = length == 3   ? low | high << 8
                     : length == 2 ? low | low << 8
                                   : opcode_of(op) << 8;
  if (op.more & kBranch) operand = (low ^ 0x80) - 0x80;
  op.more = (op.more & 0xFFFF) | operand << kOperandShift;
  return op;
}

}  // namespace cule

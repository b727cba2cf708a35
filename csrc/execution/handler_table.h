// The table of handlers: the variants of each instruction, by what it reaches.
#pragma once

#include <utility>

#include "execution/handlers.h"

namespace cule {

// The kinds of handlers that an instruction has, by what it reaches.
constexpr uint32_t kMostVariants = 64;
struct Variants {
  uint32_t regions[kMostVariants] = {};
  uint32_t count = 0;
  constexpr void add(uint32_t set) { regions[count++] = set; }
};

// What an instruction does with memory, apart from its operand.
struct Access {
  bool reads, writes, direct, zero_page, indirect;
  bool pointer;  // through a pointer at an address that is the operand
};
constexpr Access access_of(Predecoded op) {
  const uint32_t control = op.control;
  return {(control & kReads) != 0, (control & kWrites) != 0,
          (control & (kIndexX | kIndexY | kIndirect)) == 0, (control & kZeroPage) != 0,
          (control & kIndirect) != 0, (control & (kIndirect | kIndexX)) == kIndirect};
}

constexpr uint32_t kPushed = kInRam | kToTia | kFirstRam,
                   kAnywhere = kInRam | kInRom | kFromChips | kFirstRom;

// The variants of rare instructions: those for the stack, and JMP (indirect).
constexpr void add_rare(Variants& variants, Instruction instruction) {
  switch (instruction) {
    case kPha: case kPhp: variants.add(kPushed); break;
    case kPla: variants.add(kInRam | kFromChips | kFirstRam); break;
    case kPlp: variants.add(kInRam); break;
    case kJsr: case kRts:
      variants.add(kInRam);
      variants.add(kInRam | kFromAnyBank);
      break;
    case kJmpIndirect:
      variants.add(kInRam | kInRom);
      variants.add(kInRam | kInRom | kFromAnyBank);
      break;
    default: variants.add(0);
  }
}

// The TIA's registers from here on have handlers that store to them alone. Those before can end the
// frame.
constexpr uint32_t kFirstStored = kLastVertical + 1;

// The variants of instructions that write: directly, or through an index.
constexpr void add_stores(Variants& variants, const Access& access) {
  if (!access.direct) {
    const uint32_t pointer = access.pointer ? kPointerInRam : 0u;
    variants.add(kInRam | kToTia | kFirstRam | pointer);
    if (!access.zero_page) variants.add(kInRam | kToTia | kInCartridge | kFirstRam | pointer);
    return;
  }
  variants.add(kInRam | kSurely);
  if (access.zero_page) {
    for (uint32_t reg = kFirstStored; reg < kNumTiaWrites; ++reg)
      variants.add(to_register(reg) | kSurely);
  } else {
    variants.add(kToTia | kSurely);
    variants.add(kToRiot | kSurely);
    variants.add(kInCartridge | kSurely);
  }
}

constexpr void add_reads(Variants& variants, const Access& access) {
  if (access.direct) {
    variants.add(kInRam | kSurely);
    variants.add(kFromChips | kSurely);
    if (access.zero_page) return;
    for (const uint32_t bank : {0u, kFromAnyBank}) variants.add(kInRom | kSurely | bank);
    variants.add(kInCartridge | kSurely);
  } else if (access.zero_page && !access.indirect) {
    variants.add(kInRam | kFromChips | kFirstRam);
  } else {
    const uint32_t regions = access.indirect ? kInRam | kInRom | kFirstRom : kAnywhere;
    const uint32_t pointer = access.pointer ? kPointerInRam : 0u;
    for (const uint32_t rom : {+kInPlainRom, 0u, +kFromAnyBank}) {
      if (!access.indirect) variants.add(kInRom | kSurely | (rom & kFromAnyBank));
      variants.add(regions | pointer | rom);
    }
    variants.add(kAnywhere | kInCartridge | pointer);
    if (!access.indirect) variants.add(kInRam | kFromChips | kFirstChips);
  }
}

constexpr Variants find_variants(uint32_t opcode) {
  Variants variants{};
  const Instruction instruction = kOpcodeRows[opcode].instruction;
  const Predecoded op = operation_of(opcode);
  const Access access = access_of(op);
  const Tier tier = facts_of(instruction).tier;
  if (tier == Tier::kRarest || (op.more & kBranch)) return variants;
  if (tier != Tier::kCommonPath) add_rare(variants, instruction);
  else if (access.reads && access.writes) variants.add(access.direct ? kInRam | kSurely : +kInRam);
  else if (access.writes) add_stores(variants, access);
  else if (access.reads) add_reads(variants, access);
  else variants.add(0);
  if (instruction == kJmp) variants.add(kFromAnyBank);
  return variants;
}

struct VariantTable {
  Variants of[256] = {};
};
constexpr VariantTable all_variants() {
  VariantTable table{};
  for (uint32_t opcode = 0; opcode < 256; ++opcode) table.of[opcode] = find_variants(opcode);
  return table;
}
inline constexpr VariantTable kVariants = all_variants();

template <class M>
struct HandlerTable {
  Handler<M> branches[256] = {};
  Handler<M> others[256][kMostVariants] = {};
};
template <uint32_t kOpcode, class M, size_t... kI>
constexpr void add_handlers(HandlerTable<M>& table, std::index_sequence<kI...>) {
  ((table.others[kOpcode][kI] = handle<kOpcode, kVariants.of[kOpcode].regions[kI], M>), ...);
  if constexpr (StaticDecode<kOpcode>::may_also(kBranch))
    table.branches[kOpcode] = handle_branch<kOpcode, M>;
}
template <class M, size_t... kOpcodes>
constexpr HandlerTable<M> handlers_of_opcodes(std::index_sequence<kOpcodes...>) {
  HandlerTable<M> table{};
  (add_handlers<kOpcodes>(table, std::make_index_sequence<kVariants.of[kOpcodes].count>{}), ...);
  return table;
}

// An instruction and what it reaches, and the two of a pair.
struct Reaching {
  uint32_t opcode, regions;
};
struct Pair {
  Reaching first, second;
};

constexpr Reaching reaching(Instruction instruction, AddressMode mode, uint32_t regions) {
  return {code_in_mode(instruction, mode), regions};
}
// What is often followed by a store to the TIA. By a count over all games such pairs are a tenth of
// all instructions, and those of kBeforeBranches and a branch are another tenth.
constexpr uint32_t kThroughPointer = kInRam | kInRom | kFirstRom | kPointerInRam;
constexpr Reaching kBeforeStores[] = {
    reaching(kLda, kZp, kInRam | kSurely),
    reaching(kLda, kImm, 0),
    reaching(kLda, kIndY, kThroughPointer | kInPlainRom),
    reaching(kLda, kIndY, kThroughPointer),
    reaching(kLda, kAbsX, kInRom | kSurely),
    reaching(kLda, kAbsY, kInRom | kSurely),
    reaching(kLda, kZpX, kInRam | kFromChips | kFirstRam),
};
constexpr Reaching kBeforeBranches[] = {
    reaching(kDex, kImp, 0), reaching(kDey, kImp, 0), reaching(kInx, kImp, 0),
    reaching(kIny, kImp, 0), reaching(kCmp, kImm, 0), reaching(kCpx, kImm, 0),
    reaching(kCpy, kImm, 0), reaching(kAnd, kImm, 0),
    reaching(kLda, kZp, kInRam | kSurely), reaching(kLdx, kZp, kInRam | kSurely),
    reaching(kLdy, kZp, kInRam | kSurely), reaching(kCmp, kZp, kInRam | kSurely),
    reaching(kCpy, kZp, kInRam | kSurely), reaching(kCpx, kZp, kInRam | kSurely),
    reaching(kBit, kZp, kInRam | kSurely), reaching(kDec, kZp, kInRam | kSurely),
    reaching(kAnd, kZp, kInRam | kSurely),
};
constexpr Instruction kBranches[] = {kBne, kBeq, kBpl, kBmi, kBcc, kBcs};

constexpr uint32_t kNumStores = kNumTiaWrites - kFirstStored;
constexpr uint32_t kStorePairs = sizeof kBeforeStores / sizeof *kBeforeStores * kNumStores;
constexpr uint32_t kNumBranches = sizeof kBranches / sizeof *kBranches;
constexpr uint32_t kBranchPairs = sizeof kBeforeBranches / sizeof *kBeforeBranches * kNumBranches;
constexpr uint32_t kNumPairs = kStorePairs + kBranchPairs;

constexpr Pair pair_number(uint32_t i) {
  if (i < kStorePairs) {
    const uint32_t reg = kFirstStored + i % kNumStores;
    return {kBeforeStores[i / kNumStores], reaching(kSta, kZp, to_register(reg) | kSurely)};
  }
  i -= kStorePairs;
  return {kBeforeBranches[i / kNumBranches], reaching(kBranches[i % kNumBranches], kRel, 0)};
}

// The handlers of all pairs, in the order of pair_number.
template <class M>
struct PairTable {
  Handler<M> of[kNumPairs];
};
template <class M, size_t... kI>
constexpr PairTable<M> handlers_of_pairs(std::index_sequence<kI...>) {
  return {{handle_pair<pair_number(kI).first.opcode, pair_number(kI).first.regions,
                       pair_number(kI).second.opcode, pair_number(kI).second.regions, M>...}};
}

// The number of the pair of two instructions, or kNumPairs.
constexpr uint32_t find_pair(const Reaching& first, const Reaching& second) {
  const auto same = [](const Reaching& a, const Reaching& b) {
    return a.opcode == b.opcode && a.regions == b.regions;
  };
  uint32_t at = 0;
  if (second.regions & kToRegister) {
    const uint32_t reg = second.regions >> kRegisterShift & kRegisterMask;
    if (second.opcode != code_in_mode(kSta, kZp)) return kNumPairs;
    for (const Reaching& before : kBeforeStores) {
      if (same(before, first)) return at + reg - kFirstStored;
      at += kNumStores;
    }
    return kNumPairs;
  }
  at = kStorePairs;
  for (const Reaching& before : kBeforeBranches) {
    for (const Instruction branch : kBranches) {
      if (same(before, first) && second.opcode == code_in_mode(branch, kRel)) return at;
      ++at;
    }
  }
  return kNumPairs;
}

}  // namespace cule

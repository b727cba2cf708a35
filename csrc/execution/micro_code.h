// Decodes a ROM image into micro-operations (execution/threaded.h). Host only.
#pragma once

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "execution/threaded.h"

namespace cule {

// The kinds of handlers that an instruction has, by what it reaches.
constexpr uint32_t kMostVariants = 64;
struct Variants {
  uint32_t places[kMostVariants] = {};
  uint32_t count = 0;
  constexpr void add(uint32_t set) { places[count++] = set; }
};

// What an instruction does with memory, apart from its operand.
struct Access {
  bool reads, writes, direct, zero_page, indirect;
};
constexpr Access access_of(Predecoded op) {
  const uint32_t control = op.control;
  return {(control & kReads) != 0, (control & kWrites) != 0,
          (control & (kIndexX | kIndexY | kIndirect)) == 0, (control & kZeroPage) != 0,
          (control & kIndirect) != 0};
}

constexpr uint32_t kPushed = kInRam | kToTia, kAnywhere = kInRam | kInRom | kFromChips;

// The variants of rare instructions: those for the stack, and JMP (indirect).
constexpr void add_rare(Variants& variants, Instruction instruction) {
  switch (instruction) {
    case kPha: case kPhp: variants.add(kPushed); break;
    case kPla: case kPlp: variants.add(kInRam); break;
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

// The variants of instructions that write: directly, or through an index.
constexpr void add_stores(Variants& variants, const Access& access) {
  if (!access.direct) {
    variants.add(kInRam | kToTia);
    if (!access.zero_page) variants.add(kInRam | kToTia | kInCartridge);
    return;
  }
  variants.add(kInRam | kSurely);
  if (access.zero_page) {
    for (uint32_t reg = kLastVertical + 1; reg < kNumTiaWrites; ++reg)
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
    variants.add(kInRam | kFromChips);
  } else {
    for (const uint32_t bank : {0u, kFromAnyBank}) {
      if (!access.indirect) variants.add(kInRom | kSurely | bank);
      variants.add((access.indirect ? kInRam | kInRom : kAnywhere) | bank);
    }
    variants.add(kAnywhere | kInCartridge);
  }
}

constexpr Variants variants_of(uint32_t opcode) {
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

template <class M>
struct HandlerTable {
  Handler<M> branches[256] = {};
  Handler<M> others[256][kMostVariants] = {};
};
template <uint32_t kOpcode, class M, size_t... kI>
constexpr void add_handlers(HandlerTable<M>& table, std::index_sequence<kI...>) {
  [[maybe_unused]] constexpr Variants kVariants = variants_of(kOpcode);
  ((table.others[kOpcode][kI] = handle<kOpcode, kVariants.places[kI], M>), ...);
  if constexpr (StaticDecode<kOpcode>::may_also(kBranch))
    table.branches[kOpcode] = handle_branch<kOpcode, M>;
}
template <class M, size_t... kOpcodes>
constexpr HandlerTable<M> handlers_of_opcodes(std::index_sequence<kOpcodes...>) {
  HandlerTable<M> table{};
  (add_handlers<kOpcodes>(table, std::make_index_sequence<variants_of(kOpcodes).count>{}), ...);
  return table;
}

// A ROM image as micro-operations, one for each byte, and a last one for code that is elsewhere.
template <class M>
class MicroCode {
 public:
  // `predecoded` has an instruction for each of the `bytes` of `image`.
  MicroCode(const CartridgeMap& map, const uint8_t* image, uint32_t bytes,
            const Predecoded* predecoded)
      : map_(map), rom_(image), bytes_(bytes), predecoded_(predecoded) {
    if (bytes < kWindowBytes) {  // the window shows the image twice
      for (uint32_t i = 0; i < kWindowBytes; ++i) repeated_.push_back(image[i % bytes]);
      rom_ = repeated_.data();
    }
    const uint32_t count = bytes < kWindowBytes ? kWindowBytes : bytes;
    ops_.resize(count + 1);
    for (uint32_t i = 0; i < count; ++i) ops_[i] = decode(i);
    ops_[count] = slow_op();
    measure();
  }

  const MicroOp<M>* ops() const { return ops_.data(); }
  const uint8_t* rom() const { return rom_; }
  uint32_t elsewhere() const { return static_cast<uint32_t>(ops_.size() - 1); }
  // How many instructions at most run from the end of a turn on before one sees it.
  int32_t longest_run() const { return longest_run_; }
  // The number of the micro-operation at `pc`, which must be in ROM.
  uint32_t number_of(uint32_t slices, uint32_t pc) const {
    return repeated_.empty() ? rom_offset(map_, slices, pc) : window_offset(pc);
  }

 private:
  static const HandlerTable<M>& handlers() {
    static constexpr HandlerTable<M> kTable =
        handlers_of_opcodes<M>(std::make_index_sequence<256>{});
    return kTable;
  }
  static MicroOp<M> slow_op() { return {leave_for_slow_path<M>, 0, 0, 0}; }
  bool shows_whole_banks() const { return map_.scheme != Scheme::kE0 && map_.scheme != Scheme::kFE; }
  uint32_t run_bytes() const { return map_.scheme == Scheme::kE0 ? kSliceBytes : kWindowBytes; }
  Predecoded predecoded_at(uint32_t i) const { return predecoded_[i % bytes_]; }
  bool in_same_run(uint32_t i, uint32_t target) const {
    return i / run_bytes() == target / run_bytes();
  }

  MicroOp<M> decode(uint32_t i) const {
    const Predecoded op = predecoded_at(i);
    const uint32_t opcode = opcode_of(op), operand = operand_of(op), next = i + length_of(op);
    const GoesOn goes_on = facts_of(kOpcodeRows[opcode].instruction).goes_on;
    if (opcode == kFetchSlowlyCode) return slow_op();
    if (goes_on == GoesOn::kNext && !in_same_run(i, next)) return slow_op();
    MicroOp<M> micro{nullptr, static_cast<uint16_t>(operand), 0,
                     static_cast<int32_t>(i - window_offset(i))};
    if (op.more & kBranch) {
      const uint32_t target = (next + operand) & 0xFFFF;
      if (!in_same_run(i, target)) return slow_op();
      micro.handler = handlers().branches[opcode];
      micro.target = static_cast<uint16_t>(1 + crosses_page(next, target));
      micro.distance = distance(i, target);
      return micro;
    }
    const uint32_t places = places_of(op);
    const Variants variants = variants_of(opcode);
    for (uint32_t k = 0; k < variants.count; ++k) {
      if (variants.places[k] == places) micro.handler = handlers().others[opcode][k];
    }
    if (!micro.handler) return slow_op();
    if (goes_on == GoesOn::kAtOperand && shows_whole_banks()) {
      if (!is_cartridge_address(operand)) return slow_op();
      micro.target = static_cast<uint16_t>(i - window_offset(i) + window_offset(operand));
      micro.distance = distance(i, micro.target);
    }
    return micro;
  }
  static int32_t distance(uint32_t from, uint32_t to) {
    return (static_cast<int32_t>(to) - static_cast<int32_t>(from)) *
           static_cast<int32_t>(sizeof(MicroOp<M>));
  }

  // What the instruction reaches. Nothing that variants_of has: it needs the slow path.
  uint32_t places_of(Predecoded op) const {
    const uint32_t opcode = opcode_of(op), any_bank = shows_whole_banks() ? 0 : kFromAnyBank;
    const Instruction instruction = kOpcodeRows[opcode].instruction;
    const Access access = access_of(op);
    const Variants variants = variants_of(opcode);
    if (variants.count == 0) return kNowhereSure;
    if (instruction == kJmp || !(access.reads || access.writes))
      return variants.places[variants.count > 1 && any_bank];
    if (access.reads && access.writes)
      return access.direct ? places_at(op, 0) & ~kFromChips : +kInRam;
    if (access.direct) return places_at(op, any_bank);
    if (access.zero_page && !access.indirect) return variants.places[0];
    const bool special = map_.special_end > 0;
    if (access.writes) return kInRam | kToTia | (special ? +kInCartridge : 0u);
    if (!access.indirect && is_table_in_rom(operand_of(op))) return kInRom | kSurely | any_bank;
    if (special && !any_bank) return kAnywhere | kInCartridge;
    return (access.indirect ? kInRam | kInRom : kAnywhere) | any_bank;
  }
  static constexpr uint32_t kNowhereSure = kSurely;

  // The place of a direct operand.
  uint32_t places_at(Predecoded op, uint32_t any_bank) const {
    const Access access = access_of(op);
    const uint32_t address = access.zero_page ? operand_of(op) & 0xFF : operand_of(op);
    const uint32_t offset = window_offset(address), reg = tia_register_written(address);
    if (is_ram_address(address)) return kInRam | kSurely;
    if (is_cartridge_address(address)) {
      if (offset < map_.special_end) return kInCartridge | kSurely;
      if (access.writes || is_special_offset(map_, offset)) return kNowhereSure;
      return kInRom | kSurely | any_bank;
    }
    if (!access.writes) return kFromChips | kSurely;
    if (is_riot_address(address)) return kToRiot | kSurely;
    if (reg <= kLastVertical) return kNowhereSure;
    return (access.zero_page ? to_register(reg) : +kToTia) | kSurely;
  }
  // Whether all 256 bytes from `base` on are plain ROM, in one window.
  bool is_table_in_rom(uint32_t base) const {
    const uint32_t last = base + 0xFF;
    return is_cartridge_address(base) && last <= 0xFFFF &&
           base / kWindowBytes == last / kWindowBytes &&
           !is_special_offset(map_, window_offset(base)) &&
           !is_special_offset(map_, window_offset(last));
  }

  void measure() {
    std::vector<int32_t> runs(ops_.size(), 0);
    for (uint32_t i = elsewhere(); i-- > 0;) {
      const Predecoded op = predecoded_at(i);
      const bool goes_on = facts_of(kOpcodeRows[opcode_of(op)].instruction).goes_on == GoesOn::kNext;
      const bool ends = ops_[i].handler == leave_for_slow_path<M> || !goes_on;
      runs[i] = ends ? 1 : 1 + runs[i + length_of(op)];
      if (runs[i] > longest_run_) longest_run_ = runs[i];
    }
  }

  CartridgeMap map_;
  const uint8_t* rom_;
  uint32_t bytes_;
  const Predecoded* predecoded_;
  std::vector<uint8_t> repeated_;
  std::vector<MicroOp<M>> ops_;
  int32_t longest_run_ = 0;
};

// Executes micro-operations.
template <class M>
struct ThreadedCore {
  const MicroCode<M>& code;

  static CULE_INLINE uint32_t game_of(const ConsoleConfig& config) { return config.game; }

  CULE_INLINE void run(M& m) const {
    Thread<M> t;
    uint8_t* const ram = m.ram.bytes;
    memcpy(t.ram, ram, kRamBytes);
    m.ram.bytes = t.ram;
    t.code = code.ops();
    t.elsewhere = code.elsewhere();
    t.rom = code.rom();
    t.machine = &m;
    run_in_step(m, FreePace{}, kLongestInstruction, [&](uint32_t, int32_t end) CULE_INLINE_LAMBDA {
      m.has_room = m.make_room(end, kStretchCycles);
      while (m.runs() && m.cycle < end) run_once(m, t, end);
      m.has_room = false;
    });
    m.ram.bytes = ram;
    memcpy(ram, t.ram, kRamBytes);
  }

 private:
  CULE_INLINE void run_once(M& m, Thread<M>& t, int32_t end) const {
    const bool lasts = m.instructions_left > (end - m.cycle) / 2 + 2 + code.longest_run();
    if (m.has_room && lasts && is_cartridge_address(m.r.pc)) {
      run_handlers(m, t, end);
      if (!t.needs_slow_path || m.cycle >= end) return;
    }
    take_slow_path(m, end);
  }

  void run_handlers(M& m, Thread<M>& t, int32_t end) const {
    const uint32_t number = code.number_of(m.slices, m.r.pc);
    Registers& r = m.r;
    t.s = r.s;
    t.n = r.n;
    t.z = r.z;
    t.c = r.c;
    t.v = r.v;
    t.d = r.d;
    t.i = r.i;
    t.pc_minus_number = r.pc - number;
    t.end = Clock::at(end).both;
    t.instructions_left = m.instructions_left;
    t.needs_slow_path = false;
    const MicroOp<M>* const op = t.code + number;
    op->handler(t, op, Clock::at(m.cycle).both, r.a, r.x, r.y);
    const Clock clock{t.clock};
    r = {t.pc_of(t.op), t.a, t.x, t.y, t.s, t.n, t.v, t.z, t.c, t.d, t.i, 0};
    m.cycle = clock;
    m.instructions_left = t.instructions_left - clock.instructions();
    if (!is_cartridge_address(r.pc)) m.bus = r.pc >> 8;
  }

  // Executes one instruction of the ROM, or those up to the next that is in ROM.
  static CULE_COLD void take_slow_path(M& m, int32_t end) {
    Predecoded op = m.look_ahead();
    bool fetched = false;
    do {
      fetched = opcode_of(op) == kFetchSlowlyCode;
      op = execute(DynamicDecode{op}, m, operand_of(op));
      --m.instructions_left;
    } while (m.runs() && (fetched || (m.cycle < end && !is_cartridge_address(m.r.pc))));
  }
};

}  // namespace cule

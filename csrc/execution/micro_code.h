// Decodes a ROM image into micro-operations (execution/threaded.h). Host only.
#pragma once

#include <vector>

#include "execution/handler_table.h"

namespace cule {

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
    const uint32_t run = map.scheme == Scheme::kE0 ? kSliceBytes : kWindowBytes;
    ops_.resize(count + 1, slow_op());
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t begin = i - i % run;
      ops_[i] = decode(predecoded_at(i), i, {begin, begin + run, rom_facts()});
    }
    ops_[count].handler = handle_elsewhere<M>;
    measure();
    fuse_pairs();
  }

  const MicroOp<M>* ops() const { return ops_.data(); }
  const uint8_t* rom() const { return rom_; }
  uint32_t elsewhere() const { return static_cast<uint32_t>(ops_.size() - 1); }
  // How many instructions can run, at most, before one sees that the turn has ended.
  int32_t longest_run() const { return longest_run_; }
  // The number of the micro-operation at `pc`.
  uint32_t number_of(uint32_t slices, uint32_t pc) const {
    if (!is_cartridge_address(pc)) return elsewhere();
    return repeated_.empty() ? rom_offset(map_, slices, pc) : window_offset(pc);
  }
  // Decodes an instruction that begins at byte `i` of the RAM. The micro-operations for RAM are an
  // array of their own.
  MicroOp<M> decode_in_ram(Predecoded op, uint32_t i) const {
    return decode(op, i, {0, kRamBytes, kFromAnyBank});
  }

 private:
  // Where an instruction is: from number `begin` up to `end` the bytes always follow one another.
  // `rom` has the facts that are known of its accesses to ROM.
  struct Where {
    uint32_t begin, end, rom;
    bool includes(uint32_t number) const { return number >= begin && number < end; }
  };

  static const HandlerTable<M>& handlers() {
    static constexpr HandlerTable<M> kTable =
        handlers_of_opcodes<M>(std::make_index_sequence<256>{});
    return kTable;
  }
  static MicroOp<M> slow_op() { return {leave_for_slow_path<M>, 0, 0, 0}; }
  Predecoded predecoded_at(uint32_t i) const { return predecoded_[i % bytes_]; }
  uint32_t rom_facts() const {
    if (map_.scheme == Scheme::kE0 || map_.scheme == Scheme::kFE) return kFromAnyBank;
    return map_.special_end == 0 && map_.special_begin >= kWindowBytes ? +kInPlainRom : 0u;
  }

  MicroOp<M> decode(Predecoded op, uint32_t i, const Where& where) const {
    const uint32_t opcode = opcode_of(op), operand = operand_of(op), next = i + length_of(op);
    const GoesOn goes_on = goes_on_after(opcode);
    if (opcode == kFetchSlowlyCode || next > where.end) return slow_op();
    if (goes_on == GoesOn::kNext && next == where.end) return slow_op();
    MicroOp<M> micro{nullptr, static_cast<uint16_t>(operand), 0,
                     static_cast<int32_t>(where.begin)};
    if (op.more & kBranch) {
      const uint32_t target = (next + operand) & 0xFFFF;
      if (!where.includes(target)) return slow_op();
      micro.handler = handlers().branches[opcode];
      micro.target = static_cast<uint16_t>(1 + crosses_page(next, target));
      micro.distance = distance(i, target);
      return micro;
    }
    micro.handler = handler_of(opcode, regions_of(op, where.rom));
    if (!micro.handler) return slow_op();
    if (goes_on == GoesOn::kAtOperand) {
      // After JSR the last byte on the bus is a byte that it has pushed, which the TIA's addresses
      // would show as code.
      if (is_tia_address(operand)) return slow_op();
      const bool in_rom = is_cartridge_address(operand);
      micro.target = static_cast<uint16_t>(
          in_rom ? i - window_offset(i) + window_offset(operand) : elsewhere());
      micro.distance = distance(i, micro.target);
    }
    return micro;
  }
  static int32_t distance(uint32_t from, uint32_t to) {
    return (static_cast<int32_t>(to) - static_cast<int32_t>(from)) *
           static_cast<int32_t>(sizeof(MicroOp<M>));
  }
  static Handler<M> handler_of(uint32_t opcode, uint32_t regions) {
    const Variants& variants = kVariants.of[opcode];
    for (uint32_t i = 0; i < variants.count; ++i) {
      if (variants.regions[i] == regions) return handlers().others[opcode][i];
    }
    return nullptr;
  }

  // What the instruction reaches. No variant has these regions if it needs the slow path.
  static constexpr uint32_t kNoRegion = kSurely;
  uint32_t regions_of(Predecoded op, uint32_t rom) const {
    const Instruction instruction = kOpcodeRows[opcode_of(op)].instruction;
    const Access access = access_of(op);
    const Variants& variants = kVariants.of[opcode_of(op)];
    const uint32_t any_bank = rom & kFromAnyBank;
    if (variants.count == 0) return kNoRegion;
    if (instruction == kJmp || !(access.reads || access.writes))
      return variants.regions[variants.count > 1 && any_bank];
    if (access.reads && access.writes)
      return access.direct ? regions_at(op, 0) : +kInRam;
    if (access.direct) return regions_at(op, any_bank);
    if (access.zero_page && !access.indirect) return variants.regions[0];
    return regions_through_index(op, rom);
  }
  uint32_t regions_through_index(Predecoded op, uint32_t rom) const {
    const Access access = access_of(op);
    const uint32_t low = operand_of(op) & 0xFF, any_bank = rom & kFromAnyBank;
    const uint32_t pointer = access.pointer ? kPointerInRam : 0u;
    if (pointer && (low < kFirstInRam || low == kLastInPage)) return kNoRegion;
    const bool special = map_.special_end > 0;
    if (access.writes)
      return kInRam | kToTia | kFirstRam | (special ? +kInCartridge : 0u) | pointer;
    if (!access.indirect && is_table_in_rom(operand_of(op))) return kInRom | kSurely | any_bank;
    if (!access.indirect && is_tia_address(operand_of(op)))
      return kInRam | kFromChips | kFirstChips;
    if (special && !any_bank) return kAnywhere | kInCartridge | pointer;
    return (access.indirect ? kInRam | kInRom | kFirstRom : kAnywhere) | pointer | rom;
  }

  // The region of a direct operand.
  uint32_t regions_at(Predecoded op, uint32_t any_bank) const {
    const Access access = access_of(op);
    const uint32_t address = access.zero_page ? operand_of(op) & 0xFF : operand_of(op);
    const uint32_t offset = window_offset(address), reg = tia_register_written(address);
    if (is_ram_address(address)) return kInRam | kSurely;
    if (is_cartridge_address(address)) {
      if (offset < map_.special_end) return kInCartridge | kSurely;
      if (access.writes || is_special_offset(map_, offset)) return kNoRegion;
      return kInRom | kSurely | any_bank;
    }
    if (!access.writes) return kFromChips | kSurely;
    if (is_riot_address(address)) return kToRiot | kSurely;
    if (reg <= kLastVertical) return kNoRegion;
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

  // Gives the first of two instructions the handler of the pair, where there is one. The second
  // keeps its own, as the program may jump there.
  void fuse_pairs() {
    static constexpr PairTable<M> kPairs =
        handlers_of_pairs<M>(std::make_index_sequence<kNumPairs>{});
    for (uint32_t i = 0; i < elsewhere(); ++i) {
      const Predecoded op = predecoded_at(i);
      const uint32_t next = i + length_of(op);
      if (ends_run(i) || (op.more & kBranch) || is_slow(next)) continue;
      const uint32_t pair = find_pair(reaching(op), reaching(predecoded_at(next)));
      if (pair < kNumPairs) ops_[i].handler = kPairs.of[pair];
    }
  }
  Reaching reaching(Predecoded op) const {
    const bool is_branch = op.more & kBranch;
    return {opcode_of(op), is_branch ? 0 : regions_of(op, rom_facts())};
  }

  bool is_slow(uint32_t i) const { return ops_[i].handler == leave_for_slow_path<M>; }
  // Whether handlers do not simply go on to the instruction after number `i`.
  bool ends_run(uint32_t i) const {
    return is_slow(i) || goes_on_after(opcode_of(predecoded_at(i))) != GoesOn::kNext;
  }

  // Finds the longest run of instructions in a row. Code in RAM may be anything.
  void measure() {
    longest_run_ = static_cast<int32_t>(kRamBytes);
    std::vector<int32_t> runs(ops_.size(), 0);
    for (uint32_t i = elsewhere(); i-- > 0;) {
      const Predecoded op = predecoded_at(i);
      runs[i] = ends_run(i) ? 1 : 1 + runs[i + length_of(op)];
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

// The handler of all micro-operations for RAM: decodes the instruction, unless it was decoded
// before, and goes on to its handler.
template <class M>
void handle_in_ram(CULE_THREAD_PARAMETERS) {
  RamCode<M>& code = t.ram_code;
  const uint32_t i = static_cast<uint32_t>(op - code.ops);
  const M& m = *t.machine;
  const Predecoded operation = m.rom.operation(t.ram[i]);
  uint32_t bytes = 0;
  for (uint32_t k = 0; k < 3 && i + k < kRamBytes; ++k) bytes |= t.ram[i + k] << 8 * k;
  if (!code.handlers[i] || code.bytes[i] != bytes) {
    const MicroOp<M> decoded =
        t.decoder->decode_in_ram(with_operand(operation, bytes >> 8 & 0xFF, bytes >> 16), i);
    code.bytes[i] = bytes;
    code.handlers[i] = decoded.handler;
    code.ops[i].operand = decoded.operand;
    code.ops[i].target = decoded.target;
    code.ops[i].distance = decoded.distance;
  }
  const Handler<M> handler = code.handlers[i];
  CULE_CONTINUE(handler);
}

// The handler for all code that is not in ROM.
template <class M>
void handle_elsewhere(CULE_THREAD_PARAMETERS) {
  const uint32_t pc = t.pc_of(op);
  if (!is_ram_address(pc)) CULE_CONTINUE(leave_for_slow_path);
  RamCode<M>& code = t.ram_code;
  if (!code.is_used) {
    code.is_used = true;
    for (uint32_t i = 0; i < kRamBytes; ++i) {
      code.ops[i] = {handle_in_ram<M>, 0, 0, 0};
      code.handlers[i] = nullptr;
    }
  }
  op = code.ops + ram_index(pc);
  t.pc_minus_number = pc - t.number_of(op);
  CULE_CONTINUE(handle_in_ram);
}

}  // namespace cule

// The machine as most instructions see it: RAM, plain ROM, and some of the chips. What an instruction does beyond that (bank switching,
// decimal mode, the frame's end) would make code of many times the size, so one that wants to is left before it has changed
// anything that cannot be put back, and whoever asked for it has the whole machine execute it.
#pragma once

#include "console/machine.h"

namespace cule {

// Executes `op` on the whole machine.
template <class M>
CULE_COLD MicroOp execute_wholly(M& m, MicroOp op) {
  return execute(DynamicDecode{op}, m, operand_of(op));
}

// Executes `op`, which a PlainView has left, or only fetches it, where code stands in RAM.
template <class M>
CULE_INLINE MicroOp execute_oddly(M& m, MicroOp op) {
  if (opcode_of(op) == kFetchSlowlyCode && is_ram_address(m.r.pc) && is_ram_address(m.r.pc + 2)) {
    ++m.instructions_left;
    return m.fetch_from_ram();
  }
  M whole = m;
  const MicroOp next = execute_wholly(whole, op);
  m.take(whole);
  return next;
}

// What an instruction reaches.
//   kInBlock     RAM and plain ROM; all rare instructions that programs use
//   kInChips     the same, and all chips
//   kInRam       the same, where its address is RAM's, or there is none: much less to compile
//   kInTia       the same, where it is the TIA's and only written to
//   kInterpreted RAM, plain ROM, what chips say, and the TIA's registers but VSYNC and VBLANK, which have to do with the frame's end; the
//                common rare instructions
enum class Reach { kInBlock, kInChips, kInRam, kInTia, kInterpreted };

// What an instruction reaches in a block. What is reached through indices, pointers or the stack is
// mostly RAM and ROM, and asking the chips costs code: what is seen to need them says so
// (CULE_DO_IN_CHIPS, block.h).
constexpr Reach reach_in_block(uint32_t control, uint32_t operand) {
  const bool indexed = control & (kIndexX | kIndexY), elsewhere = control & (kIndirect | kRare);
  if (!indexed && !elsewhere) {
    const uint32_t address = operand & (control & kZeroPage ? 0xFFu : 0xFFFFu);
    if (!(control & (kReads | kWrites)) || is_ram_address(address)) return Reach::kInRam;
    return !(control & kReads) && is_tia_address(address) ? Reach::kInTia : Reach::kInChips;
  }
  return Reach::kInBlock;
}
// The TIA's register that it writes to where it reaches kInTia.
constexpr uint32_t register_in_block(uint32_t control, uint32_t operand) {
  return reach_in_block(control, operand) == Reach::kInTia ? operand & 0x3F : 0;
}

// Nobody but the caller knows whether the instruction buffer has room, and that the frame does not
// end by its length (TranslatedCore::has_room, Machine::has_room).
//
// `Reg`: the TIA's register that is written to, where kInTia knows it.
template <class M, Reach kReach, class Reg = AnyRegister>
struct PlainView {
  static constexpr RareOps kRareOps = kReach == Reach::kInterpreted ? RareOps::kCommon : RareOps::kUsed;
  static constexpr bool kInMemory = kReach == Reach::kInBlock;
  M& machine;
  Registers& r;
  int32_t& cycle;
  uint32_t& bus;
  bool moved = false;
  bool crowded;      // writing to the TIA needs the whole machine, as the frame's end or the buffer's is near
  uint32_t odd = 0;  // not 0: the instruction needs the whole machine

  // What the machine was before the instruction `op`, where it is the interpreter's.
  MicroOp op;
  uint32_t pc_before, bus_before;
  int32_t cycle_before;

  CULE_INLINE explicit PlainView(M& m) : machine(m), r(m.r), cycle(m.cycle), bus(m.bus), crowded(false) {}
  CULE_INLINE PlainView(M& m, MicroOp next, bool is_crowded)
      : machine(m), r(m.r), cycle(m.cycle), bus(m.bus), crowded(is_crowded), op(next), pc_before(m.r.pc), bus_before(m.bus),
        cycle_before(m.cycle) {}

  CULE_INLINE bool leaves_rare(uint32_t opcode, uint32_t operand) {
    odd |= !is_plain(opcode, operand);
    return odd != 0;
  }
  CULE_INLINE bool leaves(uint32_t control, uint32_t address) {
    if constexpr (kReach == Reach::kInRam) {
      odd |= control & (r.d ? +kSetsV : 0u);
    } else if constexpr (kReach == Reach::kInTia) {
      odd |= Reg::number < tia_write::WSYNC;
    } else {
      const bool in_ram = is_ram_address(address);
      const bool readable =
          kInMemory ? in_ram | machine.is_plain_rom(address) : !machine.is_special(address);
      const bool to_riot = kReach == Reach::kInChips && is_riot(address);
      const bool to_tia = !kInMemory && writes_plain_tia(address) && !crowded;
      const bool writable = in_ram | to_tia | to_riot;
      // By masks, not by conditions, which a GPU has few of.
      odd |= control & ((readable ? 0u : +kReads) | (writable ? 0u : +kWrites) | (r.d ? +kSetsV : 0u));
    }
    return odd != 0;
  }
  // The interpreter has the whole machine execute it; a block is left.
  CULE_INLINE MicroOp leave() {
    if constexpr (kReach == Reach::kInterpreted) {
      r.pc = pc_before;
      cycle = cycle_before;
      bus = bus_before;
      return execute_oddly(machine, op);
    } else {
      return {};
    }
  }

  static CULE_INLINE bool is_chip(uint32_t address) { return (address & 0x1000) == 0; }
  static CULE_INLINE bool is_riot(uint32_t address) { return (address & 0x1280) == 0x280; }
  static CULE_INLINE bool writes_plain_tia(uint32_t address) {
    const uint32_t reg = address & 0x3F;
    return is_tia_address(address) & (reg >= tia_write::WSYNC);
  }

  // Whether a rare instruction is one of kRareOps, and all that it touches is RAM, plain registers
  // of the TIA, chips that PLA and PLP read, or, for where JMP (indirect) finds its target, which is
  // `address`, plain ROM.
  CULE_INLINE bool is_plain(uint32_t opcode, uint32_t address) const {
    if (opcode == 0x20) return r.s >= 0x81;                                                   // JSR
    if (opcode == 0x60) return r.s >= 0x7F && r.s <= 0xFD && !returns_to_special();           // RTS
    if (opcode == 0x48 || opcode == 0x08) return pushes_plainly();                            // PHA, PHP
    if (opcode == 0x68) return pulls_plainly();                                               // PLA
    if (opcode == 0x6C) return (address & 0xFF) != 0xFF && (is_ram_address(address) || jumps_by_rom(address));
    if (kRareOps == RareOps::kCommon) return false;
    switch (opcode) {
      case 0x28: return pulls_plainly();                                   // PLP
      case 0x58: case 0x78: case 0xB8: case 0xD8: case 0xF8: return true;  // CLI, SEI, CLV, CLD, SED
      default: return false;
    }
  }
  CULE_INLINE bool pushes_plainly() const {
    return r.s >= 0x80 || (!kInMemory && only_recorded(r.s & 0x3F) && !crowded);
  }
  CULE_INLINE bool pulls_plainly() const {
    return kReach == Reach::kInChips || (r.s >= 0x80 && r.s <= 0xFE);
  }
  CULE_INLINE bool jumps_by_rom(uint32_t address) const {
    return kRareOps != RareOps::kCommon && machine.is_plain_rom(address) && machine.is_plain_rom(address + 1);
  }
  CULE_INLINE bool returns_to_special() const {
    const CartridgeMap& map = machine.map;
    if (map.special_end == 0 && map.special_begin > 0xFFF) return false;
    return machine.is_special(machine.ram.get((r.s + 1) & 0x7F) | machine.ram.get((r.s + 2) & 0x7F) << 8);
  }
  static CULE_INLINE bool is_special(uint32_t) { return false; }  // returns_to_special has seen to it

  CULE_INLINE uint32_t read_if(bool wanted, uint32_t address, uint32_t otherwise) {
    const bool in_ram = wanted && (kReach == Reach::kInRam || is_ram_address(address));
    uint32_t value = otherwise;
    if (in_ram) value = machine.ram.get(address & 0x7F);
    if constexpr (kReach != Reach::kInRam) {
      const bool in_rom = wanted && !is_chip(address);
      const uint32_t offset = rom_offset(machine.map, machine.slices, address);
      if (in_rom) value = machine.rom(offset);
      if constexpr (!kInMemory) {
        if (wanted && !in_ram && !in_rom) value = machine.read_chip(address);
      }
    }
    if (wanted) bus = value;
    return value;
  }
  // What is_plain lets a rare instruction read: off the stack, or where JMP (indirect) finds its target.
  CULE_INLINE uint32_t read(uint32_t address) {
    if (kRareOps != RareOps::kCommon) return read_if(true, address, 0);
    bus = machine.ram.get(address & 0x7F);
    return bus;
  }

  CULE_INLINE uint32_t read_pointer_if(bool wanted, uint32_t address) {
    if (!wanted) return 0;
    odd |= address < 0x80 || address == 0xFF;
    const uint32_t pointer = machine.ram.get(address & 0x7F) | machine.ram.get((address + 1) & 0x7F) << 8;
    bus = pointer >> 8;
    return pointer;
  }

  // Onto the stack, which may be the TIA's registers.
  CULE_INLINE void write(uint32_t address, uint32_t value, bool) {
    bus = value;
    if (kInMemory || is_ram_address(address)) machine.ram.set(address & 0x7F, value);
    else record_only(address, value);
  }

  CULE_INLINE void write_if(bool wanted, uint32_t address, uint32_t value) {
    if (wanted) bus = value;
    if constexpr (kReach == Reach::kInRam || kInMemory) {
      if (wanted) machine.ram.set(address & 0x7F, value);
    } else if constexpr (kReach == Reach::kInTia) {
      if (wanted) write_tia(Reg{}, value);
    } else {
      const bool in_ram = is_ram_address(address);
      if (wanted && in_ram) machine.ram.set(address & 0x7F, value);
      if (!wanted || in_ram) return;
      if (kReach == Reach::kInChips && is_riot(address)) machine.write_elsewhere(address, value, false);
      else write_tia(AnyRegister{address & 0x3F}, value);
    }
  }

  CULE_INLINE MicroOp look_ahead() const {
    if constexpr (kReach == Reach::kInterpreted) return machine.look_ahead();
    else return {};  // a block knows
  }
  static CULE_INLINE MicroOp fetch_slowly() { return {}; }

 private:
  // Not by assumptions, which a compiler goes through again for every addition to `cycle`: with hundreds of them that took most of its time.
  CULE_INLINE void take_room() const {
    CULE_CHECK(cycle < machine.cycle_limit && cycle <= static_cast<int32_t>(kMaxEntryCycle) &&
               machine.buffer.count < machine.buffer.capacity);
    machine.roomy = true;
  }
  CULE_INLINE void record_only(uint32_t address, uint32_t value) {
    take_room();
    machine.record(AnyRegister{address & 0x3F}, value);
    machine.roomy = false;
  }
  template <class To>
  CULE_INLINE void write_tia(const To reg, uint32_t value) {
    take_room();
    CULE_ASSUME(reg.number >= tia_write::WSYNC);
    machine.write_tia(reg, value, false);
    machine.roomy = false;
  }
};

}  // namespace cule

// The machine as most instructions see it: RAM, plain ROM, and some of the chips. What an instruction does beyond that (bank switching,
// decimal mode, the frame's end) would make code of many times the size, so one that wants to is left before it has changed
// anything that cannot be put back, and whoever asked for it has the whole machine execute it.
#pragma once

#include "console/machine.h"

namespace cule {

// Which chips an instruction reaches. By the address that it is known to have, all; where only the running program knows it,
// the registers of the TIA that are only recorded, or all of them but VSYNC and VBLANK, which have to do with the frame's end.
enum class Chips { kRecorded, kWrittenTia, kAll };

template <class M, Chips kChips>
struct PlainView {
  static constexpr bool kDoesAll = false;
  M& machine;
  Registers& r;
  int32_t& cycle;
  uint32_t& bus;
  bool moved = false;
  bool odd = false;  // the instruction needs the whole machine

  CULE_INLINE explicit PlainView(M& m) : machine(m), r(m.r), cycle(m.cycle), bus(m.bus) {}

  CULE_INLINE bool leaves(uint32_t control, uint32_t opcode, uint32_t address) {
    const bool in_ram = M::is_ram(address);
    if (control & kReads) odd |= !in_ram && !machine.is_plain_rom(address) && !(kChips == Chips::kAll && is_chip(address));
    if (control & kWrites) odd |= !in_ram && !can_write(address) && !(kChips == Chips::kAll && is_riot(address));
    if ((control & kReads) && (control & kWrites)) odd |= !in_ram;
    if ((control & kAddRegister) && (control & kSetsV)) odd |= r.d != 0;
    if (control & kRare) odd |= !is_plain(opcode, address);
    return odd;
  }

  static CULE_INLINE bool is_chip(uint32_t address) { return (address & 0x1000) == 0; }
  static CULE_INLINE bool is_riot(uint32_t address) { return (address & 0x1280) == 0x280; }

  // Whether there is room for an entry in the instruction buffer, and the frame does not end here. A block has seen to that.
  CULE_INLINE bool has_room() const {
    return kChips != Chips::kWrittenTia || (cycle < machine.cycle_limit && machine.buffer.count < machine.buffer.capacity);
  }
  CULE_INLINE bool can_write(uint32_t address) const {
    const uint32_t reg = address & 0x3F;
    return (address & 0x1080) == 0 && (kChips == Chips::kRecorded ? only_recorded(reg) : reg >= tia_write::WSYNC) && has_room();
  }

  // Whether a rare instruction is one that execute_frequent_rare (execute.h) does, and all that it touches is RAM, or plain registers
  // of the TIA. `address` is where JMP (indirect) finds its target.
  CULE_INLINE bool is_plain(uint32_t opcode, uint32_t address) const {
    switch (opcode) {
      case 0x20: return r.s >= 0x81;                                           // JSR
      case 0x60: return r.s >= 0x7F && r.s <= 0xFD && !returns_to_special();   // RTS
      case 0x48: case 0x08: return r.s >= 0x80 || (only_recorded(r.s & 0x3F) && has_room());  // PHA, PHP
      case 0x68: case 0x28: return r.s >= 0x80 && r.s <= 0xFE;                 // PLA, PLP
      case 0x6C: return (address & 0xFF) != 0xFF && (M::is_ram(address) || (machine.is_plain_rom(address) && machine.is_plain_rom(address + 1)));
      case 0x58: case 0x78: case 0xB8: case 0xD8: case 0xF8: return true;      // CLI, SEI, CLV, CLD, SED
      default: return false;
    }
  }
  CULE_INLINE bool returns_to_special() const {
    const CartridgeMap& map = machine.map;
    if (map.special_end == 0 && map.special_begin > 0xFFF) return false;
    return machine.is_special(machine.ram.get((r.s + 1) & 0x7F) | machine.ram.get((r.s + 2) & 0x7F) << 8);
  }
  static CULE_INLINE bool is_special(uint32_t) { return false; }  // returns_to_special has seen to it

  CULE_INLINE uint32_t read_if(bool wanted, uint32_t address, uint32_t otherwise) {
    if (!wanted) return otherwise;
    if (kChips == Chips::kAll && is_chip(address) && !M::is_ram(address)) bus = machine.read_elsewhere(address);
    else bus = M::is_ram(address) ? machine.ram.get(address & 0x7F) : machine.rom(rom_offset(machine.map, machine.slices, address));
    return bus;
  }
  CULE_INLINE uint32_t read(uint32_t address) { return read_if(true, address, 0); }

  CULE_INLINE uint32_t read_pointer_if(bool wanted, uint32_t address) {
    if (!wanted) return 0;
    odd |= address < 0x80 || address == 0xFF;
    const uint32_t pointer = machine.ram.get(address & 0x7F) | machine.ram.get((address + 1) & 0x7F) << 8;
    bus = pointer >> 8;
    return pointer;
  }

  // Onto the stack: RAM, or what only_recorded says of.
  CULE_INLINE void write(uint32_t address, uint32_t value, bool) {
    bus = value;
    if (M::is_ram(address)) machine.ram.set(address & 0x7F, value);
    else record_only(address, value);
  }

  CULE_INLINE void write_if(bool wanted, uint32_t address, uint32_t value) {
    if (!wanted) return;
    bus = value;
    if (M::is_ram(address)) machine.ram.set(address & 0x7F, value);
    else if (kChips == Chips::kAll && is_riot(address)) machine.write_elsewhere(address, value, false);
    else if (kChips == Chips::kRecorded) record_only(address, value);
    else write_tia(address & 0x3F, value);
  }

  CULE_INLINE MicroOp look_ahead() const { return kChips == Chips::kWrittenTia ? machine.look_ahead() : MicroOp{}; }  // a block knows
  static CULE_INLINE MicroOp fetch_slowly() { return {}; }

 private:
  CULE_INLINE void assume_room() const {
    CULE_ASSUME(cycle < machine.cycle_limit && cycle <= static_cast<int32_t>(kMaxEntryCycle) &&
                machine.buffer.count < machine.buffer.capacity);
  }
  CULE_INLINE void record_only(uint32_t address, uint32_t value) {
    assume_room();
    machine.record(address & 0x3F, value, cycle);
  }
  CULE_INLINE void write_tia(uint32_t reg, uint32_t value) {
    assume_room();
    CULE_ASSUME(reg >= tia_write::WSYNC);
    machine.write_tia(reg, value, false);
  }
};

}  // namespace cule

// Translated code: runs of a ROM's instructions, each executed by the one path of cpu_6507/execute.h with the instruction, its operand
// and its address as compile-time constants, so that only what it does to this console is left of it.
//
// A block holds the frequent instructions that follow one another from an entry point (cule/translation.py picks them and writes
// the blocks down with the macros below). It covers what they usually touch: RAM, plain ROM, TIA registers. Where one touches anything
// else, or the end of the frame is near, the block is left before it, and the interpreter executes it.
#pragma once

#include "console/core.h"

namespace cule {

// The machine as an instruction of a block sees it. `kFixed`: its address does not depend on registers.
template <class M, bool kFixed>
struct BlockView {
  M& machine;
  Registers& r;
  int32_t& cycle;
  uint32_t& bus;
  bool moved = false;
  bool odd = false;  // the instruction needs the whole machine

  CULE_INLINE explicit BlockView(M& m) : machine(m), r(m.r), cycle(m.cycle), bus(m.bus) {}

  CULE_INLINE bool leaves(uint32_t control, uint32_t opcode, uint32_t address) {
    if (control & kReads) odd |= !M::is_ram(address) && !machine.is_plain_rom(address) && !(kFixed && is_chip(address));
    if (control & kWrites) odd |= !M::is_ram(address) && !can_record(address) && !(kFixed && is_riot(address));
    if ((control & kReads) && (control & kWrites)) odd |= !M::is_ram(address);
    if ((control & kAddRegister) && (control & kSetsV)) odd |= r.d != 0;
    if (control & kRare) odd |= !stack_is_plain(opcode);
    return odd;
  }

  static CULE_INLINE bool is_chip(uint32_t address) { return (address & 0x1000) == 0; }
  static CULE_INLINE bool is_riot(uint32_t address) { return (address & 0x1280) == 0x280; }

  // VSYNC and VBLANK, of lower numbers, have to do with the frame's end.
  static CULE_INLINE bool can_record(uint32_t address) {
    const uint32_t reg = address & 0x3F;
    return (address & 0x1080) == 0 && (kFixed ? reg >= tia_write::WSYNC : only_recorded(reg));
  }

  // Whether all that the instruction does to the stack it does to RAM, or to plain registers of the TIA.
  CULE_INLINE bool stack_is_plain(uint32_t opcode) const {
    switch (opcode) {
      case 0x20: return r.s >= 0x81;                                       // JSR
      case 0x60: return r.s >= 0x7F && r.s <= 0xFD && !returns_to_special();  // RTS
      case 0x48: case 0x08: return r.s >= 0x80 || only_recorded(r.s & 0x3F);   // PHA, PHP
      case 0x68: case 0x28: return r.s >= 0x80 && r.s <= 0xFE;             // PLA, PLP
      default: return true;
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
    if (kFixed && is_chip(address) && !M::is_ram(address)) {
      bus = machine.read_elsewhere(address);
      return bus;
    }
    bus = M::is_ram(address) ? machine.ram.get(address & 0x7F) : machine.rom(rom_offset(machine.map, machine.slices, address));
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

  CULE_INLINE void write(uint32_t address, uint32_t value, bool) { write_if(true, address, value); }  // onto the stack

  CULE_INLINE void write_if(bool wanted, uint32_t address, uint32_t value) {
    if (!wanted) return;
    bus = value;
    if (M::is_ram(address)) {
      machine.ram.set(address & 0x7F, value);
    } else if (kFixed && is_riot(address)) {
      machine.write_elsewhere(address, value, false);
    } else {
      CULE_ASSUME(cycle < machine.cycle_limit && cycle <= static_cast<int32_t>(kMaxEntryCycle) &&
                  machine.buffer.count < machine.buffer.capacity);  // begin_block
      if (kFixed) machine.write_tia(address & 0x3F, value, false);
      else machine.record(address & 0x3F, value, cycle);
    }
  }

  static CULE_INLINE MicroOp look_ahead() { return {}; }  // the block knows what comes next
  static CULE_INLINE MicroOp fetch_slowly() { return {}; }
};

// Whether a block may run that begins at `pc`, has `instructions`, takes `cycles` at most and writes to the TIA `writes` times at most.
template <class M>
CULE_INLINE bool begin_block(const M& m, uint32_t pc, int32_t instructions, int32_t cycles, uint32_t writes) {
  return m.r.pc == pc && m.instructions_left >= instructions && m.cycle + cycles < m.cycle_limit &&
         m.buffer.count + writes <= m.buffer.capacity;
}

// Executes the instruction at `pc`. False: it is still to be executed, by the interpreter.
template <uint32_t kOpcode, class M>
CULE_INLINE bool execute_in_block(M& m, uint32_t pc, uint32_t operand) {
  constexpr uint32_t kControl = StaticDecode<kOpcode>::control;
  BlockView<M, !(kControl & (kIndexX | kIndexY | kIndirect | kRare))> view(m);
  const int32_t before = m.cycle;
  m.r.pc = pc;
  execute(StaticDecode<kOpcode>{}, view, operand);
  if (view.odd) {
    m.r.pc = pc;
    m.cycle = before;
    return false;
  }
  --m.instructions_left;
  return true;
}

// A case of the switch over blocks; its instructions; its end.
#define CULE_BLOCK(number, at, instructions, cycles, writes) \
  case number: \
    if (!begin_block(m, at, instructions, cycles, writes)) return false;
#define CULE_DO(at, opcode, operand) \
  if (!execute_in_block<opcode>(m, at, operand)) return false;
#define CULE_DO_BRANCH(at, opcode, operand) \
  CULE_DO(at, opcode, operand) \
  if (m.r.pc != (((at) + 2) & 0xFFFF)) return true;
#define CULE_END return true;

// Runs blocks where there are any, and interprets the rest. `blocks` has, for each byte of the image and one more, the number of the
// block that begins there, or 0. `run_block(m, number)` says whether the block has been executed to its end. The ROM is game `kGame`'s.
template <class RunBlock, uint32_t kGame>
struct TranslatedCore {
  const uint16_t* blocks;
  RunBlock run_block;

  static CULE_INLINE uint32_t game_of(const ConsoleConfig&) { return kGame; }

  template <class M>
  CULE_INLINE void run(M& m) const {
    run_in_step(m, [&](int32_t end) {
      while (m.runs() && m.cycle < end) {
        if (!run_block(m, m.rom.block(blocks, m.code_offset(m.r.pc)))) interpret_one(m);
      }
    });
  }

 private:
  template <class M>
  static CULE_INLINE void interpret_one(M& m) {
    MicroOp op = m.look_ahead();
    for (bool fetched = false; !fetched; --m.instructions_left) {
      fetched = opcode_of(op) != kFetchSlowlyCode;
      op = DynamicCore{}(m, op);
    }
  }
};

}  // namespace cule

// The console's whole bus: all chips that the processor is connected to (cpu_6507/bus.h).
//
// `ConsoleBus` has all that instructions touch. What every instruction needs is in its own fields.
// These stay in processor registers as long as no function that is not inlined sees a reference to
// them. So the rare paths are free functions: they get what they need by value, and change only
// what is outside of these fields: `Devices`, the TIA's state and its trail, the cartridge's bytes.
//
// `Ram` and `Rom` say how a backend reaches its memory. `Ram` has `get(index)` and `set(index,
// byte)` for the 128 bytes; `tia()`, the TIA's state as of the last write (tia/deferred_beam.h);
// and `set_sound(number, byte)` for the registers of sound, which does nothing if nobody listens.
// `Rom` has `operator()(offset)`, a byte of the image; `predecoded_at(offset)`, the instruction
// that begins there; `marked_op(offset)`, the same, but in a translated ROM the mark where a block
// begins; and `operation(opcode)`, an instruction without its operand.
#pragma once

#include "cartridge/access.h"
#include "console/devices.h"
#include "console/latch_search.h"
#include "cpu_6507/bus.h"
#include "tia/chip/sound.h"
#include "tia/deferred_beam.h"

namespace cule {

// Reads a register of the RIOT or the TIA. The TIA drives bits 7 and 6 only; the other bits keep
// what was last on the bus. `Bus` has the fields of ConsoleBus that this needs.
template <class Bus>
CULE_INLINE uint32_t read_chip(Bus& m, uint32_t address) {
  if (address & kA7) {
    const RiotRead read = read_riot(m.devices, m.rom, m.config, m.slices, address, m.r.pc, m.cycle,
                                    m.instructions_left);
    m.cycle += read.waited;
    m.instructions_left -= read.rounds * 2;
    return read.value;
  }
  m.touched_cycle = m.cycle;
  const uint32_t reg = tia_register_read(address);
  if (reg > tia_read::CXPPMM)
    return read_input_port(m.devices, m.config.inpt_wiring, reg, m.cycle) | (m.bus & kUndriven);
  TiaState& tia = m.ram.tia();
  const uint32_t latches = latches_of_register(reg), new_ones = latches & ~m.latches_read;
  m.latches_read |= latches;
  m.seen = read_latches(m.trail, m.config.format, m.buffer, tia, m.seen, m.latches_read, latches,
                        new_ones, m.cycle);
  return collision_register(tia.collisions, reg) | (m.bus & kUndriven);
}

// The effect of some writes depends on how long ago HMOVE was. Their entries have that time instead
// of the value, which a strobe ignores (tia/log/instruction_buffer.h). HMM0's entry has a flag for
// it in the bits of the value that HMM0 does not use.
template <class Bus>
CULE_INLINE uint32_t note_hmove(Bus& m, uint32_t reg, uint32_t value) {
  using namespace tia_write;
  constexpr uint32_t kLast =
      last_of(registers_where(&WriteFacts::cpu_effect, CpuEffect::kSinceHmove));
  const uint32_t distance = static_cast<uint32_t>(m.cycle - m.hmove_cycle);
  if (reg <= kLast) return distance < kLongAgo ? distance : kLongAgo;
  if (reg == HMM0) return (value & 0xF0) | (distance == kStarsHmoveDistance);
  if (reg == HMOVE) m.hmove_cycle = m.cycle;
  return value;
}

// Does a write that is recorded, and adds an entry to the log if it changes anything. If there is
// no room for the entry, the write is not done, and is a fault. `Bus` has the fields of ConsoleBus
// that a write to the TIA touches.
template <class Bus, class Reg>
CULE_INLINE void record(Bus& m, const Reg reg, uint32_t value) {
  TiaState& tia = m.ram.tia();
  const int32_t cycle = m.cycle;
  const uint32_t count = m.buffer.count;
  uint32_t* const next = m.buffer.entries + count;
  const bool room = m.has_room || count < m.buffer.capacity;
  const int32_t at = m.has_room ? cycle : recorded_cycle(cycle);
  const bool changes = room ? apply_write(tia, m.config.format, reg, value, at, m.trail.left)
                            : would_change(tia, AnyRegister{reg.number}, value);
  m.seen.note(tia, reg, value);
  m.touched_cycle = cycle;
  if (!room && changes) m.devices.faults |= kFaultBufferFull;
  // Small conditional steps, so that a GPU needs no branch. A CPU needs none if it stores the entry
  // even if it does not count.
  const uint32_t entry = encode_early_entry(at, reg.number, value);
  if ((kStoresAhead && m.has_room) || (room && changes)) *next = entry;
  m.buffer.count = count + (room && changes);
}

template <class Bus, class Reg>
CULE_INLINE void write_tia(Bus& m, const Reg to, uint32_t value, bool after_write) {
  using namespace tia_write;
  const uint32_t reg = to.number;
  if (!m.has_room && m.cycle >= m.cycle_limit) m.frame_ended = true;
  if (reg == WSYNC) {
    // The processor stops at its next read. So it does not stop between two writes.
    m.touched_cycle = m.cycle;
    const int32_t into_line = m.cycle % kCyclesPerLine;
    if (!after_write && into_line != 0) m.cycle += kCyclesPerLine - into_line;
    return;
  }
  constexpr auto kEffect = &WriteFacts::cpu_effect;
  constexpr uint64_t kOfHmove = registers_where(kEffect, CpuEffect::kSinceHmove) |
                                registers_where(kEffect, CpuEffect::kStars) |
                                registers_where(kEffect, CpuEffect::kHmove);
  constexpr uint32_t kFirst = first_of(kOfHmove), kLast = last_of(kOfHmove);
  if (reg >= kFirst && reg <= kLast) value = note_hmove(m, reg, value);
  if (is_recorded(reg)) {
    m.record(to, value);
  } else {
    if (is_sound(reg)) m.ram.set_sound(reg - kFirstSoundRegister, value);
    m.touched_cycle = m.cycle;
  }
  if (reg <= kLastVertical)
    m.frame_ended |= strobe_vertical(m.devices.ports, reg, value, m.cycle);
  if (reg == CXCLR) {
    m.buffer.after_clear = m.buffer.count;
    m.trail.note_clear();
  }
}

template <class Ram, class Rom>
struct ConsoleBus {
  static constexpr Tier kLastTier = Tier::kRarest;
  const ConsoleConfig& config;
  Ram ram;
  Rom rom;
  uint8_t* cartridge_bytes;
  Devices& devices;
  TiaTrail& trail;
  InstructionBuffer buffer;
  // Copies of the config's fields, which can stay in registers.
  CartridgeMap map;
  uint32_t rom_bytes;
  int32_t cycle_limit;
  // The processor.
  Registers r = {};
  uint32_t slices = 0;
  uint32_t bus = 0;      // the last byte on the data bus
  int32_t cycle = 0;     // on the counter that TiaPorts describes
  int32_t hmove_cycle = 0;
  int32_t touched_cycle = 0;
  int32_t instructions_left = 0;
  uint32_t latches_read = 0;  // the collision latches that the program has read
  ShownBounds seen = {};        // since the trail's start
  bool frame_ended = false;
  bool moved = false;    // the bank changed: the next instruction is not where it was looked up
  // For this write to the TIA, the frame is not at its limit, and the buffer is not full.
  bool has_room = false;

  // Takes over the state of `other`, a copy of this bus that has executed an instruction.
  CULE_INLINE void take(const ConsoleBus& other) {
    r = other.r;
    slices = other.slices;
    bus = other.bus;
    cycle = other.cycle;
    hmove_cycle = other.hmove_cycle;
    touched_cycle = other.touched_cycle;
    instructions_left = other.instructions_left;
    latches_read = other.latches_read;
    seen = other.seen;
    frame_ended = other.frame_ended;
    moved = other.moved;
    buffer.count = other.buffer.count;
    buffer.after_clear = other.buffer.after_clear;
  }

  CULE_INLINE bool is_plain_rom(uint32_t address) const {
    return is_cartridge_address(address) && !is_special_offset(map, window_offset(address));
  }
  CULE_INLINE bool is_special(uint32_t address) const {
    return is_cartridge_address(address) && is_special_offset(map, window_offset(address));
  }
  // A Superchip's RAM or the DPC's registers, which switch no banks.
  CULE_INLINE bool is_cartridge_register(uint32_t address) const {
    return is_cartridge_address(address) && window_offset(address) < map.special_end;
  }

  // Reads and writes are small conditional steps, RAM and ROM first. So a GPU needs no branch for
  // frequent accesses.
  CULE_INLINE uint32_t read_if(bool wanted, uint32_t address, uint32_t otherwise) {
    const bool in_ram = wanted && is_ram_address(address), in_rom = wanted && is_plain_rom(address);
    const uint32_t offset = rom_offset(map, slices, address);
    uint32_t value = otherwise;
    if (in_ram) value = ram.get(ram_index(address));
    if (in_rom) value = rom(offset);
    if (wanted && !in_ram && !in_rom) value = read_elsewhere(address);
    if (wanted) bus = value;
    return value;
  }

  CULE_INLINE uint32_t read(uint32_t address) { return read_if(true, address, 0); }

  // Two bytes of zero page. As in ale-py, the byte after $FF is at $100. On the real 6507 it is at
  // $00.
  CULE_INLINE uint32_t read_pointer_if(bool wanted, uint32_t address) {
    const bool in_ram = wanted && address >= kFirstInRam && address < kLastInPage;
    uint32_t pointer = 0;
    if (in_ram) pointer = ram.get(ram_index(address)) | ram.get(ram_index(address + 1)) << 8;
    if (wanted && !in_ram) {
#pragma unroll 1
      for (uint32_t i = 0; i < 2; ++i) pointer |= read(address + i) << 8 * i;
    }
    if (wanted) bus = pointer >> 8;
    return pointer;
  }

  CULE_INLINE uint32_t read_elsewhere(uint32_t address) {
    if (is_cartridge_address(address)) {
      const CartridgeAccess access = cartridge_read(config.map, slices, cartridge_bytes, rom,
                                                    address, cycle);
      show_slices(access.slices);
      return access.value;
    }
    return read_chip(address);
  }

  CULE_INLINE uint32_t read_chip(uint32_t address) { return cule::read_chip(*this, address); }

  CULE_INLINE void show_slices(uint32_t shown) {
    moved |= shown != slices;
    slices = shown;
  }

  CULE_INLINE void write(uint32_t address, uint32_t value, bool after_write) {
    bus = value;
    if (is_ram_address(address)) ram.set(ram_index(address), value);
    else write_elsewhere(address, value, after_write);
  }

  CULE_INLINE void write_if(bool wanted, uint32_t address, uint32_t value) {
    const bool in_ram = wanted && is_ram_address(address);
    const bool to_tia = is_tia_address(address) && only_recorded(tia_register_written(address));
    const bool recorded = wanted && to_tia && cycle < cycle_limit;
    if (wanted) bus = value;
    if (in_ram) ram.set(ram_index(address), value);
    if (recorded) record(AnyRegister{tia_register_written(address)}, value);
    if (wanted && !in_ram && !recorded) write_elsewhere(address, value, false);
  }

  CULE_INLINE void write_elsewhere(uint32_t address, uint32_t value, bool after_write) {
    if (is_cartridge_address(address))
      show_slices(cartridge_write(config.map, slices, cartridge_bytes, address, value));
    else if (address & kA7) write_riot(devices, address, value, cycle);
    else write_tia(AnyRegister{tia_register_written(address)}, value, after_write);
  }

  template <class Reg>
  CULE_INLINE void record(const Reg reg, uint32_t value) {
    cule::record(*this, reg, value);
  }
  template <class Reg>
  CULE_INLINE void write_tia(const Reg reg, uint32_t value, bool after_write) {
    cule::write_tia(*this, reg, value, after_write);
  }

  CULE_INLINE uint32_t code_offset(uint32_t pc) const {
    return cule::code_offset(map, rom_bytes, slices, pc);
  }

  // The instruction at `pc`. A translated ROM has a mark (kBlockCode) where a block begins;
  // `look_under_mark` returns the instruction there.
  CULE_INLINE Predecoded look_ahead() const { return rom.marked_op(code_offset(r.pc)); }
  CULE_INLINE Predecoded look_under_mark() const { return rom.predecoded_at(code_offset(r.pc)); }

  // Fetches an instruction byte by byte through the bus, from RAM or from addresses where a read
  // switches banks. Only its execution counts as an instruction, so the count is put back.
  CULE_INLINE Predecoded fetch_slowly() {
    uint32_t bytes = 0;
    Predecoded op{};
#pragma unroll 1
    for (uint32_t i = 0; i == 0 || i < length_of(op); ++i) {
      bytes |= read((r.pc + i) & 0xFFFF) << 8 * i;
      if (i == 0) op = rom.operation(bytes);
    }
    ++instructions_left;
    return with_operand(op, bytes >> 8 & 0xFF, bytes >> 16);
  }

  // The instruction at `pc`, all of which is in RAM.
  CULE_INLINE Predecoded fetch_from_ram() const {
    const uint32_t first = ram_index(r.pc);
    return with_operand(rom.operation(ram.get(first)), ram.get(ram_index(first + 1)),
                        ram.get(ram_index(first + 2)));
  }
};

}  // namespace cule

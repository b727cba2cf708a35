// The 6507's side of the console: the bus, and one frame of it.
//
// `Machine` gathers what a frame of the CPU part touches. `Ram` and `Rom` are how this backend reaches its memory: `Ram` has
// `get(index)` and `set(index, byte)` for the 128 bytes; `Rom` has `operator()(offset)` and `three_bytes(offset)`, which
// returns three bytes, the first in the lowest bits.
//
// The 13 address lines decode as on the board: A12 selects the cartridge; else A7 low the TIA; else A9 low the RAM, A9 high the
// RIOT's registers. Source: Stella Programmer's Guide, "Memory map".
#pragma once

#include "cartridge/access.h"
#include "console/config.h"
#include "cpu_6507/execute.h"
#include "m6532/m6532.h"
#include "tia/line_cache.h"
#include "tia/tia.h"

namespace cule {

// The part of a console's state that the CPU part keeps, besides RAM and the cartridge's bytes.
struct ConsoleState {
  Registers cpu;
  M6532 riot;
  TiaPorts ports;
  uint32_t slices;
};

// The env's TIA instruction buffer for one step.
struct InstructionBuffer {
  uint32_t* entries;
  uint32_t capacity;
  uint32_t count;
  uint32_t after_clear;  // the entry after the last CXCLR: what came before it no longer shows in the latches
};

// Collision latches on demand: a copy of the TIA's state that follows the buffer as far as the last read.
struct CollisionProbe {
  TiaState tia;
  CollisionView view;
  uint32_t replayed;
  bool ready = false;
};

template <class Ram, class Rom, class TiaSource>
struct Machine {
  const ConsoleConfig& config;
  Ram ram;
  Rom rom;
  uint8_t* cartridge_bytes;
  TiaSource tia_at_step;  // a function that returns the TIA's state where the buffer begins
  CollisionProbe& probe;
  Registers r;
  M6532 riot;
  TiaPorts ports;
  uint32_t slices;
  InstructionBuffer buffer;
  Inputs inputs;
  uint32_t bus = 0;
  uint32_t faults = 0;
  bool frame_ended = false;
  int32_t cycle = 0;  // ports.cycle while the frame runs

  CULE_INLINE void load(const ConsoleState& state) {
    r = state.cpu;
    riot = state.riot;
    ports = state.ports;
    slices = state.slices;
    cycle = ports.cycle;
  }
  CULE_INLINE void store(ConsoleState& state) const { state = {r, riot, ports, slices}; }

  // Power-on or RESET line: registers to their defaults; RAM keeps what it holds. `timer` comes from the console's random
  // generator, which the caller has also let fill a Superchip's RAM.
  CULE_HD void reset(uint32_t timer) {
    m6532_reset(riot, timer);
    ports_reset(ports);
    cycle = 0;
    slices = config.map.reset_slices;
    if (config.map.scheme == Scheme::kDPC) dpc_reset(*reinterpret_cast<Dpc*>(cartridge_bytes));
    reset_registers(r);
    r.pc = read(0xFFFC);
    r.pc |= read(0xFFFD) << 8;
  }

  CULE_INLINE bool is_special(uint32_t address) const {
    return (address & 0x1000) && is_special_offset(config.map, address & 0xFFF);
  }

  CULE_INLINE uint32_t read(uint32_t address) {
    if (address & 0x1000) {
      bus = is_special_offset(config.map, address & 0xFFF)
                ? cartridge_read(config.map, slices, cartridge_bytes, rom, address, cycle)
                : rom(rom_offset(config.map, slices, address));
      return bus;
    }
    if ((address & 0x280) == 0x280) return bus = m6532_read(riot, address, cycle, inputs.swcha, inputs.swchb);
    return read_low(address);
  }

  // Addresses that are RAM or TIA.
  CULE_INLINE uint32_t read_low(uint32_t address) { return bus = address & 0x80 ? ram.get(address & 0x7F) : read_tia(address); }

  // The TIA drives bits 7 and 6 only; the others keep what was last on the bus.
  CULE_INLINE uint32_t read_tia(uint32_t address) {
    using namespace tia_read;
    ports.touched_cycle = cycle;
    const uint32_t reg = address & 0x0F;
    uint32_t bits = 0;
    if (reg <= CXPPMM) bits = collision_register(collisions(), reg);
    else if (reg <= INPT3) {
      ports.cycle = cycle;
      bits = read_paddle_port(ports, inputs, config.inpt_wiring, reg - INPT0);
    } else if (reg == INPT4) bits = inputs.inpt4;
    else if (reg == INPT5) bits = inputs.inpt5;
    return bits | (bus & 0x3F);
  }

  CULE_INLINE void write(uint32_t address, uint32_t value, bool after_write) {
    if (address & 0x1000) cartridge_write(config.map, slices, cartridge_bytes, address, value);
    else if ((address & 0x280) == 0x280) m6532_write(riot, address, value, cycle);
    else write_low(address, value, after_write);
    bus = value;
  }

  CULE_INLINE void write_low(uint32_t address, uint32_t value, bool after_write) {
    if (address & 0x80) ram.set(address & 0x7F, value);
    else write_tia(address & 0x3F, value, after_write);
    bus = value;
  }

  CULE_INLINE void record(uint32_t reg, uint32_t value) {
    if (buffer.count < buffer.capacity) buffer.entries[buffer.count++] = encode_entry(cycle, reg, value);
    else faults |= kFaultBufferFull;
  }

  CULE_INLINE void write_tia(uint32_t reg, uint32_t value, bool after_write) {
    using namespace tia_write;
    if (cycle >= config.cycle_limit) end_frame();
    if (is_recorded(reg)) record(reg, reg >= RESM0 && reg <= HMM0 ? with_hmove_distance(reg, value) : value);
    else ports.touched_cycle = cycle;
    if (reg == WSYNC) {
      // The processor stops at its next read; not between two writes.
      const int32_t into_line = cycle % kCyclesPerLine;
      if (!after_write && into_line != 0) cycle += kCyclesPerLine - into_line;
    } else if (reg == VSYNC) {
      strobe_vsync(value);
    } else if (reg == VBLANK) {
      if (ports.dumping && !(value & 0x80)) ports.dump_end_cycle = cycle;
      ports.dumping = value & 0x80;
    } else if (reg == HMOVE) {
      ports.hmove_cycle = cycle;
    } else if (reg == CXCLR) {
      buffer.after_clear = buffer.count;
    }
  }

  // Entries whose effect depends on how long ago HMOVE was carry that instead of the strobe's value (instruction_buffer.h);
  // HMM0 has it as one flag in the bits that it does not use.
  CULE_INLINE uint32_t with_hmove_distance(uint32_t reg, uint32_t value) const {
    using namespace tia_write;
    const uint32_t distance = static_cast<uint32_t>(cycle - ports.hmove_cycle);
    if (reg <= RESBL) return distance < kLongAgo ? distance : kLongAgo;
    if (reg == HMM0) return (value & 0xF0) | (distance == kStarsHmoveDistance);
    return value;
  }

  CULE_INLINE void strobe_vsync(uint32_t value) {
    if (value & 2) {
      ports.vsync_finish_cycle = cycle + kVsyncCycles;
    } else if (cycle >= ports.vsync_finish_cycle) {
      ports.vsync_finish_cycle = kNoVsync;
      end_frame();
    }
  }

  CULE_INLINE void end_frame() {
    frame_ended = true;
    ports.frame_open = 0;
  }

  // The collision latches as of now.
  CULE_NOINLINE uint32_t collisions() {
    if (!probe.ready) {
      probe.tia = tia_at_step();
      probe.view.cache.stale = kAllObjects;
      probe.replayed = 0;
      probe.ready = true;
    }
    for (; probe.replayed < buffer.count; ++probe.replayed) {
      replay_entry(probe.tia, config.format, buffer.entries[probe.replayed], probe.view);
    }
    draw_until(probe.tia, config.format, cycle * kClocksPerCycle, probe.view);
    return probe.tia.collisions;
  }

  // Moves all cycle counters back by whole scanlines where a new frame begins.
  CULE_HD void begin_frame() {
    frame_ended = false;
    if (ports.frame_open) return;
    ports.cycle = cycle;
    const int32_t elapsed = cycle - cycle % kCyclesPerLine;
    ports_rebase(ports, elapsed);
    m6532_rebase(riot, elapsed);
    if (config.map.scheme == Scheme::kDPC) reinterpret_cast<Dpc*>(cartridge_bytes)->music_cycle -= elapsed;
    cycle = ports.cycle;
    record(kMarkFrameBegin, config.pal & ports.scanlines & 1);
    ports.frame_open = 1;
    ports.greyed = 0;
  }

  // Closes the frame; returns whether its picture was drawn to the last line.
  CULE_HD bool finish_frame() {
    ports.cycle = cycle;
    const int32_t now = cycle;
    cycle = ports.touched_cycle > 0 ? ports.touched_cycle : 0;
    record(kMarkTouch, 0);
    cycle = now;
    const bool whole = !ports.frame_open;
    if (whole) {
      ports.scanlines = static_cast<uint32_t>(cycle / kCyclesPerLine);
      ports.greyed = 0;
    } else if (!ports.greyed) {
      record(kMarkGreyOut, 0);
      ports.greyed = 1;
    }
    record(kMarkFrameEnd, 0);
    return whole && ports.touched_cycle * kClocksPerCycle >= config.format.last_clock;
  }

  // Whether the three bytes at `pc` are plain ROM, one after the other.
  CULE_INLINE bool fetches_plain_rom() const {
    const uint32_t offset = r.pc & 0xFFF;
    return (r.pc & 0x1000) && offset >= config.map.special_end && offset + 2 < config.map.special_begin &&
           (offset & 0x3FF) < 0x3FE;
  }

  // The instruction's base cycles pass, the program counter moves past it, its last byte stays on the bus.
  template <class Decode>
  CULE_INLINE void advance(const Decode decode, uint32_t bytes) {
    const uint32_t extra = operand_bytes(decode.word & 0x0F);
    cycle += decode.word >> kCyclesShift & 0x0F;
    r.pc = (r.pc + 1 + extra) & 0xFFFF;
    bus = bytes >> 8 * extra & 0xFF;
  }

  // Fetches an instruction byte by byte through the bus, from RAM or from where reading switches banks.
  CULE_NOINLINE uint32_t fetch_slowly() {
    const uint32_t opcode = read(r.pc);
    const uint32_t extra = operand_bytes(opcode_mode(opcode));
    uint32_t bytes = opcode;
    if (extra > 0) bytes |= read((r.pc + 1) & 0xFFFF) << 8;
    if (extra > 1) bytes |= read((r.pc + 2) & 0xFFFF) << 16;
    return bytes;
  }

  // Runs the processor to the end of the frame. `Core` executes one instruction. Returns whether the picture is whole.
  template <class Core>
  CULE_HD bool run_frame(const Core& core) {
    begin_frame();
    for (int32_t left = kFrameInstructionLimit; left > 0 && !frame_ended && !r.jammed; --left) core(*this);
    if (r.jammed) faults |= kFaultJam;
    return finish_frame();
  }
};

}  // namespace cule

// The 6507's side of the console: the bus, and one frame of it.
//
// `Machine` gathers what a frame of the CPU part touches. What every instruction needs is kept in
// its own fields, which stay in registers as long as no function that is not inlined sees a
// reference to it; so the rare paths are free functions, which get what they need by value and
// change only what is beside it: `Devices`, the TIA's state and its trail, the cartridge's
// bytes. `Ram` and `Rom` are how a backend reaches its memory: `Ram` has `get(index)` and
// `set(index, byte)` for the 128 bytes, and `tia()`, the TIA's state as of the last write
// (tia/eager.h); `Rom` has `operator()(offset)`, a byte of the image, `predecoded_at(offset)`, the
// instruction that begins there (decode_rom.h), `marked_op(offset)`, the same, except for the marks
// of a translated ROM (block.h), and `operation(opcode)`, one without its operand.
//
// The 13 address lines decode as on the board: A12 selects the cartridge; else A7 low the TIA; else
// A9 low the RAM, A9 high the RIOT's registers. Source: Stella Programmer's Guide, "Memory map".
#pragma once

#include "cartridge/access.h"
#include "console/config.h"
#include "console/latch_search.h"
#include "cpu_6507/execute.h"

namespace cule {

// Whose of the chips an address is.
CULE_INLINE constexpr bool is_ram_address(uint32_t address) { return (address & 0x1280) == 0x80; }
CULE_INLINE constexpr bool is_tia_address(uint32_t address) { return (address & 0x1080) == 0; }

// The chips around the processor, and what went wrong.
struct Devices {
  M6532 riot;
  TiaPorts ports;
  Inputs inputs;
  uint32_t faults;
};

// Bits 7 and 6 of INPT0 to INPT5; 0 for what is not there.
CULE_COLD uint32_t read_input_port(Devices& devices, uint32_t wiring, uint32_t reg, int32_t cycle) {
  using namespace tia_read;
  if (reg == INPT4) return devices.inputs.inpt4;
  if (reg == INPT5) return devices.inputs.inpt5;
  return reg <= INPT3 ? read_paddle_port(devices.ports, devices.inputs, wiring, reg - INPT0, cycle)
                      : 0;
}

// How many cycles a loop `LDA INTIM; BNE` (or BPL) may skip: as many whole rounds of `period`
// cycles, `rounds` at most, as leave it one more that goes on. `at_zero` tells BNE, which waits for
// 0, from BPL, which waits for the timer to have passed it.
CULE_INLINE int32_t skip_timer_wait(const M6532& riot, int32_t cycle, bool at_zero, int32_t period,
                                    int32_t rounds) {
  const uint32_t delta = static_cast<uint32_t>(cycle) - 1 -
                         static_cast<uint32_t>(riot.timer_set_cycle);
  if (at_zero ? riot.timer == 0 : riot.timer > 0x80) return 0;
  const uint32_t last = (riot.timer - at_zero) << riot.interval_shift;
  if (delta >= last) return 0;
  const int32_t whole = static_cast<int32_t>(last - 1 - delta) / period;
  return (whole < rounds ? whole : rounds) * period;
}

// A read of the RIOT, before which `waited` cycles and `rounds` of a loop have passed.
struct RiotRead {
  uint32_t value;
  int32_t waited, rounds;
};

// Where the predecoded instruction at `pc` is. What is not in ROM has the one after the image,
// which says so.
CULE_INLINE uint32_t code_offset(const CartridgeMap& map, uint32_t rom_bytes, uint32_t slices,
                                 uint32_t pc) {
  return pc & 0x1000 ? rom_offset(map, slices, pc) : rom_bytes;
}

// Where INTIM is read, an absolute load does it, and a BNE or BPL back to that follows, all rounds
// of the loop except the last two pass at once; they change nothing but the clock. The second of
// the two instructions would be at address `behind`.
template <class Rom>
CULE_COLD RiotRead read_riot(Devices& devices, const Rom rom, const ConsoleConfig& config,
                             uint32_t slices, uint32_t address, uint32_t behind, int32_t cycle,
                             int32_t instructions_left) {
  constexpr uint32_t kBackToLoad = 0xFFFB;  // from after the branch
  int32_t waited = 0, rounds = 0;
  if ((address & 5) == 4) {
    const auto op_at = [&](uint32_t pc) CULE_INLINE_LAMBDA {
      return rom.predecoded_at(code_offset(config.map, config.rom_bytes, slices, pc));
    };
    const Predecoded load = op_at((behind - 3) & 0xFFFF), back = op_at(behind);
    const uint32_t opcode = opcode_of(load), condition = opcode_of(back);
    const bool loads = (opcode == 0xAD || opcode == 0xAE || opcode == 0xAC) &&
                       operand_of(load) == address;  // LDA, LDX, LDY
    if (loads && (condition == 0xD0 || condition == 0x10) && operand_of(back) == kBackToLoad) {
      const int32_t period = 7 + ((((behind + 2) ^ (behind - 3)) & 0xFF00) != 0);
      waited = skip_timer_wait(devices.riot, cycle, condition == 0xD0, period,
                               (instructions_left - 2) / 2);
      rounds = waited / period;
    }
  }
  return {
      m6532_read(devices.riot, address, cycle + waited, devices.inputs.swcha, devices.inputs.swchb),
      waited, rounds};
}
CULE_COLD void write_riot(Devices& devices, uint32_t address, uint32_t value, int32_t cycle) {
  m6532_write(devices.riot, address, value, cycle);
}

// VSYNC and VBLANK, as far as the processor's side cares. Returns whether the frame ends.
CULE_COLD bool strobe_vertical(TiaPorts& ports, uint32_t reg, uint32_t value, int32_t cycle) {
  if (reg == tia_write::VBLANK) {
    if (ports.dumping && !(value & 0x80)) ports.dump_end_cycle = cycle;
    ports.dumping = value & 0x80;
    return false;
  }
  if (value & 2) {
    ports.vsync_finish_cycle = cycle + kVsyncCycles;
    return false;
  }
  if (cycle < ports.vsync_finish_cycle) return false;
  ports.vsync_finish_cycle = kNoVsync;
  return true;
}

// An instruction that begins before a cycle writes no later than so many cycles after it.
constexpr int32_t kLongestInstruction = 8;

// A frame ends with three at most, and the next begins with one.
constexpr int32_t kMarksBetweenFrames = 4;

// Where it is not known up to which color clock a frame's picture is drawn: the frame was cut off,
// or its last write, which takes effect some clocks later, came just before its end.
constexpr int32_t kUnknownReach = -1;

template <class Ram, class Rom>
struct Machine {
  static constexpr RareOps kRareOps = RareOps::kAll;
  const ConsoleConfig& config;
  Ram ram;
  Rom rom;
  uint8_t* cartridge_bytes;
  Devices& devices;
  TiaTrail& trail;
  InstructionBuffer buffer;
  // The config's, at hand.
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
  uint32_t latches_read = 0;  // the collision latches that the program has looked at
  Sightings seen = {};        // since the trail's start
  bool frame_ended = false;
  bool moved = false;    // the next instruction is not where it was looked for
  bool roomy = false;  // before this write to the TIA the frame does not end by its length, and the
                       // buffer is not full

  // Empties the instruction buffer; from here on it tells what happens to `tia`.
  CULE_INLINE void begin_record(const TiaState& tia) {
    ram.tia() = tia;
    buffer.count = buffer.after_clear = 0;
    trail.clear();
  }

  CULE_INLINE void load(const ConsoleState& state) {
    r = state.cpu;
    slices = state.slices;
    devices.riot = state.riot;
    devices.ports = state.ports;
    devices.faults = 0;
    cycle = state.ports.cycle;
    hmove_cycle = state.ports.hmove_cycle;
    touched_cycle = state.ports.touched_cycle;
  }
  CULE_INLINE void store(ConsoleState& state) const {
    state = {r, devices.riot, devices.ports, slices};
    state.ports.cycle = cycle;
    state.ports.hmove_cycle = hmove_cycle;
    state.ports.touched_cycle = touched_cycle;
  }

  // Goes on as `other`, a copy of this machine that has executed something.
  CULE_INLINE void take(const Machine& other) {
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

  // Power-on or RESET line: registers to their defaults; RAM keeps what it holds. `timer` comes
  // from the console's random generator, which the caller has also let fill a Superchip's RAM.
  CULE_HD void reset(uint32_t timer) {
    m6532_reset(devices.riot, timer);
    ports_reset(devices.ports);
    cycle = hmove_cycle = touched_cycle = 0;
    slices = map.reset_slices;
    if (map.scheme == Scheme::kDPC) dpc_reset(*reinterpret_cast<Dpc*>(cartridge_bytes));
    reset_registers(r);
    r.pc = read(0xFFFC);
    r.pc |= read(0xFFFD) << 8;
  }

  CULE_INLINE bool is_plain_rom(uint32_t address) const {
    return (address & 0x1000) && !is_special_offset(map, address & 0xFFF);
  }
  CULE_INLINE bool is_special(uint32_t address) const {
    return (address & 0x1000) && is_special_offset(map, address & 0xFFF);
  }
  // A Superchip's RAM or the DPC's registers, which switch no banks.
  CULE_INLINE bool is_cartridge_register(uint32_t address) const {
    return (address & 0x1000) && (address & 0xFFF) < map.special_end;
  }

  // Reading and writing are in small conditional steps, RAM and ROM first, so that a GPU needs no
  // branch for what is frequent.
  CULE_INLINE uint32_t read_if(bool wanted, uint32_t address, uint32_t otherwise) {
    const bool in_ram = wanted && is_ram_address(address), in_rom = wanted && is_plain_rom(address);
    const uint32_t offset = rom_offset(map, slices, address);
    uint32_t value = otherwise;
    if (in_ram) value = ram.get(address & 0x7F);
    if (in_rom) value = rom(offset);
    if (wanted && !in_ram && !in_rom) value = read_elsewhere(address);
    if (wanted) bus = value;
    return value;
  }

  CULE_INLINE uint32_t read(uint32_t address) { return read_if(true, address, 0); }

  // Two bytes of zero page. As in ale-py, the byte after $FF is at $100, and not at $00.
  CULE_INLINE uint32_t read_pointer_if(bool wanted, uint32_t address) {
    const bool in_ram = wanted && address >= 0x80 && address < 0xFF;
    uint32_t pointer = 0;
    if (in_ram) pointer = ram.get(address & 0x7F) | ram.get((address + 1) & 0x7F) << 8;
    if (wanted && !in_ram) {
#pragma unroll 1
      for (uint32_t i = 0; i < 2; ++i) pointer |= read(address + i) << 8 * i;
    }
    if (wanted) bus = pointer >> 8;
    return pointer;
  }

  CULE_INLINE uint32_t read_elsewhere(uint32_t address) {
    if (address & 0x1000) {
      const CartridgeAccess access = cartridge_read(config.map, slices, cartridge_bytes, rom,
                                                    address, cycle);
      show_slices(access.slices);
      return access.value;
    }
    return read_chip(address);
  }

  // A register of the RIOT or the TIA, which drives bits 7 and 6 only; the others keep what was
  // last on the bus.
  CULE_INLINE uint32_t read_chip(uint32_t address) {
    if (address & 0x80) {
      const RiotRead read = read_riot(devices, rom, config, slices, address, r.pc, cycle,
                                      instructions_left);
      cycle += read.waited;
      instructions_left -= read.rounds * 2;
      return read.value;
    }
    touched_cycle = cycle;
    const uint32_t reg = address & 0x0F;
    if (reg > tia_read::CXPPMM)
      return read_input_port(devices, config.inpt_wiring, reg, cycle) | (bus & 0x3F);
    TiaState& tia = ram.tia();
    const uint32_t latches = latches_of_register(reg), new_ones = latches & ~latches_read;
    latches_read |= latches;
    seen = read_latches(trail, config.format, buffer, tia, seen, latches_read, latches, new_ones,
                        cycle);
    return collision_register(tia.collisions, reg) | (bus & 0x3F);
  }

  CULE_INLINE void show_slices(uint32_t shown) {
    moved |= shown != slices;
    slices = shown;
  }

  CULE_INLINE void write(uint32_t address, uint32_t value, bool after_write) {
    bus = value;
    if (is_ram_address(address)) ram.set(address & 0x7F, value);
    else write_elsewhere(address, value, after_write);
  }

  CULE_INLINE void write_if(bool wanted, uint32_t address, uint32_t value) {
    const bool in_ram = wanted && is_ram_address(address);
    const bool to_tia = is_tia_address(address) && only_recorded(address & 0x3F);
    const bool recorded = wanted && to_tia && cycle < cycle_limit;
    if (wanted) bus = value;
    if (in_ram) ram.set(address & 0x7F, value);
    if (recorded) record(AnyRegister{address & 0x3F}, value);
    if (wanted && !in_ram && !recorded) write_elsewhere(address, value, false);
  }

  CULE_INLINE void write_elsewhere(uint32_t address, uint32_t value, bool after_write) {
    if (address & 0x1000)
      show_slices(cartridge_write(config.map, slices, cartridge_bytes, address, value));
    else if (address & 0x80) write_riot(devices, address, value, cycle);
    else write_tia(AnyRegister{address & 0x3F}, value, after_write);
  }

  // Does a write that is recorded, and leaves an entry if it changes anything. Where there is no
  // room for the entry, it is not done.
  template <class Reg>
  CULE_INLINE void record(const Reg reg, uint32_t value) {
    TiaState& tia = ram.tia();
    const bool room = roomy || buffer.count < buffer.capacity;
    const int32_t at = roomy ? cycle : recorded_cycle(cycle);
    const bool changes = room ? apply_write(tia, config.format, reg, value, at, trail.left)
                              : would_change(tia, AnyRegister{reg.number}, value);
    seen.note(tia, reg, value);
    touched_cycle = cycle;
    if (!room && changes) devices.faults |= kFaultBufferFull;
    // In small steps, without a branch on a GPU.
    const uint32_t entry = encode_early_entry(at, reg.number, value);
    uint32_t* const next = buffer.entries + buffer.count;
    if (room && changes) *next = entry;
    buffer.count += room && changes;
  }

  CULE_INLINE void record_mark(TiaMark mark, uint32_t value) { record_mark(mark, value, cycle); }
  CULE_INLINE void record_mark(TiaMark mark, uint32_t value, int32_t at) {
    if (buffer.count == buffer.capacity) {
      devices.faults |= kFaultBufferFull;
      return;
    }
    const uint32_t entry = encode_entry(at, mark, value);
    buffer.entries[buffer.count++] = entry;
    apply_mark(ram.tia(), config.format, entry);
  }

  template <class Reg>
  CULE_INLINE void write_tia(const Reg to, uint32_t value, bool after_write) {
    using namespace tia_write;
    const uint32_t reg = to.number;
    if (!roomy && cycle >= cycle_limit) frame_ended = true;
    if (reg == WSYNC) {
      // The processor stops at its next read; not between two writes.
      touched_cycle = cycle;
      const int32_t into_line = cycle % kCyclesPerLine;
      if (!after_write && into_line != 0) cycle += kCyclesPerLine - into_line;
      return;
    }
    if (reg >= RESM0 && reg <= HMOVE) value = note_hmove(reg, value);
    if (is_recorded(reg)) record(to, value);
    else touched_cycle = cycle;
    if (reg <= VBLANK) frame_ended |= strobe_vertical(devices.ports, reg, value, cycle);
    if (reg == CXCLR) {
      buffer.after_clear = buffer.count;
      trail.note_clear();
    }
  }

  // Entries whose effect depends on how long ago HMOVE was carry that instead of the strobe's value
  // (instruction_buffer.h); HMM0 has it as one flag in the bits that it does not use.
  CULE_INLINE uint32_t note_hmove(uint32_t reg, uint32_t value) {
    using namespace tia_write;
    const uint32_t distance = static_cast<uint32_t>(cycle - hmove_cycle);
    if (reg <= RESBL) return distance < kLongAgo ? distance : kLongAgo;
    if (reg == HMM0) return (value & 0xF0) | (distance == kStarsHmoveDistance);
    if (reg == HMOVE) hmove_cycle = cycle;
    return value;
  }

  // What is to be done before the stretch that ends at cycle `end`, in which an access to the TIA
  // comes no later than `longest` cycles after that.
  CULE_INLINE void begin_stretch(int32_t end, int32_t longest) {
    follow(end - kStretchCycles);
    begin_segments(end + longest);
  }
  // Has the latches that the program looks at as they are now, before the stretch that begins at
  // cycle `begin`. Nothing is drawn beyond the last access to the TIA: without any since the last
  // look nothing is new.
  CULE_INLINE void follow(int32_t begin) {
    if (latches_read == 0 || !trail.is_due(config.format, begin)) return;
    if (touched_cycle * kClocksPerCycle < trail.followed) return;
    seen = follow_collisions(trail, config.format, buffer, ram.tia(), seen, latches_read, cycle,
                             false);
  }
  // Has them as they are after the last access of a frame, at cycle `last`.
  CULE_INLINE void finish_following(int32_t last) {
    if (latches_read == 0) return;
    const int32_t clock = last * kClocksPerCycle;
    TiaState& tia = ram.tia();
    if (clock < trail.followed && clock < config.format.last_clock) {  // the last look went too far
      tia.collisions = static_cast<uint16_t>(trail.before);
      tia.collisions |= static_cast<uint16_t>(search_latches(
          trail, config.format, buffer, latches_read & ~trail.before, last));
    } else if (trail.nears_picture(config.format, last)) {
      seen = follow_collisions(trail, config.format, buffer, tia, seen, latches_read, last, true);
    }
  }

  // Moves all cycle counters back by whole scanlines. `touched_cycle` stays where it is if that is
  // `oldest_touch` or before.
  CULE_INLINE void move_back(int32_t elapsed, int32_t oldest_touch) {
    cycle -= elapsed;
    hmove_cycle -= elapsed;
    if (hmove_cycle < kOldestHmove) hmove_cycle = kOldestHmove;
    if (touched_cycle > oldest_touch)
      touched_cycle = touched_cycle - elapsed > oldest_touch ? touched_cycle - elapsed
                                                             : oldest_touch;
    ports_rebase(devices.ports, elapsed);
    m6532_rebase(devices.riot, elapsed);
    if (map.scheme == Scheme::kDPC) {
      int32_t& music_cycle = reinterpret_cast<Dpc*>(cartridge_bytes)->music_cycle;
      music_cycle = wrapping_minus(music_cycle, elapsed);
    }
  }

  // Where a new frame begins, all cycle counters start over, except for the position within
  // the scanline.
  CULE_INLINE void begin_frame() {
    frame_ended = false;
    trail.begin_frame();
    TiaPorts& ports = devices.ports;
    if (ports.frame_open) {
      if (cycle >= kOpenFrameLimit) move_back(kOpenFrameStep, kBeyondPicture);
      begin_following();
      return;
    }
    move_back(cycle - cycle % kCyclesPerLine, 0);
    ports.frame_first_cycle = cycle;
    record_mark(kMarkFrameBegin, config.pal & ports.scanlines & 1);
    ports.frame_open = 1;
    ports.greyed = 0;
    begin_following();
  }

  CULE_INLINE void begin_following() {
    trail.begin_following(ram.tia(), buffer.count, latches_read);
    seen = Sightings(ram.tia());
  }

  // Closes the frame; returns the color clock up to which its picture is drawn, or kUnknownReach.
  CULE_INLINE int32_t finish_frame() {
    TiaPorts& ports = devices.ports;
    // The picture is drawn up to the last access, whether it left an entry or not.
    const uint32_t last = buffer.count ? buffer.entries[buffer.count - 1] : 0;
    const int32_t written_cycle = entry_register(last) < kMarkFrameBegin ? entry_cycle(last) : 0;
    const int32_t last_cycle = touched_cycle > written_cycle ? touched_cycle : written_cycle;
    begin_segments();
    finish_following(last_cycle);
    finish_writes(ram.tia(), config.format, buffer.entries, buffer.count);
    record_mark(kMarkTouch, 0, last_cycle);
    if (frame_ended) {
      ports.frame_open = 0;
      ports.scanlines = static_cast<uint32_t>(cycle / kCyclesPerLine);
      ports.greyed = 0;
    } else if (!ports.greyed) {
      record_mark(kMarkGreyOut, 0);
      ports.greyed = 1;
    }
    record_mark(kMarkFrameEnd, 0);
    if (r.jammed) devices.faults |= kFaultJam;
    const int32_t last_clock = config.format.last_clock, clock = last_cycle * kClocksPerCycle;
    if (frame_ended && clock >= last_clock) return last_clock;
    return frame_ended && (last_cycle - written_cycle) * kClocksPerCycle > kLongestDelay
               ? clock
               : kUnknownReach;
  }

  CULE_INLINE uint32_t code_offset(uint32_t pc) const {
    return cule::code_offset(map, rom_bytes, slices, pc);
  }

  // A translated ROM has kBlockCode where blocks begin; `look_under_mark` sees what is there.
  CULE_INLINE Predecoded look_ahead() const { return rom.marked_op(code_offset(r.pc)); }
  CULE_INLINE Predecoded look_under_mark() const { return rom.predecoded_at(code_offset(r.pc)); }

  // Fetches an instruction byte by byte through the bus, from RAM or from where reading switches
  // banks. Executing it is what counts as an instruction.
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

  // The instruction at `pc`, where all of it is in RAM.
  CULE_INLINE Predecoded fetch_from_ram() const {
    const uint32_t first = r.pc & 0x7F;
    return with_operand(rom.operation(ram.get(first)), ram.get((first + 1) & 0x7F),
                        ram.get((first + 2) & 0x7F));
  }

  // Says that nothing is written to the TIA after cycle `end` before this is called again: a
  // segment that begins before all that is written until then has taken effect may begin with the
  // state as it is now, and does, unless a later one turns out to be early enough.
  CULE_INLINE void begin_segments(int32_t end) {
    if (trail.segment >= kSegments) return;
    const int32_t begin = segment_clock(config.format, trail.segment);
    if (begin >= end * kClocksPerCycle + kLongestDelay) return;
    begin_segments();
    trail.next = {ram.tia(), buffer.count};
  }
  // The segments that may have begun by now do.
  CULE_INLINE void begin_segments() {
    cule::begin_segments(trail, config.format, cycle * kClocksPerCycle + kLongestDelay);
  }

  // Whether the buffer has room for what instructions that begin within `cycles` write, and for the
  // marks between frames. None writes more often than every other cycle.
  CULE_INLINE bool has_entries(int32_t cycles) const {
    const int32_t most = (cycles + kLongestInstruction) / 2 + kMarksBetweenFrames;
    return static_cast<int32_t>(buffer.capacity - buffer.count) >= most;
  }
  // Whether the frame cannot end by its length before cycle `end`, which is no more than `cycles`
  // from now, nor the buffer be full, whatever is executed until then. A buffer that runs short
  // gives way to a spare one, if there is any.
  CULE_INLINE bool make_room(int32_t end, int32_t cycles) {
    if (!has_entries(cycles)) {
      uint32_t* longer = move_to_spare(trail, buffer);
      if (!longer) return false;
      buffer.entries = longer;
      buffer.capacity = trail.spares.capacity;
    }
    return end + kLongestInstruction < cycle_limit && has_entries(cycles);
  }

  // Whether the frame goes on.
  CULE_INLINE bool runs() const { return instructions_left > 0 && !frame_ended && !r.jammed; }

  // Runs the processor to the end of the frame; `core.run` says how (core.h). Returns what
  // finish_frame does.
  template <class Core>
  CULE_INLINE int32_t run_frame(const Core& core) {
    begin_frame();
    instructions_left = kFrameInstructionLimit;
    core.run(*this);
    return finish_frame();
  }
};

}  // namespace cule

// The console's machine: runs one frame after the other. A core executes the instructions
// (execution/); this file does all else that a frame needs.
//
// A `Machine` is the bus (console/bus.h), and begins and ends frames, stores the states from which
// segments of the picture begin, and looks for collisions before each stretch of scanlines.
#pragma once

#include "console/bus.h"

namespace cule {

// No instruction writes later than this many cycles after its begin.
constexpr int32_t kLongestInstruction = 8;

// A frame ends with three marks at most, and the next begins with one.
constexpr int32_t kMarksBetweenFrames = 4;

// It is not known up to which color clock a frame's picture is drawn. Either the frame was cut off,
// or its last write came just before its end: a write takes effect some clocks later.
constexpr int32_t kUnknownReach = -1;

template <class Ram, class Rom>
struct Machine : ConsoleBus<Ram, Rom> {
  using Bus = ConsoleBus<Ram, Rom>;
  static constexpr bool kHears = Ram::kHears;  // whether it writes the registers of sound
  using Bus::config, Bus::map, Bus::ram, Bus::cartridge_bytes, Bus::devices, Bus::trail;
  using Bus::buffer, Bus::r, Bus::slices, Bus::cycle, Bus::cycle_limit, Bus::hmove_cycle;
  using Bus::touched_cycle, Bus::instructions_left, Bus::latches_read, Bus::seen;
  using Bus::frame_ended, Bus::read;

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

  // Power-on or the RESET line: sets registers to their defaults. RAM keeps its contents. `timer`
  // comes from the console's random generator; the caller has also filled a Superchip's RAM from
  // it.
  CULE_HD void reset(uint32_t timer) {
    m6532_reset(devices.riot, timer);
    ports_reset(devices.ports);
    cycle = hmove_cycle = touched_cycle = 0;
    slices = map.reset_slices;
    if (map.scheme == Scheme::kDPC) dpc_reset(*reinterpret_cast<Dpc*>(cartridge_bytes));
    reset_registers(r);
    r.pc = read(kResetVector);
    r.pc |= read(kResetVector + 1) << 8;
  }

  // Empties the log. From here on it records what happens to `tia`.
  CULE_INLINE void begin_record(const TiaState& tia) {
    ram.tia() = tia;
    buffer.count = buffer.after_clear = 0;
    trail.clear();
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

  // Call this before the stretch that ends at cycle `end`. What begins in it accesses the TIA no
  // later than `longest` cycles after `end`.
  CULE_INLINE void begin_stretch(int32_t end, int32_t longest) {
    follow(end - kStretchCycles);
    begin_segments(end + longest);
  }
  // Before the stretch that begins at cycle `begin`: brings the latches that the program reads up
  // to date. Nothing is drawn beyond the last access to the TIA. So if there was none since the
  // last look, there is nothing to do.
  CULE_INLINE void follow(int32_t begin) {
    if (latches_read == 0 || !trail.is_due(config.format, begin)) return;
    if (touched_cycle * kClocksPerCycle < trail.followed) return;
    seen = follow_collisions(trail, config.format, buffer, ram.tia(), seen, latches_read, cycle,
                             false);
  }
  // Brings them up to date after the last access of a frame, at cycle `last`.
  CULE_INLINE void finish_following(int32_t last) {
    if (latches_read == 0) return;
    const int32_t clock = last * kClocksPerCycle;
    TiaState& tia = ram.tia();
    if (clock < trail.followed && clock < config.format.last_clock) {  // the last look went too far
      trail.late.clear();  // what follows searches their time, too
      tia.collisions = static_cast<uint16_t>(trail.before);
      tia.collisions |= static_cast<uint16_t>(search_latches(
          trail, config.format, buffer, latches_read & ~trail.before, last));
    } else if (trail.nears_picture(config.format, last)) {
      seen = follow_collisions(trail, config.format, buffer, tia, seen, latches_read, last, true);
    }
  }

  // Moves all cycle counters back by `elapsed` cycles, which are whole scanlines. `touched_cycle`
  // does not go below `oldest_touch`, and stays if it is not above it now.
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

  // If a new frame begins, all cycle counters start again, but keep the position within the
  // scanline. If the last one was cut off, it goes on.
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
    seen = ShownBounds(ram.tia());
  }

  // Ends the frame. Returns the color clock up to which its picture is drawn, or kUnknownReach.
  CULE_INLINE int32_t finish_frame() {
    TiaPorts& ports = devices.ports;
    // The picture is drawn up to the last access, whether that added an entry or not.
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

  // The caller promises to write nothing to the TIA after cycle `end` until it calls this again.
  // Writes up to then may take effect after the next segment's begin. If so, the state as it is now
  // is kept for that segment. A later call replaces it, if that one still comes early enough.
  CULE_INLINE void begin_segments(int32_t end) {
    if (trail.segment >= kSegments) return;
    const int32_t begin = segment_clock(config.format, trail.segment);
    if (begin >= end * kClocksPerCycle + kLongestDelay) return;
    begin_segments();
    trail.next = {ram.tia(), buffer.count};
  }
  // Begins the segments that may have begun by now.
  CULE_INLINE void begin_segments() {
    cule::begin_segments(trail, config.format, cycle * kClocksPerCycle + kLongestDelay);
  }

  // Whether the buffer has room for all writes of instructions that begin within `cycles`, and for
  // the marks between frames. There is at most one write in two cycles.
  CULE_INLINE bool has_entries(int32_t cycles) const {
    const int32_t most = (cycles + kLongestInstruction) / 2 + kMarksBetweenFrames;
    return static_cast<int32_t>(buffer.capacity - buffer.count) >= most;
  }
  // Whether, until cycle `end`, the frame cannot reach its limit of scanlines and the buffer cannot
  // become full, whatever is executed. `end` is no more than `cycles` from now. If the buffer runs
  // short, this takes a spare one, if there is any.
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

  // Runs the processor to the end of the frame: `core.run` executes the instructions (execution/).
  // Returns what finish_frame does.
  template <class Core>
  CULE_INLINE int32_t run_frame(const Core& core) {
    begin_frame();
    instructions_left = kFrameInstructionLimit;
    core.run(*this);
    return finish_frame();
  }
};

}  // namespace cule

// Threaded code: a ROM decoded ahead into micro-operations, each with a pointer to the function
// that executes it, its *handler*. For CPUs.
//
// A handler is the one path of cpu_6507/execute.h, as in a block (execution/block.h): the
// instruction and the regions that it reaches are compile-time constants. The operand comes from
// the micro-operation. At its end each handler jumps to that of the next instruction, with the
// processor's state in the arguments, so that it stays in processor registers. A handler that
// cannot execute its instruction takes the slow path, the whole machine.
#pragma once

#include "execution/fast_bus.h"
#include "execution/pace.h"

namespace cule {

// The cycle counter, and in its lowest 16 bits the number of instructions of this run. One addition
// does for both.
struct Clock {
  static constexpr int kShift = 16;
  int64_t both;

  static CULE_INLINE Clock at(int32_t cycle) { return {int64_t{cycle} << kShift}; }
  CULE_INLINE operator int32_t() const { return static_cast<int32_t>(both >> kShift); }
  CULE_INLINE int32_t instructions() const { return static_cast<int32_t>(both & 0xFFFF); }
  CULE_INLINE Clock& operator+=(int32_t cycles) {
    both += int64_t{cycles} << kShift;
    return *this;
  }
  CULE_INLINE Clock& operator++() { return *this += 1; }
};

template <class M>
struct Thread;
template <class M>
struct MicroOp;
template <class M>
class MicroCode;

// What handlers get and pass on: the thread, the micro-operation, the clock, and A, X and Y.
template <class M>
using Handler = void (*)(Thread<M>&, const MicroOp<M>*, int64_t, uint32_t, uint32_t, uint32_t);

template <class M>
struct alignas(16) MicroOp {
  Handler<M> handler;
  uint16_t operand;
  // A jump: the number of the micro-operation that it leads to. A branch: the cycles that it takes
  // more if it is taken.
  uint16_t target;
  // A jump or a branch: the distance to the micro-operation that it leads to, in bytes. Otherwise
  // the first byte of the instruction's bank in the image.
  int32_t distance;
};

// Code in RAM, which is decoded when it is executed. There is a micro-operation for each byte. Its
// handler finds out whether the instruction is still the one that was decoded last.
template <class M>
struct RamCode {
  bool is_used = false;  // the rest is not initialized before
  MicroOp<M> ops[kRamBytes];
  Handler<M> handlers[kRamBytes];
  uint32_t bytes[kRamBytes];  // of each instruction
};

// N and Z in one word: the byte that is zero if Z is set, and N in bit 7. If N is another byte's,
// that is the next byte, and a third byte is 1.
struct ResultFlags {
  static constexpr uint32_t kApart = 1u << 16;
  uint32_t word;

  static CULE_INLINE ResultFlags of(uint32_t n, uint32_t z) {
    if (n == z) return {z};
    return {(z & ~n & 0x80 ? 1 : z) | n << 8 | kApart};
  }
  // Bit 7 of this is N.
  CULE_INLINE uint32_t n() const { return word & 0x8080 ? 0x80 : 0; }
  CULE_INLINE uint32_t z() const { return word & 0xFF; }
  CULE_INLINE uint32_t whole_n() const { return (word & kApart ? word >> 8 : word) & 0xFF; }
};

// A thread of instructions: the processor's state while handlers run.
template <class M>
struct Thread {
  uint8_t ram[kRamBytes];
  uint32_t s;
  ResultFlags result;
  uint32_t c, v, d, i;
  uint32_t pc_minus_number;  // the program counter, less the number of the micro-operation
  int64_t end;               // no access to the TIA, and no jump, begins from this clock on
  const MicroOp<M>* code;
  uint32_t elsewhere;  // the number of the micro-operation for all code that is not in ROM
  RamCode<M> ram_code;
  const MicroCode<M>* decoder;
  const uint8_t* rom;
  M* machine;
  int32_t instructions_left;  // when the clock's count was 0
  // Parts of the machine, which are copied back when the thread stops.
  TiaState tia;
  InstructionBuffer buffer;
  ShownBounds seen;
  int32_t touched_cycle, hmove_cycle;
  // Where the thread stops, and whether the instruction there needs the slow path.
  const MicroOp<M>* op;
  int64_t clock;
  uint32_t a, x, y;
  bool needs_slow_path;

  // The number of a micro-operation. Those of the code in RAM have numbers, too.
  CULE_INLINE uint32_t number_of(const MicroOp<M>* at) const {
    const uintptr_t bytes = reinterpret_cast<uintptr_t>(at) - reinterpret_cast<uintptr_t>(code);
    return static_cast<uint32_t>(static_cast<intptr_t>(bytes) /
                                 static_cast<intptr_t>(sizeof(MicroOp<M>)));
  }
  CULE_INLINE uint32_t pc_of(const MicroOp<M>* at) const {
    return (number_of(at) + pc_minus_number) & 0xFFFF;
  }
};

// Finds ROM in the bank of the instruction.
struct RomOfInstruction {
  template <class M>
  static CULE_INLINE uint32_t offset(const M& m, uint32_t address) {
    return m.bank + window_offset(address);
  }
};

// The machine as a handler sees it. Only what it needs of the machine is in memory. With
// `kAllPlain` the cartridge has no special addresses.
template <class M, bool kAllPlain>
struct MachineOfHandler {
  struct Ram {
    Thread<M>& t;
    CULE_INLINE uint32_t get(uint32_t index) const { return t.ram[index]; }
    CULE_INLINE void set(uint32_t index, uint32_t value) const {
      t.ram[index] = static_cast<uint8_t>(value);
    }
    CULE_INLINE TiaState& tia() const { return t.tia; }
    CULE_INLINE void set_sound(uint32_t number, uint32_t value) const {
      t.machine->ram.set_sound(number, value);
    }
  };
  struct Rom {
    Thread<M>& t;
    CULE_INLINE uint32_t operator()(uint32_t offset) const { return t.rom[offset]; }
    CULE_INLINE Predecoded predecoded_at(uint32_t offset) const {
      return t.machine->rom.predecoded_at(offset);
    }
  };
  Thread<M>& t;
  Registers r;
  Clock cycle;
  uint32_t bank;
  int32_t instructions_left;
  Ram ram{t};
  Rom rom{t};
  uint32_t bus = 0;
  bool has_room = true;
  bool waited = false;  // a loop that waits for the timer was skipped
  // References to what an instruction seldom needs.
  M& whole = *t.machine;
  const ConsoleConfig& config = whole.config;
  const CartridgeMap& map = whole.map;
  const uint32_t& slices = whole.slices;
  const int32_t& cycle_limit = whole.cycle_limit;
  InstructionBuffer& buffer = t.buffer;
  TiaTrail& trail = whole.trail;
  Devices& devices = whole.devices;
  ShownBounds& seen = t.seen;
  uint32_t& latches_read = whole.latches_read;
  int32_t &touched_cycle = t.touched_cycle, &hmove_cycle = t.hmove_cycle;
  bool& frame_ended = whole.frame_ended;

  CULE_INLINE MachineOfHandler(Thread<M>& thread, const MicroOp<M>* op, int64_t clock, uint32_t a,
                               uint32_t x, uint32_t y)
      : t(thread),
        r{thread.pc_of(op), a, x, y, thread.s, thread.result.n(), thread.v, thread.result.z(),
          thread.c, thread.d, thread.i, 0},
        cycle{clock + 1},
        bank(static_cast<uint32_t>(op->distance)),
        instructions_left(thread.instructions_left - cycle.instructions() + 1) {}

  CULE_INLINE bool is_plain_rom(uint32_t address) const {
    return kAllPlain ? is_cartridge_address(address) : whole.is_plain_rom(address);
  }
  CULE_INLINE bool is_special(uint32_t address) const { return whole.is_special(address); }
  CULE_INLINE bool is_cartridge_register(uint32_t address) const {
    return whole.is_cartridge_register(address);
  }

  CULE_INLINE uint32_t read_chip(uint32_t address) {
    const int32_t before = instructions_left;
    const uint32_t value = cule::read_chip(*this, address);
    waited = before != instructions_left;
    cycle.both += before - instructions_left;
    return value;
  }
  CULE_INLINE uint32_t read_elsewhere(uint32_t address) {
    whole.cycle = cycle;
    return whole.read_elsewhere(address);
  }
  CULE_INLINE void write_elsewhere(uint32_t address, uint32_t value, bool after_write) {
    whole.cycle = cycle;
    whole.write_elsewhere(address, value, after_write);
  }
  template <class Reg>
  CULE_INLINE void record(const Reg reg, uint32_t value) {
    cule::record(*this, reg, value);
  }
  template <class Reg>
  CULE_INLINE void write_tia(const Reg reg, uint32_t value, bool after_write) {
    cule::write_tia(*this, reg, value, after_write);
  }
  // For PHA and PHP. Programs push to the registers that switch missiles and ball on.
  CULE_INLINE void record(const AnyRegister reg, uint32_t value) {
    using namespace tia_write;
    if (reg.number == ENABL) return record(KnownRegister<ENABL>{}, value);
    if (reg.number == ENAM1) return record(KnownRegister<ENAM1>{}, value);
    if (reg.number == ENAM0) return record(KnownRegister<ENAM0>{}, value);
    write_tia(reg, value, false);
  }
  CULE_INLINE void write_tia(const AnyRegister reg, uint32_t value, bool) {
    cycle.both = write_any(t, cycle.both, reg.number, value);
  }

 private:
  // A write to a register that is known only at run time. Returns the clock after it.
  static CULE_COLD int64_t write_any(Thread<M>& t, int64_t clock, uint32_t reg, uint32_t value) {
    MachineOfHandler m(t, t.code, clock - 1, 0, 0, 0);
#define CULE_CASE(reg) case reg: m.write_tia(KnownRegister<reg>{}, value, false); break;
    switch (reg) {
      CULE_EACH_TIA_WRITE(CULE_CASE)
      default: m.touched_cycle = m.cycle;
    }
#undef CULE_CASE
    return m.cycle.both;
  }
};

}  // namespace cule

// Threaded code: a ROM decoded ahead into micro-operations, each with a pointer to the function
// that executes it, its *handler*. For CPUs.
//
// A handler is the one path of cpu_6507/execute.h, as in a block (execution/block.h): the
// instruction and the places that it reaches are compile-time constants. The operand comes from
// the micro-operation. At its end each handler jumps to that of the next instruction, with the
// processor's state in the arguments, so that it stays in processor registers. A handler that
// cannot execute its instruction takes the slow path, the whole machine.
#pragma once

#include <type_traits>

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

// What handlers get and pass on: the thread, the micro-operation, the clock, and A, X and Y.
template <class M>
using Handler = void (*)(Thread<M>&, const MicroOp<M>*, int64_t, uint32_t, uint32_t, uint32_t);

template <class M>
struct MicroOp {
  Handler<M> handler;
  uint16_t operand;
  // A jump: the number of the micro-operation that it leads to. A branch: the cycles that it takes
  // more if it is taken.
  uint16_t target;
  // A jump or a branch: the distance to the micro-operation that it leads to, in bytes. Otherwise
  // the first byte of the instruction's bank in the image.
  int32_t distance;
};

// A thread of instructions: the processor's state while handlers run.
template <class M>
struct Thread {
  uint8_t ram[kRamBytes];
  uint32_t s, n, z, c, v, d, i;
  uint32_t pc_minus_number;  // the program counter, less the number of the micro-operation
  int64_t end;               // no access to the TIA, and no jump, begins from this clock on
  const MicroOp<M>* code;
  uint32_t elsewhere;  // the number of the micro-operation for all code that is not in ROM
  const uint8_t* rom;
  M* machine;
  int32_t instructions_left;  // when the clock's count was 0
  // Where the thread stops, and whether the instruction there needs the slow path.
  const MicroOp<M>* op;
  int64_t clock;
  uint32_t a, x, y;
  bool needs_slow_path;

  CULE_INLINE uint32_t pc_of(const MicroOp<M>* at) const {
    return static_cast<uint32_t>(at - code) + pc_minus_number;
  }
};

// Finds ROM in the bank of the instruction.
struct RomOfInstruction {
  template <class M>
  static CULE_INLINE uint32_t offset(const M& m, uint32_t address) {
    return m.bank + window_offset(address);
  }
};

// The machine as a handler sees it. Only what it needs of the machine is in memory.
template <class M>
struct MachineOfHandler {
  struct Ram {
    uint8_t* bytes;
    CULE_INLINE uint32_t get(uint32_t index) const { return bytes[index]; }
    CULE_INLINE void set(uint32_t index, uint32_t value) const {
      bytes[index] = static_cast<uint8_t>(value);
    }
  };
  Thread<M>& t;
  Registers r;
  Clock cycle;
  uint32_t bank;
  Ram ram;
  const CartridgeMap& map;
  const uint32_t& slices;
  const InstructionBuffer& buffer;
  const int32_t& cycle_limit;
  uint32_t bus = 0;
  bool has_room = true;
  bool waited = false;

  CULE_INLINE MachineOfHandler(Thread<M>& thread, const MicroOp<M>* op, int64_t clock, uint32_t a,
                               uint32_t x, uint32_t y)
      : t(thread),
        r{thread.pc_of(op), a, x, y, thread.s, thread.n, thread.v, thread.z, thread.c, thread.d,
          thread.i, 0},
        cycle{clock + 1},
        bank(static_cast<uint32_t>(op->distance)),
        ram{thread.ram},
        map(thread.machine->map),
        slices(thread.machine->slices),
        buffer(thread.machine->buffer),
        cycle_limit(thread.machine->cycle_limit) {}

  CULE_INLINE uint32_t rom(uint32_t offset) const { return t.rom[offset]; }
  CULE_INLINE bool is_plain_rom(uint32_t address) const { return t.machine->is_plain_rom(address); }
  CULE_INLINE bool is_special(uint32_t address) const { return t.machine->is_special(address); }
  CULE_INLINE bool is_cartridge_register(uint32_t address) const {
    return t.machine->is_cartridge_register(address);
  }

  CULE_INLINE uint32_t read_chip(uint32_t address) {
    M& m = *t.machine;
    const int32_t before = m.instructions_left = t.instructions_left - cycle.instructions() + 1;
    m.cycle = cycle;
    m.r.pc = r.pc;
    m.bus = bus;
    const uint32_t value = read_chip_of(m, address);
    cycle += m.cycle - cycle;
    cycle.both += before - m.instructions_left;
    waited = before != m.instructions_left;
    return value;
  }
  CULE_INLINE uint32_t read_elsewhere(uint32_t address) {
    t.machine->cycle = cycle;
    return t.machine->read_elsewhere(address);
  }
  CULE_INLINE void write_elsewhere(uint32_t address, uint32_t value, bool after_write) {
    t.machine->cycle = cycle;
    t.machine->write_elsewhere(address, value, after_write);
  }
  template <class Reg>
  CULE_INLINE void record(const Reg reg, uint32_t value) {
    machine_with_room().record(reg, value);
  }
  template <class Reg>
  CULE_INLINE void write_tia(const Reg reg, uint32_t value, bool after_write) {
    M& m = machine_with_room();
    m.write_tia(reg, value, after_write);
    if (reg.number == tia_write::WSYNC) cycle += m.cycle - cycle;
  }

 private:
  static CULE_COLD uint32_t read_chip_of(M& m, uint32_t address) { return m.read_chip(address); }
  CULE_INLINE M& machine_with_room() const {
    M& m = *t.machine;
    m.cycle = cycle;
    CULE_ASSUME(m.has_room);
    return m;
  }
};

// Writes back the flags and the stack pointer that an instruction may have changed.
template <uint32_t kOpcode, class M>
CULE_INLINE void keep_registers(Thread<M>& t, const Registers& r) {
  using Decode = StaticDecode<kOpcode>;
  constexpr bool kPulls = is_one_of<kPlp>(kOpcode);
  if constexpr (Decode::may(kSetsNZ) || kPulls || is_one_of<kPla>(kOpcode)) {
    t.n = r.n;
    t.z = r.z;
  }
  if constexpr (Decode::may(kSetsC) || kPulls) t.c = r.c;
  if constexpr (Decode::may(kSetsV) || kPulls || is_one_of<kClv>(kOpcode)) t.v = r.v;
  if constexpr (kPulls || is_one_of<kCld, kSed>(kOpcode)) t.d = r.d;
  if constexpr (kPulls || is_one_of<kCli, kSei>(kOpcode)) t.i = r.i;
  if constexpr (Decode::may_also(kToS) || is_one_of<kJsr, kRts, kPha, kPhp, kPla, kPlp>(kOpcode))
    t.s = r.s;
}

#define CULE_THREAD_PARAMETERS \
  Thread<M>&t, const MicroOp<M>*op, int64_t clock, uint32_t a, uint32_t x, uint32_t y
#define CULE_CONTINUE(handler) CULE_TAIL_CALL return handler(t, op, clock, a, x, y)

// Handlers that end the run. The instruction of `op` is not executed yet.
template <class M>
CULE_COLD void leave(CULE_THREAD_PARAMETERS) {
  t.op = op;
  t.clock = clock;
  t.a = a;
  t.x = x;
  t.y = y;
}
template <class M>
CULE_COLD void leave_for_slow_path(CULE_THREAD_PARAMETERS) {
  t.needs_slow_path = true;
  CULE_CONTINUE(leave);
}

// The micro-operation that is `bytes` after `op` in memory.
template <class M>
CULE_INLINE const MicroOp<M>* moved_by(const MicroOp<M>* op, int32_t bytes) {
  return reinterpret_cast<const MicroOp<M>*>(reinterpret_cast<const char*>(op) + bytes);
}

// Executes a branch.
template <uint32_t kOpcode, class M>
void handle_branch(CULE_THREAD_PARAMETERS) {
  const Registers r{0, 0, 0, 0, 0, t.n, t.v, t.z, t.c, 0, 0, 0};
  using Decode = StaticDecode<kOpcode>;
  constexpr int64_t kTime = (int64_t{Decode::control & kCyclesMask} << Clock::kShift) + 1;
  clock += kTime;
  if (!branches(Decode{}, r)) {
    op += 2;
    CULE_CONTINUE(op->handler);
  }
  clock += int64_t{op->target} << Clock::kShift;
  op = moved_by(op, op->distance);
  if (clock >= t.end) CULE_CONTINUE(leave);
  CULE_CONTINUE(op->handler);
}

// Finds the code at `pc`, where an instruction of the bank that begins at `bank` leads.
template <uint32_t kPlaces, class M>
CULE_INLINE const MicroOp<M>* find_code(Thread<M>& t, uint32_t bank, uint32_t pc) {
  const M& m = *t.machine;
  uint32_t number = bank + window_offset(pc);
  if (kPlaces & kFromAnyBank) number = rom_offset(m.map, m.slices, pc);
  if (!is_cartridge_address(pc)) number = t.elsewhere;
  t.pc_minus_number = pc - number;
  return t.code + number;
}

// Executes an instruction that reaches kPlaces.
template <uint32_t kOpcode, uint32_t kPlaces, class M>
void handle(CULE_THREAD_PARAMETERS) {
  using RomAt = std::conditional_t<(kPlaces & kFromAnyBank) != 0, ShownRom, RomOfInstruction>;
  using Decode = StaticDecode<kOpcode>;
  constexpr bool kAccesses = (kPlaces & (kToTia | kToRegister | kFromChips | kToRiot)) != 0;
  constexpr GoesOn kGoesOn = facts_of(kOpcodeRows[kOpcode].instruction).goes_on;
  if constexpr (kAccesses) {
    if (clock >= t.end) CULE_CONTINUE(leave);
  }
  MachineOfHandler<M> m(t, op, clock, a, x, y);
  FastBus<MachineOfHandler<M>, kPlaces | kInDecimal, true, RomAt> bus(m);
  execute(Decode{}, bus, op->operand);
  if (bus.needs_slow_path) CULE_CONTINUE(leave_for_slow_path);
  keep_registers<kOpcode>(t, m.r);
  clock = m.cycle.both;
  a = m.r.a;
  x = m.r.x;
  y = m.r.y;
  if constexpr (kGoesOn == GoesOn::kNext) {
    op += Decode::control >> kLengthShift & 3;
    if constexpr ((kPlaces & kFromChips) != 0) {
      if (m.waited) CULE_CONTINUE(leave);
    }
  } else {
    if constexpr (kGoesOn == GoesOn::kAtOperand && !(kPlaces & kFromAnyBank)) {
      t.pc_minus_number = static_cast<uint32_t>(op->operand) - op->target;
      op = moved_by(op, op->distance);
    } else {
      op = find_code<kPlaces>(t, m.bank, m.r.pc);
    }
    if (clock >= t.end) CULE_CONTINUE(leave);
  }
  CULE_CONTINUE(op->handler);
}

}  // namespace cule

// The handlers of threaded code, made from the one path of cpu_6507/execute.h.
#pragma once

#include <type_traits>

#include "execution/threaded.h"

namespace cule {

// Writes back the flags and the stack pointer that an instruction may have changed.
template <uint32_t kOpcode, class M>
CULE_INLINE void keep_registers(Thread<M>& t, const Registers& r) {
  using Decode = StaticDecode<kOpcode>;
  constexpr bool kPulls = is_one_of<kPlp>(kOpcode);
  if constexpr (Decode::may(kBitTest) || kPulls) t.result = ResultFlags::of(r.n, r.z);
  else if constexpr (Decode::may(kSetsNZ) || is_one_of<kPla>(kOpcode)) t.result = {r.n};
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

template <class M>
void handle_elsewhere(CULE_THREAD_PARAMETERS);

// The micro-operation that is `bytes` after `op` in memory.
template <class M>
CULE_INLINE const MicroOp<M>* moved_by(const MicroOp<M>* op, int32_t bytes) {
  return reinterpret_cast<const MicroOp<M>*>(reinterpret_cast<const char*>(op) + bytes);
}

// Adds the time of a branch, and goes on to what follows it. Returns whether it is taken.
template <uint32_t kOpcode, class M>
CULE_INLINE bool pass(Thread<M>& t, const MicroOp<M>*& op, int64_t& clock) {
  const Registers r{0, 0, 0, 0, 0, t.result.n(), t.v, t.result.z(), t.c, 0, 0, 0};
  using Decode = StaticDecode<kOpcode>;
  clock += (int64_t{Decode::control & kCyclesMask} << Clock::kShift) + 1;
  const bool taken = branches(Decode{}, r);
  if (taken) clock += int64_t{op->target} << Clock::kShift;
  op = taken ? moved_by(op, op->distance) : op + length_of(Decode::op);
  return taken;
}

// Executes a branch.
template <uint32_t kOpcode, class M>
void handle_branch(CULE_THREAD_PARAMETERS) {
  if (pass<kOpcode>(t, op, clock) && clock >= t.end) CULE_CONTINUE(leave);
  CULE_CONTINUE(op->handler);
}

// Finds the code at `pc`, where an instruction of the bank that begins at `bank` leads.
template <uint32_t kRegions, class M>
CULE_INLINE const MicroOp<M>* find_code(Thread<M>& t, uint32_t bank, uint32_t pc) {
  const M& m = *t.machine;
  uint32_t number = bank + window_offset(pc);
  if (kRegions & kFromAnyBank) number = rom_offset(m.map, m.slices, pc);
  if (!is_cartridge_address(pc)) number = t.elsewhere;
  t.pc_minus_number = pc - number;
  return t.code + number;
}

constexpr uint32_t kAllRegions = (1u << kRegisterShift) - 1;  // all bits of a Region
constexpr uint32_t kAnyFirst = kFirstRam | kFirstRom | kFirstChips;
// The regions that a handler for `regions` has code for. If most accesses are to one of them, it is
// that one alone: the code is short, and goes on to the handler for all of them if it must.
constexpr uint32_t first_of_regions(uint32_t regions) {
  const uint32_t facts = regions & ~(kAllRegions | kAnyFirst);
  if (regions & kFirstChips) return facts | kFromChips;
  if (regions & kFirstRam) return facts | kInRam;
  if (regions & kFirstRom) return facts | kInRom;
  return regions;
}

// Where the program goes on after an opcode that is not a branch.
constexpr GoesOn goes_on_after(uint32_t opcode) {
  return facts_of(kOpcodeRows[opcode].instruction).goes_on;
}
// Whether an instruction that reaches `regions` may begin only before the end of the turn.
constexpr bool is_access(uint32_t regions) {
  return (regions & (kToTia | kToRegister | kFromChips | kToRiot)) != 0;
}

// Whether an instruction was executed. kHasWaited: it was, and a loop that waits for the timer was
// skipped, so the clock may be far beyond the end of the turn.
enum class Done { kYes, kNo, kHasWaited };

// Executes an instruction that reaches kRegions, all but the jump to the next one. If it cannot,
// nothing changes.
template <uint32_t kOpcode, uint32_t kRegions, class M>
CULE_INLINE Done perform(Thread<M>& t, const MicroOp<M>* op, int64_t& clock, uint32_t& a,
                         uint32_t& x, uint32_t& y, uint32_t& pc) {
  using RomAt = std::conditional_t<(kRegions & kFromAnyBank) != 0, ShownRom, RomOfInstruction>;
  using Machine = MachineOfHandler<M, (kRegions & kInPlainRom) != 0>;
  Machine m(t, op, clock, a, x, y);
  FastBus<Machine, kRegions | kInDecimal, true, RomAt> bus(m);
  execute(StaticDecode<kOpcode>{}, bus, op->operand);
  if (bus.needs_slow_path) return Done::kNo;
  keep_registers<kOpcode>(t, m.r);
  clock = m.cycle.both;
  a = m.r.a;
  x = m.r.x;
  y = m.r.y;
  pc = m.r.pc;
  return (kRegions & kFromChips) && m.waited ? Done::kHasWaited : Done::kYes;
}

// Executes an instruction that reaches the regions in kSet.
template <uint32_t kOpcode, uint32_t kSet, class M>
void handle(CULE_THREAD_PARAMETERS) {
  constexpr uint32_t kRegions = first_of_regions(kSet);
  constexpr GoesOn kGoesOn = goes_on_after(kOpcode);
  if constexpr (is_access(kRegions)) {
    if (clock >= t.end) CULE_CONTINUE(leave);
  }
  uint32_t pc;
  const Done done = perform<kOpcode, kRegions>(t, op, clock, a, x, y, pc);
  if (done == Done::kNo) {
    if constexpr (kRegions == kSet) CULE_CONTINUE(leave_for_slow_path);
    else CULE_CONTINUE((handle<kOpcode, kSet & ~kAnyFirst, M>));
  }
  if constexpr (kGoesOn == GoesOn::kNext) {
    op += length_of(StaticDecode<kOpcode>::op);
    if (done == Done::kHasWaited) CULE_CONTINUE(leave);
  } else {
    if constexpr (kGoesOn == GoesOn::kAtOperand && !(kRegions & kFromAnyBank)) {
      t.pc_minus_number = static_cast<uint32_t>(op->operand) - op->target;
      op = moved_by(op, op->distance);
    } else {
      op = find_code<kRegions>(t, static_cast<uint32_t>(op->distance), pc);
    }
    if (clock >= t.end) CULE_CONTINUE(leave);
  }
  CULE_CONTINUE(op->handler);
}

// Executes two instructions that often follow each other. The first reaches the regions in kSet.
// The second is a branch, or reaches kRegions2. Neither reads a chip.
template <uint32_t kOpcode, uint32_t kSet, uint32_t kOpcode2, uint32_t kRegions2, class M>
void handle_pair(CULE_THREAD_PARAMETERS) {
  constexpr uint32_t kRegions = first_of_regions(kSet);
  static_assert(!is_access(kRegions) && !(kRegions2 & kFromChips));
  uint32_t pc;
  if (perform<kOpcode, kRegions>(t, op, clock, a, x, y, pc) == Done::kNo) {
    if constexpr (kRegions == kSet) CULE_CONTINUE(leave_for_slow_path);
    else CULE_CONTINUE((handle<kOpcode, kSet & ~kAnyFirst, M>));
  }
  op += length_of(StaticDecode<kOpcode>::op);
  if constexpr (StaticDecode<kOpcode2>::may_also(kBranch)) {
    if (pass<kOpcode2>(t, op, clock) && clock >= t.end) CULE_CONTINUE(leave);
  } else {
    if (is_access(kRegions2) && clock >= t.end) CULE_CONTINUE(leave);
    if (perform<kOpcode2, kRegions2>(t, op, clock, a, x, y, pc) == Done::kNo)
      CULE_CONTINUE(leave_for_slow_path);
    op += length_of(StaticDecode<kOpcode2>::op);
  }
  CULE_CONTINUE(op->handler);
}

}  // namespace cule

// The core that runs threaded code (execution/threaded.h).
#pragma once

#include "execution/micro_code.h"

namespace cule {

template <class M>
struct ThreadedCore {
  const MicroCode<M>& code;

  static CULE_INLINE uint32_t game_of(const ConsoleConfig& config) { return config.game; }

  // Runs the frame on copies of the RAM and of the TIA's state, which handlers reach without a
  // pointer.
  void run(M& m) const {
    Thread<M> t;
    const auto ram = m.ram;
    memcpy(t.ram, ram.bytes, kRamBytes);
    t.tia = ram.tia();
    m.ram = {t.ram, &t.tia, ram.sound};
    t.code = code.ops();
    t.elsewhere = code.elsewhere();
    t.rom = code.rom();
    t.decoder = &code;
    t.machine = &m;
    run_in_step(m, FreePace{}, kLongestInstruction, [&](uint32_t, int32_t end) CULE_INLINE_LAMBDA {
      m.has_room = m.make_room(end, kStretchCycles);
      while (m.runs() && m.cycle < end) run_once(m, t, end);
      m.has_room = false;
    });
    m.ram = ram;
    memcpy(ram.bytes, t.ram, kRamBytes);
    ram.tia() = t.tia;
  }

 private:
  // Whether handlers can execute code at `pc`.
  static bool can_run(uint32_t pc) { return is_cartridge_address(pc) || is_ram_address(pc); }

  void run_once(M& m, Thread<M>& t, int32_t end) const {
    // An instruction takes two cycles at least.
    const bool lasts = m.instructions_left > (end - m.cycle) / 2 + 2 + code.longest_run();
    if (m.has_room && lasts && can_run(m.r.pc)) {
      run_handlers(m, t, end);
      if (!t.needs_slow_path || m.cycle >= end) return;
    }
    take_slow_path(m, end);
  }

  void run_handlers(M& m, Thread<M>& t, int32_t end) const {
    const uint32_t number = code.number_of(m.slices, m.r.pc);
    Registers& r = m.r;
    t.s = r.s;
    t.result = ResultFlags::of(r.n, r.z);
    t.c = r.c;
    t.v = r.v;
    t.d = r.d;
    t.i = r.i;
    t.pc_minus_number = r.pc - number;
    t.end = Clock::at(end).both;
    t.instructions_left = m.instructions_left;
    t.buffer = m.buffer;
    t.seen = m.seen;
    t.touched_cycle = m.touched_cycle;
    t.hmove_cycle = m.hmove_cycle;
    t.needs_slow_path = false;
    const MicroOp<M>* const op = t.code + number;
    op->handler(t, op, Clock::at(m.cycle).both, r.a, r.x, r.y);
    const Clock clock{t.clock};
    r = {t.pc_of(t.op), t.a, t.x, t.y, t.s, t.result.whole_n(), t.v, t.result.z(), t.c, t.d, t.i,
         0};
    m.cycle = clock;
    m.instructions_left = t.instructions_left - clock.instructions();
    m.buffer = t.buffer;
    m.seen = t.seen;
    m.touched_cycle = t.touched_cycle;
    m.hmove_cycle = t.hmove_cycle;
    // Handlers do not keep the last byte on the bus. It matters if code is fetched from the TIA's
    // addresses. From a handler only a jump leads there, which reads its target's high byte last.
    m.bus = r.pc >> 8;
  }

  // Executes one instruction, or those up to the next that handlers can execute.
  static CULE_COLD void take_slow_path(M& m, int32_t end) {
    Predecoded op = m.look_ahead();
    bool fetched = false;
    do {
      fetched = opcode_of(op) == kFetchSlowlyCode;
      op = execute(DynamicDecode{op}, m, operand_of(op));
      --m.instructions_left;
    } while (m.runs() && (fetched || (m.cycle < end && !can_run(m.r.pc))));
  }
};

}  // namespace cule

// The fast path: a bus (cpu_6507/bus.h) with RAM, plain ROM, and some of the chips. Most
// instructions need no more. Bank switching, decimal mode and the frame's end are left out, because
// with them the code would be many times as large. An instruction that needs these falls back to
// the slow path, the whole machine, before it has changed anything that cannot be restored.
#pragma once

#include "console/machine.h"
#include "cpu_6507/execute.h"

namespace cule {

// Executes `op` on the whole machine: the slow path.
template <class M>
CULE_COLD Predecoded execute_on_slow_path(M& m, Predecoded op) {
  return execute(DynamicDecode{op}, m, operand_of(op));
}

// Executes `op`, which a FastBus cannot do. If the code is in RAM, this only fetches the
// instruction: it returns it as the next one.
template <class M>
CULE_INLINE Predecoded fall_back_to_slow_path(M& m, Predecoded op) {
  if (opcode_of(op) == kFetchSlowlyCode && is_ram_address(m.r.pc) && is_ram_address(m.r.pc + 2)) {
    ++m.instructions_left;
    return m.fetch_from_ram();
  }
  M whole = m;
  const Predecoded next = execute_on_slow_path(whole, op);
  m.take(whole);
  return next;
}

// What an instruction may reach, as a set. Each region costs code. So an instruction of a block
// gets only the regions that a profile has seen it need (execution/profile.h). If the address is a
// compile-time constant, a region costs nothing.
enum Region : uint32_t {
  kInRam = 1,
  kInRom = 2,      // plain ROM
  kFromChips = 4,  // reads of the TIA and the RIOT
  kToTia = 8,      // writes to the TIA, except to VSYNC and VBLANK, which can end the frame
  kToRiot = 16,
  kToRegister = 32,    // writes to one register of the TIA: its number is above kRegisterShift
  kInDecimal = 64,     // not a region: decimal mode may be on; ADC and SBC then need the slow path
  kInCartridge = 128,  // a Superchip's RAM, the DPC's registers
};
constexpr uint32_t kRegisterShift = 8, kRegisterMask = 0x3F;
// Not regions either, but facts that are known when an instruction is decoded:
constexpr uint32_t kSurely = 1u << 14,  // it reaches its one region for sure
    kFromAnyBank = 1u << 15,            // ROM may be in another bank than the instruction
    kInPlainRom = 1u << 16,             // the cartridge has no special addresses
    kPointerInRam = 1u << 17,           // so it surely is
    // Most of its accesses are to this region. A handler for that region alone comes first.
    kFirstRam = 1u << 18, kFirstRom = 1u << 19, kFirstChips = 1u << 20;
constexpr uint32_t to_register(uint32_t number) { return kToRegister | number << kRegisterShift; }
constexpr uint32_t kAllChips = kFromChips | kToTia | kToRiot;
constexpr uint32_t kInterpretedRegions = kInRam | kInRom | kFromChips | kToTia | kInDecimal;

// Finds ROM in the bank that the cartridge shows now.
struct ShownRom {
  template <class M>
  static CULE_INLINE uint32_t offset(const M& m, uint32_t address) {
    return rom_offset(m.map, m.slices, address);
  }
};
// Finds ROM in the bank that begins at byte `kFirst`: the whole window must show it.
template <uint32_t kFirst>
struct RomOfBank {
  template <class M>
  static CULE_INLINE uint32_t offset(const M& m, uint32_t address) {
    const uint32_t bytes = m.map.scheme == Scheme::k2K ? kWindowBytes / 2 : kWindowBytes;
    return kFirst + (address & (bytes - 1));
  }
};

// The bus for one instruction. The interpreter has one kind for all instructions. In a block
// (`kInBlock`) the next instruction is known, and without kInDecimal decimal mode is off.
//
// The caller makes sure that the instruction buffer has room and that the frame does not reach its
// limit of scanlines (Machine::make_room), or says that there is no room.
template <class M, uint32_t kRegions, bool kInBlock = true, class RomAt = ShownRom>
struct FastBus {
  static constexpr Tier kLastTier = kInBlock ? Tier::kUsed : Tier::kFrequent;
  using Register = KnownRegister<(kRegions >> kRegisterShift & kRegisterMask)>;
  M& machine;
  Registers& r;
  decltype(M::cycle)& cycle;
  uint32_t& bus;
  bool moved = false;
  bool no_room;  // the frame's end or the buffer's is near: writes to the TIA need the slow path
  uint32_t needs_slow_path = 0;  // if not 0, the instruction needs it

  // For the interpreter: the instruction, and the machine before it.
  Predecoded op;
  uint32_t pc_before, bus_before;
  int32_t cycle_before;

  CULE_INLINE explicit FastBus(M& m)
      : machine(m), r(m.r), cycle(m.cycle), bus(m.bus), no_room(false) {}
  CULE_INLINE FastBus(M& m, Predecoded next, bool has_no_room)
      : machine(m),
        r(m.r),
        cycle(m.cycle),
        bus(m.bus),
        no_room(has_no_room),
        op(next),
        pc_before(m.r.pc),
        bus_before(m.bus),
        cycle_before(m.cycle) {}

  static constexpr bool reaches(uint32_t regions) { return (kRegions & regions) != 0; }

  CULE_INLINE bool cannot_do_rare(uint32_t opcode, uint32_t operand) {
    needs_slow_path |= !can_do_rare(opcode, operand);
    return needs_slow_path != 0;
  }
  CULE_INLINE bool cannot_do(uint32_t control, uint32_t address) {
    // With masks, not with conditions: a GPU has few predicate registers.
    needs_slow_path |=
        control & ((is_readable(address) ? 0u : +kReads) | (is_writable(address) ? 0u : +kWrites));
    if constexpr (reaches(kInDecimal)) needs_slow_path |= control & (r.d ? +kSetsV : 0u);
    return needs_slow_path != 0;
  }
  // The interpreter executes the instruction on the slow path. A block returns, and checks
  // needs_slow_path itself.
  CULE_INLINE Predecoded fall_back() {
    if constexpr (kInBlock) {
      return {};
    } else {
      r.pc = pc_before;
      cycle = cycle_before;
      bus = bus_before;
      return fall_back_to_slow_path(machine, op);
    }
  }

  // Whether a rare instruction is of a tier up to kLastTier, and this bus reaches all that it
  // touches: the stack, or `address`, where JMP (indirect) finds its target.
  CULE_INLINE bool can_do_rare(uint32_t opcode, uint32_t address) const {
    if (is_one_of<kJsr>(opcode)) return reaches(kInRam) && r.s > kFirstInRam;
    if (is_one_of<kRts>(opcode)) return reaches(kInRam) && can_return();
    if (is_one_of<kPha, kPhp>(opcode)) return can_push();
    if (is_one_of<kPla>(opcode)) return can_pull();
    if (is_one_of<kJmpIndirect>(opcode)) return can_jump(address);
    if (kLastTier == Tier::kFrequent) return false;
    if (is_one_of<kPlp>(opcode)) {
      return reaches(kInRam) && pulls_from_ram() &&
             (reaches(kInDecimal) || !(pulled() & kDecimalInStatus));
    }
    if (is_one_of<kCli, kSei, kClv, kCld>(opcode)) return true;
    return is_one_of<kSed>(opcode) && reaches(kInDecimal);
  }
  static CULE_INLINE bool is_special(uint32_t) { return false; }  // can_return has checked it

  CULE_INLINE uint32_t read_if(bool wanted, uint32_t address, uint32_t otherwise) {
    uint32_t value = otherwise;
    const bool in_ram = reaches(kInRam) && wanted &&
                        (!reaches(kInRom | kFromChips | kInCartridge) || is_ram_address(address));
    const bool in_cartridge =
        reaches(kInCartridge) && wanted &&
        (!reaches(kInRam | kInRom | kFromChips) || machine.is_cartridge_register(address));
    const bool in_rom =
        reaches(kInRom) && wanted && !in_cartridge &&
        (!reaches(kInRam | kFromChips | kInCartridge) || is_cartridge_address(address));
    if (in_ram) value = machine.ram.get(ram_index(address));
    if constexpr (reaches(kInRom)) {
      const uint32_t offset = RomAt::offset(machine, address);
      if (in_rom) value = machine.rom(offset);
    }
    if constexpr (reaches(kInCartridge)) {
      if (in_cartridge) value = machine.read_elsewhere(address);
    }
    if constexpr (reaches(kFromChips)) {
      if (wanted && !in_ram && !in_rom && !in_cartridge) value = machine.read_chip(address);
    }
    if (wanted) bus = value;
    return value;
  }
  // A read of a rare instruction, which can_do_rare has allowed: from the stack, or from where JMP
  // (indirect) finds its target.
  CULE_INLINE uint32_t read(uint32_t address) {
    if (kInBlock) return read_if(true, address, 0);
    bus = machine.ram.get(ram_index(address));
    return bus;
  }

  CULE_INLINE uint32_t read_pointer_if(bool wanted, uint32_t address) {
    if (!wanted) return 0;
    if constexpr (!reaches(kPointerInRam))
      needs_slow_path |= address < kFirstInRam || address == kLastInPage;
    const uint32_t pointer = two_bytes_of_ram(address);
    bus = pointer >> 8;
    return pointer;
  }

  // Pushes onto the stack. The stack may be in the TIA's registers.
  CULE_INLINE void write(uint32_t address, uint32_t value, bool) {
    bus = value;
    if constexpr (reaches(kInRam)) {
      if (!reaches(kToTia) || is_ram_address(address)) {
        machine.ram.set(ram_index(address), value);
        return;
      }
    }
    if constexpr (reaches(kToRegister)) record_only(Register{}, value);
    else if constexpr (reaches(kToTia)) record_only(written(address), value);
  }

  CULE_INLINE void write_if(bool wanted, uint32_t address, uint32_t value) {
    if (!wanted) return;
    bus = value;
    if constexpr (reaches(kToRegister)) {
      write_tia(Register{}, value);
    } else {
      const bool in_ram = reaches(kInRam) && (!reaches(kToTia | kToRiot | kInCartridge) ||
                                              is_ram_address(address));
      if (in_ram) machine.ram.set(ram_index(address), value);
      if constexpr (reaches(kToTia | kToRiot | kInCartridge)) {
        if (in_ram) return;
        const bool elsewhere =
            (reaches(kToRiot) && is_riot_address(address)) ||
            (reaches(kInCartridge) && machine.is_cartridge_register(address));
        if (elsewhere) machine.write_elsewhere(address, value, false);
        else if (reaches(kToTia)) write_tia(written(address), value);
      }
    }
  }

  CULE_INLINE Predecoded look_ahead() const {
    if constexpr (kInBlock) return {};  // in a block the next instruction is known
    else return machine.look_ahead();
  }
  static CULE_INLINE Predecoded fetch_slowly() { return {}; }

 private:
  static CULE_INLINE AnyRegister written(uint32_t address) {
    return {tia_register_written(address)};
  }
  CULE_INLINE uint32_t two_bytes_of_ram(uint32_t address) const {
    return machine.ram.get(ram_index(address)) | machine.ram.get(ram_index(address + 1)) << 8;
  }

  CULE_INLINE bool is_readable(uint32_t address) const {
    if constexpr (reaches(kSurely)) return true;
    constexpr uint32_t kAll = kInRam | kInRom | kFromChips;
    if ((kRegions & (kAll | kInCartridge)) == kAll) return !machine.is_special(address);
    const bool in_ram = is_ram_address(address);
    return (reaches(kInRam) && in_ram) | (reaches(kInRom) && machine.is_plain_rom(address)) |
           (reaches(kFromChips) && !is_cartridge_address(address) && !in_ram) |
           (reaches(kInCartridge) && machine.is_cartridge_register(address));
  }
  CULE_INLINE bool is_writable(uint32_t address) const {
    if constexpr (reaches(kSurely)) return true;
    const uint32_t reg = tia_register_written(address);
    const bool to_tia = is_tia_address(address);
    return (reaches(kInRam) && is_ram_address(address)) |
           (reaches(kToRiot) && is_riot_address(address)) |
           (reaches(kInCartridge) && machine.is_cartridge_register(address)) |
           (reaches(kToTia) && to_tia & (reg > kLastVertical) & !no_room) |
           (reaches(kToRegister) && to_tia & (reg == Register::number));
  }

  CULE_INLINE bool can_push() const {
    const uint32_t reg = tia_register_written(r.s);
    return (reaches(kInRam) && r.s >= kFirstInRam) |
           (reaches(kToTia) && r.s < kFirstInRam && only_recorded(reg) && !no_room) |
           (reaches(kToRegister) && r.s < kFirstInRam && reg == Register::number &&
            only_recorded(Register::number));
  }
  CULE_INLINE bool pulls_from_ram() const { return r.s >= kFirstInRam && r.s < kLastInPage; }
  CULE_INLINE uint32_t pulled() const { return machine.ram.get(ram_index(r.s + 1)); }
  CULE_INLINE bool can_pull() const {
    if (kInBlock && reaches(kFromChips))
      return reaches(kInRam) || r.s < kFirstInRam - 1;  // two bytes
    return reaches(kInRam) && pulls_from_ram();
  }
  CULE_INLINE bool can_jump(uint32_t address) const {
    if ((address & 0xFF) == kLastInPage) return false;
    if (!kInBlock) return is_ram_address(address);
    const bool in_rom = machine.is_plain_rom(address) && machine.is_plain_rom(address + 1);
    return (reaches(kInRam) && is_ram_address(address)) | (reaches(kInRom) && in_rom);
  }
  CULE_INLINE bool can_return() const {
    if (r.s < kFirstInRam - 1 || r.s > kLastInPage - 2) return false;
    const CartridgeMap& map = machine.map;
    const bool all_plain = map.special_end == 0 && map.special_begin >= kWindowBytes;
    if (!kInBlock && all_plain) return true;
    const uint32_t back = two_bytes_of_ram(r.s + 1);
    // If code runs at the TIA's addresses, it depends on the last byte on the bus, which a block
    // does not keep.
    if (kInBlock && is_tia_address((back + 1) & 0xFFFF)) return false;
    return all_plain || !machine.is_special(back);
  }

  // Tells the compiler that there is room, by a field that is then constant. Assumptions
  // (CULE_ASSUME) would do the same, but the compiler looks at all of them again for every addition
  // to `cycle`: with hundreds of them, that took most of its time.
  CULE_INLINE void assume_room() const {
    CULE_CHECK(cycle < machine.cycle_limit && cycle <= static_cast<int32_t>(kMaxEntryCycle) &&
               machine.buffer.count < machine.buffer.capacity);
    machine.has_room = true;
  }
  template <class To>
  CULE_INLINE void record_only(const To reg, uint32_t value) {
    assume_room();
    machine.record(reg, value);
    machine.has_room = false;
  }
  template <class To>
  CULE_INLINE void write_tia(const To reg, uint32_t value) {
    assume_room();
    CULE_ASSUME(reg.number > kLastVertical);
    machine.write_tia(reg, value, false);
    machine.has_room = false;
  }
};

// The bus of the interpreter's fast path.
template <class M>
using InterpreterBus = FastBus<M, kInterpretedRegions, false>;

}  // namespace cule

// A profile: counts which instructions of a ROM a console executes and what they reach, while the
// program is interpreted. Host only.
#pragma once

#include "execution/block.h"

namespace cule {

// The kinds of instructions that are counted: an instruction is of the first kind whose regions are
// enough for it.
constexpr uint32_t kProfiledRegions[] = {kInRam, kInRom, kFromChips, kToTia, kAllChips,
                                        kInCartridge};
constexpr uint32_t kNumProfiledRegions = sizeof(kProfiledRegions) / sizeof(uint32_t);

// There is an entry for each byte of the image, and a last one for code that is elsewhere: of that
// one only the count matters.
struct ProfileEntry {
  uint32_t count;    // how often the instruction that begins here was executed
  uint32_t refused;  // how often a block could not have executed it
  uint32_t decimal;  // how often it was executed in decimal mode
  uint32_t entered;  // how often the instruction before it in memory was not executed just before
  uint32_t pc;       // its address, the last time
  // How often each of kProfiledRegions was enough and those before it were not.
  uint32_t reached[kNumProfiledRegions];
  uint32_t reg;        // with kToTia: the register that it wrote to the last time
  uint32_t other_reg;  // how often that was not the register of the time before
};

class ProfilingCore {
 public:
  explicit ProfilingCore(ProfileEntry* entries) : entries_(entries) {}

  template <class M>
  void run(M& m) const {
    interpret(m, *this);
  }

  template <class M>
  Predecoded operator()(M& m, Predecoded op) const {
    if (opcode_of(op) == kFetchSlowlyCode) {  // the instruction is not fetched yet
      next_ = kNowhere;
    } else if (!is_cartridge_address(m.r.pc)) {
      ++entries_[m.rom_bytes].count;
      next_ = kNowhere;
    } else {
      ProfileEntry& entry = entries_[m.code_offset(m.r.pc)];
      ++entry.count;
      entry.entered += m.r.pc != next_;
      entry.pc = m.r.pc;
      note_reach(entry, m, op);
      next_ = (m.r.pc + length_of(op)) & 0xFFFF;
    }
    return DynamicCore{}(m, op);
  }

 private:
  static constexpr uint32_t kNowhere = ~0u;
  ProfileEntry* entries_;
  mutable uint32_t next_ = kNowhere;

  template <class M>
  static void note_reach(ProfileEntry& entry, const M& m, Predecoded op) {
    entry.decimal += m.r.d;
    entry.refused += !note_region<0>(entry, m, op);
  }
  // Whether a block can execute the instruction if it reaches kProfiledRegions[kRegion], or a later
  // one.
  template <uint32_t kRegion, class M>
  static bool note_region(ProfileEntry& entry, const M& m, Predecoded op) {
    if constexpr (kRegion == kNumProfiledRegions) {
      return false;
    } else {
      constexpr uint32_t kRegions = kProfiledRegions[kRegion];
      M copy = m;
      FastBus<M, kRegions | kInDecimal> fast(copy);
      const DynamicDecode decode{op};
      const bool rare = op.control & kRare;
      const uint32_t address = rare ? m.r.s : effective_address(decode, fast, operand_of(op));
      const bool refused = rare ? fast.cannot_do_rare(opcode_of(op), operand_of(op))
                                : fast.cannot_do(op.control, address);
      if (refused) return note_region<kRegion + 1>(entry, m, op);
      if (kRegions == kToTia) {
        const uint32_t reg = tia_register_written(address);
        entry.other_reg += entry.reached[kRegion] != 0 && reg != entry.reg;
        entry.reg = reg;
      }
      ++entry.reached[kRegion];
      return true;
    }
  }
};

}  // namespace cule

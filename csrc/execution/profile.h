// Which instructions of a ROM a console executes, counted while it is interpreted. Host only.
#pragma once

#include "execution/block.h"

namespace cule {

// What an instruction may reach to be counted as one of a kind, the first that is enough.
constexpr uint32_t kProfiledPlaces[] = {kInRam, kInRom, kFromChips, kToTia, kAllChips,
                                        kInCartridge};
constexpr uint32_t kNumProfiledPlaces = sizeof(kProfiledPlaces) / sizeof(uint32_t);

// One for each byte of the image, and one, of which only the count matters, for what is executed
// elsewhere.
struct ProfileEntry {
  uint32_t count;    // how often the instruction that begins here was executed
  uint32_t refused;  // and how often a block could not have done it
  uint32_t decimal;  // and how often it was executed in decimal mode
  uint32_t entered;  // and how often from anywhere but the instruction before it
  uint32_t pc;       // at the last time
  uint32_t reached[kNumProfiledPlaces];  // how often each of kProfiledPlaces was enough, and those
                                         // before were not
  uint32_t reg;       // with kToTia: the register that was written to the last time
  uint32_t other_reg; // and how often that was another than the time before
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
    if (opcode_of(op) == kFetchSlowlyCode) {  // no instruction yet
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
    entry.refused += !note_place<0>(entry, m, op);
  }
  // Whether a block does the instruction if it reaches kProfiledPlaces[kPlace], or one after it.
  template <uint32_t kPlace, class M>
  static bool note_place(ProfileEntry& entry, const M& m, Predecoded op) {
    if constexpr (kPlace == kNumProfiledPlaces) {
      return false;
    } else {
      constexpr uint32_t kPlaces = kProfiledPlaces[kPlace];
      M copy = m;
      FastBus<M, kPlaces | kInDecimal> fast(copy);
      const DynamicDecode decode{op};
      const bool rare = op.control & kRare;
      const uint32_t address = rare ? m.r.s : effective_address(decode, fast, operand_of(op));
      const bool refused = rare ? fast.cannot_do_rare(opcode_of(op), operand_of(op))
                                : fast.cannot_do(op.control, address);
      if (refused) return note_place<kPlace + 1>(entry, m, op);
      if (kPlaces == kToTia) {
        const uint32_t reg = tia_register_written(address);
        entry.other_reg += entry.reached[kPlace] != 0 && reg != entry.reg;
        entry.reg = reg;
      }
      ++entry.reached[kPlace];
      return true;
    }
  }
};

}  // namespace cule

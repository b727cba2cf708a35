// Which instructions of a ROM a console executes, counted while it is interpreted. Host only.
#pragma once

#include "console/block.h"

namespace cule {

// One for each byte of the image.
struct ProfileEntry {
  uint32_t count;    // how often the instruction that begins here was executed
  uint32_t odd;      // and how often a block could not have done it
  uint32_t in_chips; // or only one in which it reaches the chips (CULE_DO_IN_CHIPS)
  uint32_t entered;  // and how often from anywhere but the instruction before it
  uint32_t pc;       // at the last time
};

class ProfilingCore {
 public:
  explicit ProfilingCore(ProfileEntry* entries) : entries_(entries) {}

  template <class M>
  void run(M& m) const {
    interpret(m, *this);
  }

  template <class M>
  MicroOp operator()(M& m, MicroOp op) const {
    if (opcode_of(op) == kFetchSlowlyCode || !(m.r.pc & 0x1000)) {
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
  static void note_reach(ProfileEntry& entry, const M& m, MicroOp op) {
    M copy = m, other = m;
    const bool known = reach_in_block(op.control, operand_of(op)) != Reach::kInBlock;
    if (!known && !is_odd_to<Reach::kInBlock>(copy, op)) return;
    if (is_odd_to<Reach::kInChips>(other, op)) ++entry.odd;
    else if (!known) ++entry.in_chips;
  }
  template <Reach kReach, class M>
  static bool is_odd_to(M& copy, MicroOp op) {
    PlainView<M, kReach> view(copy);
    const DynamicDecode decode{op};
    if (op.control & kRare) return view.leaves_rare(opcode_of(op), operand_of(op));
    return view.leaves(op.control, effective_address(decode, view, operand_of(op)));
  }
};

}  // namespace cule

// The runs of a segment of a frame, written down by the thread that finds them (run_finder.h), for
// the one that joins them (segment_boxes.h).
#pragma once

#include "tia/render/run_finder.h"

namespace cule {

// The entries of a log, in 32 bits, of which one says the kind. One for each run, as in RunLooks,
// and whether it is of a piece. After the runs of a scanline one for that, and for those below that
// are like it: the first and the last of them, kLineBits each, and a bit for each object that has
// the same runs as on the scanline above.
struct RunEntry {
  static constexpr int kLineBits = 11, kLineShift = 22, kSameShift = 24;
  static constexpr uint32_t kOfPiece = 1u << 21, kLine = 1u << kLineShift;
  uint32_t word;

  static CULE_INLINE RunEntry of_run(RunLooks looks, bool of_piece) {
    return {looks.word | (of_piece ? kOfPiece : 0)};
  }
  static CULE_INLINE RunEntry of_lines(int first, int last, uint32_t same) {
    return {static_cast<uint32_t>(first) | static_cast<uint32_t>(last) << kLineBits | kLine |
            same << kSameShift};
  }
  CULE_INLINE bool is_line() const { return word & kLine; }
  CULE_INLINE bool of_piece() const { return word & kOfPiece; }
  CULE_INLINE RunLooks looks() const { return {word & ~kOfPiece}; }
  CULE_INLINE int first() const { return static_cast<int>(word & kLineMask); }
  CULE_INLINE int last() const { return static_cast<int>(word >> kLineBits & kLineMask); }
  CULE_INLINE uint32_t same() const { return word >> kSameShift; }

 private:
  static constexpr uint32_t kLineMask = (1u << kLineBits) - 1;
  static_assert(2 * kLineBits <= kLineShift, "the lines fit below the kind");
  static_assert(RunLooks::kClassBits < kLine, "no run has the bit");
};

// Room for a log: a word that is 1 more than the number of entries that there are, or would be if
// there were room; and the entries. If it is 0, nothing has been written down.
constexpr int kRunLogWords = 320, kMostRunEntries = kRunLogWords - 1;

// Room for the boxes of a segment (segment_boxes.h).
constexpr int kSegmentBoxWords = 448;

// The frames of a step that are seen: the last one, and the one before it.
enum SeenFrame : uint32_t { kLastFrame, kFrameBefore, kSeenFrames };

// Writes a log over an earlier one, and finds out whether they differ.
class RunWriter {
 public:
  explicit CULE_INLINE RunWriter(uint32_t* words) : words_(words), before_(words[1]) {}

  CULE_INLINE void begin_line(int line) {
    end_lines();
    first_ = last_ = line;
  }
  CULE_INLINE void repeat_line(int line) { last_ = line; }
  CULE_INLINE void repeat_object(uint32_t object) { same_ |= 1u << object; }
  CULE_INLINE void add_run(uint32_t object, uint32_t color, int begin, int end, bool of_piece) {
    write(RunEntry::of_run(RunLooks::of(object, 0, color, begin, end), of_piece));
  }
  CULE_INLINE void finish() {
    end_lines();
    differs_ |= words_[0] != 1 + count_;
    words_[0] = 1 + count_;
  }

  // After `finish`: whether the log is another one than before.
  CULE_INLINE bool differs() const { return differs_; }

 private:
  uint32_t* words_;
  uint32_t count_ = 0, before_;  // the entry that was there, read before it is needed
  bool differs_ = false;
  // The scanlines that are not written down yet, and which objects are the same as above them.
  int first_ = kNoLine, last_ = kNoLine;
  uint32_t same_ = 0;

  CULE_INLINE void end_lines() {
    if (first_ == kNoLine) return;
    write(RunEntry::of_lines(first_, last_, same_));
    same_ = 0;
  }
  CULE_INLINE void write(RunEntry entry) {
    if (count_ < kMostRunEntries && before_ != entry.word) {
      differs_ = true;
      words_[1 + count_] = entry.word;
    }
    ++count_;
    if (count_ < kMostRunEntries) before_ = words_[1 + count_];
  }
};

// Whether a log had room for all entries, and then how many it has.
CULE_INLINE bool is_complete(const uint32_t* words) { return words[0] <= 1 + kMostRunEntries; }
CULE_INLINE int num_entries(const uint32_t* words) { return static_cast<int>(words[0]) - 1; }

}  // namespace cule

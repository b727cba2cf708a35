// The runs of a segment of a frame, written down by the thread that finds them (run_finder.h), for
// the one that joins them (segment_boxes.h).
#pragma once

#include "tia/render/run_finder.h"

namespace cule {

// The entries of a log: what RunFinder tells, in 32 bits, of which two say the kind.
//   kRun        begin, end, object and color, as in RunLooks, and whether it is of a piece
//   kNewLine    the scanline
//   kSameLines  the first and the last scanline, kRunLineBits each
//   kSameObject the object
enum class RunEntry : uint32_t { kRun, kNewLine, kSameLines, kSameObject };
constexpr int kRunEntryShift = 22, kRunLineBits = 11;
constexpr uint32_t kOfPiece = 1u << 21;
static_assert(2 * kRunLineBits <= kRunEntryShift, "the lines fit below the kind");

// Room for a log: a word that says how many entries there are, or would be if there were room, and
// the entries.
constexpr int kRunLogWords = 320, kMostRunEntries = kRunLogWords - 1;

// The frames of a step that are seen: the last one, and the one before it.
enum SeenFrame : uint32_t { kLastFrame, kFrameBefore, kSeenFrames };

class RunWriter {
 public:
  explicit CULE_INLINE RunWriter(uint32_t* words) : words_(words) {}

  CULE_INLINE void begin_line(int line) { put(RunEntry::kNewLine, static_cast<uint32_t>(line)); }
  CULE_INLINE void repeat_line(int line) {
    const uint32_t now = static_cast<uint32_t>(line);
    if (now == next_same_) --count_;  // the last entry goes on
    else first_same_ = now;
    put(RunEntry::kSameLines, first_same_ | now << kRunLineBits);
    next_same_ = now + 1;
  }
  CULE_INLINE void repeat_object(uint32_t object) { put(RunEntry::kSameObject, object); }
  CULE_INLINE void add_run(uint32_t object, uint32_t color, int begin, int end, bool of_piece) {
    const RunLooks looks = RunLooks::of(object, 0, color, begin, end);
    put(RunEntry::kRun, looks.word | (of_piece ? kOfPiece : 0));
  }
  CULE_INLINE void finish() { words_[0] = count_; }

 private:
  static constexpr uint32_t kNone = ~0u;
  uint32_t* words_;
  uint32_t count_ = 0;
  uint32_t first_same_ = 0, next_same_ = kNone;  // of the last entry, if it is kSameLines

  CULE_INLINE void put(RunEntry kind, uint32_t content) {
    next_same_ = kNone;
    if (count_ < kMostRunEntries)
      words_[1 + count_] = static_cast<uint32_t>(kind) << kRunEntryShift | content;
    ++count_;
  }
};

// Whether a log had room for all entries.
CULE_INLINE bool is_complete(const uint32_t* words) { return words[0] <= kMostRunEntries; }

// Tells `sink` what a complete log says.
template <class Sink>
CULE_INLINE void read_runs(const uint32_t* words, Sink& sink) {
  constexpr uint32_t kLine = (1u << kRunLineBits) - 1;
  const uint32_t count = words[0];
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t entry = words[1 + i];
    switch (static_cast<RunEntry>(entry >> kRunEntryShift & 3)) {
      case RunEntry::kRun: {
        const RunLooks run{entry};
        sink.add_run(run.object(), run.color(), run.begin(), run.end(), entry & kOfPiece);
        break;
      }
      case RunEntry::kNewLine: sink.begin_line(static_cast<int>(entry & kLine)); break;
      case RunEntry::kSameLines:
        sink.repeat_lines(static_cast<int>(entry & kLine),
                          static_cast<int>(entry >> kRunLineBits & kLine));
        break;
      case RunEntry::kSameObject: sink.repeat_object(entry & 7); break;
    }
  }
}

}  // namespace cule

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

// Room for a log: a word that is 1 more than the number of entries that there are, or would be if
// there were room; and the entries. If it is 0, nothing has been written down.
constexpr int kRunLogWords = 320, kMostRunEntries = kRunLogWords - 1;
static_assert(kRunLogWords % 4 == 0, "each log begins at a multiple of 16 bytes");

// Room for the boxes of a segment (segment_boxes.h).
constexpr int kSegmentBoxWords = 320;

// The frames of a step that are seen: the last one, and the one before it.
enum SeenFrame : uint32_t { kLastFrame, kFrameBefore, kSeenFrames };

// Writes a log over an earlier one, and finds out whether they differ.
class RunWriter {
 public:
  explicit CULE_INLINE RunWriter(uint32_t* words) : words_(words), before_(words[1]) {}

  CULE_INLINE void begin_line(int line) { put(RunEntry::kNewLine, static_cast<uint32_t>(line)); }
  CULE_INLINE void repeat_line(int line) {
    const uint32_t now = static_cast<uint32_t>(line);
    if (now != end_same_) {
      put_same_lines();
      first_same_ = now;
    }
    end_same_ = now + 1;
  }
  CULE_INLINE void repeat_object(uint32_t object) { put(RunEntry::kSameObject, object); }
  CULE_INLINE void add_run(uint32_t object, uint32_t color, int begin, int end, bool of_piece) {
    const RunLooks looks = RunLooks::of(object, 0, color, begin, end);
    put(RunEntry::kRun, looks.word | (of_piece ? kOfPiece : 0));
  }
  CULE_INLINE void finish() {
    put_same_lines();
    differs_ |= words_[0] != 1 + count_;
    words_[0] = 1 + count_;
  }

  // After `finish`: whether the log is another one than before.
  CULE_INLINE bool differs() const { return differs_; }

 private:
  static constexpr uint32_t kNone = ~0u;
  uint32_t* words_;
  uint32_t count_ = 0, before_;  // the entry that was there, read before it is needed
  bool differs_ = false;
  // Scanlines that are like the one above and are not written down yet.
  uint32_t first_same_ = 0, end_same_ = kNone;

  CULE_INLINE void put_same_lines() {
    if (end_same_ == kNone) return;
    const uint32_t last = end_same_ - 1;
    end_same_ = kNone;
    write(RunEntry::kSameLines, first_same_ | last << kRunLineBits);
  }
  CULE_INLINE void put(RunEntry kind, uint32_t content) {
    put_same_lines();
    write(kind, content);
  }
  CULE_INLINE void write(RunEntry kind, uint32_t content) {
    const uint32_t entry = static_cast<uint32_t>(kind) << kRunEntryShift | content;
    if (count_ < kMostRunEntries && before_ != entry) {
      differs_ = true;
      words_[1 + count_] = entry;
    }
    ++count_;
    if (count_ < kMostRunEntries) before_ = words_[1 + count_];
  }
};

// Whether a log had room for all entries.
CULE_INLINE bool is_complete(const uint32_t* words) { return words[0] <= 1 + kMostRunEntries; }

// Reads the entries of a log in their order, four words at once.
class RunLogWindow {
 public:
  // `words` begin at a multiple of 16 bytes.
  explicit CULE_INLINE RunLogWindow(const uint32_t* words)
      : chunks_(reinterpret_cast<const Chunk*>(words)), now_(chunks_[0]) {
    move_on();
  }
  // Word i of the log: 1 at first, and then always the next one.
  CULE_INLINE uint32_t take(uint32_t i) {
    if (i % 4 == 0) now_ = chunks_[i / 4];
    const uint32_t word = now_.words[0];
    move_on();
    return word;
  }

 private:
  struct alignas(16) Chunk {
    uint32_t words[4];
  };
  const Chunk* chunks_;
  Chunk now_;

  CULE_INLINE void move_on() {
    now_.words[0] = now_.words[1];
    now_.words[1] = now_.words[2];
    now_.words[2] = now_.words[3];
  }
};

// Tells `sink` what a complete log says.
template <class Sink>
CULE_INLINE void read_runs(const uint32_t* words, Sink& sink) {
  constexpr uint32_t kLine = (1u << kRunLineBits) - 1;
  const uint32_t end = words[0];
  RunLogWindow window(words);
  for (uint32_t i = 1; i < end; ++i) {
    const uint32_t entry = window.take(i);
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

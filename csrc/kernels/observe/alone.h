// Resizes a frame in one thread. It computes the sums of each source row once, and only where the
// row differs from the one above. Most rows do not differ.
#pragma once

#include "kernels/observe/resize.h"

namespace cule {

template <int kChannels>
class RowsAlone {
 public:
  static constexpr int kMax = kLinePixels * kChannels;  // bytes of a resized row at a time

  CULE_INLINE RowsAlone(const Resample& resample, const FrameSource& source, const uint8_t* palette)
      : resample_(resample), source_(source), palette_(palette) {}

  // From here on, sums are for bytes [from, from + bytes) of a resized row.
  CULE_INLINE void begin(int from, int bytes) {
    for (int slot = 0; slot < bytes; ++slot) {
      const ResampleSpan span = column_span(resample_, (from + slot) / kChannels);
      const int channel = (from + slot) % kChannels;
      columns_[slot] = {span.first * kChannels + channel, span.count, span.weight};
      for (int word = span.first / 4; word <= (span.first + span.count - 1) / 4; ++word) {
        if (readers_[word].end == 0) readers_[word].begin = static_cast<uint16_t>(slot);
        readers_[word].end = static_cast<uint16_t>(slot + 1);
      }
    }
  }

  CULE_INLINE CoveredRows covered(int y, int) const { return covered_rows(resample_, y); }

  static constexpr int kReach = 1 << 16;  // all source rows are within reach
  CULE_INLINE void reach(int, int) {}
  CULE_INLINE void sum(int line, int bytes, float* sums) {
    if (line == summed_) return;
    const bool first = summed_ < 0;
    if (source_.pooled) {
      summed_ = line;
      const uint8_t* row = source_.pooled + line * kMax;
      for (int i = 0; i < kMax; ++i) pixels_[i] = static_cast<float>(row[i]);
      for (int slot = 0; slot < bytes; ++slot) sums[slot] = sum_of(slot);
      return;
    }
    const bool repeats = !first && source_.same_rows(line, summed_);
    summed_ = line;
    if (repeats) return;
    const Row row = row_at(line);
    const uint64_t differing = first ? ~uint64_t{0} : differing_words(row, last_);
    last_ = row;
    if (differing == 0) return;
    look_up(row, differing);
    int summed = 0;
    for (int word = 0; word < kWords; ++word) {
      if (!(differing >> word & 1)) continue;
      const Readers readers = readers_[word];
      int slot = summed < readers.begin ? readers.begin : summed;
      for (; slot < readers.end; ++slot) sums[slot] = sum_of(slot);
      summed = readers.end;
    }
  }

 private:
  static constexpr int kWords = kLinePixels / 4;  // words of four pixels in a row
  // The same row of both pictures.
  struct Row {
    const uint32_t *front, *back;
    CULE_INLINE uint32_t difference(const Row& other, int word) const {
      return (front[word] ^ other.front[word]) | (back[word] ^ other.back[word]);
    }
  };

  CULE_INLINE Row row_at(int line) const {
    const uint32_t at = static_cast<uint32_t>(line);
    return {reinterpret_cast<const uint32_t*>(source_.pictures.front.row(at)),
            reinterpret_cast<const uint32_t*>(source_.pictures.back.row(at))};
  }

  // A bit for each word in which two rows differ. Most rows are equal. That is checked first, in a
  // loop that the compiler can vectorize.
  static CULE_INLINE uint64_t differing_words(const Row& row, const Row& other) {
    uint32_t any = 0;
    for (int word = 0; word < kWords; ++word) any |= row.difference(other, word);
    uint64_t differing = 0;
    if (any == 0) return differing;
    for (int word = 0; word < kWords; ++word) {
      differing |= static_cast<uint64_t>(row.difference(other, word) != 0) << word;
    }
    return differing;
  }

  // Looks up the values of the pixels in each word for which `wanted` has a bit.
  CULE_INLINE void look_up(const Row& row, uint64_t wanted) {
    for (int word = 0; word < kWords; ++word) {
      if (!(wanted >> word & 1)) continue;
      const uint32_t front = row.front[word], back = row.back[word];
      const bool two = front != back;
      float out[4 * kChannels];
#pragma unroll
      for (int i = 0; i < 4 * kChannels; ++i) {
        const uint32_t shift = 8 * static_cast<uint32_t>(i / kChannels);
        const uint32_t channel = static_cast<uint32_t>(i % kChannels);
        uint8_t value = palette_[(front >> shift & 0xFF) * kChannels + channel];
        if (two) {
          const uint8_t other = palette_[(back >> shift & 0xFF) * kChannels + channel];
          value = other > value ? other : value;
        }
        out[i] = static_cast<float>(value);
      }
      memcpy(pixels_ + 4 * kChannels * word, out, sizeof out);
    }
  }

  // The sum of the pixels that one byte of the frame covers.
  CULE_INLINE float sum_of(int slot) const {
    const ResampleSpan& span = columns_[slot];
    const float* pixel = pixels_ + span.first;
    const float* weight = resample_.weights + span.weight;
    const int count = span.count;
    float total = 0;
    if (is_weighted(resample_))
      for (int c = 0; c < count; ++c) total += pixel[c * kChannels] * weight[c];
    else
      for (int c = 0; c < count; ++c) total += pixel[c * kChannels];
    return total;
  }

  const Resample& resample_;
  const FrameSource& source_;
  const uint8_t* palette_;
  ResampleSpan columns_[kMax];  // `first` is an index into pixels_, `count` is in pixels
  Row last_{};
  int summed_ = -1;
  // For each word: the resized bytes [begin, end) that cover some of its pixels.
  struct Readers {
    uint16_t begin, end;
  };
  Readers readers_[kWords] = {};
  alignas(16) float pixels_[kMax];  // [160][kChannels]
};

// Makes the resized frame in one thread.
template <int kChannels>
inline void resample_frame(const ObservationFormat& format, const Resample& resample,
                           const FrameSource& source, const uint8_t* palette, uint8_t* out) {
  using Rows = RowsAlone<kChannels>;
  const OneLane lane;
  for (int from = 0; from < format.width * kChannels; from += Rows::kMax) {
    Rows rows(resample, source, palette);
    resize<kChannels, Rows::kMax>(format, resample, rows, from, 0, format.height, out, lane);
  }
}

}  // namespace cule

// Resizes a frame with the lanes of a warp.
//
// The lanes take some scanlines at a time, a window. They look up its pixels in the palette, pool
// them, and put the bytes into shared memory. From there each lane sums the pixels that its bytes
// of the resized frame cover. If a scanline shows the same rows of both pictures as the one above,
// it is not stored or summed again.
#pragma once

#include "kernels/observe/resize.h"
#include "kernels/observe/stack.h"

namespace cule {

// An env's palette in shared memory. Grey values are bytes: they take 64 words, so no more than two
// words are in the same bank. Colors are words of three bytes.
template <int kChannels>
struct SharedPalette;
template <>
struct SharedPalette<1> {
  alignas(256) uint8_t of[256];
  template <class Lanes>
  CULE_INLINE void load(const uint8_t* palette, const Lanes& lanes) {
    for_each_item<256 / Lanes::kCount>(lanes, 256, [&](int, int i) { of[i] = palette[i]; });
  }
  // Looks up the values of a word of four pixels.
  CULE_INLINE void look_up(uint32_t pixels, uint32_t* values) const {
    const ByteTable table(of);
    values[0] = table.look_up(pixels, 0) | table.look_up(pixels, 1) << 8 |
                table.look_up(pixels, 2) << 16 | table.look_up(pixels, 3) << 24;
  }
};
template <>
struct SharedPalette<3> {
  uint32_t of[256];
  template <class Lanes>
  CULE_INLINE void load(const uint8_t* palette, const Lanes& lanes) {
    for_each_item<256 / Lanes::kCount>(lanes, 256, [&](int, int i) {
      const uint8_t* color = palette + 3 * i;
      of[i] = color[0] | static_cast<uint32_t>(color[1]) << 8 |
              static_cast<uint32_t>(color[2]) << 16;
    });
  }
  // Looks up the values of a word of four pixels, a word for each channel.
  CULE_INLINE void look_up(uint32_t pixels, uint32_t* values) const {
    const uint32_t a = of[pixels & 0xFF], b = of[pixels >> 8 & 0xFF];
    const uint32_t c = of[pixels >> 16 & 0xFF], d = of[pixels >> 24];
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      const int at = 8 * i;
      values[i] = (a >> at & 0xFF) | (b >> at & 0xFF) << 8 | (c >> at & 0xFF) << 16 |
                  (d >> at & 0xFF) << 24;
    }
  }
};

// The window and its rows, in shared memory.
template <int kChannels>
struct Window {
  static constexpr int kLines = kChannels == 1 ? 32 : 16;  // at most 32: a word has a bit for each
  static constexpr int kRowBytes = kLinePixels * kChannels;
  static constexpr int kPlaneWords = kLinePixels / 4;
  // Row after row, and in a row one channel after the other. The word after the last row is read,
  // but not used.
  alignas(16) uint32_t words[kLines * kRowBytes / 4 + 4];
  uint16_t rows[kLines];    // which rows of the pictures: the front one's in the low byte
  CoveredRows covered[32];  // for 32 rows of the resized frame

  CULE_INLINE const uint8_t* bytes() const { return reinterpret_cast<const uint8_t*>(words); }
  CULE_INLINE uint8_t* bytes() { return reinterpret_cast<uint8_t*>(words); }
};

template <int kChannels, int kMax, class Lanes>
class RowsInWindow {
 public:
  CULE_INLINE RowsInWindow(const Resample& resample, const FrameSource& source,
                           const SharedPalette<kChannels>& palette, Window<kChannels>& window,
                           const Lanes& lanes)
      : resample_(resample), source_(source), palette_(palette), window_(window), lanes_(lanes) {}

  // From here on, sums are for bytes [from, from + bytes) of a resized row. If a slot of a lane has
  // no byte, it sums the first one.
  CULE_INLINE void begin(int from, int bytes) {
    from_ = from;
    bool more = false;
#pragma unroll
    for (int slot = 0; slot < kMax; ++slot) {
      const int item = slot * Lanes::kCount + lanes_.lane();
      const int byte = from + (item < bytes ? item : 0);
      const ResampleSpan span = column_span(resample_, byte / kChannels);
      firsts_[slot] = static_cast<uint32_t>(byte % kChannels * kLinePixels + span.first);
      const bool weighted = is_weighted(resample_);
      for (int c = 0; c < kTaps; ++c) {
        const bool covered = c < span.count;
        taps_[slot][c] = (covered && weighted ? resample_.weights[span.weight + c] : covered) *
                         kWeightScale;
      }
      more |= span.count > kTaps;
    }
    more_ = lanes_.ballot(more) != 0;
  }

  // Each lane looks up one row of the resized frame, for all lanes.
  CULE_INLINE CoveredRows covered(int y, int end) {
    if (y >= covered_end_) {
      covered_begin_ = y;
      covered_end_ = y + Lanes::kCount;
      lanes_.sync();
      const int mine = y + lanes_.lane();
      if (mine < end) window_.covered[lanes_.lane()] = covered_rows(resample_, mine);
      lanes_.sync();
    }
    return window_.covered[y - covered_begin_];
  }

  static constexpr int kReach = Window<kChannels>::kLines;
  CULE_INLINE void reach(int line, int count) {
    const int wanted = count < kReach ? count : kReach;
    if (line < begin_ || line + wanted > begin_ + lines_) load(line);
  }
  CULE_INLINE void sum(int line, int bytes, float* sums) {
    // The bits up to the line's own. For bit 31 the mask is 0 - 1: all bits.
    const int row = count_bits(distinct_ & ((2u << (line - begin_)) - 1)) - 1;
    if (row == summed_) return;
    summed_ = row;
    const uint8_t* pixels = window_.bytes() + row * Shared::kRowBytes;
#pragma unroll
    for (int slot = 0; slot < kMax; ++slot) sums[slot] = sum_first(slot, pixels);
    if (!more_) return;
    for_each_item<kMax>(lanes_, bytes, [&](int slot, int item) {
      sums[slot] = sum_others((from_ + item) / kChannels, pixels + firsts_[slot], sums[slot]);
    });
  }

 private:
  using Shared = Window<kChannels>;
  // The weights of the first kTaps pixels that a byte covers are kept. If a byte covers fewer, the
  // other weights are zero, which change no sum.
  static constexpr int kTaps = 3;
  static constexpr int kChunks = kLinePixels / static_cast<int>(sizeof(SixteenBytes));
  // How many rows the lanes pool at once, a chunk for each lane, and how many lanes work then.
  static constexpr int kRowsAtOnce = Lanes::kCount / kChunks, kPooling = kRowsAtOnce * kChunks;

  // Loads the rows of the scanlines from `line` on into the window.
  CULE_INLINE void load(int line) {
    begin_ = line;
    lines_ = source_.height - line < Shared::kLines ? source_.height - line : Shared::kLines;
    summed_ = -1;
    const int lane = lanes_.lane();
    const bool distinct = lane < lines_ && (lane == 0 || source_.pooled ||
                                            !source_.same_rows(line + lane, line + lane - 1));
    distinct_ = lanes_.ballot(distinct);
    if (distinct) {
      const uint32_t front = source_.pictures.front.row_of[line + lane];
      const uint32_t back = source_.pictures.back.row_of[line + lane];
      const int row = count_bits(distinct_ & ((1u << lane) - 1));
      window_.rows[row] = static_cast<uint16_t>(front | back << 8);
    }
    lanes_.sync();  // now no lane reads the old window any more, and all see the new rows
    if (source_.pooled) copy_pooled();
    else if (lane < kPooling) pool(lane, count_bits(distinct_));
    lanes_.sync();
  }

  CULE_INLINE void copy_pooled() {
    const uint8_t* from = source_.pooled + begin_ * Shared::kRowBytes;
#pragma unroll 1
    for (int i = lanes_.lane(); i < lines_ * Shared::kRowBytes; i += Lanes::kCount) {
      const int row = i / Shared::kRowBytes, at = i % Shared::kRowBytes;
      window_.bytes()[row * Shared::kRowBytes + at % kChannels * kLinePixels + at / kChannels] =
          from[i];
    }
  }

  // Looks up and pools this lane's chunk of sixteen pixels, in each of its rows of the window.
  CULE_INLINE void pool(int lane, int rows) {
    const int chunk = lane % kChunks;
    const uint8_t* front = source_.pictures.front.pixels + chunk * sizeof(SixteenBytes);
    const uint8_t* back = source_.pictures.back.pixels + chunk * sizeof(SixteenBytes);
    const auto chunk_of = [](const uint8_t* pixels, uint32_t row) CULE_INLINE_LAMBDA {
      return *reinterpret_cast<const SixteenBytes*>(pixels + row * uint32_t{kLinePixels});
    };
    SixteenBytes next_front{}, next_back{};
    const auto fetch = [&](int row) CULE_INLINE_LAMBDA {
      if (row >= rows) return;
      const uint32_t both = window_.rows[row];
      next_front = chunk_of(front, both & 0xFF);
      next_back = chunk_of(back, both >> 8);
    };
    int row = lane / kChunks;
    fetch(row);
#pragma unroll 1
    for (; row < rows; row += kRowsAtOnce) {
      const SixteenBytes in_front = next_front, in_back = next_back;
      fetch(row + kRowsAtOnce);  // arrives while this row is pooled
      SixteenBytes out[kChannels];
      uint32_t difference = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        uint32_t values[kChannels];
        palette_.look_up(in_front.words[i], values);
#pragma unroll
        for (int channel = 0; channel < kChannels; ++channel) {
          out[channel].words[i] = values[channel];
        }
        difference |= in_front.words[i] ^ in_back.words[i];
      }
      if (difference) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          uint32_t values[kChannels];
          palette_.look_up(in_back.words[i], values);
#pragma unroll
          for (int channel = 0; channel < kChannels; ++channel) {
            out[channel].words[i] = greater_bytes(out[channel].words[i], values[channel]);
          }
        }
      }
      SixteenBytes* to = reinterpret_cast<SixteenBytes*>(window_.bytes() + row * Shared::kRowBytes);
#pragma unroll
      for (int channel = 0; channel < kChannels; ++channel) {
        to[channel * kChunks + chunk] = out[channel];
      }
    }
  }

  // The sum of the first pixels that one byte of the frame covers in a row.
  CULE_INLINE float sum_first(int slot, const uint8_t* pixels) const {
    const uint32_t first = firsts_[slot];
    const uint32_t* word = reinterpret_cast<const uint32_t*>(pixels + (first & ~3u));
    const uint32_t four = bytes_from(word[0], word[1], first);
    float total = weigh_byte(four, 0, taps_[slot][0]);
#pragma unroll
    for (int c = 1; c < kTaps; ++c) total += weigh_byte(four, c, taps_[slot][c]);
    return total * kWeighedScale;
  }

  // Adds the pixels after the first kTaps to `total`. The very first is at `pixel`.
  CULE_INLINE float sum_others(int column, const uint8_t* pixel, float total) const {
    const ResampleSpan span = column_span(resample_, column);
    const bool weighted = is_weighted(resample_);
#pragma unroll 1
    for (int c = kTaps; c < span.count; ++c) {
      const float value = static_cast<float>(pixel[c]);
      total += weighted ? value * resample_.weights[span.weight + c] : value;
    }
    return total;
  }

  const Resample& resample_;
  const FrameSource& source_;
  const SharedPalette<kChannels>& palette_;
  Window<kChannels>& window_;
  const Lanes& lanes_;
  int from_ = 0;
  bool more_ = false;  // some byte covers more than kTaps pixels
  uint32_t firsts_[kMax];  // where they begin in a row of the window
  float taps_[kMax][kTaps];
  // The window's scanlines, and which of its rows was summed last.
  int begin_ = 0, lines_ = 0, summed_ = -1;
  int covered_begin_ = 0, covered_end_ = 0;  // the rows of the resized frame in window_.covered
  uint32_t distinct_ = 0;  // a bit for each scanline that shows other rows than the one above
};

// Makes rows [begin, end) of the resized frame with the lanes of a warp. Each lane does up to
// `kMax` bytes of a row at a time.
template <int kChannels, int kMax, class Lanes>
CULE_INLINE void resample_rows(const ObservationFormat& format, const Resample& resample,
                               const FrameSource& source, const SharedPalette<kChannels>& palette,
                               int begin, int end, uint8_t* out, Window<kChannels>& window,
                               const Lanes& lanes) {
#pragma unroll 1
  for (int from = 0; from < format.width * kChannels; from += kMax * Lanes::kCount) {
    using Rows = RowsInWindow<kChannels, kMax, Lanes>;
    Rows rows(resample, source, palette, window, lanes);
    resize<kChannels, kMax>(format, resample, rows, from, begin, end, out, lanes);
  }
}

}  // namespace cule

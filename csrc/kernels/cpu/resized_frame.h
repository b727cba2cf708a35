// Resizes a frame on the CPU, in vector code.
//
// Most source rows equal the one above; only others are looked up in the palette and summed. Loops
// here have no branches and whole blocks of columns, so that a compiler makes vector instructions
// of them. Each sum keeps the order of kernels/observe/resize.h.
#pragma once

#include "kernels/cpu/column_table.h"

namespace cule {

// The memory with which a thread resizes frames.
class ResizeSpace {
 public:
  // How many different rows' sums are kept.
  static constexpr int kKept = 4;

  // Gets ready for frames that are resized in this way.
  void prepare(const Resample& resample, const ObservationFormat& format) {
    if (resample_ == &resample) return;
    resample_ = &resample;
    table.fill(resample, format.width);
    values = table.columns * format.channels;
    const size_t blocks = static_cast<size_t>(values / ColumnTable::kBlock);
    floats_.resize((kKept + 1) * blocks);
    bytes_.resize(blocks);
  }
  // The tables that prepare() was called with may be other ones from here on.
  void forget() { resample_ = nullptr; }

  // Sums of a row, channel after channel, [values].
  float* sums(int kept) { return floats_[static_cast<size_t>(kept * values / kBlock)].of; }
  float* totals() { return sums(kKept); }
  uint8_t* bytes() { return bytes_[0].of; }   // [values]

  ColumnTable table;
  int values = 0;  // sums of a row, in all channels
  alignas(64) uint8_t palette[3][256];
  alignas(64) uint8_t pixels[ColumnTable::kRowBytes] = {};

 private:
  static constexpr int kBlock = ColumnTable::kBlock;
  template <class T>
  struct alignas(sizeof(T) * kBlock) Block {
    T of[kBlock];
  };

  const Resample* resample_ = nullptr;
  std::vector<Block<float>> floats_;
  std::vector<Block<uint8_t>> bytes_;
};

// The sums of a frame's rows.
template <class Vectors, int kChannels>
class RowSums {
 public:
  CULE_INLINE RowSums(const FrameSource& source, const uint8_t* palette, ResizeSpace& space)
      : source_(source), space_(space) {
    for (int channel = 0; channel < kChannels; ++channel) {
      for (int i = 0; i < 256; ++i)
        space.palette[channel][i] = palette[i * kChannels + channel];
    }
  }

  // Lines with the same number look alike. Numbers and sums of a line can be asked for once it has
  // been read. Sums are kept until kKept lines that look different have been read after it.
  CULE_INLINE int number(int line) const { return numbers_[line]; }
  CULE_INLINE const float* sums(int line) const {
    return space_.sums(number(line) % ResizeSpace::kKept);
  }

  // Reads the lines up to `line`, if it is after the last one that was read.
  CULE_INLINE void read(int line) {
    while (last_ < line) {
      const int next = last_ + 1;
      if (next == 0 || !looks_as_last(next)) add(next);
      numbers_[next] = static_cast<uint16_t>(number_);
      last_ = next;
    }
  }

 private:
  CULE_INLINE bool looks_as_last(int line) const {
    if (source_.pooled) return false;
    return source_.same_rows(line, last_) ||
           (same_pixels(front(line), front(last_)) && same_pixels(back(line), back(last_)));
  }
  CULE_INLINE const uint8_t* front(int line) const {
    return source_.pictures.front.row(static_cast<uint32_t>(line));
  }
  CULE_INLINE const uint8_t* back(int line) const {
    return source_.pictures.back.row(static_cast<uint32_t>(line));
  }

  static CULE_INLINE bool same_pixels(const uint8_t* row, const uint8_t* other) {
    return row == other || Vectors::same(row, other);
  }

  // Adds a line that does not look as the last one.
  CULE_INLINE void add(int line) {
    float* sums = space_.sums(++number_ % ResizeSpace::kKept);
    const bool two = !source_.pooled && !same_pixels(front(line), back(line));
    for (int channel = 0; channel < kChannels; ++channel) {
      if (source_.pooled) copy_pooled(line, channel);
      else pool(line, channel, two);
      sum(sums + channel * space_.table.columns);
    }
  }
  CULE_INLINE void copy_pooled(int line, int channel) {
    const uint8_t* row = source_.pooled + line * kLinePixels * kChannels + channel;
    for (int i = 0; i < kLinePixels; ++i) space_.pixels[i] = row[i * kChannels];
  }
  CULE_INLINE void pool(int line, int channel, bool two) {
    const uint8_t* palette = space_.palette[channel];
    uint8_t* pixels = space_.pixels;
    Vectors::look_up(palette, front(line), pixels);
    if (!two) return;
    alignas(64) uint8_t others[kLinePixels];
    Vectors::look_up(palette, back(line), others);
    for (int i = 0; i < kLinePixels; ++i) pixels[i] = others[i] > pixels[i] ? others[i] : pixels[i];
  }

  CULE_INLINE void sum(float* sums) {
    switch (space_.table.taps) {
      case 1: return sum_groups<1>(1, sums);
      case 2: return sum_groups<2>(1, sums);
      case 3: return sum_groups<3>(1, sums);
      default: return sum_groups<4>(space_.table.taps / ColumnTable::kGroup, sums);
    }
  }
  template <int kTaps>
  CULE_INLINE void sum_groups(int groups, float* __restrict__ sums) {
    constexpr int kBlock = ColumnTable::kBlock;
    const int columns = space_.table.columns;
    for (int block = 0; block < columns / kBlock; ++block) {
      const float* __restrict__ weights = space_.table.weights.data() + block * kBlock;
      float totals[kBlock] = {};
      for (int group = 0; group < groups; ++group) {
        alignas(64) uint32_t words[kBlock];
        Vectors::gather(space_.table, space_.pixels, group, block, words);
        for (int i = 0; i < kBlock; ++i) {
          for (int tap = 0; tap < kTaps; ++tap) {
            const int pixel = static_cast<int>(words[i] >> 8 * tap & 0xFF);
            totals[i] += static_cast<float>(pixel) * weights[tap * columns + i];
          }
        }
        weights += kTaps * columns;
      }
      memcpy(sums + block * kBlock, totals, sizeof totals);
    }
  }

  const FrameSource& source_;
  ResizeSpace& space_;
  int last_ = -1, number_ = -1;
  uint16_t numbers_[Pictures::kRows];
};

// Makes the rows of a resized frame from the sums of the source rows.
template <class Vectors, int kChannels>
class ResizedFrame {
 public:
  CULE_INLINE ResizedFrame(const ObservationFormat& format, const Resample& resample,
                           const FrameSource& source, const uint8_t* palette, ResizeSpace& space,
                           uint8_t* out)
      : format_(format),
        resample_(resample),
        rows_(source, palette, space),
        space_(space),
        out_(out),
        row_bytes_(format.width * kChannels) {}

  CULE_INLINE void make() {
    for (int y = 0; y < format_.height; ++y) {
      const ResampleSpan span = row_span(resample_, y);
      const bool few = span.count <= ResizeSpace::kKept;
      if (few) rows_.read(span.first + span.count - 1);
      if (few && repeats(y, span)) {
        memcpy(row(y), row(y - kPeriod), static_cast<size_t>(row_bytes_));
        continue;
      }
      for (int r = 0; r < span.count; r += ResizeSpace::kKept) add_rows(span, r);
      finish(y, span.count);
    }
  }

 private:
  // With the default size, every second row has the same weights.
  static constexpr int kPeriod = 2;
  static constexpr int kBlock = ColumnTable::kBlock;

  CULE_INLINE uint8_t* row(int y) const { return out_ + y * row_bytes_; }

  // Whether row `y` is made of lines that look as those of the row two above, with the same
  // weights. If the first line of the one looks as the last of the other, all between look so, too.
  CULE_INLINE bool repeats(int y, const ResampleSpan& span) const {
    if (y < kPeriod) return false;
    const ResampleSpan above = row_span(resample_, y - kPeriod);
    if (rows_.number(above.first) != rows_.number(span.first + span.count - 1)) return false;
    if (above.count != span.count) return false;
    if (!is_weighted(resample_)) return true;
    const float* weights = resample_.weights;
    for (int r = 0; r < span.count; ++r) {
      if (weights[above.weight + r] != weights[span.weight + r]) return false;
    }
    return true;
  }

  // Adds source rows `first` and those after it to the totals, up to kKept of them.
  CULE_INLINE void add_rows(const ResampleSpan& span, int first) {
    const int left = span.count - first;
    const int line = span.first + first;
    const float* sums[ResizeSpace::kKept];
    float weights[ResizeSpace::kKept];
    rows_.read(line + (left < ResizeSpace::kKept ? left : ResizeSpace::kKept) - 1);
    for (int r = 0; r < ResizeSpace::kKept && r < left; ++r) {
      sums[r] = rows_.sums(line + r);
      weights[r] = is_weighted(resample_) ? resample_.weights[span.weight + first + r] : 1.0f;
    }
    switch (left) {
      case 1: return add<1>(first, sums, weights);
      case 2: return add<2>(first, sums, weights);
      case 3: return add<3>(first, sums, weights);
      default: return add<4>(first, sums, weights);
    }
  }
  template <int kRows>
  CULE_INLINE void add(int first, const float* const* sums, const float* weights) {
    static_assert(kRows <= ResizeSpace::kKept);
    if (resample_.kind == ResampleKind::kLinear) add_weighed<kRows, true>(first, sums, weights);
    else add_weighed<kRows, false>(first, sums, weights);
  }
  template <int kRows, bool kLinear>
  CULE_INLINE void add_weighed(int first, const float* const* sums, const float* weights) {
    float* __restrict__ totals = space_.totals();
    for (int block = 0; block < space_.values; block += kBlock) {
      for (int i = block; i < block + kBlock; ++i) {
        float total = first ? totals[i] : 0;
        for (int r = 0; r < kRows; ++r) {
          total += kLinear ? weigh_linearly(weights[r], sums[r][i]) : weights[r] * sums[r][i];
        }
        totals[i] = total;
      }
    }
  }

  // Makes the bytes of row `y` from the totals.
  CULE_INLINE void finish(int y, int rows) {
    const bool in_place = kChannels == 1 && (y + 1) * row_bytes_ + kBlock <= format_.height * row_bytes_;
    uint8_t* to = in_place ? row(y) : space_.bytes();
    if (resample_.kind == ResampleKind::kArea) {
      finish_all(to, [](float total) CULE_INLINE_LAMBDA { return round_to_byte(total); });
    } else {
      // With kAreaInteger, all pixels cover the same number of columns.
      const int columns =
          resample_.kind == ResampleKind::kAreaInteger ? resample_.columns[0].count : 0;
      finish_all(to, [&](float total) CULE_INLINE_LAMBDA {
        return finish_pixel(resample_, total, rows, columns);
      });
    }
    if (in_place) return;
    if (kChannels == 1) {
      memcpy(row(y), to, static_cast<size_t>(row_bytes_));
      return;
    }
    uint8_t* __restrict__ mixed = row(y);
    const int columns = space_.table.columns;
    for (int x = 0; x < format_.width; ++x) {
      for (int channel = 0; channel < kChannels; ++channel)
        mixed[x * kChannels + channel] = to[channel * columns + x];
    }
  }
  template <class Finish>
  CULE_INLINE void finish_all(uint8_t* __restrict__ bytes, const Finish& finish) {
    const float* __restrict__ totals = space_.totals();
    for (int block = 0; block < space_.values; block += kBlock) {
      for (int i = block; i < block + kBlock; ++i) bytes[i] = finish(totals[i]);
    }
  }

  const ObservationFormat& format_;
  const Resample& resample_;
  RowSums<Vectors, kChannels> rows_;
  ResizeSpace& space_;
  uint8_t* out_;
  int row_bytes_;
};

}  // namespace cule

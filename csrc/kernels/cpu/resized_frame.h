// Resizes a frame on the CPU, in vector code.
//
// Most source rows equal the one above; only others are looked up in the palette and summed. Loops
// here have no branches and whole blocks of columns, so that a compiler makes vector instructions
// of them. Each sum keeps the order of kernels/observe/resize.h.
#pragma once

#include "kernels/cpu/resize_tables.h"

namespace cule {

// The memory with which a thread resizes frames.
class ResizeSpace {
 public:
  // How many different rows' sums are kept, and how many rows of the frame.
  static constexpr int kKept = RowTable::kAtOnce, kPeriod = RowTable::kPeriod;

  // Gets ready for frames that are resized in this way, of colors of this palette.
  void prepare(const Resample& resample, const ObservationFormat& format, const uint8_t* palette) {
    if (resample_ == &resample && palette_ == palette) return;
    resample_ = &resample;
    palette_ = palette;
    columns.fill(resample, format.width);
    rows.fill(resample, format.height);
    for (int channel = 0; channel < format.channels; ++channel)
      colors[channel].fill(palette, format.channels, channel);
    values = columns.columns * format.channels;
    const size_t blocks = static_cast<size_t>(values / kBlock);
    floats_.resize((kKept + 1) * blocks);
    bytes_.resize((1 + kPeriod) * blocks);
  }
  // What prepare() was called with may have changed from here on.
  void forget() { resample_ = nullptr; }

  // Sums of a row, channel after channel, [values].
  float* sums(int kept) { return floats_[0].of + kept * values; }
  float* totals() { return sums(kKept); }
  // A row's bytes, channel after channel, [values].
  uint8_t* bytes() { return bytes_[0].of; }
  // The last rows that were made, [values]: row `y` takes the place of row y - kPeriod.
  uint8_t* row(int y) { return bytes_[0].of + (1 + y % kPeriod) * values; }

  ColumnTable columns;
  RowTable rows;
  int values = 0;  // sums of a row, in all channels
  Colors colors[3];  // of each channel
  alignas(64) uint8_t pixels[ColumnTable::kRowBytes] = {};

 private:
  static constexpr int kBlock = ColumnTable::kBlock;
  template <class T>
  struct alignas(sizeof(T) * kBlock) Block {
    T of[kBlock];
  };

  const Resample* resample_ = nullptr;
  const uint8_t* palette_ = nullptr;
  std::vector<Block<float>> floats_;
  std::vector<Block<uint8_t>> bytes_;
};

// The sums of a frame's rows.
template <class Vectors, int kChannels>
class RowSums {
 public:
  CULE_INLINE RowSums(const FrameSource& source, ResizeSpace& space)
      : source_(source), space_(space) {
    const uint8_t *front = source.pictures.front.row_of, *back = source.pictures.back.row_of;
    for (uint32_t i = 1; i < Pictures::kRows; ++i)
      other_rows_[i] = static_cast<uint8_t>((front[i] ^ front[i - 1]) | (back[i] ^ back[i - 1]));
    if (source.pooled) memset(other_rows_, 1, sizeof other_rows_);
    other_rows_[0] = 1;
  }

  // Lines with the same number look alike. Numbers and sums of a line can be asked for once it has
  // been read. Sums are kept until kKept lines that look different have been read after it.
  CULE_INLINE int number(int line) const { return numbers_[line]; }
  CULE_INLINE const float* sums(int line) const {
    return space_.sums(number(line) % ResizeSpace::kKept);
  }

  // Reads the lines up to `line`, if it is after the last one that was read.
  CULE_INLINE void read(int line) {
    for (; next_ <= line; ++next_) {
      if (other_rows_[next_] && !looks_as_above(next_)) add(next_);
      numbers_[next_] = static_cast<uint8_t>(number_);
    }
  }

 private:
  CULE_INLINE bool looks_as_above(int line) const {
    if (source_.pooled || line == 0) return false;
    return same_pixels(front(line), front(line - 1)) && same_pixels(back(line), back(line - 1));
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

  // Adds a line that does not look as the one above.
  CULE_INLINE void add(int line) {
    float* sums = space_.sums(++number_ % ResizeSpace::kKept);
    const bool two = !source_.pooled && !same_pixels(front(line), back(line));
    uint8_t* pixels = space_.pixels;
    for (int channel = 0; channel < kChannels; ++channel) {
      if (source_.pooled) copy_pooled(line, channel, pixels);
      else pool(line, channel, two, pixels);
      sum(pixels, sums + channel * space_.columns.columns);
    }
  }
  CULE_INLINE void copy_pooled(int line, int channel, uint8_t* pixels) const {
    const uint8_t* row = source_.pooled + line * kLinePixels * kChannels + channel;
    for (int i = 0; i < kLinePixels; ++i) pixels[i] = row[i * kChannels];
  }
  CULE_INLINE void pool(int line, int channel, bool two, uint8_t* pixels) const {
    const Colors& colors = space_.colors[channel];
    Vectors::look_up(colors, front(line), pixels);
    if (!two) return;
    alignas(64) uint8_t others[ColumnTable::kWholeRow] = {};
    Vectors::look_up(colors, back(line), others);
    for (int i = 0; i < ColumnTable::kWholeRow; ++i)
      pixels[i] = others[i] > pixels[i] ? others[i] : pixels[i];
  }

  CULE_INLINE void sum(const uint8_t* pixels, float* sums) const {
    switch (space_.columns.taps) {
      case 1: return sum_groups<1>(pixels, 1, sums);
      case 2: return sum_groups<2>(pixels, 1, sums);
      case 3: return sum_groups<3>(pixels, 1, sums);
      default: return sum_groups<4>(pixels, space_.columns.taps / ColumnTable::kGroup, sums);
    }
  }
  // A word's byte, as a float.
  static CULE_INLINE float value(uint32_t word, int byte) {
    return static_cast<float>(static_cast<int>(word >> 8 * byte & 0xFF));
  }
  template <int kTaps>
  CULE_INLINE void sum_groups(const uint8_t* pixels, int groups,
                              float* __restrict__ sums) const {
    constexpr int kBlock = ColumnTable::kBlock;
    const int columns = space_.columns.columns;
    for (int block = 0; block < columns / kBlock; ++block, sums += kBlock) {
      for (int group = 0; group < groups; ++group) {
        const float* __restrict__ weights =
            space_.columns.weights.data() + group * kTaps * columns + block * kBlock;
        alignas(64) uint32_t words[kBlock];
        Vectors::gather(space_.columns, pixels, group, block, words);
        for (int i = 0; i < kBlock; ++i) {
          float total = value(words[i], 0) * weights[i];
          if (group) total = sums[i] + total;
          for (int tap = 1; tap < kTaps; ++tap)
            total += value(words[i], tap) * weights[tap * columns + i];
          sums[i] = total;
        }
      }
    }
  }

  const FrameSource& source_;
  ResizeSpace& space_;
  int next_ = 0, number_ = -1;
  uint8_t numbers_[Pictures::kRows];
  // For each line: not zero if it shows other rows of the pictures than the line above.
  alignas(64) uint8_t other_rows_[Pictures::kRows];
};

// Makes the rows of a resized frame from the sums of the source rows.
template <class Vectors, int kChannels>
class ResizedFrame {
 public:
  // `space` is prepared for frames of this kind.
  CULE_INLINE ResizedFrame(const ObservationFormat& format, const Resample& resample,
                           const FrameSource& source, ResizeSpace& space, uint8_t* out)
      : format_(format),
        resample_(resample),
        rows_(source, space),
        space_(space),
        out_(out),
        row_bytes_(format.width * kChannels) {}

  CULE_INLINE void make() {
    const ResizedRow* rows = space_.rows.rows.data();
    for (int y = 0; y < format_.height; ++y) {
      const ResizedRow& row = rows[y];
      if (row.count <= ResizeSpace::kKept) rows_.read(row.first + row.count - 1);
      // If the first line of the row above looks as the last one here, all lines between do, too.
      const bool repeats = row.as_before && rows_.number(rows[y - kPeriod].first) ==
                                                rows_.number(row.first + row.count - 1);
      if (!repeats) {
        for (int r = 0; r < row.count; r += ResizeSpace::kKept) add_rows(row, r);
        finish(y, row.count);
      }
      copy_row(y);
    }
  }

 private:
  static constexpr int kBlock = ColumnTable::kBlock, kPeriod = ResizeSpace::kPeriod;

  // Adds source row `first` and those after it to the totals, up to kKept of them.
  CULE_INLINE void add_rows(const ResizedRow& row, int first) {
    const int left = row.count - first;
    const int line = row.first + first;
    const float* sums[ResizeSpace::kKept];
    rows_.read(line + (left < ResizeSpace::kKept ? left : ResizeSpace::kKept) - 1);
    for (int r = 0; r < ResizeSpace::kKept && r < left; ++r) sums[r] = rows_.sums(line + r);
    const float* weights = space_.rows.weights.data() + row.weight + first;
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
  template <bool kLinear>
  static CULE_INLINE float weigh(float weight, float sum) {
    return kLinear ? weigh_linearly(weight, sum) : weight * sum;
  }
  template <int kRows, bool kLinear>
  CULE_INLINE void add_weighed(int first, const float* const* sums, const float* weights) {
    float* __restrict__ totals = space_.totals();
    for (int block = 0; block < space_.values; block += kBlock) {
      for (int i = block; i < block + kBlock; ++i) {
        float total = weigh<kLinear>(weights[0], sums[0][i]);
        if (first) total = totals[i] + total;
        for (int r = 1; r < kRows; ++r) total += weigh<kLinear>(weights[r], sums[r][i]);
        totals[i] = total;
      }
    }
  }

  // Copies row `y` to the frame, in whole blocks where it can: what is after the row's end belongs
  // to the next rows, which are copied later.
  CULE_INLINE void copy_row(int y) {
    uint8_t* to = out_ + y * row_bytes_;
    const uint8_t* from = space_.row(y);
    const int left = (format_.height - y) * row_bytes_;
    if (row_bytes_ + kBlock > left) memcpy(to, from, static_cast<size_t>(row_bytes_));
    else for (int i = 0; i < row_bytes_; i += kBlock) memcpy(to + i, from + i, kBlock);
  }

  // Makes the bytes of row `y` from the totals.
  CULE_INLINE void finish(int y, int rows) {
    uint8_t* bytes = kChannels == 1 ? space_.row(y) : space_.bytes();
    if (resample_.kind == ResampleKind::kArea) {
      finish_all(bytes, [](float total) CULE_INLINE_LAMBDA { return round_to_byte(total); });
    } else {
      // With kAreaInteger, all pixels cover the same number of columns.
      const int columns =
          resample_.kind == ResampleKind::kAreaInteger ? resample_.columns[0].count : 0;
      finish_all(bytes, [&](float total) CULE_INLINE_LAMBDA {
        return finish_pixel(resample_, total, rows, columns);
      });
    }
    if (kChannels == 1) return;
    uint8_t* __restrict__ mixed = space_.row(y);
    const int columns = space_.columns.columns;
    for (int x = 0; x < format_.width; ++x) {
      for (int channel = 0; channel < kChannels; ++channel)
        mixed[x * kChannels + channel] = bytes[channel * columns + x];
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

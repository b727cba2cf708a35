// A Resample's rows and columns, laid out for the CPU's vector code.
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/observe/resize.h"

namespace cule {

// One channel of a palette.
struct Colors {
  alignas(64) uint8_t of[256];
  alignas(64) uint8_t of_even[128];  // of indices 0, 2, 4 and so on

  void fill(const uint8_t* palette, int channels, int channel) {
    for (int i = 0; i < 256; ++i) of[i] = palette[i * channels + channel];
    for (int i = 0; i < 128; ++i) of_even[i] = of[2 * i];
  }
};

// The sum of a column is the sum of its taps, from left to right: the pixels that it covers, each
// times its weight. All columns have the same number of taps. Columns that cover fewer pixels have
// weights of zero at the end, which change no sum. Colors are resized channel by channel.
struct ColumnTable {
  static constexpr int kBlock = 16;  // columns that vector code sums at a time
  static constexpr int kGroup = 4;   // taps that are in one word
  // Bytes of a row from which a vector instruction picks the words of kWindowColumns columns.
  static constexpr int kWindow = 16, kWindowColumns = 4;
  // A row of pixels in whole vectors, and the same with what may be read after them: a window that
  // begins at the last group of taps of a column.
  static constexpr int kWholeRow = 192, kRowBytes = 2 * kLinePixels + 4 * kWindow;

  int columns = 0;               // whole blocks: after the frame's columns are some without use
  int taps = 0;                  // up to kGroup, or else whole groups
  bool in_windows = false;       // whether each word is in the window that begins with the first
                                 // pixel of its kWindowColumns columns
  std::vector<uint16_t> firsts;  // [columns] the first pixel
  std::vector<uint8_t> pixels;   // [columns][kGroup] the pixels of the first word
  std::vector<uint8_t> picks;    // [columns][kGroup] the same, from the window's beginning on
  std::vector<float> weights;    // [taps][columns]

  void fill(const Resample& resample, int width);
};

inline void ColumnTable::fill(const Resample& resample, int width) {
  columns = (width + kBlock - 1) / kBlock * kBlock;
  taps = 1;
  for (int x = 0; x < width; ++x) taps = std::max(taps, column_span(resample, x).count);
  if (taps > kGroup) taps = (taps + kGroup - 1) / kGroup * kGroup;
  in_windows = true;
  const size_t count = static_cast<size_t>(columns);
  firsts.resize(count);
  pixels.resize(count * kGroup);
  picks.resize(count * kGroup);
  weights.assign(count * static_cast<size_t>(taps), 0.0f);
  for (int x = 0; x < columns; ++x) {
    const ResampleSpan span = column_span(resample, std::min(x, width - 1));
    firsts[x] = static_cast<uint16_t>(span.first);
    const int pick = span.first - firsts[x - x % kWindowColumns];
    in_windows = in_windows && pick + kGroup <= kWindow;
    for (int i = 0; i < kGroup; ++i) {
      pixels[x * kGroup + i] = static_cast<uint8_t>(span.first + i);
      picks[x * kGroup + i] = static_cast<uint8_t>(pick + i);
    }
    for (int tap = 0; tap < span.count && x < width; ++tap)
      weights[tap * columns + x] = is_weighted(resample) ? resample.weights[span.weight + tap] : 1;
  }
}

// A row of the resized frame: the source rows that it covers, and where their weights begin.
struct ResizedRow {
  int first, count, weight;
  bool as_before;  // covers at most kAtOnce rows, with the same weights as row y - kPeriod
};
struct RowTable {
  static constexpr int kAtOnce = 4;  // source rows that are added to a row at once
  static constexpr int kPeriod = 2;  // with the default size, every second row has the same weights

  std::vector<ResizedRow> rows;  // [height]
  std::vector<float> weights;    // 1 where a Resample has none

  void fill(const Resample& resample, int height);
};

inline void RowTable::fill(const Resample& resample, int height) {
  rows.clear();
  weights.clear();
  for (int y = 0; y < height; ++y) {
    const ResampleSpan span = row_span(resample, y);
    const size_t begin = weights.size();
    for (int r = 0; r < span.count; ++r)
      weights.push_back(is_weighted(resample) ? resample.weights[span.weight + r] : 1.0f);
    const ResizedRow* before = y >= kPeriod ? &rows[static_cast<size_t>(y - kPeriod)] : nullptr;
    const bool as_before =
        before && span.count <= kAtOnce && span.count == before->count &&
        std::equal(weights.begin() + static_cast<ptrdiff_t>(begin), weights.end(),
                   weights.begin() + before->weight);
    rows.push_back({span.first, span.count, static_cast<int>(begin), as_before});
  }
}

}  // namespace cule

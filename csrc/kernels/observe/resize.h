// Resizes a frame to an observation's size.
//
// The result equals that of OpenCV's INTER_AREA in each bit. For each source row that an output row
// covers, the source columns are added up with their weights, in single precision, from left to
// right. These sums are added up with the weights of their rows, from top to bottom, and the total
// is rounded half to even. If the frame grows on an axis, OpenCV interpolates instead, with
// integers. Row sums are then below 2^24, so single precision holds them exactly.
#pragma once

#include "kernels/observe/pool.h"

namespace cule {

// Rounds to the nearest byte; halves go to the even one. `value` is not negative. Near 1.5 * 2^23
// the distance between floats is 1. So adding this number rounds the value, and the lowest bits are
// the result. This takes a few instructions on any machine; on a CPU rintf is a function call.
CULE_INLINE uint8_t round_to_byte(float value) {
  const float shifted = value + 12582912.0f;
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  const uint32_t whole = bits & 0x3FFFFF;
  return static_cast<uint8_t>(whole < 255 ? whole : 255);
}

CULE_INLINE ResampleSpan row_span(const Resample& resample, int y) {
  return resample.kind == ResampleKind::kCopy ? ResampleSpan{y, 1, 0} : resample.rows[y];
}
CULE_INLINE ResampleSpan column_span(const Resample& resample, int x) {
  return resample.kind == ResampleKind::kCopy ? ResampleSpan{x, 1, 0} : resample.columns[x];
}

// A pixel's value, from the sum over the `rows` and `columns` that it covers, for all kinds except
// kArea.
CULE_INLINE uint8_t finish_pixel(const Resample& resample, float total, int rows, int columns) {
  if (resample.kind == ResampleKind::kCopy) return static_cast<uint8_t>(total);
  if (resample.kind == ResampleKind::kLinear)
    return static_cast<uint8_t>((static_cast<int>(total) + 2) >> 2);
  // Sums of bytes are whole numbers below 2^24, so they are exact.
  if (rows == 2 && columns == 2) return static_cast<uint8_t>((static_cast<int>(total) + 2) >> 2);
  return round_to_byte(total * resample.scale);
}

// What an observation's newest frame is made of: `pooled`, or if that is null, the maximum of the
// colors of two pictures.
struct FrameSource {
  PicturePair pictures;
  const uint8_t* pooled;
  int height;

  // Whether lines `a` and `b` show the same rows, in both pictures.
  CULE_INLINE bool same_rows(int a, int b) const {
    return !pooled && pictures.front.row_of[a] == pictures.front.row_of[b] &&
           pictures.back.row_of[a] == pictures.back.row_of[b];
  }
};
CULE_INLINE FrameSource frame_source(const Batch& batch, size_t env, ObservationPlan plan) {
  PicturePair pictures = picture_pair(batch, env);
  if (plan.new_frame == NewFrame::kLast) pictures.back = pictures.front;
  return {pictures, needs_pooled(plan) ? pooled_of(batch, env) : nullptr,
          static_cast<int>(config_of(batch, env).height)};
}

// Whether rows and columns have weights.
CULE_INLINE bool is_weighted(const Resample& resample) {
  return resample.kind == ResampleKind::kLinear || resample.kind == ResampleKind::kArea;
}

// What a row's sum adds to an output pixel with kLinear, whose weights are integers.
CULE_INLINE float weigh_linearly(float weight, float sum) {
  return static_cast<float>((static_cast<int>(weight) * (static_cast<int>(sum) >> 4)) >> 16);
}

// A row of the resized frame: which source rows it covers, and the weights of the first kTaps.
struct alignas(16) CoveredRows {
  static constexpr int kTaps = 3;
  uint16_t first, count;
  float weights[kTaps];
};
CULE_INLINE CoveredRows covered_rows(const Resample& resample, int y) {
  const ResampleSpan span = row_span(resample, y);
  CoveredRows rows{static_cast<uint16_t>(span.first), static_cast<uint16_t>(span.count), {}};
  for (int r = 0; r < CoveredRows::kTaps; ++r) {
    const bool weighted = is_weighted(resample) && r < span.count;
    rows.weights[r] = weighted ? resample.weights[span.weight + r] : 1.0f;
  }
  return rows;
}
// Adds the sums of a source row.
CULE_INLINE void add_row(bool linear, float weight, int count, const float* sums, float* totals) {
  if (!linear) {
    for (int i = 0; i < count; ++i) totals[i] += weight * sums[i];
  } else {
    for (int i = 0; i < count; ++i) totals[i] += weigh_linearly(weight, sums[i]);
  }
}

// Makes rows [begin, end) of the resized frame `out`. It does the bytes of each row from `from` on,
// up to `kMax` for each lane. `Rows` has the source rows and adds up their pixels:
//   begin(from, bytes)        from here on, sums are for these bytes of a row
//   covered(y, end)           the source rows of row `y`; later calls are for rows before `end`
//   reach(line, count)        gets source rows ready, from `line` on, up to kReach of them
//   sum(line, bytes, sums)    sets `sums` to this lane's sums of one of these source rows
template <int kChannels, int kMax, class Rows, class Lanes>
CULE_INLINE void resize(const ObservationFormat& format, const Resample& resample, Rows& rows,
                        int from, int begin, int end, uint8_t* out, const Lanes& lanes) {
  if (begin >= end) return;
  const int row_bytes = format.width * kChannels, left = row_bytes - from;
  const int bytes = left < kMax * Lanes::kCount ? left : kMax * Lanes::kCount;
  const bool linear = resample.kind == ResampleKind::kLinear;
  float sums[kMax], totals[kMax];
  rows.begin(from, bytes);
  uint8_t* to = out + begin * row_bytes + from;
  for (int y = begin; y < end; ++y, to += row_bytes) {
    const CoveredRows covered = rows.covered(y, end);
    const int first = covered.first, count = covered.count;
    for (int i = 0; i < kMax; ++i) totals[i] = 0;
    rows.reach(first, count);
#pragma unroll
    for (int r = 0; r < CoveredRows::kTaps; ++r) {
      if (r >= count) break;
      rows.sum(first + r, bytes, sums);
      add_row(linear, covered.weights[r], kMax, sums, totals);
    }
#pragma unroll 1
    for (int r = CoveredRows::kTaps; r < count; ++r) {
      if (r % Rows::kReach == 0) rows.reach(first + r, count - r);
      rows.sum(first + r, bytes, sums);
      const ResampleSpan span = row_span(resample, y);
      const float weight = is_weighted(resample) ? resample.weights[span.weight + r] : 1.0f;
      add_row(linear, weight, kMax, sums, totals);
    }
    if (resample.kind == ResampleKind::kArea) {
      for_each_item<kMax>(lanes, bytes, [&](int slot, int item) CULE_INLINE_LAMBDA {
        to[item] = round_to_byte(totals[slot]);
      });
      continue;
    }
    // With kAreaInteger, all pixels cover the same number of columns.
    const int columns = resample.kind == ResampleKind::kAreaInteger ? resample.columns[0].count : 0;
    for_each_item<kMax>(lanes, bytes, [&](int slot, int item) CULE_INLINE_LAMBDA {
      to[item] = finish_pixel(resample, totals[slot], count, columns);
    });
  }
}

}  // namespace cule

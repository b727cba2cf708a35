// From pictures to observations: palette, maximum of two frames, area resize, frame stack.
//
// The resize is OpenCV's INTER_AREA to the bit: for each output row, for each source row it covers, the weighted sum of the source
// columns in single precision, left to right; then the weighted sum of those, top to bottom; rounded half to even.
#pragma once

#include "kernels/batch.h"

namespace cule {

CULE_INLINE uint8_t round_to_byte(float value) {
  const float rounded = __builtin_rintf(value);
  return static_cast<uint8_t>(rounded < 0 ? 0 : rounded > 255 ? 255 : rounded);
}

CULE_INLINE const uint8_t* palette_of(const Batch& batch, const ConsoleConfig& config) {
  return batch.observation.palettes + (config.pal ? 256u * static_cast<uint32_t>(batch.observation.channels) : 0u);
}

// Brings `pooled`, the frame that the newest observation is made of, up to date: byte `i` of it.
CULE_INLINE uint8_t pool_byte(uint32_t flags, const uint8_t* front, const uint8_t* back, const uint8_t* palette, int channels,
                              uint32_t i, uint8_t old) {
  const uint32_t pixel = channels == 1 ? i : i / 3, channel = channels == 1 ? 0 : i % 3;
  const uint32_t step = static_cast<uint32_t>(channels);
  const uint8_t last = palette[front[pixel] * step + channel];
  if (flags & kPoolLast) return last;
  if (flags & kLastResumed) return (flags & kPoolBoth) && last > old ? last : old;  // after pool_before_last
  const uint8_t before = palette[back[pixel] * step + channel];
  if (flags & kPoolBoth) return last > before ? last : before;
  return old > before ? old : before;
}

// The same for a whole frame. Most pixels repeat, so eight at a time are looked up again only where they change.
CULE_HD inline void pool_frame(uint32_t flags, const uint8_t* front, const uint8_t* back, const uint8_t* palette, int channels,
                               uint32_t pixels, uint8_t* pooled) {
  constexpr uint32_t kGroup = 8;
  uint64_t last_front = 0, last_back = 0;
  const uint8_t* last_out = nullptr;
  const bool old_counts = flags & (kPoolBackOntoOld | kLastResumed);
  for (uint32_t pixel = 0; pixel < pixels; pixel += kGroup) {
    uint64_t now_front, now_back;
    memcpy(&now_front, front + pixel, kGroup);
    memcpy(&now_back, back + pixel, kGroup);
    uint8_t* out = pooled + pixel * static_cast<uint32_t>(channels);
    const bool repeats = last_out && now_front == last_front && now_back == last_back && !old_counts;
    if (repeats) {
      memcpy(out, last_out, kGroup * static_cast<size_t>(channels));
    } else {
      for (uint32_t i = 0; i < kGroup * static_cast<uint32_t>(channels); ++i) {
        const uint32_t byte = pixel * static_cast<uint32_t>(channels) + i;
        out[i] = pool_byte(flags, front, back, palette, channels, byte, out[i]);
      }
    }
    last_front = now_front;
    last_back = now_back;
    last_out = out;
  }
}

// Takes the last frame but one out of the picture that it shares with the last (kLastResumed) before that is drawn: in place of
// the old frame, or onto it. pool_byte then has only the last one left to add.
CULE_HD inline void pool_before_last(const Batch& batch, size_t env, uint32_t flags, const uint8_t* picture) {
  const ConsoleConfig& config = config_of(batch, env);
  const int channels = batch.observation.channels;
  pool_frame(flags & kPoolBoth ? kPoolLast : kPoolBackOntoOld, picture, picture, palette_of(batch, config), channels,
             config.height * kLinePixels, batch.pooled + env * batch.picture_bytes * channels);
}

// One byte of the resized frame: row `y`, column `x`, `channel`.
CULE_HD inline uint8_t resample_byte(const Resample& resample, const uint8_t* frame, int channels, int y, int x, int channel) {
  const uint8_t* source = frame + channel;
  if (resample.kind == ResampleKind::kCopy) return source[(y * kLinePixels + x) * channels];
  const ResampleSpan rows = resample.rows[y], columns = resample.columns[x];
  if (resample.kind == ResampleKind::kAreaInteger) {
    int32_t sum = 0;
    for (int r = 0; r < rows.count; ++r) {
      for (int c = 0; c < columns.count; ++c) sum += source[((rows.first + r) * kLinePixels + columns.first + c) * channels];
    }
    if (rows.count == 2 && columns.count == 2) return static_cast<uint8_t>((sum + 2) >> 2);
    return round_to_byte(static_cast<float>(sum) * resample.scale);
  }
  float total = 0;
  for (int r = 0; r < rows.count; ++r) {
    const uint8_t* line = source + ((rows.first + r) * kLinePixels + columns.first) * channels;
    float sum = 0;
    for (int c = 0; c < columns.count; ++c) sum += static_cast<float>(line[c * channels]) * resample.weights[columns.weight + c];
    total += resample.weights[rows.weight + r] * sum;
  }
  return round_to_byte(total);
}

// The same for a whole frame, sharing each source row's sums among the output rows that need it, and between equal rows.
// `sums` has room for [width * channels] floats, twice.
inline void resample_frame(const ObservationFormat& format, const Resample& resample, const uint8_t* frame, uint8_t* out,
                           float* sums) {
  const int channels = format.channels;
  const int row_bytes = format.width * channels;
  if (resample.kind != ResampleKind::kArea) {
    for (int y = 0; y < format.height; ++y) {
      for (int i = 0; i < row_bytes; ++i) out[y * row_bytes + i] = resample_byte(resample, frame, channels, y, i / channels, i % channels);
    }
    return;
  }
  float* row = sums;
  float* total = sums + row_bytes;
  const uint8_t* summed = nullptr;  // the source row that `row` was computed from
  for (int y = 0; y < format.height; ++y) {
    const ResampleSpan rows = resample.rows[y];
    for (int r = 0; r < rows.count; ++r) {
      const uint8_t* line = frame + (rows.first + r) * kLinePixels * channels;
      if (!summed || memcmp(line, summed, static_cast<size_t>(kLinePixels * channels)) != 0) {
        for (int x = 0; x < format.width; ++x) {
          const ResampleSpan columns = resample.columns[x];
          for (int channel = 0; channel < channels; ++channel) {
            const uint8_t* pixel = line + columns.first * channels + channel;
            float sum = 0;
            for (int c = 0; c < columns.count; ++c) sum += static_cast<float>(pixel[c * channels]) * resample.weights[columns.weight + c];
            row[x * channels + channel] = sum;
          }
        }
      }
      summed = line;
      const float weight = resample.weights[rows.weight + r];
      if (r == 0) for (int i = 0; i < row_bytes; ++i) total[i] = weight * row[i];
      else for (int i = 0; i < row_bytes; ++i) total[i] += weight * row[i];
    }
    for (int i = 0; i < row_bytes; ++i) out[y * row_bytes + i] = round_to_byte(total[i]);
  }
}

// The env's new observation, by one thread: `flags` (TraceFlag) say what it is made of.
inline void observe(const Batch& batch, size_t env, uint32_t flags, float* sums) {
  const ObservationFormat& format = batch.observation;
  const ConsoleConfig& config = config_of(batch, env);
  const size_t frame_bytes = static_cast<size_t>(format.height) * format.width * format.channels;
  uint8_t* stack = batch.observations + env * frame_bytes * format.stack;
  uint8_t* newest = stack + frame_bytes * (format.stack - 1);
  uint8_t* pooled = batch.pooled + env * batch.picture_bytes * format.channels;
  if (flags & kFresh) memset(stack, 0, frame_bytes * (format.stack - 1));
  else memmove(stack, stack + frame_bytes, frame_bytes * (format.stack - 1));
  if (flags & (kPoolBoth | kPoolLast | kPoolBackOntoOld)) {
    TiaState tia;
    load_part(batch.records, env, offsetof(EnvRecord, tia), tia);
    const uint8_t* pictures = pictures_of(batch, env);
    const uint8_t* front = pictures + tia.front * batch.picture_bytes;
    const uint8_t* back = pictures + (tia.front ^ 1) * batch.picture_bytes;
    const uint8_t* palette = palette_of(batch, config);
    pool_frame(flags, front, back, palette, format.channels, config.height * kLinePixels, pooled);
  }
  resample_frame(format, format.resamples[batch.group[env]], pooled, newest, sums);
}

}  // namespace cule

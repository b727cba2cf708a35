// From pictures to observations: palette, maximum of two frames, area resize, frame stack.
//
// The resize is OpenCV's INTER_AREA to the bit: for each output row, for each source row it covers, the weighted sum of the source
// columns in single precision, left to right; then the weighted sum of those, top to bottom; rounded half to even. Where a size
// grows, OpenCV interpolates instead, in integers; row sums stay below 2^24, so that they are exact in single precision, too.
//
// Nothing of the size of a picture is written on the way, with one exception: `pooled`, the frame that the newest observation is made
// of, where it can no longer be had from the two pictures and may still be asked for (TiaState::observed).
#pragma once

#include "kernels/batch.h"
#include "kernels/lanes.h"

namespace cule {

constexpr uint32_t kPools = kPoolBoth | kPoolLast | kPoolBackOntoOld;  // the observation has a new frame

// The nearest byte, the even one of two. Added to 1.5 * 2^23, whose neighbours are one apart, a float is rounded so, and its lowest bits
// are the whole number's: that takes a few instructions everywhere, where rintf is a function call on a CPU.
CULE_INLINE uint8_t round_to_byte(float value) {
  const float within = value < 0 ? 0.0f : value > 255 ? 255.0f : value, shifted = within + 12582912.0f;
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  return static_cast<uint8_t>(bits);
}

CULE_INLINE const uint8_t* palette_of(const Batch& batch, const ConsoleConfig& config) {
  return batch.observation.palettes + (config.pal ? 256u * static_cast<uint32_t>(batch.observation.channels) : 0u);
}

// A byte of an env's TIA state.
CULE_INLINE uint8_t* tia_byte(const Batch& batch, size_t env, size_t offset) {
  const size_t at = offsetof(EnvRecord, tia) + offset;
  return reinterpret_cast<uint8_t*>(batch.records.words + at / 4 * batch.records.word_stride + env * batch.records.env_stride) + at % 4;
}

// An env's pictures: the last frame's, and the one's before.
struct PicturePair {
  const uint8_t *front, *back;
};
CULE_INLINE PicturePair picture_pair(const Batch& batch, size_t env) {
  const uint32_t front = *tia_byte(batch, env, offsetof(TiaState, front)) & 1;
  const uint8_t* pictures = pictures_of(batch, env);
  return {pictures + front * batch.picture_bytes, pictures + (front ^ 1) * batch.picture_bytes};
}

// The pooled frame ---------------------------------------------------------------------------------------------------------

// Whether the frame is not made of the two pictures alone.
CULE_INLINE bool needs_pooled(uint32_t flags) {
  return (flags & kPoolBackOntoOld) || ((flags & kPoolBoth) && (flags & kLastResumed));
}

// Byte `i` of the frame that `flags` (TraceFlag) ask for. `old` is what `pooled` holds.
CULE_INLINE uint8_t pool_byte(uint32_t flags, const PicturePair& pictures, const uint8_t* palette, uint32_t channels, uint32_t i,
                              uint32_t old) {
  const uint32_t pixel = channels == 1 ? i : i / 3, channel = channels == 1 ? 0 : i % 3;
  const uint32_t last = palette[pictures.front[pixel] * channels + channel];
  if (flags & kPoolLast) return static_cast<uint8_t>(last);
  uint32_t other = old;
  if (flags & kLastResumed) {  // after pool_before_last
    if (!(flags & kPoolBoth)) return static_cast<uint8_t>(old);
    return static_cast<uint8_t>(last > old ? last : old);
  }
  const uint32_t before = palette[pictures.back[pixel] * channels + channel];
  if (flags & kPoolBoth) other = last;
  return static_cast<uint8_t>(other > before ? other : before);
}

// Brings lines [from, to) of `pooled` up to date, as far as there are such, four bytes at a time.
template <class Lanes>
CULE_HD inline void pool_lines(const Batch& batch, size_t env, uint32_t flags, const PicturePair& pictures, uint32_t from, uint32_t to,
                               const Lanes& lanes) {
  const ConsoleConfig& config = config_of(batch, env);
  const uint32_t channels = static_cast<uint32_t>(batch.observation.channels);
  const uint8_t* palette = palette_of(batch, config);
  uint32_t* pooled = reinterpret_cast<uint32_t*>(batch.pooled + env * batch.picture_bytes * channels);
  const uint32_t line_words = kLinePixels * channels / 4, end = (to < config.height ? to : config.height) * line_words;
  for (uint32_t word = from * line_words + static_cast<uint32_t>(lanes.lane()); word < end; word += Lanes::kCount) {
    const uint32_t old = pooled[word];
    uint32_t out = 0;
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t byte = pool_byte(flags, pictures, palette, channels, 4 * word + i, old >> 8 * i & 0xFF);
      out |= byte << 8 * i;
    }
    pooled[word] = out;
  }
}

template <class Lanes>
CULE_HD inline void pool_frame(const Batch& batch, size_t env, uint32_t flags, const PicturePair& pictures, const Lanes& lanes) {
  pool_lines(batch, env, flags, pictures, 0, ~0u, lanes);
}

// Takes lines [from, to) of the last frame but one out of the picture that it shares with the last (kLastResumed) before that is drawn:
// in place of the old frame, or onto it. pool_byte then has only the last one left to add.
CULE_HD inline void pool_before_last(const Batch& batch, size_t env, uint32_t flags, const uint8_t* picture, uint32_t from, uint32_t to) {
  pool_lines(batch, env, flags & kPoolBoth ? kPoolLast : kPoolBackOntoOld, PicturePair{picture, picture}, from, to, OneLane{});
}

// Whether the step that `trace` tells of draws over pictures that the newest observation shows, which goes on being shown.
CULE_INLINE bool draws_over_observed(const Batch& batch, size_t env, const StepTrace& trace) {
  return trace.entries > 0 && !(trace.flags & (kPoolBoth | kPoolLast)) && *tia_byte(batch, env, offsetof(TiaState, observed));
}

// Saves the frame of the newest observation before the pictures that it is made of are drawn over.
template <class Lanes>
CULE_HD inline void keep_observed(const Batch& batch, size_t env, const Lanes& lanes) {
  uint8_t* observed = tia_byte(batch, env, offsetof(TiaState, observed));
  pool_frame(batch, env, *observed, picture_pair(batch, env), lanes);
  lanes.sync();
  if (lanes.lane() == 0) *observed = 0;
}

// Remembers what the newest observation shows, once that has been made as `flags` ask for.
CULE_INLINE void note_observed(const Batch& batch, size_t env, uint32_t flags) {
  *tia_byte(batch, env, offsetof(TiaState, observed)) =
      static_cast<uint8_t>(needs_pooled(flags) ? 0u : flags & (kPoolLast | kPoolBoth));
}

// The resize ---------------------------------------------------------------------------------------------------------------

CULE_INLINE ResampleSpan row_span(const Resample& resample, int y) {
  return resample.kind == ResampleKind::kCopy ? ResampleSpan{y, 1, 0} : resample.rows[y];
}
CULE_INLINE ResampleSpan column_span(const Resample& resample, int x) {
  return resample.kind == ResampleKind::kCopy ? ResampleSpan{x, 1, 0} : resample.columns[x];
}

// A pixel's value from the weighted sum of what it covers; `columns` and `rows` are how much.
CULE_INLINE uint8_t finish_pixel(const Resample& resample, float total, int rows, int columns) {
  if (resample.kind == ResampleKind::kArea) return round_to_byte(total);
  if (resample.kind == ResampleKind::kCopy) return static_cast<uint8_t>(total);
  if (resample.kind == ResampleKind::kLinear) return static_cast<uint8_t>((static_cast<int>(total) + 2) >> 2);
  // Sums of bytes are whole numbers below 2^24, so that they are exact.
  if (rows == 2 && columns == 2) return static_cast<uint8_t>((static_cast<int>(total) + 2) >> 2);
  return round_to_byte(total * resample.scale);
}

// What an observation's newest frame is made of: the maximum of two pictures' colors, or, where `pooled` is not null, that.
struct FrameSource {
  PicturePair pictures;
  const uint8_t* pooled;
  int height;
};
CULE_INLINE FrameSource frame_source(const Batch& batch, size_t env, uint32_t flags) {
  PicturePair pictures = picture_pair(batch, env);
  if (flags & kPoolLast) pictures.back = pictures.front;
  const uint8_t* pooled = batch.pooled + env * batch.picture_bytes * batch.observation.channels;
  return {pictures, needs_pooled(flags) ? pooled : nullptr, static_cast<int>(config_of(batch, env).height)};
}

// One lane's words, of four pixels each, of a row of both pictures.
template <class Lanes>
struct RowWords {
  static constexpr int kWords = kLinePixels / 4;
  static constexpr int kMost = (kWords + Lanes::kCount - 1) / Lanes::kCount;
  uint32_t front[kMost], back[kMost];

  CULE_INLINE void load(const FrameSource& source, int line, const Lanes& lanes) {
    const uint32_t* from[2] = {reinterpret_cast<const uint32_t*>(source.pictures.front) + line * kWords,
                               reinterpret_cast<const uint32_t*>(source.pictures.back) + line * kWords};
    for_each_item<kMost>(lanes, kWords, [&](int slot, int word) {
      front[slot] = from[0][word];
      back[slot] = from[1][word];
    });
  }
};

struct alignas(16) FourFloats {
  float values[4];
};

// The values of a row of the source into `pixels`, [160][kChannels]. `palette` has them as any type.
template <int kChannels, class Lanes, class Color>
CULE_INLINE void look_up_row(const RowWords<Lanes>& row, const Color* palette, float* pixels, const Lanes& lanes) {
  using Row = RowWords<Lanes>;
  bool mixed = false;
  for_each_item<Row::kMost>(lanes, Row::kWords, [&](int slot, int) { mixed |= row.front[slot] != row.back[slot]; });
  const bool two = lanes.any(mixed);
  for_each_item<Row::kMost>(lanes, Row::kWords, [&](int slot, int word) {
    FourFloats out[kChannels];
#pragma unroll
    for (int i = 0; i < 4 * kChannels; ++i) {
      const uint32_t shift = 8 * static_cast<uint32_t>(i / kChannels), channel = static_cast<uint32_t>(i % kChannels);
      Color value = palette[(row.front[slot] >> shift & 0xFF) * kChannels + channel];
      if (two) {
        const Color other = palette[(row.back[slot] >> shift & 0xFF) * kChannels + channel];
        value = other > value ? other : value;
      }
      out[i / 4].values[i % 4] = static_cast<float>(value);
    }
#pragma unroll
    for (int i = 0; i < kChannels; ++i) reinterpret_cast<FourFloats*>(pixels)[word * kChannels + i] = out[i];
  });
}

// What a row's sum adds to an output pixel.
CULE_INLINE float weigh_row(bool linear, float weight, float sum) {
  if (!linear) return weight * sum;
  return static_cast<float>((static_cast<int>(weight) * (static_cast<int>(sum) >> 4)) >> 16);
}

// Rows [begin, end) of the resized frame, from byte `from` of each on, as many as the lanes can have: `kMost` each. Each source row is
// summed once, and not at all where it equals the one above, as most do. `pixels` is room for a source row's, which all lanes see.
template <int kChannels, int kMost, class Lanes, class Color>
CULE_HD inline void resample_bytes(const ObservationFormat& format, const Resample& resample, const FrameSource& source,
                                   const Color* palette, int begin, int end, int from, uint8_t* out, float* pixels,
                                   const Lanes& lanes) {
  constexpr uint32_t kFirstBits = 9, kCountBits = 8;  // of a packed span; the rest is where its weights begin
  const int row_bytes = format.width * kChannels;
  const int items = row_bytes - from < kMost * Lanes::kCount ? row_bytes - from : kMost * Lanes::kCount;
  const bool linear = resample.kind == ResampleKind::kLinear, weighted = linear || resample.kind == ResampleKind::kArea;
  uint32_t spans[kMost];
  float sums[kMost], totals[kMost];
  for_each_item<kMost>(lanes, items, [&](int slot, int item) {
    const ResampleSpan span = column_span(resample, (from + item) / kChannels);
    spans[slot] = static_cast<uint32_t>(span.first * kChannels + (from + item) % kChannels) | static_cast<uint32_t>(span.count) << kFirstBits |
                  static_cast<uint32_t>(span.weight) << (kFirstBits + kCountBits);
  });
  const auto span_count = [&](int slot) { return static_cast<int>(spans[slot] >> kFirstBits & ((1u << kCountBits) - 1)); };
  RowWords<Lanes> last{}, next{};
  int summed = -1, fetched = -1;
  for (int y = begin; y < end; ++y) {
    const ResampleSpan rows = row_span(resample, y);
    for (int r = 0; r < rows.count; ++r) {
      const int line = rows.first + r;
      if (line != summed) {
        bool differs = summed < 0 || source.pooled;
        if (!source.pooled) {
          if (line != fetched) next.load(source, line, lanes);
          for_each_item<RowWords<Lanes>::kMost>(lanes, RowWords<Lanes>::kWords, [&](int slot, int) {
            differs |= next.front[slot] != last.front[slot] || next.back[slot] != last.back[slot];
          });
          last = next;
          // A GPU has the next row on its way while it works on this one.
          fetched = line + 1 < source.height ? line + 1 : line;
          next.load(source, fetched, lanes);
          differs = lanes.any(differs);
        }
        summed = line;
        if (differs) {
          lanes.sync();
          if (source.pooled) {
            const int row_pixels = kLinePixels * kChannels;
            const uint8_t* row = source.pooled + line * row_pixels;
            for (int i = lanes.lane(); i < row_pixels; i += Lanes::kCount) pixels[i] = static_cast<float>(row[i]);
          } else {
            look_up_row<kChannels>(last, palette, pixels, lanes);
          }
          lanes.sync();
          for_each_item<kMost>(lanes, items, [&](int slot, int) {
            const float* pixel = pixels + (spans[slot] & ((1u << kFirstBits) - 1));
            const float* weight = resample.weights + (spans[slot] >> (kFirstBits + kCountBits));
            const int count = span_count(slot);
            float sum = 0;
            if (weighted) for (int c = 0; c < count; ++c) sum += pixel[c * kChannels] * weight[c];
            else for (int c = 0; c < count; ++c) sum += pixel[c * kChannels];
            sums[slot] = sum;
          });
        }
      }
      const float weight = weighted ? resample.weights[rows.weight + r] : 1.0f;
      if (r == 0) for_each_item<kMost>(lanes, items, [&](int slot, int) { totals[slot] = weigh_row(linear, weight, sums[slot]); });
      else for_each_item<kMost>(lanes, items, [&](int slot, int) { totals[slot] += weigh_row(linear, weight, sums[slot]); });
    }
    for_each_item<kMost>(lanes, items, [&](int slot, int item) {
      out[y * row_bytes + from + item] = finish_pixel(resample, totals[slot], rows.count, span_count(slot));
    });
  }
}

// Rows [begin, end) of the resized frame.
template <int kChannels, int kMost, class Lanes, class Color>
CULE_HD inline void resample_rows(const ObservationFormat& format, const Resample& resample, const FrameSource& source,
                                  const Color* palette, int begin, int end, uint8_t* out, float* pixels, const Lanes& lanes) {
#pragma unroll 1
  for (int from = 0; from < format.width * kChannels; from += kMost * Lanes::kCount) {
    resample_bytes<kChannels, kMost>(format, resample, source, palette, begin, end, from, out, pixels, lanes);
  }
}

// The stack --------------------------------------------------------------------------------------------------------------------

CULE_INLINE size_t observed_frame_bytes(const ObservationFormat& format) {
  return static_cast<size_t>(format.height) * format.width * format.channels;
}

// Moves frames on by one. The newest stays where it is.
template <class Chunk, class Lanes>
CULE_INLINE void shift_chunks(Chunk* stack, size_t chunks, int frames, bool fresh, const Lanes& lanes) {
  constexpr int kAtOnce = 4;  // loads that wait for none of the stores
  for (size_t i = static_cast<size_t>(lanes.lane()); i < chunks; i += Lanes::kCount) {
    for (int frame = 0; frame + 1 < frames; frame += kAtOnce) {
      Chunk held[kAtOnce] = {};
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (!fresh && frame + k + 1 < frames) held[k] = stack[static_cast<size_t>(frame + k + 1) * chunks + i];
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        if (frame + k + 1 < frames) stack[static_cast<size_t>(frame + k) * chunks + i] = held[k];
      }
    }
  }
}

struct alignas(16) SixteenBytes {
  uint32_t words[4];
};

// Makes room for a new observation at the end of an env's stack; before a fresh one all is black.
template <class Lanes>
CULE_HD inline void shift_stack(const Batch& batch, size_t env, uint32_t flags, const Lanes& lanes) {
  const size_t bytes = observed_frame_bytes(batch.observation);
  const int frames = batch.observation.stack;
  uint8_t* stack = batch.observations + env * bytes * frames;
  const bool fresh = flags & kFresh;
  constexpr size_t kChunk = sizeof(SixteenBytes);
  if (bytes % kChunk == 0) shift_chunks(reinterpret_cast<SixteenBytes*>(stack), bytes / kChunk, frames, fresh, lanes);
  else shift_chunks(stack, bytes, frames, fresh, lanes);
}

CULE_INLINE uint8_t* newest_frame(const Batch& batch, size_t env) {
  return batch.observations + ((env + 1) * batch.observation.stack - 1) * observed_frame_bytes(batch.observation);
}

// The env's new observation, by one thread: `flags` (TraceFlag) say what it is made of.
template <int kChannels>
inline void observe_alone(const Batch& batch, size_t env, uint32_t flags) {
  const OneLane lane;
  const ObservationFormat& format = batch.observation;
  shift_stack(batch, env, flags, lane);
  if (!(flags & kPools)) return;
  if (needs_pooled(flags)) pool_frame(batch, env, flags, picture_pair(batch, env), lane);
  alignas(FourFloats) float pixels[kLinePixels * kChannels];
  resample_rows<kChannels, kLinePixels * kChannels>(format, format.resamples[batch.group[env]], frame_source(batch, env, flags),
                                                    palette_of(batch, config_of(batch, env)), 0, format.height,
                                                    newest_frame(batch, env), pixels, lane);
  note_observed(batch, env, flags);
}
inline void observe(const Batch& batch, size_t env, uint32_t flags) {
  if (batch.observation.channels == 1) observe_alone<1>(batch, env, flags);
  else observe_alone<3>(batch, env, flags);
}

}  // namespace cule

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

// The nearest byte, the even one of two. `value` is not negative. Added to 1.5 * 2^23, whose neighbours
// are one apart, a float is rounded so, and its lowest bits are the whole number's: that takes a few
// instructions everywhere, where rintf is a function call on a CPU.
CULE_INLINE uint8_t round_to_byte(float value) {
  const float shifted = value + 12582912.0f;
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  const uint32_t whole = bits & 0x3FFFFF;
  return static_cast<uint8_t>(whole < 255 ? whole : 255);
}

// The same for many, in a loop that a compiler makes vector instructions of.
CULE_INLINE void round_to_bytes(const float* __restrict__ values, int count, uint8_t* __restrict__ bytes) {
  for (int i = 0; i < count; ++i) bytes[i] = round_to_byte(values[i]);
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

// One lane's words, of four pixels each, of a row of both pictures: a copy, as a GPU has it on its way
// early.
template <class Lanes>
struct RowWords {
  static constexpr int kWords = kLinePixels / 4;
  static constexpr int kMost = (kWords + Lanes::kCount - 1) / Lanes::kCount;
  uint32_t front[kMost], back[kMost];

  CULE_INLINE void load(const uint32_t* front_row, const uint32_t* back_row, const Lanes& lanes) {
    for_each_item<kMost>(lanes, kWords, [&](int slot, int word) {
      front[slot] = front_row[word];
      back[slot] = back_row[word];
    });
  }
};
// One thread alone reads them where they are.
template <>
struct RowWords<OneLane> {
  static constexpr int kWords = kLinePixels / 4, kMost = kWords;
  const uint32_t *front, *back;
  CULE_INLINE void load(const uint32_t* front_row, const uint32_t* back_row, const OneLane&) {
    front = front_row;
    back = back_row;
  }
};

template <class Lanes>
CULE_INLINE RowWords<Lanes> load_row(const FrameSource& source, int line, const Lanes& lanes) {
  RowWords<Lanes> row;
  const uint32_t* front = reinterpret_cast<const uint32_t*>(source.pictures.front);
  const uint32_t* back = reinterpret_cast<const uint32_t*>(source.pictures.back);
  row.load(front + line * row.kWords, back + line * row.kWords, lanes);
  return row;
}

// Which of this lane's words differ between two rows: a bit for each of its slots.
template <class Lanes>
CULE_INLINE uint64_t differing_words(const RowWords<Lanes>& row, const RowWords<Lanes>& other,
                                     const Lanes& lanes) {
  uint64_t differing = 0;
  for_each_item<row.kMost>(lanes, row.kWords, [&](int slot, int) {
    const bool differs = row.front[slot] != other.front[slot] || row.back[slot] != other.back[slot];
    differing |= static_cast<uint64_t>(differs) << slot;
  });
  return differing;
}

// Most rows are equal, which is asked first, of as many words at once as the compiler can.
CULE_INLINE uint64_t differing_words(const RowWords<OneLane>& row, const RowWords<OneLane>& other,
                                     const OneLane&) {
  const auto difference = [&](int word) {
    return (row.front[word] ^ other.front[word]) | (row.back[word] ^ other.back[word]);
  };
  uint32_t any = 0;
  for (int word = 0; word < row.kWords; ++word) any |= difference(word);
  uint64_t differing = 0;
  if (any == 0) return differing;
  for (int word = 0; word < row.kWords; ++word) {
    differing |= static_cast<uint64_t>(difference(word) != 0) << word;
  }
  return differing;
}

struct alignas(16) FourFloats {
  float values[4];
};

// The values of a row of the source into `pixels`, [160][kChannels]: those of this lane's words that
// `wanted` has a bit for. `palette` has them as any type.
template <int kChannels, class Lanes, class Color>
CULE_INLINE void look_up_row(const RowWords<Lanes>& row, uint64_t wanted, const Color* palette,
                             float* pixels, const Lanes& lanes) {
  for_each_item<row.kMost>(lanes, row.kWords, [&](int slot, int word) {
    if (!(wanted >> slot & 1)) return;
    const uint32_t front = row.front[slot], back = row.back[slot];
    const bool two = front != back;
    FourFloats out[kChannels];
#pragma unroll
    for (int i = 0; i < 4 * kChannels; ++i) {
      const uint32_t shift = 8 * static_cast<uint32_t>(i / kChannels);
      const uint32_t channel = static_cast<uint32_t>(i % kChannels);
      Color value = palette[(front >> shift & 0xFF) * kChannels + channel];
      if (two) {
        const Color other = palette[(back >> shift & 0xFF) * kChannels + channel];
        value = other > value ? other : value;
      }
      out[i / 4].values[i % 4] = static_cast<float>(value);
    }
#pragma unroll
    for (int i = 0; i < kChannels; ++i) {
      reinterpret_cast<FourFloats*>(pixels)[word * kChannels + i] = out[i];
    }
  });
}

// What a row's sum adds to an output pixel.
CULE_INLINE float weigh_row(bool linear, float weight, float sum) {
  if (!linear) return weight * sum;
  return static_cast<float>((static_cast<int>(weight) * (static_cast<int>(sum) >> 4)) >> 16);
}

// Resizes rows of a frame, as many bytes of each as the lanes can have, `kMost` each: from byte `from`
// on. Each source row is summed once, and not at all where it equals the one above, as most do.
// `pixels` is room for a source row's, which all lanes see.
template <int kChannels, int kMost, class Lanes, class Color>
class Resizer {
 public:
  CULE_INLINE Resizer(const ObservationFormat& format, const Resample& resample,
                      const FrameSource& source, const Color* palette, int from, float* pixels,
                      const Lanes& lanes)
      : resample_(resample), source_(source), palette_(palette), pixels_(pixels), lanes_(lanes),
        from_(from), row_bytes_(format.width * kChannels),
        items_(row_bytes_ - from < kMost * Lanes::kCount ? row_bytes_ - from : kMost * Lanes::kCount),
        linear_(resample.kind == ResampleKind::kLinear),
        weighted_(linear_ || resample.kind == ResampleKind::kArea) {
    for_each_item<kMost>(lanes_, items_, [&](int slot, int item) {
      const ResampleSpan span = column_span(resample_, (from_ + item) / kChannels);
      const int channel = (from_ + item) % kChannels;
      spans_[slot] = static_cast<uint32_t>(span.first * kChannels + channel) |
                     static_cast<uint32_t>(span.count) << kFirstBits |
                     static_cast<uint32_t>(span.weight) << kWeightShift;
      if (kAlone) note_reader(slot, span);
    });
  }

  // Rows [begin, end) of the resized frame, into `out`.
  CULE_INLINE void resize(int begin, int end, uint8_t* out) {
    for (int y = begin; y < end; ++y) {
      const ResampleSpan rows = row_span(resample_, y);
      for (int r = 0; r < rows.count; ++r) {
        if (rows.first + r != summed_) sum(rows.first + r);
        add(weighted_ ? resample_.weights[rows.weight + r] : 1.0f, r == 0);
      }
      finish(rows.count, out + y * row_bytes_ + from_);
    }
  }

 private:
  // Of a packed span; the rest is where its weights begin.
  static constexpr uint32_t kFirstBits = 9, kCountBits = 8, kWeightShift = kFirstBits + kCountBits;

  CULE_INLINE int span_count(int slot) const {
    return static_cast<int>(spans_[slot] >> kFirstBits & ((1u << kCountBits) - 1));
  }

  // Works out the sums of a source row.
  CULE_INLINE void sum(int line) {
    const bool first = summed_ < 0;
    summed_ = line;
    uint64_t differing = ~uint64_t{0};
    if (source_.pooled) {
      lanes_.sync();
      const int row_pixels = kLinePixels * kChannels;
      const uint8_t* row = source_.pooled + line * row_pixels;
      for (int i = lanes_.lane(); i < row_pixels; i += Lanes::kCount) {
        pixels_[i] = static_cast<float>(row[i]);
      }
    } else {
      if (line != fetched_) next_ = load_row(source_, line, lanes_);
      if (!first) differing = differing_words(next_, last_, lanes_);
      last_ = next_;
      // A GPU has the next row on its way while it works on this one.
      fetched_ = line + 1 < source_.height ? line + 1 : line;
      next_ = load_row(source_, fetched_, lanes_);
      if (!lanes_.any(differing != 0)) return;
      lanes_.sync();
      look_up_row<kChannels>(last_, differing, palette_, pixels_, lanes_);
    }
    lanes_.sync();
    if (kAlone && !first && !source_.pooled) {
      int summed = 0;
      for (int word = 0; word < last_.kWords; ++word) {
        if (!(differing >> word & 1)) continue;
        const Readers readers = readers_[word];
        int slot = summed < readers.begin ? readers.begin : summed;
        for (; slot < readers.end; ++slot) sum_item(slot);
        summed = readers.end;
      }
    } else {
      for_each_item<kMost>(lanes_, items_, [&](int slot, int) { sum_item(slot); });
    }
  }

  // Works out the sum of the pixels that one byte of the frame covers in a row.
  CULE_INLINE void sum_item(int slot) {
    const float* pixel = pixels_ + (spans_[slot] & ((1u << kFirstBits) - 1));
    const float* weight = resample_.weights + (spans_[slot] >> kWeightShift);
    const int count = span_count(slot);
    float total = 0;
    if (weighted_) for (int c = 0; c < count; ++c) total += pixel[c * kChannels] * weight[c];
    else for (int c = 0; c < count; ++c) total += pixel[c * kChannels];
    sums_[slot] = total;
  }

  CULE_INLINE void note_reader(int slot, const ResampleSpan& span) {
    for (int word = span.first / 4; word <= (span.first + span.count - 1) / 4; ++word) {
      if (readers_[word].end == 0) readers_[word].begin = static_cast<uint16_t>(slot);
      readers_[word].end = static_cast<uint16_t>(slot + 1);
    }
  }

  // Writes down a row of the frame, of which `rows` of the source have been added up.
  CULE_INLINE void finish(int rows, uint8_t* __restrict__ out) {
    if (kAlone && resample_.kind == ResampleKind::kArea) {
      return round_to_bytes(totals_, items_, out);
    }
    for_each_item<kMost>(lanes_, items_, [&](int slot, int item) {
      out[item] = finish_pixel(resample_, totals_[slot], rows, span_count(slot));
    });
  }

  // Adds the sums of a source row, the first or a later one of those that a row of the frame covers.
  CULE_INLINE void add(float weight, bool first) {
    for_each_item<kMost>(lanes_, items_, [&](int slot, int) {
      const float weighed = weigh_row(linear_, weight, sums_[slot]);
      totals_[slot] = first ? weighed : totals_[slot] + weighed;
    });
  }

  const Resample& resample_;
  const FrameSource& source_;
  const Color* palette_;
  float* pixels_;
  const Lanes& lanes_;
  int from_, row_bytes_, items_;
  bool linear_, weighted_;
  uint32_t spans_[kMost];
  float sums_[kMost], totals_[kMost];
  RowWords<Lanes> last_{}, next_{};
  int summed_ = -1, fetched_ = -1;
  // Where one thread works alone: the bytes that cover pixels of each word, which are neighbours.
  static constexpr bool kAlone = Lanes::kCount == 1;
  struct Readers {
    uint16_t begin, end;
  };
  Readers readers_[kAlone ? kLinePixels / 4 : 1] = {};
};

// Rows [begin, end) of the resized frame.
template <int kChannels, int kMost, class Lanes, class Color>
CULE_HD inline void resample_rows(const ObservationFormat& format, const Resample& resample, const FrameSource& source,
                                  const Color* palette, int begin, int end, uint8_t* out, float* pixels, const Lanes& lanes) {
#pragma unroll 1
  for (int from = 0; from < format.width * kChannels; from += kMost * Lanes::kCount) {
    Resizer<kChannels, kMost, Lanes, Color> resizer(format, resample, source, palette, from, pixels,
                                                    lanes);
    resizer.resize(begin, end, out);
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

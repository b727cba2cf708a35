// From a frame to an observation's size.
//
// The resize is OpenCV's INTER_AREA to the bit: for each output row, for each source row it covers,
// the weighted sum of the source columns in single precision, left to right; then the weighted sum
// of those, top to bottom; rounded half to even. Where a size grows, OpenCV interpolates instead,
// in integers; row sums stay below 2^24, so that they are exact in single precision, too.
#pragma once

#include "kernels/observe/pool.h"

namespace cule {

// The nearest byte, the even one of two. `value` is not negative. Added to 1.5 * 2^23, whose
// neighbours are one apart, a float is rounded so, and its lowest bits are the whole number's: that
// takes a few instructions everywhere, where rintf is a function call on a CPU.
CULE_INLINE uint8_t round_to_byte(float value) {
  const float shifted = value + 12582912.0f;
  uint32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  const uint32_t whole = bits & 0x3FFFFF;
  return static_cast<uint8_t>(whole < 255 ? whole : 255);
}

// The same for many, in a loop that a compiler makes vector instructions of.
CULE_INLINE void round_to_bytes(const float* __restrict__ values, int count,
                                uint8_t* __restrict__ bytes) {
  for (int i = 0; i < count; ++i) bytes[i] = round_to_byte(values[i]);
}

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
  if (resample.kind == ResampleKind::kLinear)
    return static_cast<uint8_t>((static_cast<int>(total) + 2) >> 2);
  // Sums of bytes are whole numbers below 2^24, so that they are exact.
  if (rows == 2 && columns == 2) return static_cast<uint8_t>((static_cast<int>(total) + 2) >> 2);
  return round_to_byte(total * resample.scale);
}

// What an observation's newest frame is made of: the maximum of two pictures' colors, or, where
// `pooled` is not null, that.
struct FrameSource {
  PicturePair pictures;
  const uint8_t* pooled;
  int height;

  // Whether two lines of both pictures show the same rows.
  CULE_INLINE bool same_rows(int a, int b) const {
    return !pooled && pictures.front.row_of[a] == pictures.front.row_of[b] &&
           pictures.back.row_of[a] == pictures.back.row_of[b];
  }
};
CULE_INLINE FrameSource frame_source(const Batch& batch, size_t env, uint32_t flags) {
  PicturePair pictures = picture_pair(batch, env);
  if (flags & kPoolLast) pictures.back = pictures.front;
  const uint8_t* pooled = batch.pooled + env * batch.picture_bytes * batch.observation.channels;
  return {pictures, needs_pooled(flags) ? pooled : nullptr,
          static_cast<int>(config_of(batch, env).height)};
}

// One lane's words, of four pixels each, of a row of both pictures: a copy, as a GPU has it on its
// way early.
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
  const uint32_t at = static_cast<uint32_t>(line);
  row.load(reinterpret_cast<const uint32_t*>(source.pictures.front.row(at)),
           reinterpret_cast<const uint32_t*>(source.pictures.back.row(at)), lanes);
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

// The values of a row of the source into `pixels`, [160][kChannels]: those of this lane's words
// that `wanted` has a bit for. `palette` has them as any type.
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

// Floats for a row of the source, and behind it some that are added with a weight of zero.
template <int kChannels>
constexpr int kRowFloats = (kLinePixels + 4) * kChannels;

// Resizes rows of a frame, as many bytes of each as the lanes can have, `kMost` each: from byte
// `from` on. Each source row is summed once, and not at all where it equals the one above, as most
// do. `pixels` is room for a source row's kRowFloats, which all lanes see.
template <int kChannels, int kMost, class Lanes, class Color>
class Resizer {
 public:
  CULE_INLINE Resizer(const ObservationFormat& format, const Resample& resample,
                      const FrameSource& source, const Color* palette, int from, float* pixels,
                      const Lanes& lanes)
      : resample_(resample),
        source_(source),
        palette_(palette),
        pixels_(pixels),
        lanes_(lanes),
        from_(from),
        row_bytes_(format.width * kChannels),
        items_(row_bytes_ - from < kMost * Lanes::kCount ? row_bytes_ - from
                                                         : kMost * Lanes::kCount),
        linear_(resample.kind == ResampleKind::kLinear),
        weighted_(linear_ || resample.kind == ResampleKind::kArea) {
    for (int i = kLinePixels * kChannels + lanes.lane(); i < kRowFloats<kChannels>;
         i += Lanes::kCount) {
      pixels[i] = 0;
    }
    for_each_item<kMost>(lanes_, items_, [&](int slot, int item) {
      const ResampleSpan span = column_span(resample_, (from_ + item) / kChannels);
      const int channel = (from_ + item) % kChannels;
      spans_[slot] = static_cast<uint32_t>(span.first * kChannels + channel) |
                     static_cast<uint32_t>(span.count) << kFirstBits |
                     static_cast<uint32_t>(span.weight) << kWeightShift;
      if (kAlone) note_reader(slot, span);
      for (int c = 0; c < kTaps; ++c) {
        const bool covered = c < span.count;
        taps_[slot][c] = covered && weighted_ ? resample_.weights[span.weight + c] : covered;
      }
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
    const bool first = summed_ < 0, repeats = !first && source_.same_rows(line, summed_);
    summed_ = line;
    if (repeats) return;
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
      if (!kAlone) fetch_behind(line);
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

  // Has the next row that is another one on its way, while the lanes work on that of `line`.
  CULE_INLINE void fetch_behind(int line) {
    fetched_ = line;
    while (fetched_ + 1 < source_.height && source_.same_rows(fetched_, line)) ++fetched_;
    next_ = load_row(source_, fetched_, lanes_);
  }

  // Works out the sum of the pixels that one byte of the frame covers in a row.
  CULE_INLINE void sum_item(int slot) {
    const float* pixel = pixels_ + (spans_[slot] & ((1u << kFirstBits) - 1));
    const float* weight = resample_.weights + (spans_[slot] >> kWeightShift);
    const int count = span_count(slot);
    float total = 0;
    // What is added with a weight of zero changes nothing.
    for (int c = 0; c < kTaps; ++c) total += pixel[c * kChannels] * taps_[slot][c];
    if (weighted_)
      for (int c = kTaps; c < count; ++c) total += pixel[c * kChannels] * weight[c];
    else
      for (int c = kTaps; c < count; ++c) total += pixel[c * kChannels];
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

  // Adds the sums of a source row, the first or a later one of those that a row of the frame
  // covers.
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
  // Where a lane has few bytes of a row, it has the weights of the first pixels of each at hand.
  static constexpr int kTaps = kMost <= 3 ? 3 : 0;
  float taps_[kMost][kTaps > 0 ? kTaps : 1];
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
CULE_HD inline void resample_rows(const ObservationFormat& format, const Resample& resample,
                                  const FrameSource& source, const Color* palette, int begin,
                                  int end, uint8_t* out, float* pixels, const Lanes& lanes) {
#pragma unroll 1
  for (int from = 0; from < format.width * kChannels; from += kMost * Lanes::kCount) {
    Resizer<kChannels, kMost, Lanes, Color> resizer(format, resample, source, palette, from, pixels,
                                                    lanes);
    resizer.resize(begin, end, out);
  }
}

}  // namespace cule

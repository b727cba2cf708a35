// A small array in one word. An index that is unknown at compile time becomes a shift. This allows
// a GPU to keep the array in a register. With 8-bit elements, the memory layout is that of an array
// of bytes.
#pragma once

#include "common/platform.h"

namespace cule {

template <class Word, uint32_t kBits = 8>
struct Packed {
  static constexpr uint32_t kElement = (1u << kBits) - 1;
  Word word;

  struct Element {
    Word& word;
    uint32_t shift;
    CULE_INLINE operator uint32_t() const { return word >> shift & kElement; }
    CULE_INLINE Element& operator=(uint32_t value) {
      word = static_cast<Word>((word & ~(kElement << shift)) | (value & kElement) << shift);
      return *this;
    }
    CULE_INLINE Element& operator=(const Element& other) {
      return *this = static_cast<uint32_t>(other);
    }
  };

  CULE_INLINE uint32_t operator[](uint32_t index) const { return word >> kBits * index & kElement; }
  CULE_INLINE Element operator[](uint32_t index) { return {word, kBits * index}; }
};
using BytePair = Packed<uint16_t>;

}  // namespace cule

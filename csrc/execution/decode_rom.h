// Decodes a ROM image ahead of time: for each byte, the instruction that begins there. Host only.
#pragma once

#include "cartridge/access.h"
#include "cpu_6507/predecoded.h"

namespace cule {

// Fills `predecoded` for the `bytes` of `image`. An instruction becomes kFetchSlowly if one of its
// bytes is at a special address, or if its bytes may not follow each other in the image.
inline void decode_rom(const CartridgeMap& map, const uint8_t* image, uint32_t bytes,
                       Predecoded* predecoded) {
  const uint32_t window = bytes < kWindowBytes ? bytes : kWindowBytes;
  // Bytes within a run of this length always follow each other in the address space.
  const uint32_t run = map.scheme == Scheme::kE0 ? kSliceBytes : window;
  for (uint32_t i = 0; i < bytes; ++i) {
    const Predecoded op = operation_of(image[i]);
    const uint32_t length = length_of(op), offset = window_offset(i);
    bool plain = i % run + length <= run && i + length <= bytes;
    for (uint32_t k = 0; k < length; ++k) plain = plain && !is_special_offset(map, offset + k);
    predecoded[i] = plain ? with_operand(op, length > 1 ? image[i + 1] : 0,
                                        length > 2 ? image[i + 2] : 0)
                         : kFetchSlowly;
  }
}

}  // namespace cule

// Changes of RAM that the user asks for: bytes that are held, changed or copied before each frame
// of a step. They are not the console's: ale-py has `setRAM` for them, and HackAtari
// (https://github.com/k4ntz/HackAtari) calls it before each frame of a step, and after its last.
#pragma once

#include "common/platform.h"

namespace cule {

// ram[address] = (ram[source] & keep) + add, while ram[tested] is from `least` to `most`.
struct alignas(8) Patch {
  uint8_t address, source, keep, add;
  uint8_t tested, least, most;
  uint8_t every;  // in every n-th frame of the episode; 0: the row is empty
};
static_assert(sizeof(Patch) == 8, "a patch must be one access to memory");

// Whether it adds to what is in the byte, so that it must not be applied once more between steps.
// Patches that read each other's bytes in a chain do advance once more there.
CULE_INLINE bool accumulates(const Patch& patch) {
  return patch.source == patch.address && (patch.keep & patch.add) != 0;
}

// Applies an env's patches to its RAM: those in rows[i * stride], in their order. `frame` is the
// episode's next frame. After a step's last frame this is only to `show` in RAM what is held there:
// the next step applies them again.
template <class Ram>
CULE_INLINE void apply_patches(const Patch* rows, uint32_t count, size_t stride, const Ram& ram,
                               int32_t frame, bool show) {
  constexpr uint32_t kIndex = 127;
  for (uint32_t i = 0; i < count; ++i) {
    const Patch patch = rows[i * stride];
    if (patch.every == 0 || frame % patch.every != 0 || (show && accumulates(patch))) continue;
    const uint32_t tested = ram.get(patch.tested & kIndex);
    if (tested < patch.least || tested > patch.most) continue;
    ram.set(patch.address & kIndex,
            ((ram.get(patch.source & kIndex) & patch.keep) + patch.add) & 0xFF);
  }
}

}  // namespace cule

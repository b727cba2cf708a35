// Programs that are no games: random bytes, and loops that never end a frame.
#pragma once

#include <random>

#include "player.h"

namespace sweep {

// Whether setting its default mode takes more than resets, which need not end when the ROM is
// another one.
struct ModeProbe {
  bool touched = false;
  GameState game{};
  int ram(int) { return touched = true, 0; }
  int cart_ram(int) { return touched = true, 0; }
  bool gives_up() { return touched = true; }
  uint32_t random() { return touched = true, 0; }
  void press_select(int) { touched = true; }
  void act(uint32_t) { touched = true; }
  void soft_reset() {}
  template <class Condition>
  void select_until(int, Condition&&) { touched = true; }
};

inline std::vector<uint32_t> games_without_modes() {
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < kNumGames; ++i) {
    ModeProbe probe;
    with_game(i, [&](auto rules) { rules.set_mode(probe, default_mode(info_of(i))); });
    if (!probe.touched) found.push_back(i);
  }
  if (found.empty()) fail("expected a game whose mode needs no SELECT");
  return found;
}

// Bytes as they come; bytes without opcodes that halt; programs that do little but access the TIA;
// the same with the RIOT, the cartridge and the stack between.
enum class RandomRom : uint32_t { kBytes, kNoHalts, kTiaProgram, kBusProgram, kCount };

inline bool halts(uint8_t byte) { return (byte & 0x1F) == 0x12 || ((byte & 0x9F) == 0x02); }

inline Bytes random_image(RandomRom kind, size_t size, std::mt19937& random) {
  Bytes image(size);
  for (uint8_t& byte : image) {
    do byte = static_cast<uint8_t>(random());
    while (kind != RandomRom::kBytes && halts(byte));
  }
  if (kind < RandomRom::kTiaProgram) return image;
  // Stores and loads of $00 to $3F, or of anything, with the registers changing between, and a jump
  // back at each page's end.
  const uint8_t stores[] = {0x85, 0x86, 0x84, 0x95, 0x94, 0x96, 0x87, 0xE6, 0x06},
                loads[] = {0xA5, 0xA6, 0xA4, 0xB5, 0x24, 0xA9, 0xA2, 0xA0};
  const uint8_t far[] = {0x8D, 0x9D, 0x99, 0xAD, 0xBD, 0xEE, 0x2C, 0x0D},
                single[] = {0x48, 0x68, 0xE8, 0x88, 0x0A, 0xCA, 0xC8, 0x8A, 0xEA};
  for (size_t page = 0; page + 256 <= size; page += 256) {
    size_t at = page;
    auto put = [&](uint32_t byte) { image[at++] = static_cast<uint8_t>(byte); };
    while (at < page + 249) {
      const uint32_t which = random() % 10;
      if (which < 5) put(stores[random() % sizeof stores]), put(random() % 0x40);
      else if (which < 8) put(loads[random() % sizeof loads]), put(random() % 0x100);
      else if (which < 9 || kind == RandomRom::kTiaProgram) put(single[random() % sizeof single]);
      else put(far[random() % sizeof far]), put(random()), put(random());
    }
    put(0x4C), put(0), put(0xF0 | random() % 16);
    while (at < page + 256) put(0xF0 | random() % 16);
  }
  return image;
}

// A cartridge that runs `program` over and over.
inline Cartridge loop_of(const Bytes& program, uint32_t game) {
  Bytes image(4096, 0xEA);
  const uint8_t back[] = {0x4C, 0x00, 0xF0};
  std::copy(std::begin(back), std::end(back),
            std::copy(program.begin(), program.end(), image.begin()));
  image[0xFFC] = 0x00;
  image[0xFFD] = 0xF0;
  return {"loop", "4K", game, image};
}

}  // namespace sweep

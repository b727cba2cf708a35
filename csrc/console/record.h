// The record of one env: all state that goes on from step to step, except RAM, the cartridge's
// bytes and pictures. It is plain words, which are copied, saved and restored as they are.
#pragma once

#include "cpu_6507/registers.h"
#include "games/game.h"
#include "m6532/m6532.h"
#include "tia/chip/ports.h"
#include "tia/chip/state.h"

namespace cule {

// The state of a console without its TIA, RAM and the cartridge's bytes.
struct ConsoleState {
  Registers cpu;
  M6532 riot;
  TiaPorts ports;
  uint32_t slices;
};

// The state of the environment around a console.
struct EnvState {
  int32_t paddle_ohms[kMaxPlayers];
  int32_t frame_number;          // frames since power-on, as ale-py counts them
  int32_t episode_frame_number;  // since the last reset
  int32_t elapsed_frames;        // since the last reset's no-ops
  int32_t lives;                 // at the end of the last step
  uint32_t held_action[kMaxPlayers];  // what sticky actions repeat
  float held_strength[2];             // of the first two players; the others' is 1
  uint32_t seed[2];              // low and high half
  uint32_t power_on_draws;       // numbers taken from the console's power-on generator
  uint32_t resets;               // resets since the last seeding
  uint32_t action_draws;         // frames with a draw for sticky actions since the last seeding
  uint32_t faults;               // see Fault
  uint32_t over;                 // 1: the game has ended, 2: a life, after which something is
                                 // pressed; the env waits for the next one's start
};

// What the newest frame of the newest observation shows.
enum class ShownFrames : uint8_t {
  kKeptFrame,     // a frame that is no longer in the two pictures; if it was kept, in Batch::pooled
  kLastPicture,   // the last frame
  kBothPictures,  // the maximum of the last two frames
};

// Which of an env's two pictures is which, and what is shown of them.
struct ScreenState {
  uint8_t front;  // the picture of the last frame, 0 or 1; the other has the frame before
  ShownFrames shown;
  uint16_t unused;  // 0; fills the word
};
static_assert(sizeof(ScreenState) == 4, "a ScreenState must be one word of a record");

struct EnvRecord {
  ConsoleState console;
  TiaState tia;
  ScreenState screen;
  GameState game;
  EnvState env;
};

// Records are stored as 32-bit words: word w of env e is at words[w * word_stride + e *
// env_stride]. The strides differ: threads of a GPU read neighbouring words at the same time, and a
// CPU core reads the words of an env in a row.
struct RecordLayout {
  uint32_t* words;
  size_t word_stride;
  size_t env_stride;
};

template <class T>
CULE_INLINE void load_part(const RecordLayout& records, size_t env, size_t byte_offset, T& part) {
  static_assert(sizeof(T) % 4 == 0, "records are copied by words");
  uint32_t words[sizeof(T) / 4];
  const uint32_t* from = records.words + env * records.env_stride +
                         byte_offset / 4 * records.word_stride;
  for (size_t i = 0; i < sizeof(T) / 4; ++i) words[i] = from[i * records.word_stride];
  memcpy(&part, words, sizeof(T));
}

template <class T>
CULE_INLINE void store_part(const RecordLayout& records, size_t env, size_t byte_offset,
                            const T& part) {
  uint32_t words[sizeof(T) / 4];
  memcpy(words, &part, sizeof(T));
  uint32_t* to = records.words + env * records.env_stride + byte_offset / 4 * records.word_stride;
  for (size_t i = 0; i < sizeof(T) / 4; ++i) to[i * records.word_stride] = words[i];
}

}  // namespace cule

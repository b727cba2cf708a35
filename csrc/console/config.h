// All that stays the same while a console runs: its cartridge, television format, controllers and
// game.
#pragma once

#include "cartridge/cartridge.h"
#include "games/game.h"
#include "tia/chip/ports.h"
#include "tia/chip/state.h"

namespace cule {

constexpr int kMaxStartingActions = 24;

// There is one for each group: the envs that play the same game in the same mode and difficulty. It
// is plain data, which both backends read.
struct ConsoleConfig {
  CartridgeMap map;
  TiaFormat format;
  uint32_t pal;            // PAL colors, and colors that can be lost
  uint32_t height;         // visible scanlines
  int32_t cycle_limit;     // from this cycle of a frame on, a write to the TIA ends the frame
  uint32_t inpt_wiring;    // see InptWiring
  uint32_t num_players;
  uint32_t uses_paddles;
  uint32_t swap_ports;
  uint32_t swap_paddles;
  int32_t paddle_max;
  uint32_t rom_offset;     // of this cartridge's image in the batch's ROM array
  uint32_t rom_bytes;
  uint32_t game;           // index into the list of games
  uint32_t mode, difficulty;
  uint32_t legal_actions;
  uint32_t starting_noops, num_starting_actions;
  uint8_t starting_actions[kMaxStartingActions];
};

// A frame that never strobes VSYNC ends after this many scanlines: ale-py's limits.
constexpr int32_t kNtscLineLimit = 290, kPalLineLimit = 342;

// A frame is cut off after this many instructions, as in ale-py.
constexpr int32_t kFrameInstructionLimit = 25000;

// What should not happen to a console. Each fault is a bit, which an env keeps until its next
// reset.
enum Fault : uint32_t {
  kFaultJam = 1,                 // the program halted the processor
  kFaultBufferFull = 2,          // a step wrote to the TIA more often than its buffer has entries
  kFaultModeUnreachable = 4,     // pressing SELECT did not lead to the wanted mode
  kFaultRandomExhausted = 8,     // resets have used up the table of power-on random numbers
  kFaultFrameLost = 16,          // an episode's last observation needs a frame that was not kept
  kFaultImpossibleState = 32,    // a state of a JAX program was replaced (kernels/mend.h)
};

}  // namespace cule

// What stays the same while a console runs: its cartridge, its television, its controllers, its
// game's rules.
#pragma once

#include "cartridge/cartridge.h"
#include "games/game.h"
#include "tia/ports.h"
#include "tia/state.h"

namespace cule {

constexpr int kMaxStartingActions = 24;

// One per group of envs that play the same game in the same mode and difficulty; plain data, read
// by both backends.
struct ConsoleConfig {
  CartridgeMap map;
  TiaFormat format;
  uint32_t pal;            // PAL colors, and colors that can be lost
  uint32_t height;         // visible scanlines
  int32_t cycle_limit;     // a TIA write from this cycle of a frame on ends it
  uint32_t inpt_wiring;    // see InptWiring
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

// The frame ends after this many instructions at the latest, finished or not.
constexpr int32_t kFrameInstructionLimit = 25000;

// Things that should not happen to a console; one bit each, kept per env until its next reset.
enum Fault : uint32_t {
  kFaultJam = 1,                 // the program halted the processor
  kFaultBufferFull = 2,          // more TIA writes in a step than the instruction buffer holds
  kFaultModeUnreachable = 4,     // SELECT never led to the wanted mode
  kFaultRandomExhausted = 8,  // more resets than the table of power-on random numbers provides for
  kFaultFrameLost = 16,  // an episode's last observation lacks a frame that was not kept
};

}  // namespace cule

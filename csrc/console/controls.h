// The controllers: turns actions into the levels at the console's sockets. There are joysticks,
// paddles, and the SELECT and RESET switches.
//
// The wiring is from the Stella Programmer's Guide ("SWCHA", "SWCHB", "INPT0"). How far a paddle
// turns in a frame, and where it stops, is as in ale-py.
#pragma once

#include "console/config.h"

namespace cule {

constexpr int kPaddleMin = 27450;    // ohms
constexpr int kPaddleStep = 23000;   // ohms per frame at full strength

enum Stick : uint32_t {
  kStickUp = 1, kStickDown = 2, kStickLeft = 4, kStickRight = 8, kStickFire = 16
};

CULE_INLINE uint32_t stick_of(uint32_t action) {
  constexpr uint8_t kSticks[kNumActions] = {
      0, kStickFire, kStickUp, kStickRight, kStickLeft, kStickDown,
      kStickUp | kStickRight, kStickUp | kStickLeft,
      kStickDown | kStickRight, kStickDown | kStickLeft,
      kStickUp | kStickFire, kStickRight | kStickFire,
      kStickLeft | kStickFire, kStickDown | kStickFire,
      kStickUp | kStickRight | kStickFire, kStickUp | kStickLeft | kStickFire,
      kStickDown | kStickRight | kStickFire, kStickDown | kStickLeft | kStickFire};
  return action < kNumActions ? kSticks[action] : 0;
}

// What one player does during a frame. `strength` (0 to 1) is how fast a paddle turns.
struct PlayerAction {
  uint32_t action = kNoop;
  float strength = 1.0f;
};

// What all players do during a frame. The third and the fourth have paddles, which always turn at
// full strength.
struct PlayerActions {
  PlayerAction a, b;
  uint32_t c = kNoop, d = kNoop;
};

struct Switches {
  bool select = false;
  bool reset = false;
};

CULE_INLINE int turn_paddle(const ConsoleConfig& config, int ohms, PlayerAction player) {
  const uint32_t stick = stick_of(player.action);
  const float strength = player.strength < 0 ? -player.strength : player.strength;
  const int step = static_cast<int>(kPaddleStep * strength);
  if (stick & kStickRight) ohms -= step;
  else if (stick & kStickLeft) ohms += step;
  return ohms < kPaddleMin ? kPaddleMin : ohms > config.paddle_max ? config.paddle_max : ohms;
}

CULE_INLINE int centered_paddle(const ConsoleConfig& config) {
  return (kPaddleMin + config.paddle_max) / 2;
}

// The levels at the right socket with two paddles.
CULE_INLINE void plug_in_right(const ConsoleConfig& config, const PlayerActions& actions,
                               const int32_t* ohms, Inputs& inputs) {
  const uint32_t c = stick_of(actions.c), d = stick_of(actions.d);
  const uint32_t fourth = config.swap_paddles ? d : c, third = config.swap_paddles ? c : d;
  if (fourth & kStickFire) inputs.swcha &= ~0x08u;
  if (third & kStickFire) inputs.swcha &= ~0x04u;
  inputs.charge_cycles[2] = charge_cycles(ohms[2]);
  inputs.charge_cycles[3] = charge_cycles(ohms[3]);
}

// The levels at the sockets. `ohms` has the resistances of the paddles; 0: it was not turned since
// power-on.
CULE_INLINE Inputs plug_in(const ConsoleConfig& config, const PlayerActions& actions,
                           Switches switches, uint32_t difficulty, const int32_t* ohms) {
  Inputs inputs;
  const uint32_t a = stick_of(actions.a.action), b = stick_of(actions.b.action);
  if (config.uses_paddles) {
    // The buttons are on a socket's direction pins: paddle 0 on the fourth of the left one, paddle
    // 1 on its third; paddles 2 and 3 likewise on the right one.
    const uint32_t fourth = config.swap_paddles ? b : a, third = config.swap_paddles ? a : b;
    if (fourth & kStickFire) inputs.swcha &= ~0x80u;
    if (third & kStickFire) inputs.swcha &= ~0x40u;
    inputs.charge_cycles[0] = charge_cycles(ohms[0]);
    inputs.charge_cycles[1] = charge_cycles(ohms[1]);
    if (config.num_players > 1) plug_in_right(config, actions, ohms, inputs);
  } else {
    const uint32_t left = config.swap_ports ? b : a, right = config.swap_ports ? a : b;
    inputs.swcha = 0xFF & ~((left & 0x0F) << 4 | (right & 0x0F));
    if (left & kStickFire) inputs.inpt4 = 0;
    if (right & kStickFire) inputs.inpt5 = 0;
  }
  inputs.swchb = 0x3F | (difficulty & 3) << 6;
  if (switches.reset) inputs.swchb &= ~1u;
  if (switches.select) inputs.swchb &= ~2u;
  return inputs;
}

}  // namespace cule

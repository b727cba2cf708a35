// The rules of a game: where its score and lives are in RAM, when it ends, how its modes are
// reached.
//
// Each game has a small header with a struct that derives from `Game` and redefines what differs.
// Facts (RAM addresses, conditions) follow what ale-py 0.12.1 reports, which the differential tests
// check frame by frame.
//
// A game's functions read RAM through `memory`: `memory(0x8D)` is the byte that the 6507 reads at
// $8D (or any alias, as only the low 7 bits count), and `memory.cart_ram(i)` is byte `i` of a
// Superchip's 128.
#pragma once

#include "common/platform.h"

namespace cule {

// The 18 joystick actions with ale-py's numbers, then player B's 18, then the console's RESET.
enum Action : uint8_t {
  kNoop = 0,
  kFire,
  kUp,
  kRight,
  kLeft,
  kDown,
  kUpRight,
  kUpLeft,
  kDownRight,
  kDownLeft,
  kUpFire,
  kRightFire,
  kLeftFire,
  kDownFire,
  kUpRightFire,
  kUpLeftFire,
  kDownRightFire,
  kDownLeftFire,
  kNumActions = 18,
  kResetSwitch = 40,
};

// A set of actions, one bit each.
using ActionSet = uint32_t;
template <class... Actions>
constexpr ActionSet action_set(Actions... actions) { return ((ActionSet{1} << actions) | ...); }
constexpr ActionSet kAllActions = (ActionSet{1} << kNumActions) - 1;
constexpr ActionSet kActionsWithFire = action_set(kFire, kUpFire, kRightFire, kLeftFire, kDownFire,
                                                  kUpRightFire, kUpLeftFire, kDownRightFire,
                                                  kDownLeftFire);
constexpr ActionSet kEightWays = action_set(kUp, kRight, kLeft, kDown, kUpRight, kUpLeft,
                                            kDownRight, kDownLeft);

// A short list that can be a compile-time constant.
template <class T, int kCapacity>
struct ShortList {
  int count = 0;
  T values[kCapacity] = {};
  constexpr ShortList() = default;
  template <class... Values>
  constexpr ShortList(T first, Values... rest)
      : count(1 + sizeof...(rest)), values{first, static_cast<T>(rest)...} {}
  // first, first + step, ..., `n` values in all.
  static constexpr ShortList range(T first, int n, T step = 1) {
    ShortList list;
    list.count = n;
    for (int i = 0; i < n; ++i) list.values[i] = static_cast<T>(first + i * step);
    return list;
  }
};

enum class Controller : uint8_t { kJoystick, kPaddles };

// A console has room for this many players: four with paddles, else two.
constexpr int kMaxPlayers = 4;

// What code outside the console needs to know about a game. All of it is a compile-time constant.
struct GameInfo {
  const char* name = "";  // the ROM id of ale-py, e.g. "ms_pacman"
  const char* md5 = "";   // of the one ROM image that the facts below hold for
  // How many play, each with rewards of its own. Games of several players are entries of their own
  // in the list of games, beside that of one.
  int num_players = 1;
  ActionSet minimal_actions = kAllActions;
  ActionSet legal_actions = kAllActions;  // any other action is played as a no-op
  int starting_noops = 0;                  // frames of no-op after the reset, before
  ShortList<Action, 24> starting_actions;  // these, one frame each
  ShortList<uint16_t, 192> modes{0};
  int default_mode = -1;                   // -1: the first of `modes`
  ShortList<uint8_t, 4> difficulties{0};   // bit 0: left switch at A, bit 1: right switch at A

  // How the console is set up for the cartridge.
  Controller left = Controller::kJoystick;
  Controller right = Controller::kJoystick;
  bool swap_paddles = false;  // the two paddles of a port are swapped
  // the left controller is in the right port, and the right one in the left
  bool swap_ports = false;
  uint8_t power_on_difficulty = 0;  // the switches until the first reset
  int paddle_max = 790196;    // ohms at the left stop
  int y_start = 34;           // first visible scanline
  int height = 210;           // visible scanlines; a PAL cartridge that asks for 210 gets 250
  bool hmove_blanks = true;   // show the comb of black bars that HMOVE leaves

  // What memory an env needs (cule/engine/layout.py).
  bool draws_for_mode = false;  // `set_mode` calls `random()`
  // Who adds a game measures the next two, as tests/env/test_measured_facts.py does: with random
  // actions, steps of four frames, and several modes. The figures, of 16 envs in up to 8 modes, 400
  // steps each, are in benchmarks/log/2026-11-23.md#device-memory-an-env-200-kb-to-119.
  bool writes_much = false;     // a step leaves more than 4,096 entries for the TIA
  // The instruction limit cuts frames off, and the program continues them in the next ones. Also
  // true for games that think for long, even if random play has not shown it.
  bool frames_cut_off = false;
};

// One env's score, lives and end. It is part of the env's state. A game uses the fields that it
// needs.
struct GameState {
  int32_t reward = 0;   // of the last frame
  int32_t score = 0;    // as of the last frame
  int32_t lives = 0;
  int32_t aux[4] = {};  // what else a game remembers; each game names its own
  uint8_t terminal = 0;
  uint8_t started = 0;
  uint8_t pad[2] = {};
};

// The defaults; each game redefines what it does differently.
struct Game {
  // Called between the first and the second RESET of an episode's start.
  CULE_HD static void reset(GameState&) {}
  // Called after each frame. `Memory` is described above.
  template <class Memory>
  CULE_HD static void step(const Memory&, GameState&) {}
  // The lives that are reported, from the state that `step` left.
  CULE_HD static int lives(const GameState& state) { return state.terminal ? 0 : 1; }
  // The reward of the last frame, and the lives, of another player: 1 for the second to 3 for the
  // fourth. In games of one player nothing calls them.
  CULE_HD static int other_reward(const GameState&, int) { return 0; }
  CULE_HD static int other_lives(const GameState&, int) { return 0; }
  // Puts the console into `mode`, one of `info().modes`. `Console` offers `ram(address)`,
  // `cart_ram(i)`, `select_until(hold_frames, condition)`, `press_select(hold_frames)`,
  // `act(action)`, `soft_reset()`, `random()`, and `game`, the GameState.
  template <class Console>
  CULE_HD static void set_mode(Console&, int) {}
};

// For a game that counts lives: there are none once it is over.
struct GameWithLives : Game {
  CULE_HD static int lives(const GameState& state) { return state.terminal ? 0 : state.lives; }
};

// Games of several players follow what multi-agent-ale-py 0.1.12 reports: a player with -1 lives is
// out, and the modes are numbered as there. It counts no lives in most of them: always 0. Here the
// second player's reward is the opposite of the first's.
struct GameOfTwo : Game {
  CULE_HD static int lives(const GameState&) { return 0; }
  CULE_HD static int other_reward(const GameState& state, int) { return -state.reward; }
};

// For games of several players in which the second player's reward is in the state.
struct GameOfTwoRewards : GameOfTwo {
  static constexpr int kSecondReward = 3;  // aux
  CULE_HD static int other_reward(const GameState& state, int) {
    return state.aux[kSecondReward];
  }
};

// For those that also count the lives and the score of each player.
struct GameOfTwoScores : GameOfTwoRewards {
  static constexpr int kSecondScore = 1, kSecondLives = 2;  // aux
  CULE_HD static int lives(const GameState& state) { return state.lives; }
  CULE_HD static int other_lives(const GameState& state, int) { return state.aux[kSecondLives]; }
  CULE_HD static void start(GameState& state, int lives) {
    state.lives = state.aux[kSecondLives] = lives;
    state.aux[kSecondScore] = state.aux[kSecondReward] = 0;
  }
  CULE_HD static void reward_second_score(GameState& state, int score) {
    state.aux[kSecondReward] = score - state.aux[kSecondScore];
    state.aux[kSecondScore] = score;
  }
};

// Two binary-coded decimal digits. A nibble above 9 counts as it is (13 in the tens is 130).
CULE_INLINE int bcd(int byte) { return 10 * (byte >> 4) + (byte & 0x0F); }

// The decimal number whose two-digit bytes are at the given addresses, most significant first.
template <class Memory, class... Rest>
CULE_HD int bcd_score(const Memory& memory, int address, Rest... rest) {
  int value = bcd(memory(address));
  ((value = value * 100 + bcd(memory(rest))), ...);
  return value;
}

// Sets the score and the reward that it brought.
CULE_INLINE void reward_score_change(GameState& state, int score) {
  state.reward = score - state.score;
  state.score = score;
}

}  // namespace cule

// Plays one env: frames with their inputs, ale-py's `act`, and the start of an episode.
//
// A step (kernels/play.h) uses only the free functions here, most of all `act`. `Session` does what
// is outside of steps: power-on, the start of an episode, profiles. It plays frame by frame and
// draws each one.
//
// An episode starts as in ale-py: the console's RESET line, 60 frames without input, 4 frames with
// the RESET switch, the choice of the game's mode, the RESET switch again, and the game's starting
// actions.
#pragma once

#include "common/lanes.h"
#include "common/mt19937.h"
#include "common/random.h"
#include "console/controls.h"
#include "console/machine.h"
#include "games/games.h"
#include "tia/render/object_frames.h"

namespace cule {

constexpr int kPowerOnNoops = 60, kResetSwitchFrames = 4;
// If this many presses of SELECT do not lead to a mode, it counts as unreachable.
constexpr int kMaxSelects = 5000;

// The console's random generator, as a table of its first numbers. As in ale-py it is an MT19937
// with this seed.
constexpr uint32_t kPowerOnSeed = 4753849;
struct PowerOnRandom {
  const uint32_t* numbers;
  uint32_t count;

  CULE_INLINE uint32_t next(EnvState& env) const {
    const uint32_t at = env.power_on_draws++;
    if (at >= count) env.faults |= kFaultRandomExhausted;
    return numbers[at % count];
  }
};

// RAM and cartridge RAM, as a game's rules read them.
template <class Ram>
struct GameMemory {
  Ram ram;
  const uint8_t* cartridge_bytes;
  CULE_INLINE int operator()(int address) const {
    return static_cast<int>(ram.get(ram_index(address)));
  }
  CULE_INLINE int cart_ram(int index) const { return cartridge_bytes[cartridge_index(index)]; }
};

template <class M>
CULE_INLINE auto memory_of(const M& machine) {
  return GameMemory<decltype(machine.ram)>{machine.ram, machine.cartridge_bytes};
}

CULE_INLINE uint64_t seed_of(const EnvState& env) {
  return env.seed[0] | static_cast<uint64_t>(env.seed[1]) << 32;
}

// ale-py's sticky actions: with this probability, a frame repeats the action of the last one.
struct StickyActions {
  float probability;
  uint32_t env_index;
  // ale-py's random generator of the env, which one game's mode needs. Each frame takes two of its
  // numbers. If its `words` are null, it is not emulated.
  Mt19937 env_random;
};

// Applies sticky actions to what the players do in a frame.
CULE_INLINE void stick(EnvState& env, const StickyActions& sticky, PlayerActions& actions) {
  PlayerAction &a = actions.a, &b = actions.b;
  const float probability = sticky.probability;
  if (probability > 0) {
    const RandomWords random = sample(seed_of(env), sticky.env_index, kSampleStickyActions,
                                      env.action_draws++);
    if (unit_float(random.words[0]) < probability) a = {env.held_action[0], env.held_strength[0]};
    if (unit_float(random.words[1]) < probability) b = {env.held_action[1], env.held_strength[1]};
    if (unit_float(random.words[2]) < probability) actions.c = env.held_action[2];
    if (unit_float(random.words[3]) < probability) actions.d = env.held_action[3];
  }
  if (sticky.env_random.words) {
    sticky.env_random.next();
    sticky.env_random.next();
  }
  env.held_action[0] = a.action;
  env.held_strength[0] = a.strength;
  env.held_action[1] = b.action;
  env.held_strength[1] = b.strength;
  env.held_action[2] = actions.c;
  env.held_action[3] = actions.d;
}

CULE_INLINE uint32_t legal_or_noop(const ConsoleConfig& config, uint32_t action) {
  return action < kNumActions && (config.legal_actions >> action & 1)
             ? action
             : static_cast<uint32_t>(kNoop);
}

// Turns the paddles, and returns the levels at the sockets for a frame.
CULE_INLINE Inputs apply_actions(const ConsoleConfig& config, EnvState& env,
                                 const PlayerActions& actions, Switches switches) {
  if (config.uses_paddles) {
    env.paddle_ohms[0] = turn_paddle(config, env.paddle_ohms[0], actions.a);
    env.paddle_ohms[1] = turn_paddle(config, env.paddle_ohms[1], actions.b);
    if (config.num_players > 2) {
      env.paddle_ohms[2] = turn_paddle(config, env.paddle_ohms[2], {actions.c, 1.0f});
      env.paddle_ohms[3] = turn_paddle(config, env.paddle_ohms[3], {actions.d, 1.0f});
    }
  }
  return plug_in(config, actions, switches, config.difficulty, env.paddle_ohms);
}

// Applies the game's rules after a frame. Returns the lives that are left. Its code has the rules
// of all games and runs once a frame, so it is kept apart from the code that runs for each
// instruction.
template <class Index, class Ram>
CULE_COLD int score_frame(Index game_index, const GameMemory<Ram> memory, GameState& game) {
  int lives = 0;
  with_game(game_index, [&](auto rules) {
    rules.step(memory, game);
    lives = rules.lives(game);
  });
  return lives;
}

// The reward of the last frame, and the lives, of another player than the first.
struct OtherPlayer {
  int32_t reward, lives;
};
template <class Index>
CULE_COLD OtherPlayer other_player(Index game_index, const GameState& game, int player) {
  OtherPlayer other{};
  with_game(game_index, [&](auto rules) {
    other = {rules.other_reward(game, player), rules.other_lives(game, player)};
  });
  return other;
}

CULE_COLD int lives_of(uint32_t game_index, const GameState& game) {
  int lives = 0;
  with_game(game_index, [&](auto rules) { lives = rules.lives(game); });
  return lives;
}

// Does what ale-py's `act` does for one frame: applies sticky actions, replaces illegal actions by
// a no-op, and counts the frame. `play(inputs)` plays the frame and applies the game's rules. After
// the game's end nothing is played.
template <class Play>
CULE_INLINE void act(const ConsoleConfig& config, EnvState& env, const GameState& game,
                     const StickyActions& sticky, PlayerActions actions, const Play& play) {
  stick(env, sticky, actions);
  if (game.terminal) return;
  actions.a.action = legal_or_noop(config, actions.a.action);
  actions.b.action = legal_or_noop(config, actions.b.action);
  actions.c = legal_or_noop(config, actions.c);
  actions.d = legal_or_noop(config, actions.d);
  play(apply_actions(config, env, actions, {}));
  ++env.frame_number;
  ++env.episode_frame_number;
}

// An env's sound, and where the samples of its newest frame are; null if nobody listens.
struct EnvSound {
  SoundState* state;
  uint32_t* samples;
};

// Makes the samples of a frame. One thread does it, as it plays the start of an episode.
CULE_COLD void hear_alone(const EnvSound& sound) {
  SoundBits loud[kSoundChannels];
  hear_frame(*sound.state, heard_registers(*sound.state), sound.samples, loud, OneLane{});
}

template <class M, class Core, class View>
struct Session {
  const ConsoleConfig& config;
  M& machine;
  const Core& core;
  View& view;
  TiaState& tia;
  GameState& game;
  EnvState& env;
  const PowerOnRandom& power_on;
  StickyActions sticky;
  EnvSound sound;
  ObjectFrames objects;
  int selects = 0;

  // Plays one frame with these inputs, and draws it.
  CULE_COLD void run_frame(const Inputs& inputs) {
    machine.devices.inputs = inputs;
    machine.begin_record(tia);
    machine.run_frame(core);
    const TiaState start = tia;
    for (uint32_t i = 0; i < machine.buffer.count; ++i)
      replay_entry(tia, config.format, machine.buffer.entries[i], view);
    if (!objects.rows) return;
    see_frame_alone(objects, config.format, start, machine.buffer.entries, machine.buffer.count);
  }

  // Plays frames with an action of the first player held, and applies the game's rules after each.
  CULE_HD void emulate(uint32_t action, float strength, int frames, Switches switches = {}) {
    for (int i = 0; i < frames; ++i)
      run_scored_frame(apply_actions(config, env, {{action, strength}, {}}, switches));
  }
  CULE_HD void run_scored_frame(const Inputs& inputs) {
    run_frame(inputs);
    score_frame(config.game, memory_of(machine), game);
  }

  // Holds the console's RESET switch for some frames.
  CULE_HD void soft_reset() {
    Switches switches;
    switches.reset = true;
    emulate(kNoop, 1.0f, kResetSwitchFrames, switches);
    for (uint32_t& action : env.held_action) action = kNoop;
  }

  // Plays one frame with these actions. As in ale-py, these are the frames that are heard, also
  // after the game's end.
  CULE_COLD void act_all(const PlayerActions& actions) {
    cule::act(config, env, game, sticky, actions,
              [&](const Inputs& inputs) { run_scored_frame(inputs); });
    if (sound.state) hear_alone(sound);
  }

  // Plays one frame with an action of the first player.
  CULE_HD void act(uint32_t action) { act_all({{action, 1.0f}, {kNoop, 0.0f}}); }

  // Plays one frame in which every player presses FIRE.
  CULE_HD void press_fire() {
    PlayerActions actions{{kFire, 1.0f}, {kNoop, 0.0f}};
    if (config.num_players > 1) actions.b = {kFire, 1.0f};
    if (config.num_players > 2) actions.c = actions.d = kFire;
    act_all(actions);
  }

  // The functions from here to select_until are for a game's set_mode.
  CULE_HD int ram(int address) const {
    return static_cast<int>(machine.ram.get(ram_index(address)));
  }
  CULE_HD int cart_ram(int index) const {
    return machine.cartridge_bytes[cartridge_index(index)];
  }
  CULE_HD uint32_t random() const {
    return sticky.env_random.words ? sticky.env_random.next() : 0;
  }

  CULE_HD bool gives_up() {
    if (++selects <= kMaxSelects) return false;
    env.faults |= kFaultModeUnreachable;
    return true;
  }

  // Holds SELECT for `frames`, which are not scored, then plays one frame without it.
  CULE_HD void press_select(int frames) {
    Switches switches;
    switches.select = true;
    for (int i = 0; i < frames; ++i) {
      run_frame(plug_in(config, {}, switches, config.difficulty, env.paddle_ohms));
    }
    emulate(kNoop, 1.0f, 1);
    ++env.frame_number;
    ++env.episode_frame_number;
  }

  template <class Condition>
  CULE_HD void select_until(int frames, Condition&& condition) {
    while (!condition() && !gives_up()) press_select(frames);
  }

  // Pulls the console's RESET line: chips and cartridge start again, RAM stays as it is.
  CULE_HD void reset_console() {
    const uint32_t timer = 25 + power_on.next(env) % 75;
    if (has_superchip(config.map.scheme)) {
      for (uint32_t i = 0; i < kCartridgeBytes; ++i)
        machine.cartridge_bytes[i] = static_cast<uint8_t>(power_on.next(env));
    }
    machine.devices.inputs = Inputs{};
    machine.reset(timer);
    tia_reset(tia);
    view.clear();
    view.objects_changed(kAllObjects);
  }

  // Starts a new episode, up to the moment at which ale-py's reset_game returns.
  CULE_HD void start_episode() {
    env.episode_frame_number = 0;
    env.faults = 0;
    machine.devices.faults = 0;
    selects = 0;
    for (int32_t& ohms : env.paddle_ohms) ohms = centered_paddle(config);
    reset_console();
    emulate(kNoop, 1.0f, kPowerOnNoops);
    soft_reset();
    reset_game();
    with_game(config.game,
              [&](auto rules) { rules.set_mode(*this, static_cast<int>(config.mode)); });
    soft_reset();
    emulate(kNoop, 1.0f, static_cast<int>(config.starting_noops));
    for (uint32_t i = 0; i < config.num_starting_actions; ++i) {
      Switches switches;
      switches.reset = config.starting_actions[i] == kResetSwitch;
      emulate(config.starting_actions[i], 1.0f, 1, switches);
    }
    if (config.num_players > 1) start_second_player();
    env.faults |= machine.devices.faults;
  }

  // With several players, the second plays the starting actions as well, between two no-ops.
  CULE_HD void start_second_player() {
    emulate(kNoop, 1.0f, 1);
    for (uint32_t i = 0; i < config.num_starting_actions; ++i) {
      const uint32_t action = config.starting_actions[i];
      run_scored_frame(apply_actions(config, env, {{}, {action, 1.0f}}, {}));
    }
    emulate(kNoop, 1.0f, 1);
  }

  CULE_HD void reset_game() {
    game.reward = 0;
    game.score = 0;
    game.terminal = 0;
    game.started = 0;
    with_game(config.game, [&](auto rules) { rules.reset(game); });
  }

  // Power-on: RAM and timer from the generator, then 60 frames (in which ale-py looks for a PAL
  // picture) and a reset. Returns how many of the last 30 of them had more scanlines than NTSC's.
  CULE_HD int power_on_console() {
    env = EnvState{};
    game = GameState{};
    reset_game();
    for (uint32_t i = 0; i < kRamBytes; ++i) machine.ram.set(i, power_on.next(env) & 0xFF);
    power_on.next(env);  // ale-py's number for the timer, which the reset then sets again
    for (uint32_t i = 0; i < kCartridgeBytes; ++i) machine.cartridge_bytes[i] = 0;
    if (config.map.scheme == Scheme::kDPC)
      dpc_power_on(*reinterpret_cast<Dpc*>(machine.cartridge_bytes));
    reset_console();
    int long_frames = 0;
    for (int i = 0; i < kPowerOnNoops; ++i) {
      run_frame(plug_in(config, {}, {}, config.difficulty, env.paddle_ohms));
      if (i >= kPowerOnNoops / 2 && machine.cycle / kCyclesPerLine > kPalProbeLines) ++long_frames;
    }
    return long_frames;
  }

  static constexpr int kPalProbeLines = 285;
};

}  // namespace cule

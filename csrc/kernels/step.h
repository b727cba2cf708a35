// The CPU part of a step, for one env: up to `frameskip` frames of the 6507, the game's rules,
// rewards and endings.
//
// Draws nothing: it leaves the instruction buffer and a StepTrace for the parts after it.
#pragma once

#include "kernels/batch.h"

namespace cule {

// What the observation is made of, where the step stopped after `done` of its frames. As in ale-py,
// a frame at which the episode ends is not looked at, so that the old one shows on. `alike`: the
// last two frames show the same.
CULE_INLINE uint32_t observed_frames(const StepOptions& options, int32_t done, bool stopped,
                                     bool alike) {
  const bool two = options.frameskip >= 2 && options.maxpool;
  if (!stopped) return two && !alike ? kPoolBoth : kPoolLast;
  return two && done == options.frameskip ? static_cast<uint32_t>(kPoolBackOntoOld) : 0u;
}

CULE_INLINE void write_outputs(const Batch& batch, size_t env, const EnvState& state,
                               uint32_t faults) {
  batch.lives[env] = state.lives;
  batch.frame_numbers[env] = state.frame_number;
  batch.episode_frame_numbers[env] = state.episode_frame_number;
  batch.faults[env] = static_cast<int32_t>(faults);
}

// The two players' actions of this step.
CULE_INLINE PlayerAction player_a(const Batch& batch, size_t env) {
  const int32_t index = batch.actions[env];
  const bool known = index >= 0 && index < kNumActions;
  const uint32_t action =
      known ? batch.action_ids[batch.group[env] * kNumActions + static_cast<uint32_t>(index)] : 0u;
  return {action, batch.strengths ? batch.strengths[env] : 1.0f};
}
CULE_INLINE PlayerAction player_b(const Batch& batch, size_t env) {
  if (!batch.actions_b) return {kNoop, 0.0f};
  return {static_cast<uint32_t>(batch.actions_b[env]),
          batch.strengths_b ? batch.strengths_b[env] : 1.0f};
}

template <class M, class Core>
CULE_INLINE void step_frames(const Batch& batch, size_t env, M& machine, const Core& core) {
  constexpr size_t kConsole = offsetof(EnvRecord, console), kGame = offsetof(EnvRecord, game),
                   kEnv = offsetof(EnvRecord, env);
  const StepOptions& options = batch.options;
  const ConsoleConfig& config = machine.config;
  StepTrace& trace = batch.traces[env];
  EnvState state;
  load_part(batch.records, env, kEnv, state);
  if (state.over && options.autoreset == AutoresetMode::kNextStep) {
    trace = {0, 0, 0, kResetNow, 0, 0};
    batch.rewards[env] = batch.raw_rewards[env] = 0;
    batch.terminated[env] = batch.truncated[env] = 0;
    return;
  }
  // What the program looked at in the last step, it is likely to look at in this one.
  machine.latches_read = trace.latches_read;
  GameState game;
  ConsoleState console;
  TiaState tia;
  load_part(batch.records, env, offsetof(EnvRecord, tia), tia);
  machine.begin_record(tia);
  load_part(batch.records, env, kGame, game);
  load_part(batch.records, env, kConsole, console);
  machine.load(console);

  int32_t reward = 0, done = 0;
  uint32_t frames = 0;
  bool broken = false, resumed = false, alike = false, turned = false, lines_left = false;
  bool stopped = false, life_lost = false;
  int32_t reached[2] = {};  // how far the frames of either picture were drawn
  int32_t lives = state.lives;
  while (done < options.frameskip && !stopped) {
    PlayerAction a = player_a(batch, env), b = player_b(batch, env);
    stick(state, options.repeat_action_probability, static_cast<uint32_t>(env), a, b);
    if (batch.env_random) {
      // ale-py's generator, where it is followed, gives two numbers a frame for sticky actions.
      env_random_of(batch, env).next();
      env_random_of(batch, env).next();
    }
    if (!game.terminal) {
      a.action = legal_or_noop(config, a.action);
      b.action = legal_or_noop(config, b.action);
      machine.devices.inputs = apply_actions(config, state, a, b, {});
      resumed = machine.devices.ports.frame_open;
      const int32_t touched = machine.touched_cycle;
      turned ^= !resumed;
      // One that is not drawn as far as one before it leaves lines of that one standing.
      const int32_t reach = machine.run_frame(core);
      lines_left |= resumed || reach != config.format.last_clock;
      // A picture that goes on is drawn up to the last access to the TIA, unless it was complete.
      const bool complete = touched * kClocksPerCycle >= config.format.last_clock;
      alike = resumed && (complete || machine.touched_cycle == touched);
      int32_t& before = reached[frames & 1];
      broken |= reach < before;
      before = reach > before ? reach : before;
      lives = score_frame(core.game_of(config),
                          GameMemory<decltype(machine.ram)>{machine.ram, machine.cartridge_bytes},
                          game);
      reward += game.reward;
      ++frames;
      ++state.frame_number;
      ++state.episode_frame_number;
    }
    ++done;
    ++state.elapsed_frames;
    life_lost = lives < state.lives && lives > 0;
    stopped = game.terminal || state.elapsed_frames >= options.max_frames ||
              (options.episodic_life && life_lost);
  }
  state.lives = lives;
  state.over = stopped;
  const uint32_t observed = observed_frames(options, done, stopped, alike);
  const bool wants_old = observed & kPoolBackOntoOld, has_old = machine.ram.tia().observed;
  if (wants_old && !has_old && !batch.keeps_pooled) machine.devices.faults |= kFaultFrameLost;
  state.faults |= machine.devices.faults;

  machine.store(console);
  store_part(batch.records, env, kConsole, console);
  store_part(batch.records, env, kGame, game);
  store_part(batch.records, env, kEnv, state);

  const bool terminated = game.terminal ||
                          ((options.life_loss_info || options.episodic_life) && life_lost);
  batch.raw_rewards[env] = reward;
  batch.rewards[env] = options.reward_clipping ? (reward > 0) - (reward < 0) : reward;
  batch.terminated[env] = terminated;
  batch.truncated[env] = state.elapsed_frames >= options.max_frames && !terminated;
  write_outputs(batch, env, state, state.faults);
  lines_left |= (machine.devices.faults & kFaultBufferFull) != 0;
  trace = {machine.buffer.count, machine.buffer.after_clear, frames,
           observed | (broken ? kPictureBroken : 0u) | (resumed ? kLastResumed : 0u) |
               (turned ? kFrontTurned : 0u) | (lines_left ? kLinesLeft : 0u) |
               (stopped && options.autoreset == AutoresetMode::kSameStep ? kResetNow : 0u),
           machine.latches_read, machine.trail.spare};
}

}  // namespace cule

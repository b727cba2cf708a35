// The CPU part of a step, for one env: plays up to `frameskip` frames on the 6507, applies the
// game's rules, and says which reward they give and whether the episode ends.
//
// It draws nothing. It leaves the log of writes to the TIA and a StepTrace for the later phases.
#pragma once

#include "kernels/hear.h"
#include "kernels/screen.h"

namespace cule {

// The frames that a step plays, and how they lie in the env's two pictures.
struct FramesPlayed {
  uint32_t count = 0;
  // The first or last frame goes on in the picture of the frame before it.
  bool first_goes_on = false, last_goes_on = false;
  bool last_two_alike = false;  // the last two frames look the same
  bool turned = false;          // an odd number of pictures have begun
  bool earlier_show = false, leaves_lines = false;  // see ObservationPlan
  int32_t reached[2] = {};  // for each picture: up to which color clock its frames are drawn

  // Plays the next frame.
  template <class M, class Core>
  CULE_INLINE void play(M& machine, const Core& core) {
    const int32_t last_clock = machine.config.format.last_clock, touched = machine.touched_cycle;
    last_goes_on = machine.devices.ports.frame_open;
    if (count == 0) first_goes_on = last_goes_on;
    turned ^= !last_goes_on && machine.buffer.count < machine.buffer.capacity;
    // If a frame is drawn less far than an earlier one in its picture, lines of that one remain.
    const int32_t reach = machine.run_frame(core);
    leaves_lines |= last_goes_on || reach != last_clock;
    // If a frame goes on in the same picture, that is drawn up to the last access to the TIA,
    // unless it was complete before.
    const bool complete = touched * kClocksPerCycle >= last_clock;
    last_two_alike = last_goes_on && (complete || machine.touched_cycle == touched);
    int32_t& before = reached[count & 1];
    earlier_show |= reach < before;
    before = reach > before ? reach : before;
    ++count;
  }
};

// What the observation is made of, if the step played `done` frames; `stopped` says that the
// episode ended at the last. `front` is the picture of the last frame before the step. As in
// ale-py, the frame at which the episode ends is not looked at, so the older frame is still shown.
// If more than two frames are pooled, they are drawn one by one, as frames that share a picture.
CULE_INLINE ObservationPlan plan_observation(const StepOptions& options, const FramesPlayed& frames,
                                             int32_t done, bool stopped, uint32_t front) {
  const bool pools = pools_frames(options), several = pools_several(options);
  NewFrame made_of =
      pools && (several || !frames.last_two_alike) ? NewFrame::kLastTwo : NewFrame::kLast;
  if (stopped) {
    const bool looked_at = done > options.frameskip - options.pooled_frames + 1;
    made_of = pools && looked_at ? NewFrame::kShownAndLastButOne : NewFrame::kNone;
  }
  ObservationPlan plan = plan_of(made_of);
  const bool one_by_one = several && adds_frame(plan);
  plan.last_two_share_picture = frames.last_goes_on || one_by_one;
  plan.earlier_frames_show = frames.earlier_show || one_by_one;
  plan.leaves_lines = frames.leaves_lines;
  plan.first_picture = (front ^ !frames.first_goes_on) & 1;
  plan.last_picture = (front ^ frames.turned) & 1;
  return plan;
}

// The action that a player chose from those that the env offers.
CULE_INLINE uint32_t chosen_action(const Batch& batch, size_t env, uint32_t player) {
  const int32_t index = batch.actions[env * batch.num_players + player];
  const bool known = index >= 0 && index < kNumActions;
  return known ? batch.action_ids[batch.group[env] * kNumActions + static_cast<uint32_t>(index)]
               : 0u;
}
// With one player, another one may hold the second joystick, who is not scored.
CULE_INLINE PlayerAction second_joystick(const Batch& batch, size_t env) {
  if (!batch.actions_b) return {kNoop, 0.0f};
  return {static_cast<uint32_t>(batch.actions_b[env]),
          batch.strengths_b ? batch.strengths_b[env] : 1.0f};
}
// All players' actions of this step.
CULE_INLINE PlayerActions actions_of(const Batch& batch, size_t env) {
  PlayerActions actions;
  actions.a = {chosen_action(batch, env, 0), batch.strengths ? batch.strengths[env] : 1.0f};
  actions.b = batch.num_players > 1 ? PlayerAction{chosen_action(batch, env, 1), 1.0f}
                                    : second_joystick(batch, env);
  if (batch.num_players > 2) {
    actions.c = chosen_action(batch, env, 2);
    actions.d = chosen_action(batch, env, 3);
  }
  return actions;
}

// With sticky actions: what the step's last frame has played, and how many held an earlier action.
CULE_INLINE void report_actions(const Batch& batch, size_t env, uint32_t played, int32_t repeated) {
  if (!batch.repeated) return;
  batch.repeated[env] = repeated;
  batch.played[env] = static_cast<int32_t>(played);
}

// A player's reward of this step, before clipping.
CULE_INLINE void report_rewards(const Batch& batch, size_t env, uint32_t player, int32_t reward) {
  const size_t at = env * batch.num_players + player;
  batch.raw_rewards[at] = reward;
  batch.rewards[at] = batch.options.reward_clipping ? (reward > 0) - (reward < 0) : reward;
}

// With several players: the others' rewards, 0 at the begin of a step, to which each frame adds.
CULE_INLINE void clear_others(const Batch& batch, size_t env) {
  for (uint32_t player = 1; player < batch.num_players; ++player)
    report_rewards(batch, env, player, 0);
}
template <class Index>
CULE_COLD void reward_others(const Batch& batch, size_t env, Index game_index,
                             const GameState& game) {
  for (uint32_t player = 1; player < batch.num_players; ++player) {
    const int32_t before = batch.raw_rewards[env * batch.num_players + player];
    const int32_t reward = other_player(game_index, game, static_cast<int>(player)).reward;
    report_rewards(batch, env, player, before + reward);
  }
}

// For an env whose episode ended in an earlier step: the next one starts instead of this step.
CULE_INLINE void play_nothing(const Batch& batch, size_t env, Restart restart) {
  batch.traces[env] = {0, 0, 0, plan_of(NewFrame::kNone), restart, 0, 0};
  report_rewards(batch, env, 0, 0);
  clear_others(batch, env);
  batch.terminated[env] = batch.truncated[env] = batch.over[env] = batch.began[env] = 0;
  report_actions(batch, env, kNoop, 0);
  if (hears(batch)) note_nothing_heard(batch, env);
}

// Applies the user's changes of RAM. Without any this is one test of a number.
template <class Ram>
CULE_INLINE void patch_ram(const Batch& batch, size_t env, const Ram& ram, const EnvState& state,
                           bool show) {
  if (batch.num_patches == 0) return;
  apply_patches(batch.patches + env, batch.num_patches, static_cast<size_t>(batch.num_envs), ram,
                state.episode_frame_number, show);
}

// What the env waits for. A state of another env may wait for the start of a life; if this one
// starts none, the game goes on.
CULE_INLINE Restart awaited(const StepOptions& options, const EnvState& state) {
  const auto waits = static_cast<Restart>(state.over);
  return waits == Restart::kNextLife && !starts_lives(options) ? Restart::kNone : waits;
}

// The results of a step, in addition to its observation.
struct StepResult {
  int32_t reward = 0;  // the first player's, before clipping
  bool terminated = false, truncated = false;
};
template <class Index>
CULE_INLINE void report_step(const Batch& batch, size_t env, Index game_index,
                             const StepResult& result, const GameState& game,
                             const EnvState& state) {
  report_rewards(batch, env, 0, result.reward);
  batch.terminated[env] = result.terminated;
  batch.truncated[env] = result.truncated;
  batch.over[env] = static_cast<Restart>(state.over) == Restart::kNewGame;
  batch.began[env] = 0;
  report_state(batch, env, state);
  report_other_lives(batch, env, game_index, game);
}

// Applies the game's rules after a frame, and adds the players' rewards to those of the step.
// Returns the first player's lives.
template <class Index, class M>
CULE_INLINE int32_t score_players(const Batch& batch, size_t env, Index game_index,
                                  const M& machine, GameState& game, StepResult& result) {
  const int32_t lives = score_frame(game_index, memory_of(machine), game);
  result.reward += game.reward;
  if (batch.num_players > 1) reward_others(batch, env, game_index, game);
  return lives;
}

// What has to be restarted after a step: a game that stopped, or a life where each is an episode.
CULE_INLINE Restart restart_after(const StepOptions& options, bool stopped, bool life_lost) {
  if (stopped) return Restart::kNewGame;
  return life_lost && starts_lives(options) ? Restart::kNextLife : Restart::kNone;
}

// How many frames of a step passed before its episode ended, and how many held an earlier action.
struct FramesPassed {
  int32_t done, repeated;
};

// Stores what a step leaves of the console, the game and the env, and shows in RAM what is held.
template <class M>
CULE_INLINE void store_played(const Batch& batch, size_t env, const M& machine,
                              const GameState& game, const EnvState& state, FramesPassed passed) {
  patch_ram(batch, env, machine.ram, state, true);
  report_actions(batch, env, state.held_action[0], passed.repeated);
  if (M::kHears && hears(batch)) note_heard_after_end(batch, env, passed.done);
  ConsoleState console;
  machine.store(console);
  store_part(batch.records, env, offsetof(EnvRecord, console), console);
  store_part(batch.records, env, offsetof(EnvRecord, game), game);
  store_part(batch.records, env, offsetof(EnvRecord, env), state);
}

// Loads env's state, plays frames until the step or the episode ends, and stores the new state.
template <class M, class Core>
CULE_INLINE void play_frames(const Batch& batch, size_t env, M& machine, const Core& core) {
  const StepOptions& options = batch.options;
  StepTrace& trace = batch.traces[env];
  EnvState state;
  load_part(batch.records, env, offsetof(EnvRecord, env), state);
  const Restart due = awaited(options, state);
  if (due != Restart::kNone && options.autoreset == AutoresetMode::kNextStep)
    return play_nothing(batch, env, due);
  // The program is likely to read the same collision latches as in the last step.
  machine.latches_read = trace.latches_read;
  GameState game;
  ConsoleState console;
  TiaState tia;
  load_part(batch.records, env, offsetof(EnvRecord, tia), tia);
  machine.begin_record(tia);
  load_part(batch.records, env, offsetof(EnvRecord, game), game);
  load_part(batch.records, env, offsetof(EnvRecord, console), console);
  machine.load(console);

  clear_others(batch, env);
  FramesPlayed frames;
  StepResult result;
  int32_t done = 0, lives = state.lives, repeated = 0;
  bool stopped = false, life_lost = false;
  while (done < options.frameskip && !stopped) {
    const auto play = [&](const Inputs& inputs) CULE_INLINE_LAMBDA {
      machine.devices.inputs = inputs;
      patch_ram(batch, env, machine.ram, state, false);
      frames.play(machine, core);
      lives = score_players(batch, env, core.game_of(machine.config), machine, game, result);
    };
    const PlayerActions asked = actions_of(batch, env);
    act(machine.config, state, game, sticky_actions_of(batch, env), asked, play);
    repeated += state.held_action[0] != asked.a.action;
    if (M::kHears && hears(batch)) note_heard(batch, env, done);
    ++done;
    ++state.elapsed_frames;
    life_lost = lives < state.lives && lives > 0;
    stopped = game.terminal || state.elapsed_frames >= options.max_frames ||
              (options.episodic_life && life_lost);
  }
  state.lives = lives;
  const Restart restart = restart_after(options, stopped, life_lost);
  state.over = static_cast<uint32_t>(restart);
  frames.leaves_lines |= (machine.devices.faults & kFaultBufferFull) != 0;
  const ObservationPlan plan =
      plan_observation(options, frames, done, stopped, screen_of(batch, env).front);
  if (lacks_shown(batch, env, plan)) machine.devices.faults |= kFaultFrameLost;
  state.faults |= machine.devices.faults;

  store_played(batch, env, machine, game, state, {done, repeated});
  const bool lives_end = options.life_loss_info || options.episodic_life;
  result.terminated = game.terminal || (lives_end && life_lost);
  result.truncated = state.elapsed_frames >= options.max_frames && !result.terminated;
  report_step(batch, env, core.game_of(machine.config), result, game, state);
  trace = {machine.buffer.count, machine.buffer.after_clear, static_cast<uint16_t>(frames.count),
           plan, options.autoreset == AutoresetMode::kSameStep ? restart : Restart::kNone,
           machine.latches_read, machine.trail.spare};
}

}  // namespace cule

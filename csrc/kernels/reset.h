// Starts an episode of one env: copies a state from the reset pool, or emulates the start.
#pragma once

#include "kernels/episode_start.h"
#include "kernels/hear.h"
#include "kernels/lanes.h"
#include "kernels/memory.h"
#include "kernels/object_boxes.h"
#include "kernels/prepare.h"
#include "kernels/screen.h"
#include "tia/render/span_renderer.h"

namespace cule {

constexpr int64_t kNoSeed = -1;

CULE_INLINE void copy_bytes(uint8_t* to, const uint8_t* from, size_t bytes) {
  const uint32_t* source = reinterpret_cast<const uint32_t*>(from);
  uint32_t* target = reinterpret_cast<uint32_t*>(to);
  for (size_t i = 0; i < bytes / 4; ++i) target[i] = source[i];
}

// Copies the state in `slot` of `pool` to `env`, except for its pictures and sound. Seeds and what
// is counted across episodes go on from `old`. Returns the env's new state.
CULE_HD inline EnvState copy_record_from(const Batch& batch, size_t env, const ResetPool& pool,
                                         size_t slot, const EnvState& old) {
  EnvRecord record;
  load_part(RecordLayout{const_cast<uint32_t*>(pool.records), 1, kRecordWords}, slot, 0, record);
  record.env.frame_number += old.frame_number;
  record.env.seed[0] = old.seed[0];
  record.env.seed[1] = old.seed[1];
  record.env.resets = old.resets;
  record.env.elapsed_frames = old.elapsed_frames;
  record.env.action_draws = old.action_draws;
  store_part(batch.records, env, 0, record);
  copy_bytes(batch.ram + env * kRamBytes, pool.ram + slot * kRamBytes, kRamBytes);
  copy_bytes(batch.cartridge_bytes + env * kCartridgeBytes,
             pool.cartridge_bytes + slot * kCartridgeBytes, kCartridgeBytes);
  return record.env;
}

// Copies the sound of the state in `slot`, with the samples of its last frame. The frames before it
// are silent.
template <class Lanes>
CULE_INLINE void copy_sound_from(const Batch& batch, size_t env, const ResetPool& pool, size_t slot,
                                 const Lanes& lanes) {
  const EnvSound sound = sound_of(batch, env);
  const uint32_t* samples = reinterpret_cast<const uint32_t*>(pool.sounds + slot * kFrameSamples);
  if (lanes.lane() == 0) *sound.state = pool.sound[slot];
  for (int i = lanes.lane(); i < kFrameSamples / 4; i += Lanes::kCount)
    sound.samples[i] = samples[i];
  silence_older(batch, env, lanes);
}

// Copies the pictures, the sound and the boxes of the state in `slot`. In start states each scanline
// has its own row.
CULE_HD inline void copy_outputs_from(const Batch& batch, size_t env, const ResetPool& pool,
                                      size_t slot) {
  const Pictures pictures = pictures_of(batch, env);
  const size_t bytes = 2 * batch.picture_bytes;
  copy_bytes(pictures.pixels, pool.pictures + slot * bytes, bytes);
  own_rows(pictures, OneLane{});
  if (hears(batch)) copy_sound_from(batch, env, pool, slot, OneLane{});
  if (sees(batch)) copy_boxes_from(batch, env, pool, slot, OneLane{});
}

// The slot of the pool that env's next episode starts from: one of its group's, chosen at random.
CULE_INLINE size_t choose_pool_slot(const Batch& batch, size_t env, const EnvState& state) {
  const uint32_t size = static_cast<uint32_t>(batch.pool.size);
  const uint32_t word =
      sample(seed_of(state), stream_of(batch, env), kSampleResetState, state.resets).words[0];
  return static_cast<size_t>(batch.group[env]) * size + below(word, size);
}

// Runs `body` with a session of env, which one thread plays, drawing every frame. Then stores the
// state that it has left, and returns the env's part of it.
template <class Core, class Body>
CULE_HD inline EnvState with_session(const Batch& batch, size_t env, const Core& core,
                                 const Workplace& place, const Body& body) {
  const ConsoleConfig& config = config_of(batch, env);
  EnvRecord record;
  load_part(batch.records, env, 0, record);
  LineBits words[LineRoom<LineBits>::kSize] = {};
  SpanRenderer view(pictures_of(batch, env), record.screen.front, static_cast<int>(config.height),
                   {words, 1});
  Devices devices{};
  PlainMachine machine = make_plain_machine(batch, env, devices, place);
  machine.load(record.console);
  Session<PlainMachine, Core, SpanRenderer> session{
      config, machine, core, view, record.tia, record.game, record.env, batch.power_on,
      sticky_actions_of(batch, env), sound_of(batch, env),
      object_frames_of(batch, env)};
  body(session);
  machine.store(record.console);
  record.screen.front = static_cast<uint8_t>(view.front);
  record.env.faults |= devices.faults;
  store_part(batch.records, env, 0, record);
  return record.env;
}

// What is pressed at the start of env's episodes.
CULE_INLINE StartButtons buttons_of(const Batch& batch, size_t env) {
  const uint8_t* ids = batch.action_ids + batch.group[env] * kNumActions;
  bool found = false;
  for (int i = 0; i < kNumActions; ++i) found |= ids[i] == kFire;
  return {found && batch.options.fire_reset, ids[2]};
}

CULE_INLINE void seed_state(EnvState& state, int64_t seed) {
  state.seed[0] = static_cast<uint32_t>(seed);
  state.seed[1] = static_cast<uint32_t>(seed >> 32);
  state.resets = state.action_draws = 0;
  state.frame_number = 0;
}

// Seeds an env whose resets are emulated, and puts its console back to its state after power-on, as
// ale-py does when it is seeded.
CULE_HD inline void seed_exactly(const Batch& batch, size_t env, int64_t seed) {
  EnvState state;
  load_part(batch.records, env, offsetof(EnvRecord, env), state);
  seed_state(state, seed);
  const uint32_t word = static_cast<uint32_t>(seed);
  Mt19937{batch.noop_random + env, static_cast<size_t>(batch.num_envs)}.seed(word);
  const Mt19937 env_random = sticky_actions_of(batch, env).env_random;
  if (env_random.words) env_random.seed(word);
  copy_record_from(batch, env, batch.boot, batch.group[env], state);
  copy_outputs_from(batch, env, batch.boot, batch.group[env]);
}

// In a reset: marks the env to be reset if its byte in `mask` is set (null: all are reset).
CULE_INLINE void choose_reset(const Batch& batch, size_t env, const uint8_t* mask) {
  const bool resets = !mask || mask[env];
  batch.traces[env].restart = resets ? Restart::kNewGame : Restart::kNone;
  batch.began[env] = 0;
  if (resets) batch.over[env] = 0;
  batch.traces[env].plan = plan_of(NewFrame::kNone);
}

// Reports the new game or life, and plans its first observation.
CULE_INLINE void finish_restart(const Batch& batch, size_t env, const EnvState& state,
                                EpisodeBegun begun) {
  StepTrace& trace = batch.traces[env];
  report_state(batch, env, state);
  if (batch.num_players > 1) {
    GameState game;
    load_part(batch.records, env, offsetof(EnvRecord, game), game);
    report_other_lives(batch, env, config_of(batch, env).game, game);
  }
  batch.began[env] = begun.new_game;
  // The game has ended while the start of its next life was played.
  if (begun.new_game && trace.restart == Restart::kNextLife) batch.over[env] = 1;
  const bool keeps_stack =
      start_of(batch.options) == EpisodeStart::kEnvpool && !begun.new_game;
  trace.plan = plan_of_start(begun.last_two, keeps_stack);
}

// Whether the pool has the state that env starts from.
CULE_INLINE bool restarts_from_pool(const Batch& batch, size_t env) {
  return batch.pool.size && batch.traces[env].restart == Restart::kNewGame;
}

// Starts env's next game from the pool, except for the pictures. The caller copies these from the
// slot that this returns.
CULE_HD inline size_t restart_record(const Batch& batch, size_t env, int64_t seed) {
  EnvState state;
  load_part(batch.records, env, offsetof(EnvRecord, env), state);
  if (seed != kNoSeed) seed_state(state, seed);
  if (restarts_from_pool(batch, env)) state.elapsed_frames = 0;
  const size_t slot = choose_pool_slot(batch, env, state);
  ++state.resets;
  const bool last_two = start_of(batch.options) == EpisodeStart::kBaselines &&
                        buttons_of(batch, env).fire && pools_frames(batch.options);
  finish_restart(batch, env, copy_record_from(batch, env, batch.pool, slot, state),
                 {true, last_two});
  return slot;
}

// Draws how many no-ops are played at an emulated start. As in ale-py and EnvPool, games are
// emulated with the numbers of an MT19937. Where there is a pool, the lives have Philox's.
CULE_HD inline int random_noops(const Batch& batch, size_t env, const EnvState& state) {
  const auto of_mt19937 = [&](uint32_t end) {
    return Mt19937{batch.noop_random + env, static_cast<size_t>(batch.num_envs)}.below(end);
  };
  const auto of_philox = [&](uint32_t end) {
    const uint32_t now = static_cast<uint32_t>(state.frame_number);
    const uint32_t stream = stream_of(batch, env);
    return below(sample(seed_of(state), stream, kSampleLifeNoops, now).words[0], end);
  };
  const int drawn = batch.pool.size ? draw_noops(batch.options, of_philox)
                                    : draw_noops(batch.options, of_mt19937);
  return noops_of(batch.options, buttons_of(batch, env).fire, drawn);
}

// Starts env's next episode by emulating it. With a pool that is a life, and if the game ends
// meanwhile, the next one comes from the pool.
template <class Core>
CULE_HD inline void emulate_restart(const Batch& batch, size_t env, int64_t seed, const Core& core,
                                    const Workplace& place) {
  if (seed != kNoSeed) seed_exactly(batch, env, seed);
  if (hears(batch)) silence_older(batch, env, OneLane{});
  const bool next_life = batch.traces[env].restart == Restart::kNextLife;
  const bool emulates_games = batch.pool.size == 0;
  if (next_life) separate_rows(batch, env, OneLane{});
  EpisodeBegun begun{};
  const EnvState state = with_session(batch, env, core, place, [&](auto& session) {
    const auto draw = [&]() { return random_noops(batch, env, session.env); };
    begun = start_episode(session, batch.options, buttons_of(batch, env), !next_life,
                          emulates_games, draw);
    if (begun.new_game && emulates_games) ++session.env.resets;
  });
  if (!begun.new_game || emulates_games) return finish_restart(batch, env, state, begun);
  copy_outputs_from(batch, env, batch.pool, restart_record(batch, env, kNoSeed));
}

}  // namespace cule

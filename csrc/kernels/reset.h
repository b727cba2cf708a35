// Starts an episode of one env: copies a state of the pool, or emulates what ale-py emulates.
#pragma once

#include "kernels/lanes.h"
#include "kernels/memory.h"
#include "tia/picture_view.h"

namespace cule {

constexpr int64_t kNoSeed = -1;

CULE_INLINE void copy_bytes(uint8_t* to, const uint8_t* from, size_t bytes) {
  const uint32_t* source = reinterpret_cast<const uint32_t*>(from);
  uint32_t* target = reinterpret_cast<uint32_t*>(to);
  for (size_t i = 0; i < bytes / 4; ++i) target[i] = source[i];
}

// Copies the state in `slot` of `pool` to `env`, except for its pictures and for what is counted
// across episodes.
CULE_HD inline void copy_record_from(const Batch& batch, size_t env, const ResetPool& pool,
                                     size_t slot) {
  EnvState old;
  load_part(batch.records, env, offsetof(EnvRecord, env), old);
  EnvRecord record;
  load_part(RecordLayout{const_cast<uint32_t*>(pool.records), 1, kRecordWords}, slot, 0, record);
  record.env.frame_number += old.frame_number;
  record.env.seed[0] = old.seed[0];
  record.env.seed[1] = old.seed[1];
  record.env.resets = old.resets;
  record.env.action_draws = old.action_draws;
  store_part(batch.records, env, 0, record);
  copy_bytes(batch.ram + env * kRamBytes, pool.ram + slot * kRamBytes, kRamBytes);
  copy_bytes(batch.cartridge_bytes + env * kCartridgeBytes,
             pool.cartridge_bytes + slot * kCartridgeBytes, kCartridgeBytes);
}

// Start states have each scanline in its own row.
CULE_HD inline void copy_pictures_from(const Batch& batch, size_t env, const ResetPool& pool,
                                       size_t slot) {
  const Pictures pictures = pictures_of(batch, env);
  const size_t bytes = 2 * batch.picture_bytes;
  copy_bytes(pictures.pixels, pool.pictures + slot * bytes, bytes);
  own_rows(pictures, OneLane{});
}

// The slot of the pool, among its group's, from which env's next episode starts.
CULE_INLINE size_t choose_pool_slot(const Batch& batch, size_t env, const EnvState& state) {
  const uint32_t size = static_cast<uint32_t>(batch.pool.size);
  const uint32_t word =
      draw(seed_of(state), static_cast<uint32_t>(env), kDrawResetState, state.resets).words[0];
  return static_cast<size_t>(batch.group[env]) * size + below(word, size);
}

// ale-py's vector reset after reset_game: FIRE if the game has it, then some no-ops. If the game
// ends on the way, an episode starts again. `noops` includes the FIRE, and so does `played`: how
// many of them have been played already.
template <class AnySession>
CULE_HD void play_noops(AnySession& session, bool fire, int played, int noops) {
  for (int i = played > fire ? played : fire; i < noops; ++i) {
    session.act(kNoop);
    if (session.game.terminal) session.start_episode();
  }
}

// Notes what the first step begins with.
template <class AnySession>
CULE_HD void end_of_start(AnySession& session) {
  session.env.lives = lives_of(session.config.game, session.game);
  session.env.elapsed_frames = 0;
  session.env.over = 0;
}

// Plays the start of a new episode, up to where its first step begins.
template <class AnySession>
CULE_HD void start_with_noops(AnySession& session, bool fire, int noops) {
  session.start_episode();
  if (fire) session.act(kFire);
  play_noops(session, fire, 0, noops);
  end_of_start(session);
}

// Runs `body` with a session of env, which one thread plays, drawing every frame. Then stores the
// state that it has left.
template <class Core, class Body>
CULE_HD inline void with_session(const Batch& batch, size_t env, const Core& core,
                                 const Workplace& place, const Body& body) {
  const ConsoleConfig& config = config_of(batch, env);
  EnvRecord record;
  load_part(batch.records, env, 0, record);
  LineBits words[LineRoom<LineBits>::kSize] = {};
  PictureView view(pictures_of(batch, env), static_cast<int>(config.height), {words, 1});
  Devices devices{};
  PlainMachine machine = make_plain_machine(batch, env, devices, place);
  machine.load(record.console);
  Session<PlainMachine, Core, PictureView> session{
      config, machine, core, view, record.tia, record.game, record.env, batch.power_on,
      batch.options.repeat_action_probability, static_cast<uint32_t>(env),
      env_random_of(batch, env)};
  body(session);
  machine.store(record.console);
  record.env.faults |= devices.faults;
  store_part(batch.records, env, 0, record);
}

// Whether env's episodes start with FIRE.
CULE_INLINE bool starts_with_fire(const Batch& batch, size_t env) {
  const uint8_t* ids = batch.action_ids + batch.group[env] * kNumActions;
  bool found = false;
  for (int i = 0; i < kNumActions; ++i) found |= ids[i] == kFire;
  return found && batch.options.fire_reset;
}

// Seeds what depends on the env's seed. The exact reset also takes the console back to power-on, as
// ale-py does when it is seeded.
CULE_HD inline void seed_env(const Batch& batch, size_t env, int64_t seed, bool exact) {
  EnvState state;
  load_part(batch.records, env, offsetof(EnvRecord, env), state);
  state.seed[0] = static_cast<uint32_t>(seed);
  state.seed[1] = static_cast<uint32_t>(seed >> 32);
  state.resets = state.action_draws = 0;
  state.frame_number = 0;
  store_part(batch.records, env, offsetof(EnvRecord, env), state);
  if (!exact) return;
  const Mt19937 noops{batch.noop_random + env, static_cast<size_t>(batch.num_envs)};
  noops.seed(static_cast<uint32_t>(seed));
  if (batch.env_random) env_random_of(batch, env).seed(static_cast<uint32_t>(seed));
  copy_record_from(batch, env, batch.boot, batch.group[env]);
  copy_pictures_from(batch, env, batch.boot, batch.group[env]);
}

// Counts the reset and reports the new episode.
CULE_HD inline void finish_reset(const Batch& batch, size_t env) {
  EnvState state;
  load_part(batch.records, env, offsetof(EnvRecord, env), state);
  ++state.resets;
  store_part(batch.records, env, offsetof(EnvRecord, env), state);
  batch.lives[env] = state.lives;
  batch.frame_numbers[env] = state.frame_number;
  batch.episode_frame_numbers[env] = state.episode_frame_number;
  batch.faults[env] = static_cast<int32_t>(state.faults);
}

// Starts env's next episode from its pool, except for the pictures. The caller copies those from
// the slot that this returns.
CULE_HD inline size_t restart_record(const Batch& batch, size_t env, int64_t seed) {
  if (seed != kNoSeed) seed_env(batch, env, seed, false);
  EnvState state;
  load_part(batch.records, env, offsetof(EnvRecord, env), state);
  const size_t slot = choose_pool_slot(batch, env, state);
  copy_record_from(batch, env, batch.pool, slot);
  finish_reset(batch, env);
  batch.traces[env].flags = kPoolLast | kFresh | kResetNow;
  return slot;
}

// Starts env's next episode by emulating it, as ale-py does.
template <class Core>
CULE_HD inline void restart_exactly(const Batch& batch, size_t env, int64_t seed, const Core& core,
                                    const Workplace& place) {
  if (seed != kNoSeed) seed_env(batch, env, seed, true);
  const StepOptions& options = batch.options;
  const Mt19937 random{batch.noop_random + env, static_cast<size_t>(batch.num_envs)};
  const int noops = static_cast<int>(
      random.below(options.noop_max > 0 ? static_cast<uint32_t>(options.noop_max) : 1));
  with_session(batch, env, core, place, [&](auto& session) {
    start_with_noops(session, starts_with_fire(batch, env), noops);
  });
  finish_reset(batch, env);
  batch.traces[env].flags = kPoolLast | kFresh | kResetNow;
}

}  // namespace cule

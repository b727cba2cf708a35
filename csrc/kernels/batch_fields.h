// The one declaration of a batch's fields. `struct Batch` (batch.h), what Python may set and how it
// is checked (bindings/), the memory that is allocated (cule/engine/layout.py) and which of it a
// saved state has (cule/state.py) are all made from the rows below.
//
// A field has the name by which Python knows it. Some fields are members of a member of Batch. In
// the rows, `b` is the batch. `use.envs` is true for steps and resets, and false if consoles are
// only prepared. `use.on_gpu` says where the memory is.
#pragma once

namespace cule {

// How long the contents of an array last.
enum class Life {
  kConstant,  // written before the first step, then only read
  kState,     // an env's state; a saved state includes it
  kArranged,  // part of the state, but each backend arranges it in its own way
  kStep,      // until the next step or reset, for other kernels or for the caller
  kInput,     // for the next step
  kOutput,    // of the last step or reset; a saved state includes it, too
};

// What a batch is used for, and where. This decides which fields it needs.
struct Use {
  bool envs, on_gpu;
};

// The arrays:
//   ARRAY(type, name, life, needed, shape...)    a member of Batch that points to `type`
//   PART(name, member, life, needed, shape...)   a pointer within a member of Batch
// An array that is not needed may still be given. Then its size is checked, too. A shape of 0 means
// that the size depends on the contents of other arrays.
#define CULE_BATCH_ARRAYS(ARRAY, PART)                                                             \
  ARRAY(const uint32_t, group, kConstant, true, b.num_envs)                                        \
  ARRAY(const ConsoleConfig, configs, kConstant, true, b.num_groups)                               \
  ARRAY(const uint8_t, action_ids, kConstant, true, b.num_groups, kNumActions)                     \
  /* The ROM images of all groups. A group's config says where its image begins. */                \
  ARRAY(const uint8_t, roms, kConstant, true, 0)                                                   \
  /* For each byte of `roms`, the instruction that begins there. */                                \
  ARRAY(const Predecoded, predecoded, kConstant, true, 0)                                          \
  ARRAY(const Predecoded, operations, kConstant, true, 256)                                        \
  /* The same as `predecoded`, with the marks of the translated kernel. */                         \
  ARRAY(const Predecoded, marked_ops, kConstant, false, 0)                                         \
  /* What the boxes of a group's game are: a row of settings, then rules (kernels/see.h). */       \
  ARRAY(const int16_t, object_facts, kConstant, b.max_objects != 0, b.num_groups,                  \
        kObjectFactRows, kObjectFactColumns)                                                       \
  PART(power_on_numbers, power_on.numbers, kConstant, true, b.power_on.count)                      \
  PART(palettes, observation.palettes, kConstant, use.envs, 2, 256, b.observation.channels)        \
  PART(resamples, observation.resamples, kConstant, use.envs, b.num_groups)                        \
  CULE_START_STATES(PART, boot, use.envs && b.pool.size == 0)                                      \
  CULE_START_STATES(PART, pool, use.envs && b.pool.size != 0)                                      \
                                                                                                   \
  PART(records, records.words, kState, true, b.num_envs, kRecordWords)                             \
  ARRAY(uint8_t, ram, kState, true, b.num_envs, kRamBytes)                                         \
  ARRAY(uint8_t, cartridge_bytes, kState, true, b.num_envs, kCartridgeBytes)                       \
  /* Rows of palette indices, which row_of puts in order. */                                       \
  ARRAY(uint8_t, pictures, kState, true, b.num_envs, 2, b.picture_bytes)                           \
  /* The row that each scanline of a picture shows. */                                             \
  ARRAY(uint8_t, row_of, kArranged, true, b.num_envs, 2, Pictures::kRows)                          \
  /* The frame that an observation is made of, if that needs more than the two pictures. With      \
     keeps_pooled each env has one, and the newest observation may show it (ShownFrames). Without, \
     it lasts for one step only. */                                                                \
  ARRAY(uint8_t, pooled, kState, use.envs, pooled_frames(b),                                       \
        b.picture_bytes * static_cast<uint64_t>(b.observation.channels))                           \
  /* The state of ale-py's random generators, if resets are emulated. Only one game needs the      \
     second. */                                                                                    \
  ARRAY(uint32_t, noop_random, kState, use.envs && b.pool.size == 0, Mt19937::kStateWords,         \
        b.num_envs)                                                                                \
  ARRAY(uint32_t, env_random, kState, false, Mt19937::kStateWords, b.num_envs)                     \
  /* The TIA's sound, and the samples of the last frames, the newest last. */                      \
  ARRAY(SoundState, sound, kState, b.sound_frames != 0, b.num_envs)                                \
  ARRAY(uint8_t, sounds, kState, b.sound_frames != 0, b.num_envs, b.sound_frames, kFrameSamples)   \
  /* The boxes of the last two frames, the newer one last (tia/render/object_view.h). */           \
  ARRAY(int16_t, boxes, kState, b.max_objects != 0, b.num_envs, 2, b.max_objects + 1,              \
        kObjectFields)                                                                             \
                                                                                                   \
  ARRAY(StepTrace, traces, kStep, use.envs, b.num_envs)                                            \
  /* Instruction buffers. On a CPU each thread has its own. */                                     \
  ARRAY(uint32_t, buffers, kStep, use.on_gpu, b.num_envs, b.buffer_capacity)                       \
  PART(spare_buffers, spares.entries, kStep, use.on_gpu, b.spares.count, b.spares.capacity)        \
  PART(spares_taken, spares.taken, kStep, use.on_gpu, 1)                                           \
  /* Which envs are played together. There are no more blocks than envs. */                        \
  PART(order_keys, order.keys, kStep, use.on_gpu, b.num_envs)                                      \
  PART(ordered_envs, order.envs, kStep, use.on_gpu, b.num_envs)                                    \
  PART(order_shares, order.shares, kStep, use.on_gpu, b.num_envs)                                  \
  PART(order_ends, order.ends, kStep, use.on_gpu, b.num_envs)                                      \
  PART(order_clocks, order.clocks, kStep, use.on_gpu, b.num_envs)                                  \
  /* Where segments begin (tia_state.h). */                                                        \
  ARRAY(uint32_t, segments, kStep, use.on_gpu, segment_words(b.options), b.num_envs)               \
                                                                                                   \
  /* The runs of each segment of the last two frames (tia/render/run_log.h), and their boxes       \
     (segment_boxes.h), which are kept until the runs change; and the numbers of those that have   \
     changed. */                                                                                   \
  ARRAY(uint32_t, runs, kStep, use.on_gpu && b.max_objects != 0, b.num_envs, kSeenFrames,          \
        kSegments, kRunLogWords)                                                                   \
  ARRAY(uint32_t, segment_boxes, kStep, use.on_gpu && b.max_objects != 0, b.num_envs, kSeenFrames, \
        kSegments, kSegmentBoxWords)                                                               \
  ARRAY(uint32_t, changed_logs, kStep, use.on_gpu && b.max_objects != 0, b.num_envs, kSeenFrames,  \
        kSegments)                                                                                 \
  ARRAY(uint32_t, num_changed_logs, kStep, use.on_gpu && b.max_objects != 0, 1)                    \
                                                                                                   \
  /* For each frame of a step, what the program has left in the registers of sound (sound.h). */   \
  ARRAY(uint32_t, heard, kStep, use.envs && b.sound_frames != 0, b.sound_frames, b.num_envs)       \
                                                                                                   \
  /* Indices into the group's actions, of each player. */                                          \
  ARRAY(const int32_t, actions, kInput, use.envs, b.num_envs, b.num_players)                       \
  /* How fast paddles turn (PlayerAction); null: 1. */                                             \
  ARRAY(const float, strengths, kInput, false, b.num_envs)                                         \
  /* With one player: what the second joystick does, from 0 to 17; null: nothing. */               \
  ARRAY(const int32_t, actions_b, kInput, false, b.num_envs)                                       \
  ARRAY(const float, strengths_b, kInput, false, b.num_envs)                                       \
  /* Changes of RAM before each frame of a step. */                                                \
  ARRAY(const Patch, patches, kInput, use.envs && b.num_patches != 0, b.num_patches, b.num_envs)   \
                                                                                                   \
  /* In how many frames of the step sticky actions held an earlier action. */                      \
  ARRAY(int32_t, repeated, kStep, use.envs && b.options.repeat_action_probability > 0,             \
        b.num_envs)                                                                                \
  /* Player A's action (0 to 17) in the last frame of the step, then too; 0 if it played none. */  \
  ARRAY(int32_t, played, kStep, use.envs && b.options.repeat_action_probability > 0, b.num_envs)   \
  ARRAY(uint8_t, observations, kOutput, use.envs, b.num_envs, b.observation.stack,                 \
        b.observation.height, b.observation.width, b.observation.channels)                         \
  ARRAY(uint8_t, final_observations, kStep,                                                        \
        use.envs && b.options.autoreset == AutoresetMode::kSameStep, b.num_envs,                   \
        b.observation.stack, b.observation.height, b.observation.width, b.observation.channels)    \
  ARRAY(uint8_t, final_sounds, kStep,                                                              \
        use.envs && b.sound_frames != 0 && b.options.autoreset == AutoresetMode::kSameStep,        \
        b.num_envs, b.sound_frames, kFrameSamples)                                                 \
  ARRAY(int32_t, rewards, kOutput, use.envs, b.num_envs, b.num_players)                            \
  /* Before clipping. */                                                                           \
  ARRAY(int32_t, raw_rewards, kOutput, use.envs, b.num_envs, b.num_players)                        \
  ARRAY(uint8_t, terminated, kOutput, use.envs, b.num_envs)                                        \
  ARRAY(uint8_t, truncated, kOutput, use.envs, b.num_envs)                                         \
  /* Whether the episode is over: a reset follows, in this step or in place of the next, or the    \
     user's. A lost life that is only reported (life_loss_info) does not end it. */                \
  ARRAY(uint8_t, over, kOutput, use.envs, b.num_envs)                                              \
  /* Whether this step or reset has begun an episode. */                                           \
  ARRAY(uint8_t, began, kOutput, use.envs, b.num_envs)                                             \
  ARRAY(int32_t, lives, kOutput, use.envs, b.num_envs, b.num_players)                              \
  ARRAY(int32_t, frame_numbers, kOutput, use.envs, b.num_envs)                                     \
  ARRAY(int32_t, episode_frame_numbers, kOutput, use.envs, b.num_envs)                             \
  ARRAY(int32_t, faults, kOutput, use.envs, b.num_envs)                                            \
  /* The objects of the last two frames (ObjectField), then rows of zeros. */                      \
  ARRAY(int16_t, objects, kOutput, use.envs && b.max_objects != 0, b.num_envs, b.max_objects,      \
        kObjectFields)                                                                             \
  /* How many boxes, or scanlines of them, had no room. */                                         \
  ARRAY(int32_t, objects_left_out, kOutput, use.envs && b.max_objects != 0, b.num_envs)            \
  ARRAY(int16_t, final_objects, kStep,                                                             \
        use.envs && b.max_objects != 0 && b.options.autoreset == AutoresetMode::kSameStep,         \
        b.num_envs, b.max_objects, kObjectFields)

// The states that episodes start from: the same number for each group, with the fields of an env.
#define CULE_START_STATES(PART, pool, needed)                                                      \
  PART(pool##_records, pool.records, kConstant, needed, start_states(b, b.pool), kRecordWords)     \
  PART(pool##_ram, pool.ram, kConstant, needed, start_states(b, b.pool), kRamBytes)                \
  PART(pool##_cartridge_bytes, pool.cartridge_bytes, kConstant, needed, start_states(b, b.pool),   \
       kCartridgeBytes)                                                                            \
  PART(pool##_pictures, pool.pictures, kConstant, needed, start_states(b, b.pool), 2,              \
       b.picture_bytes)                                                                            \
  PART(pool##_sound, pool.sound, kConstant, (needed) && b.sound_frames != 0,                       \
       start_states(b, b.pool))                                                                    \
  PART(pool##_sounds, pool.sounds, kConstant, (needed) && b.sound_frames != 0,                     \
       start_states(b, b.pool), kFrameSamples)                                                     \
  PART(pool##_boxes, pool.boxes, kConstant, (needed) && b.max_objects != 0,                        \
       start_states(b, b.pool), 2, b.max_objects + 1, kObjectFields)

// The counts: COUNT(name, member, checked, least, most). `checked` says when the range is checked.
// Counts with `false` are checked in another way (bindings/check_batch.h).
#define CULE_BATCH_COUNTS(COUNT)                                                                   \
  COUNT(num_envs, num_envs, true, 1, kMaxEnvs)                                                     \
  COUNT(num_groups, num_groups, true, 1, kMaxEnvs)                                                 \
  COUNT(num_players, num_players, use.envs, 1, kMaxPlayers)                                        \
  COUNT(picture_bytes, picture_bytes, true, 1, kMaxHeight * kLinePixels)                           \
  COUNT(buffer_capacity, buffer_capacity, true, 1, kMaxBufferEntries)                              \
  COUNT(power_on_count, power_on.count, true, 1, kMaxBufferEntries)                                \
  COUNT(record_word_stride, records.word_stride, false, 1, kMaxEnvs)                               \
  COUNT(record_env_stride, records.env_stride, false, 1, kMaxEnvs)                                 \
  COUNT(spare_count, spares.count, use.on_gpu, 1, kMaxEnvs)                                        \
  COUNT(spare_capacity, spares.capacity, use.on_gpu, b.buffer_capacity, kMaxBufferEntries)         \
  COUNT(envs_per_pooled, envs_per_pooled, use.envs, 1,                                             \
        use.on_gpu && !b.keeps_pooled ? kEnvsPerPooled : 1)                                        \
  COUNT(num_patches, num_patches, use.envs, 0, kMaxPatches)                                        \
  COUNT(sound_frames, sound_frames, use.envs, b.sound_frames ? b.options.frameskip : 0,            \
        kMaxFrameskip)                                                                             \
  COUNT(max_objects, max_objects, true, 0, kMostObjects)                                           \
  COUNT(pool_size, pool.size, use.envs, 0, kMaxStartStates)                                        \
  COUNT(boot_size, boot.size, use.envs && b.pool.size == 0, 1, 1)                                  \
  COUNT(observation_height, observation.height, use.envs, 1, INT32_MAX)                            \
  COUNT(observation_width, observation.width, use.envs, 1, INT32_MAX)                              \
  COUNT(channels, observation.channels, false, 1, 3)                                               \
  COUNT(stack, observation.stack, use.envs, 0, INT32_MAX)                                          \
  COUNT(autoreset, options.autoreset, use.envs, 0, 2)

// The options of a step, members of StepOptions:
//   OPTION(name, least, most)   an integer
//   FLAG(name)                  whether it is on
//   REAL(name)                  a real number
#define CULE_STEP_OPTIONS(OPTION, FLAG, REAL)                                                      \
  OPTION(frameskip, 1, kMaxFrameskip)                                                              \
  /* The longest episode, without the no-ops of its start. */                                      \
  OPTION(max_frames, 1, INT32_MAX)                                                                 \
  OPTION(noop_max, 0, kMaxNoops)                                                                   \
  OPTION(episode_start, 0, 3)                                                                      \
  FLAG(maxpool)                                                                                    \
  /* The maximum is of so many frames, the last of a step. More than two need maxpool. */          \
  OPTION(pooled_frames, 2, kMaxFrameskip)                                                          \
  FLAG(episodic_life)                                                                              \
  FLAG(life_loss_info)                                                                             \
  FLAG(reward_clipping)                                                                            \
  FLAG(fire_reset)                                                                                 \
  /* Each env has a seed of its own: random numbers do not depend on an env's number. */           \
  FLAG(own_seeds)                                                                                  \
  REAL(repeat_action_probability)

}  // namespace cule

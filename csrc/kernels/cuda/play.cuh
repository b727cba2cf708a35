// The CPU part of a step on a GPU: each thread plays one env (kernels/play.h).
//
// nvcc compiles this file with the interpreter. At run time it is compiled again for a translated
// ROM, which has its own core (cule/translation/).
#pragma once

#include "execution/block.h"
#include "kernels/memory.h"
#include "kernels/cuda/reductions.cuh"
#include "kernels/play.h"
#include "kernels/tia_state.h"

namespace cule {

// Threads of a block. With 128 registers each they use all registers of a multiprocessor.
constexpr int kPlayMaxThreads = 512;
constexpr int kWarp = 32;
constexpr int kPlayMaxWarps = kPlayMaxThreads / kWarp;
// If warps do not wait for each other, no more than these of a block have envs.
constexpr int kPlayFewWarps = 4;

// In shared memory each thread has its env's RAM, and then the TIA's state. Together they have an
// odd number of words, so the same byte of different threads is in different banks.
constexpr uint32_t kRamStride = kRamBytes + sizeof(TiaState) + (sizeof(TiaState) / 4 % 2 ? 0 : 4);

// With kSound, writes to the registers of sound go to global memory; without, nowhere.
template <bool kSound>
struct SoundOut {
  static constexpr bool kHears = false;
  __device__ __forceinline__ void set_sound(uint32_t, uint32_t) const {}
};
template <>
struct SoundOut<true> {
  static constexpr bool kHears = true;
  uint8_t* registers;
  __device__ __forceinline__ void set_sound(uint32_t number, uint32_t value) const {
    registers[number] = static_cast<uint8_t>(value);
  }
};
template <bool kSound>
struct SharedRam : SoundOut<kSound> {
  uint8_t* bytes;
  __device__ __forceinline__ SharedRam(uint32_t* words, const Batch& batch, int env)
      : bytes(reinterpret_cast<uint8_t*>(words)) {
    if constexpr (kSound) this->registers = batch.sound[env].registers;
  }
  __device__ __forceinline__ uint32_t get(uint32_t index) const { return bytes[index]; }
  __device__ __forceinline__ void set(uint32_t index, uint32_t value) const {
    bytes[index] = static_cast<uint8_t>(value);
  }
  __device__ __forceinline__ TiaState& tia() const {
    return *reinterpret_cast<TiaState*>(bytes + kRamBytes);
  }
};

// ROM in global memory. Nothing writes to it, so reads may go through the read-only cache.
struct CachedRom {
  const uint8_t* bytes;
  const Predecoded* predecoded;
  const Predecoded* marked_ops;
  const Predecoded* operations;
  static __device__ __forceinline__ Predecoded load(const Predecoded* at) {
    const uint2 words = __ldg(reinterpret_cast<const uint2*>(at));
    return {words.x, words.y};
  }
  __device__ __forceinline__ uint32_t operator()(uint32_t offset) const {
    return __ldg(bytes + offset);
  }
  __device__ __forceinline__ Predecoded predecoded_at(uint32_t offset) const {
    return load(predecoded + offset);
  }
  __device__ __forceinline__ Predecoded marked_op(uint32_t offset) const {
    return load(marked_ops + offset);
  }
  __device__ __forceinline__ Predecoded operation(uint32_t opcode) const {
    return load(operations + opcode);
  }
};

// The lanes of a warp that go on, while its other lanes wait.
struct WarpGroup {
  bool any;        // some lane of the warp still has something to do in this turn
  bool mine;       // this lane goes on
  uint32_t lanes;  // a bit for each lane that goes on
  uint32_t until;  // the lowest pc_order at which other lanes wait

  // Whether all of them are here, and `pc_order` is before those at which other lanes wait.
  __device__ __forceinline__ bool goes_on_at(uint32_t pc_order) const {
    return (pc_order < until) & (__activemask() == lanes);  // without a branch
  }
};

// Keeps the lanes of a warp together, but not the warps. Lanes that begin a frame together meet
// before each turn until their frames end.
struct WarpPace {
  int32_t lines;  // scanlines of a turn
  // How many instructions were left in the middle of the frame, and at three quarters.
  mutable int32_t left_at_half = 0, left_at_three_quarters = 0;

  __device__ __forceinline__ explicit WarpPace(int32_t turn_lines) : lines(turn_lines) {}
  __device__ __forceinline__ int32_t turn_lines() const { return lines; }
  __device__ __forceinline__ void begin_frame() const {}
  __device__ __forceinline__ uint32_t lanes() const { return __activemask(); }
  // All of `lanes` call this. Returns those that go on.
  __device__ __forceinline__ uint32_t meet(uint32_t lanes, bool goes_on) const {
    return __ballot_sync(lanes, goes_on);
  }
  __device__ __forceinline__ void begin_turn(uint32_t, int32_t) const {}
  // A lane calls this each kStretchLines scanlines.
  __device__ __forceinline__ void begin_stretch(int32_t begin, int32_t instructions_left) const {
    constexpr int32_t kQuarter = kQuarterLines / kStretchLines;
    const int32_t stretch = begin / kStretchCycles;
    if (stretch == 2 * kQuarter) left_at_half = instructions_left;
    if (stretch == 3 * kQuarter) left_at_three_quarters = instructions_left;
  }
  __device__ __forceinline__ uint32_t key_of_frame(int32_t instructions_left) const {
    return order_key(left_at_half - left_at_three_quarters,
                     left_at_three_quarters - instructions_left);
  }
  // All of `lanes` call this, each with its pc_order. Those at the lowest go on.
  __device__ __forceinline__ WarpGroup at_lowest_pc_order(uint32_t lanes, uint32_t pc_order) const {
    const uint32_t first = CULE_LEAST_OF(lanes, pc_order);
    const bool mine = (pc_order == first) | (is_interpreted(first) & is_interpreted(pc_order));
    const uint32_t group = __ballot_sync(lanes, mine);
    const uint32_t until = group == lanes ? kNowhere
                                          : CULE_LEAST_OF(lanes, mine ? kNowhere : pc_order);
    return {first != kNowhere, mine, group, until};
  }
};

// Also keeps the warps of a block at the same scanlines. Games follow the beam, so warps at the
// same scanlines need the same code: what one warp has fetched is there for the others. A block has
// a multiprocessor to itself.
//
// Only speed depends on this. If lanes of a warp have diverged, or some are missing, the warp waits
// for fewer others. No warp waits for ever: `begun` has, for each warp, the newest turn that any of
// its lanes has begun. So the warp that is furthest back waits for nobody.
struct BlockPace : WarpPace {
  static constexpr uint32_t kFinished = 0x7FFFFFFF;
  static constexpr uint32_t kNapNanoseconds = 64;
  // [kPlayMaxWarps]: the newest frame (high half) and the first cycle of the newest turn that each
  // warp has begun.
  volatile uint32_t* begun;
  mutable uint32_t frame = 0;

  __device__ __forceinline__ BlockPace(int32_t turn_lines, volatile uint32_t* turns)
      : WarpPace{turn_lines}, begun(turns) {}
  __device__ __forceinline__ void begin_frame() const { frame += 1u << 16; }
  __device__ __forceinline__ void begin_turn(uint32_t lanes, int32_t begin) const {
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, first = __ffs(lanes) - 1;
    // If the frames of lanes have different lengths, the first lane's turn counts for all.
    const uint32_t own = frame + min(static_cast<uint32_t>(begin < 0 ? 0 : begin), 0xFFFFu);
    const uint32_t here = __shfl_sync(lanes, own, first);
    if (lane == first) atomicMax(const_cast<uint32_t*>(begun + warp), here);
    // The lanes ask together. If each waited by itself, they would diverge.
    while (__any_sync(lanes, begun[lane % kPlayMaxWarps] < here)) {
      __nanosleep(kNapNanoseconds);
    }
  }
};

// The shared memory of a block whose warps are in step.
struct PlayShared {
  uint32_t begun[kPlayMaxWarps];  // for BlockPace
  uint32_t ram[1];                // for the SharedRam of each thread that has an env
};
constexpr size_t play_shared_bytes(int threads) {
  return offsetof(PlayShared, ram) + static_cast<size_t>(threads) * kRamStride;
}

// Instead of a number of lanes: envs are in the order of batch.order, and each block has its part.
constexpr int kInOrder = 0;

// The env of this thread, or batch.num_envs: none.
__device__ __forceinline__ int env_of_thread(const Batch& batch, int lanes, int warps) {
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  if (warp >= warps) return batch.num_envs;
  if (lanes != kInOrder) {
    return lane < lanes ? (blockIdx.x * warps + warp) * lanes + lane : batch.num_envs;
  }
  const int32_t* ends = batch.order.ends;
  const int begin = blockIdx.x ? ends[blockIdx.x - 1] : 0, end = ends[blockIdx.x];
  const int each = (end - begin + warps - 1) / warps, at = begin + warp * each + lane;
  return lane < each && at < end ? batch.order.envs[at] : batch.num_envs;
}

// Plays the envs of `batch`. In each of a block's first `warps`, the first `lanes` threads have an
// env each (or see kInOrder). `map` is the cartridge's map if it is known at compile time; else it
// is null.
template <bool kSound, class Core>
__device__ __forceinline__ void play_lanes(const Batch& batch, int lanes, int warps,
                                           const Core& core, const CartridgeMap* map,
                                           uint32_t* shared_ram) {
  const int env = env_of_thread(batch, lanes, warps);
  if (env >= batch.num_envs) return;

  const ConsoleConfig& config = config_of(batch, env);
  uint32_t* ram = shared_ram + kRamStride / 4 * threadIdx.x;
  uint32_t* global_ram = reinterpret_cast<uint32_t*>(batch.ram +
                                                     static_cast<size_t>(env) * kRamBytes);
  for (uint32_t i = 0; i < kRamBytes / 4; ++i) ram[i] = global_ram[i];
  Devices devices;
  TiaTrail trail;
  trail.starts = starts_of_env(batch, env);
  trail.spares = batch.spares;
  const Predecoded* predecoded = batch.predecoded + config.rom_offset;
  const CachedRom rom{batch.roms + config.rom_offset, predecoded,
                      core.marked_ops(batch.marked_ops, predecoded), batch.operations};
  uint32_t* entries = own_buffer(batch, static_cast<size_t>(env));
  CULE_OPAQUE_POINTER(entries);
  Machine<SharedRam<kSound>, CachedRom> machine{
      config,
      SharedRam<kSound>(ram, batch, env),
      rom,
      batch.cartridge_bytes + static_cast<size_t>(env) * kCartridgeBytes,
      devices,
      trail,
      InstructionBuffer{entries, batch.buffer_capacity, 0, 0},
      map ? *map : config.map,
      config.rom_bytes,
      config.cycle_limit};
  clear_starts(batch, trail.starts);
  play_frames(batch, env, machine, core);
  batch.order.keys[env] = core.pace.key_of_frame(machine.instructions_left);
  store_end_state(batch, env, machine);
  for (uint32_t i = 0; i < kRamBytes / 4; ++i) global_ram[i] = ram[i];
}

// How many scanlines a turn has if a block has `warps` warps.
template <class Core>
__device__ __forceinline__ int32_t turn_lines(int warps) {
  return warps > kPlayFewWarps ? Core::kTurnLinesOfManyWarps : Core::kTurnLines;
}

// The body of a kernel whose warps do not wait for each other. Up to kPlayFewWarps of a block have
// envs. Threads without an env wait for the end, and keep their registers until then. If a block
// has all registers of a multiprocessor, this keeps other kernels off it.
template <bool kSound, class Core>
__device__ __forceinline__ void play_freely(const Batch& batch, int lanes, int warps,
                                            const Core& core, const CartridgeMap* map) {
  __shared__ uint32_t shared_ram[kRamStride / 4 * kPlayFewWarps * kWarp];
  const WarpPace pace(turn_lines<Core>(warps));
  play_lanes<kSound>(batch, lanes, warps, PacedCore<Core, WarpPace>{core, pace}, map, shared_ram);
  __syncthreads();
}

// The body of a kernel whose warps are kept in step. It needs play_shared_bytes of shared memory.
template <bool kSound, class Core>
__device__ __forceinline__ void play_in_step(const Batch& batch, int lanes, int warps,
                                             const Core& core, const CartridgeMap* map) {
  extern __shared__ uint4 shared_words[];
  PlayShared& shared = *reinterpret_cast<PlayShared*>(shared_words);
  volatile uint32_t* begun = shared.begun;
  const long long before = clock64();
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < kPlayMaxWarps) begun[thread] = thread < warps ? 0 : BlockPace::kFinished;
  __syncthreads();
  const BlockPace pace(turn_lines<Core>(warps), begun);
  play_lanes<kSound>(batch, lanes, warps, PacedCore<Core, BlockPace>{core, pace}, map, shared.ram);
  __syncwarp();
  begun[thread / kWarp] = BlockPace::kFinished;
  __syncthreads();
  if (lanes == kInOrder && thread == 0) {
    batch.order.clocks[blockIdx.x] = static_cast<uint32_t>((clock64() - before) / 256);
  }
}

template <bool kInStep, bool kSound, class Core>
__device__ __forceinline__ void play_envs(const Batch& batch, int lanes, int warps,
                                          const Core& core, const CartridgeMap* map) {
  if constexpr (kInStep) play_in_step<kSound>(batch, lanes, warps, core, map);
  else play_freely<kSound>(batch, lanes, warps, core, map);
}

}  // namespace cule

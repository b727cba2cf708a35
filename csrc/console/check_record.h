// Checks that playing can produce a record. Records also come from files, and their indices, shifts
// and clocks are not checked while a console runs.
#pragma once

#include "cartridge/dpc.h"
#include "console/config.h"
#include "console/controls.h"
#include "console/record.h"

namespace cule {

// Whether both bytes of a pair are 0 or 1.
CULE_HD inline bool are_bits(BytePair pair) { return (pair.word & ~0x0101u) == 0; }

CULE_HD inline bool fits_registers(const Registers& r) {
  return r.pc <= 0xFFFF && (r.a | r.x | r.y | r.s | r.n | r.v | r.z) <= 0xFF &&
         (r.c | r.d | r.i | r.jammed) <= 1;
}

CULE_HD inline bool fits_riot(const M6532& riot) {
  const uint32_t shift = riot.interval_shift;
  return (riot.timer | riot.ddra) <= 0xFF &&
         (shift == 0 || shift == 3 || shift == 6 || shift == 10) && riot.read_after_interrupt <= 1;
}

// Counters that are only subtracted from each other may have any value, so they are not checked.
CULE_HD inline bool fits_ports(const TiaPorts& ports) {
  constexpr int32_t kMaxCycle = 2 * kOpenFrameLimit;
  const auto is_past = [&](int32_t cycle) { return cycle >= kOldestHmove && cycle <= ports.cycle; };
  return ports.cycle >= 0 && ports.cycle <= kMaxCycle && is_past(ports.hmove_cycle) &&
         is_past(ports.touched_cycle) && ports.vsync_finish_cycle >= 0 &&
         ports.vsync_finish_cycle <= kNoVsync && ports.dumping <= 0xFF &&
         (ports.frame_open | ports.greyed) <= 1;
}

// Whether all four slices are within the image.
CULE_HD inline bool fits_slices(uint32_t slices, const ConsoleConfig& config) {
  const uint32_t upper = config.map.a13_mask >> 1;
  for (int i = 0; i < 4; ++i) {
    if (upper + (((slices >> 8 * i & 0xFF) + 1) << 10) > config.rom_bytes) return false;
  }
  return true;
}

// Whether the beam is between the picture's first clock and its last, and its distance to the end
// of the scanline is right.
CULE_HD inline bool fits_beam(const TiaState& tia, const TiaFormat& format) {
  return tia.origin >= 0 && tia.cursor >= tia.origin && tia.cursor <= format.last_clock &&
         tia.line_left >= 0 && tia.line_left <= kClocksPerLine &&
         (tia.cursor - tia.origin + tia.line_left) % kClocksPerLine == 0 &&
         (tia.line_left > 0 || tia.cursor > tia.origin);
}

CULE_HD inline bool fits_objects(const TiaState& tia) {
  for (uint32_t object = 0; object < kPlayfield; ++object) {
    if (position_of(tia, object) >= kLinePixels) return false;
  }
  return tia.playfield < 1u << 20 && are_bits(tia.refp) && are_bits(tia.vdelp) &&
         are_bits(tia.skip_first) && are_bits(tia.enam) && are_bits(tia.resmp) &&
         are_bits(tia.enabl) &&
         (tia.color_loss | tia.reflect_now | tia.vdelbl | tia.stars_on | tia.hmove_blank) <= 1 &&
         tia.stars_phase <= 3 && tia.missile0_shape <= kMissileHidden && tia.unused == 0;
}

CULE_HD inline bool fits_screen(const ScreenState& screen) {
  return screen.front <= 1 && screen.shown <= ShownFrames::kBothPictures && screen.unused == 0;
}

// Whether a number is far from overflow. A step adds to some: it adds up rewards, which are
// differences of scores.
CULE_HD inline bool is_moderate(int32_t number) { return number > -(1 << 27) && number < 1 << 27; }

CULE_HD inline bool fits_game(const GameState& game) {
  for (int32_t number : game.aux) {
    if (!is_moderate(number)) return false;
  }
  return is_moderate(game.reward) && is_moderate(game.score) && is_moderate(game.lives) &&
         (game.terminal | game.started) <= 1;
}

CULE_HD inline bool fits_env(const EnvState& env, const ConsoleConfig& config) {
  for (int player = 0; player < kMaxPlayers; ++player) {
    if (env.paddle_ohms[player] < 0 || env.paddle_ohms[player] > config.paddle_max) return false;
    if (env.held_action[player] >= kNumActions) return false;
  }
  for (float strength : env.held_strength) {
    if (!(strength >= -1 && strength <= 1)) return false;
  }
  const int32_t counts[] = {env.frame_number, env.episode_frame_number, env.elapsed_frames};
  for (int32_t number : counts) {
    if (number < 0 || number >= 1 << 30) return false;
  }
  return is_moderate(env.lives) && env.over <= 2;
}

// Checks the cartridge's bytes if they are a DPC's registers. In other cartridges they are RAM, and
// may have any value.
CULE_HD inline bool fits_dpc(const Dpc& dpc) {
  for (uint16_t counter : dpc.counters) {
    if (counter > 0x7FF) return false;
  }
  return dpc.fractional_clocks >= -1 && dpc.fractional_clocks <= 1;
}

// Returns the part that playing cannot produce, or null.
CULE_HD inline const char* find_misfit(const EnvRecord& record, const uint8_t* cartridge_bytes,
                               const ConsoleConfig& config) {
  if (!fits_registers(record.console.cpu)) return "the processor's registers";
  if (!fits_riot(record.console.riot)) return "the timer";
  if (!fits_ports(record.console.ports)) return "the clocks of the frame";
  if (!fits_slices(record.console.slices, config)) return "the bank that shows";
  if (!fits_beam(record.tia, config.format)) return "the beam";
  if (!fits_objects(record.tia)) return "the objects on the screen";
  if (!fits_screen(record.screen)) return "which picture is shown";
  if (!fits_game(record.game)) return "what the game's rules remember";
  if (!fits_env(record.env, config)) return "what the env remembers";
  if (config.map.scheme == Scheme::kDPC) {
    Dpc dpc;
    memcpy(&dpc, cartridge_bytes, sizeof(dpc));
    if (!fits_dpc(dpc)) return "the cartridge's registers";
  }
  return nullptr;
}

}  // namespace cule

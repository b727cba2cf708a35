// States that come from a program's memory may be anything. On a CPU the caller is told of those
// that playing cannot produce; on a GPU nobody can wait for that, so a start state takes their
// place.
#pragma once

#include "console/check_record.h"
#include "kernels/reset.h"

namespace cule {

// Returns what of env's state playing cannot produce, or null. Rows are checked as far as reading
// them stays within the picture (tia/render/pictures.h).
CULE_HD inline const char* find_impossible(const Batch& batch, size_t env) {
  EnvRecord record;
  load_part(batch.records, env, 0, record);
  const ConsoleConfig& config = config_of(batch, env);
  if (const char* part = find_misfit(record, batch.cartridge_bytes + env * kCartridgeBytes, config))
    return part;
  const Pictures pictures = pictures_of(batch, env);
  bool fits = true;
  for (uint32_t which = 0; which < 2; ++which) {
    for (int line = 0; line < static_cast<int>(config.height); ++line)
      fits &= pictures.row_number(which, line) <= line;
  }
  return fits ? nullptr : "the rows of its pictures";
}

// Puts the first start state of env's group in the place of an impossible state, and says so by
// kFaultImpossibleState.
CULE_HD inline void mend_state(const Batch& batch, size_t env) {
  if (!find_impossible(batch, env)) return;
  const size_t slot = static_cast<size_t>(batch.group[env]) * batch.pool.size;
  EnvState state = copy_record_from(batch, env, batch.pool, slot, EnvState{});
  copy_outputs_from(batch, env, batch.pool, slot);
  state.faults |= kFaultImpossibleState;
  store_part(batch.records, env, offsetof(EnvRecord, env), state);
}

}  // namespace cule

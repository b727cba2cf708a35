// A table with a row for each register that programs write to: all that emulation needs to know
// about writes. All lists and masks of registers come from this table.
//
// Source: Stella Programmer's Guide. The delays until a write shows were measured on ale-py.
#pragma once

#include "tia/chip/fields.h"

namespace cule {

// The register of a write. A KnownRegister is known at compile time. Code that depends on it alone
// folds even before inlining. An AnyRegister is known only at run time.
template <uint32_t kNumber>
struct KnownRegister {
  static constexpr uint32_t number = kNumber;
};
struct AnyRegister {
  uint32_t number;
};

// Calls the macro `CASE` with the number of each register, and with those of some that there are
// not: for a switch, in whose cases the number is a constant.
#define CULE_EACH_TIA_WRITE(CASE) \
  CULE_EACH_OF_16(CASE, 0x00) CULE_EACH_OF_16(CASE, 0x10) CULE_EACH_OF_16(CASE, 0x20)
#define CULE_EACH_OF_16(CASE, reg) \
  CULE_EACH_OF_4(CASE, reg) CULE_EACH_OF_4(CASE, reg + 4) CULE_EACH_OF_4(CASE, reg + 8) \
  CULE_EACH_OF_4(CASE, reg + 12)
#define CULE_EACH_OF_4(CASE, reg) CASE(reg) CASE(reg + 1) CASE(reg + 2) CASE(reg + 3)

// Whether a write is recorded in the instruction buffer. All writes are that can change a picture
// or a collision.
enum class Recorded : uint8_t { kNot, kYes };
// What the CPU part does at a write, in addition to recording it (ConsoleBus::write_tia).
enum class CpuEffect : uint8_t {
  kNone,
  kVertical,    // may end the frame, or let the paddles' capacitors charge
  kWaits,       // lets the processor wait for the next scanline
  kSinceHmove,  // records how long ago HMOVE was, as the effect depends on that
  kStars,       // records whether stars can begin: whether HMOVE was 21 cycles ago (motion.h)
  kHmove,       // notes the time of this HMOVE
  kClears,      // notes that the collision latches are cleared
};
// How a write changes a state whose beam lags behind (deferred_beam.h). A direct write sets only
// what the beam does not change, and takes few instructions. All other writes first bring the beam
// to where they take effect: they may read or set something that the beam changes, or they are
// rare.
enum class Applied : uint8_t { kWithBeam, kDirectly };
// How long a write takes to show: no time, 1 color clock, 8 color clocks, or until the next pixel
// of the playfield that has not been fetched, which is 2 to 5 clocks. Some writes show at once, but
// change only colors. Some show nothing before the next HMOVE.
enum class Shown : uint8_t {
  kAtOnce, kAfterOne, kAfterEight, kAtNextPixel, kInColors, kAtNextHmove
};
// How ShownBounds notes what a write shows (bounds.h): the value is graphics, or part of the
// playfield; its bit 1 switches an object on; or the write may reveal what other writes have set.
enum class Noted : uint8_t { kNot, kGraphics, kPlayfield, kSwitch, kReveals };

// How a write can affect the objects. Each field has a bit for each object. A write can switch on
// the objects in `shows`, change the position and width of those in `moves`, and change how those
// in `alters` look, at once or after another write.
struct ObjectFacts {
  uint8_t shows = 0, moves = 0, alters = 0;
};

struct WriteFacts {
  tia_write::Register reg;
  Recorded recorded;
  CpuEffect cpu_effect = CpuEffect::kNone;
  Applied applied = Applied::kWithBeam;
  Shown shown = Shown::kAtOnce;
  Noted noted = Noted::kNot;
  ObjectFacts objects = {};
  uint32_t field = 0;  // if the write only sets a field of TiaState: that field (field_at)
};

// Where the fields that writes set are in TiaState, in bytes.
namespace tia_fields {
constexpr size_t kColup = offsetof(TiaState, colup), kColupf = offsetof(TiaState, colupf);
constexpr size_t kColubk = offsetof(TiaState, colubk), kVblank = offsetof(TiaState, vblank);
constexpr size_t kRefp = offsetof(TiaState, refp), kPf = offsetof(TiaState, playfield);
constexpr size_t kEnam = offsetof(TiaState, enam), kEnabl = offsetof(TiaState, enabl);
constexpr size_t kMotion = offsetof(TiaState, motion), kVdelp = offsetof(TiaState, vdelp);
constexpr size_t kVdelbl = offsetof(TiaState, vdelbl);
}  // namespace tia_fields

// A row for each register, in the order of their addresses.
struct WriteTable {
  WriteFacts rows[kNumTiaWrites];
};
constexpr WriteTable write_table() {
  using namespace tia_write;
  constexpr Recorded kNo = Recorded::kNot, kYes = Recorded::kYes;
  constexpr CpuEffect k_ = CpuEffect::kNone, kVertical = CpuEffect::kVertical;
  constexpr CpuEffect kWaits = CpuEffect::kWaits, kSinceHmove = CpuEffect::kSinceHmove;
  constexpr CpuEffect kStars = CpuEffect::kStars, kNotesHmove = CpuEffect::kHmove;
  constexpr CpuEffect kClears = CpuEffect::kClears;
  constexpr Applied kDirect = Applied::kDirectly, kBeam = Applied::kWithBeam;
  constexpr Shown kOnce = Shown::kAtOnce, kOne = Shown::kAfterOne, kEight = Shown::kAfterEight;
  constexpr Shown kPixel = Shown::kAtNextPixel, kColors = Shown::kInColors;
  constexpr Shown kHmove = Shown::kAtNextHmove;
  constexpr Noted kNone = Noted::kNot, kGraphics = Noted::kGraphics, kSwitch = Noted::kSwitch;
  constexpr Noted kField = Noted::kPlayfield, kReveals = Noted::kReveals;
  constexpr uint8_t k0 = 1 << kPlayer0, k1 = 1 << kPlayer1, kM0 = 1 << kMissile0;
  constexpr uint8_t kM1 = 1 << kMissile1, kB = 1 << kBall, kP = 1 << kPlayfield;
  constexpr uint8_t kSomeMove = 1 << kNumTiaObjects;  // which of them depends on the state
  using namespace tia_fields;
  return {{
      {VSYNC, kNo, kVertical},
      {VBLANK, kYes, kVertical, kDirect, kOne, kReveals, {kAllObjects}, field_at(kVblank, 0, 8, 0)},
      {WSYNC, kNo, kWaits},
      {RSYNC, kNo},
      {NUSIZ0, kYes, k_, kBeam, kEight, kNone, {0, k0 | kM0}},
      {NUSIZ1, kYes, k_, kBeam, kEight, kNone, {0, k1 | kM1}},
      {COLUP0, kYes, k_, kDirect, kColors, kNone, {}, color_at(kColup)},
      {COLUP1, kYes, k_, kDirect, kColors, kNone, {}, color_at(kColup + 1)},
      {COLUPF, kYes, k_, kDirect, kColors, kNone, {}, color_at(kColupf)},
      {COLUBK, kYes, k_, kDirect, kColors, kNone, {}, color_at(kColubk)},
      {CTRLPF, kYes, k_, kBeam, kOnce, kReveals, {0, kB | kP}},
      {REFP0, kYes, k_, kDirect, kOne, kNone, {0, 0, k0}, field_at(kRefp, 0, 1, 3)},
      {REFP1, kYes, k_, kDirect, kOne, kNone, {0, 0, k1}, field_at(kRefp + 1, 0, 1, 3)},
      {PF0, kYes, k_, kDirect, kPixel, kField, {kP}, field_at(kPf, 0, 4, 4)},
      {PF1, kYes, k_, kDirect, kPixel, kField, {kP}, field_at(kPf, 4, 8, 0) | kFieldMirrored},
      {PF2, kYes, k_, kDirect, kPixel, kField, {kP}, field_at(kPf, 12, 8, 0)},
      {RESP0, kYes, k_, kBeam, kOnce, kNone, {0, k0, kM0}},
      {RESP1, kYes, k_, kBeam, kOnce, kNone, {0, k1, kM1}},
      {RESM0, kYes, kSinceHmove, kBeam, kEight, kNone, {0, kM0}},
      {RESM1, kYes, kSinceHmove, kBeam, kEight, kNone, {0, kM1}},
      {RESBL, kYes, kSinceHmove, kBeam, kOnce, kNone, {0, kB}},
      {AUDC0, kNo}, {AUDC1, kNo}, {AUDF0, kNo}, {AUDF1, kNo}, {AUDV0, kNo}, {AUDV1, kNo},
      {GRP0, kYes, k_, kDirect, kOne, kGraphics, {k0, 0, k1}},
      {GRP1, kYes, k_, kDirect, kOne, kGraphics, {k1, 0, k0 | kB}},
      {ENAM0, kYes, k_, kDirect, kOnce, kSwitch, {kM0}, field_at(kEnam, 0, 1, 1)},
      {ENAM1, kYes, k_, kDirect, kOnce, kSwitch, {kM1}, field_at(kEnam + 1, 0, 1, 1)},
      {ENABL, kYes, k_, kDirect, kOnce, kSwitch, {kB}, field_at(kEnabl, 0, 1, 1)},
      {HMP0, kYes, k_, kDirect, kHmove, kNone, {0, 0, k0 | kM0}, motion_at(kMotion, kPlayer0)},
      {HMP1, kYes, k_, kDirect, kHmove, kNone, {0, 0, k1 | kM1}, motion_at(kMotion, kPlayer1)},
      {HMM0, kYes, kStars, kDirect, kHmove, kNone, {0, 0, kM0}, motion_at(kMotion, kMissile0)},
      {HMM1, kYes, k_, kDirect, kHmove, kNone, {0, 0, kM1}, motion_at(kMotion, kMissile1)},
      {HMBL, kYes, k_, kDirect, kHmove, kNone, {0, 0, kB}, motion_at(kMotion, kBall)},
      {VDELP0, kYes, k_, kDirect, kOnce, kReveals, {k0}, field_at(kVdelp, 0, 1, 0)},
      {VDELP1, kYes, k_, kDirect, kOnce, kReveals, {k1}, field_at(kVdelp + 1, 0, 1, 0)},
      {VDELBL, kYes, k_, kDirect, kOnce, kReveals, {kB}, field_at(kVdelbl, 0, 1, 0)},
      {RESMP0, kYes, k_, kBeam, kOnce, kReveals, {kM0, kM0}},
      {RESMP1, kYes, k_, kBeam, kOnce, kReveals, {kM1, kM1}},
      {HMOVE, kYes, kNotesHmove, kBeam, kOnce, kNone, {0, kSomeMove}},
      {HMCLR, kYes, k_, kDirect, kHmove, kNone, {0, 0, kMovableObjects}},
      {CXCLR, kYes, kClears, kDirect, kOnce},
  }};
}
constexpr bool writes_are_in_order() {
  constexpr WriteTable kTable = write_table();
  for (uint32_t reg = 0; reg < kNumTiaWrites; ++reg) {
    if (kTable.rows[reg].reg != reg) return false;
  }
  return true;
}
static_assert(writes_are_in_order(),
              "expected a row for each register, in the order of their addresses");

// The registers whose `fact` is `value`, with a bit for each.
template <class Fact>
constexpr uint64_t registers_where(Fact WriteFacts::*fact, Fact value) {
  constexpr WriteTable kTable = write_table();
  uint64_t registers = 0;
  for (const WriteFacts& facts : kTable.rows) {
    registers |= uint64_t{facts.*fact == value} << facts.reg;
  }
  return registers;
}
constexpr uint64_t kAllRecorded = registers_where(&WriteFacts::recorded, Recorded::kYes);
constexpr uint64_t kOnlyRecorded = kAllRecorded &
                                   registers_where(&WriteFacts::cpu_effect, CpuEffect::kNone);
constexpr uint64_t kAppliedDirectly = registers_where(&WriteFacts::applied, Applied::kDirectly);
constexpr uint64_t kGraphicsRegisters = registers_where(&WriteFacts::noted, Noted::kGraphics);

// The lowest and the highest of some registers.
constexpr uint32_t first_of(uint64_t registers) {
  uint32_t reg = 0;
  while (!(registers >> reg & 1)) ++reg;
  return reg;
}
constexpr uint32_t last_of(uint64_t registers) {
  uint32_t reg = 63;
  while (!(registers >> reg & 1)) --reg;
  return reg;
}

CULE_INLINE constexpr bool is_among(uint64_t registers, uint32_t reg) {
  const uint32_t low = static_cast<uint32_t>(registers),
                 high = static_cast<uint32_t>(registers >> 32);
  return (reg & 0x20 ? high : low) >> (reg & 0x1F) & 1;
}

// How many color clocks a write at `cycle` takes to show. A write to RESPx can take longer
// (effect_of_write).
CULE_INLINE constexpr int write_delay(uint32_t reg, int32_t cycle) {
  constexpr uint64_t kAfterOne = registers_where(&WriteFacts::shown, Shown::kAfterOne);
  constexpr uint64_t kAfterEight = registers_where(&WriteFacts::shown, Shown::kAfterEight);
  constexpr uint64_t kAtNextPixel = registers_where(&WriteFacts::shown, Shown::kAtNextPixel);
  // A scanline has 19 times four cycles. Thus `cycle` may count from the start of any scanline.
  static_assert(kCyclesPerLine % 4 == 0);
  int delay = is_among(kAfterOne, reg);
  if (is_among(kAfterEight, reg)) delay = 8;
  if (is_among(kAtNextPixel, reg)) delay = 2 + ((cycle + 2) & 3);
  return delay;
}

// The object facts of each register.
struct ObjectFactsOf {
  ObjectFacts of[0x40];
};
constexpr ObjectFactsOf objects_of_registers() {
  constexpr WriteTable kTable = write_table();
  ObjectFactsOf found{};
  for (const WriteFacts& facts : kTable.rows) found.of[facts.reg] = facts.objects;
  return found;
}

// The objects whose position or width a write can change, and all objects that it can change.
CULE_INLINE constexpr uint32_t objects_moved_by(const ObjectFacts& facts) {
  return facts.moves >> kNumTiaObjects ? kMovableObjects : facts.moves;
}
CULE_INLINE constexpr uint32_t objects_changed_by(const ObjectFacts& facts) {
  return facts.shows | objects_moved_by(facts) | facts.alters;
}

// The registers that change where a player is, at once or at the next HMOVE.
constexpr uint64_t registers_that_move_players() {
  constexpr WriteTable kTable = write_table();
  constexpr uint32_t kPlayers = 1 << kPlayer0 | 1 << kPlayer1;
  uint64_t registers = 0;
  for (const WriteFacts& facts : kTable.rows) {
    const uint32_t later = facts.shown == Shown::kAtNextHmove ? facts.objects.alters : 0u;
    const bool moves = (objects_moved_by(facts.objects) | later) & kPlayers;
    registers |= uint64_t{moves} << facts.reg;
  }
  return registers;
}

// For each object, the registers that can change it, with a bit for each.
struct RegistersOf {
  uint64_t of[kNumTiaObjects];
};
constexpr RegistersOf registers_of_each() {
  constexpr WriteTable kTable = write_table();
  RegistersOf found{};
  for (const WriteFacts& facts : kTable.rows) {
    for (uint32_t object = 0; object < kNumTiaObjects; ++object) {
      const uint64_t changes = objects_changed_by(facts.objects) >> object & 1;
      found.of[object] |= changes << facts.reg;
    }
  }
  return found;
}
CULE_INLINE uint64_t registers_of_objects(uint32_t objects) {
  constexpr RegistersOf kRegisters = registers_of_each();
  uint64_t registers = 0;
#pragma unroll
  for (uint32_t object = 0; object < kNumTiaObjects; ++object) {
    registers |= objects >> object & 1 ? kRegisters.of[object] : 0;
  }
  return registers;
}

// The field that a write to each register sets. 0: a write does more than set a field, or nothing.
struct Fields {
  uint32_t of[kNumTiaWrites];
};
constexpr Fields fields_of_registers() {
  constexpr WriteTable kTable = write_table();
  Fields fields{};
  for (const WriteFacts& facts : kTable.rows) fields.of[facts.reg] = facts.field;
  return fields;
}
constexpr uint64_t registers_with_fields() {
  constexpr WriteTable kTable = write_table();
  uint64_t registers = 0;
  for (const WriteFacts& facts : kTable.rows) registers |= uint64_t{facts.field != 0} << facts.reg;
  return registers;
}
constexpr uint64_t kWithField = registers_with_fields();
// The field of `reg`, which must be among kWithField.
CULE_INLINE uint32_t field_of(uint32_t reg) {
  static constexpr Fields kFields = fields_of_registers();
  return kFields.of[reg];
}

// Whether a write to `reg` is recorded.
CULE_INLINE constexpr bool is_recorded(uint32_t reg) { return is_among(kAllRecorded, reg); }
// Whether the CPU part does nothing at a write to `reg` except record it.
CULE_INLINE constexpr bool only_recorded(uint32_t reg) { return is_among(kOnlyRecorded, reg); }
// Whether a write to `reg` is applied directly, without the beam. For HMM0 the value decides too
// (deferred_beam.h).
CULE_INLINE constexpr bool is_direct(uint32_t reg) { return is_among(kAppliedDirectly, reg); }

}  // namespace cule

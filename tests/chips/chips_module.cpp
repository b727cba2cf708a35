// The chips of the core, one by one, for Python: the 6507 on 64 KiB of flat memory, the M6532, the TIA behind its instruction
// buffer, a whole console without its television, and the random generators. Built by conftest.py; not shipped.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cartridge/access.h"
#include "common/mt19937.h"
#include "common/random.h"
#include "console/core.h"
#include "console/decode_rom.h"
#include "console/make_config.h"
#include "tia/meetings.h"
#include "tia/picture_view.h"

#include "pixel_view.h"

namespace py = pybind11;
using namespace cule;

namespace {

template <class T>
using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;

// Either way of dispatching, by name; counts the micro-operations that it executes.
struct Core : AnyGame {
  bool is_static;
  int64_t* executed;
  Core(const std::string& name, int64_t* count) : is_static(name == "static"), executed(count) {
    if (!is_static && name != "dynamic") throw std::invalid_argument("core: static or dynamic");
  }
  template <class M>
  __attribute__((noinline)) MicroOp operator()(M& machine, MicroOp op) const {
    ++*executed;
    return is_static ? StaticCore{}(machine, op) : DynamicCore{}(machine, op);
  }
  template <class M>
  void run(M& machine) const {
    interpret(machine, *this);
  }
};

// ---- The 6507 on flat memory, which logs every access but the fetch of the instruction.

constexpr int kMaxAccesses = 16;
struct Access {
  int32_t kind, address, value, after_write;  // kind 1: read, 2: write
};

struct FlatMachine {
  static constexpr RareOps kRareOps = RareOps::kAll;
  Registers r{};
  int32_t cycle = 0;
  uint32_t bus = 0;
  bool moved = false;
  uint8_t* memory = nullptr;
  std::vector<Access> log;
  std::vector<std::pair<uint32_t, uint8_t>> undo;

  void poke(uint32_t address, uint32_t value) {
    undo.push_back({address, memory[address]});
    memory[address] = static_cast<uint8_t>(value);
  }
  void restore() {
    for (; !undo.empty(); undo.pop_back()) memory[undo.back().first] = undo.back().second;
  }

  uint32_t read(uint32_t address) {
    bus = memory[address & 0xFFFF];
    log.push_back({1, static_cast<int32_t>(address), static_cast<int32_t>(bus), 0});
    return bus;
  }
  uint32_t read_if(bool wanted, uint32_t address, uint32_t otherwise) { return wanted ? read(address) : otherwise; }
  uint32_t read_pointer_if(bool wanted, uint32_t address) {
    if (!wanted) return 0;
    const uint32_t low = read(address);
    return low | read(address + 1) << 8;
  }
  void write_if(bool wanted, uint32_t address, uint32_t value) {
    if (wanted) write(address, value, false);
  }
  void write(uint32_t address, uint32_t value, bool after_write) {
    log.push_back({2, static_cast<int32_t>(address), static_cast<int32_t>(value), after_write});
    poke(address & 0xFFFF, value);
    bus = value;
  }
  bool is_special(uint32_t) const { return false; }
  bool leaves(uint32_t, uint32_t) const { return false; }
  bool leaves_rare(uint32_t, uint32_t) const { return false; }
  MicroOp leave() const { return {}; }

  MicroOp look_ahead() const {
    return with_operand(operation_of(memory[r.pc]), memory[(r.pc + 1) & 0xFFFF], memory[(r.pc + 2) & 0xFFFF]);
  }
  MicroOp fetch_slowly() const { throw std::logic_error("flat memory is never fetched slowly"); }
};

// Runs `steps` instructions from each row (pc, a, x, y, s, p) of `registers`, with that row of `code` at pc in `memory`, which
// is put back afterwards. Returns (pc, a, x, y, s, p, cycles, jammed) and the accesses (kind, address, value, after_write).
py::tuple run_cpu(const std::string& core_name, Array<uint8_t> memory, Array<uint32_t> registers, Array<uint8_t> code, int steps) {
  const py::ssize_t n = registers.shape(0), bytes = code.shape(1);
  if (memory.size() != 65536 || registers.shape(1) != 6 || code.shape(0) != n) throw std::invalid_argument("shapes");
  py::array_t<uint32_t> after(std::vector<py::ssize_t>{n, 8});
  py::array_t<int32_t> accesses(std::vector<py::ssize_t>{n, kMaxAccesses, 4});
  std::vector<uint8_t> copy(memory.data(), memory.data() + 65536);
  int64_t executed = 0;
  const Core core(core_name, &executed);
  FlatMachine machine;
  machine.memory = copy.data();
  for (py::ssize_t i = 0; i < n; ++i) {
    const uint32_t* in = registers.data(i, 0);
    machine.r = Registers{};
    machine.r.pc = in[0];
    machine.r.a = in[1];
    machine.r.x = in[2];
    machine.r.y = in[3];
    machine.r.s = in[4];
    unpack_status(machine.r, in[5]);
    machine.cycle = 0;
    machine.log.clear();
    for (py::ssize_t b = 0; b < bytes; ++b) machine.poke((in[0] + static_cast<uint32_t>(b)) & 0xFFFF, *code.data(i, b));
    MicroOp op = machine.look_ahead();
    for (int step = 0; step < steps; ++step) op = core(machine, op);
    machine.restore();
    const Registers& r = machine.r;
    const uint32_t out[8] = {r.pc, r.a, r.x, r.y, r.s, pack_status(r), static_cast<uint32_t>(machine.cycle), r.jammed};
    for (int k = 0; k < 8; ++k) *after.mutable_data(i, k) = out[k];
    if (machine.log.size() > kMaxAccesses) throw std::length_error("more accesses than expected");
    machine.log.resize(kMaxAccesses, Access{});
    for (int k = 0; k < kMaxAccesses; ++k) {
      const Access& a = machine.log[static_cast<size_t>(k)];
      const int32_t fields[4] = {a.kind, a.address, a.value, a.after_write};
      for (int f = 0; f < 4; ++f) *accesses.mutable_data(i, k, f) = fields[f];
    }
  }
  return py::make_tuple(after, accesses);
}

// ---- The M6532, alone.

struct Riot {
  M6532 riot;
  uint32_t swcha = 0xFF, swchb = 0x3F;
  explicit Riot(uint32_t timer) { m6532_reset(riot, timer); }
  uint32_t read(uint32_t address, int32_t cycle) { return m6532_read(riot, address, cycle, swcha, swchb); }
  void write(uint32_t address, uint32_t value, int32_t cycle) { m6532_write(riot, address, value, cycle); }
  void rebase(int32_t cycles) { m6532_rebase(riot, cycles); }
};

// Registers and positions at random; the beam is at the start of line 0.
TiaState random_state(uint32_t seed) {
  std::mt19937 random(seed);
  auto below = [&](uint32_t bound) { return static_cast<uint8_t>(random() % bound); };
  TiaState tia{};
  tia_reset(tia);
  for (uint32_t object = 0; object < kPlayfield; ++object) {
    set_position(tia, object, below(kLinePixels));
    tia.motion[object] = below(16);
  }
  tia.playfield = random() & random() & random() & 0xFFFFF;
  tia.ctrlpf = below(256);
  tia.reflect_now = below(2);
  for (uint32_t which = 0; which < 2; ++which) {
    tia.nusiz[which] = below(256);
    tia.grp[which] = below(256);
    tia.grp[2 + which] = below(256);
    tia.refp[which] = below(2);
    tia.vdelp[which] = below(2);
    tia.skip_first[which] = below(2);
    tia.enam[which] = below(2);
    tia.resmp[which] = below(4) == 0;
  }
  tia.enabl[0] = below(2);
  tia.enabl[1] = below(2);
  tia.vdelbl = below(2);
  tia.missile0_shape = below(3);
  tia.stars_on = below(4) == 0;
  tia.stars_phase = below(4);
  return tia;
}

// What has been written since some state, and the latches that a search finds in it.
struct Searched {
  SegmentStart start{};
  std::vector<uint32_t> entries;
  uint32_t after_clear = 0;

  explicit Searched(const TiaState& tia) { start.tia = tia; }
  void write(uint32_t entry) {
    entries.push_back(entry);
    const bool clears = entry_register(entry) == tia_write::CXCLR;
    if (clears) after_clear = static_cast<uint32_t>(entries.size());
  }
  // An access to the TIA at the cycle of the last write, up to which it is looked.
  uint32_t last() const {
    return encode_entry(entries.empty() ? 0 : entry_cycle(entries.back()), kMarkTouch, 0);
  }
  uint32_t find(const TiaFormat& format, uint32_t latches) const {
    SegmentStart at = start;
    const Replay replay{entries.data(), static_cast<uint32_t>(entries.size()), after_clear, last()};
    return search_entries(at, format, replay, at.tia.cursor, format.last_clock, latches);
  }
};

// The collisions by a search and pixel by pixel, from the same entries.
struct Collisions {
  TiaFormat format{0, 1 << 20, 1};
  TiaState oracle;
  PixelView pixels;
  Searched searched;

  explicit Collisions(uint32_t seed) : oracle(random_state(seed)), searched(oracle) {}
  void write(int32_t cycle, uint32_t reg, uint32_t value) {
    const uint32_t entry = encode_entry(cycle, reg, value);
    searched.write(entry);
    replay_entry(oracle, format, entry, pixels);
  }
  uint32_t find(uint32_t latches) const { return searched.find(format, latches); }
  uint32_t expected() const {
    TiaState tia = oracle;
    PixelView view;
    replay_entry(tia, format, searched.last(), view);
    return tia.collisions;
  }
};

// A state whose writes take effect at once, before the beam is there, and one whose entries are replayed.
struct Eager {
  struct BlindView : NoView {
    void show(const TiaState&, int, int, int) {}
  };
  TiaFormat format{4 * kClocksPerLine, 214 * kClocksPerLine, 1};
  TiaState tia, oracle;
  BlindView view;
  bool known_alike = true;

  explicit Eager(uint32_t seed) : tia(random_state(seed)), oracle(tia) { move_both(0, kMarkFrameBegin, 0); }

  // Does a write as a translated block does: the register is known at compile time.
  template <size_t... kRegs>
  bool write_known(TiaState& to, uint32_t reg, uint32_t value, int32_t cycle,
                   std::index_sequence<kRegs...>) {
    bool did = false;
    ((reg == kRegs && (did = apply_write(to, format, KnownRegister<kRegs>{}, value, cycle))), ...);
    return did;
  }

  // Returns whether the write changes anything.
  bool write(int32_t cycle, uint32_t reg, uint32_t value) {
    const uint32_t entry = encode_entry(cycle, reg, value);
    TiaState twin = tia;
    const bool twin_changes = write_known(twin, reg, value, entry_cycle(entry),
                                          std::make_index_sequence<tia_write::CXCLR + 1>{});
    const bool changes = apply_write(tia, format, AnyRegister{reg}, value, entry_cycle(entry));
    if (changes) replay_entry(oracle, format, entry, view);
    known_alike = changes == twin_changes && std::memcmp(&tia, &twin, sizeof tia) == 0;
    return changes;
  }
  void move_both(int32_t cycle, uint32_t mark, uint32_t value) {
    const uint32_t entry = encode_entry(cycle, mark, value);
    apply_mark(tia, format, entry);
    replay_entry(oracle, format, entry, view);
  }
  // Whether both are the same once the beam is at the same place, and the last write did the same with
  // its register known.
  bool agrees() const {
    if (!known_alike) return false;
    TiaState moved = tia, drawn = oracle;
    BlindView blind;
    draw_until(drawn, format, tia.cursor, blind);
    move_beam(moved, format, drawn.cursor);
    moved.collisions = drawn.collisions = 0;
    return std::memcmp(&moved, &drawn, sizeof moved) == 0;
  }
  // Whether drawing to `clock` at once gives the same state as drawing to `between` first.
  bool moves_as_it_draws(int32_t clock, int32_t between) const {
    TiaState moved = oracle, stopped = oracle, drawn = oracle;
    BlindView blind;
    move_beam(moved, format, clock);
    move_beam(stopped, format, between);
    move_beam(stopped, format, clock);
    draw_until(drawn, format, clock, blind);
    return std::memcmp(&moved, &drawn, sizeof moved) == 0 && (between > clock || std::memcmp(&stopped, &drawn, sizeof drawn) == 0);
  }
  int cursor() const { return oracle.cursor; }
};

// ---- The TIA, fed through encoded entries, drawing through a PictureView and, beside it, kept for a search of collisions.

struct Tia {
  TiaState tia{};
  Searched searched{tia};
  TiaFormat format;
  std::vector<uint8_t> pictures, row_of;
  LineBits words[LineRoom<LineBits>::kSize] = {};
  PictureView view;
  uint32_t height;

  Tia(int first_line, int lines, bool hmove_blanks)
      : format{first_line * kClocksPerLine, (first_line + lines) * kClocksPerLine, hmove_blanks},
        pictures(static_cast<size_t>(2 * lines * kLinePixels), 0xEE),
        row_of(2 * Pictures::kRows),
        view{{pictures.data(), static_cast<uint32_t>(lines * kLinePixels), row_of.data()},
             lines,
             {words, 1}},
        height(static_cast<uint32_t>(lines)) {
    tia_reset(tia);
  }
  Tia(const Tia&) = delete;

  void write(int32_t cycle, uint32_t reg, uint32_t value) {
    const uint32_t entry = encode_entry(cycle, reg, value);
    replay_entry(tia, format, entry, view);
    searched.write(entry);
    if (reg == kMarkFrameBegin) searched = Searched(tia);
  }
  py::array_t<uint8_t> picture(bool back) const {
    py::array_t<uint8_t> out(std::vector<py::ssize_t>{height, kLinePixels});
    const uint8_t* from = pictures.data() + (tia.front ^ back) * height * kLinePixels;
    std::copy(from, from + height * kLinePixels, out.mutable_data());
    return out;
  }
  template <class Word>
  std::vector<int> object_bits(uint32_t object) const {
    std::vector<int> bits;
    Word words[LineRoom<Word>::kSize];
    LineCache<Word> cache{{words, 1}};
    cache.refresh(tia, 0);
    for (int x = 0; x < kLinePixels; ++x) {
      const Word shown = cache.bits.at(object, x / cache.kBits);
      bits.push_back(static_cast<int>(shown >> x % cache.kBits & 1));
    }
    return bits;
  }
};

// ---- A console without a television: the bus, a cartridge and a frame of the 6507.

struct CheckedRam {
  uint8_t* bytes;
  TiaState* state;
  uint32_t get(uint32_t index) const { return check(index), bytes[index]; }
  void set(uint32_t index, uint32_t value) const { check(index), bytes[index] = static_cast<uint8_t>(value); }
  TiaState& tia() const { return *state; }
  static void check(uint32_t index) {
    if (index >= 128) throw std::out_of_range("RAM");
  }
};
struct CheckedRom {
  const std::vector<uint8_t>* image;
  const std::vector<MicroOp>* micro_ops;
  uint32_t operator()(uint32_t offset) const { return image->at(offset); }
  MicroOp micro_op(uint32_t offset) const { return micro_ops->at(offset); }
  MicroOp marked_op(uint32_t offset) const { return micro_op(offset); }
  MicroOp operation(uint32_t opcode) const { return operation_of(opcode & 0xFF); }
};

// The micro-operations of `image`, and the one after its end.
std::vector<MicroOp> decode(const std::string& scheme, const std::vector<uint8_t>& image) {
  std::vector<MicroOp> micro_ops(image.size() + 1, kFetchSlowly);
  decode_rom(map_of_scheme(scheme), image.data(), static_cast<uint32_t>(image.size()), micro_ops.data());
  return micro_ops;
}

std::vector<uint8_t> bytes_of(const std::string& bytes) { return {bytes.begin(), bytes.end()}; }

struct Console {
  using M = Machine<CheckedRam, CheckedRom>;
  ConsoleConfig config{};
  std::vector<uint8_t> image;
  std::vector<MicroOp> micro_ops;
  std::vector<uint32_t> entries, starts;
  std::array<uint8_t, 128> ram{};
  alignas(8) std::array<uint8_t, kCartridgeBytes> cartridge_bytes{};
  Devices devices{};
  TiaTrail trail{};
  TiaState tia{}, drawn{};  // as of the last write; as of the last `draw`
  int64_t executed = 0;
  M machine;

  Console(const std::string& scheme, py::bytes rom, int first_line, int lines, bool pal, int line_limit, uint32_t inpt_wiring,
          uint32_t capacity)
      : config(make_config(scheme, first_line, lines, pal, line_limit, inpt_wiring)),
        image(bytes_of(rom)),
        micro_ops(decode(scheme, image)),
        entries(capacity),
        starts(kMostFrames * kSegments * sizeof(SegmentStart) / 4, kNoSegment),
        machine{config,
                {ram.data(), &tia},
                {&image, &micro_ops},
                cartridge_bytes.data(),
                devices,
                trail,
                {entries.data(), capacity, 0, 0},
                config.map,
                static_cast<uint32_t>(image.size()),
                config.cycle_limit} {
    trail.starts = {{starts.data(), 1, 0}, 0};
    tia_reset(drawn);
    machine.begin_record(drawn);
    if (config.map.scheme == Scheme::kDPC) dpc_power_on(*reinterpret_cast<Dpc*>(cartridge_bytes.data()));
    machine.reset(0);
  }
  Console(const Console&) = delete;

  static ConsoleConfig make_config(const std::string& scheme, int first_line, int lines, bool pal, int line_limit,
                                   uint32_t inpt_wiring) {
    ConsoleConfig config{};
    config.map = map_of_scheme(scheme);
    config.format = {first_line * kClocksPerLine, (first_line + lines) * kClocksPerLine, 1};
    config.pal = pal;
    config.height = static_cast<uint32_t>(lines);
    config.cycle_limit = line_limit * kCyclesPerLine;
    config.inpt_wiring = inpt_wiring;
    return config;
  }

  static constexpr size_t kMostFrames = 32;  // until they are drawn
  void begin_frame() {
    expect_room();
    machine.begin_frame();
  }
  bool run_frame(const std::string& core) {
    expect_room();
    return draws_all(machine.run_frame(Core(core, &executed)));
  }
  void expect_room() const {
    if (trail.frame + 1 >= static_cast<int>(kMostFrames)) throw std::length_error("more frames than expected");
  }
  // Outside of a frame that runs nobody else keeps where segments begin.
  M& at_hand() {
    if (trail.frame < 0) trail.begin_frame();
    machine.begin_segments(machine.cycle);
    return machine;
  }
  bool draws_all(int32_t reach) const { return reach == machine.config.format.last_clock; }
  // One instruction, as the last one of a frame's: where it waits for the timer, it does not skip ahead.
  void step(const std::string& core) {
    at_hand().instructions_left = 1;
    const Core run(core, &executed);
    MicroOp op = machine.look_ahead();
    if (length_of(op) == 0) op = run(machine, op);
    run(machine, op);
  }

  // The TIA part of what has been recorded, drawn; the buffer is empty afterwards.
  py::array_t<uint8_t> draw() {
    py::array_t<uint8_t> out(std::vector<py::ssize_t>{config.height, kLinePixels});
    std::vector<uint8_t> pictures(2 * out.size(), 0xEE);
    std::vector<uint8_t> row_of(2 * Pictures::kRows);
    LineBits words[LineRoom<LineBits>::kSize] = {};
    PictureView view({pictures.data(), static_cast<uint32_t>(out.size()), row_of.data()},
                     static_cast<int>(config.height), {words, 1});
    for (uint32_t i = 0; i < machine.buffer.count; ++i) replay_entry(drawn, config.format, entries[i], view);
    machine.begin_record(drawn);
    std::fill(starts.begin(), starts.end(), kNoSegment);
    std::copy_n(pictures.data() + drawn.front * out.size(), out.size(), out.mutable_data());
    return out;
  }
  std::vector<std::tuple<int, int, int>> recorded() const {
    std::vector<std::tuple<int, int, int>> list;
    for (uint32_t i = 0; i < machine.buffer.count; ++i) {
      list.push_back({entry_cycle(entries[i]), entry_register(entries[i]), entry_value(entries[i])});
    }
    return list;
  }
};

// ---- Random generators.

py::array_t<uint32_t> mt19937_draws(uint32_t seed, int n, uint32_t bound, int stride) {
  std::vector<uint32_t> words(Mt19937::kStateWords * static_cast<size_t>(stride), 0xDEADBEEF);
  const Mt19937 generator{words.data(), static_cast<size_t>(stride)};
  generator.seed(seed);
  py::array_t<uint32_t> out(n);
  for (int i = 0; i < n; ++i) *out.mutable_data(i) = bound ? generator.below(bound) : generator.next();
  for (size_t i = 0; i < words.size(); ++i) {
    if (i % static_cast<size_t>(stride) && words[i] != 0xDEADBEEF) throw std::runtime_error("wrote between its words");
  }
  return out;
}

// What libstdc++ draws; none with another library.
py::object standard_draws(uint32_t seed, int n, uint32_t bound) {
#if defined(__GLIBCXX__) && _GLIBCXX_RELEASE >= 11
  std::mt19937 generator(seed);
  std::uniform_int_distribution<uint32_t> below_bound(0, bound - 1);
  py::array_t<uint32_t> out(n);
  for (int i = 0; i < n; ++i) *out.mutable_data(i) = below_bound(generator);
  return std::move(out);
#else
  return py::none();
#endif
}

std::array<uint32_t, 4> array_of(const RandomWords& r) { return {r.words[0], r.words[1], r.words[2], r.words[3]}; }

}  // namespace

PYBIND11_MODULE(chips_module, m) {
  m.def("run_cpu", &run_cpu);
  // (opcode, length, base cycles, operand); length 0: to be fetched slowly.
  auto fields = [](MicroOp op) {
    return std::array<uint32_t, 4>{opcode_of(op), length_of(op), op.control & kCyclesMask, operand_of(op)};
  };
  m.def("micro_op", [fields](uint32_t opcode, uint32_t low, uint32_t high) {
    return fields(with_operand(operation_of(opcode & 0xFF), low & 0xFF, high & 0xFF));
  });
  m.def("decode_rom", [fields](const std::string& scheme, const py::bytes& image) {
    std::vector<std::array<uint32_t, 4>> rows;
    for (const MicroOp op : decode(scheme, bytes_of(image))) rows.push_back(fields(op));
    return rows;
  });
  m.def("reset_registers", [] {
    Registers r{1, 2, 3, 4, 5, 6, 7, 1, 1, 1, 1, 1};
    reset_registers(r);
    return std::array<uint32_t, 6>{r.a, r.x, r.y, r.s, pack_status(r), r.jammed};
  });

  py::class_<Riot>(m, "Riot")
      .def(py::init<uint32_t>())
      .def_readwrite("swcha", &Riot::swcha)
      .def_readwrite("swchb", &Riot::swchb)
      .def("read", &Riot::read)
      .def("write", &Riot::write)
      .def("rebase", &Riot::rebase);

  py::class_<Tia>(m, "Tia")
      .def(py::init<int, int, bool>(), py::arg("first_line"), py::arg("lines"), py::arg("hmove_blanks") = true)
      .def("write", &Tia::write)
      .def("picture", &Tia::picture, py::arg("back") = false)
      .def("object_bits_64", &Tia::object_bits<uint64_t>)
      .def("object_bits_32", &Tia::object_bits<uint32_t>)
      .def_property_readonly("positions", [](const Tia& t) {
        std::vector<int> positions;
        for (uint32_t object = 0; object < kPlayfield; ++object) positions.push_back(position_of(t.tia, object));
        return positions;
      })
      .def_property_readonly("collisions", [](const Tia& t) { return t.tia.collisions; })
      .def_property_readonly("collisions_unseen", [](const Tia& t) {
        const uint32_t before = t.searched.after_clear ? 0 : t.searched.start.tia.collisions;
        return before | t.searched.find(t.format, kAllCollisions);
      })
      .def("collision_register", [](const Tia& t, uint32_t reg) { return collision_register(t.tia.collisions, reg); });
  py::class_<Collisions>(m, "Collisions")
      .def(py::init<uint32_t>(), py::arg("seed"))
      .def("write", &Collisions::write)
      .def("find", &Collisions::find)
      .def_property_readonly("expected", &Collisions::expected);
  py::class_<Eager>(m, "Eager")
      .def(py::init<uint32_t>(), py::arg("seed"))
      .def("write", &Eager::write)
      .def("mark", &Eager::move_both)
      .def("agrees", &Eager::agrees)
      .def("moves_as_it_draws", &Eager::moves_as_it_draws)
      .def_property_readonly("cursor", &Eager::cursor);
  m.def("hmove_distance", &hmove_distance);
  m.def("entry", [](int32_t cycle, uint32_t reg, uint32_t value) {
    const uint32_t entry = encode_entry(cycle, reg, value);
    return std::make_tuple(entry_cycle(entry), entry_register(entry), entry_value(entry));
  });
  m.def("is_recorded", &is_recorded);

  py::class_<Console>(m, "Console")
      .def(py::init<const std::string&, py::bytes, int, int, bool, int, uint32_t, uint32_t>(), py::arg("scheme"), py::arg("rom"),
           py::arg("first_line") = 4, py::arg("lines") = 8, py::arg("pal") = false, py::arg("line_limit") = 290,
           py::arg("inpt_wiring") = 0, py::arg("capacity") = 65536)
      .def("read", [](Console& c, uint32_t address) { return c.at_hand().read(address); })
      .def("write", [](Console& c, uint32_t address, uint32_t value) { c.at_hand().write(address, value, false); })
      .def("write_after_write", [](Console& c, uint32_t address, uint32_t value) { c.at_hand().write(address, value, true); })
      .def("reset", [](Console& c, uint32_t timer) { c.machine.reset(timer); })
      .def("begin_frame", &Console::begin_frame)
      .def("finish_frame", [](Console& c) { return c.draws_all(c.machine.finish_frame()); })
      .def("run_frame", &Console::run_frame, py::arg("core") = "static")
      .def("step", &Console::step, py::arg("core") = "static")
      .def("draw", &Console::draw)
      .def("recorded", &Console::recorded)
      .def_property("cycle", [](Console& c) { return c.machine.cycle; }, [](Console& c, int32_t v) { c.machine.cycle = v; })
      .def_property("bus", [](Console& c) { return c.machine.bus; }, [](Console& c, uint32_t v) { c.machine.bus = v; })
      .def_property("pc", [](Console& c) { return c.machine.r.pc; }, [](Console& c, uint32_t v) { c.machine.r.pc = v; })
      .def_property("a", [](Console& c) { return c.machine.r.a; }, [](Console& c, uint32_t v) { c.machine.r.a = v; })
      .def_property("x", [](Console& c) { return c.machine.r.x; }, [](Console& c, uint32_t v) { c.machine.r.x = v; })
      .def_property("y", [](Console& c) { return c.machine.r.y; }, [](Console& c, uint32_t v) { c.machine.r.y = v; })
      .def_property("s", [](Console& c) { return c.machine.r.s; }, [](Console& c, uint32_t v) { c.machine.r.s = v; })
      .def_property_readonly("p", [](Console& c) { return pack_status(c.machine.r); })
      .def_readonly("executed", &Console::executed)
      .def_property_readonly("instructions_left", [](Console& c) { return c.machine.instructions_left; })
      .def_property_readonly("jammed", [](Console& c) { return c.machine.r.jammed; })
      .def_property_readonly("faults", [](Console& c) { return c.devices.faults; })
      .def_property_readonly("frame_ended", [](Console& c) { return c.machine.frame_ended; })
      .def_property_readonly("frame_open", [](Console& c) { return c.devices.ports.frame_open; })
      .def_property_readonly("scanlines", [](Console& c) { return c.devices.ports.scanlines; })
      .def_property_readonly("ram", [](Console& c) { return py::bytes(reinterpret_cast<char*>(c.ram.data()), c.ram.size()); })
      .def_property_readonly("cartridge_bytes", [](Console& c) {
        return py::bytes(reinterpret_cast<char*>(c.cartridge_bytes.data()), c.cartridge_bytes.size());
      })
      .def("set_inputs", [](Console& c, uint32_t swcha, uint32_t swchb, uint32_t inpt4, uint32_t inpt5, uint32_t charge0,
                            uint32_t charge1) {
        c.devices.inputs = Inputs{};
        c.devices.inputs.swcha = swcha;
        c.devices.inputs.swchb = swchb;
        c.devices.inputs.inpt4 = inpt4;
        c.devices.inputs.inpt5 = inpt5;
        c.devices.inputs.charge_cycles[0] = charge0;
        c.devices.inputs.charge_cycles[1] = charge1;
      }, py::arg("swcha") = 0xFF, py::arg("swchb") = 0x3F, py::arg("inpt4") = 0x80, py::arg("inpt5") = 0x80,
           py::arg("charge0") = 0, py::arg("charge1") = 0);
  m.def("charge_cycles", &charge_cycles);

  m.def("philox", [](uint64_t key, uint64_t low, uint64_t high) { return array_of(philox(key, low, high)); });
  m.def("draw", [](uint64_t seed, uint32_t env, uint32_t purpose, uint32_t counter) {
    return array_of(draw(seed, env, static_cast<RandomPurpose>(purpose), counter));
  });
  m.def("unit_float", &unit_float);
  m.def("below", &below);
  m.def("mt19937_draws", &mt19937_draws, py::arg("seed"), py::arg("n"), py::arg("bound") = 0, py::arg("stride") = 1);
  m.def("standard_draws", &standard_draws);
}

// cule._core: the batch, its kernels and the list of games, for Python, which owns all memory and passes addresses. What is passed is
// looked at, so that no call ends the process; nothing else is done here.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "bindings/arguments.h"
#include "bindings/bundled_headers.h"
#include "bindings/check_batch.h"
#include "bindings/guard.h"
#include "console/check_record.h"
#include "console/decode_rom.h"
#include "console/make_config.h"
#include "kernels/launch.h"
#include "kernels/segment_starts.h"

namespace py = pybind11;

namespace {

using namespace cule;

template <class List>
py::list to_list(const List& list) {
  py::list out;
  for (int i = 0; i < list.count; ++i) out.append(static_cast<int>(list.values[i]));
  return out;
}

py::dict describe(const GameInfo& game) {
  py::dict out;
  out["name"] = game.name;
  out["md5"] = game.md5;
  out["minimal_actions"] = game.minimal_actions & game.legal_actions;
  out["legal_actions"] = game.legal_actions;
  out["modes"] = to_list(game.modes);
  out["default_mode"] = default_mode(game);
  out["difficulties"] = to_list(game.difficulties);
  out["uses_paddles"] = uses_paddles(game);
  out["power_on_difficulty"] = static_cast<int>(game.power_on_difficulty);
  out["height"] = game.height;
  return out;
}

py::list list_games() {
  py::list out;
  for (uint32_t i = 0; i < kNumGames; ++i) {
    with_game(i, [&](auto game) { out.append(describe(decltype(game)::info())); });
  }
  return out;
}

// The bytes of a ConsoleConfig.
py::bytes config_bytes(const py::dict& settings) {
  auto value = [&](const char* key) {
    if (!settings.contains(key)) throw std::invalid_argument(std::string("expected settings with ") + key + ", got none");
    return settings[key];
  };
  auto number = [&](const char* key, int64_t most) { return integer(key, value(key), 0, most); };
  const py::object scheme = value("scheme");
  if (!py::isinstance<py::str>(scheme)) throw py::type_error("expected scheme to be a name, got " + text_of(scheme));
  ConsoleConfig config = cule::make_config(static_cast<uint32_t>(number("game", kNumGames - 1)), scheme.cast<std::string>(),
                                           static_cast<uint32_t>(number("rom_bytes", kMostRomBytes)), number("pal", 1) != 0,
                                           static_cast<int>(number("height", kMostHeight)));
  config.rom_offset = static_cast<uint32_t>(number("rom_offset", std::numeric_limits<int32_t>::max()));
  config.mode = static_cast<uint32_t>(number("mode", std::numeric_limits<int32_t>::max()));
  config.difficulty = static_cast<uint32_t>(number("difficulty", 255));
  return py::bytes(reinterpret_cast<const char*>(&config), sizeof config);
}

template <class T>
py::bytes as_bytes(const std::vector<T>& values) {
  return py::bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// The micro-operations of an image, and kFetchSlowly in its padding up to `entries`.
py::bytes decoded_rom(const py::bytes& rom, const std::string& scheme, const py::object& entries) {
  const std::string image = rom;
  if (image.size() > kMostRomBytes) {
    throw std::invalid_argument("expected an image of " + std::to_string(kMostRomBytes) + " bytes at most, got " +
                                std::to_string(image.size()));
  }
  // There is room for one behind the image.
  const int64_t count = integer("entries", entries, static_cast<int64_t>(image.size()) + 1, 2 * kMostRomBytes);
  std::vector<MicroOp> micro_ops(static_cast<size_t>(count), kFetchSlowly);
  cule::decode_rom(map_of_scheme(scheme), reinterpret_cast<const uint8_t*>(image.data()), static_cast<uint32_t>(image.size()),
                   micro_ops.data());
  return as_bytes(micro_ops);
}

py::dict headers() {
  py::dict out;
  for (const BundledHeader* header = kBundledHeaders; header->name; ++header) out[header->name] = header->text;
  return out;
}

// A batch, and whether it has been looked into since it was last changed, for the host or a GPU.
struct CheckedBatch : Batch {
  enum class Looked { kNo, kAtConsoles, kAtEnvs };
  Looked looked = Looked::kNo;
  bool looked_on_host = false;
  std::map<std::string, uint64_t> bytes;  // behind the addresses, by the fields' names

  // Sets a field; the batch is to be looked into again where that changes it.
  template <class T>
  void set(T& field, T value) {
    if (field == value) return;
    field = value;
    looked = Looked::kNo;
  }
  // Sets an option whose range has been checked, and which on the host no memory's size depends on.
  void set_option(int32_t& field, int64_t value) {
    if (looked_on_host) field = static_cast<int32_t>(value);
    else set(field, static_cast<int32_t>(value));
  }
  // Sets a field to the address of some memory, given with its size, or to 0.
  template <class T>
  void place(const char* name, T*& field, const py::object& memory) {
    py::object at = memory;
    uint64_t size = 0;
    if (py::isinstance<py::tuple>(memory) && py::len(memory) == 2) {
      const auto pair = memory.cast<py::tuple>();
      at = pair[0];
      size = static_cast<uint64_t>(integer("the bytes of memory", pair[1], 0, std::numeric_limits<int64_t>::max()));
    } else if (!PyLong_Check(memory.ptr()) || !memory.equal(py::int_(0))) {
      throw py::type_error(std::string("expected ") + name + " to be an address and how many bytes are there, or 0, got " + text_of(memory));
    }
    set(field, reinterpret_cast<T*>(address(name, at, alignof(T))));
    set(bytes[name], size);
  }

  void look_at_envs(bool on_host) {
    if (looked == Looked::kAtEnvs) return;
    BatchCheck(*this, bytes, on_host).envs();
    looked = Looked::kAtEnvs;
    looked_on_host = on_host;
  }
  void look_at_consoles() {
    if (looked != Looked::kNo) return;
    BatchCheck(*this, bytes, true).consoles();
    looked = Looked::kAtConsoles;
    looked_on_host = false;  // the options are still to be looked at
  }
  void look_at_console_that_is_on() {
    look_at_consoles();
    EnvRecord record;
    load_part(records, 0, 0, record);
    if (const char* part = find_misfit(record, cartridge_bytes, configs[group[0]])) {
      throw std::invalid_argument(std::string("expected a console that has been powered on, got one where ") + part + " cannot be so");
    }
  }
};

int checked_power_on(CheckedBatch& batch) {
  batch.look_at_consoles();
  py::gil_scoped_release release;
  return power_on_env(batch);
}

void checked_first_episode(CheckedBatch& batch) {
  batch.look_at_console_that_is_on();
  py::gil_scoped_release release;
  start_first_episode(batch);
}

void checked_pool_episode(CheckedBatch& batch, const py::object& noops) {
  const auto count = static_cast<int>(integer("noops", noops, 0, kMostNoops));
  batch.look_at_console_that_is_on();
  py::gil_scoped_release release;
  start_pool_episode(batch, count);
}

void checked_continued_episode(CheckedBatch& batch, const py::object& played, const py::object& noops) {
  const auto before = static_cast<int>(integer("played", played, 0, kMostNoops)), count = static_cast<int>(integer("noops", noops, 0, kMostNoops));
  batch.look_at_console_that_is_on();
  py::gil_scoped_release release;
  continue_pool_episode(batch, before, count);
}

// Rows of (count, odd, entered, pc), one for each byte of the ROM of env 0, as uint32.
py::bytes profile(CheckedBatch& batch, const py::object& frames) {
  const auto count = static_cast<int>(integer("frames", frames, 0));
  batch.look_at_console_that_is_on();
  std::vector<ProfileEntry> entries(batch.configs[batch.group[0]].rom_bytes, ProfileEntry{});
  {
    py::gil_scoped_release release;
    profile_play(batch, count, entries.data());
  }
  return as_bytes(entries);
}

py::bytes operations() {
  const OperationTable table = make_operation_table();
  return as_bytes(std::vector<MicroOp>(table.operations, table.operations + 256));
}

py::bytes power_on_numbers(const py::object& asked) {
  const auto count = static_cast<uint32_t>(integer("count", asked, 0, 1 << 26));
  std::mt19937 generator(kPowerOnSeed);
  std::string bytes(count * sizeof(uint32_t), '\0');
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t number = generator();
    std::memcpy(&bytes[i * sizeof number], &number, sizeof number);
  }
  return py::bytes(bytes);
}

// Where a micro-operation's words have what translation reads (cpu_6507/micro_op.h).
py::dict micro_op_fields() {
  py::dict out;
  out["cycles"] = kCyclesMask;
  out["length_shift"] = kLengthShift;
  out["rare"] = static_cast<uint32_t>(kRare);
  out["reads"] = static_cast<uint32_t>(kReads);
  out["writes"] = static_cast<uint32_t>(kWrites);
  out["jump"] = static_cast<uint32_t>(kJump);
  out["indexed"] = static_cast<uint32_t>(kIndirect | kIndexX | kIndexY);
  out["opcode_shift"] = kOpcodeShift;
  out["operand_shift"] = kOperandShift;
  out["block_code"] = kBlockCode;
  return out;
}

// The first of some states, their records one after the other, that could not have come about by playing, and which part of it:
// (index, part), or None. `configs` are of all groups, `groups` has each state's.
py::object find_misfit_state(const py::object& records, const py::object& cartridges, const py::object& configs, const py::object& groups) {
  const Bytes record_bytes("records", records), cartridge_bytes("cartridge_bytes", cartridges), config_bytes("configs", configs),
      group_bytes("groups", groups);
  const size_t count = group_bytes.count(4), num_groups = config_bytes.count(sizeof(ConsoleConfig));
  if (record_bytes.count(sizeof(EnvRecord)) != count || cartridge_bytes.count(kCartridgeBytes) != count) {
    throw std::invalid_argument("expected records and cartridge_bytes of " + std::to_string(count) + " states, as many as groups, got " +
                                std::to_string(record_bytes.count(sizeof(EnvRecord))) + " and " +
                                std::to_string(cartridge_bytes.count(kCartridgeBytes)));
  }
  for (size_t i = 0; i < count; ++i) {
    uint32_t group;
    std::memcpy(&group, group_bytes.data() + i * sizeof group, sizeof group);
    expect_range("groups", group, 0, static_cast<int64_t>(num_groups) - 1);
    EnvRecord record;
    std::memcpy(&record, record_bytes.data() + i * sizeof record, sizeof record);
    ConsoleConfig config;
    std::memcpy(&config, config_bytes.data() + group * sizeof config, sizeof config);
    const char* part = find_misfit(record, cartridge_bytes.data() + i * kCartridgeBytes, config);
    if (part) return py::make_tuple(i, part);
  }
  return py::none();
}

py::bytes make_resample(const py::object& kind, const py::object& rows, const py::object& columns, const py::object& weights, float scale) {
  const Resample resample{static_cast<ResampleKind>(integer("kind", kind, 0, static_cast<int64_t>(ResampleKind::kLinear))),
                          reinterpret_cast<const ResampleSpan*>(address("rows", rows, alignof(ResampleSpan))),
                          reinterpret_cast<const ResampleSpan*>(address("columns", columns, alignof(ResampleSpan))),
                          reinterpret_cast<const float*>(address("weights", weights, alignof(float))), scale};
  return py::bytes(reinterpret_cast<const char*>(&resample), sizeof resample);
}

// A backend, and whether it is the host's.
struct CheckedBackend {
  std::unique_ptr<Backend> backend;
  bool on_host;

  void step(CheckedBatch& batch, uintptr_t stream) {
    batch.look_at_envs(on_host);
    py::gil_scoped_release release;
    backend->step(batch, reinterpret_cast<void*>(stream));
  }
  void reset(CheckedBatch& batch, const py::object& mask, const py::object& seeds, uintptr_t stream) {
    const uintptr_t mask_at = address("mask", mask, 1), seeds_at = address("seeds", seeds, alignof(int64_t));
    batch.look_at_envs(on_host);
    const auto envs = static_cast<uint64_t>(batch.num_envs);
    if (on_host && ((mask_at && !is_mapped(reinterpret_cast<void*>(mask_at), envs)) ||
                    (seeds_at && !is_mapped(reinterpret_cast<void*>(seeds_at), envs * sizeof(int64_t))))) {
      throw std::invalid_argument("expected mask and seeds to be addresses of " + std::to_string(envs) + " values or 0, got " + text_of(mask) +
                                  " and " + text_of(seeds));
    }
    py::gil_scoped_release release;
    backend->reset(batch, reinterpret_cast<const uint8_t*>(mask_at), reinterpret_cast<const int64_t*>(seeds_at),
                   reinterpret_cast<void*>(stream));
  }
  bool plays_in_step(const py::object& num_envs) const {
    return backend->plays_in_step(static_cast<int>(integer("num_envs", num_envs, 1)));
  }
  void load_translation(const py::bytes& cubin) {
    if (on_host) throw std::invalid_argument("expected a backend of CUDA, as ROMs are translated for GPUs only, got the CPU's");
    const std::string code = cubin;
    py::gil_scoped_release release;
    backend->load_translation(code);
  }
};

CheckedBackend* checked_cpu_backend(const py::object& threads) {
  return new CheckedBackend{std::unique_ptr<Backend>(make_cpu_backend(static_cast<int>(integer("threads", threads, 1, 1024)))), true};
}

CheckedBackend* checked_cuda_backend(const py::object& device, const py::object& multiprocessors) {
  const auto index = static_cast<int>(integer("device", device, 0)), apart = static_cast<int>(integer("multiprocessors", multiprocessors, 0));
  return new CheckedBackend{std::unique_ptr<Backend>(make_cuda_backend(index, apart)), false};
}

}  // namespace

#define CULE_POINTER(name, field) \
  .def_property(name, [](const CheckedBatch& b) { return reinterpret_cast<uintptr_t>(b.field); }, \
                [](CheckedBatch& b, const py::object& memory) { b.place(name, b.field, memory); })
#define CULE_COUNT(name, field) \
  .def_property(name, [](const CheckedBatch& b) { return static_cast<int64_t>(b.field); }, \
                [](CheckedBatch& b, const py::object& value) { \
                  b.set(b.field, static_cast<decltype(b.field)>(integer(name, value, 0))); \
                })
#define CULE_OPTION(name, field, least, most) \
  .def_property(name, [](const CheckedBatch& b) { return static_cast<int64_t>(b.field); }, \
                [](CheckedBatch& b, const py::object& value) { b.set_option(b.field, integer(name, value, least, most)); })
#define CULE_VALUE(name, field, type) \
  .def_property(name, [](const CheckedBatch& b) { return static_cast<type>(b.field); }, \
                [](CheckedBatch& b, type value) { b.set(b.field, static_cast<decltype(b.field)>(value)); })

PYBIND11_MODULE(_core, m) {
  m.doc() = "The compiled part of cule. Use cule.AtariEnv.";
  m.def("games", &list_games);
  m.def("make_config", &config_bytes);
  m.def("decode_rom", &decoded_rom, py::arg("image"), py::arg("scheme"), py::arg("entries"));
  m.def("operations", &operations);
  m.def("power_on_numbers", &power_on_numbers);
  m.def("make_resample", &make_resample);
  m.def("find_misfit_state", &find_misfit_state, py::arg("records"), py::arg("cartridge_bytes"), py::arg("configs"), py::arg("groups"));
  m.def("has_cuda", &has_cuda);
  m.attr("CUDA_ARCHITECTURES") = py::str(CULE_CUDA_ARCHITECTURES).attr("split")();  // CMakeLists.txt names them
  m.attr("RECORD_WORDS") = kRecordWords;
  m.attr("CONFIG_BYTES") = sizeof(ConsoleConfig);
  m.attr("TRACE_BYTES") = sizeof(StepTrace);
  m.attr("SEGMENT_WORDS") = kSegmentWords;
  m.attr("SEGMENTS") = kSegments;
  m.attr("MOST_ENVS_APART") = kMostEnvsApart;
  m.attr("RANDOM_WORDS") = Mt19937::kStateWords;
  m.attr("RAM_BYTES") = kRamBytes;
  m.attr("CARTRIDGE_BYTES") = kCartridgeBytes;
  m.attr("LINE_PIXELS") = kLinePixels;
  m.attr("PICTURE_ROWS") = Pictures::kRows;
  m.attr("LINE_CYCLES") = kCyclesPerLine;
  m.attr("WSYNC") = static_cast<uint32_t>(tia_write::WSYNC);
  m.attr("NUM_ACTIONS") = static_cast<int>(kNumActions);
  m.attr("MICRO_OP") = micro_op_fields();
  m.attr("FRONT_BYTE") = offsetof(EnvRecord, tia) + offsetof(TiaState, front);
  m.attr("FAULTS") = py::dict(py::arg("jam") = static_cast<int>(kFaultJam), py::arg("buffer_full") = static_cast<int>(kFaultBufferFull),
                              py::arg("mode_unreachable") = static_cast<int>(kFaultModeUnreachable),
                              py::arg("random_exhausted") = static_cast<int>(kFaultRandomExhausted));

  Guard::watch_forks();
  py::class_<Guard>(m, "Guard").def(py::init<>()).def("call", &Guard::call);

  py::class_<CheckedBatch>(m, "Batch")
      .def(py::init([] { return CheckedBatch{}; }))
      .def_property_readonly("address", [](const CheckedBatch& batch) { return reinterpret_cast<uintptr_t>(static_cast<const Batch*>(&batch)); })
      CULE_COUNT("num_envs", num_envs)
      CULE_COUNT("buffer_capacity", buffer_capacity)
      CULE_COUNT("picture_bytes", picture_bytes)
      CULE_COUNT("num_groups", num_groups)
      CULE_POINTER("group", group) CULE_POINTER("configs", configs) CULE_POINTER("action_ids", action_ids)
      CULE_POINTER("roms", roms) CULE_POINTER("micro_ops", micro_ops) CULE_POINTER("operations", operations)
      CULE_POINTER("marked_ops", marked_ops)
      CULE_POINTER("power_on_numbers", power_on.numbers) CULE_COUNT("power_on_count", power_on.count)
      CULE_POINTER("records", records.words)
      CULE_COUNT("record_word_stride", records.word_stride) CULE_COUNT("record_env_stride", records.env_stride)
      CULE_POINTER("ram", ram) CULE_POINTER("cartridge_bytes", cartridge_bytes) CULE_POINTER("pictures", pictures)
      CULE_POINTER("row_of", row_of)
      CULE_POINTER("pooled", pooled) CULE_POINTER("buffers", buffers) CULE_POINTER("traces", traces) CULE_POINTER("segments", segments)
      CULE_POINTER("noop_random", noop_random) CULE_POINTER("env_random", env_random)
      CULE_COUNT("boot_size", boot.size) CULE_POINTER("boot_records", boot.records) CULE_POINTER("boot_ram", boot.ram)
      CULE_POINTER("boot_cartridge_bytes", boot.cartridge_bytes) CULE_POINTER("boot_pictures", boot.pictures)
      CULE_COUNT("pool_size", pool.size) CULE_POINTER("pool_records", pool.records) CULE_POINTER("pool_ram", pool.ram)
      CULE_POINTER("pool_cartridge_bytes", pool.cartridge_bytes) CULE_POINTER("pool_pictures", pool.pictures)
      CULE_OPTION("frameskip", options.frameskip, 1, kMostFrameskip) CULE_OPTION("max_frames", options.max_frames, 1, INT32_MAX)
      CULE_OPTION("noop_max", options.noop_max, 0, kMostNoops) CULE_VALUE("maxpool", options.maxpool, bool)
      CULE_VALUE("episodic_life", options.episodic_life, bool) CULE_VALUE("life_loss_info", options.life_loss_info, bool)
      CULE_VALUE("reward_clipping", options.reward_clipping, bool) CULE_VALUE("fire_reset", options.fire_reset, bool)
      CULE_COUNT("autoreset", options.autoreset)
      CULE_VALUE("repeat_action_probability", options.repeat_action_probability, float)
      CULE_COUNT("observation_height", observation.height) CULE_COUNT("observation_width", observation.width)
      CULE_COUNT("channels", observation.channels) CULE_COUNT("stack", observation.stack)
      CULE_POINTER("palettes", observation.palettes) CULE_POINTER("resamples", observation.resamples)
      CULE_POINTER("actions", actions) CULE_POINTER("strengths", strengths) CULE_POINTER("actions_b", actions_b)
      CULE_POINTER("strengths_b", strengths_b) CULE_POINTER("observations", observations)
      CULE_POINTER("final_observations", final_observations) CULE_POINTER("rewards", rewards)
      CULE_POINTER("raw_rewards", raw_rewards) CULE_POINTER("terminated", terminated) CULE_POINTER("truncated", truncated)
      CULE_POINTER("lives", lives) CULE_POINTER("frame_numbers", frame_numbers)
      CULE_POINTER("episode_frame_numbers", episode_frame_numbers) CULE_POINTER("faults", faults);

  py::class_<CheckedBackend>(m, "Backend")
      .def("step", &CheckedBackend::step, py::arg("batch"), py::arg("stream") = 0)
      .def("reset", &CheckedBackend::reset, py::arg("batch"), py::arg("mask") = 0, py::arg("seeds") = 0, py::arg("stream") = 0)
      .def("plays_in_step", &CheckedBackend::plays_in_step, py::arg("num_envs"))
      .def("load_translation", &CheckedBackend::load_translation, py::arg("cubin"));
  m.def("cpu_backend", &checked_cpu_backend, py::return_value_policy::take_ownership);
  m.def("cuda_backend", &checked_cuda_backend, py::return_value_policy::take_ownership, py::arg("device"), py::arg("multiprocessors"));
  m.def("power_on_env", &checked_power_on);
  m.def("start_first_episode", &checked_first_episode);
  m.def("headers", &headers);
  m.def("profile", &profile, py::arg("batch"), py::arg("frames"));
  m.def("start_pool_episode", &checked_pool_episode);
  m.def("continue_pool_episode", &checked_continued_episode);
}

// cule._core: gives Python the batch, its backends and the list of games. Python owns all memory
// and passes addresses. This module checks all arguments, so that no call can crash the process,
// and does nothing else.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "bindings/arguments.h"
#include "bindings/bind_port.h"
#include "bindings/bundled_headers.h"
#include "bindings/checked_backend.h"
#include "bindings/checked_batch.h"
#include "bindings/faults.h"
#include "bindings/guard.h"
#include "bindings/objects.h"
#include "bindings/sound.h"
#include "bindings/translation_facts.h"
#include "console/make_config.h"
#include "execution/decode_rom.h"
#include "kernels/tia_state.h"

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
  out["num_players"] = game.num_players;
  out["minimal_actions"] = game.minimal_actions & game.legal_actions;
  out["legal_actions"] = game.legal_actions;
  out["modes"] = to_list(game.modes);
  out["default_mode"] = default_mode(game);
  out["difficulties"] = to_list(game.difficulties);
  out["uses_paddles"] = uses_paddles(game);
  out["power_on_difficulty"] = static_cast<int>(game.power_on_difficulty);
  out["height"] = game.height;
  out["draws_for_mode"] = game.draws_for_mode;
  out["writes_much"] = game.writes_much;
  out["frames_cut_off"] = game.frames_cut_off;
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
    if (!settings.contains(key))
      throw std::invalid_argument(std::string("expected settings with ") + key + ", got none");
    return settings[key];
  };
  auto number = [&](const char* key, int64_t most) { return integer(key, value(key), 0, most); };
  const py::object scheme = value("scheme");
  if (!py::isinstance<py::str>(scheme))
    throw py::type_error("expected scheme to be a name, got " + text_of(scheme));
  ConsoleConfig config = cule::make_config(
      static_cast<uint32_t>(number("game", kNumGames - 1)), scheme.cast<std::string>(),
      static_cast<uint32_t>(number("rom_bytes", kMaxRomBytes)), number("pal", 1) != 0,
      static_cast<int>(number("height", kMaxHeight)));
  config.rom_offset = static_cast<uint32_t>(
      number("rom_offset", std::numeric_limits<int32_t>::max()));
  config.mode = static_cast<uint32_t>(number("mode", std::numeric_limits<int32_t>::max()));
  config.difficulty = static_cast<uint32_t>(number("difficulty", 255));
  return py::bytes(reinterpret_cast<const char*>(&config), sizeof config);
}

template <class T>
py::bytes as_bytes(const std::vector<T>& values) {
  return py::bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// The predecoded instructions of an image, padded with kFetchSlowly to `entries`.
py::bytes decoded_rom(const py::bytes& rom, const std::string& scheme, const py::object& entries) {
  const std::string image = rom;
  if (image.size() > kMaxRomBytes) {
    throw std::invalid_argument("expected an image of " + std::to_string(kMaxRomBytes) +
                                " bytes at most, got " + std::to_string(image.size()));
  }
  // There is room for at least one entry after the image.
  const int64_t count = integer("entries", entries, static_cast<int64_t>(image.size()) + 1,
                                2 * kMaxRomBytes);
  std::vector<Predecoded> predecoded(static_cast<size_t>(count), kFetchSlowly);
  cule::decode_rom(map_of_scheme(scheme), reinterpret_cast<const uint8_t*>(image.data()),
                   static_cast<uint32_t>(image.size()), predecoded.data());
  return as_bytes(predecoded);
}

py::dict headers() {
  py::dict out;
  for (const BundledHeader* header = kBundledHeaders; header->name; ++header)
    out[header->name] = header->text;
  return out;
}

int checked_power_on(CheckedBatch& batch) {
  batch.check_consoles();
  py::gil_scoped_release release;
  return power_on_env(batch);
}

void checked_first_episode(CheckedBatch& batch) {
  batch.check_powered_on();
  py::gil_scoped_release release;
  start_first_episode(batch);
}

void checked_pool_episode(CheckedBatch& batch, const py::object& noops) {
  const auto count = static_cast<int>(integer("noops", noops, 0, kMaxNoops));
  batch.check_powered_on();
  py::gil_scoped_release release;
  start_pool_episode(batch, count);
}

void checked_ended_episode(CheckedBatch& batch, const py::object& noops) {
  const auto count = static_cast<int>(integer("noops", noops, 0, kMaxNoops));
  batch.check_powered_on();
  py::gil_scoped_release release;
  end_pool_episode(batch, count);
}

void checked_continued_episode(CheckedBatch& batch, const py::object& played,
                               const py::object& noops) {
  const auto before = static_cast<int>(integer("played", played, 0, kMaxNoops)),
             count = static_cast<int>(integer("noops", noops, 0, kMaxNoops));
  batch.check_powered_on();
  py::gil_scoped_release release;
  continue_pool_episode(batch, before, count);
}

// The fields of ProfileEntries as uint32: a row for each byte of env 0's ROM, and a last row for
// code that is elsewhere.
py::bytes profile(CheckedBatch& batch, const py::object& frames, bool from_start,
                  const py::object& seed) {
  const auto count = static_cast<int>(integer("frames", frames, 0));
  const auto first = static_cast<uint32_t>(integer("seed", seed, 0, UINT32_MAX));
  batch.check_powered_on();
  std::vector<ProfileEntry> entries(batch.configs[batch.group[0]].rom_bytes + 1, ProfileEntry{});
  {
    py::gil_scoped_release release;
    profile_play(batch, count, from_start, first, entries.data());
  }
  return as_bytes(entries);
}

py::bytes operations() {
  const OperationTable table = make_operation_table();
  return as_bytes(std::vector<Predecoded>(table.operations, table.operations + 256));
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

// Finds the first state that playing cannot produce. Returns (index, part), in which `part` names
// what is impossible, or None. `records` has the records of the states, one after the other.
// `configs` has the configs of all groups, and `groups` the group of each state.
py::object find_misfit_state(const py::object& records, const py::object& cartridges,
                             const py::object& configs, const py::object& groups) {
  const Bytes record_bytes("records", records), cartridge_bytes("cartridge_bytes", cartridges),
      config_bytes("configs", configs), group_bytes("groups", groups);
  const size_t count = group_bytes.count(sizeof(uint32_t));
  const size_t num_groups = config_bytes.count(sizeof(ConsoleConfig));
  if (record_bytes.count(sizeof(EnvRecord)) != count ||
      cartridge_bytes.count(kCartridgeBytes) != count) {
    throw std::invalid_argument("expected records and cartridge_bytes of " + std::to_string(count) +
                                " states, as many as groups, got " +
                                std::to_string(record_bytes.count(sizeof(EnvRecord))) + " and " +
                                std::to_string(cartridge_bytes.count(kCartridgeBytes)));
  }
  for (size_t i = 0; i < count; ++i) {
    const auto group = group_bytes.at<uint32_t>(i);
    expect_range("groups", group, 0, static_cast<int64_t>(num_groups) - 1);
    const char* part = find_misfit(record_bytes.at<EnvRecord>(i),
                                   cartridge_bytes.data() + i * kCartridgeBytes,
                                   config_bytes.at<ConsoleConfig>(group));
    if (part) return py::make_tuple(i, part);
  }
  return py::none();
}

py::bytes make_resample(const py::object& kind, const py::object& rows, const py::object& columns,
                        const py::object& weights, float scale) {
  const Resample resample{
      static_cast<ResampleKind>(
          integer("kind", kind, 0, static_cast<int64_t>(ResampleKind::kLinear))),
      reinterpret_cast<const ResampleSpan*>(address("rows", rows, alignof(ResampleSpan))),
      reinterpret_cast<const ResampleSpan*>(address("columns", columns, alignof(ResampleSpan))),
      reinterpret_cast<const float*>(address("weights", weights, alignof(float))), scale};
  return py::bytes(reinterpret_cast<const char*>(&resample), sizeof resample);
}

CheckedBackend* checked_cpu_backend(const py::object& threads, const py::object& cpus) {
  const auto count = static_cast<int>(integer("threads", threads, 1, 1024));
  if (!PyTuple_Check(cpus.ptr())) {
    throw py::type_error("expected cpus to be a tuple of integers, got " + text_of(cpus));
  }
  std::vector<int> numbers;
  for (const py::handle& cpu : cpus) numbers.push_back(static_cast<int>(integer("cpus", cpu, 0)));
  if (!numbers.empty() && numbers.size() != static_cast<size_t>(count)) {
    throw std::invalid_argument("expected cpus to have a CPU for each of " + std::to_string(count) +
                                " threads, or none, got " + text_of(cpus));
  }
  return new CheckedBackend{std::unique_ptr<Backend>(make_cpu_backend(count, numbers)), true};
}

CheckedBackend* checked_cuda_backend(const py::object& device, const py::object& multiprocessors) {
  const auto index = static_cast<int>(integer("device", device, 0)),
             reserved = static_cast<int>(integer("multiprocessors", multiprocessors, 0));
  return new CheckedBackend{std::unique_ptr<Backend>(make_cuda_backend(index, reserved)), false};
}

}  // namespace

namespace {

// {name: (dtype, life, needed, shape)} of a batch's arrays.
py::dict arrays_by_name(const CheckedBatch& batch, bool envs, bool on_gpu) {
  py::dict out;
  for (const BatchArray& array : arrays_of(batch, {envs, on_gpu})) {
    out[array.name] = py::make_tuple(array.dtype, name_of(array.life), array.needed,
                                     py::tuple(py::cast(array.shape)));
  }
  return out;
}

py::tuple step_options() {
  py::list out;
#define CULE_OPTION(name, ...) out.append(#name);
  CULE_STEP_OPTIONS(CULE_OPTION, CULE_OPTION, CULE_OPTION)
#undef CULE_OPTION
  return py::tuple(out);
}

void bind_constants(py::module_& m) {
  // CMakeLists.txt defines the macro.
  m.attr("CUDA_ARCHITECTURES") = py::str(CULE_CUDA_ARCHITECTURES).attr("split")();
  m.attr("RECORD_WORDS") = kRecordWords;
  m.attr("CONFIG_BYTES") = sizeof(ConsoleConfig);
  m.attr("MAX_ENVS_APART") = kMaxEnvsApart;
  m.attr("ENVS_PER_POOLED") = kEnvsPerPooled;
  m.attr("STEP_OPTIONS") = step_options();
  m.attr("MAX_FRAMESKIP") = kMaxFrameskip;
  m.attr("MAX_NOOPS") = kMaxNoops;
  m.attr("MAX_PATCHES") = kMaxPatches;
  m.attr("PATCH_BYTES") = sizeof(Patch);
  m.attr("MAX_START_STATES") = kMaxStartStates;
  m.attr("RAM_BYTES") = kRamBytes;
  m.attr("LINE_PIXELS") = kLinePixels;
  m.attr("PICTURE_ROWS") = Pictures::kRows;
  m.attr("NUM_ACTIONS") = static_cast<int>(kNumActions);
  m.attr("MAX_PLAYERS") = kMaxPlayers;
  m.attr("ELAPSED_BYTE") = offsetof(EnvRecord, env) + offsetof(EnvState, elapsed_frames);
  // Where the random numbers of resets and sticky actions go on.
  const size_t env_at = offsetof(EnvRecord, env), seed_at = env_at + offsetof(EnvState, seed);
  m.attr("RANDOM_BYTES") =
      py::make_tuple(seed_at, seed_at + sizeof(uint32_t), env_at + offsetof(EnvState, resets),
                     env_at + offsetof(EnvState, action_draws));
  m.attr("FRONT_BYTE") = offsetof(EnvRecord, screen) + offsetof(ScreenState, front);
  m.attr("FAULTS") = faults();
}

// Makes a property of each field of a batch, from the rows of kernels/batch_fields.h.
void bind_batch(py::module_& m) {
  py::class_<CheckedBatch> batch(m, "Batch");
  batch.def(py::init([] { return CheckedBatch{}; }))
      .def_property_readonly("address",
                             [](const CheckedBatch& b) {
                               return reinterpret_cast<uintptr_t>(static_cast<const Batch*>(&b));
                             })
      .def_readwrite("started", &CheckedBatch::started)
      .def("arrays", &arrays_by_name, py::arg("envs"), py::arg("on_gpu"));

#define CULE_PART(name, member, ...)                                                  \
  batch.def_property(                                                                 \
      #name, [](const CheckedBatch& b) { return reinterpret_cast<uintptr_t>(b.member); }, \
      [](CheckedBatch& b, const py::object& memory) { b.place(#name, b.member, memory); });
#define CULE_ARRAY(type, name, ...) CULE_PART(name, name)
  CULE_BATCH_ARRAYS(CULE_ARRAY, CULE_PART)
#undef CULE_PART
#undef CULE_ARRAY

#define CULE_COUNT(name, member, ...)                                                  \
  batch.def_property(                                                                  \
      #name, [](const CheckedBatch& b) { return static_cast<int64_t>(b.member); },     \
      [](CheckedBatch& b, const py::object& value) {                                   \
        b.set(b.member, static_cast<decltype(b.member)>(integer(#name, value, 0)));    \
      });
  CULE_BATCH_COUNTS(CULE_COUNT)
#undef CULE_COUNT

#define CULE_OPTION(name, least, most)                                                     \
  batch.def_property(                                                                      \
      #name, [](const CheckedBatch& b) { return static_cast<int64_t>(b.options.name); },   \
      [](CheckedBatch& b, const py::object& value) {                                       \
        b.set_option(b.options.name, integer(#name, value, least, most));                  \
      });
#define CULE_VALUE(name, member, type)                                             \
  batch.def_property(                                                              \
      #name, [](const CheckedBatch& b) { return static_cast<type>(b.member); },    \
      [](CheckedBatch& b, type value) {                                            \
        b.set(b.member, static_cast<decltype(b.member)>(value));                   \
      });
#define CULE_FLAG(name) CULE_VALUE(name, options.name, bool)
#define CULE_REAL(name) CULE_VALUE(name, options.name, float)
  CULE_STEP_OPTIONS(CULE_OPTION, CULE_FLAG, CULE_REAL)
  CULE_VALUE(keeps_pooled, keeps_pooled, bool)
#undef CULE_OPTION
#undef CULE_VALUE
#undef CULE_FLAG
#undef CULE_REAL
}

void bind_backend(py::module_& m) {
  py::class_<CheckedBackend>(m, "Backend")
      .def("step", &CheckedBackend::step, py::arg("batch"), py::arg("stream") = 0)
      .def("reset", &CheckedBackend::reset, py::arg("batch"), py::arg("mask") = 0,
           py::arg("seeds") = 0, py::arg("stream") = 0)
      .def("send", &CheckedBackend::send, py::arg("batch"), py::arg("stream") = 0)
      .def("wait", &CheckedBackend::wait).def("receive", &CheckedBackend::receive)
      .def("start", &CheckedBackend::start, py::arg("batch"), py::arg("envs"), py::arg("resets"),
           py::arg("seeds"), py::arg("singly"))
      .def("is_done", &CheckedBackend::is_done, py::arg("flight"))
      .def("wait_for", &CheckedBackend::wait_for, py::arg("flight"))
      .def("take", &CheckedBackend::take, py::arg("count"))
      .def("finish", &CheckedBackend::finish)
      .def_property_readonly("in_flight", &CheckedBackend::in_flight)
      .def("plays_in_step", &CheckedBackend::plays_in_step, py::arg("num_envs"))
      .def("reserve", &CheckedBackend::reserve, py::arg("num_envs"), py::arg("multiprocessors"),
           py::arg("ordered"))
      .def("load_translation", &CheckedBackend::load_translation, py::arg("cubin"),
           py::arg("marked_ops"));
  m.def("cpu_backend", &checked_cpu_backend, py::return_value_policy::take_ownership,
        py::arg("threads"), py::arg("cpus") = py::tuple());
  m.def("cuda_backend", &checked_cuda_backend, py::return_value_policy::take_ownership,
        py::arg("device"), py::arg("multiprocessors"));
}

}  // namespace

PYBIND11_MODULE(_core, m) {
  m.doc() = "The compiled part of cule. Use cule.AtariEnv.";
  m.def("games", &list_games);
  m.def("make_config", &config_bytes);
  m.def("decode_rom", &decoded_rom, py::arg("image"), py::arg("scheme"), py::arg("entries"));
  m.def("operations", &operations);
  m.def("power_on_numbers", &power_on_numbers);
  m.def("make_resample", &make_resample);
  m.def("find_misfit_state", &find_misfit_state, py::arg("records"), py::arg("cartridge_bytes"),
        py::arg("configs"), py::arg("groups"));
  m.def("has_cuda", &has_cuda);
  m.def("catch_signal", &catch_signal);
  m.def("release_signal", &release_signal);
  m.def("power_on_env", &checked_power_on);
  m.def("start_first_episode", &checked_first_episode);
  m.def("headers", &headers);
  m.def("profile", &profile, py::arg("batch"), py::arg("frames"), py::arg("from_start") = true,
        py::arg("seed") = 1);
  m.def("start_pool_episode", &checked_pool_episode);
  m.def("continue_pool_episode", &checked_continued_episode);
  m.def("end_pool_episode", &checked_ended_episode);
  Guard::watch_forks();
  py::class_<Guard>(m, "Guard").def(py::init<>()).def("call", &Guard::call);
  bind_constants(m);
  bind_sound(m);
  bind_objects(m);
  bind_translation_facts(m);
  bind_batch(m);
  bind_backend(m);
  bind_port(m);
}

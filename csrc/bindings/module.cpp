// cule._core: the batch, its kernels and the list of games, for Python. No logic lives here: Python owns all memory and passes
// addresses; cule/engine.py is the only caller.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstring>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "bindings/bundled_headers.h"
#include "console/check_record.h"
#include "console/decode_rom.h"
#include "console/make_config.h"
#include "kernels/launch.h"
#include "kernels/segments.h"

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
  auto integer = [&](const char* key) { return settings[key].cast<int>(); };
  ConsoleConfig config = cule::make_config(settings["game"].cast<uint32_t>(), settings["scheme"].cast<std::string>(),
                                           settings["rom_bytes"].cast<uint32_t>(), integer("pal") != 0, integer("height"));
  config.rom_offset = settings["rom_offset"].cast<uint32_t>();
  config.mode = integer("mode");
  config.difficulty = integer("difficulty");
  return py::bytes(reinterpret_cast<const char*>(&config), sizeof config);
}

template <class T>
py::bytes as_bytes(const std::vector<T>& values) {
  return py::bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// The micro-operations of an image, and kFetchSlowly in its padding up to `entries`.
py::bytes decoded_rom(const std::string& image, const std::string& scheme, size_t entries) {
  if (entries <= image.size()) throw std::invalid_argument("expected room for one micro-operation behind the image");
  std::vector<MicroOp> micro_ops(entries, kFetchSlowly);
  cule::decode_rom(map_of_scheme(scheme), reinterpret_cast<const uint8_t*>(image.data()), static_cast<uint32_t>(image.size()),
                   micro_ops.data());
  return as_bytes(micro_ops);
}

py::dict headers() {
  py::dict out;
  for (const BundledHeader* header = kBundledHeaders; header->name; ++header) out[header->name] = header->text;
  return out;
}

// Rows of (count, odd, entered, pc), one for each byte of the ROM of env 0, as uint32.
py::bytes profile(const Batch& batch, int frames) {
  std::vector<ProfileEntry> entries(batch.configs[batch.group[0]].rom_bytes, ProfileEntry{});
  {
    py::gil_scoped_release release;
    profile_play(batch, frames, entries.data());
  }
  return as_bytes(entries);
}

py::bytes operations() {
  const OperationTable table = make_operation_table();
  return as_bytes(std::vector<MicroOp>(table.operations, table.operations + 256));
}

py::bytes power_on_numbers(uint32_t count) {
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

// The first of `count` states, their records one after the other, that could not have come about by playing, and which part of it:
// (index, part), or None. `configs` are of all groups, `groups` has each state's.
py::object find_misfit_state(uintptr_t records, uintptr_t cartridge_bytes, uintptr_t configs, uintptr_t groups, int count) {
  const auto* config = reinterpret_cast<const ConsoleConfig*>(configs);
  const auto* group = reinterpret_cast<const uint32_t*>(groups);
  for (int i = 0; i < count; ++i) {
    EnvRecord record;
    std::memcpy(&record, reinterpret_cast<const EnvRecord*>(records) + i, sizeof record);
    const char* part = find_misfit(record, reinterpret_cast<const uint8_t*>(cartridge_bytes) + i * kCartridgeBytes, config[group[i]]);
    if (part) return py::make_tuple(i, part);
  }
  return py::none();
}

py::bytes make_resample(int kind, uintptr_t rows, uintptr_t columns, uintptr_t weights, float scale) {
  const Resample resample{static_cast<ResampleKind>(kind), reinterpret_cast<const ResampleSpan*>(rows),
                          reinterpret_cast<const ResampleSpan*>(columns), reinterpret_cast<const float*>(weights), scale};
  return py::bytes(reinterpret_cast<const char*>(&resample), sizeof resample);
}

template <class T>
void set_pointer(T*& field, uintptr_t address) { field = reinterpret_cast<T*>(address); }

}  // namespace

#define CULE_POINTER(name, field) \
  .def_property(name, [](const Batch& b) { return reinterpret_cast<uintptr_t>(b.field); }, \
                [](Batch& b, uintptr_t address) { set_pointer(b.field, address); })
#define CULE_VALUE(name, field, type) \
  .def_property(name, [](const Batch& b) { return static_cast<type>(b.field); }, \
                [](Batch& b, type value) { b.field = static_cast<decltype(b.field)>(value); })

PYBIND11_MODULE(_core, m) {
  m.doc() = "The compiled part of cule. Use cule.AtariEnv.";
  m.def("games", &list_games);
  m.def("make_config", &config_bytes);
  m.def("decode_rom", &decoded_rom, py::arg("image"), py::arg("scheme"), py::arg("entries"));
  m.def("operations", &operations);
  m.def("power_on_numbers", &power_on_numbers);
  m.def("make_resample", &make_resample);
  m.def("find_misfit_state", &find_misfit_state, py::arg("records"), py::arg("cartridge_bytes"), py::arg("configs"), py::arg("groups"),
        py::arg("count"));
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
  m.attr("LINE_CYCLES") = kCyclesPerLine;
  m.attr("WSYNC") = static_cast<uint32_t>(tia_write::WSYNC);
  m.attr("NUM_ACTIONS") = static_cast<int>(kNumActions);
  m.attr("MICRO_OP") = micro_op_fields();
  m.attr("FRONT_BYTE") = offsetof(EnvRecord, tia) + offsetof(TiaState, front);
  m.attr("FAULTS") = py::dict(py::arg("jam") = static_cast<int>(kFaultJam), py::arg("buffer_full") = static_cast<int>(kFaultBufferFull),
                              py::arg("mode_unreachable") = static_cast<int>(kFaultModeUnreachable),
                              py::arg("random_exhausted") = static_cast<int>(kFaultRandomExhausted));

  py::class_<Batch>(m, "Batch")
      .def(py::init([] { return Batch{}; }))
      .def_property_readonly("address", [](const Batch& batch) { return reinterpret_cast<uintptr_t>(&batch); })
      CULE_VALUE("num_envs", num_envs, int)
      CULE_VALUE("buffer_capacity", buffer_capacity, uint32_t)
      CULE_VALUE("picture_bytes", picture_bytes, uint32_t)
      CULE_VALUE("num_groups", num_groups, uint32_t)
      CULE_POINTER("group", group) CULE_POINTER("configs", configs) CULE_POINTER("action_ids", action_ids)
      CULE_POINTER("roms", roms) CULE_POINTER("micro_ops", micro_ops) CULE_POINTER("operations", operations)
      CULE_POINTER("marked_ops", marked_ops)
      CULE_POINTER("power_on_numbers", power_on.numbers) CULE_VALUE("power_on_count", power_on.count, uint32_t)
      CULE_POINTER("records", records.words)
      CULE_VALUE("record_word_stride", records.word_stride, size_t) CULE_VALUE("record_env_stride", records.env_stride, size_t)
      CULE_POINTER("ram", ram) CULE_POINTER("cartridge_bytes", cartridge_bytes) CULE_POINTER("pictures", pictures)
      CULE_POINTER("pooled", pooled) CULE_POINTER("buffers", buffers) CULE_POINTER("traces", traces) CULE_POINTER("segments", segments)
      CULE_POINTER("noop_random", noop_random) CULE_POINTER("env_random", env_random)
      CULE_VALUE("boot_size", boot.size, int) CULE_POINTER("boot_records", boot.records) CULE_POINTER("boot_ram", boot.ram)
      CULE_POINTER("boot_cartridge_bytes", boot.cartridge_bytes) CULE_POINTER("boot_pictures", boot.pictures)
      CULE_VALUE("pool_size", pool.size, int) CULE_POINTER("pool_records", pool.records) CULE_POINTER("pool_ram", pool.ram)
      CULE_POINTER("pool_cartridge_bytes", pool.cartridge_bytes) CULE_POINTER("pool_pictures", pool.pictures)
      CULE_VALUE("frameskip", options.frameskip, int) CULE_VALUE("max_frames", options.max_frames, int)
      CULE_VALUE("noop_max", options.noop_max, int) CULE_VALUE("maxpool", options.maxpool, bool)
      CULE_VALUE("episodic_life", options.episodic_life, bool) CULE_VALUE("life_loss_info", options.life_loss_info, bool)
      CULE_VALUE("reward_clipping", options.reward_clipping, bool) CULE_VALUE("fire_reset", options.fire_reset, bool)
      CULE_VALUE("autoreset", options.autoreset, uint32_t)
      CULE_VALUE("repeat_action_probability", options.repeat_action_probability, float)
      CULE_VALUE("observation_height", observation.height, int) CULE_VALUE("observation_width", observation.width, int)
      CULE_VALUE("channels", observation.channels, int) CULE_VALUE("stack", observation.stack, int)
      CULE_POINTER("palettes", observation.palettes) CULE_POINTER("resamples", observation.resamples)
      CULE_POINTER("actions", actions) CULE_POINTER("strengths", strengths) CULE_POINTER("actions_b", actions_b)
      CULE_POINTER("strengths_b", strengths_b) CULE_POINTER("observations", observations)
      CULE_POINTER("final_observations", final_observations) CULE_POINTER("rewards", rewards)
      CULE_POINTER("raw_rewards", raw_rewards) CULE_POINTER("terminated", terminated) CULE_POINTER("truncated", truncated)
      CULE_POINTER("lives", lives) CULE_POINTER("frame_numbers", frame_numbers)
      CULE_POINTER("episode_frame_numbers", episode_frame_numbers) CULE_POINTER("faults", faults);

  py::class_<Backend>(m, "Backend")
      .def("step", [](Backend& backend, const Batch& batch, uintptr_t stream) {
        py::gil_scoped_release release;
        backend.step(batch, reinterpret_cast<void*>(stream));
      }, py::arg("batch"), py::arg("stream") = 0)
      .def("reset", [](Backend& backend, const Batch& batch, uintptr_t mask, uintptr_t seeds, uintptr_t stream) {
        py::gil_scoped_release release;
        backend.reset(batch, reinterpret_cast<const uint8_t*>(mask), reinterpret_cast<const int64_t*>(seeds),
                      reinterpret_cast<void*>(stream));
      }, py::arg("batch"), py::arg("mask") = 0, py::arg("seeds") = 0, py::arg("stream") = 0)
      .def("load_translation", [](Backend& backend, const py::bytes& cubin) { backend.load_translation(cubin); }, py::arg("cubin"));
  m.def("cpu_backend", &make_cpu_backend, py::return_value_policy::take_ownership);
  m.def("cuda_backend", &make_cuda_backend, py::return_value_policy::take_ownership, py::arg("device"), py::arg("multiprocessors"));
  m.def("power_on_env", &power_on_env, py::call_guard<py::gil_scoped_release>());
  m.def("start_first_episode", &start_first_episode, py::call_guard<py::gil_scoped_release>());
  m.def("headers", &headers);
  m.def("profile", &profile, py::arg("batch"), py::arg("frames"));
  m.def("start_pool_episode", &start_pool_episode, py::call_guard<py::gil_scoped_release>());
  m.def("continue_pool_episode", &continue_pool_episode, py::call_guard<py::gil_scoped_release>());
}

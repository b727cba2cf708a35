// The CPU's observations at each level of vector code, for tests, and the same one pixel at a time.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "kernels/cpu/observe.h"

namespace py = pybind11;

namespace {

using namespace cule;

using Bytes = py::array_t<uint8_t, py::array::c_style>;
using Spans = py::array_t<int32_t, py::array::c_style>;
using Floats = py::array_t<float, py::array::c_style>;

// A batch of envs that have pictures, and nothing else that observing does not need.
struct Pictured {
  Batch batch{};
  ConsoleConfig config{};
  Resample resample;
  std::vector<uint32_t> records, group;

  Pictured(Bytes& pictures, Bytes& row_of, Bytes& pooled, Bytes& observations, const Bytes& palette,
           int kind, const Spans& rows, const Spans& columns, const Floats& weights, float scale)
      : resample{static_cast<ResampleKind>(kind),
                 reinterpret_cast<const ResampleSpan*>(rows.data()),
                 reinterpret_cast<const ResampleSpan*>(columns.data()), weights.data(), scale} {
    const auto count = static_cast<size_t>(pictures.shape(0));
    records.resize(count * sizeof(EnvRecord) / 4);
    group.resize(count);
    config.height = static_cast<uint32_t>(pictures.shape(2));
    batch.num_envs = static_cast<int32_t>(count);
    batch.picture_bytes = config.height * kLinePixels;
    batch.pictures = pictures.mutable_data();
    batch.row_of = row_of.mutable_data();
    batch.pooled = pooled.mutable_data();
    batch.envs_per_pooled = 1;
    batch.records = {records.data(), 1, sizeof(EnvRecord) / 4};
    batch.configs = &config;
    batch.group = reinterpret_cast<decltype(batch.group)>(group.data());
    batch.observations = observations.mutable_data();
    batch.observation = {static_cast<int32_t>(observations.shape(2)),
                         static_cast<int32_t>(observations.shape(3)),
                         static_cast<int32_t>(observations.shape(4)),
                         static_cast<int32_t>(observations.shape(1)), palette.data(), &resample};
  }
  Pictured(const Pictured&) = delete;
};

// One pixel of the newest frame, from sums of the pixels that it covers, in the order of
// kernels/observe/resize.h. `pooled` is the whole source, [height][160][channels].
uint8_t pixel_of(const Batch& batch, const uint8_t* pooled, int y, int x, int channel) {
  const int channels = batch.observation.channels;
  const Resample& resample = *batch.observation.resamples;
  const ResampleSpan rows = row_span(resample, y), columns = column_span(resample, x);
  const auto weight = [&](const ResampleSpan& span, int i) {
    return is_weighted(resample) ? resample.weights[span.weight + i] : 1.0f;
  };
  float total = 0;
  for (int r = 0; r < rows.count; ++r) {
    const uint8_t* row = pooled + (rows.first + r) * kLinePixels * channels;
    float sum = 0;
    for (int c = 0; c < columns.count; ++c)
      sum += static_cast<float>(row[(columns.first + c) * channels + channel]) * weight(columns, c);
    total += resample.kind == ResampleKind::kLinear ? weigh_linearly(weight(rows, r), sum)
                                                    : weight(rows, r) * sum;
  }
  if (resample.kind == ResampleKind::kArea) return round_to_byte(total);
  return finish_pixel(resample, total, rows.count, columns.count);
}

void observe_by_pixels(const Batch& batch, size_t env, ObservationPlan plan) {
  const ObservationFormat& format = batch.observation;
  const PicturePair pictures = picture_pair(batch, env);
  const size_t bytes = observed_frame_bytes(format);
  uint8_t* stack = batch.observations + env * bytes * static_cast<size_t>(format.stack);
  for (size_t i = 0; i < bytes * static_cast<size_t>(format.stack - 1); ++i)
    stack[i] = plan.clears_stack ? uint8_t{0} : stack[i + bytes];
  if (!adds_frame(plan)) return;
  const int height = static_cast<int>(config_of(batch, env).height);
  const uint32_t row_bytes = kLinePixels * static_cast<uint32_t>(format.channels);
  std::vector<uint8_t> pooled(static_cast<size_t>(height) * row_bytes);
  uint8_t* kept = pooled_of(batch, env);
  for (int line = 0; line < height; ++line) {
    for (uint32_t i = 0; i < row_bytes; ++i) {
      const size_t at = static_cast<size_t>(line) * row_bytes + i;
      const uint32_t row = static_cast<uint32_t>(line);
      pooled[at] = pool_byte(plan, pictures.front.row(row), pictures.back.row(row), format.palettes,
                             static_cast<uint32_t>(format.channels), i, kept[at]);
    }
  }
  if (needs_pooled(plan)) memcpy(kept, pooled.data(), pooled.size());
  uint8_t* out = newest_frame(batch, env);
  for (int y = 0; y < format.height; ++y) {
    for (int x = 0; x < format.width; ++x) {
      for (int c = 0; c < format.channels; ++c) *out++ = pixel_of(batch, pooled.data(), y, x, c);
    }
  }
}

// Makes the observations of all envs, the last env's first, at a level or "pixels".
void observe_all(const std::string& level, int plan_bits, Bytes pictures, Bytes row_of,
                 Bytes pooled, Bytes observations, const Bytes& palette, int kind,
                 const Spans& rows, const Spans& columns, const Floats& weights, float scale) {
  const Pictured pictured(pictures, row_of, pooled, observations, palette, kind, rows, columns,
                          weights, scale);
  ObservationPlan plan;
  const auto bits = static_cast<uint8_t>(plan_bits);
  std::memcpy(&plan, &bits, sizeof plan);
  const std::vector<VectorLevel> levels = vector_levels();
  const auto found = std::find_if(levels.begin(), levels.end(),
                                  [&](const VectorLevel& l) { return l.name == level; });
  if (level != "pixels" && (found == levels.end() || !found->supported))
    throw std::invalid_argument("expected a level that this processor has, got " + level);
  ResizeSpace space;
  for (size_t env = static_cast<size_t>(pictured.batch.num_envs); env-- > 0;) {
    if (level == "pixels") observe_by_pixels(pictured.batch, env, plan);
    else observe(pictured.batch, env, plan, *found, space);
  }
}

std::vector<std::string> levels_here() {
  std::vector<std::string> names;
  for (const VectorLevel& level : vector_levels())
    if (level.supported) names.push_back(level.name);
  return names;
}

int plan_bits(int new_frame, bool clears_stack, bool last_two_share_picture) {
  ObservationPlan plan = plan_of(static_cast<NewFrame>(new_frame));
  plan.clears_stack = clears_stack;
  plan.last_two_share_picture = last_two_share_picture;
  uint8_t bits;
  std::memcpy(&bits, &plan, sizeof bits);
  return bits;
}

}  // namespace

PYBIND11_MODULE(observe_module, m) {
  m.def("observe", &observe_all);
  m.def("levels", &levels_here);
  m.def("best_level", [] { return std::string(best_vector_level().name); });
  m.def("plan_bits", &plan_bits);
}

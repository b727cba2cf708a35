// The random generators.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <array>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bindings.h"
#include "common/mt19937.h"
#include "common/random.h"

namespace py = pybind11;
using namespace cule;

namespace {

py::array_t<uint32_t> mt19937_draws(uint32_t seed, int n, uint32_t bound, int stride) {
  std::vector<uint32_t> words(Mt19937::kStateWords * static_cast<size_t>(stride), 0xDEADBEEF);
  const Mt19937 generator{words.data(), static_cast<size_t>(stride)};
  generator.seed(seed);
  py::array_t<uint32_t> out(n);
  for (int i = 0; i < n; ++i)
    *out.mutable_data(i) = bound ? generator.below(bound) : generator.next();
  for (size_t i = 0; i < words.size(); ++i) {
    if (i % static_cast<size_t>(stride) && words[i] != 0xDEADBEEF)
      throw std::runtime_error("wrote between its words");
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

std::array<uint32_t, 4> array_of(const RandomWords& r) {
  return {r.words[0], r.words[1], r.words[2], r.words[3]};
}

}  // namespace

void bind_random_generators(py::module_& m) {
  m.def("philox",
        [](uint64_t key, uint64_t low, uint64_t high) { return array_of(philox(key, low, high)); });
  m.def("draw", [](uint64_t seed, uint32_t env, uint32_t purpose, uint32_t counter) {
    return array_of(sample(seed, env, static_cast<RandomPurpose>(purpose), counter));
  });
  m.def("unit_float", &unit_float);
  m.def("below", &below);
  m.def("mt19937_draws", &mt19937_draws, py::arg("seed"), py::arg("n"), py::arg("bound") = 0,
        py::arg("stride") = 1);
  m.def("standard_draws", &standard_draws);
}

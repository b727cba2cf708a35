// What test_sanitizer.py gives the program: ROMs, and the tables of resizes, as lines of a file.
//
//   entries FIRST FURTHER
//       room in the instruction buffer for a step's first frame, and for each further one
//   rom NAME SCHEME PATH
//   table SOURCE_HEIGHT HEIGHT WIDTH KIND SCALE
//         ROWS (FIRST COUNT WEIGHT)... COLUMNS (FIRST COUNT WEIGHT)... WEIGHTS W...
#pragma once

#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "games/games.h"
#include "kernels/batch.h"

namespace sweep {

using namespace cule;
using Bytes = std::vector<uint8_t>;

[[noreturn]] inline void fail(const std::string& what) { throw std::runtime_error(what); }

struct Cartridge {
  std::string name, scheme;
  uint32_t game;
  Bytes image;
};

struct Table {
  ResampleKind kind;
  float scale;
  std::vector<ResampleSpan> rows, columns;
  std::vector<float> weights;
};
using Shape = std::tuple<int, int, int>;  // source height, height, width

struct Manifest {
  std::vector<Cartridge> cartridges;
  std::map<Shape, Table> tables;
  int first_entries = 0, further_entries = 0;
};

inline GameInfo info_of(uint32_t game) {
  GameInfo info;
  with_game(game, [&](auto rules) { info = decltype(rules)::info(); });
  return info;
}

inline uint32_t game_named(const std::string& name) {
  for (uint32_t i = 0; i < kNumGames; ++i) {
    if (info_of(i).name == name) return i;
  }
  fail("expected the name of a game, got " + name);
}

inline std::vector<ResampleSpan> read_spans(std::istream& in) {
  size_t count = 0;
  in >> count;
  std::vector<ResampleSpan> spans(count);
  for (ResampleSpan& span : spans) in >> span.first >> span.count >> span.weight;
  return spans;
}

inline Manifest read_manifest(const std::string& path) {
  Manifest manifest;
  std::ifstream file(path);
  if (!file) fail("cannot read " + path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string what;
    in >> what;
    if (what == "entries") {
      in >> manifest.first_entries >> manifest.further_entries;
    } else if (what == "rom") {
      Cartridge cartridge;
      std::string image;
      in >> cartridge.name >> cartridge.scheme >> std::ws;
      std::getline(in, image);
      std::ifstream bytes(image, std::ios::binary);
      cartridge.image.assign(std::istreambuf_iterator<char>(bytes), {});
      if (cartridge.image.empty()) fail("cannot read " + image);
      cartridge.game = game_named(cartridge.name);
      manifest.cartridges.push_back(cartridge);
    } else {
      int source = 0, height = 0, width = 0, kind = 0;
      size_t count = 0;
      Table table;
      in >> source >> height >> width >> kind >> table.scale;
      table.kind = static_cast<ResampleKind>(kind);
      table.rows = read_spans(in);
      table.columns = read_spans(in);
      in >> count;
      table.weights.resize(count);
      for (float& weight : table.weights) in >> weight;
      if (!in) fail("expected a table, got: " + line);
      manifest.tables[{source, height, width}] = table;
    }
  }
  return manifest;
}

}  // namespace sweep

// The facts of the core that translation (cule/translation/) needs: fields of predecoded
// instructions, where programs go on after them, the memory map, the cartridge schemes.
#pragma once

#include <pybind11/pybind11.h>

#include "bindings/arguments.h"
#include "cartridge/schemes.h"
#include "console/memory_map.h"
#include "execution/profile.h"

namespace cule {

namespace py = pybind11;

// The bits of a predecoded instruction's words that translation reads (cpu_6507/predecoded.h).
inline py::dict predecoded_fields() {
  py::dict out;
  out["cycles"] = kCyclesMask;
  out["length_shift"] = kLengthShift;
  out["reads"] = static_cast<uint32_t>(kReads);
  out["indexed"] = static_cast<uint32_t>(kIndirect | kIndexX | kIndexY);
  out["branch"] = kBranch;
  out["opcode_shift"] = kOpcodeShift;
  out["operand_shift"] = kOperandShift;
  out["block_code"] = kBlockCode;
  out["quiet_block"] = kQuietBlock;
  return out;
}

// The opcodes of the instructions after which the program goes on at `where`
// (cpu_6507/opcode_table.h).
inline py::frozenset opcodes_that_go_on(GoesOn where) {
  py::set out;
  for (uint32_t code = 0; code < 256; ++code) {
    if (facts_of(kOpcodeRows[code].instruction).goes_on == where) out.add(code);
  }
  return py::frozenset(out);
}

// The regions that instructions of blocks may reach (execution/fast_bus.h).
inline py::dict regions() {
  py::dict out;
  out["kInRam"] = static_cast<uint32_t>(kInRam);
  out["kInRom"] = static_cast<uint32_t>(kInRom);
  out["kFromChips"] = static_cast<uint32_t>(kFromChips);
  out["kToTia"] = static_cast<uint32_t>(kToTia);
  out["kToRiot"] = static_cast<uint32_t>(kToRiot);
  out["kInDecimal"] = static_cast<uint32_t>(kInDecimal);
  out["kInCartridge"] = static_cast<uint32_t>(kInCartridge);
  return out;
}

// The sets of regions by which a profile counts instructions, in its order.
inline py::tuple profiled_regions() {
  py::list out;
  for (uint32_t each : kProfiledRegions) out.append(each);
  return py::tuple(out);
}

// The cartridge schemes by name.
inline py::dict schemes() {
  py::dict out;
  for (uint32_t i = 0; i < kNumSchemes; ++i) {
    const SchemeRow& row = kSchemes[i];
    out[row.name] = py::dict(py::arg("index") = i, py::arg("whole_bank") = row.whole_bank,
                             py::arg("same_bank") = row.same_bank);
  }
  return out;
}

inline void bind_translation_facts(py::module_& m) {
  m.attr("PREDECODED") = predecoded_fields();
  m.attr("GO_ON_AT_OPERAND") = opcodes_that_go_on(GoesOn::kAtOperand);
  m.attr("GO_ON_ELSEWHERE") = opcodes_that_go_on(GoesOn::kElsewhere);
  m.attr("REGIONS") = regions();
  m.attr("PROFILED_REGIONS") = profiled_regions();
  m.attr("LINE_CYCLES") = kCyclesPerLine;
  m.attr("WSYNC") = static_cast<uint32_t>(tia_write::WSYNC);
  m.attr("WINDOW_BYTES") = kWindowBytes;
  m.attr("SCHEMES") = schemes();
  m.def("is_cartridge_address", [](const py::object& address) {
    return is_cartridge_address(static_cast<uint32_t>(integer("address", address, 0, 0xFFFF)));
  });
  m.def("is_timer_address", [](const py::object& address) {
    return is_timer_address(static_cast<uint32_t>(integer("address", address, 0, 0xFFFF)));
  });
}

}  // namespace cule

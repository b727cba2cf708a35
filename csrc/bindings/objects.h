// The sizes of tables of objects for Python.
#pragma once

#include <pybind11/pybind11.h>

#include "bindings/batch_rows.h"

namespace cule {

inline void bind_objects(pybind11::module_& m) {
  m.attr("OBJECT_FIELDS") = static_cast<int>(kObjectFields);
  m.attr("OBJECT_FACT_ROWS") = kObjectFactRows;
  m.attr("OBJECT_FACT_COLUMNS") = kObjectFactColumns;
}

}  // namespace cule

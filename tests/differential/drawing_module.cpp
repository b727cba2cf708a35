// Steps that are drawn, for tests: a header of this folder binds each way. They are one unit, so that
// the interpreter and what draws frames are compiled once. Built by conftest.py; not shipped.
#include "bind_objects.h"
#include "bind_segments.h"

PYBIND11_MODULE(drawing_module, m) {
  bind_objects(m);
  bind_segments(m);
}

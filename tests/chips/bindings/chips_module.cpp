// The chips of the core, one by one, for Python: a header of this folder binds each. They are
// compiled in two units, of which each has what its headers share once: this one and consoles.cpp.
// Built by ../conftest.py; not shipped.
#include "bind_m6532.h"
#include "bind_random_generators.h"
#include "bind_random_tia.h"
#include "bind_tia.h"
#include "bindings.h"

PYBIND11_MODULE(chips_module, m) {
  bind_cpu_6507(m);
  bind_m6532(m);
  bind_tia(m);
  bind_random_tia(m);
  bind_console(m);
  bind_random_generators(m);
}

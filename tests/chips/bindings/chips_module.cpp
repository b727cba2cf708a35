// The chips of the core, one by one, for Python: a file of this folder binds each.
// Built by ../conftest.py; not shipped.
#include "bindings.h"

PYBIND11_MODULE(chips_module, m) {
  bind_cpu_6507(m);
  bind_m6532(m);
  bind_tia(m);
  bind_random_tia(m);
  bind_console(m);
  bind_random_generators(m);
}

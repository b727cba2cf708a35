// The bindings that have the 6507's cores.
#include "bind_console.h"
#include "bind_cpu_6507.h"

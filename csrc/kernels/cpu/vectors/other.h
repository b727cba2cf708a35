// The levels of vector code (plain.h) on machines without a header of their own.
#pragma once

#include "kernels/cpu/vectors/plain.h"

#define CULE_VECTOR_LEVELS(LEVEL) CULE_PLAIN_LEVEL(LEVEL)

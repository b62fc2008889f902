// What `deepinfer bench` calls. Callers bring the backends; results are JSON lines.
#pragma once

#include "bench/kernels.h"

#pragma once

#include "ops/types.h"

namespace deepinfer::ops {

/// streams[t, s, :] = table[token[t], :] for every stream s.
/// Shapes   token [n_rows] in [0, table.n_out); streams [n_rows, n_streams, table.n_in]
/// Types    bf16 copies, exact
/// Source   spec 10
struct EmbedArgs {
  int32_t n_rows = 0;
  const int32_t* token = nullptr;
  Bf16Matrix table;
  int32_t n_streams = 0;
  Bf16* streams = nullptr;
};

}  // namespace deepinfer::ops

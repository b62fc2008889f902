// What every operation of this backend works with: the kernels of the chosen instruction set, the thread pool and the
// workspaces. Operations are called by one thread; inside a parallel loop each thread uses its own arena.
#pragma once

#include <vector>

#include "backend/cpu/arena.h"
#include "backend/cpu/kernels.h"
#include "platform/thread_pool.h"

namespace deepinfer::cpu {

struct Context {
  Context(const Kernels& k, int n_threads)
      : kernels(k), pool(n_threads), thread_arenas(static_cast<size_t>(n_threads)) {}

  /// Arena of the calling thread of the pool.
  Arena& thread_arena() { return thread_arenas[static_cast<size_t>(ThreadPool::this_thread_index())]; }

  const Kernels& kernels;
  ThreadPool pool;
  Arena arena;                       // the operation's own
  std::vector<Arena> thread_arenas;  // one a thread
};

}  // namespace deepinfer::cpu

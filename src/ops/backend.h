// The seam between the model and a machine: what every backend offers. The model above is written in these operations
// only; a new accelerator is a new folder under backend/ that implements this class.
//
// Contract of every operation: an output row depends on that row's inputs and its sequence's KV alone, never on how
// many rows there are or who they belong to (row invariance). Rounding points are those in the argument's docstring;
// sums may be taken in any fixed order that is the same for every row. Called by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "deepinfer/status.h"
#include "ops/attention.h"
#include "ops/compress.h"
#include "ops/embed.h"
#include "ops/engram.h"
#include "ops/head.h"
#include "ops/index_select.h"
#include "ops/linear.h"
#include "ops/mhc.h"
#include "ops/moe.h"
#include "ops/output_projection.h"
#include "ops/query.h"
#include "ops/window_kv.h"

namespace deepinfer {
struct ModelConfig;
struct TensorView;
}  // namespace deepinfer

namespace deepinfer::ops {

class Backend;

/// Owned memory of a backend. Move-only; gives itself back.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Backend* owner, void* data, int64_t n_bytes) : owner_(owner), data_(data), n_bytes_(n_bytes) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer();

  [[nodiscard]] int64_t n_bytes() const { return n_bytes_; }
  template <typename T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(data_, other.data_);
    std::swap(n_bytes_, other.n_bytes_);
  }

  Backend* owner_ = nullptr;  // outlives its buffers
  void* data_ = nullptr;
  int64_t n_bytes_ = 0;
};

/// What a step may ask for at most; workspaces are reserved from it once.
struct StepLimits {
  int32_t n_rows_max = 0;
  int32_t n_logit_rows_max = 0;
  int64_t n_context_max = 0;  // tokens of one sequence
};

class Backend {
 public:
  virtual ~Backend() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;

  /// Zeroed memory, aligned to 64 bytes. kOutOfCapacity names the size.
  virtual Result<Buffer> allocate(int64_t n_bytes) = 0;
  virtual Status upload(void* to, const void* from_host, int64_t n_bytes) = 0;
  virtual Status download(void* to_host, const void* from, int64_t n_bytes) = 0;
  /// Within the backend's memory; the ranges do not overlap.
  virtual Status copy(void* to, const void* from, int64_t n_bytes) = 0;

  /// Makes a weight readable by the operations. Precondition: host.data is aligned for its type (a loaded Checkpoint
  /// sees to it). The returned pointer is valid while `host` and the backend live; host backends return host.data.
  virtual Result<const void*> import_weight(const TensorView& host) = 0;

  /// Reserves every workspace the operations need for steps within `limits`; after it they allocate nothing.
  virtual Status reserve(const ModelConfig& config, const StepLimits& limits) = 0;

  virtual Status embed(const EmbedArgs& args) = 0;
  virtual Status engram(const EngramArgs& args) = 0;
  virtual Status mhc_expand(const MhcExpandArgs& args) = 0;
  virtual Status mhc_site(const MhcSiteArgs& args) = 0;
  virtual Status linear_fp8(const LinearFp8Args& args) = 0;
  virtual Status linear_fp4(const LinearFp4Args& args) = 0;
  virtual Status linear_bf16(const LinearBf16Args& args) = 0;
  virtual Status query(const QueryArgs& args) = 0;
  virtual Status window_kv(const WindowKvArgs& args) = 0;
  virtual Status window_commit(const WindowCommitArgs& args) = 0;
  virtual Status compress(const CompressArgs& args) = 0;
  virtual Status index_select(const IndexSelectArgs& args) = 0;
  virtual Status attention(const AttentionArgs& args) = 0;
  virtual Status output_projection(const OutputProjectionArgs& args) = 0;
  virtual Status router(const RouterArgs& args) = 0;
  virtual Status moe(const MoeArgs& args) = 0;
  virtual Status head(const HeadArgs& args) = 0;

 protected:
  friend class Buffer;
  virtual void release(void* data, int64_t n_bytes) noexcept = 0;
};

}  // namespace deepinfer::ops

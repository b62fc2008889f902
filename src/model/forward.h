// The text model as a sequence of operations over the rows of a step. Owns the activation buffers; knows backends only
// through ops::Backend and KV only through views it is given. One thread.
//
// One step: begin() (rows, embedding) -> run_layers() -> logits(). A step's rows may belong to several sequences at any
// positions, so prefill chunks and decode rows are the same thing (spec 2.5): every row's result depends on its token,
// its position and its sequence's KV alone.
//
// Prompt tails (spec 2.3): layers up to the last KV source can run on all rows of a prompt and the later layers on its
// last rows only. save_tail() keeps what later layers need of a chunk's rows; begin_tail() starts a step from them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kv/layout.h"
#include "model/model.h"
#include "ops/backend.h"
#include "tensor/tensor.h"

namespace deepinfer {

/// Where the KV of all sequences lies, in the backend's memory.
struct KvViews {
  std::vector<kv::RingView> rings;      // one a layer
  std::vector<kv::GlobalView> sources;  // one a KV source layer
  std::vector<kv::TailView> tails;      // one a KV source layer; base null at ratio 1
};

/// One sequence's part of a step: its last n_rows tokens are run.
struct StepSequence {
  int32_t slot = 0;
  std::span<const int32_t> tokens;  // the whole sequence from position 0 up to the last row (image positions kDead)
  int32_t n_rows = 0;
  /// Layers after the last KV source read no window row before this position (0: all of the window).
  int32_t late_window_floor = 0;
};

/// Sees intermediate values, in host memory for the duration of the call. Layer n_layers stands for the final state.
class ForwardObserver {
 public:
  virtual ~ForwardObserver() = default;
  virtual void on_tensor(int32_t layer, std::string_view name, const TensorView& value) = 0;
};

struct ForwardOptions {
  ops::StepLimits limits;
  int32_t n_slots = 1;
  int32_t n_tail_rows = 0;  // rows kept a slot for prompt tails; 0: none
};

class ForwardPass {
 public:
  /// model and backend outlive the pass. kOutOfCapacity when the buffers do not fit.
  static Result<ForwardPass> create(const Model& model, ops::Backend& backend, const ForwardOptions& options);
  ForwardPass(ForwardPass&&) noexcept;
  ForwardPass& operator=(ForwardPass&&) noexcept;
  ~ForwardPass();

  /// Starts a step: rows and embedding. Precondition: at least one row, within the limits; KV room exists.
  Status begin(std::span<const StepSequence> sequences);
  /// Runs layers [first, last). Layers run once each and in order within a step.
  Status run_layers(int32_t first, int32_t last, const KvViews& kv);
  /// Logits of rows of the step after the last layer: out [rows.size(), vocab] in host memory. At most
  /// n_logit_rows_max rows a call; may be called repeatedly.
  Status logits(std::span<const int32_t> rows, float* out);

  /// Keeps the state of the step's rows after the last KV source layer, of each sequence the last n_tail_rows.
  Status save_tail();
  /// Starts a step from kept rows: of each sequence the n_rows ending at its last token. run_layers() goes on after the
  /// last KV source layer.
  Status begin_tail(std::span<const StepSequence> sequences);

  [[nodiscard]] int32_t n_rows() const { return rows_.n; }
  [[nodiscard]] const ops::StepLimits& limits() const { return options_.limits; }
  void set_observer(ForwardObserver* observer) { observer_ = observer; }

  /// For tests: overwrite the residual streams [n_rows, S, dim] and the carried mix [n_rows, S] of the step.
  Status set_state(std::span<const Bf16> streams, std::span<const float> carried);

 private:
  struct Buffers;
  struct SiteMix {
    float* pre = nullptr;
    float* post = nullptr;
    float* comb = nullptr;
  };

  ForwardPass(const Model& model, ops::Backend& backend, const ForwardOptions& options);
  Status reserve();
  Status set_rows(std::span<const StepSequence> sequences);
  Status run_layer(int32_t layer, const KvViews& kv);
  Status run_engram(int32_t layer);
  Status run_attention(int32_t layer, const KvViews& kv);
  Status select_entries(int32_t layer, const KvViews& kv);
  Status flush_expand();
  Status copy_tail_rows(bool save);
  [[nodiscard]] ops::MhcExpandArgs pending_expand() const;
  [[nodiscard]] ops::Rope rope_of(int32_t layer) const;
  Status observe(int32_t layer, std::string_view name, const void* data, DType dtype, Shape shape);

  const Model* model_;
  ops::Backend* backend_;
  ForwardOptions options_;
  ForwardObserver* observer_ = nullptr;

  std::unique_ptr<Buffers> buffers_;
  ops::Rows rows_;
  std::vector<StepSequence> sequences_;  // of the step; their token spans are not read after begin()
  const SiteMix* pending_ = nullptr;     // site whose sublayer output is not yet in the streams
  const float* carried_ = nullptr;       // mix the next collapse uses
};

}  // namespace deepinfer

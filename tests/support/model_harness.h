// A whole model on a test checkpoint, below the engine: load it, feed token chunks, read logits and inner values.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "kv/sequence_kv.h"
#include "model/forward.h"
#include "model/kv_memory.h"
#include "ops/backend.h"

namespace deepinfer::testing {

/// "ref", "cpu", or "cpu:<isa>" (an instruction set the cpu backend can be held to), with n_threads.
std::unique_ptr<ops::Backend> make_backend(const std::string& name, int n_threads = 2);

/// Name of the golden checkpoint's directory.
std::string golden_dir();

struct HarnessOptions {
  std::string backend = "ref";
  int n_threads = 2;
  int32_t n_rows_max = 64;
  int32_t n_slots = 4;
  int32_t n_tail_rows = 0;
  int64_t n_context = 4096;
};

/// Aborts the test program on any error: a test cannot go on without its model.
class ModelHarness {
 public:
  explicit ModelHarness(const std::string& checkpoint_dir, const HarnessOptions& options = {});

  [[nodiscard]] const Model& model() const { return *model_; }
  [[nodiscard]] const ModelConfig& config() const { return model_->config; }
  ForwardPass& pass() { return *pass_; }
  [[nodiscard]] const KvViews& kv() const { return kv_->views(); }

  /// Runs tokens[from, to) of a sequence in one step through all layers; logits of every new row, [to - from, vocab].
  std::vector<float> run_chunk(int32_t slot, const std::vector<int32_t>& tokens, int64_t from, int64_t to);
  /// The same in chunks that end at `ends` (ascending, the last one tokens.size()).
  std::vector<float> run_chunks(int32_t slot, const std::vector<int32_t>& tokens, const std::vector<int64_t>& ends);
  /// Prefills under a tail policy: layers up to the last KV source on all rows, later ones on the last `keep` rows,
  /// which are run `tail_chunk` at a time; then logits of the last row.
  std::vector<float> run_tail_prefill(int32_t slot, const std::vector<int32_t>& tokens,
                                      const std::vector<int64_t>& ends, int32_t keep, int32_t tail_chunk);

  /// Window rows and compressed entries as bf16 values, for comparison with traces.
  std::vector<Bf16> compressed_kv(int32_t source, int32_t slot, int32_t n_entries) const;
  std::vector<Bf16> index_keys(int32_t source, int32_t slot, int32_t n_entries) const;

 private:
  std::unique_ptr<ops::Backend> backend_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<KvMemory> kv_;
  std::unique_ptr<ForwardPass> pass_;
};

/// Fails the calling test and aborts unless status is ok.
void require(const Status& status);
template <typename T>
T require(Result<T> result) {
  require(result.ok() ? Status{} : Status(result.error()));
  return *std::move(result);
}

}  // namespace deepinfer::testing

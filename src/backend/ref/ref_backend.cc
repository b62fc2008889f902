#include "backend/ref/ref_backend.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "backend/ref/ref_ops.h"
#include "base/check.h"
#include "tensor/tensor.h"

namespace deepinfer {

namespace {

constexpr size_t kAlignment = 64;

class RefBackend final : public ops::Backend {
 public:
  explicit RefBackend(int n_threads) : pool_(n_threads) {}

  [[nodiscard]] std::string_view name() const override { return "ref"; }

  Result<ops::Buffer> allocate(int64_t n_bytes) override {
    const size_t rounded = (static_cast<size_t>(n_bytes) + kAlignment - 1) / kAlignment * kAlignment;
    void* data = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
    if (data == nullptr) {
      return Error{Code::kOutOfCapacity, "no memory for a buffer of " + std::to_string(n_bytes) + " bytes"};
    }
    std::memset(data, 0, rounded);
    return ops::Buffer(this, data, n_bytes);
  }
  Status upload(void* to, const void* from_host, int64_t n_bytes) override { return copy(to, from_host, n_bytes); }
  Status download(void* to_host, const void* from, int64_t n_bytes) override { return copy(to_host, from, n_bytes); }
  Status copy(void* to, const void* from, int64_t n_bytes) override {
    std::memcpy(to, from, static_cast<size_t>(n_bytes));
    return {};
  }

  Result<const void*> import_weight(const TensorView& host) override {
    DI_CHECK(reinterpret_cast<uintptr_t>(host.data) % static_cast<uintptr_t>(element_bytes(host.dtype)) == 0);
    return static_cast<const void*>(host.data);
  }

  Status reserve(const ModelConfig&, const ops::StepLimits&) override { return {}; }  // allocates as it goes

  Status embed(const ops::EmbedArgs& a) override { return ref::embed(a), Status{}; }
  Status engram(const ops::EngramArgs& a) override { return ref::engram(pool_, a), Status{}; }
  Status mhc_expand(const ops::MhcExpandArgs& a) override { return ref::mhc_expand(pool_, a), Status{}; }
  Status mhc_site(const ops::MhcSiteArgs& a) override { return ref::mhc_site(pool_, a), Status{}; }
  Status linear_fp8(const ops::LinearFp8Args& a) override { return ref::linear_fp8(pool_, a), Status{}; }
  Status linear_fp4(const ops::LinearFp4Args& a) override { return ref::linear_fp4(pool_, a), Status{}; }
  Status linear_bf16(const ops::LinearBf16Args& a) override { return ref::linear_bf16(pool_, a), Status{}; }
  Status query(const ops::QueryArgs& a) override { return ref::query(pool_, a), Status{}; }
  Status window_kv(const ops::WindowKvArgs& a) override { return ref::window_kv(pool_, a), Status{}; }
  Status window_commit(const ops::WindowCommitArgs& a) override { return ref::window_commit(a), Status{}; }
  Status compress(const ops::CompressArgs& a) override { return ref::compress(pool_, a), Status{}; }
  Status index_select(const ops::IndexSelectArgs& a) override { return ref::index_select(pool_, a), Status{}; }
  Status attention(const ops::AttentionArgs& a) override { return ref::attention(pool_, a), Status{}; }
  Status output_projection(const ops::OutputProjectionArgs& a) override {
    return ref::output_projection(pool_, a), Status{};
  }
  Status router(const ops::RouterArgs& a) override { return ref::router(pool_, a), Status{}; }
  Status moe(const ops::MoeArgs& a) override { return ref::moe(pool_, a), Status{}; }
  Status head(const ops::HeadArgs& a) override { return ref::head(pool_, a), Status{}; }

 protected:
  void release(void* data, int64_t) noexcept override { std::free(data); }

 private:
  ThreadPool pool_;
};

}  // namespace

std::unique_ptr<ops::Backend> make_ref_backend(int n_threads) { return std::make_unique<RefBackend>(n_threads); }

}  // namespace deepinfer

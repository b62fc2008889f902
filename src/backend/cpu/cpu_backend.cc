#include "backend/cpu/cpu_backend.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "backend/cpu/context.h"
#include "backend/cpu/cpu_ops.h"
#include "base/check.h"
#include "platform/cpu_features.h"
#include "tensor/tensor.h"

namespace deepinfer {

namespace cpu {

void embed(Context& ctx, const ops::EmbedArgs& a) {
  const int64_t dim = a.table.n_in;
  ctx.pool.parallel_for(a.n_rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      DI_CHECK(a.token[t] >= 0 && a.token[t] < a.table.n_out);
      const Bf16* row = a.table.values + a.token[t] * dim;
      for (int64_t s = 0; s < a.n_streams; ++s) std::copy_n(row, dim, a.streams + (t * a.n_streams + s) * dim);
    }
  });
}

namespace {

const Kernels& kernels_of(Isa isa) {
  DI_CHECK(cpu_backend_supports(isa));
#if defined(DI_CPU_HAVE_X86)
  if (isa == Isa::kAvx512) return kAvx512Kernels;
  if (isa == Isa::kAvx2) return kAvx2Kernels;
#endif
  return kGenericKernels;
}

Isa best_isa() {
  if (cpu_backend_supports(Isa::kAvx512)) return Isa::kAvx512;
  return cpu_backend_supports(Isa::kAvx2) ? Isa::kAvx2 : Isa::kGeneric;
}

class CpuBackend final : public ops::Backend {
 public:
  explicit CpuBackend(const CpuBackendOptions& options)
      : ctx_(kernels_of(options.isa.value_or(best_isa())), options.n_threads),
        name_(std::string("cpu-") + ctx_.kernels.name) {}

  [[nodiscard]] std::string_view name() const override { return name_; }

  Result<ops::Buffer> allocate(int64_t n_bytes) override {
    const size_t rounded = static_cast<size_t>(std::max(Arena::bytes<char>(n_bytes), Arena::kAlignment));
    void* data = std::aligned_alloc(Arena::kAlignment, rounded);
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

  Status reserve(const ModelConfig& config, const ops::StepLimits& limits) override {
    const Demand demand = total_demand(config, limits);
    bool ok = ctx_.arena.reserve(demand.shared);
    for (Arena& arena : ctx_.thread_arenas) ok = ok && arena.reserve(demand.per_thread);
    if (ok) return {};
    return Error{Code::kOutOfCapacity, "no memory for workspaces of " + std::to_string(demand.shared) + " bytes and " +
                                           std::to_string(demand.per_thread) + " for each of " +
                                           std::to_string(ctx_.thread_arenas.size()) + " threads"};
  }

  Status embed(const ops::EmbedArgs& a) override { return cpu::embed(ctx_, a), Status{}; }
  Status engram(const ops::EngramArgs& a) override { return cpu::engram(ctx_, a), Status{}; }
  Status mhc_expand(const ops::MhcExpandArgs& a) override { return cpu::mhc_expand(ctx_, a), Status{}; }
  Status mhc_site(const ops::MhcSiteArgs& a) override { return cpu::mhc_site(ctx_, a), Status{}; }
  Status linear_fp8(const ops::LinearFp8Args& a) override { return cpu::linear_fp8(ctx_, a), Status{}; }
  Status linear_fp4(const ops::LinearFp4Args& a) override { return cpu::linear_fp4(ctx_, a), Status{}; }
  Status linear_bf16(const ops::LinearBf16Args& a) override { return cpu::linear_bf16(ctx_, a), Status{}; }
  Status query(const ops::QueryArgs& a) override { return cpu::query(ctx_, a), Status{}; }
  Status window_kv(const ops::WindowKvArgs& a) override { return cpu::window_kv(ctx_, a), Status{}; }
  Status window_commit(const ops::WindowCommitArgs& a) override { return cpu::window_commit(ctx_, a), Status{}; }
  Status compress(const ops::CompressArgs& a) override { return cpu::compress(ctx_, a), Status{}; }
  Status index_select(const ops::IndexSelectArgs& a) override { return cpu::index_select(ctx_, a), Status{}; }
  Status attention(const ops::AttentionArgs& a) override { return cpu::attention(ctx_, a), Status{}; }
  Status output_projection(const ops::OutputProjectionArgs& a) override {
    return cpu::output_projection(ctx_, a), Status{};
  }
  Status router(const ops::RouterArgs& a) override { return cpu::router(ctx_, a), Status{}; }
  Status moe(const ops::MoeArgs& a) override { return cpu::moe(ctx_, a), Status{}; }
  Status head(const ops::HeadArgs& a) override { return cpu::head(ctx_, a), Status{}; }

 protected:
  void release(void* data, int64_t) noexcept override { std::free(data); }

 private:
  Context ctx_;
  std::string name_;
};

}  // namespace

}  // namespace cpu

bool cpu_backend_supports(Isa isa) {
  if (isa == Isa::kGeneric) return true;
#if defined(DI_CPU_HAVE_X86)
  const CpuFeatures features = detect_cpu_features();
  const bool avx2 = features.avx2 && features.fma;
  if (isa == Isa::kAvx2) return avx2;
  return avx2 && features.avx512f && features.avx512bw && features.avx512vl;
#else
  return false;
#endif
}

std::unique_ptr<ops::Backend> make_cpu_backend(const CpuBackendOptions& options) {
  return std::make_unique<cpu::CpuBackend>(options);
}

std::unique_ptr<ops::Backend> make_cpu_backend(int n_threads) { return make_cpu_backend({.n_threads = n_threads}); }

}  // namespace deepinfer

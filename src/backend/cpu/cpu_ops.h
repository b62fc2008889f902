// The operations as functions; cpu_backend.cc puts them behind the Backend interface. Each is in the file of its name,
// its contract in ops/. `*_demand` says what workspace an operation may need at most for steps within the limits.
#pragma once

#include <algorithm>

#include "backend/cpu/context.h"
#include "checkpoint/config.h"
#include "ops/backend.h"

namespace deepinfer::cpu {

/// Bytes of workspace.
struct Demand {
  int64_t shared = 0;      // of the operation
  int64_t per_thread = 0;  // of each thread
};

inline Demand larger(const Demand& a, const Demand& b) {
  return {std::max(a.shared, b.shared), std::max(a.per_thread, b.per_thread)};
}

/// The largest demand of all operations.
Demand total_demand(const ModelConfig& config, const ops::StepLimits& limits);

void embed(Context& ctx, const ops::EmbedArgs& args);
void engram(Context& ctx, const ops::EngramArgs& args);
Demand engram_demand(const ModelConfig& config, const ops::StepLimits& limits);
void mhc_expand(Context& ctx, const ops::MhcExpandArgs& args);
void mhc_site(Context& ctx, const ops::MhcSiteArgs& args);
Demand mhc_demand(const ModelConfig& config, const ops::StepLimits& limits);
void linear_fp8(Context& ctx, const ops::LinearFp8Args& args);
void linear_fp4(Context& ctx, const ops::LinearFp4Args& args);
void linear_bf16(Context& ctx, const ops::LinearBf16Args& args);
void query(Context& ctx, const ops::QueryArgs& args);
Demand query_demand(const ModelConfig& config, const ops::StepLimits& limits);
void window_kv(Context& ctx, const ops::WindowKvArgs& args);
void window_commit(Context& ctx, const ops::WindowCommitArgs& args);
Demand window_kv_demand(const ModelConfig& config, const ops::StepLimits& limits);
void compress(Context& ctx, const ops::CompressArgs& args);
Demand compress_demand(const ModelConfig& config, const ops::StepLimits& limits);
void index_select(Context& ctx, const ops::IndexSelectArgs& args);
Demand index_select_demand(const ModelConfig& config, const ops::StepLimits& limits);
void attention(Context& ctx, const ops::AttentionArgs& args);
Demand attention_demand(const ModelConfig& config, const ops::StepLimits& limits);
void output_projection(Context& ctx, const ops::OutputProjectionArgs& args);
Demand output_projection_demand(const ModelConfig& config, const ops::StepLimits& limits);
void router(Context& ctx, const ops::RouterArgs& args);
Demand router_demand(const ModelConfig& config, const ops::StepLimits& limits);
void moe(Context& ctx, const ops::MoeArgs& args);
Demand moe_demand(const ModelConfig& config, const ops::StepLimits& limits);
void head(Context& ctx, const ops::HeadArgs& args);
Demand head_demand(const ModelConfig& config, const ops::StepLimits& limits);

}  // namespace deepinfer::cpu

// The reference operations as functions; ref_backend.cc puts them behind the Backend interface. Each is in the file of
// its name, its contract in ops/.
#pragma once

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
#include "platform/thread_pool.h"

namespace deepinfer::ref {

void embed(const ops::EmbedArgs& args);
void engram(ThreadPool& pool, const ops::EngramArgs& args);
void mhc_expand(ThreadPool& pool, const ops::MhcExpandArgs& args);
void mhc_site(ThreadPool& pool, const ops::MhcSiteArgs& args);
void linear_fp8(ThreadPool& pool, const ops::LinearFp8Args& args);
void linear_fp4(ThreadPool& pool, const ops::LinearFp4Args& args);
void linear_bf16(ThreadPool& pool, const ops::LinearBf16Args& args);
void query(ThreadPool& pool, const ops::QueryArgs& args);
void window_kv(ThreadPool& pool, const ops::WindowKvArgs& args);
void window_commit(const ops::WindowCommitArgs& args);
void compress(ThreadPool& pool, const ops::CompressArgs& args);
void index_select(ThreadPool& pool, const ops::IndexSelectArgs& args);
void attention(ThreadPool& pool, const ops::AttentionArgs& args);
void output_projection(ThreadPool& pool, const ops::OutputProjectionArgs& args);
void router(ThreadPool& pool, const ops::RouterArgs& args);
void moe(ThreadPool& pool, const ops::MoeArgs& args);
void head(ThreadPool& pool, const ops::HeadArgs& args);

}  // namespace deepinfer::ref

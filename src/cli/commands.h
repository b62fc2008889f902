// The commands, each from its parsed arguments to its end. An error becomes one line on standard error and the exit
// code of its kind. Main thread.
#pragma once

#include "cli/arguments.h"
#include "deepinfer/engine.h"
#include "deepinfer/status.h"

namespace deepinfer::cli {

Status run_generate(const GenerateArguments& arguments);
Status run_batch(const BatchArguments& arguments);
Status run_score(const ScoreArguments& arguments);
Status run_tokenize(const TokenizeArguments& arguments);
Status run_protocol(const ProtocolArguments& arguments);
Status run_grammar_check(const GrammarCheckArguments& arguments);
Status run_inspect(const InspectArguments& arguments);
Status run_doctor(const DoctorArguments& arguments);
Status run_kernel_bench(const KernelBenchArguments& arguments);
Status run_model_bench(const ModelBenchArguments& arguments);
Status run_protocol_bench(const ProtocolBenchArguments& arguments);
Status run_grammar_bench(const GrammarBenchArguments& arguments);

/// Engine::open with a progress bar, and the engine's warnings on standard error.
Result<Engine> open_engine(const EngineOptions& options, LogLevel log_level);

}  // namespace deepinfer::cli

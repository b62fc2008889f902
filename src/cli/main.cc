// The program `deepinfer`: arguments, one command, an exit code (docs/OPTIONS.md).
#include <csignal>
#include <string>
#include <variant>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/line_io.h"

namespace deepinfer::cli {

namespace {

struct Run {
  Status operator()(const ShowText& show) const { return Output::standard().write(show.text); }
  Status operator()(const GenerateArguments& arguments) const { return run_generate(arguments); }
  Status operator()(const BatchArguments& arguments) const { return run_batch(arguments); }
  Status operator()(const ScoreArguments& arguments) const { return run_score(arguments); }
  Status operator()(const TokenizeArguments& arguments) const { return run_tokenize(arguments); }
  Status operator()(const InspectArguments& arguments) const { return run_inspect(arguments); }
  Status operator()(const DoctorArguments& arguments) const { return run_doctor(arguments); }
  Status operator()(const KernelBenchArguments& arguments) const { return run_kernel_bench(arguments); }
  Status operator()(const ModelBenchArguments& arguments) const { return run_model_bench(arguments); }
};

int main(const std::vector<std::string>& words) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of write()
  const Result<Arguments> arguments = parse_arguments(words);
  const Status status = arguments.ok() ? std::visit(Run{}, *arguments) : Status(arguments.error());
  if (status.ok()) return 0;
  tell("deepinfer: " + status.error().message);
  return exit_code(status.error().code);
}

}  // namespace

}  // namespace deepinfer::cli

int main(int n_words, char** words) {
  return deepinfer::cli::main(std::vector<std::string>(words + (n_words > 0 ? 1 : 0), words + n_words));
}

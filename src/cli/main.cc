// The program `deepinfer`: arguments, one command, an exit code (docs/OPTIONS.md).
#include <fcntl.h>

#include <csignal>
#include <new>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/line_io.h"
#include "cli/shipped_model.h"

namespace deepinfer::cli {

namespace {

struct Run {
  Status operator()(const ShowText& show) const { return Output::standard().write(show.text); }
  Status operator()(const GenerateArguments& arguments) const { return run_generate(arguments); }
  Status operator()(const BatchArguments& arguments) const { return run_batch(arguments); }
  Status operator()(const ScoreArguments& arguments) const { return run_score(arguments); }
  Status operator()(const TokenizeArguments& arguments) const { return run_tokenize(arguments); }
  Status operator()(const ProtocolArguments& arguments) const { return run_protocol(arguments); }
  Status operator()(const GrammarCheckArguments& arguments) const { return run_grammar_check(arguments); }
  Status operator()(const InspectArguments& arguments) const { return run_inspect(arguments); }
  Status operator()(const DoctorArguments& arguments) const { return run_doctor(arguments); }
  Status operator()(const KernelBenchArguments& arguments) const { return run_kernel_bench(arguments); }
  Status operator()(const ModelBenchArguments& arguments) const { return run_model_bench(arguments); }
  Status operator()(const ProtocolBenchArguments& arguments) const { return run_protocol_bench(arguments); }
  Status operator()(const GrammarBenchArguments& arguments) const { return run_grammar_bench(arguments); }
};

/// Where the arguments of a command name its model; null for a command that has none.
template <typename T>
std::string* model_dir_of(T& arguments) {
  if constexpr (requires { arguments.engine.model_dir; }) {
    return &arguments.engine.model_dir;
  } else if constexpr (requires { arguments.model_dir; }) {
    return &arguments.model_dir;
  } else {
    return nullptr;
  }
}

Status run(const std::vector<std::string>& words) {
  // We throw nothing; what the standard library throws is a resource that ran out.
  try {
    Result<Arguments> arguments = parse_arguments(words);
    if (!arguments.ok()) return arguments.error();
    std::string* model_dir = std::visit([](auto& a) { return model_dir_of(a); }, *arguments);
    const Status resolved = model_dir != nullptr ? resolve_model(*model_dir) : Status();
    return resolved.ok() ? std::visit(Run{}, *arguments) : resolved;
  } catch (const std::bad_alloc&) {
    return Error{Code::kOutOfCapacity, "out of memory"};
  } catch (const std::system_error& error) {
    return Error{Code::kOutOfCapacity, std::string("the system refused a resource: ") + error.what()};
  }
}

/// Files opened later must not become a closed standard stream's stand-in.
void open_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (::fcntl(fd, F_GETFD) == -1) static_cast<void>(::open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY));
  }
}

int main(const std::vector<std::string>& words) {
  open_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of write()
  const Status status = run(words);
  if (status.ok()) return 0;
  tell("deepinfer: " + status.error().message);
  return exit_code(status.error().code);
}

}  // namespace

}  // namespace deepinfer::cli

int main(int n_words, char** words) {
  return deepinfer::cli::main(std::vector<std::string>(words + (n_words > 0 ? 1 : 0), words + n_words));
}

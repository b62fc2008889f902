// `deepinfer inspect` and `deepinfer doctor`: what the engine says of a model directory and of this machine.
#include <string>

#include "cli/commands.h"
#include "cli/line_io.h"

namespace deepinfer::cli {

Status run_inspect(const InspectArguments& arguments) {
  const Result<std::string> text = inspect_model(arguments.engine, arguments.json);
  if (!text.ok()) return text.error();
  return Output::standard().write(*text);
}

Status run_doctor(const DoctorArguments& arguments) {
  return Output::standard().write(describe_machine(arguments.json));
}

}  // namespace deepinfer::cli

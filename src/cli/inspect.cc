// `deepinfer inspect` and `deepinfer doctor`: what the engine says of a model directory, of this machine and of the
// shipped model.
#include <string>

#include "cli/commands.h"
#include "cli/line_io.h"
#include "cli/shipped_model.h"

namespace deepinfer::cli {

Status run_inspect(const InspectArguments& arguments) {
  const Result<std::string> text = inspect_model(arguments.engine, arguments.json);
  if (!text.ok()) return text.error();
  return Output::standard().write(*text);
}

Status run_doctor(const DoctorArguments& arguments) {
  const MachineReport report = describe_machine(shipped_model_dir(), arguments.json);
  if (const Status status = Output::standard().write(report.text); !status.ok()) return status;
  return report.shipped_model;
}

}  // namespace deepinfer::cli

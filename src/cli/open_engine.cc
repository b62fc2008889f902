#include <string>

#include "cli/commands.h"
#include "cli/line_io.h"
#include "cli/progress.h"

namespace deepinfer::cli {

Result<Engine> open_engine(const EngineOptions& options, LogLevel log_level) {
  ProgressBar bar("loading", ProgressBar::Unit::kBytes, log_level >= LogLevel::kInfo);
  Result<Engine> engine = Engine::open(options, bar.callback());
  bar.clear();
  if (engine.ok() && log_level >= LogLevel::kWarning) {
    for (const std::string& warning : engine->warnings()) tell("deepinfer: warning: " + warning);
  }
  return engine;
}

}  // namespace deepinfer::cli

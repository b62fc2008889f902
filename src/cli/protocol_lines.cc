// `deepinfer render` and `deepinfer parse`: JSON lines of standard input, one line of standard output each, in order.
#include <string>

#include "cli/commands.h"
#include "cli/line_io.h"
#include "deepinfer/tokenizer.h"
#include "protocol/line_service.h"

namespace deepinfer::cli {

Status run_protocol(const ProtocolArguments& arguments) {
  const Result<Tokenizer> tokenizer = Tokenizer::open(arguments.model_dir);
  if (!tokenizer.ok()) return tokenizer.error();
  const Result<protocol::SpecialTokens> specials = protocol::SpecialTokens::of(*tokenizer);
  if (!specials.ok()) return specials.error();
  const protocol::LineTools tools{*tokenizer, *specials};
  return answer_lines([&](const std::string& line, int64_t, bool* ok) {
    return arguments.is_parse ? protocol::parse_line(arguments.api, tools, line, ok)
                              : protocol::render_line(arguments.api, tools, line, ok);
  });
}

}  // namespace deepinfer::cli

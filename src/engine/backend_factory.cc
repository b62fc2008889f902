#include "engine/backend_factory.h"

#include "backend/cpu/cpu_backend.h"
#include "backend/ref/ref_backend.h"

namespace deepinfer {

std::vector<std::string> available_backends() { return {"cpu", "ref"}; }

Result<std::unique_ptr<ops::Backend>> make_backend(const std::string& name, Numerics numerics, int n_threads) {
  const bool reference = numerics == Numerics::kReference;
  const std::string resolved = name != "auto" ? name : reference ? "ref" : "cpu";
  if (resolved == "ref") return make_ref_backend(n_threads);
  if (resolved == "cpu") {
    if (reference) {
      return Error{Code::kInvalidArgument, "backend cpu does not offer numerics reference (ref does)"};
    }
    return make_cpu_backend(n_threads);
  }
  std::string known = "auto";
  for (const std::string& backend : available_backends()) known += ", " + backend;
  return Error{Code::kInvalidArgument, "backend " + resolved + " is not in this build; it has " + known};
}

}  // namespace deepinfer

#include "grammar/metaschemas.h"

namespace deepinfer::grammar {
namespace {

std::string_view without_scheme(std::string_view url) {
  for (const std::string_view scheme : {"https:", "http:"}) {
    if (url.starts_with(scheme)) return url.substr(scheme.size());
  }
  return {};
}

}  // namespace

const Metaschema* find_metaschema(std::string_view url) {
  const std::string_view place = without_scheme(url);
  if (place.empty()) return nullptr;
  for (const Metaschema& metaschema : kMetaschemas) {
    if (without_scheme(metaschema.url) == place) return &metaschema;
  }
  return nullptr;
}

}  // namespace deepinfer::grammar

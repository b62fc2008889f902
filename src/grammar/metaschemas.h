// The metaschemas of the five dialects and their vocabularies, so that references to them need no network. Any thread.
#pragma once

#include <cstddef>
#include <string_view>

namespace deepinfer::grammar {

struct Metaschema {
  std::string_view url;   // without fragment
  std::string_view text;  // JSON
};

inline constexpr size_t kNMetaschemas = 19;
extern const Metaschema kMetaschemas[kNMetaschemas];

/// The text of the metaschema or vocabulary at `url` (http and https alike, no fragment); nullptr if it is none.
const Metaschema* find_metaschema(std::string_view url);

}  // namespace deepinfer::grammar

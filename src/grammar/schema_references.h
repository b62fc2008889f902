// Where references of a schema lead: the documents (the schema itself, remotes, metaschemas), the resources inside them
// (`$id`), anchors, and the dynamic scopes. Knows nothing of what keywords assert. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "deepinfer/status.h"
#include "grammar/fuel.h"
#include "grammar/grammar.h"
#include "grammar/schema_keywords.h"
#include "text/json.h"

namespace deepinfer::grammar {

using ResourceId = int32_t;
using ScopeId = int32_t;
inline constexpr ScopeId kNoScope = 0;

/// A place in a document. `pointer` is a URI fragment ("#/$defs/a"), behind the document's URL if it is not the schema's.
struct Target {
  const json::Value* value = nullptr;
  ResourceId resource = 0;
  std::string pointer;
  bool is_dynamic = false;  // a dynamic anchor, and found by its name
};

class SchemaReferences {
 public:
  /// `options` and `fuel` must outlive the object.
  SchemaReferences(const SchemaOptions& options, Fuel& fuel);

  /// Reads the schema itself. Its root is resource 0.
  /// Errors   kInvalidArgument: no JSON, or neither object nor boolean
  Status open(std::string_view text);
  [[nodiscard]] const json::Value& root() const { return *resources_[0].root; }

  /// Why a resource can't be read, if it can't.
  struct Problem {
    Keyword keyword;
    std::string reason;
  };
  /// How the resource is read.
  [[nodiscard]] const DialectRules& rules(ResourceId resource) const { return resources_[at(resource)].rules; }
  [[nodiscard]] const std::optional<Problem>& problem(ResourceId resource) const {
    return resources_[at(resource)].problem;
  }
  [[nodiscard]] bool is_root(const json::Value& value, ResourceId resource) const {
    return resources_[at(resource)].root == &value;
  }
  /// The resource that begins at `value`, else `around`, the one that holds it.
  [[nodiscard]] ResourceId resource_at(const json::Value& value, ResourceId around) const;

  /// Where `reference` leads from inside `from`, or the reason why nowhere. Remembered.
  /// Cost     a map look-up where seen before; loads a document at most once
  using Resolved = std::variant<Target, std::string>;
  const Resolved& resolve(ResourceId from, const std::string& reference);
  /// The same for $dynamicRef and $recursiveRef, seen from `scope`.
  Resolved resolve_dynamic(ResourceId from, ScopeId scope, const std::string& reference);

  /// The dynamic scope behind entering `resource`: which of the resources entered so far was the first to hold each
  /// dynamic anchor. Equal numbers, equal scopes.
  ScopeId enter(ScopeId scope, ResourceId resource);
  [[nodiscard]] size_t n_scopes() const { return scopes_.size(); }

 private:
  struct Document {
    std::string url;  // "" for the schema itself
    json::Value root;
  };
  struct Resource {
    std::string uri;  // without fragment
    const json::Value* root = nullptr;
    std::string pointer;
    DialectRules rules;
    std::optional<Problem> problem;
    std::map<std::string, Target, std::less<>> anchors, dynamic_anchors;
  };
  struct Scope {
    ScopeId outer;
    ResourceId resource;
  };
  struct Stop;  // a place of the scan
  struct Scan;

  static size_t at(int32_t id) { return static_cast<size_t>(id); }
  Result<ResourceId> add_document(std::string url, std::string_view text);
  std::variant<DialectRules, std::string> find_rules(const json::Value& root, const DialectRules& otherwise) const;
  std::variant<DialectRules, std::string> rules_of_metaschema(std::string_view url) const;
  [[nodiscard]] std::optional<std::string_view> remote_text(std::string_view url) const;
  ResourceId add_resource(std::string uri, const json::Value& root, std::string pointer, const DialectRules& otherwise);
  void scan(ResourceId root);
  ResourceId note_identifiers(Scan& scan, size_t stop);
  void queue_subschemas(Scan& scan, size_t stop, const KeywordInfo& info, const json::Member& member,
                        ResourceId resource);
  Resolved find(ResourceId from, std::string_view reference);
  std::variant<ResourceId, std::string> find_resource(const std::string& uri);
  Resolved follow_pointer(ResourceId from, std::string_view pointer);
  const json::Value* find_member(const json::Value& object, std::string_view key);
  /// The target of the dynamic anchor `name` that was entered first; nullptr: none was. `$recursiveAnchor: true` is the
  /// anchor "".
  [[nodiscard]] const Target* find_dynamic(ScopeId scope, std::string_view name) const;

  const SchemaOptions& options_;
  Fuel& fuel_;
  std::deque<Document> documents_;
  std::deque<Resource> resources_;
  std::unordered_map<const json::Value*, ResourceId> resource_roots_;
  std::unordered_map<std::string, ResourceId> by_uri_;  // kAmbiguous: several have it
  std::map<std::pair<ResourceId, std::string>, Resolved> resolved_;
  std::unordered_map<const json::Value*, std::unordered_map<std::string_view, const json::Value*>> indices_;
  std::vector<Scope> scopes_;
  std::map<std::pair<ScopeId, ResourceId>, ScopeId> scope_ids_;
  bool any_dynamic_ = false;
};

}  // namespace deepinfer::grammar

#include "grammar/schema_references.h"

#include <algorithm>
#include <charconv>
#include <unordered_set>

#include "grammar/metaschemas.h"
#include "grammar/schema_uri.h"
#include "text/utf8.h"

namespace deepinfer::grammar {
namespace {

using json::Kind;
using json::Value;

constexpr ResourceId kAmbiguous = -1;
constexpr size_t kUriBytesMax = 2000;
constexpr size_t kNResourcesMax = 10'000;
constexpr int64_t kNValuesMax = 500'000;  // of one document
constexpr size_t kNMembersIndexed = 16;   // from here on objects get an index when members are looked up

bool is_schema(const Value& value) { return value.is(Kind::kObject) || value.is(Kind::kBool); }

std::string_view text_of(const Value& object, Keyword keyword) {
  const Value* value = object.find(keyword_name(keyword));
  return value != nullptr && value->is(Kind::kString) ? std::string_view(value->text) : std::string_view();
}

bool has_repeats(const std::vector<json::Member>& members) {
  if (members.size() > 8) {
    std::unordered_set<std::string_view> seen;
    seen.reserve(members.size());
    for (const json::Member& member : members) {
      if (!seen.insert(member.key).second) return true;
    }
    return false;
  }
  for (size_t i = 1; i < members.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (members[i].key == members[k].key) return true;
    }
  }
  return false;
}

/// Of each repeated key the last value stays, at the place of the first.
void drop_repeats(std::vector<json::Member>& members) {
  std::unordered_map<std::string, size_t> first;
  std::vector<json::Member> kept;
  for (json::Member& member : members) {
    const auto [place, is_new] = first.emplace(member.key, kept.size());
    if (is_new) {
      kept.push_back(std::move(member));
    } else {
      kept[place->second].value = std::move(member.value);
    }
  }
  members = std::move(kept);
}

void drop_all_repeats(Value& root) {
  std::vector<Value*> open{&root};
  while (!open.empty()) {
    Value& value = *open.back();
    open.pop_back();
    if (has_repeats(value.members)) drop_repeats(value.members);
    for (json::Member& member : value.members) {
      if (is_schema(member.value) || member.value.is(Kind::kArray)) open.push_back(&member.value);
    }
    for (Value& item : value.items) open.push_back(&item);
  }
}

/// False: the text holds no id and no anchor, so that nothing need be scanned.
bool may_hold_identifiers(std::string_view text) {
  for (const std::string_view mark : {"\"$id\"", "\"id\"", "nchor\"", "\\u"}) {
    if (text.find(mark) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

/// A (sub)schema that the scan has come to, and how.
struct SchemaReferences::Stop {
  const Value* value;
  size_t parent;  // index of the stop above; itself for the root
  std::string_view keyword;
  std::optional<std::string_view> name;  // of the member below the keyword
  int64_t index = -1;                    // of the item below the keyword
  ResourceId resource;                   // that the parent belongs to
};

struct SchemaReferences::Scan {
  std::vector<Stop> stops;  // also the queue

  [[nodiscard]] std::string pointer(size_t stop, const std::string& root) const {
    std::vector<size_t> way;
    for (; stops[stop].parent != stop; stop = stops[stop].parent) way.push_back(stop);
    std::string out = root;
    for (auto step = way.rbegin(); step != way.rend(); ++step) {
      const Stop& s = stops[*step];
      append_pointer_token(s.keyword, out);
      if (s.name) append_pointer_token(*s.name, out);
      if (s.index >= 0) append_pointer_token(std::to_string(s.index), out);
    }
    return out;
  }
};

SchemaReferences::SchemaReferences(const SchemaOptions& options, Fuel& fuel) : options_(options), fuel_(fuel) {
  scopes_.push_back({kNoScope, 0});
}

Status SchemaReferences::open(std::string_view text) {
  const auto added = add_document("", text);
  if (!added) return added.error();
  return {};
}

ResourceId SchemaReferences::resource_at(const Value& value, ResourceId around) const {
  if (resource_roots_.empty()) return around;
  const auto found = resource_roots_.find(&value);
  return found == resource_roots_.end() ? around : found->second;
}

Result<ResourceId> SchemaReferences::add_document(std::string url, std::string_view text) {
  auto parsed = json::parse(text, {.n_values_max = kNValuesMax});
  if (!parsed) return parsed.error();
  if (!is_schema(*parsed)) return Error{Code::kInvalidArgument, "a schema is an object or a boolean"};
  fuel_.spend(static_cast<int64_t>(text.size()) / 16);
  Document& document = documents_.emplace_back(Document{std::move(url), *std::move(parsed)});
  drop_all_repeats(document.root);

  const DialectRules otherwise{.dialect = resources_.empty() ? options_.dialect : resources_[0].rules.dialect};
  std::string uri = document.url;
  const auto rules = find_rules(document.root, otherwise);
  const DialectRules& known = rules.index() == 0 ? std::get<0>(rules) : otherwise;
  const bool ref_hides_id = known.ref_stands_alone() && document.root.find("$ref") != nullptr;
  const std::string_view id = text_of(document.root, known.id_keyword());
  if (!ref_hides_id && !split_fragment(id).before.empty()) uri = resolve_uri(uri, split_fragment(id).before);
  const ResourceId root = add_resource(std::move(uri), document.root, document.url + "#", otherwise);
  if (!document.url.empty()) by_uri_.emplace(document.url, root);
  if (may_hold_identifiers(text)) scan(root);
  return root;
}

ResourceId SchemaReferences::add_resource(std::string uri, const Value& root, std::string pointer,
                                          const DialectRules& otherwise) {
  const auto id = static_cast<ResourceId>(resources_.size());
  Resource& resource = resources_.emplace_back();
  resource.uri = std::move(uri);
  resource.root = &root;
  resource.pointer = std::move(pointer);
  const auto rules = find_rules(root, otherwise);
  if (rules.index() == 0) {
    resource.rules = std::get<0>(rules);
  } else {
    resource.rules = otherwise;
    resource.problem = Problem{Keyword::kDollarSchema, std::get<1>(rules)};
  }
  if (resource.uri.size() > kUriBytesMax) {
    resource.uri.clear();
    resource.problem =
        Problem{resource.rules.id_keyword(), "the URI is longer than " + std::to_string(kUriBytesMax) + " bytes"};
  }
  if (!resource.uri.empty()) by_uri_.emplace(resource.uri, id);  // who came first keeps it
  return id;
}

// -- dialects

std::variant<DialectRules, std::string> SchemaReferences::find_rules(const Value& root,
                                                                     const DialectRules& otherwise) const {
  const Value* schema = root.find("$schema");
  if (schema == nullptr) return otherwise;
  if (!schema->is(Kind::kString)) return "$schema is not a string";
  if (const auto dialect = dialect_of_metaschema(schema->text)) return DialectRules{.dialect = *dialect};
  return rules_of_metaschema(schema->text);
}

std::variant<DialectRules, std::string> SchemaReferences::rules_of_metaschema(std::string_view url) const {
  const std::string_view place = split_fragment(url).before;
  const auto unknown = [&](std::string_view why) {
    return "dialect " + quoted_for_message(url) + " " + std::string(why);
  };
  const auto text = remote_text(place);
  if (!text) return unknown("is unknown: draft-04, 06, 07, 2019-09 and 2020-12 are built in");
  const auto metaschema = json::parse(*text);
  if (!metaschema) return unknown("can't be read: " + metaschema.error().message);
  const auto base = dialect_of_metaschema(text_of(*metaschema, Keyword::kDollarSchema));
  if (!base) return unknown("is not described in one of the five dialects");
  DialectRules rules{.dialect = *base};
  const Value* vocabulary = metaschema->find("$vocabulary");
  if (vocabulary == nullptr || *base < Dialect::kDraft2019) return rules;
  rules.vocabularies = kCoreBit;
  for (const json::Member& member : vocabulary->members) {
    const bool required = member.value.boolean;
    if (!add_vocabulary(member.key, required, rules) && required)
      return unknown("requires the unknown vocabulary " + quoted_for_message(member.key));
  }
  return rules;
}

std::optional<std::string_view> SchemaReferences::remote_text(std::string_view url) const {
  if (options_.remotes != nullptr) {
    const auto found = options_.remotes->find(url);
    if (found != options_.remotes->end()) return found->second;
  }
  if (const Metaschema* metaschema = find_metaschema(url)) return metaschema->text;
  return std::nullopt;
}

// -- ids and anchors

void SchemaReferences::scan(ResourceId root) {
  Scan scan;
  scan.stops.push_back({resources_[at(root)].root, 0, {}, std::nullopt, -1, root});
  for (size_t stop = 0; stop < scan.stops.size() && fuel_.spend(); ++stop) {
    const Value& value = *scan.stops[stop].value;
    if (!value.is(Kind::kObject)) continue;
    const ResourceId resource = note_identifiers(scan, stop);
    for (const json::Member& member : value.members) {
      const KeywordInfo* info = find_keyword(member.key);
      if (info == nullptr || info->holds == Holds::kNoSchema || !resources_[at(resource)].rules.defines(*info))
        continue;
      queue_subschemas(scan, stop, *info, member, resource);
    }
  }
}

ResourceId SchemaReferences::note_identifiers(Scan& scan, size_t stop) {
  const Value& value = *scan.stops[stop].value;
  ResourceId resource = scan.stops[stop].resource;
  // The dialect around decides whether this is a resource; `$schema` counts only if it is one.
  const DialectRules rules = resources_[at(resource)].rules;
  if (rules.ref_stands_alone() && value.find("$ref") != nullptr) return resource;

  const Resource& outer = resources_[at(resource)];
  const auto [before, fragment] = split_fragment(text_of(value, rules.id_keyword()));
  const auto pointer = [&] { return scan.pointer(stop, resources_[at(scan.stops[0].resource)].pointer); };
  const bool is_root = stop == 0 || !before.empty();
  if (stop > 0 && !before.empty() && resources_.size() == kNResourcesMax) {
    resources_[0].problem =
        Problem{rules.id_keyword(), "there are more than " + std::to_string(kNResourcesMax) + " ids"};
  } else if (stop > 0 && !before.empty()) {
    std::string uri = resolve_uri(outer.uri, before);
    const auto known = by_uri_.find(uri);
    const bool ambiguous = known != by_uri_.end() && known->second >= scan.stops[0].resource;
    resource = add_resource(uri, value, pointer(), outer.rules);
    if (ambiguous) by_uri_[uri] = kAmbiguous;
    resource_roots_.emplace(&value, resource);
  }
  Resource& here = resources_[at(resource)];
  const auto add_anchor = [&](std::string_view name, bool dynamic) {
    if (name.empty()) return;
    const auto [place, is_new] = here.anchors.emplace(name, Target{&value, resource, pointer(), dynamic});
    if (!is_new && place->second.value != &value) place->second.value = nullptr;  // ambiguous
  };
  const auto add_dynamic = [&](std::string_view name) {
    here.dynamic_anchors.emplace(name, Target{&value, resource, pointer(), true});
    any_dynamic_ = true;
  };
  if (here.rules.dialect <= Dialect::kDraft7) {
    if (fragment && !fragment->starts_with('/')) add_anchor(*fragment, false);
    return resource;
  }
  add_anchor(text_of(value, Keyword::kAnchor), false);
  if (here.rules.dialect == Dialect::kDraft2019) {
    const Value* recursive = value.find("$recursiveAnchor");
    if (is_root && recursive != nullptr && recursive->boolean) add_dynamic("");
  } else if (const std::string_view name = text_of(value, Keyword::kDynamicAnchor); !name.empty()) {
    add_anchor(name, true);
    add_dynamic(name);
  }
  return resource;
}

void SchemaReferences::queue_subschemas(Scan& scan, size_t stop, const KeywordInfo& info, const json::Member& member,
                                        ResourceId resource) {
  const auto queue = [&](const Value& value, std::optional<std::string_view> name, int64_t index) {
    if (value.is(Kind::kObject)) scan.stops.push_back({&value, stop, info.name, name, index, resource});
  };
  switch (info.holds) {
    case Holds::kNoSchema:
      return;
    case Holds::kSchema:
      return queue(member.value, std::nullopt, -1);
    case Holds::kSchemas:
    case Holds::kSchemaOrSchemas:
      if (info.holds == Holds::kSchemaOrSchemas) queue(member.value, std::nullopt, -1);
      for (size_t i = 0; i < member.value.items.size(); ++i)
        queue(member.value.items[i], std::nullopt, static_cast<int64_t>(i));
      return;
    case Holds::kSchemaMap:
    case Holds::kDependencies:
      for (const json::Member& inner : member.value.members) queue(inner.value, inner.key, -1);
      return;
  }
}

// -- references

const SchemaReferences::Resolved& SchemaReferences::resolve(ResourceId from, const std::string& reference) {
  const auto [place, is_new] = resolved_.try_emplace({from, reference});
  if (is_new) place->second = find(from, reference);
  return place->second;
}

SchemaReferences::Resolved SchemaReferences::resolve_dynamic(ResourceId from, ScopeId scope,
                                                             const std::string& reference) {
  const Resolved& first = resolve(from, reference);
  if (first.index() == 1) return first;
  const Target& target = std::get<0>(first);
  const std::string name = decode_percent(split_fragment(reference).fragment.value_or("")).value_or("");
  const bool is_recursive = name.empty() && resources_[at(target.resource)].dynamic_anchors.contains("");
  if (!target.is_dynamic && !is_recursive) return first;
  const Target* outermost = find_dynamic(scope, name);
  return outermost != nullptr ? *outermost : target;
}

SchemaReferences::Resolved SchemaReferences::find(ResourceId from, std::string_view reference) {
  const auto [before, fragment] = split_fragment(reference);
  ResourceId resource = from;
  if (!before.empty()) {
    const auto found = find_resource(resolve_uri(resources_[at(from)].uri, before));
    if (found.index() == 1) return std::get<1>(found);
    resource = std::get<0>(found);
  }
  const Resource& target = resources_[at(resource)];
  if (!fragment || fragment->empty()) return Target{target.root, resource, target.pointer};
  const auto decoded = decode_percent(*fragment);
  if (!decoded) return "its fragment is not percent-encoded text";
  if (decoded->starts_with('/')) return follow_pointer(resource, *decoded);
  const auto anchor = target.anchors.find(*decoded);
  if (anchor == target.anchors.end()) return "there is no anchor " + quoted_for_message(*decoded);
  if (anchor->second.value == nullptr) return "several schemas have the anchor " + quoted_for_message(*decoded);
  return anchor->second;
}

std::variant<ResourceId, std::string> SchemaReferences::find_resource(const std::string& uri) {
  if (const auto found = by_uri_.find(uri); found != by_uri_.end()) {
    if (found->second == kAmbiguous) return "several schemas have the id " + quoted_for_message(uri);
    return found->second;
  }
  const auto text = remote_text(uri);
  if (!text) return "there is no schema " + quoted_for_message(uri) + " (nothing is fetched)";
  auto added = add_document(uri, *text);
  if (!added) return "the schema " + quoted_for_message(uri) + " can't be read: " + added.error().message;
  return *added;
}

SchemaReferences::Resolved SchemaReferences::follow_pointer(ResourceId from, std::string_view pointer) {
  const auto tokens = split_pointer(pointer);
  if (!tokens) return "its fragment is no JSON pointer";
  Target here{resources_[at(from)].root, from, resources_[at(from)].pointer};
  for (const std::string& token : *tokens) {
    fuel_.spend();
    const Value* next = nullptr;
    if (here.value->is(Kind::kArray)) {
      size_t index = 0;
      const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), index);
      const bool is_index =
          error == std::errc() && end == token.data() + token.size() && (token.size() == 1 || !token.starts_with('0'));
      if (is_index && index < here.value->items.size()) next = &here.value->items[index];
    } else {
      next = find_member(*here.value, token);
    }
    if (next == nullptr) return "there is nothing at " + quoted_for_message(pointer);
    here.value = next;
    here.resource = resource_at(*next, here.resource);
    append_pointer_token(token, here.pointer);
  }
  if (!is_schema(*here.value)) return "there is no schema at " + quoted_for_message(pointer);
  return here;
}

const Value* SchemaReferences::find_member(const Value& object, std::string_view key) {
  if (object.members.size() < kNMembersIndexed) return object.find(key);
  auto [place, is_new] = indices_.try_emplace(&object);
  if (is_new) {
    place->second.reserve(object.members.size());
    for (const json::Member& member : object.members) place->second.emplace(member.key, &member.value);
  }
  const auto found = place->second.find(key);
  return found == place->second.end() ? nullptr : found->second;
}

// -- dynamic scopes

ScopeId SchemaReferences::enter(ScopeId scope, ResourceId resource) {
  if (!any_dynamic_) return scope;
  const auto& anchors = resources_[at(resource)].dynamic_anchors;
  const bool adds = std::any_of(anchors.begin(), anchors.end(),
                                [&](const auto& anchor) { return find_dynamic(scope, anchor.first) == nullptr; });
  if (!adds) return scope;
  const auto [place, is_new] = scope_ids_.try_emplace({scope, resource}, static_cast<ScopeId>(scopes_.size()));
  if (is_new) scopes_.push_back({scope, resource});
  return place->second;
}

const Target* SchemaReferences::find_dynamic(ScopeId scope, std::string_view name) const {
  const Target* outermost = nullptr;
  for (; scope != kNoScope; scope = scopes_[at(scope)].outer) {
    const auto& anchors = resources_[at(scopes_[at(scope)].resource)].dynamic_anchors;
    if (const auto found = anchors.find(name); found != anchors.end()) outermost = &found->second;
  }
  return outermost;
}

}  // namespace deepinfer::grammar

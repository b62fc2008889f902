// From the schema's text to nodes: a node for each (place, dynamic scope) that is reached from the root, made one after
// another from a list, so that no schema is too deep. What a single value may be is read in schema_values.cc, where
// references lead in schema_references.cc.
#include "grammar/schema_reader.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "grammar/schema_keywords.h"
#include "grammar/schema_references.h"
#include "grammar/schema_simplify.h"
#include "grammar/schema_uri.h"
#include "grammar/schema_values.h"
#include "text/utf8.h"

namespace deepinfer::grammar {
namespace {

using json::Kind;
using json::Value;

constexpr size_t kNNodesMax = 100'000;
constexpr int64_t kCountMax = int64_t{1} << 53;  // of members and items

class SchemaReader final : ConstantNodes {
 public:
  SchemaReader(Languages& languages, const SchemaOptions& options, Fuel& fuel)
      : context_{languages, options, fuel}, references_(options, fuel), values_(context_) {
    nodes_.resize(2);
    nodes_[kTrueNode].pointer = nodes_[kFalseNode].pointer = "#";
    nodes_[kFalseNode].types = 0;
  }

  std::variant<ReadSchema, Refusal> read(std::string_view text) {
    if (const Status opened = references_.open(text); !opened) {
      context_.refuse("#", "", opened.error().message);
      return *std::move(context_.refusal);
    }
    nodes_.reserve(std::min(text.size() / 64 + 8, size_t{4096}));
    ids_.reserve(nodes_.capacity());
    Schema schema;
    const auto root = node_of(
        {&references_.root(), 0, references_.enter(kNoScope, 0)}, [] { return "#"; }, true);
    bool good = root.has_value();
    while (good && !pending_.empty()) {
      const Pending next = pending_.back();
      pending_.pop_back();
      good = next.is_constant ? read_constant(next) : read_schema(next);
      if (good && !context_.fuel.spend()) good = refuse_by_fuel(nodes_[at(next.id)].pointer);
    }
    if (context_.fuel.empty()) {  // what looked wrong may only have been out of reach
      context_.refusal.reset();
      good = refuse_by_fuel("#");
    }
    if (good && context_.languages.exhausted())
      good =
          context_.refuse("#", "", "the patterns and enums of the schema need more memory than one grammar may take");
    schema.nodes = std::move(nodes_);
    schema.root = root.value_or(kFalseNode);
    if (good) good = check_cycles(schema);
    if (!good) return *std::move(context_.refusal);
    simplify(schema);
    drop_repeated_ignored();
    return ReadSchema{std::move(schema), std::move(context_.ignored)};
  }

 private:
  /// A schema in a document as seen from a dynamic scope.
  struct Place {
    const Value* value;
    ResourceId resource;
    ScopeId scope;
    bool operator==(const Place&) const = default;
  };
  struct PlaceHash {
    size_t operator()(const Place& place) const {
      return std::hash<const void*>()(place.value) * 31 + static_cast<size_t>(place.resource) * 1009 +
             static_cast<size_t>(place.scope) * 9176;
    }
  };
  struct Pending {
    NodeId id;
    Place place;
    bool is_constant;
  };
  struct Reference {
    NodeId from, to;
    Keyword keyword;
  };

  static size_t at(NodeId id) { return static_cast<size_t>(id); }

  bool refuse(const Node& node, Keyword keyword, std::string_view what) {
    const std::string name(keyword_name(keyword));
    return context_.refuse(keyword_pointer(node.pointer, keyword), name, name + " " + std::string(what));
  }

  bool refuse_by_fuel(const std::string& pointer) {
    return context_.refuse(pointer, "", "reading the schema takes more work than the limit allows");
  }

  /// Names are copied for each dynamic scope: fuel bounds their memory, too.
  void charge(const std::string& name) { context_.fuel.spend(16 + static_cast<int64_t>(name.size() / 4)); }

  // -- nodes

  NodeId add_node(Node node) override {
    nodes_.push_back(std::move(node));
    return static_cast<NodeId>(nodes_.size() - 1);
  }

  NodeId add_constant(const Value& value, std::string pointer) override {
    Node node;
    node.pointer = std::move(pointer);
    const NodeId id = add_node(std::move(node));
    pending_.push_back({id, {&value, 0, kNoScope}, true});
    return id;
  }

  /// The node of the schema at `place`; `pointer()` is asked only if it is new. Nothing: refused.
  template <typename Pointer>
  std::optional<NodeId> node_of(Place place, Pointer pointer, bool may_be_boolean) {
    const Value& value = *place.value;
    if (value.is(Kind::kBool) && may_be_boolean) return value.boolean ? kTrueNode : kFalseNode;
    if (!value.is(Kind::kObject)) {
      const std::string_view what =
          value.is(Kind::kBool) ? "draft-04 has no boolean schemas here" : "a schema must stand here";
      context_.refuse(pointer(), "", std::string(what));
      return std::nullopt;
    }
    if (value.members.empty()) return kTrueNode;
    const ResourceId resource = references_.resource_at(value, place.resource);
    if (resource != place.resource) {
      place.resource = resource;
      place.scope = references_.enter(place.scope, resource);
    }
    const auto [found, is_new] = ids_.try_emplace(place, static_cast<NodeId>(nodes_.size()));
    if (is_new) {
      nodes_.emplace_back().pointer = pointer();
      pending_.push_back({found->second, place, false});
    }
    return found->second;
  }

  /// The object that is being read.
  struct Reading {
    const Pending& pending;
    const DialectRules& rules;
    KeywordValues keywords;
    Node& node;
  };

  [[nodiscard]] static bool booleans_allowed(const Reading& reading, Keyword keyword) {
    return reading.rules.dialect != Dialect::kDraft4 || keyword == Keyword::kAdditionalProperties ||
           keyword == Keyword::kAdditionalItems;
  }

  /// The node of a schema below a keyword (and below a name or index there).
  template <typename... Token>
  bool child(const Reading& reading, Keyword keyword, const Value& value, NodeId& id, const Token&... token) {
    const auto pointer = [&] {
      std::string out = keyword_pointer(reading.node.pointer, keyword);
      (append_pointer_token(token, out), ...);
      return out;
    };
    const Place& here = reading.pending.place;
    const auto found = node_of({&value, here.resource, here.scope}, pointer, booleans_allowed(reading, keyword));
    if (!found) {
      if (context_.refusal->keyword.empty()) context_.refusal->keyword = keyword_name(keyword);
      return false;
    }
    id = *found;
    return true;
  }

  bool child_if_there(const Reading& reading, Keyword keyword, NodeId& id) {
    const Value* value = reading.keywords[keyword];
    return value == nullptr || child(reading, keyword, *value, id);
  }

  bool optional_child(const Reading& reading, Keyword keyword, std::optional<NodeId>& id) {
    if (reading.keywords[keyword] == nullptr) return true;
    return child(reading, keyword, *reading.keywords[keyword], id.emplace(kTrueNode));
  }

  /// The nodes of an array of schemas.
  bool children(const Reading& reading, Keyword keyword, std::vector<NodeId>& ids) {
    const Value& value = *reading.keywords[keyword];
    if (!value.is(Kind::kArray)) return refuse(reading.node, keyword, "is not an array of schemas");
    ids.reserve(value.items.size());
    for (size_t i = 0; i < value.items.size(); ++i) {
      if (!child(reading, keyword, value.items[i], ids.emplace_back(), std::to_string(i))) return false;
    }
    return true;
  }

  bool is_object(const Reading& reading, Keyword keyword) {
    return reading.keywords[keyword]->is(Kind::kObject) || refuse(reading.node, keyword, "is not an object");
  }

  // -- one schema object

  bool read_schema(const Pending& pending) {
    Node node;
    node.pointer = std::move(nodes_[at(pending.id)].pointer);
    for (const ResourceId resource : {ResourceId{0}, pending.place.resource}) {
      if (const auto& problem = references_.problem(resource))
        return context_.refuse(keyword_pointer(node.pointer, problem->keyword), keyword_name(problem->keyword),
                               problem->reason);
    }
    if (nodes_.size() + context_.ignored.size() > kNNodesMax)
      return context_.refuse(
          node.pointer, "",
          "the schema has more than " + std::to_string(kNNodesMax) + " subschemas, constants and unknown keywords");
    Reading reading{pending, references_.rules(pending.place.resource), {}, node};
    const bool good = gather(reading) && read_keywords(reading);
    nodes_[at(pending.id)] = std::move(node);
    return good;
  }

  bool read_keywords(const Reading& reading) {
    Node& node = reading.node;
    if (!read_references(reading)) return false;
    if (reading.rules.ref_stands_alone() && reading.keywords[Keyword::kRef] != nullptr) return true;
    if (!values_.read(reading.keywords, reading.rules, node, *this)) return false;
    if ((node.types & kObjectBit) != 0 && !(read_members(reading) && read_dependencies(reading))) return false;
    if ((node.types & kArrayBit) != 0 && !read_items(reading)) return false;
    return read_in_place(reading);
  }

  /// Sorts the members into keywords; what the dialect does not define is noted as ignored.
  bool gather(Reading& reading) {
    const Value& schema = *reading.pending.place.value;
    context_.fuel.spend(static_cast<int64_t>(schema.members.size()));
    const bool ref_alone = reading.rules.ref_stands_alone() && schema.find("$ref") != nullptr;
    for (const json::Member& member : schema.members) {
      const KeywordInfo* info = find_keyword(member.key);
      bool counts = info != nullptr && reading.rules.defines(*info);
      if (counts && ref_alone)
        counts = info->keyword == Keyword::kRef || info->keyword == Keyword::kDefinitions ||
                 info->keyword == Keyword::kDollarSchema || info->annotation;
      if (counts && info->keyword == reading.rules.id_keyword()) counts = is_id(member.value, reading.rules);
      if (counts && info->keyword == Keyword::kDollarSchema)
        counts = references_.is_root(schema, reading.pending.place.resource);
      if (counts) {
        reading.keywords.values[static_cast<size_t>(info->keyword)] = &member.value;
      } else {
        std::string pointer = reading.node.pointer;
        append_pointer_token(member.key, pointer);
        context_.ignored.push_back({std::move(pointer), member.key});
      }
    }
    return true;
  }

  /// False: an id that names nothing ("#/definitions/a").
  static bool is_id(const Value& id, const DialectRules& rules) {
    if (!id.is(Kind::kString)) return false;
    const auto [before, fragment] = split_fragment(id.text);
    if (!fragment || fragment->empty() || !before.empty()) return true;
    return rules.dialect <= Dialect::kDraft7 && !fragment->starts_with('/');
  }

  bool read_references(const Reading& reading) {
    for (const Keyword keyword : {Keyword::kRef, Keyword::kDynamicRef, Keyword::kRecursiveRef}) {
      const Value* value = reading.keywords[keyword];
      if (value == nullptr) continue;
      if (!value->is(Kind::kString)) return refuse(reading.node, keyword, "is not a string");
      const Place& here = reading.pending.place;
      const bool plain = keyword == Keyword::kRef;
      const auto resolved = plain ? references_.resolve(here.resource, value->text)
                                  : references_.resolve_dynamic(here.resource, here.scope, value->text);
      if (resolved.index() == 1)
        return refuse(reading.node, keyword,
                      quoted_for_message(value->text) + " leads nowhere: " + std::get<1>(resolved));
      const Target& target = std::get<0>(resolved);
      const Place place{target.value, target.resource, references_.enter(here.scope, target.resource)};
      const auto id = node_of(
          place, [&] { return target.pointer; }, booleans_allowed(reading, keyword));
      if (!id) {
        context_.refusal->keyword = keyword_name(keyword);
        return false;
      }
      reading.node.all_of.push_back(*id);
      references_made_.push_back({reading.pending.id, *id, keyword});
    }
    return true;
  }

  // -- objects

  bool read_members(const Reading& reading) {
    Node& node = reading.node;
    if (reading.keywords[Keyword::kProperties] != nullptr) {
      if (!is_object(reading, Keyword::kProperties)) return false;
      node.has_properties_keyword = true;
      const auto& members = reading.keywords[Keyword::kProperties]->members;
      node.properties.reserve(members.size());
      for (const json::Member& member : members) {
        auto& [name, id] = node.properties.emplace_back(member.key, kTrueNode);
        charge(name);
        if (!child(reading, Keyword::kProperties, member.value, id, member.key)) return false;
      }
    }
    if (reading.keywords[Keyword::kPatternProperties] != nullptr) {
      if (!is_object(reading, Keyword::kPatternProperties)) return false;
      for (const json::Member& member : reading.keywords[Keyword::kPatternProperties]->members) {
        std::string pointer = keyword_pointer(node.pointer, Keyword::kPatternProperties);
        append_pointer_token(member.key, pointer);
        const auto names = values_.pattern(member.key, pointer, Keyword::kPatternProperties);
        if (!names) return false;
        auto& [lang, id] = node.pattern_properties.emplace_back(*names, kTrueNode);
        if (!child(reading, Keyword::kPatternProperties, member.value, id, member.key)) return false;
      }
    }
    if (const Value* required = reading.keywords[Keyword::kRequired]) {
      if (!read_names(*required, node.required)) return refuse(node, Keyword::kRequired, "is not an array of names");
    }
    node.has_additional_properties = reading.keywords[Keyword::kAdditionalProperties] != nullptr;
    return child_if_there(reading, Keyword::kAdditionalProperties, node.additional_properties) &&
           child_if_there(reading, Keyword::kPropertyNames, node.property_names) &&
           optional_child(reading, Keyword::kUnevaluatedProperties, node.unevaluated_properties) &&
           values_.read_count(reading.keywords, Keyword::kMinProperties, node, kCountMax, node.min_properties) &&
           values_.read_count(reading.keywords, Keyword::kMaxProperties, node, kCountMax, node.max_properties);
  }

  /// The strings of an array, each once. False: it is something else.
  bool read_names(const Value& list, std::vector<std::string>& names) {
    if (!list.is(Kind::kArray)) return false;
    std::unordered_set<std::string_view> seen;
    for (const Value& item : list.items) {
      if (!item.is(Kind::kString)) return false;
      charge(item.text);
      if (seen.insert(item.text).second) names.push_back(item.text);
    }
    return true;
  }

  bool read_dependencies(const Reading& reading) {
    Node& node = reading.node;
    for (const Keyword keyword : {Keyword::kDependencies, Keyword::kDependentRequired, Keyword::kDependentSchemas}) {
      const Value* value = reading.keywords[keyword];
      if (value == nullptr) continue;
      if (!is_object(reading, keyword)) return false;
      for (const json::Member& member : value->members) {
        const bool is_list = keyword == Keyword::kDependentRequired ||
                             (keyword == Keyword::kDependencies && member.value.is(Kind::kArray));
        if (is_list) {
          auto& names = node.dependent_required.emplace_back(member.key, std::vector<std::string>()).second;
          if (!read_names(member.value, names)) return refuse(node, keyword, "holds what is not an array of names");
        } else {
          NodeId& id = node.dependent_schemas.emplace_back(member.key, kTrueNode).second;
          if (!child(reading, keyword, member.value, id, member.key)) return false;
        }
      }
    }
    return true;
  }

  // -- arrays

  bool read_items(const Reading& reading) {
    Node& node = reading.node;
    const Value* items = reading.keywords[Keyword::kItems];
    if (reading.keywords[Keyword::kPrefixItems] != nullptr &&
        !children(reading, Keyword::kPrefixItems, node.prefix_items))
      return false;
    if (items != nullptr && items->is(Kind::kArray)) {
      if (reading.rules.dialect == Dialect::kDraft2020)
        return refuse(node, Keyword::kItems, "is an array, which 2020-12 calls prefixItems");
      if (!children(reading, Keyword::kItems, node.prefix_items) ||
          !child_if_there(reading, Keyword::kAdditionalItems, node.items))
        return false;
      node.has_items = reading.keywords[Keyword::kAdditionalItems] != nullptr;
    } else if (items != nullptr) {
      if (!child(reading, Keyword::kItems, *items, node.items)) return false;
      node.has_items = true;
    }
    if (const Value* unique = reading.keywords[Keyword::kUniqueItems]) {
      if (!unique->is(Kind::kBool)) return refuse(node, Keyword::kUniqueItems, "is not a boolean");
      node.unique_items = unique->boolean;
    }
    node.contains_evaluates = reading.rules.dialect == Dialect::kDraft2020;
    return optional_child(reading, Keyword::kContains, node.contains) &&
           optional_child(reading, Keyword::kUnevaluatedItems, node.unevaluated_items) &&
           values_.read_count(reading.keywords, Keyword::kMinContains, node, kCountMax, node.min_contains) &&
           values_.read_count(reading.keywords, Keyword::kMaxContains, node, kCountMax, node.max_contains) &&
           values_.read_count(reading.keywords, Keyword::kMinItems, node, kCountMax, node.min_items) &&
           values_.read_count(reading.keywords, Keyword::kMaxItems, node, kCountMax, node.max_items);
  }

  // -- the same value under other schemas

  bool read_in_place(const Reading& reading) {
    Node& node = reading.node;
    for (const Keyword keyword : {Keyword::kAllOf, Keyword::kAnyOf, Keyword::kOneOf}) {
      if (reading.keywords[keyword] == nullptr) continue;
      std::vector<NodeId> ids;
      if (!children(reading, keyword, ids)) return false;
      if (ids.empty()) return refuse(node, keyword, "is empty");
      if (keyword == Keyword::kAllOf) node.all_of.insert(node.all_of.end(), ids.begin(), ids.end());
      if (keyword == Keyword::kAnyOf) node.any_of.push_back(std::move(ids));
      if (keyword == Keyword::kOneOf) node.one_of.push_back(std::move(ids));
    }
    if (const Value* value = reading.keywords[Keyword::kNot]) {
      if (!child(reading, Keyword::kNot, *value, node.none_of.emplace_back())) return false;
    }
    const Value* condition = reading.keywords[Keyword::kIf];
    if (condition == nullptr) return true;
    Node::Conditional conditional{kTrueNode, kTrueNode, kTrueNode};
    if (!child(reading, Keyword::kIf, *condition, conditional.if_node) ||
        !child_if_there(reading, Keyword::kThen, conditional.then_node) ||
        !child_if_there(reading, Keyword::kElse, conditional.else_node))
      return false;
    node.conditionals.push_back(conditional);
    return true;
  }

  // -- constants

  /// The node of an array or object of a const or enum, which is valid only if equal.
  bool read_constant(const Pending& pending) {
    const Value& value = *pending.place.value;
    Node node;
    node.pointer = std::move(nodes_[at(pending.id)].pointer);
    const auto part = [&](const Value& inner, std::string_view token, NodeId& id) {
      std::string pointer = node.pointer;
      append_pointer_token(token, pointer);
      if (inner.is(Kind::kArray) || inner.is(Kind::kObject)) {
        id = add_constant(inner, std::move(pointer));
        return true;
      }
      Node scalar;
      scalar.pointer = std::move(pointer);
      const bool good = values_.restrict_to_scalar(inner, scalar);
      id = add_node(std::move(scalar));
      return good;
    };
    if (value.is(Kind::kArray)) {
      node.types = kArrayBit;
      node.items = kFalseNode;
      node.min_items = node.max_items = static_cast<int64_t>(value.items.size());
      for (size_t i = 0; i < value.items.size(); ++i) {
        if (!part(value.items[i], std::to_string(i), node.prefix_items.emplace_back())) return false;
      }
    } else {
      node.types = kObjectBit;
      node.additional_properties = kFalseNode;
      node.has_properties_keyword = true;
      for (const json::Member& member : value.members) {
        node.required.push_back(member.key);
        if (!part(member.value, member.key, node.properties.emplace_back(member.key, kTrueNode).second)) return false;
      }
    }
    nodes_[at(pending.id)] = std::move(node);
    return true;
  }

  // -- at the end

  bool check_cycles(const Schema& schema) {
    if (references_made_.empty()) return true;
    const std::vector<NodeId> cycle = find_in_place_cycle(schema);
    for (size_t i = 0; i < cycle.size(); ++i) {
      const NodeId to = cycle[(i + 1) % cycle.size()];
      const auto made = std::find_if(references_made_.begin(), references_made_.end(), [&](const Reference& reference) {
        return reference.from == cycle[i] && reference.to == to;
      });
      if (made == references_made_.end()) continue;
      return refuse(schema.nodes[at(cycle[i])], made->keyword,
                    "leads back to itself without a step into a member or an item");
    }
    return true;
  }

  /// Several dynamic scopes see the same keyword several times.
  void drop_repeated_ignored() {
    if (references_.n_scopes() == 1) return;
    std::unordered_set<std::string> seen;
    std::erase_if(context_.ignored, [&](const Ignored& ignored) { return !seen.insert(ignored.pointer).second; });
  }

  ReadContext context_;
  SchemaReferences references_;
  ValueReader values_;
  std::vector<Node> nodes_;
  std::vector<Pending> pending_;
  std::unordered_map<Place, NodeId, PlaceHash> ids_;
  std::vector<Reference> references_made_;
};

}  // namespace

std::variant<ReadSchema, Refusal> read_schema(Languages& languages, std::string_view text, const SchemaOptions& options,
                                              Fuel& fuel) {
  return SchemaReader(languages, options, fuel).read(text);
}

}  // namespace deepinfer::grammar

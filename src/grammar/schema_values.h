// Keywords about single values: type, enum, const, and the limits of strings and numbers, made into the languages and
// sets of a Node. Knows nothing of subschemas and references. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/fuel.h"
#include "grammar/grammar.h"
#include "grammar/language.h"
#include "grammar/schema.h"
#include "grammar/schema_keywords.h"
#include "text/json.h"

namespace deepinfer::grammar {

/// What all parts of one reading share. The first refusal is kept.
struct ReadContext {
  Languages& languages;
  const SchemaOptions& options;
  Fuel& fuel;
  std::optional<Refusal> refusal = std::nullopt;
  std::vector<Ignored> ignored = {};

  /// Always false. `pointer`: of the keyword.
  bool refuse(std::string pointer, std::string_view keyword, std::string reason);
};

/// The keywords of one schema object that its dialect defines.
struct KeywordValues {
  std::array<const json::Value*, kNKeywords> values{};

  [[nodiscard]] const json::Value* operator[](Keyword keyword) const { return values[static_cast<size_t>(keyword)]; }
};

/// Gives a node of its own to each array and object of an enum or const.
class ConstantNodes {
 public:
  virtual ~ConstantNodes() = default;
  virtual NodeId add_constant(const json::Value& value, std::string pointer) = 0;
  virtual NodeId add_node(Node node) = 0;
};

class ValueReader {
 public:
  explicit ValueReader(ReadContext& context) : context_(context) {}

  /// Reads all such keywords into `node`, whose pointer is set. False: refused.
  bool read(const KeywordValues& keywords, const DialectRules& rules, Node& node, ConstantNodes& constants);
  /// Restricts `node` to the scalar `value`.
  bool restrict_to_scalar(const json::Value& value, Node& node);
  /// The texts that hold a match of `pattern`; nothing: refused.
  std::optional<Lang> pattern(const std::string& text, const std::string& pointer, Keyword keyword);
  /// A count (minLength, maxItems ..) into `count`, if the keyword is there. Maxima above `limit` become `limit`, minima
  /// above are refused.
  bool read_count(const KeywordValues& keywords, Keyword keyword, const Node& node, int64_t limit, int64_t& count);

 private:
  struct Scalars;
  /// Languages whose intersection a node gets, each perhaps with a wider one (Node::text_at_most).
  struct Parts {
    std::vector<Lang> surely, maybe;
    bool is_exact = true;

    void add(Lang lang, std::optional<Lang> at_most = std::nullopt);
    Lang all_surely(Languages& languages) const;  // precondition: there are some
    std::optional<Lang> all_at_most(Languages& languages) const;
  };
  struct Format {
    std::optional<Lang> surely, at_most;
  };
  enum class NumberSyntax : uint8_t { kAny, kInteger, kIntegerDigits };

  bool read_types(const json::Value* type, const DialectRules& rules, Node& node, NumberSyntax& syntax);
  bool read_strings(const KeywordValues& keywords, Node& node, Parts& parts);
  bool read_format(const json::Value& format, const DialectRules& rules, const Node& node, Parts& parts);
  bool read_numbers(const KeywordValues& keywords, const DialectRules& rules, NumberSyntax syntax, Node& node);
  bool read_limit(const KeywordValues& keywords, Keyword keyword, const Node& node, std::string_view& limit);
  bool add_limits(const struct NumberLimits& limits, const Node& node, Parts& parts);
  bool restrict_to(const std::vector<const json::Value*>& values, Keyword keyword, Node& node,
                   ConstantNodes& constants);
  bool apply_scalars(Scalars& scalars, Node& node);
  Lang union_of_texts(std::vector<std::string_view> texts);
  Lang integer_digits();
  Lang with_exponents(Lang some);

  ReadContext& context_;
  std::map<std::string, Lang, std::less<>> patterns_;
  std::map<std::string, Format, std::less<>> formats_;
  std::map<std::string, Lang, std::less<>> limits_, equal_numbers_;
  std::optional<Lang> integer_digits_, exponents_;
};

/// `pointer` with one more keyword.
std::string keyword_pointer(const std::string& pointer, Keyword keyword);

}  // namespace deepinfer::grammar

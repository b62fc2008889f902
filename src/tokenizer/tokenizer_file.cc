#include "tokenizer/tokenizer_file.h"

#include <simdjson.h>

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "base/check.h"
#include "text/utf8.h"
#include "tokenizer/pre_tokenizer.h"

namespace deepinfer {
namespace {

namespace dom = simdjson::dom;

Error bad(std::string what) { return {Code::kBadModelFile, "tokenizer.json: " + std::move(what)}; }

Error refused(const std::string& where, const dom::element& value) {
  std::string shown = simdjson::minify(value);  // has no raw control characters
  if (shown.size() > 120) shown = replace_ill_formed(shown.substr(0, 117)) + "...";
  return bad(where + " = " + shown + " is not supported");
}

/// An object of the file: where it is, for messages, and its members looked up by key.
class Object {
 public:
  /// Refuses a value that is no object, a key outside `known`, and a repeated key.
  static Result<Object> create(std::string where, const dom::element& value,
                               std::initializer_list<std::string_view> known) {
    dom::object object;
    if (value.get(object) != simdjson::SUCCESS) return bad(where + " is not an object");
    std::vector<std::string_view> seen;
    for (const auto [key, member] : object) {
      if (std::find(known.begin(), known.end(), key) == known.end())
        return bad("unknown key " + quoted_for_message(key) + " in " + where);
      if (std::find(seen.begin(), seen.end(), key) != seen.end())
        return bad("repeated key " + quoted_for_message(key) + " in " + where);
      seen.push_back(key);
    }
    return Object(std::move(where), object);
  }

  [[nodiscard]] std::string path(std::string_view key) const { return where_ + "." + std::string(key); }

  [[nodiscard]] std::optional<dom::element> find(std::string_view key) const {
    dom::element value;
    if (object_.at_key(key).get(value) != simdjson::SUCCESS) return std::nullopt;
    return value;
  }

  [[nodiscard]] Result<dom::element> at(std::string_view key) const {
    const auto value = find(key);
    if (!value) return bad("missing " + path(key));
    return *value;
  }

  [[nodiscard]] Result<std::string_view> string(std::string_view key) const {
    DI_ASSIGN_OR_RETURN(const dom::element value, at(key));
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS) return bad(path(key) + " is not a string");
    return text;
  }

  [[nodiscard]] Result<bool> boolean(std::string_view key) const {
    DI_ASSIGN_OR_RETURN(const dom::element value, at(key));
    bool flag = false;
    if (value.get(flag) != simdjson::SUCCESS) return bad(path(key) + " is not true or false");
    return flag;
  }

  /// The key is absent, null, false, 0 or "": all of them mean that the feature is off.
  [[nodiscard]] Status off(std::string_view key) const {
    const auto value = find(key);
    if (!value || value->is_null()) return {};
    bool flag = true;
    if (value->get(flag) == simdjson::SUCCESS && !flag) return {};
    double number = 1;
    if (value->get(number) == simdjson::SUCCESS && number == 0) return {};
    std::string_view text = "x";
    if (value->get(text) == simdjson::SUCCESS && text.empty()) return {};
    return refused(path(key), *value);
  }

  [[nodiscard]] Status equals(std::string_view key, std::string_view expected) const {
    DI_ASSIGN_OR_RETURN(const std::string_view text, string(key));
    if (text == expected) return {};
    return bad(path(key) + " " + quoted_for_message(text) + " is not supported, only " + quoted_for_message(expected));
  }

 private:
  Object(std::string where, dom::object object) : where_(std::move(where)), object_(object) {}

  std::string where_;
  dom::object object_;
};

Result<dom::array> array_of(const std::string& where, const dom::element& value) {
  dom::array array;
  if (value.get(array) != simdjson::SUCCESS) return bad(where + " is not an array");
  return array;
}

Result<int32_t> id_of(const std::string& where, const dom::element& value) {
  int64_t id = 0;
  if (value.get(id) != simdjson::SUCCESS) return bad(where + " is not a whole number of 64 bits");
  if (id < 0 || id >= kTokensMax)
    return bad(where + " is " + std::to_string(id) + ", outside [0, " + std::to_string(kTokensMax) + ")");
  return static_cast<int32_t>(id);
}

/// A ByteLevel stage. As post-processor and decoder its settings change neither ids nor text.
Status check_byte_level(const std::string& where, const dom::element& value) {
  DI_ASSIGN_OR_RETURN(const Object stage,
                      Object::create(where, value, {"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  return stage.equals("type", "ByteLevel");
}

Status check_split(const std::string& where, const dom::element& value, std::string_view regex,
                   std::string_view other_spelling) {
  DI_ASSIGN_OR_RETURN(const Object split, Object::create(where, value, {"type", "pattern", "behavior", "invert"}));
  DI_RETURN_IF_ERROR(split.equals("type", "Split"));
  DI_RETURN_IF_ERROR(split.equals("behavior", "Isolated"));
  DI_RETURN_IF_ERROR(split.off("invert"));
  DI_ASSIGN_OR_RETURN(const dom::element pattern_value, split.at("pattern"));
  DI_ASSIGN_OR_RETURN(const Object pattern, Object::create(split.path("pattern"), pattern_value, {"Regex"}));
  DI_ASSIGN_OR_RETURN(const std::string_view text, pattern.string("Regex"));
  if (text == other_spelling) return {};
  return pattern.equals("Regex", regex);
}

Status check_pre_tokenizer(const dom::element& value) {
  DI_ASSIGN_OR_RETURN(const Object sequence, Object::create("pre_tokenizer", value, {"type", "pretokenizers"}));
  DI_RETURN_IF_ERROR(sequence.equals("type", "Sequence"));
  DI_ASSIGN_OR_RETURN(const dom::element list_value, sequence.at("pretokenizers"));
  DI_ASSIGN_OR_RETURN(const dom::array stages, array_of("pre_tokenizer.pretokenizers", list_value));
  if (stages.size() != 4)
    return bad("pre_tokenizer has " + std::to_string(stages.size()) + " stages, not three splits and ByteLevel");
  const auto where = [](size_t i) { return "pre_tokenizer.pretokenizers[" + std::to_string(i) + "]"; };
  DI_RETURN_IF_ERROR(check_split(where(0), stages.at(0).value_unsafe(), kSplitNumbers, kSplitNumbers));
  DI_RETURN_IF_ERROR(check_split(where(1), stages.at(1).value_unsafe(), kSplitCjk, kSplitCjk));
  DI_RETURN_IF_ERROR(check_split(where(2), stages.at(2).value_unsafe(), kSplitWords, kSplitWordsRaw));
  const dom::element last = stages.at(3).value_unsafe();
  DI_RETURN_IF_ERROR(check_byte_level(where(3), last));
  DI_ASSIGN_OR_RETURN(const Object byte_level,
                      Object::create(where(3), last, {"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  DI_ASSIGN_OR_RETURN(const bool add_prefix_space, byte_level.boolean("add_prefix_space"));
  if (add_prefix_space) return bad(byte_level.path("add_prefix_space") + " = true is not supported");
  DI_ASSIGN_OR_RETURN(const bool use_regex, byte_level.boolean("use_regex"));
  if (use_regex) return bad(byte_level.path("use_regex") + " = true is not supported");
  return {};
}

Status check_normalizer(const dom::element& value) {
  if (value.is_null()) return {};
  const auto sequence = Object::create("normalizer", value, {"type", "normalizers"});
  if (sequence.ok() && sequence->equals("type", "Sequence").ok()) {
    if (const auto list = sequence->find("normalizers"); list && list->is_array() && list->get_array().size() == 0)
      return {};
  }
  return refused("normalizer", value);
}

Result<std::vector<VocabularyEntry>> parse_vocabulary(const dom::element& value) {
  dom::object object;
  if (value.get(object) != simdjson::SUCCESS) return bad("model.vocab is not an object");
  std::vector<VocabularyEntry> entries;
  entries.reserve(object.size());
  for (const auto [token, id_value] : object) {
    const auto id = id_of("id of token " + quoted_for_message(token), id_value);
    if (!id.ok()) return id.error();
    entries.push_back({std::string(token), *id});
    if (entries.size() > static_cast<size_t>(kTokensMax))
      return bad("model.vocab has more than " + std::to_string(kTokensMax) + " tokens");
  }
  return entries;
}

/// "left right", or ["left", "right"] as newer files have it.
Result<MergeEntry> parse_merge(size_t rank, const dom::element& value) {
  const auto where = [rank] { return "model.merges[" + std::to_string(rank) + "]"; };
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) {
    const size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
      return bad(where() + " " + quoted_for_message(text) + " is not two tokens with one space between");
    return MergeEntry{std::string(text.substr(0, space)), std::string(text.substr(space + 1))};
  }
  dom::array pair;
  std::string_view left, right;
  if (value.get(pair) != simdjson::SUCCESS || pair.size() != 2 || pair.at(0).get(left) != simdjson::SUCCESS ||
      pair.at(1).get(right) != simdjson::SUCCESS)
    return bad(where() + " is neither a string nor a pair of strings");
  return MergeEntry{std::string(left), std::string(right)};
}

Result<std::vector<MergeEntry>> parse_merges(const dom::element& value) {
  DI_ASSIGN_OR_RETURN(const dom::array array, array_of("model.merges", value));
  std::vector<MergeEntry> merges;
  for (const dom::element merge_value : array) {
    auto merge = parse_merge(merges.size(), merge_value);
    if (!merge.ok()) return merge.error();
    merges.push_back(*std::move(merge));
    if (merges.size() > static_cast<size_t>(kTokensMax))
      return bad("model.merges has more than " + std::to_string(kTokensMax) + " entries");
  }
  return merges;
}

Status parse_model(const dom::element& value, TokenizerFile& file) {
  DI_ASSIGN_OR_RETURN(const Object model,
                      Object::create("model", value,
                                     {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                                      "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"}));
  DI_RETURN_IF_ERROR(model.equals("type", "BPE"));
  for (const std::string_view feature : {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                                         "fuse_unk", "byte_fallback", "ignore_merges"})
    DI_RETURN_IF_ERROR(model.off(feature));
  DI_ASSIGN_OR_RETURN(const dom::element vocabulary, model.at("vocab"));
  DI_ASSIGN_OR_RETURN(file.vocabulary, parse_vocabulary(vocabulary));
  DI_ASSIGN_OR_RETURN(const dom::element merges, model.at("merges"));
  DI_ASSIGN_OR_RETURN(file.merges, parse_merges(merges));
  return {};
}

Result<AddedTokenEntry> parse_added_token(const std::string& where, const dom::element& value) {
  DI_ASSIGN_OR_RETURN(
      const Object token,
      Object::create(where, value, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
  for (const std::string_view feature : {"single_word", "lstrip", "rstrip"}) DI_RETURN_IF_ERROR(token.off(feature));
  AddedTokenEntry entry{};
  DI_ASSIGN_OR_RETURN(entry.content, token.string("content"));
  if (entry.content.empty() || entry.content.size() > kAddedTokenBytesMax)
    return bad(token.path("content") + " has " + std::to_string(entry.content.size()) + " bytes, outside [1, " +
               std::to_string(kAddedTokenBytesMax) + "]");
  DI_ASSIGN_OR_RETURN(const dom::element id, token.at("id"));
  DI_ASSIGN_OR_RETURN(entry.id, id_of(token.path("id"), id));
  DI_ASSIGN_OR_RETURN(entry.special, token.boolean("special"));
  DI_ASSIGN_OR_RETURN(entry.normalized, token.boolean("normalized"));
  return entry;
}

Result<std::vector<AddedTokenEntry>> parse_added_tokens(const dom::element& value) {
  DI_ASSIGN_OR_RETURN(const dom::array array, array_of("added_tokens", value));
  std::vector<AddedTokenEntry> entries;
  for (const dom::element token : array) {
    auto entry = parse_added_token("added_tokens[" + std::to_string(entries.size()) + "]", token);
    if (!entry.ok()) return entry.error();
    entries.push_back(*std::move(entry));
  }
  return entries;
}

Result<TokenizerFile> parse_root(const dom::element& root_value) {
  DI_ASSIGN_OR_RETURN(const Object root,
                      Object::create("file", root_value,
                                     {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                                      "post_processor", "decoder", "model"}));
  DI_RETURN_IF_ERROR(root.off("truncation"));
  DI_RETURN_IF_ERROR(root.off("padding"));
  if (const auto normalizer = root.find("normalizer")) DI_RETURN_IF_ERROR(check_normalizer(*normalizer));
  DI_ASSIGN_OR_RETURN(const dom::element pre_tokenizer, root.at("pre_tokenizer"));
  DI_RETURN_IF_ERROR(check_pre_tokenizer(pre_tokenizer));
  if (const auto post = root.find("post_processor"); post && !post->is_null())
    DI_RETURN_IF_ERROR(check_byte_level("post_processor", *post));
  DI_ASSIGN_OR_RETURN(const dom::element decoder, root.at("decoder"));
  DI_RETURN_IF_ERROR(check_byte_level("decoder", decoder));

  TokenizerFile file;
  DI_ASSIGN_OR_RETURN(const dom::element model, root.at("model"));
  DI_RETURN_IF_ERROR(parse_model(model, file));
  if (const auto added = root.find("added_tokens"); added && !added->is_null()) {
    DI_ASSIGN_OR_RETURN(file.added_tokens, parse_added_tokens(*added));
  }
  return file;
}

}  // namespace

Result<TokenizerFile> parse_tokenizer_file(std::string_view json) {
  dom::parser parser;
  dom::element root;
  if (const auto error = parser.parse(json.data(), json.size()).get(root))  // copies into a padded buffer
    return bad(std::string("not valid JSON: ") + simdjson::error_message(error));
  return parse_root(root);
}

}  // namespace deepinfer

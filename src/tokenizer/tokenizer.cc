#include "deepinfer/tokenizer.h"

#include <span>
#include <utility>

#include "base/check.h"
#include "platform/mapped_file.h"
#include "text/utf8.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/tokenizer_file.h"
#include "tokenizer/vocabulary.h"

namespace deepinfer {
namespace {

constexpr int64_t kFileBytesMax = int64_t{1} << 28;  // 40 times the released file

Result<std::string> read_file(const std::filesystem::path& path) {
  const auto failed = [&path](const std::string& why) {
    return Error{Code::kBadModelFile, path.string() + ": " + why};
  };
  DI_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path.string()));
  if (file.size() > kFileBytesMax) {
    return failed("has " + std::to_string(file.size()) + " bytes, more than " + std::to_string(kFileBytesMax));
  }
  std::string text(static_cast<size_t>(file.size()), '\0');
  DI_RETURN_IF_ERROR(file.read_at(0, std::as_writable_bytes(std::span(text))));
  return text;
}

AddedTokens added_tokens_of(const TokenizerFile& file, bool normalized) {
  std::vector<AddedToken> tokens;
  for (const AddedTokenEntry& entry : file.added_tokens) {
    if (entry.normalized == normalized) tokens.push_back({entry.content, entry.id});
  }
  return AddedTokens(std::move(tokens));
}

/// Working memory of one encode() call.
struct EncodeScratch {
  std::vector<uint32_t> piece_ends;
  BpeScratch bpe;
};

}  // namespace

struct Tokenizer::Impl {
  Vocabulary vocabulary;
  Bpe bpe;
  AddedTokens added_raw;         // found first
  AddedTokens added_normalized;  // found in what is left ("normalized": true; the normaliser changes nothing)

  [[nodiscard]] bool contains(int32_t id) const { return id >= 0 && id < vocabulary.size(); }

  void encode_ordinary(std::string_view text, EncodeScratch& scratch, std::vector<int32_t>& ids) const {
    split_pieces(text, scratch.piece_ends);
    uint32_t begin = 0;
    for (const uint32_t end : scratch.piece_ends) {
      bpe.encode(text.substr(begin, end - begin), scratch.bpe, ids);
      begin = end;
    }
  }

  /// Calls `between` with the text between the tokens of `added` and appends their ids.
  template <typename Between>
  static void split_added(const AddedTokens& added, std::string_view text, std::vector<int32_t>& ids,
                          const Between& between) {
    size_t begin = 0;
    while (const auto match = added.find(text, begin)) {
      if (match->begin > begin) between(text.substr(begin, match->begin - begin));
      ids.push_back(match->id);
      begin = match->end;
    }
    if (begin < text.size()) between(text.substr(begin));
  }

  void encode(std::string_view text, bool special, std::vector<int32_t>& ids) const {
    EncodeScratch scratch;
    const auto ordinary = [&](std::string_view part) { encode_ordinary(part, scratch, ids); };
    if (!special) return ordinary(text);
    split_added(added_raw, text, ids,
                [&](std::string_view part) { split_added(added_normalized, part, ids, ordinary); });
  }
};

Tokenizer::Tokenizer(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::open(const std::filesystem::path& dir) {
  DI_ASSIGN_OR_RETURN(const std::string json, read_file(dir / "tokenizer.json"));
  return from_json(json);
}

Result<Tokenizer> Tokenizer::from_json(std::string_view json) {
  DI_ASSIGN_OR_RETURN(const TokenizerFile file, parse_tokenizer_file(json));
  DI_ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::create(file));
  DI_ASSIGN_OR_RETURN(Bpe bpe, Bpe::create(file.merges, vocabulary));
  return Tokenizer(std::unique_ptr<const Impl>(
      new Impl{std::move(vocabulary), std::move(bpe), added_tokens_of(file, false), added_tokens_of(file, true)}));
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, bool special) const {
  if (text.size() > kTextBytesMax)
    return Error{Code::kInvalidArgument,
                 "text has " + std::to_string(text.size()) + " bytes, more than " + std::to_string(kTextBytesMax)};
  if (const auto offset = find_ill_formed(text))
    return Error{Code::kInvalidArgument, "text is not valid UTF-8 at byte " + std::to_string(*offset)};
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3);
  impl_->encode(text, special, ids);
  return ids;
}

Result<std::string> Tokenizer::decode_bytes(std::span<const int32_t> ids, bool skip_special) const {
  std::string bytes;
  for (const int32_t id : ids) {
    if (!contains(id))
      return Error{Code::kInvalidArgument,
                   "token id " + std::to_string(id) + " is outside [0, " + std::to_string(vocab_size()) + ")"};
    if (!(skip_special && is_special(id))) bytes += token_bytes(id);
  }
  return bytes;
}

Result<std::string> Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  DI_ASSIGN_OR_RETURN(std::string bytes, decode_bytes(ids, skip_special));
  return replace_ill_formed(std::move(bytes));
}

int32_t Tokenizer::vocab_size() const { return impl_->vocabulary.size(); }

std::string_view Tokenizer::token_bytes(int32_t id) const {
  DI_CHECK(contains(id));
  return impl_->vocabulary.bytes(id);
}

std::string_view Tokenizer::token_string(int32_t id) const {
  DI_CHECK(contains(id));
  return impl_->vocabulary.string(id);
}

bool Tokenizer::is_added(int32_t id) const {
  DI_CHECK(contains(id));
  return impl_->vocabulary.is_added(id);
}

bool Tokenizer::is_special(int32_t id) const {
  DI_CHECK(contains(id));
  return impl_->vocabulary.is_special(id);
}

std::optional<int32_t> Tokenizer::token_to_id(std::string_view token) const { return impl_->vocabulary.find(token); }

}  // namespace deepinfer

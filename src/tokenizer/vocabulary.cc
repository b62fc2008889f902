#include "tokenizer/vocabulary.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/check.h"
#include "text/utf8.h"

namespace deepinfer {
namespace {

Error bad(std::string what) { return {Code::kBadModelFile, "tokenizer.json: " + std::move(what)}; }

/// GPT-2's character of each byte: printable Latin-1 stands for itself, the others follow from U+0100 on.
constexpr std::array<char32_t, 256> characters_of_bytes() {
  std::array<char32_t, 256> characters{};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    characters[byte] = printable ? byte : next++;
  }
  return characters;
}

constexpr std::array<char32_t, 256> kCharacterOfByte = characters_of_bytes();
constexpr size_t kNumByteCharacters = 0x144;  // all are below

constexpr std::array<int16_t, kNumByteCharacters> bytes_of_characters() {
  std::array<int16_t, kNumByteCharacters> bytes{};
  for (auto& byte : bytes) byte = -1;
  for (int16_t byte = 0; byte < 256; ++byte) bytes[kCharacterOfByte[static_cast<size_t>(byte)]] = byte;
  return bytes;
}

constexpr std::array<int16_t, kNumByteCharacters> kByteOfCharacter = bytes_of_characters();

/// Bytes of a string in byte-level form; nothing if it has another character.
std::optional<std::string> byte_level_decode(std::string_view string) {
  std::string bytes;
  for (size_t at = 0; at < string.size();) {
    const CodePoint c = decode_utf8(string.data() + at);
    if (c.value >= kNumByteCharacters || kByteOfCharacter[c.value] < 0) return std::nullopt;
    bytes += static_cast<char>(kByteOfCharacter[c.value]);
    at += c.n_bytes;
  }
  return bytes;
}

size_t hash_of(std::string_view string) { return std::hash<std::string_view>()(string); }

}  // namespace

Result<Vocabulary> Vocabulary::create(const TokenizerFile& file) {
  Vocabulary vocabulary;
  std::vector<std::string_view> strings;
  DI_RETURN_IF_ERROR(vocabulary.collect(file, strings));
  for (const std::string_view string : strings) vocabulary.strings_.push_back(string);
  DI_RETURN_IF_ERROR(vocabulary.index_strings());
  DI_RETURN_IF_ERROR(vocabulary.fill_bytes());
  DI_RETURN_IF_ERROR(vocabulary.find_byte_tokens());
  return vocabulary;
}

/// Strings and kinds by id. An added token may repeat an entry of the model's vocabulary, with the same id.
Status Vocabulary::collect(const TokenizerFile& file, std::vector<std::string_view>& strings) {
  const auto place = [&](int32_t id, std::string_view string, uint8_t kinds) -> Status {
    const auto i = static_cast<size_t>(id);
    if (i >= strings.size()) {
      strings.resize(i + 1);
      kinds_.resize(i + 1);
    }
    const bool repeats_model = kinds_[i] == kModel && (kinds & kAdded) != 0 && strings[i] == string;
    if (kinds_[i] != 0 && !repeats_model)
      return bad("id " + std::to_string(id) + " has two tokens, " + quoted_for_message(strings[i]) + " and " +
                 quoted_for_message(string));
    strings[i] = string;
    kinds_[i] |= kinds;
    return {};
  };
  for (const VocabularyEntry& entry : file.vocabulary) {
    if (entry.token.empty()) return bad("model.vocab has an empty token");
    DI_RETURN_IF_ERROR(place(entry.id, entry.token, kModel));
  }
  for (const AddedTokenEntry& entry : file.added_tokens)
    DI_RETURN_IF_ERROR(place(entry.id, entry.content, entry.special ? kAdded | kSpecial : kAdded));
  const auto hole = std::find(kinds_.begin(), kinds_.end(), uint8_t{0});
  if (hole != kinds_.end())
    return bad("id " + std::to_string(hole - kinds_.begin()) + " has no token, but the highest id is " +
               std::to_string(kinds_.size() - 1));
  return {};
}

Status Vocabulary::index_strings() {
  slots_.assign(std::bit_ceil(strings_.size() * 2 + 1), -1);
  for (int32_t id = 0; id < size(); ++id) {
    size_t slot = hash_of(string(id)) & (slots_.size() - 1);
    for (; slots_[slot] >= 0; slot = (slot + 1) & (slots_.size() - 1)) {
      if (string(slots_[slot]) == string(id))
        return bad("token " + quoted_for_message(string(id)) + " has two ids, " + std::to_string(slots_[slot]) +
                   " and " + std::to_string(id));
    }
    slots_[slot] = id;
  }
  return {};
}

std::optional<int32_t> Vocabulary::find(std::string_view wanted) const {
  for (size_t slot = hash_of(wanted) & (slots_.size() - 1); slots_[slot] >= 0;
       slot = (slot + 1) & (slots_.size() - 1)) {
    if (string(slots_[slot]) == wanted) return slots_[slot];
  }
  return std::nullopt;
}

/// The decoder turns a string back into bytes when all of it is in byte-level form, and else takes it as it is. For
/// most added tokens both are the same; one that reads as other bytes is refused.
Status Vocabulary::fill_bytes() {
  for (int32_t id = 0; id < size(); ++id) {
    const auto decoded = byte_level_decode(string(id));
    if (decoded && is_added(id) && *decoded != string(id))
      return bad("added token " + quoted_for_message(string(id)) + " would decode to other bytes than its text");
    bytes_.push_back(decoded ? std::string_view(*decoded) : string(id));
  }
  return {};
}

Status Vocabulary::find_byte_tokens() {
  for (size_t byte = 0; byte < byte_tokens_.size(); ++byte) {
    std::string character;
    append_utf8(kCharacterOfByte[byte], character);
    const auto id = find(character);
    if (!id || !in_model(*id))
      return bad("no token " + quoted_for_message(character) + " for byte " + std::to_string(byte));
    byte_tokens_[byte] = *id;
  }
  return {};
}

}  // namespace deepinfer

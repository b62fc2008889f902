#include "grammar/language.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "grammar/language_store.h"

namespace deepinfer::grammar {

struct Languages::Impl : LanguageStore {
  using LanguageStore::LanguageStore;
};

Languages::Languages(int64_t n_bytes_max) : impl_(std::make_unique<Impl>(n_bytes_max)) {}
Languages::~Languages() = default;

Lang Languages::chars(const CharSet& set) { return impl_->chars(set); }
Lang Languages::text(std::string_view literal) { return impl_->text(literal); }
Lang Languages::bytes(uint8_t first, uint8_t last) { return impl_->bytes(ByteSet::range(first, last)); }
Lang Languages::concat(std::span<const Lang> parts) { return impl_->concat(parts); }
Lang Languages::any_of(std::span<const Lang> parts) { return impl_->unite(parts); }
Lang Languages::all_of(std::span<const Lang> parts) { return impl_->intersect(parts); }
Lang Languages::except(Lang from, Lang without) {
  const Lang both[] = {from, impl_->negate(without)};
  return impl_->intersect(both);
}
Lang Languages::exactly_one(std::span<const Lang> parts) { return impl_->exactly_one(parts); }
Lang Languages::repeat(Lang part, int32_t min, int32_t max) { return impl_->repeat(part, min, max); }
Lang Languages::automaton(std::shared_ptr<const Automaton> automaton) { return impl_->automaton(std::move(automaton)); }

Lang Languages::next(Lang from, uint8_t byte) { return impl_->next(from, byte); }
Lang Languages::next(Lang from, std::string_view bytes) { return impl_->next(from, bytes); }
bool Languages::accepts_empty(Lang lang) const { return impl_->nullable(lang); }
bool Languages::accepts(Lang lang, std::string_view text) {
  for (const char c : text) {
    lang = impl_->next(lang, static_cast<uint8_t>(c));
    if (lang == kNothing) return false;
  }
  return impl_->nullable(lang);
}
bool Languages::is_empty(Lang lang) { return impl_->is_empty(lang); }
int64_t Languages::shortest(Lang lang) { return impl_->shortest(lang); }
ByteSet Languages::next_bytes(Lang from) {
  enum : uint8_t { kNotAsked, kLive, kDead };
  std::array<uint8_t, 256> of_byte;
  const std::span<const uint8_t, 256> classes = impl_->byte_classes(from);
  std::copy(classes.begin(), classes.end(), of_byte.begin());  // next() may move the table
  std::array<uint8_t, 256> answers{};
  ByteSet bytes;
  for (size_t byte = 0; byte < 256; ++byte) {
    uint8_t& answer = answers[of_byte[byte]];
    if (answer == kNotAsked) answer = impl_->next(from, static_cast<uint8_t>(byte)) != kNothing ? kLive : kDead;
    if (answer == kLive) bytes.add(static_cast<uint8_t>(byte));
  }
  return bytes;
}
std::span<const uint8_t, 256> Languages::byte_classes(Lang from) { return impl_->byte_classes(from); }

std::optional<Languages::Counted> Languages::counted(Lang lang) { return impl_->counted(lang); }
int32_t Languages::chars_at_least(Lang lang) { return impl_->chars_at_least(lang); }
Languages::Bounds Languages::bounds(Lang lang, int32_t n) { return impl_->bounds(lang, n); }
bool Languages::takes_every_text(Lang lang) const { return impl_->takes_every_text(lang); }
bool Languages::may_be_list(Lang lang) const { return impl_->may_be_list(lang); }
bool Languages::visit_texts(Lang lang, TextVisitor& visitor) const { return impl_->visit_texts(lang, visitor); }
int64_t Languages::bytes_at_least(Lang lang) const { return impl_->bytes_at_least(lang); }

std::optional<Fingerprint> Languages::fingerprint(Lang lang) { return impl_->fingerprint(lang); }

void Languages::set_fuel(Fuel* fuel) { impl_->set_fuel(fuel); }
Fuel* Languages::fuel() const { return impl_->fuel(); }
bool Languages::exhausted() const { return impl_->exhausted(); }
int64_t Languages::n_bytes() const { return impl_->n_bytes(); }

}  // namespace deepinfer::grammar

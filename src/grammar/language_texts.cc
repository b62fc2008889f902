// Languages that are lists of texts, shown without a derivative.
#include "grammar/language_store.h"

namespace deepinfer::grammar {
namespace {

constexpr int32_t kVisitsMax = 16384;  // bytes shown

}  // namespace

bool LanguageStore::visit_texts(Lang lang, TextVisitor& visitor) const {
  if (!may_be_list(lang)) return lang == kNothing;
  int32_t n_left = kVisitsMax;
  return visit_parts(lang, nullptr, visitor, n_left);
}

bool LanguageStore::visit_rest(const Rest* rest, TextVisitor& visitor, int32_t& n_left) const {
  if (rest != nullptr) return visit_parts(rest->lang, rest->rest, visitor, n_left);
  visitor.end();
  return true;
}

bool LanguageStore::visit_parts(Lang lang, const Rest* rest, TextVisitor& visitor, int32_t& n_left) const {
  const ExprNode& node = at(lang);
  switch (node.kind) {
    case Kind::kNothing:
      return true;
    case Kind::kEmptyText:
      return visit_rest(rest, visitor, n_left);
    case Kind::kText: {
      const std::string_view text = text_of(node);
      int32_t n_entered = 0;
      while (n_entered < static_cast<int32_t>(text.size())) {
        if (--n_left < 0) return false;
        if (!visitor.enter(static_cast<uint8_t>(text[static_cast<size_t>(n_entered)]))) break;
        ++n_entered;
      }
      const bool is_whole = n_entered == static_cast<int32_t>(text.size());
      const bool all = !is_whole || visit_rest(rest, visitor, n_left);
      visitor.leave(n_entered);
      return all;
    }
    case Kind::kBytes:
      for (int byte = 0; byte < 256; ++byte) {
        if (!sets_[node.a].contains(static_cast<uint8_t>(byte))) continue;
        if (--n_left < 0) return false;
        if (!visitor.enter(static_cast<uint8_t>(byte))) continue;
        const bool all = visit_rest(rest, visitor, n_left);
        visitor.leave(1);
        if (!all) return false;
      }
      return true;
    case Kind::kConcat: {
      const Rest behind{node.b, rest};
      return visit_parts(node.a, &behind, visitor, n_left);
    }
    case Kind::kUnion:
      for (const Lang part : list_of(node))
        if (!visit_parts(part, rest, visitor, n_left)) return false;
      return true;
    case Kind::kRepeat:
      if (node.c != 0 || node.d != 1) return false;
      return visit_rest(rest, visitor, n_left) && visit_parts(node.a, rest, visitor, n_left);
    default:
      return false;
  }
}

}  // namespace deepinfer::grammar

// How lists of texts are handed on.
#pragma once

#include <cstdint>

namespace deepinfer::grammar {

/// Is shown texts as a tree, depth first.
class TextVisitor {
 public:
  virtual ~TextVisitor() = default;
  /// One byte further. False: nothing that goes on like that is of interest; no leave() belongs to this call.
  virtual bool enter(uint8_t byte) = 0;
  /// So many bytes back.
  virtual void leave(int32_t n_bytes) = 0;
  /// A text ends here.
  virtual void end() = 0;
};

}  // namespace deepinfer::grammar

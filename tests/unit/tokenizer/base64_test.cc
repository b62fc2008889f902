#include "tokenizer/base64.h"

#include <gtest/gtest.h>

namespace deepinfer {
namespace {

TEST(Base64, KnowsTheVectorsOfRfc4648) {
  const std::pair<std::string, std::string> cases[] = {{"", ""},
                                                       {"f", "Zg=="},
                                                       {"fo", "Zm8="},
                                                       {"foo", "Zm9v"},
                                                       {"foob", "Zm9vYg=="},
                                                       {"fooba", "Zm9vYmE="},
                                                       {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(base64_encode(bytes), text);
    EXPECT_EQ(base64_decode(text), bytes);
  }
}

TEST(Base64, RoundTripsEveryByte) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  for (size_t n = 250; n <= 256; ++n) EXPECT_EQ(base64_decode(base64_encode(bytes.substr(0, n))), bytes.substr(0, n));
}

TEST(Base64, RefusesWhatIsNotCanonical) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Z===", "====", "Zh==", "Zm9=", "Zg==Zg==", "Zm 9", "Zm9\n", "Zm9-", "=Zm9"})
    EXPECT_FALSE(base64_decode(text)) << text;
}

}  // namespace
}  // namespace deepinfer

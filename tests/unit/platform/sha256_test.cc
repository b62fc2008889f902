#include "platform/sha256.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>

namespace deepinfer {
namespace {

std::string sum_of(std::string_view text) {
  const auto sum = sha256_hex(std::as_bytes(std::span(text)));
  return sum.ok() ? *sum : sum.error().message;
}

// FIPS 180-4 examples (NIST, "Examples with Intermediate Values"), and the empty message.
TEST(Sha256, GivesTheSumsOfTheStandard) {
  EXPECT_EQ(sum_of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sum_of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sum_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sum_of(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace deepinfer

// Reads the parity vectors beside the tests.
#pragma once

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "numerics/bf16.h"

namespace deepinfer {

inline nlohmann::json load_vectors() {
  std::ifstream file(DI_TESTS_DIR "/unit/numerics/data/vectors.json");
  return nlohmann::json::parse(file);
}

inline std::vector<uint8_t> bytes_from_hex(const std::string& hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

inline std::vector<Bf16> bf16_from_hex(const std::vector<std::string>& words) {
  std::vector<Bf16> values;
  for (const std::string& word : words) values.push_back(Bf16{static_cast<uint16_t>(std::stoul(word, nullptr, 16))});
  return values;
}

}  // namespace deepinfer

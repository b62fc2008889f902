#include "checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <tuple>
#include <unordered_set>

#include "base/check.h"
#include "checkpoint/json_dom.h"
#include "checkpoint/message.h"

namespace deepinfer {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor data is used as stored, and stored little-endian");

constexpr int64_t kLengthBytes = 8;

Error bad(std::string message) { return Error{Code::kBadModelFile, std::move(message)}; }

Error bad_tensor(std::string_view name, const std::string& what) {
  return bad("tensor " + printable(name) + " " + what);
}

Result<Shape> parse_shape(std::string_view name, simdjson::dom::element value) {
  simdjson::dom::array array;
  if (!json_get(value, array)) return bad_tensor(name, "has a shape that is not an array");
  if (array.size() > static_cast<size_t>(Shape::kRankMax)) {
    return bad_tensor(name, "has " + std::to_string(array.size()) + " dimensions, at most " +
                                std::to_string(Shape::kRankMax) + " are supported");
  }
  std::array<int64_t, Shape::kRankMax> dims{};
  size_t rank = 0;
  int64_t n_elements = 1;
  for (const simdjson::dom::element item : array) {
    int64_t& dim = dims[rank++];
    if (!json_get(item, dim) || dim < 0) return bad_tensor(name, "has a dimension that is not a non-negative integer");
    if (__builtin_mul_overflow(n_elements, dim, &n_elements)) {
      return bad_tensor(name, "has a shape whose element count overflows 64 bits");
    }
  }
  return Shape(std::span<const int64_t>(dims).first(rank));
}

/// Fills offset (still relative to the data part) and size.
Status parse_data_offsets(simdjson::dom::element value, SafetensorsEntry& entry) {
  simdjson::dom::array array;
  if (!json_get(value, array) || array.size() != 2) {
    return bad_tensor(entry.name, "has data_offsets that are not two numbers");
  }
  int64_t begin = 0;
  int64_t end = 0;
  if (!json_get(array.at(0).value_unsafe(), begin) || !json_get(array.at(1).value_unsafe(), end) || begin < 0) {
    return bad_tensor(entry.name, "has data_offsets that are not non-negative integers");
  }
  if (end < begin) {
    return bad_tensor(entry.name, "has data_offsets that end before they begin: [" + std::to_string(begin) + ", " +
                                      std::to_string(end) + "]");
  }
  entry.offset_bytes = begin;
  entry.size_bytes = end - begin;
  return {};
}

Result<SafetensorsEntry> parse_entry(std::string_view name, simdjson::dom::element value) {
  simdjson::dom::object object;
  if (!json_get(value, object)) return bad_tensor(name, "is not described by an object");
  SafetensorsEntry entry;
  entry.name = name;
  bool has_dtype = false;
  bool has_shape = false;
  bool has_offsets = false;
  for (const simdjson::dom::key_value_pair field : object) {
    bool* seen = field.key == "dtype"          ? &has_dtype
                 : field.key == "shape"        ? &has_shape
                 : field.key == "data_offsets" ? &has_offsets
                                               : nullptr;
    if (seen == nullptr) return bad_tensor(name, "has the unknown field \"" + printable(field.key) + "\"");
    if (*seen) return bad_tensor(name, "has the field \"" + std::string(field.key) + "\" twice");
    *seen = true;
    if (seen == &has_dtype) {
      std::string_view tag;
      if (!json_get(field.value, tag)) return bad_tensor(name, "has a dtype that is not a string");
      entry.dtype_tag = tag;
      entry.dtype = dtype_from_safetensors_tag(tag);
    } else if (seen == &has_shape) {
      DI_ASSIGN_OR_RETURN(entry.shape, parse_shape(name, field.value));
    } else {
      DI_RETURN_IF_ERROR(parse_data_offsets(field.value, entry));
    }
  }
  if (!has_dtype || !has_shape || !has_offsets) return bad_tensor(name, "lacks dtype, shape or data_offsets");
  if (entry.dtype) {
    int64_t expected = 0;
    if (__builtin_mul_overflow(entry.shape.n_elements(), element_bytes(*entry.dtype), &expected)) {
      return bad_tensor(name, "has a shape whose size overflows 64 bits");
    }
    if (expected != entry.size_bytes) {
      return bad_tensor(name, "of type " + entry.dtype_tag + " and shape " + entry.shape.to_string() + " needs " +
                                  std::to_string(expected) + " bytes but its data_offsets span " +
                                  std::to_string(entry.size_bytes));
    }
  }
  return entry;
}

Status parse_metadata(simdjson::dom::element value, SafetensorsHeader& header) {
  simdjson::dom::object object;
  if (!json_get(value, object)) return bad("__metadata__ is not an object");
  for (const simdjson::dom::key_value_pair field : object) {
    std::string_view text;
    if (!json_get(field.value, text)) return bad("__metadata__ \"" + printable(field.key) + "\" is not a string");
    header.metadata.emplace_back(field.key, text);
  }
  return {};
}

/// Sorts the entries and makes their offsets absolute. The ranges have to tile the data part.
Status place_entries(SafetensorsHeader& header, int64_t file_size_bytes) {
  std::sort(header.entries.begin(), header.entries.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::tie(a.offset_bytes, a.size_bytes, a.name) < std::tie(b.offset_bytes, b.size_bytes, b.name);
  });
  int64_t end = 0;
  for (SafetensorsEntry& entry : header.entries) {
    if (entry.offset_bytes < end) return bad_tensor(entry.name, "overlaps the tensor before it");
    if (entry.offset_bytes > end) {
      return bad(std::to_string(entry.offset_bytes - end) + " bytes before tensor " + printable(entry.name) +
                 " belong to no tensor");
    }
    end += entry.size_bytes;  // cannot overflow: offset + size was an int64_t in the file
    if (end > std::numeric_limits<int64_t>::max() - header.data_offset_bytes) {
      return bad_tensor(entry.name, "ends beyond any possible file");
    }
    entry.offset_bytes += header.data_offset_bytes;
  }
  const int64_t expected_bytes = header.data_offset_bytes + end;
  if (file_size_bytes < expected_bytes) {
    return bad("file is shorter than its header says: expected " + std::to_string(expected_bytes) + " bytes, found " +
               std::to_string(file_size_bytes));
  }
  if (file_size_bytes > expected_bytes) {
    return bad("file is longer than its header says: expected " + std::to_string(expected_bytes) + " bytes, found " +
               std::to_string(file_size_bytes));
  }
  return {};
}

}  // namespace

Result<int64_t> safetensors_header_bytes(std::span<const std::byte> prefix, int64_t file_size_bytes) {
  if (file_size_bytes < kLengthBytes || prefix.size() < static_cast<size_t>(kLengthBytes)) {
    return bad("file of " + std::to_string(file_size_bytes) + " bytes is too short for a safetensors file (at least " +
               std::to_string(kLengthBytes) + ")");
  }
  uint64_t length = 0;
  std::memcpy(&length, prefix.data(), sizeof(length));
  if (length > static_cast<uint64_t>(kSafetensorsHeaderBytesMax)) {
    return bad("header of " + std::to_string(length) + " bytes is over the limit of " +
               std::to_string(kSafetensorsHeaderBytesMax) + " (not a safetensors file?)");
  }
  const auto header_bytes = static_cast<int64_t>(length);
  if (header_bytes > file_size_bytes - kLengthBytes) {
    return bad("file is shorter than its header: expected at least " + std::to_string(header_bytes + kLengthBytes) +
               " bytes, found " + std::to_string(file_size_bytes));
  }
  return header_bytes;
}

Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> bytes, int64_t file_size_bytes) {
  DI_ASSIGN_OR_RETURN(const int64_t header_bytes, safetensors_header_bytes(bytes, file_size_bytes));
  if (static_cast<int64_t>(bytes.size()) - kLengthBytes < header_bytes) return bad("header is cut");
  const auto json = std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())
                        .substr(static_cast<size_t>(kLengthBytes), static_cast<size_t>(header_bytes));
  if (json.empty() || json.front() != '{') return bad("header does not start with '{'");
  DI_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::parse(json, "header"));
  simdjson::dom::object object;
  if (!json_get(document.root(), object)) return bad("header is not a JSON object");

  SafetensorsHeader header;
  header.data_offset_bytes = kLengthBytes + header_bytes;
  std::unordered_set<std::string_view> names;  // borrows from `document`
  for (const simdjson::dom::key_value_pair field : object) {
    if (!names.insert(field.key).second) return bad("header has the key \"" + printable(field.key) + "\" twice");
    if (field.key == "__metadata__") {
      DI_RETURN_IF_ERROR(parse_metadata(field.value, header));
      continue;
    }
    DI_ASSIGN_OR_RETURN(SafetensorsEntry entry, parse_entry(field.key, field.value));
    header.entries.push_back(std::move(entry));
  }
  DI_RETURN_IF_ERROR(place_entries(header, file_size_bytes));
  return header;
}

}  // namespace deepinfer

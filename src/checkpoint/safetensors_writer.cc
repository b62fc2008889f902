// The writing half of checkpoint/safetensors.h. Apart from the reader because it shares nothing with it but the format.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <numeric>
#include <unordered_set>

#include "base/check.h"
#include "checkpoint/file_io.h"
#include "checkpoint/message.h"
#include "checkpoint/safetensors.h"

namespace deepinfer {
namespace {

constexpr int64_t kLengthBytes = 8;
constexpr int64_t kDataAlignmentBytes = 64;

Error invalid(std::string message) { return Error{Code::kInvalidArgument, std::move(message)}; }

struct Placed {
  int64_t offset_bytes = 0;  // absolute once the header is laid out
  int64_t size_bytes = 0;
  int64_t written_bytes = 0;
};

Status check_specs(std::span<const TensorSpec> tensors, const SafetensorsMetadata& metadata) {
  std::unordered_set<std::string_view> names;
  for (const TensorSpec& tensor : tensors) {
    if (tensor.name.empty() || tensor.name == "__metadata__") {
      return invalid("tensor name \"" + tensor.name + "\" cannot be stored");
    }
    if (!is_valid_utf8(tensor.name)) return invalid("tensor name " + printable(tensor.name) + " is not valid UTF-8");
    if (!names.insert(tensor.name).second) return invalid("tensor " + printable(tensor.name) + " is there twice");
  }
  for (const auto& [key, value] : metadata) {
    if (!is_valid_utf8(key) || !is_valid_utf8(value)) return invalid("metadata is not valid UTF-8");
  }
  return {};
}

/// The 8-byte length and the JSON, padded so that data starts aligned. Fills `placed` in the order of `tensors`.
Result<std::string> lay_out(std::span<const TensorSpec> tensors, const SafetensorsMetadata& metadata,
                            std::vector<Placed>& placed) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return element_bytes(tensors[a].dtype) > element_bytes(tensors[b].dtype);
  });

  std::string json = "{";
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) json += json_quoted(key) + ":" + json_quoted(value) + ",";
    json.back() = '}';
    json += ',';
  }
  placed.resize(tensors.size());
  int64_t offset_bytes = 0;
  for (const size_t i : order) {
    const TensorSpec& tensor = tensors[i];
    placed[i] = {offset_bytes, tensor.shape.n_elements() * element_bytes(tensor.dtype), 0};
    json += json_quoted(tensor.name) + ":{\"dtype\":\"" + std::string(safetensors_tag(tensor.dtype)) + "\",\"shape\":[";
    for (int d = 0; d < tensor.shape.rank(); ++d) json += (d > 0 ? "," : "") + std::to_string(tensor.shape[d]);
    json += "],\"data_offsets\":[" + std::to_string(offset_bytes) + ",";
    offset_bytes += placed[i].size_bytes;
    json += std::to_string(offset_bytes) + "]},";
  }
  if (json.back() == ',') json.pop_back();
  json += '}';
  while ((kLengthBytes + static_cast<int64_t>(json.size())) % kDataAlignmentBytes != 0) json += ' ';
  if (static_cast<int64_t>(json.size()) > kSafetensorsHeaderBytesMax) {
    return invalid("header of " + std::to_string(json.size()) + " bytes is over the limit of " +
                   std::to_string(kSafetensorsHeaderBytesMax));
  }

  const uint64_t json_bytes = json.size();
  std::string head(sizeof(json_bytes), '\0');
  std::memcpy(head.data(), &json_bytes, sizeof(json_bytes));
  head += json;
  for (Placed& place : placed) place.offset_bytes += static_cast<int64_t>(head.size());
  return head;
}

}  // namespace

struct SafetensorsWriter::State {
  AtomicFile file;
  std::vector<TensorSpec> tensors;
  std::vector<Placed> placed;
};

SafetensorsWriter::SafetensorsWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&& other) noexcept = default;
SafetensorsWriter& SafetensorsWriter::operator=(SafetensorsWriter&& other) noexcept = default;
SafetensorsWriter::~SafetensorsWriter() = default;

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string& path, std::span<const TensorSpec> tensors,
                                                    const SafetensorsMetadata& metadata) {
  DI_RETURN_IF_ERROR(check_specs(tensors, metadata));
  std::vector<Placed> placed;
  DI_ASSIGN_OR_RETURN(const std::string head, lay_out(tensors, metadata, placed));
  DI_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  DI_RETURN_IF_ERROR(file.write_at(0, std::as_bytes(std::span(head))));
  return SafetensorsWriter(std::make_unique<State>(
      State{std::move(file), std::vector<TensorSpec>(tensors.begin(), tensors.end()), std::move(placed)}));
}

Status SafetensorsWriter::write(size_t tensor_idx, int64_t offset_bytes, std::span<const std::byte> bytes) {
  DI_CHECK(state_ != nullptr);
  DI_CHECK(tensor_idx < state_->placed.size());
  Placed& place = state_->placed[tensor_idx];
  const auto n_bytes = static_cast<int64_t>(bytes.size());
  if (offset_bytes < 0 || offset_bytes > place.size_bytes || n_bytes > place.size_bytes - offset_bytes) {
    return invalid("writing " + std::to_string(n_bytes) + " bytes at " + std::to_string(offset_bytes) +
                   " leaves tensor " + printable(state_->tensors[tensor_idx].name) + " of " +
                   std::to_string(place.size_bytes) + " bytes");
  }
  place.written_bytes += n_bytes;
  return state_->file.write_at(place.offset_bytes + offset_bytes, bytes);
}

Status SafetensorsWriter::finish() {
  DI_CHECK(state_ != nullptr);
  const std::unique_ptr<State> state = std::move(state_);  // whatever happens, this writer is spent
  for (size_t i = 0; i < state->placed.size(); ++i) {
    const Placed& place = state->placed[i];
    if (place.written_bytes != place.size_bytes) {
      return invalid("tensor " + printable(state->tensors[i].name) + " got " + std::to_string(place.written_bytes) +
                     " of its " + std::to_string(place.size_bytes) + " bytes");
    }
  }
  return state->file.commit();
}

Status write_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                         const SafetensorsMetadata& metadata) {
  std::vector<TensorSpec> specs;
  specs.reserve(tensors.size());
  for (const NamedTensor& tensor : tensors) specs.push_back({tensor.name, tensor.view.dtype, tensor.view.shape});
  DI_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::create(path, specs, metadata));
  for (size_t i = 0; i < tensors.size(); ++i) DI_RETURN_IF_ERROR(writer.write(i, 0, tensors[i].view.bytes()));
  return writer.finish();
}

}  // namespace deepinfer

#include "bench/bound_case.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace deepinfer::bench {
namespace {
constexpr int64_t kGuardBytes = 64;
}

ops::QuantizedRows BoundCase::input(const HostQuantizedRows& host) {
  const auto n_codes = static_cast<int64_t>(host.codes.size());
  const auto n_scales = static_cast<int64_t>(host.scales.size());
  return {static_cast<uint8_t*>(upload_new(host.codes.data(), n_codes)),
          static_cast<uint8_t*>(upload_new(host.scales.data(), n_scales)), host.width};
}

ops::Fp8Matrix BoundCase::weight(HostFp8Matrix host) {
  const HostFp8Matrix& w = keep(std::move(host));
  const Shape scales{(w.n_out + 31) / 32, w.n_in / 32};
  return {static_cast<const uint8_t*>(import(w.codes.data(), DType::kF8E4m3, Shape{w.n_out, w.n_in})),
          static_cast<const uint8_t*>(import(w.scales.data(), DType::kF8E8m0, scales)), w.n_out, w.n_in};
}

ops::Fp4Matrix BoundCase::weight(HostFp4Matrix host) {
  const HostFp4Matrix& w = keep(std::move(host));
  return {static_cast<const uint8_t*>(import(w.packed.data(), DType::kPackedFp4, Shape{w.n_out, w.n_in / 2})),
          static_cast<const uint8_t*>(import(w.scales.data(), DType::kF8E8m0, Shape{w.n_out, w.n_in / 32})), w.n_out,
          w.n_in};
}

ops::Bf16Matrix BoundCase::weight(HostBf16Matrix host) {
  const HostBf16Matrix& w = keep(std::move(host));
  return {static_cast<const Bf16*>(import(w.values.data(), DType::kBf16, Shape{w.n_out, w.n_in})), w.n_out, w.n_in};
}

const Bf16* BoundCase::weight(std::vector<Bf16> host) {
  const std::vector<Bf16>& w = keep(std::move(host));
  return static_cast<const Bf16*>(import(w.data(), DType::kBf16, Shape{static_cast<int64_t>(w.size())}));
}

const float* BoundCase::weight(std::vector<float> host) {
  const std::vector<float>& w = keep(std::move(host));
  return static_cast<const float*>(import(w.data(), DType::kF32, Shape{static_cast<int64_t>(w.size())}));
}

ops::QuantizedRows BoundCase::quantized_output(const std::string& name, int64_t n_rows, int64_t width,
                                               Tolerance tolerance) {
  const ops::QuantizedRows rows{static_cast<uint8_t*>(guarded_bytes(name, n_rows * width, kPoison)),
                                static_cast<uint8_t*>(guarded_bytes(name, n_rows * (width / 32), kPoison)), width};
  derive(Output{name, OutputType::kFp8Rows, n_rows, width, {}, std::move(tolerance)},
         [rows](const Reader& read, Output& out) {
           const int64_t n_scales = rows.width / 32;
           const std::vector<uint8_t> codes = read(rows.codes, out.n_rows * rows.width);
           const std::vector<uint8_t> scales = read(rows.scales, out.n_rows * n_scales);
           for (int64_t r = 0; r < out.n_rows; ++r) {
             out.bytes.insert(out.bytes.end(), codes.begin() + r * rows.width, codes.begin() + (r + 1) * rows.width);
             out.bytes.insert(out.bytes.end(), scales.begin() + r * n_scales, scales.begin() + (r + 1) * n_scales);
           }
         });
  return rows;
}

void BoundCase::watch(const void* state, Output output) {
  derive(std::move(output), [state](const Reader& read, Output& out) {
    out.bytes = read(state, out.n_rows * row_bytes(out.type, out.width));
  });
}

void BoundCase::derive(Output output, std::function<void(const Reader&, Output&)> fill) {
  produced_.push_back({std::move(output), std::move(fill)});
}

Status BoundCase::status() const { return status_; }

Status BoundCase::restore() {
  DI_RETURN_IF_ERROR(status());
  for (const Saved& saved : saved_) {
    DI_RETURN_IF_ERROR(backend_.upload(saved.data, saved.initial.data(), static_cast<int64_t>(saved.initial.size())));
  }
  return {};
}

Result<std::vector<Output>> BoundCase::outputs() {
  for (const Guarded& guarded : guarded_) {
    const std::vector<uint8_t> guard = read(guarded.data + guarded.n_bytes, kGuardBytes);
    if (std::any_of(guard.begin(), guard.end(), [&](uint8_t byte) { return byte != guarded.poison; })) {
      return Error{Code::kInvalidArgument, "output " + guarded.name + ": written past its end"};
    }
  }
  std::vector<Output> outputs;
  for (const Produced& produced : produced_) {
    outputs.push_back(produced.description);
    produced.fill([this](const void* data, int64_t n_bytes) { return read(data, n_bytes); }, outputs.back());
  }
  DI_RETURN_IF_ERROR(status());
  return outputs;
}

void* BoundCase::new_buffer(int64_t n_bytes) {
  if (!status_.ok()) return nullptr;
  Result<ops::Buffer> buffer = backend_.allocate(n_bytes);
  if (!buffer.ok()) {
    note(buffer.error());
    return nullptr;
  }
  buffers_.push_back(std::move(buffer).value());
  return buffers_.back().as<void>();
}

void* BoundCase::upload_new(const void* host, int64_t n_bytes) {
  void* there = new_buffer(n_bytes);
  if (there != nullptr && n_bytes > 0) note(backend_.upload(there, host, n_bytes));
  return there;
}

void* BoundCase::state_bytes(const void* initial, int64_t n_bytes) {
  void* there = upload_new(initial, n_bytes);
  if (there != nullptr) {
    const auto* bytes = static_cast<const uint8_t*>(initial);
    saved_.push_back({there, std::vector<uint8_t>(bytes, bytes + n_bytes)});
  }
  return there;
}

void* BoundCase::guarded_bytes(const std::string& name, int64_t n_bytes, uint8_t poison) {
  void* there = state(std::vector<uint8_t>(static_cast<size_t>(n_bytes + kGuardBytes), poison));
  if (there != nullptr) guarded_.push_back({name, static_cast<const uint8_t*>(there), n_bytes, poison});
  return there;
}

void* BoundCase::output_bytes(Output description) {
  const uint8_t poison = description.type == OutputType::kI32 ? kIntegerPoison : kPoison;
  const int64_t n_bytes = description.n_rows * row_bytes(description.type, description.width);
  void* there = guarded_bytes(description.name, n_bytes, poison);
  watch(there, std::move(description));
  return there;
}

const void* BoundCase::import(const void* host, DType dtype, Shape shape) {
  if (!status_.ok()) return nullptr;
  Result<const void*> there =
      backend_.import_weight(TensorView{static_cast<const std::byte*>(host), dtype, std::move(shape)});
  if (!there.ok()) {
    note(there.error());
    return nullptr;
  }
  return there.value();
}

std::vector<uint8_t> BoundCase::read(const void* data, int64_t n_bytes) {
  std::vector<uint8_t> bytes(static_cast<size_t>(n_bytes));
  if (status_.ok() && n_bytes > 0) note(backend_.download(bytes.data(), data, n_bytes));
  return bytes;
}

void BoundCase::note(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

BoundRows::BoundRows(BoundCase& bound, std::vector<int32_t> slot, std::vector<int32_t> position)
    : bound_(&bound),
      slot_(std::move(slot)),
      begin_host_(slot_.size()),
      slot_there_(bound.input(slot_)),
      position_there_(bound.input(position)),
      begin_there_(bound.scratch<int32_t>(static_cast<int64_t>(slot_.size()))) {}

Result<ops::Rows> BoundRows::at(RowRange range) {
  if (range.begin != uploaded_.begin || range.end != uploaded_.end) {
    for (int32_t i = 0; i < range.n(); ++i) {
      const bool continues =
          i > 0 && slot_[static_cast<size_t>(range.begin + i)] == slot_[static_cast<size_t>(range.begin + i - 1)];
      begin_host_[static_cast<size_t>(i)] = continues ? begin_host_[static_cast<size_t>(i - 1)] : i;
    }
    DI_RETURN_IF_ERROR(
        bound_->backend().upload(begin_there_, begin_host_.data(), range.n() * int64_t{sizeof(int32_t)}));
    uploaded_ = range;
  }
  return ops::Rows{range.n(), slot_there_ + range.begin, position_there_ + range.begin, begin_there_};
}

}  // namespace deepinfer::bench

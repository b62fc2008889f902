#include "checkpoint/checkpoint.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "base/check.h"
#include "checkpoint/file_io.h"
#include "checkpoint/finite.h"
#include "checkpoint/message.h"
#include "checkpoint/shard_index.h"
#include "platform/mapped_file.h"

namespace deepinfer {
namespace {

constexpr const char* kConfigName = "config.json";
constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kSingleName = "model.safetensors";
constexpr int64_t kConfigBytesMax = int64_t{4} << 20;
constexpr int64_t kIndexBytesMax = int64_t{512} << 20;
constexpr int64_t kPrefaultPieceBytes = int64_t{64} << 20;  // between two calls of the progress callback
constexpr size_t kNamesInWarningMax = 5;

/// Exists, be it as a link that leads nowhere (opening it then says so).
bool path_exists(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0;
}

struct Shard {
  std::string file_name;
  std::optional<MappedFile> file;  // nothing: could not be used, and a problem says why
};

struct Record {
  SafetensorsEntry entry;
  size_t shard_idx = 0;
  bool is_located = false;  // the shard's header has it; `entry` is filled
  std::unique_ptr<std::byte[]> aligned_copy;
};

using Records = std::map<std::string, Record, std::less<>>;

Result<SafetensorsHeader> read_header(const MappedFile& file) {
  std::vector<std::byte> bytes(static_cast<size_t>(std::min<int64_t>(file.size(), 8)));
  DI_RETURN_IF_ERROR(file.read_at(0, bytes));
  DI_ASSIGN_OR_RETURN(const int64_t header_bytes, safetensors_header_bytes(bytes, file.size()));
  bytes.resize(bytes.size() + static_cast<size_t>(header_bytes));
  DI_RETURN_IF_ERROR(file.read_at(0, bytes));  // read, not mapped: a cut file is an error here, not a signal
  return parse_safetensors_header(bytes, file.size());
}

std::string listed(const std::vector<std::string>& names) { return join_capped(names, ", ", kNamesInWarningMax); }

bool is_aligned(const SafetensorsEntry& entry) {
  return !entry.dtype || entry.offset_bytes % element_bytes(*entry.dtype) == 0;
}

}  // namespace

struct Checkpoint::State {
  std::string dir;
  ModelConfig config;
  std::vector<ExpectedTensor> catalog;
  std::vector<Shard> shards;
  Records records;
  std::map<std::string, std::string, std::less<>> unindexed;  // tensors only a header has -> their file
  std::vector<std::string> warnings;
  int64_t total_bytes = 0;

  [[nodiscard]] std::string path(const std::string& file_name) const { return dir + "/" + file_name; }

  Status read_index(std::vector<std::string>& problems);
  void open_shard(size_t shard_idx, bool is_single, std::vector<std::string>& problems);
  void check_located(std::vector<std::string>& problems) const;
  void warn_about_strays();
  [[nodiscard]] bool has(Section section) const;
  void check(Section section, std::vector<std::string>& problems) const;
  [[nodiscard]] std::vector<std::string> extras() const;
  Status load_record(Record& record, const LoadProgress& progress, int64_t& done, int64_t total) const;
  [[nodiscard]] Status check_finite(const Record& record) const;
  [[nodiscard]] Status verify_sizes() const;
};

// ---------------------------------------------------------------- opening

/// Fills `shards` (not yet opened) and `records` (not yet located) from the index.
Status Checkpoint::State::read_index(std::vector<std::string>& problems) {
  DI_ASSIGN_OR_RETURN(const std::string text, read_text_file(path(kIndexName), kIndexBytesMax));
  auto index = parse_shard_index(text, problems);
  if (!index) return Error{Code::kBadModelFile, path(kIndexName) + ": " + index.error().message};
  for (const ShardFile& file : index->files) shards.push_back({file.is_allowed ? file.name : "", std::nullopt});
  for (const auto& [name, shard_idx] : index->file_of) records[name].shard_idx = shard_idx;
  if (index->total_size_bytes) total_bytes = *index->total_size_bytes;
  return {};
}

void Checkpoint::State::open_shard(size_t shard_idx, bool is_single, std::vector<std::string>& problems) {
  Shard& shard = shards[shard_idx];
  if (shard.file_name.empty()) return;  // refused by name, reported with the index
  auto file = MappedFile::open(path(shard.file_name));
  if (!file) {
    problems.push_back(file.error().message);
    return;
  }
  auto header = read_header(*file);
  if (!header) {
    const std::string& message = header.error().message;
    problems.push_back(message.starts_with(file->path()) ? message : file->path() + ": " + message);
    return;
  }
  if (file->has_holes()) {
    warnings.push_back(shard.file_name + " has unwritten holes on disk: was copying it completed?");
  }
  std::vector<std::string> elsewhere;
  std::vector<std::string> unnamed;
  for (SafetensorsEntry& entry : header->entries) {
    if (is_single) records[entry.name].shard_idx = shard_idx;
    const auto record = records.find(entry.name);
    if (record == records.end()) {
      unnamed.push_back(printable(entry.name));
      unindexed.emplace(entry.name, shard.file_name);
    } else if (record->second.shard_idx != shard_idx) {
      elsewhere.push_back(printable(entry.name));
    } else {
      record->second.entry = std::move(entry);
      record->second.is_located = true;
    }
  }
  if (!elsewhere.empty()) {
    warnings.push_back(shard.file_name +
                       " has tensors that the index takes from other files, ignored: " + listed(elsewhere));
  }
  if (!unnamed.empty()) {
    warnings.push_back(shard.file_name + " has tensors that the index does not name, ignored: " + listed(unnamed));
  }
  shard.file = *std::move(file);
}

/// After all shards are open: what the index promised and no header kept.
void Checkpoint::State::check_located(std::vector<std::string>& problems) const {
  for (const auto& [name, record] : records) {
    const Shard& shard = shards[record.shard_idx];
    if (!record.is_located && shard.file) {
      problems.push_back("tensor " + printable(name) + " is not in " + shard.file_name +
                         ", where the index says it is");
    }
  }
}

void Checkpoint::State::warn_about_strays() {
  std::set<std::string> used;
  for (const Shard& shard : shards) used.insert(shard.file_name);
  std::vector<std::string> strays;
  std::error_code error;
  for (std::filesystem::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.ends_with(".safetensors") && !used.contains(name)) strays.push_back(printable(name));
  }
  std::sort(strays.begin(), strays.end());
  if (!strays.empty()) warnings.push_back("files that the index does not name, ignored: " + listed(strays));
}

// ---------------------------------------------------------------- comparing with the catalogue

bool Checkpoint::State::has(Section section) const {
  return std::any_of(catalog.begin(), catalog.end(), [&](const ExpectedTensor& expected) {
    return expected.section == section && records.contains(expected.name);
  });
}

void Checkpoint::State::check(Section section, std::vector<std::string>& problems) const {
  if (section == Section::kDrafter && config.n_draft_layers == 0) {
    problems.emplace_back("the drafter is asked for but text_config.num_nextn_predict_layers is 0");
  }
  if (section == Section::kVision && !config.vision) {
    problems.emplace_back("vision is asked for but config.json has no vision_config");
  }
  for (const ExpectedTensor& expected : catalog) {
    if (expected.section != section) continue;
    const auto found = records.find(expected.name);
    if (found == records.end()) {
      const auto elsewhere = unindexed.find(expected.name);
      problems.push_back(
          "missing tensor " + expected.name +
          (elsewhere == unindexed.end() ? "" : " (" + elsewhere->second + " has it but the index does not name it)"));
      continue;
    }
    if (!found->second.is_located) continue;  // reported with its shard
    const SafetensorsEntry& entry = found->second.entry;
    if (entry.dtype != expected.dtype) {
      problems.push_back("tensor " + expected.name + " has type " + printable(entry.dtype_tag) + ", must be " +
                         std::string(safetensors_tag(expected.dtype)));
    } else if (entry.shape != expected.shape) {
      problems.push_back("tensor " + expected.name + " has shape " + entry.shape.to_string() + ", must be " +
                         expected.shape.to_string());
    }
  }
}

std::vector<std::string> Checkpoint::State::extras() const {
  std::set<std::string_view> known;
  for (const ExpectedTensor& expected : catalog) known.insert(expected.name);
  std::vector<std::string> names;
  for (const auto& [name, record] : records) {
    if (!known.contains(name)) names.push_back(printable(name));
  }
  return names;
}

Result<Checkpoint> Checkpoint::open(const std::string& dir, SectionSet sections) {
  std::error_code error;
  if (!std::filesystem::is_directory(dir, error)) {
    return Error{Code::kBadModelFile, dir + ": " + (error ? error.message() : "not a directory")};
  }
  auto state = std::make_unique<State>();
  state->dir = dir;
  DI_ASSIGN_OR_RETURN(const std::string config_text, read_text_file(state->path(kConfigName), kConfigBytesMax));
  auto config = parse_model_config(config_text);
  if (!config) return Error{config.error().code, dir + "/" + config.error().message};
  state->config = *std::move(config);
  state->catalog = expected_tensors(state->config);
  for (const std::string& key : state->config.unknown_keys) {
    state->warnings.push_back("config.json has the unknown key " + key + ", ignored");
  }

  std::vector<std::string> problems;
  const bool is_single = !path_exists(state->path(kIndexName)) && path_exists(state->path(kSingleName));
  if (is_single) {
    state->shards.push_back({kSingleName, std::nullopt});
  } else if (path_exists(state->path(kIndexName))) {
    DI_RETURN_IF_ERROR(state->read_index(problems));
  } else {
    return Error{Code::kBadModelFile, dir + ": has neither " + kIndexName + " nor " + kSingleName};
  }
  for (size_t i = 0; i < state->shards.size(); ++i) state->open_shard(i, is_single, problems);
  state->check_located(problems);
  state->warn_about_strays();

  // Without its only shard nothing can be said about tensors.
  if (!is_single || state->shards.front().file) {
    for (const Section section : {Section::kText, Section::kDrafter, Section::kVision}) {
      if (section == Section::kText || sections.contains(section) || state->has(section)) {
        state->check(section, problems);
      }
    }
    const std::vector<std::string> extras = state->extras();
    if (!extras.empty()) state->warnings.push_back("tensors this model does not use, ignored: " + listed(extras));
  }
  DI_RETURN_IF_ERROR(problems_status(dir, problems));

  int64_t total_bytes = 0;
  for (const auto& [name, record] : state->records) total_bytes += record.entry.size_bytes;
  if (!is_single && state->total_bytes != total_bytes) {
    state->warnings.push_back("index says " + std::to_string(state->total_bytes) + " bytes of tensors, files have " +
                              std::to_string(total_bytes));
  }
  state->total_bytes = total_bytes;
  return Checkpoint(std::move(state));
}

CatalogReport check_catalog(const Checkpoint& checkpoint, SectionSet sections) {
  CatalogReport report;
  for (const Section section : {Section::kText, Section::kDrafter, Section::kVision}) {
    if (sections.contains(section)) checkpoint.state_->check(section, report.problems);
  }
  report.extras = checkpoint.state_->extras();
  return report;
}

// ---------------------------------------------------------------- an open checkpoint

Checkpoint::Checkpoint(std::unique_ptr<State> state) : state_(std::move(state)) {}
Checkpoint::Checkpoint(Checkpoint&& other) noexcept = default;
Checkpoint& Checkpoint::operator=(Checkpoint&& other) noexcept = default;
Checkpoint::~Checkpoint() = default;

const std::string& Checkpoint::dir() const { return state_->dir; }
const ModelConfig& Checkpoint::config() const { return state_->config; }
std::span<const ExpectedTensor> Checkpoint::catalog() const { return state_->catalog; }
const std::vector<std::string>& Checkpoint::warnings() const { return state_->warnings; }
bool Checkpoint::has(Section section) const { return state_->has(section); }
int64_t Checkpoint::total_bytes() const { return state_->total_bytes; }
bool Checkpoint::contains(std::string_view name) const { return state_->records.find(name) != state_->records.end(); }

const SafetensorsEntry* Checkpoint::entry(std::string_view name) const {
  const auto found = state_->records.find(name);
  return found == state_->records.end() ? nullptr : &found->second.entry;
}

std::vector<const SafetensorsEntry*> Checkpoint::entries() const {
  std::vector<const SafetensorsEntry*> out;
  out.reserve(state_->records.size());
  for (const auto& [name, record] : state_->records) out.push_back(&record.entry);
  return out;
}

Result<TensorView> Checkpoint::find(std::string_view name) const {
  const auto found = state_->records.find(name);
  if (found == state_->records.end()) {
    return Error{Code::kBadModelFile, state_->dir + ": missing tensor " + printable(name)};
  }
  const Record& record = found->second;
  const SafetensorsEntry& entry = record.entry;
  if (!entry.dtype) {
    return Error{Code::kBadModelFile,
                 "tensor " + printable(name) + " has the unsupported type " + printable(entry.dtype_tag)};
  }
  if (record.aligned_copy) return TensorView{record.aligned_copy.get(), *entry.dtype, entry.shape};
  if (!is_aligned(entry)) {
    return Error{Code::kBadModelFile, "tensor " + printable(name) + " lies at offset " +
                                          std::to_string(entry.offset_bytes) +
                                          ", not aligned to its elements: it has to be loaded first"};
  }
  const MappedFile& file = *state_->shards[record.shard_idx].file;
  DI_CHECK(entry.offset_bytes <= file.size() - entry.size_bytes);  // checked when the header was parsed
  return TensorView{file.bytes().data() + entry.offset_bytes, *entry.dtype, entry.shape};
}

// ---------------------------------------------------------------- loading

Status Checkpoint::State::load_record(Record& record, const LoadProgress& progress, int64_t& done,
                                      int64_t total) const {
  const SafetensorsEntry& entry = record.entry;
  const MappedFile& file = *shards[record.shard_idx].file;
  const auto n_bytes = static_cast<size_t>(entry.size_bytes);
  std::unique_ptr<std::byte[]> copy;
  if (!is_aligned(entry) && !record.aligned_copy) copy = std::make_unique_for_overwrite<std::byte[]>(n_bytes);
  for (int64_t offset = 0; offset < entry.size_bytes;) {
    const int64_t piece = std::min(kPrefaultPieceBytes, entry.size_bytes - offset);
    if (copy) {
      DI_RETURN_IF_ERROR(
          file.read_at(entry.offset_bytes + offset, std::span(copy.get() + offset, copy.get() + offset + piece)));
    } else {
      DI_RETURN_IF_ERROR(file.prefault(entry.offset_bytes + offset, piece));
    }
    offset += piece;
    done += piece;
    if (progress) progress(done, total);
  }
  if (copy) record.aligned_copy = std::move(copy);
  return check_finite(record);
}

/// Reads instead of looking through the map: a file that is cut meanwhile is then an error and no signal.
Status Checkpoint::State::check_finite(const Record& record) const {
  constexpr int64_t kPieceBytes = 1 << 20;
  const SafetensorsEntry& entry = record.entry;
  if (!entry.dtype) return {};  // an unknown type can be loaded, not viewed
  const MappedFile& file = *shards[record.shard_idx].file;
  const int64_t element = element_bytes(*entry.dtype);
  std::vector<std::byte> piece(static_cast<size_t>(std::min(kPieceBytes, entry.size_bytes)));
  for (int64_t offset = 0; offset < entry.size_bytes; offset += kPieceBytes) {
    const int64_t n_bytes = std::min(kPieceBytes, entry.size_bytes - offset);
    DI_RETURN_IF_ERROR(file.read_at(entry.offset_bytes + offset, std::span(piece).first(static_cast<size_t>(n_bytes))));
    if (!all_finite({piece.data(), *entry.dtype, Shape{n_bytes / element}})) {
      return Error{Code::kBadModelFile,
                   file.path() + ": tensor " + printable(entry.name) + " holds a value that is not a finite number"};
    }
  }
  return {};
}

Status Checkpoint::load_tensors(std::span<const std::string> names, const LoadProgress& progress) {
  std::vector<Record*> records;
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    const auto found = state_->records.find(name);
    if (found == state_->records.end()) {
      missing.push_back("missing tensor " + printable(name));
    } else {
      records.push_back(&found->second);
    }
  }
  DI_RETURN_IF_ERROR(problems_status(state_->dir, missing));

  // Files front to back: disks and read-ahead like it, and a tensor named twice is loaded once.
  const auto place = [](const Record* record) { return std::pair(record->shard_idx, record->entry.offset_bytes); };
  std::sort(records.begin(), records.end(), [&](const Record* a, const Record* b) {
    return std::pair(place(a), a->entry.size_bytes) < std::pair(place(b), b->entry.size_bytes);
  });
  records.erase(std::unique(records.begin(), records.end()), records.end());
  int64_t total = 0;
  for (const Record* record : records) total += record->entry.size_bytes;
  int64_t done = 0;
  if (progress) progress(0, total);
  for (Record* record : records) DI_RETURN_IF_ERROR(state_->load_record(*record, progress, done, total));
  return verify_sizes();
}

Status Checkpoint::load(SectionSet sections, const LoadProgress& progress) {
  std::vector<std::string> names;
  for (const ExpectedTensor& expected : state_->catalog) {
    if (!sections.contains(expected.section)) continue;
    const auto found = state_->records.find(expected.name);
    if (found == state_->records.end()) continue;  // a section nobody asked open() for
    if (expected.random_access) {
      const SafetensorsEntry& entry = found->second.entry;
      state_->shards[found->second.shard_idx].file->advise_random(entry.offset_bytes, entry.size_bytes);
    } else {
      names.push_back(expected.name);
    }
  }
  return load_tensors(names, progress);
}

Status Checkpoint::State::verify_sizes() const {
  std::vector<std::string> problems;
  for (const Shard& shard : shards) {
    const Status status = shard.file->verify_size();
    if (!status.ok()) problems.push_back(status.error().message);
  }
  return problems_status(dir, problems);
}

Status Checkpoint::verify_sizes() const { return state_->verify_sizes(); }

}  // namespace deepinfer

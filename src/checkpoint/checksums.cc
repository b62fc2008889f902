#include "checkpoint/checksums.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "checkpoint/file_io.h"
#include "platform/mapped_file.h"
#include "platform/sha256.h"

namespace deepinfer {

namespace {

constexpr const char* kListName = "SHA256SUMS";
constexpr int64_t kListBytesMax = int64_t{1} << 20;
constexpr size_t kSumDigits = 64;

struct ListedFile {
  std::string_view sum;
  std::string_view name;
};

/// "<64 digits>  <name>", where '*' may stand for the second blank. Nothing for any other line.
bool parse_line(std::string_view line, ListedFile& file) {
  if (line.size() <= kSumDigits + 2) return false;
  file = {line.substr(0, kSumDigits), line.substr(kSumDigits + 2)};
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (!std::ranges::all_of(file.sum, is_digit)) return false;
  if (line[kSumDigits] != ' ' || (line[kSumDigits + 1] != ' ' && line[kSumDigits + 1] != '*')) return false;
  return file.name != "." && file.name != ".." && file.name.find_first_of("/\\\r") == std::string_view::npos;
}

Result<std::vector<ListedFile>> parse_list(const std::string& path, std::string_view text) {
  std::vector<ListedFile> files;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    ListedFile file;
    if (end == std::string_view::npos || !parse_line(text.substr(0, end), file)) {
      return Error{Code::kBadModelFile, path + ": line " + std::to_string(files.size() + 1) +
                                            " is not a SHA-256 sum, two blanks and the name of a file"};
    }
    files.push_back(file);
    text.remove_prefix(end + 1);
  }
  return files;
}

Result<bool> has_sum(const MappedFile& file, std::string_view sum) {
  DI_RETURN_IF_ERROR(file.prefault(0, file.size()));
  DI_ASSIGN_OR_RETURN(const std::string actual, sha256_hex(file.bytes()));
  return actual == sum;
}

}  // namespace

Result<ChecksumReport> verify_checksums(const std::string& model_dir) {
  const std::filesystem::path dir(model_dir);
  const std::string list_path = dir / kListName;
  DI_ASSIGN_OR_RETURN(const std::string text, read_text_file(list_path, kListBytesMax));
  DI_ASSIGN_OR_RETURN(const std::vector<ListedFile> files, parse_list(list_path, text));
  ChecksumReport report{.n_files = static_cast<int64_t>(files.size())};
  for (const ListedFile& listed : files) {
    const std::filesystem::path path = dir / listed.name;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) {
      report.problems.push_back(std::string(listed.name) + " is missing");
      continue;
    }
    const Result<MappedFile> file = MappedFile::open(path);
    if (!file.ok()) {
      report.problems.push_back(file.error().message);
      continue;
    }
    report.n_bytes += file->size();
    DI_ASSIGN_OR_RETURN(const bool is_right, has_sum(*file, listed.sum));
    if (!is_right) report.problems.push_back(std::string(listed.name) + " is changed");
  }
  return report;
}

}  // namespace deepinfer

// Header, metadata, tensor descriptions, data section: a GGUF file from first byte to last.
//
//   "GGUF" | u32 version | u64 tensors | u64 keys | keys and values | tensor descriptions
//   | padding to general.alignment (32) | tensor data, each tensor padded to the alignment
// Versions 2 and 3 have this layout; version 1 had 32-bit counts. Source: ggml, docs/gguf.md.
#include "format/gguf_file.h"

#include <bit>
#include <cstdint>
#include <optional>
#include <utility>

#include "detrun/error.h"
#include "detrun/text.h"
#include "format/byte_reader.h"
#include "format/metadata.h"
#include "format/tensor_table.h"

namespace detrun {
namespace {

constexpr std::uint64_t kAlignmentDefault = 32;
constexpr std::uint64_t kAlignmentMin = 8;                 // "must be a multiple of 8"
constexpr std::uint64_t kAlignmentMax = 16 * 1024 * 1024;  // far beyond any page size in use

/// Other files that are taken for a GGUF file, by their first bytes.
struct Lookalike {
  std::string_view start;
  std::string_view what;
  std::string_view hint;
};
constexpr Lookalike kLookalikes[] = {
    {"version https://git-lfs", "is a Git LFS pointer, not the model itself",
     "fetch the file with git lfs pull"},
    {"lmgg", "is in the old GGML format", "convert the original model to GGUF"},
    {"fmgg", "is in the old GGML format", "convert the original model to GGUF"},
    {"tjgg", "is in the old GGJT format", "convert the original model to GGUF"},
    {"PK\x03\x04", "is a zip archive (a PyTorch checkpoint?)", "convert the model to GGUF"},
    {"<!DOCTYPE", "is an HTML page, probably saved instead of the model", "download it again"},
    {"<html", "is an HTML page, probably saved instead of the model", "download it again"},
};

void check_magic(const std::string& path, std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("GGUF")) return;
  for (const Lookalike& other : kLookalikes) {
    if (text.starts_with(other.start)) {
      refuse(path, "not a GGUF file: it " + std::string(other.what), std::string(other.hint));
    }
  }
  refuse(path,
         "not a GGUF file: \"GGUF\" expected at byte 0, found \"" +
             escape_for_terminal(text.substr(0, 4)) + "\"",
         "give a model in the GGUF format");
}

std::uint32_t read_version(ByteReader& reader) {
  const auto version = reader.number<std::uint32_t>({.what = "the version"});
  if (version == 2 || version == 3) return version;
  // The magic is the same in both byte orders, so only the version tells them apart.
  if (version != 0 && (version & 0xFFFF) == 0) {
    refuse(reader.path(),
           "big-endian file (version " + std::to_string(__builtin_bswap32(version)) +
               " in that byte order); a little-endian file expected",
           "convert it with gguf-py's gguf_convert_endian.py FILE little");
  }
  refuse(reader.path(), "GGUF version " + std::to_string(version) + "; version 2 or 3 expected",
         version == 1 ? "convert the original model again with a current converter"
                      : "a newer release of this program may read it");
}

std::uint64_t alignment_of(const std::string& path, const Metadata& metadata) {
  const std::uint64_t value = metadata.get_u64("general.alignment").value_or(kAlignmentDefault);
  if (!std::has_single_bit(value) || value < kAlignmentMin || value > kAlignmentMax) {
    refuse(path, "key 'general.alignment' is " + std::to_string(value) + "; a power of two from " +
                     std::to_string(kAlignmentMin) + " to " + std::to_string(kAlignmentMax) +
                     " expected");
  }
  return value;
}

void refuse_split(const std::string& path, const Metadata& metadata) {
  const std::uint64_t parts = metadata.get_u64("split.count").value_or(0);
  if (parts <= 1) return;
  const std::optional<std::uint64_t> part = metadata.get_u64("split.no");
  const std::string which =
      part && *part < parts ? "part " + std::to_string(*part + 1) : std::string("one part");
  refuse(path,
         "is " + which + " of a model split into " + std::to_string(parts) +
             " files (split.count), which is not supported",
         "merge the parts first: llama-gguf-split --merge FIRST_PART OUTPUT.gguf");
}

class GgufFile final : public ModelFile {
 public:
  GgufFile(std::string path, std::span<const std::byte> bytes, std::optional<FileBytes> file)
      : path_(std::move(path)),
        file_(std::move(file)),
        bytes_(bytes),
        metadata_(path_),
        table_(path_) {
    check_magic(path_, bytes_);
    ByteReader reader(path_, bytes_);
    reader.take(4, {.what = "the magic"});
    version_ = read_version(reader);
    const auto n_tensors = reader.number<std::uint64_t>({.what = "the number of tensors"});
    const auto n_keys = reader.number<std::uint64_t>({.what = "the number of metadata keys"});
    metadata_.parse(reader, n_keys);
    refuse_split(path_, metadata_);
    const std::uint64_t alignment = alignment_of(path_, metadata_);
    table_.parse(reader, n_tensors);
    table_.bind(bytes_, reader.position(), alignment);
  }

  const std::string& path() const override { return path_; }
  std::span<const std::byte> bytes() const override { return bytes_; }
  void check_unchanged() const override {
    if (file_) file_->check_unchanged();
  }
  void release(std::span<const std::byte> part) const override {
    if (file_) file_->release(part);
  }
  std::uint32_t version() const override { return version_; }

  const std::vector<TensorInfo>& tensors() const override { return table_.tensors(); }
  const TensorInfo* find_tensor(std::string_view name) const override { return table_.find(name); }

  const std::vector<std::string>& keys() const override { return metadata_.keys(); }
  std::optional<MetaType> type_of(std::string_view key) const override {
    return metadata_.type_of(key);
  }
  std::optional<MetaArray> array_of(std::string_view key) const override {
    return metadata_.array_of(key);
  }
  std::optional<std::uint64_t> get_u64(std::string_view key) const override {
    return metadata_.get_u64(key);
  }
  std::optional<double> get_f64(std::string_view key) const override {
    return metadata_.get_f64(key);
  }
  std::optional<bool> get_bool(std::string_view key) const override {
    return metadata_.get_bool(key);
  }
  std::optional<std::string_view> get_string(std::string_view key) const override {
    return metadata_.get_string(key);
  }
  std::optional<std::vector<std::string_view>> get_strings(std::string_view key) const override {
    return metadata_.get_strings(key);
  }
  std::optional<std::vector<double>> get_f64s(std::string_view key) const override {
    return metadata_.get_f64s(key);
  }
  std::optional<std::vector<std::int64_t>> get_i64s(std::string_view key) const override {
    return metadata_.get_i64s(key);
  }

 private:
  std::string path_;
  std::optional<FileBytes> file_;
  std::span<const std::byte> bytes_;
  std::uint32_t version_ = 0;
  Metadata metadata_;
  TensorTable table_;
};

}  // namespace

std::unique_ptr<ModelFile> parse_gguf(const std::string& path, std::span<const std::byte> bytes) {
  return std::make_unique<GgufFile>(path, bytes, std::nullopt);
}

std::unique_ptr<ModelFile> parse_gguf(const std::string& path, FileBytes file) {
  const std::span<const std::byte> bytes = file.bytes();  // the pages stay where they are
  return std::make_unique<GgufFile>(path, bytes, std::move(file));
}

}  // namespace detrun

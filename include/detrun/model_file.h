// A model file's metadata and tensors, bounded: every count, offset and length was compared with
// the bytes of the file before use. GGUF versions 2 and 3. Knows nothing of architectures.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "detrun/quant.h"

namespace detrun {

/// One tensor of the file. dims[0] is the row length (fastest varying), unused dims are 1.
struct TensorInfo {
  std::string name;
  QType type;
  std::uint32_t n_dims;
  std::array<std::uint64_t, 4> dims;
  std::span<const std::byte> data;  ///< inside the mapping; whole rows

  std::uint64_t row_elems() const { return dims[0]; }
  std::uint64_t n_rows() const { return dims[1] * dims[2] * dims[3]; }
};

/// Kinds of metadata values, in GGUF's numbering.
enum class MetaType : std::uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

/// "U32", "STRING", "ARRAY": the names of the format's documentation. "?" for no such type.
std::string_view meta_type_name(MetaType type);

/// Element type and length of an array value.
struct MetaArray {
  MetaType type;
  std::uint64_t count;
};

/// How the bytes come into memory. Same bytes, same digest either way (a test of the matrix).
/// kMap shares the pages of the file: when somebody else cuts it short while it is in use, the
/// kernel ends the process (SIGBUS). kRead holds a copy and does not care.
enum class LoadMethod { kMap, kRead };

/// A model file. Errors are kUsage and name file, field and value; never a signal, a hang, or an
/// allocation larger than the file justifies.
class ModelFile {
 public:
  /// Opens, maps and parses. Refused: not GGUF, big-endian, version other than 2 and 3, truncated,
  /// alignment not a power of two, duplicate keys or tensor names, overlapping or out-of-range
  /// tensors, bytes that no tensor owns (beyond padding to the alignment), rows that are no whole
  /// number of blocks, sizes that overflow, tensor types without a known block size, one part of a
  /// split model, anything but a regular file. A type that no kernel supports is accepted here.
  /// Vocabulary-only files (no tensors) are accepted.
  static std::unique_ptr<ModelFile> open(const std::string& path,
                                         LoadMethod method = LoadMethod::kMap);
  virtual ~ModelFile() = default;

  virtual const std::string& path() const = 0;
  /// All bytes of the file, as mapped: what a digest of "the bytes used" covers.
  virtual std::span<const std::byte> bytes() const = 0;
  /// Error kUsage when the file's size, time of modification or time of status change is no longer
  /// what it was when it was opened (asked of the same descriptor): then the bytes used are not
  /// known to be one file. Renaming, linking or replacing the file counts as a change.
  virtual void check_unchanged() const = 0;
  /// Says that nobody needs `part` of bytes() soon: its whole pages no longer count as memory of
  /// this process and are taken from the file again when they are read. Does nothing to a copy
  /// (kRead).
  virtual void release(std::span<const std::byte> part) const = 0;
  virtual std::uint32_t version() const = 0;

  virtual const std::vector<TensorInfo>& tensors() const = 0;
  virtual const TensorInfo* find_tensor(std::string_view name) const = 0;

  /// Keys in file order.
  virtual const std::vector<std::string>& keys() const = 0;
  virtual std::optional<MetaType> type_of(std::string_view key) const = 0;
  /// nullopt: absent or no array.
  virtual std::optional<MetaArray> array_of(std::string_view key) const = 0;
  /// Scalars. nullopt: absent. A value of another kind or out of range is Error kUsage naming the
  /// key; any integer kind is accepted for an integer, F32 and F64 for a float.
  virtual std::optional<std::uint64_t> get_u64(std::string_view key) const = 0;
  virtual std::optional<double> get_f64(std::string_view key) const = 0;
  virtual std::optional<bool> get_bool(std::string_view key) const = 0;
  virtual std::optional<std::string_view> get_string(std::string_view key) const = 0;
  /// Arrays, copied out. nullopt: absent. Views point into the mapping.
  virtual std::optional<std::vector<std::string_view>> get_strings(std::string_view key) const = 0;
  virtual std::optional<std::vector<double>> get_f64s(std::string_view key) const = 0;
  virtual std::optional<std::vector<std::int64_t>> get_i64s(std::string_view key) const = 0;
};

/// A value for each layer: an array of exactly n_layers integers, or one scalar that is meant for
/// all of them. nullopt: absent. Error kUsage: negative, not an integer, another length.
std::optional<std::vector<std::uint64_t>> get_u64_per_layer(const ModelFile& file,
                                                            std::string_view key,
                                                            std::uint32_t n_layers);

}  // namespace detrun

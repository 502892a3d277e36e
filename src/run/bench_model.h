// A model of a known shape with pseudo-random weights, made in memory: for measuring speed without
// a model file. Byte for byte what scripts/make_synthetic_model.py writes, so that other programs
// can be given the same work. The text such a model generates means nothing.
//
// Every byte is a function of the tensor's name and the index of its block alone; who computes it
// and in which pieces has no influence.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "detrun/quant.h"
#include "detrun/run.h"

namespace detrun {

/// Names of the known shapes ("135m") and mixtures of types ("q8_0", "q4_k_m"), lower case.
std::vector<std::string> synthetic_shapes();
std::vector<std::string> synthetic_types();

/// One tensor of a synthetic model.
struct SyntheticTensor {
  std::string name;
  std::uint64_t n_rows, row_elems;
  QType type;
};
/// In the order of the file. Error kUsage for an unknown shape or mixture, naming the known ones.
std::vector<SyntheticTensor> synthetic_tensors(std::string_view shape, std::string_view type);

/// The key of a tensor for make_up_blocks (detrun/quant.h): FNV-1a, 64 bits.
std::uint64_t synthetic_key(std::string_view name);
/// Blocks [first, first + count) of a tensor (elements, for float types) into `out`, which has
/// their size: of a matrix, those of make_up_blocks; weights of norms lie between 1 and 2. `first`
/// is a multiple of 4. DETRUN_CHECK for a type that no mixture uses.
void fill_synthetic(std::string_view name, QType type, std::uint64_t first, std::uint64_t count,
                    std::span<std::byte> out);

/// What of an image is made: all of it, or all but the matrices, which somebody else makes up and
/// nobody reads here: they take no memory.
enum class SyntheticBytes { kAll, kNoMatrices };

/// A whole GGUF image in memory that has a path like a file, and no name anywhere. It lives as long
/// as the object.
class SyntheticModel {
 public:
  /// Makes the image with `n_threads` >= 1 threads. Error kUsage: unknown shape or type, more
  /// memory needed than this machine has free; kInternal: the memory or threads are refused.
  /// Ends early, with an image that is no model, when `cancel` becomes true.
  SyntheticModel(std::string_view shape, std::string_view type, std::uint32_t n_threads,
                 const std::atomic<bool>& cancel, Observer& observer,
                 SyntheticBytes made = SyntheticBytes::kAll);
  ~SyntheticModel();
  SyntheticModel(const SyntheticModel&) = delete;
  SyntheticModel& operator=(const SyntheticModel&) = delete;

  /// For ModelFile::open, in this process.
  const std::string& path() const { return path_; }

 private:
  int descriptor_;
  std::string path_;
};

}  // namespace detrun

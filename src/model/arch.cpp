// THE table of architectures, and reading a ModelSpec through it. Adding an architecture is one
// file arch_x.cpp and one row here.
#include "model/arch.h"

#include <array>
#include <string>

#include "detrun/error.h"
#include "model/metadata.h"
#include "model/weights.h"

namespace detrun {
namespace {

constexpr std::array<const Arch*, 1> kArchs = {&kArchLlama};

std::string join_names() {
  std::string names;
  for (const std::string& name : known_architectures()) names += (names.empty() ? "" : ", ") + name;
  return names;
}

const Arch& arch_of(const ModelFile& file) {
  const auto name = file.get_string("general.architecture");
  if (!name) refuse_model(file, "metadata key general.architecture is missing");
  const Arch* arch = find_arch(*name);
  if (arch == nullptr) {
    refuse_model(file, "architecture \"" + std::string(*name) + "\" is not supported",
                 "architectures of this version: " + join_names());
  }
  return *arch;
}

void check_vocabulary(const ModelFile& file, const ModelSpec& spec) {
  const auto tokens = file.get_strings("tokenizer.ggml.tokens");
  if (tokens && tokens->size() != spec.n_vocab) {
    refuse_model(file, "the vocabulary has " + std::to_string(tokens->size()) +
                           " tokens, token_embd.weight has " + std::to_string(spec.n_vocab) +
                           " rows");
  }
}

}  // namespace

const Arch* find_arch(std::string_view name) {
  for (const Arch* arch : kArchs) {
    if (arch->name == name) return arch;
  }
  return nullptr;
}

std::vector<std::string> known_architectures() {
  std::vector<std::string> names;
  names.reserve(kArchs.size());
  for (const Arch* arch : kArchs) names.emplace_back(arch->name);
  return names;
}

std::uint64_t dim_size(Dim dim, const ModelSpec& spec) {
  switch (dim) {
    case Dim::kOne:
      return 1;
    case Dim::kEmbd:
      return spec.n_embd;
    case Dim::kHeads:
      return std::uint64_t{spec.n_heads} * spec.head_dim;
    case Dim::kKvHeads:
      return std::uint64_t{spec.n_kv_heads} * spec.head_dim;
    case Dim::kFf:
      return spec.n_ff;
    case Dim::kVocab:
      return spec.n_vocab;
  }
  DETRUN_CHECK(false);
}

ModelSpec read_model_spec(const ModelFile& file) {
  if (file.tensors().empty()) {
    refuse_model(file, "the file has no tensors (a vocabulary alone cannot run)",
                 "such a file works with `detrun tokenize`");
  }
  const Arch& arch = arch_of(file);
  ModelSpec spec = arch.read_spec(file);
  check_vocabulary(file, spec);
  check_tensors(file, arch, spec);
  spec.quantization = dominant_type_name(file);
  for (const TensorInfo& tensor : file.tensors()) {
    spec.n_params += tensor.row_elems() * tensor.n_rows();
  }
  return spec;
}

}  // namespace detrun

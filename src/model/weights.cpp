// Binding of weights. Every refusal names the tensor, what was expected and what was found.
#include "model/weights.h"

#include <map>
#include <new>
#include <set>
#include <stdexcept>
#include <type_traits>

#include "detrun/error.h"
#include "detrun/log.h"
#include "detrun/quant.h"
#include "model/metadata.h"

namespace detrun {
namespace {

constexpr std::uint32_t kTypeIdsMax = 256;

std::string layer_tensor_name(std::uint32_t layer, std::string_view name) {
  return "blk." + std::to_string(layer) + "." + std::string(name);
}

std::string shape_text(std::uint64_t row_elems, std::uint64_t n_rows) {
  return n_rows == 1 ? "(" + std::to_string(row_elems) + ")"
                     : "(" + std::to_string(row_elems) + ", " + std::to_string(n_rows) + ")";
}

std::string supported_types() {
  std::string names;
  for (std::uint32_t id = 0; id < kTypeIdsMax; ++id) {
    const QTypeInfo* info = find_qtype(id);
    if (info == nullptr || !info->supported) continue;
    names += (names.empty() ? "" : ", ") + std::string(info->name);
  }
  return names;
}

/// What a tensor must look like, after the spec filled in the sizes.
struct Expected {
  std::string name;
  std::uint64_t row_elems, n_rows;
  bool is_matrix;
};

void check_tensor(const ModelFile& file, const Expected& expected) {
  const TensorInfo* tensor = file.find_tensor(expected.name);
  if (tensor == nullptr) refuse_model(file, "tensor " + expected.name + " is missing");
  const QTypeInfo& type = qtype_info(tensor->type);
  if (!type.supported) {
    refuse_model(file,
                 "tensor " + expected.name + " has type " + std::string(type.name) +
                     ", which this version cannot compute with",
                 "supported types: " + supported_types());
  }
  if (!expected.is_matrix && tensor->type != QType::kF32) {
    refuse_model(
        file, "tensor " + expected.name + " has type " + std::string(type.name) + ", expected F32");
  }
  const auto& dims = tensor->dims;
  if (dims[0] != expected.row_elems || dims[1] != expected.n_rows || dims[2] != 1 || dims[3] != 1) {
    std::string found = std::to_string(dims[0]);
    for (std::uint32_t i = 1; i < tensor->n_dims; ++i) found += ", " + std::to_string(dims.at(i));
    refuse_model(file, "tensor " + expected.name + " has shape (" + found + "), expected " +
                           shape_text(expected.row_elems, expected.n_rows));
  }
}

template <class Owner>
Expected expect(const TensorRow<Owner>& row, std::string name, const ModelSpec& spec) {
  return {std::move(name), dim_size(row.row_elems, spec), dim_size(row.n_rows, spec),
          row.matrix != nullptr};
}

bool is_absent_head(const TensorRow<OuterWeights>& row, const ModelSpec& spec) {
  return spec.tied_head && row.matrix == &OuterWeights::output;
}

void refuse_surplus(const ModelFile& file, const Arch& arch, const std::set<std::string>& known) {
  for (const TensorInfo& tensor : file.tensors()) {
    if (known.contains(tensor.name)) continue;
    const bool is_bias = tensor.name.ends_with(".bias");
    refuse_model(file, "tensor " + tensor.name + " is no part of a " + std::string(arch.name) +
                           " model of this shape" + (is_bias ? " (biases are not supported)" : ""));
  }
}

/// Puts one tensor into its slot; its bytes. The checks ran before: here only values can be
/// refused.
template <class Owner>
std::uint64_t bind_tensor(const TensorRow<Owner>& row, const std::string& name,
                          const ModelFile& file, Backend& backend, Owner& owner) {
  const TensorInfo* tensor = file.find_tensor(name);
  DETRUN_CHECK(tensor != nullptr);
  if (row.matrix != nullptr) {
    try {
      owner.*row.matrix = backend.load_weight({tensor->name, tensor->type, tensor->row_elems(),
                                               tensor->n_rows(), tensor->data,
                                               /*many_rows=*/std::is_same_v<Owner, LayerWeights>});
    } catch (const Error& error) {  // a backend knows tensors, not files
      if (error.kind() != ExitCode::kUsage) throw;
      throw_usage(file.path() + ": " + error.what(), error.hint());
    }
    file.release(tensor->data);  // the backend has its own copy now
    return tensor->data.size();
  }
  if (const auto bad = first_non_finite(tensor->type, tensor->data)) {
    refuse_model(file, "tensor " + name + " is not finite at element " + std::to_string(*bad));
  }
  std::vector<float> values(tensor->row_elems());
  decode_row(tensor->type, tensor->data, values);
  owner.*row.vector = backend.new_buffer(values.size());
  backend.upload(*(owner.*row.vector), values);
  return tensor->data.size();
}

/// Error kInternal unless the backend's memory holds all matrices: said before the first is read.
void check_memory(const ModelFile& file, const Backend& backend) {
  std::uint64_t bytes = 0;
  for (const TensorInfo& tensor : file.tensors()) {
    bytes += backend.weight_bytes(tensor.type, tensor.n_rows(), tensor.row_elems());
  }
  const BackendMemory memory = backend.memory();
  if (bytes <= memory.free) return;
  const auto mebibytes = [](std::uint64_t n) { return std::to_string((n >> 20U) + 1) + " MiB"; };
  throw_internal(file.path() + ": the weights need " + mebibytes(bytes) + ", " +
                     mebibytes(memory.free) + " of " + mebibytes(memory.total) + " are free" +
                     memory.where,
                 "use --backend cpu, another --device, or a smaller model");
}

}  // namespace

void check_tensors(const ModelFile& file, const Arch& arch, const ModelSpec& spec) {
  std::set<std::string> known = {std::string(kRopeFactorsName)};
  for (const auto& row : arch.outer_tensors) {
    if (is_absent_head(row, spec)) continue;
    check_tensor(file, expect(row, std::string(row.name), spec));
    known.emplace(row.name);
  }
  for (std::uint32_t layer = 0; layer < spec.n_layers; ++layer) {
    for (const auto& row : arch.layer_tensors) {
      const std::string name = layer_tensor_name(layer, row.name);
      check_tensor(file, expect(row, name, spec));
      known.insert(name);
    }
  }
  refuse_surplus(file, arch, known);
}

std::string dominant_type_name(const ModelFile& file) {
  std::map<QType, std::uint64_t> bytes_of;
  for (const TensorInfo& tensor : file.tensors()) bytes_of[tensor.type] += tensor.data.size();
  QType best = bytes_of.begin()->first;
  for (const auto& [type, bytes] : bytes_of) {
    if (bytes > bytes_of[best]) best = type;
  }
  return std::string(qtype_info(best).name);
}

BoundModel::BoundModel(const ModelFile& file, Backend& backend, const Progress& progress)
    : spec_(read_model_spec(file)) {
  const Arch* arch = find_arch(spec_.arch);
  DETRUN_CHECK(arch != nullptr);
  check_memory(file, backend);
  std::uint64_t total = 0;
  for (const TensorInfo& tensor : file.tensors()) total += tensor.data.size();
  std::uint64_t done = 0;
  const auto bind = [&](const auto& row, const std::string& name, auto& owner) {
    done += bind_tensor(row, name, file, backend, owner);
    progress(done, total);
  };
  for (const auto& row : arch->outer_tensors) {
    if (is_absent_head(row, spec_)) continue;
    bind(row, std::string(row.name), outer_);
  }
  layers_.resize(spec_.n_layers);
  for (std::uint32_t layer = 0; layer < spec_.n_layers; ++layer) {
    for (const auto& row : arch->layer_tensors) {
      bind(row, layer_tensor_name(layer, row.name), layers_[layer]);
    }
  }
}

std::unique_ptr<Model> Model::load(const ModelFile& file, Backend& backend,
                                   const Progress& progress) {
  try {
    auto model = std::make_unique<BoundModel>(file, backend, progress);
    const ModelSpec& spec = model->spec();
    log_info("model " + spec.arch + ", " + spec.quantization + ", " +
             std::to_string(spec.n_layers) + " layers, " + std::to_string(spec.n_params) +
             " parameters");
    return model;
  } catch (const std::bad_alloc&) {
    throw_internal(file.path() + ": not enough memory to load the weights");
  } catch (const std::length_error&) {
    throw_internal(file.path() + ": not enough memory to load the weights");
  }
}

}  // namespace detrun

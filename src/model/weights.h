// From a file's tensors to weights on a device: exact checks of names, types and shapes against the
// architecture's rows, then binding. Values are never changed on the way.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "detrun/backend.h"
#include "detrun/model.h"
#include "model/arch.h"

namespace detrun {

/// Optional divisors of RoPE frequencies; read with the ModelSpec, not a weight of the device.
inline constexpr std::string_view kRopeFactorsName = "rope_freqs.weight";

/// Error kUsage unless the file holds exactly the tensors of the spec, each of a supported type and
/// of its shape.
void check_tensors(const ModelFile& file, const Arch& arch, const ModelSpec& spec);

/// Name of the type that holds most weight bytes; of equals the one with the lowest GGUF id.
std::string dominant_type_name(const ModelFile& file);

/// The one implementation of Model: a spec and its weights.
class BoundModel final : public Model {
 public:
  BoundModel(const ModelFile& file, Backend& backend, const Progress& progress);
  const ModelSpec& spec() const override { return spec_; }
  const std::vector<LayerWeights>& layers() const { return layers_; }
  const Weight& token_embd() const { return *outer_.token_embd; }
  const Buffer& output_norm() const { return *outer_.output_norm; }
  const Weight& head() const { return spec_.tied_head ? *outer_.token_embd : *outer_.output; }

 private:
  ModelSpec spec_;
  std::vector<LayerWeights> layers_;
  OuterWeights outer_;
};

}  // namespace detrun

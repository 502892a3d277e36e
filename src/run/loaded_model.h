// A model ready to run: file, tokenizer, weights on a backend. What record, replay and tokenize
// have in common about the options that choose an engine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "detrun/backend.h"
#include "detrun/model.h"
#include "detrun/model_file.h"
#include "detrun/run.h"
#include "detrun/tokenizer.h"

namespace detrun {

/// Members in order of construction: what comes later uses what comes before.
struct LoadedModel {
  std::unique_ptr<ModelFile> file;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<Model> model;

  /// Tokenizer and weights of the file; nothing when that was done already. `observer` sees the
  /// bytes.
  void bind(Backend& backend, Observer& observer);
};

/// Error kUsage naming the backend that this program lacks or nobody knows, or the device that is
/// not there; kInternal when the driver fails.
void check_engine_options(const EngineOptions& options);
/// The backend that the options mean; only "auto" without a device decides by what there is.
std::unique_ptr<Backend> open_backend(const EngineOptions& options);

/// nullopt for a name other than f16 and f32.
std::optional<KvType> kv_type_by_name(std::string_view name);

/// Tokens that a context of n_ctx positions takes at once, by --chunk; 0: what suits the model and
/// the caches of this machine; the most, where a device computes. No influence on any portable bit.
std::uint32_t chunk_rows(std::uint32_t chunk, const ModelSpec& spec, std::uint32_t n_ctx,
                         const BackendInfo& backend);
/// A context of n_ctx positions that takes chunk_rows tokens at once. Error kInternal when memory
/// does not suffice, naming the size.
std::unique_ptr<Context> open_context(const Model& model, Backend& backend, std::uint32_t n_ctx,
                                      KvType kv_type, std::uint32_t chunk);

}  // namespace detrun

// See loaded_model.h.
#include "run/loaded_model.h"

#include <algorithm>

#include "detrun/error.h"

namespace detrun {

void LoadedModel::bind(Backend& backend) {
  if (!tokenizer) tokenizer = Tokenizer::create(*file);
  if (!model) model = Model::load(*file, backend);
}

void check_engine_options(const EngineOptions& options) {
  if (options.backend == "auto" || options.backend == "cpu") return;
  if (options.backend == "cuda") {
    throw_usage("backend cuda: this build has no CUDA backend", "use --backend cpu");
  }
  throw_usage("unknown backend '" + options.backend + "'", "known are auto, cpu and cuda");
}

std::unique_ptr<Backend> open_backend(const EngineOptions& options) {
  check_engine_options(options);
  return make_cpu_backend({.n_threads = options.threads, .isa = {}});
}

std::optional<KvType> kv_type_by_name(std::string_view name) {
  if (name == "f16") return KvType::kF16;
  if (name == "f32") return KvType::kF32;
  return std::nullopt;
}

std::uint32_t chunk_rows(std::uint32_t chunk, const ModelSpec& spec, std::uint32_t n_ctx) {
  return std::min(n_ctx, chunk == 0 ? default_chunk_rows(spec) : chunk);
}

std::unique_ptr<Context> open_context(const Model& model, Backend& backend, std::uint32_t n_ctx,
                                      KvType kv_type, std::uint32_t chunk) {
  return Context::create(model, backend, n_ctx, kv_type, chunk_rows(chunk, model.spec(), n_ctx));
}

}  // namespace detrun

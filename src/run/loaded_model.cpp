// See loaded_model.h.
#include "run/loaded_model.h"

#include <algorithm>
#include <limits>

#include "detrun/error.h"
#include "detrun/log.h"
#include "detrun/text.h"

namespace detrun {
namespace {

constexpr std::string_view kAuto = "auto";
constexpr std::string_view kCpu = "cpu";
constexpr std::string_view kCuda = "cuda";

/// Whether these options mean CUDA whatever is there: a device that is named is not passed over.
bool is_cuda_asked_for(const EngineOptions& options) {
  return options.backend == kAuto ? !options.device.empty() : options.backend != kCpu;
}

}  // namespace

void LoadedModel::bind(Backend& backend, Observer& observer) {
  if (!tokenizer) tokenizer = Tokenizer::create(*file);
  if (model) return;
  model = Model::load(*file, backend, [&](std::uint64_t done, std::uint64_t total) {
    observer.on_progress("loading the weights", done, total, "bytes");
  });
}

std::vector<std::string> backend_names() {
  std::vector<std::string> names{std::string(kAuto), std::string(kCpu), std::string(kCuda)};
  const std::string of_program = cuda_backend_name();
  if (!of_program.empty() && of_program != kCuda) names.push_back(of_program);
  return names;
}

void check_engine_options(const EngineOptions& options) {
  const std::vector<std::string> names = backend_names();
  if (std::find(names.begin(), names.end(), options.backend) == names.end()) {
    std::string known;
    for (const std::string& name : names) known += (known.empty() ? "" : ", ") + name;
    throw_usage("unknown backend '" + escape_for_terminal(options.backend) + "'",
                "known are " + known);
  }
  if (!is_cuda_asked_for(options)) {
    if (options.device.empty()) return;
    throw_usage("--device names a GPU, but --backend is cpu", "leave out one of them");
  }
  const std::string of_program = cuda_backend_name();
  if (options.backend == kCuda && !of_program.empty() && of_program != kCuda) {
    throw_usage("backend cuda: this program has " + of_program + " in its place",
                "use --backend " + of_program);
  }
  require_cuda_device({options.device});
}

std::unique_ptr<Backend> open_backend(const EngineOptions& options) {
  check_engine_options(options);
  const CudaOptions of_cuda{options.device, !options.no_graph};
  if (is_cuda_asked_for(options)) return make_cuda_backend(of_cuda);
  if (options.backend == kAuto && cuda_backend_name() == kCuda) {
    const CudaSupport cuda = cuda_support();
    if (cuda.usable) return make_cuda_backend(of_cuda);
    log_info("backend auto: cpu, because cuda is not usable: " + cuda.text);
  }
  return make_cpu_backend({.n_threads = options.threads, .isa = {}});
}

std::optional<KvType> kv_type_by_name(std::string_view name) {
  if (name == "f16") return KvType::kF16;
  if (name == "f32") return KvType::kF32;
  return std::nullopt;
}

std::uint32_t chunk_rows(std::uint32_t chunk, const ModelSpec& spec, std::uint32_t n_ctx,
                         const BackendInfo& backend) {
  if (chunk != 0) return std::min(n_ctx, chunk);
  // The caches of this machine say nothing about a device, which reads its weights once a chunk.
  constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();
  return std::min(n_ctx,
                  backend.device ? default_chunk_rows(spec, kNoLimit) : default_chunk_rows(spec));
}

std::unique_ptr<Context> open_context(const Model& model, Backend& backend, std::uint32_t n_ctx,
                                      KvType kv_type, std::uint32_t chunk) {
  return Context::create(model, backend, n_ctx, kv_type,
                         chunk_rows(chunk, model.spec(), n_ctx, backend.info()));
}

}  // namespace detrun

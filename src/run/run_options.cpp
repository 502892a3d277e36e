// THE table of the options that belong to one run. A new one: a row here, its place in
// RecordOptions, its line in detrun-record(1).
#include <limits>
#include <vector>

#include "detrun/error.h"
#include "detrun/run.h"

namespace detrun {

const std::vector<RunOption>& run_options() {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max());
  static const std::vector<RunOption> kOptions = {
      {.name = "n",
       .short_name = "n",
       .metavar = "N",
       .doc = "most tokens to generate [until the model ends]",
       .high = kMax,
       .set_number = [](RecordOptions& options, std::uint64_t n) { options.n = n; }},
      {.name = "ctx",
       .metavar = "N",
       .doc = "context in tokens [the model's own, at most 4096]",
       .low = 1,
       .high = kMax,
       .set_number = [](RecordOptions& options,
                        std::uint64_t n) { options.ctx = static_cast<std::uint32_t>(n); }},
      {.name = "kv",
       .metavar = "f16|f32",
       .doc = "type of the KV cache [f16]",
       .choices = {"f16", "f32"},
       .word = &RecordOptions::kv},
      {.name = "numerics",
       .metavar = "PROFILE",
       .doc = "arithmetic profile [portable]",
       .choices = {"portable", "cublas"},
       .word = &RecordOptions::numerics},
      {.name = "chunk",
       .metavar = "N",
       .group = "Engine",
       .doc = "tokens computed at once [by cache size, on a GPU 512]; no influence on any "
              "portable bit",
       .low = 1,
       .high = kMax,
       .set_number = [](RecordOptions& options,
                        std::uint64_t n) { options.engine.chunk = static_cast<std::uint32_t>(n); }},
  };
  return kOptions;
}

void add_tag(RecordOptions& options, const std::string& word, const std::string& what) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) {
    throw_usage(what + ": expected KEY=VALUE, found '" + word + "'");
  }
  options.tags.emplace_back(word.substr(0, equals), word.substr(equals + 1));
}

}  // namespace detrun

// Lines of fixtures/golden/models.txt and the logits they are about.
#include "golden_model.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <sstream>
#include <string_view>

#include "detrun/digest.h"
#include "detrun/error.h"
#include "detrun/model.h"
#include "detrun/model_file.h"

namespace golden {

using namespace detrun;

namespace {

std::uint64_t parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw_usage("'" + std::string(text) + "' is not a number");
  }
  return value;
}

std::vector<std::int32_t> make_tokens(const std::string& spec, std::uint32_t n_vocab) {
  const std::size_t at = spec.find('@');
  if (at == std::string::npos) throw_usage("tokens '" + spec + "', expected N@SEED");
  std::vector<std::int32_t> tokens(parse_number(std::string_view(spec).substr(0, at)));
  std::uint64_t state = parse_number(std::string_view(spec).substr(at + 1));
  for (std::int32_t& token : tokens) {
    state += 0x9e3779b97f4a7c15ull;
    std::uint64_t z = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    token = static_cast<std::int32_t>((z ^ (z >> 31)) % n_vocab);
  }
  return tokens;
}

}  // namespace

bool parse_case(const std::string& line, ModelCase& c) {
  std::istringstream words(line.substr(0, line.find('#')));
  if (!(words >> c.path)) return false;
  std::string rest;
  if (!(words >> c.tokens >> c.kv >> c.hash) || words >> rest) {
    throw_usage("'" + line + "': expected PATH TOKENS KV HASH");
  }
  return true;
}

std::vector<float> run_model(const ModelCase& c, const std::string& root, Backend& backend) {
  if (c.kv != "f16" && c.kv != "f32") throw_usage("kv '" + c.kv + "', expected f16 or f32");
  const auto file = ModelFile::open(root + "/" + c.path);
  const auto model = Model::load(*file, backend);
  const std::size_t n_vocab = model->spec().n_vocab;
  const std::vector<std::int32_t> tokens = make_tokens(c.tokens, model->spec().n_vocab);
  const auto n = static_cast<std::uint32_t>(tokens.size());
  const auto context =
      Context::create(*model, backend, n, c.kv == "f16" ? KvType::kF16 : KvType::kF32, n);
  std::vector<float> logits(n * n_vocab);
  std::uint32_t chunk = 1;
  for (std::uint32_t done = 0; done < n; ++chunk) {
    const std::uint32_t rows = std::min(chunk, n - done);
    context->forward(std::span(tokens).subspan(done, rows), rows,
                     std::span(logits).subspan(done * n_vocab, rows * n_vocab));
    done += rows;
  }
  return logits;
}

std::string hash_of(const std::vector<float>& logits) {
  return to_hex(xxh3_128(std::as_bytes(std::span(logits))));
}

}  // namespace golden

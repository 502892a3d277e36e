// Weights and contexts at their limits: values that are not finite, activations that overflow, a
// head that is not there, contexts that no memory holds.
#include <doctest/doctest.h>

#include "detrun/error.h"
#include "tests/unit/model/run_tiny.h"

using namespace detrun;
using namespace detrun::test;

namespace {

std::string error_of(Loaded& loaded, KvType kv, const Ids& tokens, ExitCode kind) {
  const auto context = Context::create(*loaded.model, *loaded.backend, 16, kv, 16);
  std::vector<float> logits(loaded.model->spec().n_vocab);
  try {
    context->forward(tokens, 1, logits);
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    CHECK(context->position() == 0);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("without output.weight the head is the embedding") {
  TinyFile tied = tiny_llama({.tied = true});
  TinyFile copied = tied;
  copied.tensors.push_back(copied.tensor("token_embd.weight"));
  copied.tensors.back().name = "output.weight";
  const Ids tokens = random_tokens(12, 61);
  const Outcome base = run(Loaded(tied.bytes()), tokens, 12);
  check_alive(base);
  CHECK(run(Loaded(copied.bytes()), tokens, 12) == base);
}

TEST_CASE("weights that are not finite are refused at load, naming the tensor") {
  const TinyFile whole = tiny_llama({});
  for (const TinyFile::Tensor& tensor : whole.tensors) {
    for (const float bad : {std::nanf(""), HUGE_VALF, -HUGE_VALF}) {
      TinyFile file = whole;
      std::string& data = file.tensor(tensor.name).data;
      patch_le(data, data.size() - 4, bad);
      std::string message = "loaded";
      try {
        const Loaded loaded(file.bytes());
      } catch (const Error& error) {
        CHECK(error.kind() == ExitCode::kUsage);
        message = error.what();
      }
      CHECK_MESSAGE(message.find(tensor.name) != std::string::npos, message);
    }
  }
}

TEST_CASE("a block scale that is not finite is refused at load, naming the tensor") {
  TinyFile file = tiny_llama({.type = gguf::kTensorQ8_0});
  patch_le(file.tensor("blk.1.ffn_gate.weight").data, 34 * 5, std::uint16_t{0x7c00});
  std::string message = "loaded";
  try {
    const Loaded loaded(file.bytes());
  } catch (const Error& error) {
    message = error.what();
  }
  CHECK_MESSAGE(message.find("blk.1.ffn_gate.weight") != std::string::npos, message);
}

TEST_CASE("keys beyond the range of f16 are an error that names the layer and the way out") {
  TinyFile file = tiny_llama({});
  std::string& keys = file.tensor("blk.1.attn_k.weight").data;
  for (std::size_t at = 0; at < keys.size(); at += 4) patch_le(keys, at, 1e5F);
  Loaded loaded(file.bytes());
  const std::string message = error_of(loaded, KvType::kF16, {1, 2, 3}, ExitCode::kInternal);
  CHECK_MESSAGE(message.starts_with("layer 1: "), message);
  CHECK(error_of(loaded, KvType::kF32, {1, 2, 3}, ExitCode::kInternal) == "no error");
}

TEST_CASE("activations that overflow are an error that names the layer") {
  TinyFile file = tiny_llama({.type = gguf::kTensorF32});
  for (const char* name : {"blk.1.ffn_up.weight", "blk.1.ffn_gate.weight"}) {
    std::string& data = file.tensor(name).data;
    for (std::size_t at = 0; at < data.size(); at += 4) patch_le(data, at, 1e30F);
  }
  TinyFile::Tensor& down = file.tensor("blk.1.ffn_down.weight");
  down.type = gguf::kTensorQ8_0;
  down.data = TinyWeights(3).matrix(gguf::kTensorQ8_0, down.dims[0], down.dims[1]);
  Loaded loaded(file.bytes());
  const std::string message = error_of(loaded, KvType::kF16, {1, 2}, ExitCode::kInternal);
  CHECK_MESSAGE(message.starts_with("layer 1: "), message);
}

TEST_CASE("contexts that cannot be are refused with words, not by running out of memory") {
  const Loaded loaded(tiny_llama({.n_layers = 2}).bytes());
  const auto refusal = [&](std::uint32_t n_ctx) -> std::string {
    try {
      Context::create(*loaded.model, *loaded.backend, n_ctx, KvType::kF32, 64);
    } catch (const Error& error) {
      return error.what();
    }
    return "created";
  };
  CHECK(refusal(0).find("0 positions") != std::string::npos);
  CHECK(refusal(1) == "created");
  const std::string huge = refusal(0xffffffffU);
  CHECK_MESSAGE(huge.find("4294967295 positions") != std::string::npos, huge);
}

TEST_CASE("a context says its sizes and takes no more rows than positions") {
  const Loaded loaded(tiny_llama({}).bytes());
  const auto context = Context::create(*loaded.model, *loaded.backend, 10, KvType::kF16, 64);
  CHECK(context->n_ctx() == 10);
  CHECK(context->max_rows() == 10);
  CHECK(context->position() == 0);
}

TEST_CASE("loading tells of every byte of the weights, and ends with all of them") {
  const Loaded loaded(tiny_llama({}).bytes());
  const auto backend = make_cpu_backend({});
  std::uint64_t before = 0;
  std::uint64_t last_total = 0;
  std::size_t n_calls = 0;
  const auto model =
      Model::load(*loaded.file, *backend, [&](std::uint64_t done, std::uint64_t total) {
        CHECK(done > before);
        before = done;
        last_total = total;
        ++n_calls;
      });
  std::uint64_t bytes = 0;
  for (const TensorInfo& tensor : loaded.file->tensors()) bytes += tensor.data.size();
  CHECK(before == bytes);
  CHECK(last_total == bytes);
  CHECK(n_calls == loaded.file->tensors().size());
}

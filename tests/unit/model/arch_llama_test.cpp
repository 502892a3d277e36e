// Metadata and tensors to a ModelSpec: what is accepted, and every refusal with the field, the
// value or the tensor in its message.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "detrun/error.h"
#include "detrun/model.h"
#include "tests/unit/model/tiny_model.h"

using namespace detrun;
using namespace detrun::test;

namespace {

ModelSpec spec_of(const TinyFile& file) {
  const TempFolder folder;
  return read_model_spec(*ModelFile::open(folder.write("m.gguf", file.bytes())));
}

/// The message of the refusal, which must be of kind kUsage and begin with the path.
std::string refusal(const TinyFile& file) {
  const TempFolder folder;
  const std::string path = folder.write("m.gguf", file.bytes());
  try {
    read_model_spec(*ModelFile::open(path));
  } catch (const Error& error) {
    CHECK(error.kind() == ExitCode::kUsage);
    const std::string message = error.what();
    CHECK(message.starts_with(path + ": "));
    return message.substr(path.size() + 2);
  }
  return "accepted";
}

std::string refusal_after(const std::function<void(TinyFile&)>& change) {
  TinyFile file = tiny_llama({});
  change(file);
  return refusal(file);
}

bool has(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  if (!found) MESSAGE(text);
  return found;
}

}  // namespace

TEST_CASE("a spec holds what the file says") {
  TinyFile file = tiny_llama({});
  file.f32("llama.rope.freq_base", 500000.0F);
  file.u32("llama.vocab_size", 61);
  const ModelSpec spec = spec_of(file);
  CHECK(spec.arch == "llama");
  CHECK(spec.name == "tiny");
  CHECK(spec.quantization == "F32");
  CHECK(spec.n_layers == 2);
  CHECK(spec.n_embd == 64);
  CHECK(spec.n_ff == 96);
  CHECK(spec.n_vocab == 61);
  CHECK(spec.n_heads == 4);
  CHECK(spec.n_kv_heads == 2);
  CHECK(spec.head_dim == 16);
  CHECK(spec.n_ctx_train == 256);
  CHECK(spec.rms_eps == 1e-5F);
  CHECK(spec.rope_dim == 16);
  CHECK(spec.rope_theta == 500000.0);
  CHECK(spec.rope_pairs == RopePairs::kAdjacent);
  CHECK(spec.rope_freq_factors.empty());
  CHECK_FALSE(spec.tied_head);
  // 2 heads and embeddings of 61 x 64, 5 norms of 64, 2 layers of q, o (64 x 64), k, v (64 x 32)
  // and three of 64 x 96.
  CHECK(spec.n_params == 2 * 61 * 64 + 5 * 64 + 2 * (2 * 4096 + 2 * 2048 + 3 * 6144));
}

TEST_CASE("absent keys have their defaults") {
  TinyFile file = tiny_llama({.n_heads = 4, .n_kv_heads = 4, .tied = true});
  for (const char* key :
       {"general.name", "llama.attention.head_count_kv", "llama.attention.key_length",
        "llama.attention.value_length", "llama.rope.dimension_count"}) {
    file.drop_key(key);
  }
  const ModelSpec spec = spec_of(file);
  CHECK(spec.name.empty());
  CHECK(spec.n_kv_heads == 4);
  CHECK(spec.head_dim == 16);
  CHECK(spec.rope_dim == 16);
  CHECK(spec.rope_theta == 10000.0);
  CHECK(spec.tied_head);
}

TEST_CASE("values of all layers may be an array when the layers agree") {
  TinyFile file = tiny_llama({});
  file.key("llama.attention.head_count_kv", [](GgufBuilder& b) {
    b.numbers("llama.attention.head_count_kv", std::vector<std::int32_t>{2, 2});
  });
  file.key("llama.feed_forward_length", [](GgufBuilder& b) {
    b.numbers("llama.feed_forward_length", std::vector<std::uint32_t>{96, 96});
  });
  CHECK(spec_of(file).n_kv_heads == 2);
  CHECK(spec_of(file).n_ff == 96);
  file.key("llama.feed_forward_length", [](GgufBuilder& b) {
    b.numbers("llama.feed_forward_length", std::vector<std::uint32_t>{96, 95});
  });
  const std::string message = refusal(file);
  CHECK(has(message, "llama.feed_forward_length is 95 in layer 1, expected 96"));
  file.key("llama.feed_forward_length", [](GgufBuilder& b) {
    b.numbers("llama.feed_forward_length", std::vector<std::uint32_t>{96, 96, 96});
  });
  CHECK(has(refusal(file), "llama.feed_forward_length"));
}

TEST_CASE("signed and wide integer kinds are accepted for counts") {
  TinyFile file = tiny_llama({});
  file.key("llama.block_count", [](GgufBuilder& b) { b.i32("llama.block_count", 2); });
  file.key("llama.context_length", [](GgufBuilder& b) { b.u64("llama.context_length", 256); });
  CHECK(spec_of(file).n_layers == 2);
}

TEST_CASE("an unknown architecture is named, and so are the known ones") {
  TinyFile file = tiny_llama({});
  file.string("general.architecture", "gptneox");
  CHECK(has(refusal(file), "architecture \"gptneox\" is not supported"));
  file.drop_key("general.architecture");
  CHECK(has(refusal(file), "general.architecture is missing"));
  CHECK(known_architectures() == std::vector<std::string>{"llama"});
}

TEST_CASE("a vocabulary-only file is refused as one") {
  TinyFile file = tiny_llama({});
  file.tensors.clear();
  CHECK(has(refusal(file), "has no tensors"));
}

TEST_CASE("every required key is named when it is missing") {
  for (const std::string key :
       {"block_count", "context_length", "embedding_length", "feed_forward_length",
        "attention.head_count", "attention.layer_norm_rms_epsilon"}) {
    const std::string message = refusal_after([&](TinyFile& f) { f.drop_key("llama." + key); });
    CHECK(has(message, "metadata key llama." + key + " is missing"));
  }
}

TEST_CASE("zero and absurd sizes are refused with field and value") {
  for (const std::string key :
       {"block_count", "context_length", "embedding_length", "feed_forward_length",
        "attention.head_count", "attention.head_count_kv", "attention.key_length"}) {
    for (const std::uint32_t value : {0U, 0xffffffffU}) {
      const std::string message = refusal_after([&](TinyFile& f) { f.u32("llama." + key, value); });
      CHECK(has(message, "llama." + key + " is " + std::to_string(value) + ", expected"));
    }
  }
}

TEST_CASE("heads that do not divide are refused, never truncated") {
  CHECK(has(refusal_after([](TinyFile& f) {
              f.u32("llama.attention.head_count", 3);
              f.u32("llama.attention.head_count_kv", 2);
            }),
            "llama.attention.head_count_kv is 2, expected a divisor of the 3 query heads"));
  CHECK(has(refusal_after([](TinyFile& f) { f.u32("llama.attention.head_count_kv", 8); }),
            "llama.attention.head_count_kv is 8"));
  CHECK(has(refusal_after([](TinyFile& f) {
              f.drop_key("llama.attention.key_length");
              f.u32("llama.attention.head_count", 6);
            }),
            "llama.attention.head_count is 6, expected a divisor of the embedding length 64"));
}

TEST_CASE("rotations that do not fit a head are refused") {
  CHECK(has(refusal_after([](TinyFile& f) { f.u32("llama.rope.dimension_count", 15); }),
            "llama.rope.dimension_count is 15, expected an even number"));
  CHECK(has(refusal_after([](TinyFile& f) { f.u32("llama.rope.dimension_count", 18); }),
            "llama.rope.dimension_count is 18, expected at most the head length 16"));
  CHECK(has(refusal_after([](TinyFile& f) { f.u32("llama.rope.dimension_count", 0); }),
            "llama.rope.dimension_count is 0"));
  CHECK(has(refusal_after([](TinyFile& f) { f.u32("llama.attention.value_length", 8); }),
            "llama.attention.value_length is 8"));
}

TEST_CASE("numbers outside their range are refused with field and value") {
  for (const float bad : {0.0F, -1.0F, 0.5F, 1e13F}) {
    CHECK(has(refusal_after([=](TinyFile& f) { f.f32("llama.rope.freq_base", bad); }),
              "llama.rope.freq_base is "));
  }
  for (const float bad : {0.0F, -1e-5F, 1.0F, HUGE_VALF, std::nanf("")}) {
    CHECK(has(
        refusal_after([=](TinyFile& f) { f.f32("llama.attention.layer_norm_rms_epsilon", bad); }),
        "llama.attention.layer_norm_rms_epsilon is "));
  }
}

TEST_CASE("features that change the arithmetic are refused by name") {
  CHECK(has(refusal_after([](TinyFile& f) { f.u32("llama.expert_count", 8); }),
            "llama.expert_count is 8, expected 0 (this feature is not supported)"));
  for (const std::string kind : {"yarn", "llama3", "longrope"}) {
    CHECK(has(refusal_after([&](TinyFile& f) { f.string("llama.rope.scaling.type", kind); }),
              "llama.rope.scaling.type is \"" + kind + "\""));
  }
  CHECK(has(refusal_after([](TinyFile& f) {
              f.string("llama.rope.scaling.type", "linear");
              f.f32("llama.rope.scaling.factor", 4.0F);
            }),
            "llama.rope.scaling.factor is 4, expected 1"));
  CHECK(has(refusal_after([](TinyFile& f) { f.f32("llama.rope.scale_linear", 2.0F); }),
            "llama.rope.scale_linear is 2"));
  CHECK(has(refusal_after([](TinyFile& f) { f.u32("llama.attention.sliding_window", 4096); }),
            "llama.attention.sliding_window is 4096"));
  CHECK(has(refusal_after([](TinyFile& f) { f.f32("llama.logit_scale", 0.5F); }),
            "llama.logit_scale is 0.5, expected 1"));
  CHECK(has(refusal_after([](TinyFile& f) {
              f.key("llama.attention.causal",
                    [](GgufBuilder& b) { b.boolean("llama.attention.causal", false); });
            }),
            "llama.attention.causal is false"));
}

TEST_CASE("the neutral value of an unsupported feature is accepted") {
  CHECK(refusal_after([](TinyFile& f) {
          f.u32("llama.expert_count", 0);
          f.string("llama.rope.scaling.type", "none");
          f.f32("llama.rope.scaling.factor", 1.0F);
          f.u32("llama.rope.scaling.original_context_length", 256);
        }) == "accepted");
}

TEST_CASE("frequency factors are read and checked") {
  const auto with_factors = [](const std::vector<float>& factors) {
    TinyFile file = tiny_llama({});
    const std::uint64_t n = factors.size();
    file.tensors.push_back({"rope_freqs.weight", gguf::kTensorF32, {n}, bytes_of(factors)});
    return file;
  };
  const std::vector<float> good = {1, 1, 1.5F, 2, 4, 8, 8, 8};
  CHECK(spec_of(with_factors(good)).rope_freq_factors == good);
  CHECK(has(refusal(with_factors({1, 1, 1})), "rope_freqs.weight has 3 x 1 elements, expected 8"));
  CHECK(
      has(refusal(with_factors({1, 1, 1, 0, 1, 1, 1, 1})), "rope_freqs.weight holds 0 at index 3"));
  CHECK(has(refusal(with_factors({1, 1, 1, 1, 1, 1, 1, std::nanf("")})), "at index 7"));
  TinyFile half = with_factors(good);
  half.tensor("rope_freqs.weight").type = gguf::kTensorF16;
  half.tensor("rope_freqs.weight").data.resize(16);
  CHECK(has(refusal(half), "rope_freqs.weight has type F16, expected F32"));
}

TEST_CASE("every missing tensor is named; without a head the embedding is used") {
  const TinyFile whole = tiny_llama({});
  for (const TinyFile::Tensor& tensor : whole.tensors) {
    TinyFile file = whole;
    file.drop_tensor(tensor.name);
    if (tensor.name == "output.weight") {
      CHECK(spec_of(file).tied_head);
    } else {
      CHECK(has(refusal(file), "tensor " + tensor.name + " is missing"));
    }
  }
}

TEST_CASE("a tensor the architecture does not know is refused by name") {
  const auto with = [](const std::string& name) {
    return refusal_after([&](TinyFile& f) {
      f.tensors.push_back({name, gguf::kTensorF32, {64}, std::string(256, '\0')});
    });
  };
  CHECK(has(with("blk.0.attn_q.bias"),
            "tensor blk.0.attn_q.bias is no part of a llama model of this shape (biases are not "
            "supported)"));
  CHECK(has(with("blk.2.attn_norm.weight"), "blk.2.attn_norm.weight"));
  CHECK(has(with("blk.00.attn_norm.weight"), "blk.00.attn_norm.weight"));
  CHECK(has(with("something"), "tensor something "));
}

TEST_CASE("the shape of every tensor is checked exactly") {
  const TinyFile whole = tiny_llama({});
  for (const TinyFile::Tensor& tensor : whole.tensors) {
    if (tensor.name == "token_embd.weight") continue;  // its rows define the vocabulary
    TinyFile file = whole;
    TinyFile::Tensor& cut = file.tensor(tensor.name);
    cut.dims.back() -= 1;
    cut.data.resize(cut.data.size() - (cut.dims.size() == 1 ? 4 : 4 * cut.dims[0]));
    CHECK(has(refusal(file), "tensor " + tensor.name + " has shape ("));
    // The same number of elements in another arrangement is another matrix.
    TinyFile turned = whole;
    TinyFile::Tensor& t = turned.tensor(tensor.name);
    if (t.dims.size() == 2 && t.dims[0] != t.dims[1]) {
      std::swap(t.dims[0], t.dims[1]);
    } else {
      t.dims = {t.dims[0] / 2, t.dims.size() == 2 ? t.dims[1] * 2 : 2};
    }
    CHECK(has(refusal(turned), "tensor " + tensor.name + " has shape ("));
  }
}

TEST_CASE("a vocabulary of another size than the embedding is refused") {
  CHECK(has(refusal_after([](TinyFile& f) { f.u32("llama.vocab_size", 60); }),
            "llama.vocab_size is 60, expected the 61 rows of token_embd.weight"));
  const auto with_tokens = [](std::size_t n) {
    return refusal_after([&](TinyFile& f) {
      f.key("tokenizer.ggml.tokens", [=](GgufBuilder& b) {
        b.strings("tokenizer.ggml.tokens", std::vector<std::string>(n, "x"));
      });
    });
  };
  CHECK(with_tokens(61) == "accepted");
  CHECK(has(with_tokens(62), "the vocabulary has 62 tokens, token_embd.weight has 61 rows"));
}

TEST_CASE("tensor types are checked and named") {
  TinyFile file = tiny_llama({});
  TinyFile::Tensor& matrix = file.tensor("blk.1.ffn_up.weight");
  matrix.type = gguf::kTensorQ8_1;
  matrix.data.resize(matrix.dims[0] / 32 * 36 * matrix.dims[1]);
  CHECK(has(refusal(file), "tensor blk.1.ffn_up.weight has type Q8_1, which"));
  TinyFile norms = tiny_llama({});
  TinyFile::Tensor& norm = norms.tensor("output_norm.weight");
  norm.type = gguf::kTensorF16;
  norm.data.resize(norm.data.size() / 2);
  CHECK(has(refusal(norms), "tensor output_norm.weight has type F16, expected F32"));
}

TEST_CASE("quantization is the type of most weight bytes") {
  CHECK(spec_of(tiny_llama({.type = gguf::kTensorF16})).quantization == "F16");
  const TinyShape small_down = {.type = gguf::kTensorQ8_0, .ffn_down_type = gguf::kTensorF32};
  CHECK(spec_of(tiny_llama(small_down)).quantization == "Q8_0");
  TinyShape large_down = small_down;
  large_down.n_ff = 320;
  CHECK(spec_of(tiny_llama(large_down)).quantization == "F32");
}

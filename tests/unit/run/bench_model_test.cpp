// Synthetic models: known bytes, whoever makes them; and models that load.
#include "run/bench_model.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "detrun/digest.h"
#include "detrun/error.h"
#include "detrun/model.h"
#include "detrun/model_file.h"
#include "detrun/tokenizer.h"
#include "tests/unit/run/scene.h"

namespace detrun {
namespace {

using test::Thrown;
using test::thrown_by;

/// Made by block_piece and float_piece of scripts/make_synthetic_model.py.
struct KnownBytes {
  QType type;
  std::uint64_t count;  ///< blocks or elements from index 8 of "blk.0.attn_v.weight"
  const char* sha256;
};
constexpr KnownBytes kKnownBytes[] = {
    {QType::kQ4_0, 5, "eafa546e3d91021d9618f8ad3f3f7a9b37a4429b0e49fe9cd2f3789c6d40932a"},
    {QType::kQ4_1, 5, "8ee1a43b78f4fef1f2159318d6b85bd3da89ac9c14b6ee8952c96c1663ee0623"},
    {QType::kQ5_0, 5, "250c17d74abffa2ab486215dec4418796bf8086e02d2a1c4036e0e35e7c1892b"},
    {QType::kQ5_1, 5, "6dbef4305554ccbeecb9f36ae4b05ecb018c010a10a47eb53e0720480ecdf604"},
    {QType::kQ8_0, 5, "638e4b51f8636193be81291d18013f1e26a051050c943e8cc177a164175f2eb3"},
    {QType::kQ4_K, 5, "284ac91cbab0cc48c40452ab6daffb424e75f26b973a17c4b162568651dca042"},
    {QType::kQ5_K, 5, "e16899c3b111b3807f2751c1133432235f7e3f9399cc26e039793675d28f8f40"},
    {QType::kQ6_K, 5, "94af3bdd354bf3ab8aef106304dcbab0674e3b010f6ca5fa372f185ef3af4f24"},
    {QType::kF32, 37, "11117f80d5b9bba7c2082fcb26b7a2e451b142a68b8e5ffbafc28de55f24ecd1"},
    {QType::kF16, 37, "e1f0cac7c682a7cbeaf9fa300e13131f71cea3f76dd4b4fb00564673a1bc4070"},
    {QType::kBF16, 37, "b04ef160d76ab29696d820076c00f806a4e1266cd294f09225099f1c5c7d19c4"},
};

std::vector<std::byte> filled(std::string_view name, QType type, std::uint64_t first,
                              std::uint64_t count) {
  std::vector<std::byte> bytes(count * qtype_info(type).block_bytes);
  fill_synthetic(name, type, first, count, bytes);
  return bytes;
}

std::string file_digest(const SyntheticModel& model) {
  return to_hex(sha256(ModelFile::open(model.path())->bytes()));
}

TEST_CASE("the generator makes the bytes that its twin in Python makes") {
  for (const KnownBytes& known : kKnownBytes) {
    CAPTURE(std::string(qtype_info(known.type).name));
    CHECK(to_hex(sha256(filled("blk.0.attn_v.weight", known.type, 8, known.count))) ==
          known.sha256);
  }
  CHECK(to_hex(sha256(filled("blk.0.attn_norm.weight", QType::kF32, 0, 64))) ==
        "3680ca038a5807add8a3d05ad87513c2ad751b7be15262f8f9e049fd509227f7");
}

TEST_CASE("a tensor's bytes do not depend on the pieces in which they are made") {
  for (const QType type : {QType::kF16, QType::kQ8_0, QType::kQ6_K}) {
    const std::vector<std::byte> whole = filled("a", type, 0, 40);
    std::vector<std::byte> joined = filled("a", type, 0, 8);
    const std::vector<std::byte> rest = filled("a", type, 8, 32);
    joined.insert(joined.end(), rest.begin(), rest.end());
    CHECK(whole == joined);
    CHECK(whole != filled("b", type, 0, 40));
  }
}

TEST_CASE("synthetic weights are finite and of a size that keeps a forward pass finite") {
  for (const KnownBytes& known : kKnownBytes) {
    CAPTURE(std::string(qtype_info(known.type).name));
    const QTypeInfo& info = qtype_info(known.type);
    const std::vector<std::byte> bytes = filled("output.weight", known.type, 0, 256);
    REQUIRE_FALSE(first_non_finite(known.type, bytes).has_value());
    std::vector<float> values(256 * info.block_elems);
    decode_row(known.type, bytes, values);
    double sum = 0;
    double squares = 0;
    for (const float value : values) {
      sum += value;
      squares += double{value} * value;
    }
    const auto n = static_cast<double>(values.size());
    CHECK(std::abs(sum / n) < 0.005);
    CHECK(squares / n > 0.005 * 0.005);
    CHECK(squares / n < 0.04 * 0.04);
  }
}

TEST_CASE("an image has the same bytes for every number of threads, those of the script's file") {
  const std::atomic<bool> cancel = false;
  Observer observer;
  for (const std::uint32_t threads : {1U, 3U}) {
    const SyntheticModel model("135m", "q4_0", threads, cancel, observer);
    CHECK(file_digest(model) == "736f71b6de44492e608c628d0e75b6f023a83010f90c7bae83e60367fbc8be33");
  }
}

TEST_CASE("an image whose matrices nobody makes has the rest of its bytes and takes no memory") {
  const std::atomic<bool> cancel = false;
  Observer observer;
  const SyntheticModel whole("135m", "q4_0", 2, cancel, observer);
  const SyntheticModel sparse("135m", "q4_0", 2, cancel, observer, SyntheticBytes::kNoMatrices);
  const auto all = ModelFile::open(whole.path());
  const auto some = ModelFile::open(sparse.path());
  REQUIRE(some->bytes().size() == all->bytes().size());
  std::size_t vectors = 0;
  for (const TensorInfo& tensor : all->tensors()) {
    if (tensor.n_rows() != 1) continue;
    ++vectors;
    const std::span<const std::byte> found = some->find_tensor(tensor.name)->data;
    CHECK(std::equal(found.begin(), found.end(), tensor.data.begin(), tensor.data.end()));
  }
  CHECK(vectors == 2 * 30 + 1);
  struct stat status {};
  REQUIRE(::stat(sparse.path().c_str(), &status) == 0);
  constexpr std::uint64_t kBlock = 512;
  CHECK(static_cast<std::uint64_t>(status.st_blocks) * kBlock < some->bytes().size() / 16);
}

TEST_CASE("an image is a model of the shape, with a vocabulary that takes any text") {
  const std::atomic<bool> cancel = false;
  Observer observer;
  const SyntheticModel model("135m", "q4_k_m", 2, cancel, observer);
  const auto file = ModelFile::open(model.path());
  const ModelSpec spec = read_model_spec(*file);
  CHECK(spec.n_embd == 576);
  CHECK(spec.n_layers == 30);
  CHECK(spec.n_heads == 9);
  CHECK(spec.n_kv_heads == 3);
  CHECK(spec.head_dim == 64);
  CHECK(spec.n_ff == 1536);
  CHECK(spec.n_vocab == 49152);
  CHECK(spec.tied_head);
  const auto tokenizer = Tokenizer::create(*file);
  const std::string text = "any text: \xc3\xa9 \xf0\x9f\x98\x80 42";
  CHECK(tokenizer->decode(tokenizer->encode(text, false)) == text);
}

TEST_CASE("a mixture gives the better type to some layers, and whole blocks to every row") {
  std::map<std::string, QType> type_of;
  for (const SyntheticTensor& tensor : synthetic_tensors("1.1b", "q4_k_m")) {
    type_of[tensor.name] = tensor.type;
  }
  CHECK(type_of.at("token_embd.weight") == QType::kQ4_K);
  CHECK(type_of.at("output.weight") == QType::kQ6_K);
  CHECK(type_of.at("blk.0.attn_q.weight") == QType::kQ4_K);
  const auto better = [&](const std::string& name) {
    int n = 0;
    for (int layer = 0; layer < 22; ++layer) {
      const QType type = type_of.at("blk." + std::to_string(layer) + "." + name);
      CHECK((type == QType::kQ4_K || type == QType::kQ6_K));
      n += type == QType::kQ6_K ? 1 : 0;
    }
    return n;
  };
  CHECK(better("attn_v.weight") == 10);
  CHECK(better("ffn_down.weight") == 10);
  CHECK(better("attn_k.weight") == 0);

  bool has_q5_0 = false;
  for (const SyntheticTensor& tensor : synthetic_tensors("135m", "q4_k_m")) {
    CHECK(tensor.row_elems % qtype_info(tensor.type).block_elems == 0);
    has_q5_0 = has_q5_0 || tensor.type == QType::kQ5_0;  // rows of 576
  }
  CHECK(has_q5_0);
}

TEST_CASE("unknown shapes and types are refused, naming the known ones") {
  const std::atomic<bool> cancel = false;
  Observer observer;
  const Thrown shape = thrown_by([&] { SyntheticModel("2b", "q8_0", 1, cancel, observer); });
  CHECK(shape.kind == ExitCode::kUsage);
  CHECK(shape.hint.find("135m") != std::string::npos);
  const Thrown type = thrown_by([&] { SyntheticModel("135m", "q9", 1, cancel, observer); });
  CHECK(type.kind == ExitCode::kUsage);
  CHECK(type.hint.find("q4_k_m") != std::string::npos);
}

}  // namespace
}  // namespace detrun

// Whole models under profile cublas, on the emulated device with an emulated cuBLASLt: passes,
// chunks, errors with their places. What a fake can show here and what it cannot is said in
// cublas_products_test.cpp.
#include "detrun/model.h"
#include "tests/unit/backend/cublas_support.h"
#include "tests/unit/model/run_tiny.h"

namespace {

using namespace detrun;
using namespace detrun::test;

constexpr std::uint32_t kContext = 40;
constexpr std::uint32_t kChunk = 16;

struct OnDevice {
  explicit OnDevice(TinyFile& content)
      : file(ModelFile::open(folder.write("m.gguf", content.bytes()), LoadMethod::kMap)),
        model(Model::load(*file, *backend)) {}
  Outcome run(std::uint32_t chunk, std::uint32_t n_tokens = kContext) const {
    const auto context = Context::create(*model, *backend, kContext, KvType::kF16, chunk);
    return feed(*context, model->spec(), random_tokens(n_tokens, model->spec().n_vocab), chunk);
  }
  TempFolder folder;
  std::unique_ptr<ModelFile> file;
  std::unique_ptr<Backend> backend = make_cuda_backend({});
  std::unique_ptr<Model> model;
};

constexpr std::uint32_t kTypes[] = {gguf::kTensorF32, gguf::kTensorF16, gguf::kTensorBF16};

}  // namespace

TEST_CASE("a plan gives a model the same bits again, other ones than the contract's, and back") {
  const Behaviour normal;
  for (const std::uint32_t type : kTypes) {
    TinyFile content = tiny_llama({.type = type});
    const OnDevice on(content);
    const Outcome portable = on.run(kChunk);
    const ProductPlan plan = on.backend->pin_products(kChunk);
    CHECK(plan.products.size() == 4);
    const Outcome pinned = on.run(kChunk);
    check_alive(pinned);
    CHECK(pinned.logits != portable.logits);
    CHECK(pinned.kv != portable.kv);
    const OnDevice again(content);
    again.backend->use_products(&plan);
    CHECK(again.run(kChunk) == pinned);
    again.backend->use_products(nullptr);
    CHECK(again.run(kChunk) == portable);
  }
}

TEST_CASE("rows are independent: chunks of two and more rows have no influence on any bit") {
  const Behaviour normal;
  TinyFile content = tiny_llama({.type = gguf::kTensorF16});
  const OnDevice on(content);
  on.backend->pin_products(kChunk);
  const Outcome expected = on.run(kChunk);
  for (const std::uint32_t chunk : {2U, 3U, 5U, 10U}) {
    CAPTURE(chunk);
    if (kContext % chunk != 1) CHECK(on.run(chunk) == expected);
  }
}

TEST_CASE("placing errors has no influence on any bit") {
  const Behaviour normal;
  for (const std::uint32_t type : kTypes) {
    TinyFile content = tiny_llama({.type = type});
    const OnDevice on(content);
    on.backend->pin_products(kChunk);
    const Outcome expected = on.run(kChunk);
    on.backend->place_errors(true);
    CHECK(on.run(kChunk) == expected);
    on.backend->place_errors(false);
  }
}

TEST_CASE("activations that the type cannot hold end the pass with layer, tensor and row") {
  const Behaviour normal;
  for (const std::uint32_t type : kTypes) {
    CAPTURE(type);
    const bool f16 = type == gguf::kTensorF16;
    TinyFile content = tiny_llama({.type = type});
    // A normed row has elements of more than 1.2: 8e4 overflows in F16, 3e38 in every type.
    const float factor = f16 ? 8.0e4F : 3.0e38F;
    auto& norm = content.tensor("blk.1.attn_norm.weight").data;
    for (std::size_t i = 0; i < 64; ++i) std::memcpy(norm.data() + 4 * i, &factor, 4);
    const OnDevice on(content);
    on.backend->pin_products(kChunk);
    const Refusal found = refusal_of([&] { on.run(kChunk); });
    CHECK(found.kind == ExitCode::kInternal);
    CHECK_MESSAGE(found.has("layer 1: matmul blk.1.attn_q.weight: activation row 0 of 16"),
                  found.text);
    CHECK(found.has("not finite"));
    CHECK(found.has("too large for F16") == f16);
    CHECK(found.has("too large for BF16") == (type == gguf::kTensorBF16));
    CHECK(found.has("--numerics portable") == (type != gguf::kTensorF32));
  }
}

TEST_CASE("a context has its memory counted with what the products take") {
  const Behaviour normal;
  emulation::EmulatedDevice small;
  small.memory_bytes = std::uint64_t{60} << 20U;
  emulation::set_devices({small});
  {
    TinyFile content = tiny_llama({.type = gguf::kTensorF16});
    const OnDevice on(content);
    on.run(kChunk);
    on.backend->pin_products(kChunk);
    on.run(kChunk);
    const auto other = on.backend->new_buffer((std::uint64_t{12} << 20U) / sizeof(float));
    const OnDevice second(content);
    second.backend->pin_products(kChunk);
    const Refusal found = refusal_of([&] { second.run(kChunk); });
    CHECK_MESSAGE(found.has("not enough memory: a context of 40 positions needs"), found.text);
  }
  emulation::set_devices({{}});
}

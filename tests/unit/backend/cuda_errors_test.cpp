// What the CUDA backend refuses, on the emulated device: devices that are not there or cannot
// compute, memory that does not suffice, values that are errors; and that it says so in the words
// of the CPU, with the place, although a device finds out late.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "detrun/backend.h"
#include "detrun/error.h"
#include "detrun/model.h"
#include "refusal.h"
#include "tests/unit/model/run_tiny.h"

namespace {

using namespace detrun;
using namespace detrun::test;
using emulation::EmulatedDevice;

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// Other devices as long as it lives.
class Devices {
 public:
  explicit Devices(const std::vector<EmulatedDevice>& devices) { emulation::set_devices(devices); }
  ~Devices() { emulation::set_devices({EmulatedDevice{}}); }
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;
};

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// A tiny model on a backend, one of its tensors changed before.
struct OnBackend {
  OnBackend(std::unique_ptr<Backend> with, TinyFile& content)
      : file(ModelFile::open(folder.write("m.gguf", content.bytes()), LoadMethod::kMap)),
        backend(std::move(with)),
        model(Model::load(*file, *backend)) {}
  TempFolder folder;
  std::unique_ptr<ModelFile> file;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Model> model;
};

/// What the forward pass of a changed model throws, on the device as on the CPU.
void check_same_refusal(TinyFile& content, KvType kv, std::string_view part) {
  std::vector<Refusal> refusals;
  const Ids tokens = random_tokens(7, 50);
  for (const std::uint32_t rows : {7U, 1U}) {
    for (const std::uint32_t logit_rows : {0U, 1U}) {
      CAPTURE(rows);
      CAPTURE(logit_rows);
      Refusal found[2];
      for (const bool on_device : {false, true}) {
        OnBackend on(on_device ? make_cuda_backend({}) : make_cpu_backend({1, "scalar"}), content);
        const auto context = Context::create(*on.model, *on.backend, 64, kv, 16);
        std::vector<float> logits(logit_rows * on.model->spec().n_vocab);
        found[on_device ? 1 : 0] = refusal_of(
            [&] { context->forward(std::span(tokens).first(rows), logit_rows, logits); });
        CHECK(context->position() == 0);
        CHECK(!on.backend->has_unplaced_error());
      }
      CHECK(found[1].text == found[0].text);
      CHECK(found[1].kind == ExitCode::kInternal);
      CHECK_MESSAGE(has(found[1].text, part), found[1].text);
    }
  }
}

/// The first values of a tensor of F32.
void set_values(TinyFile& content, const std::string& name, std::size_t n, float value) {
  std::string& data = content.tensor(name).data;
  for (std::size_t i = 0; i < n; ++i) {
    std::memcpy(data.data() + i * sizeof(value), &value, sizeof(value));
  }
}

}  // namespace

TEST_CASE("a device is found by index and by UUID, and what it is is recorded") {
  EmulatedDevice second;
  second.name = "the second";
  second.major = 8;
  second.minor = 6;
  const Devices devices({EmulatedDevice{}, second});
  CHECK(make_cuda_backend({})->info().device->index == 0);
  const BackendInfo by_index = make_cuda_backend({"1"})->info();
  CHECK(by_index.name == "cuda-emulated");
  CHECK(by_index.isa == "sm_86");
  CHECK(by_index.n_threads == 1);
  REQUIRE(by_index.device);
  CHECK(by_index.device->name == "the second");
  CHECK(by_index.device->uuid == "GPU-02020202-0202-0202-0202-020202020202");
  for (const char* uuid :
       {"GPU-02020202-0202-0202-0202-020202020202", "gpu-02020202-0202-0202-0202-020202020202"}) {
    CHECK(make_cuda_backend({uuid})->info().device->index == 1);
  }
  CHECK(cuda_support().usable);
  CHECK(cuda_support().text == "host emulation, sm_90, 4096 MiB");
}

TEST_CASE("buffers of a device are made there, whatever device another backend uses") {
  EmulatedDevice smaller;
  smaller.memory_bytes = 1024 * kMiB;
  const Devices devices({EmulatedDevice{}, smaller});
  const auto second = make_cuda_backend({"1"});
  const auto first = make_cuda_backend({"0"});
  const std::uint64_t free_of_first = first->memory().free;
  const auto buffer = second->new_buffer(kMiB);
  CHECK(first->memory().free == free_of_first);
  CHECK(second->memory().total == smaller.memory_bytes);
  CHECK(second->memory().free <= smaller.memory_bytes - kMiB * sizeof(float));
}

TEST_CASE("devices that are not there or cannot compute are refused with the reason") {
  const auto refused = [](const std::string& device) {
    const Refusal refusal = refusal_of([&] { make_cuda_backend({device}); });
    CHECK(refusal.kind == ExitCode::kUsage);
    CHECK(refusal_of([&] { require_cuda_device({device}); }).text == refusal.text);
    return refusal.text;
  };
  for (const char* wrong : {"1", "-1", "0x0", "GPU-0101", " 0"}) {
    CAPTURE(wrong);
    CHECK(has(refused(wrong), "there is no device '"));
    CHECK(has(refused(wrong), "0 GPU-01010101-0101-0101-0101-010101010101 (host emulation)"));
  }
  {
    const Devices none({});
    CHECK(has(refused(""), "there is no NVIDIA GPU"));
    CHECK(!cuda_support().usable);
    CHECK(has(cuda_support().text, "there is no NVIDIA GPU"));
  }
  EmulatedDevice old;
  old.major = 7;
  old.minor = 0;
  EmulatedDevice part;
  part.name = "NVIDIA A100-SXM4-40GB MIG 1g.5gb";
  const Devices devices({old, part});
  CHECK(has(refused("0"), "compute capability 7.0, 7.5 is needed"));
  CHECK(has(refused("1"), "MIG"));
  CHECK(has(refused("1"), "4096 MiB and 4 multiprocessors"));
}

TEST_CASE("a model larger than the free memory is refused before a weight is uploaded") {
  EmulatedDevice small;
  small.memory_bytes = 64 * kMiB;
  small.others_bytes = 64 * kMiB - 100000;
  const Devices devices({small});
  TinyFile content = tiny_llama({});
  const std::uint64_t before = emulation::allocated_bytes();
  const Refusal refusal = refusal_of([&] { OnBackend(make_cuda_backend({}), content); });
  CHECK(refusal.kind == ExitCode::kInternal);
  CHECK_MESSAGE(has(refusal.text, "the weights need 1 MiB, 1 MiB of 65 MiB are free on device 0"),
                refusal.text);
  CHECK(emulation::allocated_bytes() == before);
}

TEST_CASE("a context that the free memory does not hold is refused with both figures") {
  EmulatedDevice device;
  device.memory_bytes = 64 * kMiB;
  const Devices devices({device});
  TinyFile content = tiny_llama({});
  const OnBackend on(make_cuda_backend({}), content);
  const auto refused = [&](std::uint32_t n_ctx) {
    return refusal_of([&] { Context::create(*on.model, *on.backend, n_ctx, KvType::kF32, 64); });
  };
  const Refusal too_large = refused(1U << 20);
  CHECK(too_large.kind == ExitCode::kUsage);
  CHECK(has(too_large.text, "there are 65 MiB on device 0 (host emulation)"));
  const auto other = on.backend->new_buffer(50 * kMiB / sizeof(float));
  const Refusal not_free = refused(60000);
  CHECK(not_free.kind == ExitCode::kInternal);
  CHECK_MESSAGE(has(not_free.text, "not enough memory: a context of 60000 positions needs"),
                not_free.text);
  CHECK(has(not_free.text, "MiB are free on device 0"));
  CHECK(has(not_free.text, "--ctx"));
  CHECK(has(refusal_of([&] { on.backend->new_buffer(20 * kMiB); }).text, "out of memory on the"));
}

TEST_CASE("a weight that cannot be used is refused in the words of the CPU") {
  const auto device = make_cuda_backend({});
  const auto cpu = make_cpu_backend({1, "scalar"});
  std::vector<float> values(12, 1.0F);
  values[7] = std::numeric_limits<float>::infinity();
  const auto bytes = std::as_bytes(std::span<const float>(values));
  const WeightView views[] = {{"w", QType::kF32, 4, 3, bytes},
                              {"w", QType::kF32, 5, 3, bytes},
                              {"w", QType::kQ8_0, 45, 1, bytes},
                              {"w", QType::kQ8_1, 32, 1, bytes}};
  for (const WeightView& view : views) {
    const Refusal expected = refusal_of([&] { cpu->load_weight(view); });
    const Refusal found = refusal_of([&] { device->load_weight(view); });
    CHECK(found.kind == ExitCode::kUsage);
    CHECK(found.text == expected.text);
  }
}

TEST_CASE("activations that overflow end the pass with layer, operator and row, as on the CPU") {
  for (const std::uint32_t type : {gguf::kTensorF32, gguf::kTensorQ8_0}) {
    TinyFile content = tiny_llama({.type = type});
    // 3e38 times a normed row of more than 1.2 is infinite: input of the second layer's q.
    set_values(content, "blk.1.attn_norm.weight", 64, 3.0e38F);
    check_same_refusal(content, KvType::kF16,
                       "layer 1: matmul blk.1.attn_q.weight: activation row");
  }
}

TEST_CASE("a sum of squares that overflows ends the pass with layer and row, as on the CPU") {
  TinyFile content = tiny_llama({});
  set_values(content, "blk.0.ffn_down.weight", std::size_t{96} * 64, 1.0e30F);
  check_same_refusal(content, KvType::kF16, "layer 1: rmsnorm: the sum of squares of row 0 of");
  TinyFile last = tiny_llama({});
  set_values(last, "blk.1.ffn_down.weight", std::size_t{96} * 64, 1.0e30F);
  TinyFile& content_of_head = last;
  // Without logits nobody computes the head: only passes that want them fail.
  OnBackend on(make_cuda_backend({}), content_of_head);
  const auto context = Context::create(*on.model, *on.backend, 64, KvType::kF16, 16);
  const Ids tokens = random_tokens(3, 50);
  context->forward(tokens, 0, std::span<float>{});
  CHECK(context->position() == 3);
  std::vector<float> logits(on.model->spec().n_vocab);
  CHECK(has(refusal_of([&] { context->forward(tokens, 1, logits); }).text,
            "output head: rmsnorm: the sum of squares of row 0 of 1"));
}

TEST_CASE(
    "K and V that f16 cannot hold are refused with layer, position and remedy; f32 holds them") {
  TinyFile content = tiny_llama({});
  set_values(content, "blk.1.attn_v.weight", std::size_t{64} * 32, 40000.0F);
  check_same_refusal(content, KvType::kF16, "layer 1: kv_write: K or V of layer 1, position 0");
  OnBackend on(make_cuda_backend({}), content);
  const auto context = Context::create(*on.model, *on.backend, 64, KvType::kF32, 16);
  const Ids tokens = random_tokens(3, 50);
  std::vector<float> logits(on.model->spec().n_vocab);
  context->forward(tokens, 1, logits);
  CHECK(context->position() == 3);
}

TEST_CASE("while errors are placed every operator names its row, as the CPU does") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr std::uint32_t kWidth = 32, kRows = 3;
  const std::vector<float> ones(std::size_t{kWidth} * kRows, 1.0F);
  std::vector<float> bad = ones;
  bad[2 * kWidth + 3] = kInfinity;
  const std::vector<std::byte> q8_0(34 * 2);  // two rows of zeros
  const auto device = make_cuda_backend({});
  const auto cpu = make_cpu_backend({1, "scalar"});
  device->place_errors(true);
  const std::function<void(Backend&)> calls[] = {
      [&](Backend& backend) {
        const auto x = backend.new_buffer(bad.size());
        backend.upload(*x, bad);
        const auto y = backend.new_buffer(bad.size());
        const auto weight = backend.load_weight({"w", QType::kQ8_0, kWidth, 2, q8_0});
        const MatmulTask task{weight.get(), y.get()};
        backend.matmul({&task, 1}, *x, kRows);
      },
      [&](Backend& backend) {  // the first weight of floats is named
        const auto x = backend.new_buffer(bad.size());
        backend.upload(*x, bad);
        const auto y = backend.new_buffer(bad.size());
        const auto halves = std::as_bytes(std::span(ones).first(kWidth));
        const auto first = backend.load_weight({"first", QType::kF32, kWidth, 1, halves});
        const auto second = backend.load_weight({"second", QType::kF16, kWidth, 2, halves});
        const MatmulTask tasks[] = {{first.get(), y.get()}, {second.get(), y.get()}};
        backend.matmul(tasks, *x, kRows);
      },
      [&](Backend& backend) {
        const auto x = backend.new_buffer(bad.size());
        backend.upload(*x, bad);
        backend.rmsnorm(*x, *x, 1e-5F, kRows, kWidth, *x);
      },
      [&](Backend& backend) {
        const auto k = backend.new_buffer(bad.size());
        backend.upload(*k, ones);
        const auto v = backend.new_buffer(bad.size());
        backend.upload(*v, bad);
        const auto cache = backend.new_kv_cache({KvType::kF32, 4, 16, 2, kWidth / 2});
        backend.kv_write(*cache, 3, *k, *v, kRows, 9);
      }};
  for (const auto& call : calls) {
    const Refusal expected = refusal_of([&] { call(*cpu); });
    const Refusal found = refusal_of([&] { call(*device); });
    CHECK(found.kind == ExitCode::kInternal);
    CHECK(found.text == expected.text);
  }
}

TEST_CASE("a pass that failed leaves a context that computes as a fresh one") {
  TinyFile content = tiny_llama({});
  OnBackend on(make_cuda_backend({}), content);
  const Ids tokens = random_tokens(5, on.model->spec().n_vocab);
  const auto fresh = Context::create(*on.model, *on.backend, 64, KvType::kF16, 8);
  const Outcome expected = feed(*fresh, on.model->spec(), tokens, 5);
  const auto context = Context::create(*on.model, *on.backend, 64, KvType::kF16, 8);
  const auto bad = on.backend->new_buffer(64);
  on.backend->upload(*bad, std::vector<float>(64, std::numeric_limits<float>::infinity()));
  on.backend->rmsnorm(*bad, *bad, 1e-5F, 1, 64, *bad);
  CHECK(has(refusal_of([&] { on.backend->synchronize(); }).text, "not finite"));
  CHECK(on.backend->has_unplaced_error());
  on.backend->synchronize();
  CHECK(!on.backend->has_unplaced_error());
  CHECK(feed(*context, on.model->spec(), tokens, 5) == expected);
}

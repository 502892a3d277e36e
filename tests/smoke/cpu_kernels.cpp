// The reference side: an instruction set's table, row by row and head by head.
#include <cstring>

#include "backend/cpu_memory.h"
#include "backend/cpu_select.h"
#include "detrun/sampler.h"
#include "kernels/cpu/quantized_row.h"
#include "kernels/fp.h"
#include "kernels_under_test.h"

namespace detrun::smoke {

namespace {

using kernels::CpuOps;

class CpuKernels final : public Kernels {
 public:
  explicit CpuKernels(const CpuOps& ops) : ops_(ops) {}

  bool has_product(std::uint32_t gguf_id) const override {
    return find_matmul(ops_, gguf_id) != nullptr;
  }
  Floats product(const Matrix& weight, const Floats& x, std::uint64_t m, Form form) override;
  Floats embed(const Matrix& matrix, const std::vector<int>& ids) override;
  Floats embed_made_up(const Matrix& matrix, std::uint64_t /*key*/,
                       const std::vector<int>& ids) override {
    return embed(matrix, ids);
  }
  Quantized quantize(const Floats& x) override;
  Floats attention(const Attention& in, Form form) override;
  Floats rmsnorm(const Norm& in) override;
  Floats layernorm(const Norm& in) override;
  Floats rope(const Rope& in) override;
  std::vector<std::uint16_t> kv_write_f16(const Floats& x) override;
  Floats kv_write_f32(const Floats& x) override;
  std::vector<std::uint16_t> round_f16(const Floats& x, std::size_t padding) override;
  std::vector<std::uint16_t> round_bf16(const Floats& x, std::size_t padding) override;
  Floats round_f32(const Floats& x, std::size_t padding) override;
  Floats elementwise(Elementwise op, const Floats& x, const Floats& y, float factor) override;
  Floats function(kernels::Function f, const Floats& x) override;
  Choices choose(const Floats& logits, std::uint64_t n) override;

 private:
  CpuMemory pack(const Matrix& matrix) const;

  const CpuOps& ops_;
};

CpuMemory CpuKernels::pack(const Matrix& matrix) const {
  const kernels::MatmulOps& ops = *find_matmul(ops_, matrix.gguf_id);
  CpuMemory packed(ops.packed_bytes(matrix.k, matrix.n), "the smoke test");
  ops.pack(matrix.bytes.data(), matrix.k, matrix.n, 0, (matrix.n + ops.group - 1) / ops.group,
           packed.data());
  return packed;
}

Floats CpuKernels::product(const Matrix& weight, const Floats& x, std::uint64_t m, Form) {
  const kernels::MatmulOps& ops = *find_matmul(ops_, weight.gguf_id);
  const kernels::InputOps& input = ops_.inputs[static_cast<int>(ops.input)];
  const CpuMemory packed = pack(weight);
  const std::uint64_t row_bytes = input.row_bytes(weight.k);
  CpuMemory rows(m * row_bytes, "the smoke test");
  for (std::uint64_t r = 0; r < m; ++r) {
    if (!input.prepare(x.data() + r * weight.k, weight.k, rows.data() + r * row_bytes)) return {};
  }
  Floats y(m * weight.n);
  const kernels::MatmulArgs args{packed.data(), rows.data(), row_bytes, static_cast<unsigned>(m),
                                 weight.k,      weight.n,    y.data()};
  ops.matmul(&args, 0, (weight.n + ops.group - 1) / ops.group);
  return y;
}

Floats CpuKernels::embed(const Matrix& matrix, const std::vector<int>& ids) {
  const kernels::MatmulOps& ops = *find_matmul(ops_, matrix.gguf_id);
  const CpuMemory packed = pack(matrix);
  Floats out(ids.size() * matrix.k);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ops.decode_row(packed.data(), matrix.k, matrix.n, static_cast<std::uint64_t>(ids[i]),
                   out.data() + i * matrix.k);
  }
  return out;
}

Quantized CpuKernels::quantize(const Floats& x) {
  const std::uint64_t k = x.size();
  const kernels::InputOps& input = ops_.inputs[static_cast<int>(kernels::InputForm::kQuantized)];
  CpuMemory memory(input.row_bytes(k), "the smoke test");
  const bool finite = input.prepare(x.data(), k, memory.data());
  const kernels::QuantizedRow row = kernels::quantized_row(memory.data(), k);
  return {{row.q, row.q + k},
          {row.d, row.d + k / 32},
          {row.bx, row.bx + k / 32},
          {row.b16, row.b16 + k / 16},
          finite};
}

Floats CpuKernels::attention(const Attention& in, Form) {
  const std::size_t element = in.f16 ? sizeof(std::uint16_t) : sizeof(float);
  const std::size_t n_queries = in.n_visible.size();
  CpuMemory scratch(ops_.attention_scratch_floats(in.head_dim) * sizeof(float), "the smoke test");
  Floats out(n_queries * in.n_heads * in.head_dim);
  for (std::size_t i = 0; i < n_queries * in.n_heads; ++i) {
    const std::size_t query = i / in.n_heads;
    const std::size_t head = i % in.n_heads;
    const std::size_t kv_offset = head / (in.n_heads / in.n_kv_heads) * in.head_dim * element;
    const kernels::AttentionArgs args{
        .q = in.q.data() + i * in.head_dim,
        .k = in.k.data() + kv_offset,
        .v = in.v.data() + kv_offset,
        .stride = std::uint64_t{in.n_kv_heads} * in.head_dim,
        .head_dim = in.head_dim,
        .n_visible = in.n_visible[query],
        .first_visible = in.first_visible[query],
        .scale = in.scale,
        .softcap = in.softcap,
        .sink = in.sinks.empty() ? nullptr : in.sinks.data() + head,
        .scratch = scratch.as<float>(),
        .out = out.data() + i * in.head_dim,
    };
    (in.f16 ? ops_.attention_f16 : ops_.attention_f32)(&args);
  }
  return out;
}

Floats CpuKernels::rmsnorm(const Norm& in) {
  Floats y = in.x;
  for (std::size_t r = 0; r < in.n_rows; ++r) {
    float* row = y.data() + r * in.n;
    if (!ops_.rmsnorm(row, in.weight.data(), in.eps, in.n, row)) return {};
  }
  return y;
}

Floats CpuKernels::layernorm(const Norm& in) {
  Floats y = in.x;
  const float* bias = in.bias.empty() ? nullptr : in.bias.data();
  for (std::size_t r = 0; r < in.n_rows; ++r) {
    float* row = y.data() + r * in.n;
    if (!ops_.layernorm(row, in.weight.data(), bias, in.eps, in.n, row)) return {};
  }
  return y;
}

Floats CpuKernels::rope(const Rope& in) {
  Floats x = in.x;
  for (std::size_t r = 0; r < in.n_rows; ++r) {
    const std::size_t at = r * (in.rope_dim / 2);
    const kernels::RopeArgs args{x.data() + r * in.n_heads * in.head_dim,
                                 in.n_heads,
                                 in.head_dim,
                                 in.rope_dim,
                                 in.cos.data() + at,
                                 in.sin.data() + at};
    (in.pairs == Pairs::kHalves ? ops_.rope_halves : ops_.rope_adjacent)(&args);
  }
  return x;
}

std::vector<std::uint16_t> CpuKernels::kv_write_f16(const Floats& x) {
  std::vector<std::uint16_t> out(x.size());
  if (!ops_.kv_write_f16(x.data(), x.size(), out.data())) out.clear();
  return out;
}

Floats CpuKernels::kv_write_f32(const Floats& x) {
  Floats out(x.size());
  if (!ops_.kv_write_f32(x.data(), x.size(), out.data())) out.clear();
  return out;
}

std::vector<std::uint16_t> CpuKernels::round_f16(const Floats& x, std::size_t padding) {
  std::vector<std::uint16_t> out;
  for (const float value : x) out.push_back(kernels::f32_to_f16(value));
  out.resize(x.size() + padding);
  return out;
}

std::vector<std::uint16_t> CpuKernels::round_bf16(const Floats& x, std::size_t padding) {
  std::vector<std::uint16_t> out;
  for (const float value : x) out.push_back(kernels::f32_to_bf16(value));
  out.resize(x.size() + padding);
  return out;
}

Floats CpuKernels::round_f32(const Floats& x, std::size_t padding) {
  Floats out = x;
  out.resize(x.size() + padding);
  return out;
}

Floats CpuKernels::elementwise(Elementwise op, const Floats& x, const Floats& y, float factor) {
  Floats to = x;
  switch (op) {
    case Elementwise::kAdd:
      ops_.add(to.data(), y.data(), x.size());
      break;
    case Elementwise::kMul:
      ops_.mul(to.data(), y.data(), x.size());
      break;
    case Elementwise::kScale:
      ops_.scale(to.data(), factor, x.size());
      break;
    case Elementwise::kAddScaled:
      ops_.add_scaled(to.data(), y.data(), factor, x.size());
      break;
    case Elementwise::kSiluMul:
      ops_.silu_mul(to.data(), y.data(), x.size());
      break;
    case Elementwise::kSoftcap:
      ops_.softcap(to.data(), factor, x.size());
      break;
  }
  return to;
}

Floats CpuKernels::function(kernels::Function f, const Floats& x) {
  Floats y(x.size());
  ops_.functions[static_cast<int>(f)](x.data(), x.size(), y.data());
  return y;
}

Choices CpuKernels::choose(const Floats& logits, std::uint64_t n) {
  Choices all;
  for (std::size_t at = 0; at < logits.size(); at += n) {
    const Choice choice = choose_greedy(std::span(logits).subspan(at, n));
    all.ids.push_back(choice.token);
    all.largest.push_back(logits[at + static_cast<std::size_t>(choice.token)]);
    all.margins.push_back(kernels::f32_from_bits(choice.margin_bits));
    all.logprobs.push_back(kernels::f32_from_bits(choice.logprob_bits));
  }
  return all;
}

}  // namespace

std::unique_ptr<Kernels> make_cpu_kernels(const CpuOps& ops) {
  return std::make_unique<CpuKernels>(ops);
}

}  // namespace detrun::smoke

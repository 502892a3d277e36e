// Inputs follow the rule of fixtures/golden/README.md, with seeds of this file's own.
#include "cases.h"

#include <cmath>

#include "detrun/quant.h"
#include "golden/golden_inputs.h"
#include "kernels/fp.h"

namespace detrun::smoke {

namespace {

constexpr std::uint64_t kFirstSeed = 1 << 20;  // the golden cases have those from 1

class Cases {
 public:
  void add(std::string kernel, std::string shape, bool large,
           std::function<Bytes(Kernels&, std::uint64_t seed)> run) {
    const std::uint64_t seed = kFirstSeed + list_.size();
    list_.push_back(
        {std::move(kernel), std::move(shape), large,
         [run = std::move(run), seed](Kernels& kernels) { return run(kernels, seed); }});
  }
  std::vector<ShapeCase> take() { return std::move(list_); }

 private:
  std::vector<ShapeCase> list_;
};

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes;
  append(bytes, values);
  return bytes;
}

template <class... Numbers>
std::string times(Numbers... numbers) {
  std::string text;
  ((text += (text.empty() ? "" : " x ") + std::to_string(numbers)), ...);
  return text;
}

Matrix make_matrix(QType type, std::uint64_t seed, std::uint64_t n, std::uint64_t k) {
  const QTypeInfo& info = qtype_info(type);
  const char* kind = info.block_elems > 1 ? "random" : "edgy";
  return {static_cast<std::uint32_t>(type), n, k, golden::matrix(info, kind, seed, 0, n, k)};
}

/// Every type that the device knows.
std::vector<QType> device_types() {
  std::vector<QType> types;
  for (std::uint32_t id = 0; id < 64; ++id) {
    if (device_has_product(id)) types.push_back(static_cast<QType>(id));
  }
  return types;
}

void add_products(Cases& cases) {
  struct Shape {
    std::uint64_t m, n, k;
    bool large;
  };
  constexpr Shape kVectors[] = {{1, 33, 1024, false}, {2, 7, 256, false}, {1, 4099, 4096, true}};
  // More rows than the panels of a float weight hold at once, too.
  constexpr Shape kMatrices[] = {
      {5, 70, 512, false}, {67, 131, 256, false}, {130, 257, 2048, true}, {3, 8300, 256, true}};
  for (const QType type : device_types()) {
    const std::string name(qtype_info(type).name);
    const auto add = [&](const char* kernel, const Shape& s, Form form) {
      cases.add(std::string(kernel) + " " + name, times(s.m, s.n, s.k), s.large,
                [=](Kernels& kernels, std::uint64_t seed) {
                  const Floats x = golden::values("plain", seed, 1, s.m * s.k);
                  return bytes_of(kernels.product(make_matrix(type, seed, s.n, s.k), x, s.m, form));
                });
    };
    for (const Shape& s : kVectors) add("GEMV", s, Form::kVector);
    for (const Shape& s : kMatrices) add("GEMM", s, Form::kMatrix);
    cases.add("embedding " + name, times(9, 50, 512), false,
              [=](Kernels& kernels, std::uint64_t seed) {
                const Matrix matrix = make_matrix(type, seed, 50, 512);
                return bytes_of(kernels.embed(matrix, {0, 49, 7, 7, 31, 32, 33, 1, 48}));
              });
    if (!can_make_up(type)) continue;
    cases.add(
        "made-up weights " + name, times(9, 50, 512), false,
        [=](Kernels& kernels, std::uint64_t seed) {
          Matrix matrix = make_matrix(type, seed, 50, 512);  // of the right size
          make_up_blocks(type, seed, 0, matrix.bytes);
          return bytes_of(kernels.embed_made_up(matrix, seed, {0, 49, 7, 7, 31, 32, 33, 1, 48}));
        });
  }
}

struct AttentionShape {
  unsigned queries, heads, kv_heads, head_dim, positions, window;
  float softcap;
  bool sinks, large;
};

Attention make_attention(const AttentionShape& s, bool f16, std::uint64_t seed) {
  const std::size_t n_kv = std::size_t{s.positions} * s.kv_heads * s.head_dim;
  Attention in{};
  in.q = golden::values("plain", seed, 0, std::size_t{s.queries} * s.heads * s.head_dim);
  if (s.sinks) in.sinks = golden::values("plain", seed, 3, s.heads);
  for (const std::uint64_t tensor : {1, 2}) {
    const Floats wide = golden::values("plain", seed, tensor, n_kv);
    std::vector<std::uint16_t> half(n_kv);
    for (std::size_t i = 0; i < n_kv; ++i) half[i] = kernels::f32_to_f16(wide[i]);
    (tensor == 1 ? in.k : in.v) = f16 ? bytes_of(half) : bytes_of(wide);
  }
  in.f16 = f16;
  for (unsigned i = 0; i < s.queries; ++i) {
    const unsigned visible = s.positions - (s.queries - 1 - i);
    in.n_visible.push_back(visible);
    in.first_visible.push_back(s.window != 0 && visible > s.window ? visible - s.window : 0);
  }
  in.n_positions = s.positions;
  in.n_heads = s.heads;
  in.n_kv_heads = s.kv_heads;
  in.head_dim = s.head_dim;
  in.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(s.head_dim)));
  in.softcap = s.softcap;
  return in;
}

void add_attention(Cases& cases) {
  constexpr AttentionShape kShapes[] = {{1, 6, 3, 64, 130, 0, 0.0f, false, false},
                                        {3, 6, 3, 80, 200, 70, 30.0f, true, false},
                                        {5, 4, 4, 8, 66, 0, 0.0f, true, false},
                                        {1, 32, 8, 128, 4100, 0, 0.0f, false, true},
                                        {17, 8, 2, 256, 1000, 0, 50.0f, true, true}};
  for (const bool f16 : {true, false}) {
    for (const AttentionShape& s : kShapes) {
      for (const Form form : {Form::kVector, Form::kMatrix}) {
        const std::string kernel = std::string("attention ") +
                                   (form == Form::kVector ? "split " : "one pass ") +
                                   (f16 ? "f16" : "f32");
        cases.add(kernel, times(s.queries, s.heads, s.head_dim, s.positions), s.large,
                  [=](Kernels& kernels, std::uint64_t seed) {
                    return bytes_of(kernels.attention(make_attention(s, f16, seed), form));
                  });
      }
    }
  }
}

void add_rows(Cases& cases) {
  struct Shape {
    unsigned rows, n;
    bool large;
  };
  for (const Shape& s : {Shape{7, 576, false}, Shape{3, 33, false}, Shape{300, 4096, true}}) {
    const auto make = [s](std::uint64_t seed, bool bias) {
      return Norm{golden::values("plain", seed, 0, std::size_t{s.rows} * s.n),
                  golden::values("plain", seed, 1, s.n),
                  bias ? golden::values("plain", seed, 2, s.n) : Floats{},
                  1e-5f,
                  s.rows,
                  s.n};
    };
    cases.add("rmsnorm", times(s.rows, s.n), s.large, [=](Kernels& k, std::uint64_t seed) {
      return bytes_of(k.rmsnorm(make(seed, false)));
    });
    cases.add("layernorm", times(s.rows, s.n), s.large, [=](Kernels& k, std::uint64_t seed) {
      return bytes_of(k.layernorm(make(seed, s.rows != 3)));
    });
  }
  for (const Pairs pairs : {Pairs::kAdjacent, Pairs::kHalves}) {
    const char* kernel = pairs == Pairs::kAdjacent ? "rope adjacent" : "rope halves";
    for (const auto& [rows, heads, dim, large] :
         {std::tuple{5u, 3u, 72u, false}, std::tuple{300u, 32u, 128u, true}}) {
      cases.add(
          kernel, times(rows, heads, dim), large,
          [=, rows = rows, heads = heads, dim = dim](Kernels& k, std::uint64_t seed) {
            const unsigned rope_dim = dim - 8;
            const std::size_t n_angles = std::size_t{rows} * rope_dim / 2;
            return bytes_of(k.rope(
                {golden::values("plain", seed, 0, std::size_t{rows} * heads * dim),
                 golden::values("plain", seed, 1, n_angles),
                 golden::values("plain", seed, 2, n_angles), rows, heads, dim, rope_dim, pairs}));
          });
    }
  }
  for (const auto& [n, large] : {std::pair{2048u, false}, std::pair{1u << 20, true}}) {
    cases.add("quantize", times(n), large, [n = n](Kernels& k, std::uint64_t seed) {
      Bytes all;
      for (const char* kind : {"plain", "edgy", "tiny"}) {
        const Quantized q = k.quantize(golden::values(kind, seed, 0, n));
        append(all, q.quants);
        append(all, q.scales);
        append(all, q.sums);
        append(all, q.half_sums);
        all.push_back(static_cast<std::byte>(q.finite));
      }
      return all;
    });
    cases.add("kv_write f16", times(n), large, [n = n](Kernels& k, std::uint64_t seed) {
      return bytes_of(k.kv_write_f16(golden::values("plain", seed, 0, n)));
    });
    cases.add("kv_write f32", times(n), large, [n = n](Kernels& k, std::uint64_t seed) {
      return bytes_of(k.kv_write_f32(golden::values("edgy", seed, 0, n)));
    });
    cases.add("round", times(n), large, [n = n](Kernels& k, std::uint64_t seed) {
      Bytes all;
      append(all, k.round_f16(golden::values("plain", seed, 0, n), 77));
      append(all, k.round_bf16(golden::values("edgy", seed, 1, n), 77));
      append(all, k.round_f32(golden::values("edgy", seed, 2, n), 77));
      return all;
    });
  }
}

void add_elements(Cases& cases) {
  constexpr const char* kOps[] = {"add", "mul", "scale", "add_scaled", "silu_mul", "softcap"};
  constexpr const char* kFunctions[] = {"exp",     "log",  "tanh",      "erf",
                                        "sigmoid", "silu", "gelu_tanh", "gelu_erf"};
  for (const auto& [n, large] : {std::pair{1000u, false}, std::pair{1u << 22, true}}) {
    for (int op = 0; op < 6; ++op) {
      cases.add(kOps[op], times(n), large, [n = n, op](Kernels& k, std::uint64_t seed) {
        const Floats x = golden::values("edgy", seed, 0, n);
        const Floats y = golden::values("wide", seed, 1, n);
        return bytes_of(k.elementwise(static_cast<Elementwise>(op), x, y, op == 5 ? 30.0f : 1.7f));
      });
    }
    for (int f = 0; f < kernels::kFunctions; ++f) {
      // Any pattern where every NaN is told what it is, else what no infinity follows from.
      const char* kind = f < 4 ? "bits" : "wide";
      cases.add(kFunctions[f], times(n), large, [=, n = n](Kernels& k, std::uint64_t seed) {
        return bytes_of(
            k.function(static_cast<kernels::Function>(f), golden::values(kind, seed, 0, n)));
      });
    }
  }
  for (const auto& [rows, n, large] :
       {std::tuple{3u, 1025u, false}, std::tuple{4u, 151936u, true}}) {
    for (const char* kind : {"wide", "edgy"}) {
      cases.add("argmax, logprob", times(rows, n), large,
                [=, rows = rows, n = n](Kernels& k, std::uint64_t seed) {
                  const Choices all =
                      k.choose(golden::values(kind, seed, 0, std::size_t{rows} * n), n);
                  Bytes bytes = bytes_of(all.ids);
                  append(bytes, all.largest);
                  append(bytes, all.margins);
                  append(bytes, all.logprobs);
                  return bytes;
                });
    }
  }
}

}  // namespace

std::vector<ShapeCase> shape_cases() {
  Cases cases;
  add_products(cases);
  add_attention(cases);
  add_rows(cases);
  add_elements(cases);
  return cases.take();
}

}  // namespace detrun::smoke

// An independent Llama in binary64 for tests: plain loops, no order, no blocks, no tables. Shares
// no code with the program: neither its file reader nor its operators.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace detrun::test {

struct ReferenceShape {
  int dim = 0, hidden = 0, layers = 0, heads = 0, kv_heads = 0, head = 0, rope = 0, vocab = 0;
  double theta = 10000.0, eps = 1e-5;
  std::vector<float> factors;  ///< divisors of the frequencies, or empty
};

/// Weights by their GGUF names, rows end to end.
using ReferenceWeights = std::map<std::string, std::vector<float>>;

class ReferenceLlama {
 public:
  ReferenceLlama(ReferenceShape shape, ReferenceWeights weights)
      : s_(std::move(shape)), w_(std::move(weights)) {
    keys_.resize(static_cast<std::size_t>(s_.layers));
    values_.resize(static_cast<std::size_t>(s_.layers));
  }

  /// Logits after one more token.
  std::vector<double> forward(std::int32_t token) {
    const std::vector<float>& table = w_.at("token_embd.weight");
    Row x(table.begin() + std::int64_t{token} * s_.dim,
          table.begin() + std::int64_t{token + 1} * s_.dim);
    for (int i = 0; i < s_.layers; ++i) {
      const std::string layer = "blk." + std::to_string(i) + ".";
      add(x, attend(static_cast<std::size_t>(i), layer, norm(x, layer + "attn_norm.weight")));
      const Row n = norm(x, layer + "ffn_norm.weight");
      Row gate = product(layer + "ffn_gate.weight", n);
      const Row up = product(layer + "ffn_up.weight", n);
      for (std::size_t j = 0; j < gate.size(); ++j) {
        gate[j] = gate[j] / (1.0 + std::exp(-gate[j])) * up[j];
      }
      add(x, product(layer + "ffn_down.weight", gate));
    }
    ++position_;
    const bool tied = !w_.contains("output.weight");
    return product(tied ? "token_embd.weight" : "output.weight", norm(x, "output_norm.weight"));
  }

 private:
  using Row = std::vector<double>;

  static void add(Row& x, const Row& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }
  Row norm(const Row& x, const std::string& name) const {
    const std::vector<float>& weight = w_.at(name);
    double sum = 0;
    for (const double value : x) sum += value * value;
    const double scale = 1.0 / std::sqrt(sum / s_.dim + s_.eps);
    Row y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * scale * weight.at(i);
    return y;
  }
  Row product(const std::string& name, const Row& x) const {
    const std::vector<float>& weight = w_.at(name);
    Row y(weight.size() / x.size());
    for (std::size_t row = 0; row < y.size(); ++row) {
      for (std::size_t i = 0; i < x.size(); ++i) y[row] += x[i] * weight[row * x.size() + i];
    }
    return y;
  }
  void rotate(Row& x) const {
    for (std::size_t head = 0; head < x.size(); head += static_cast<std::size_t>(s_.head)) {
      for (int pair = 0; pair < s_.rope / 2; ++pair) {
        double frequency = std::pow(s_.theta, -2.0 * pair / s_.rope);
        if (!s_.factors.empty()) frequency /= s_.factors.at(static_cast<std::size_t>(pair));
        const double c = std::cos(position_ * frequency), s = std::sin(position_ * frequency);
        double& a = x[head + static_cast<std::size_t>(2 * pair)];
        double& b = x[head + static_cast<std::size_t>(2 * pair) + 1];
        const double turned = a * c - b * s;
        b = a * s + b * c;
        a = turned;
      }
    }
  }
  Row attend(std::size_t index, const std::string& layer, const Row& x) {
    Row q = product(layer + "attn_q.weight", x);
    Row k = product(layer + "attn_k.weight", x);
    rotate(q);
    rotate(k);
    std::vector<Row>& keys = keys_[index];
    std::vector<Row>& values = values_[index];
    keys.push_back(k);
    values.push_back(product(layer + "attn_v.weight", x));
    Row out(q.size());
    for (int h = 0; h < s_.heads; ++h) {
      const int kv = h / (s_.heads / s_.kv_heads);
      Row p(keys.size());
      double largest = -HUGE_VAL, sum = 0;
      for (std::size_t j = 0; j < keys.size(); ++j) {
        for (int d = 0; d < s_.head; ++d) p[j] += q[at(h, d)] * keys[j][at(kv, d)];
        p[j] /= std::sqrt(static_cast<double>(s_.head));
        largest = std::max(largest, p[j]);
      }
      for (double& value : p) {
        value = std::exp(value - largest);
        sum += value;
      }
      for (std::size_t j = 0; j < keys.size(); ++j) {
        for (int d = 0; d < s_.head; ++d) out[at(h, d)] += p[j] / sum * values[j][at(kv, d)];
      }
    }
    return product(layer + "attn_output.weight", out);
  }
  std::size_t at(int head, int d) const {
    return static_cast<std::size_t>(head) * static_cast<std::size_t>(s_.head) +
           static_cast<std::size_t>(d);
  }

  ReferenceShape s_;
  ReferenceWeights w_;
  int position_ = 0;
  std::vector<std::vector<Row>> keys_, values_;  // [layer][position]
};

/// The published stories260K.bin as its author released it (layout of llama2.c, version 0): the
/// tensors of all layers lie together, the head is the embedding.
inline ReferenceLlama read_stories260k(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::int32_t header[7] = {};
  file.read(reinterpret_cast<char*>(header), sizeof header);
  if (!file || header[0] != 64 || header[5] != 512) throw std::runtime_error("not stories260K.bin");
  ReferenceShape s;
  s.dim = header[0], s.hidden = header[1], s.layers = header[2], s.heads = header[3];
  s.kv_heads = header[4], s.vocab = header[5];
  s.head = s.rope = s.dim / s.heads;
  ReferenceWeights weights;
  const auto take = [&](const std::string& name, std::int64_t n) {
    std::vector<float>& values = weights[name];
    values.resize(static_cast<std::size_t>(n));
    file.read(reinterpret_cast<char*>(values.data()), n * 4);
    if (!file) throw std::runtime_error("stories260K.bin is cut short");
  };
  const auto take_layers = [&](const std::string& name, std::int64_t n) {
    for (int i = 0; i < s.layers; ++i) take("blk." + std::to_string(i) + "." + name, n);
  };
  const std::int64_t kv_dim = std::int64_t{s.kv_heads} * s.head;
  take("token_embd.weight", std::int64_t{s.vocab} * s.dim);
  take_layers("attn_norm.weight", s.dim);
  take_layers("attn_q.weight", std::int64_t{s.dim} * s.dim);
  take_layers("attn_k.weight", s.dim * kv_dim);
  take_layers("attn_v.weight", s.dim * kv_dim);
  take_layers("attn_output.weight", std::int64_t{s.dim} * s.dim);
  take_layers("ffn_norm.weight", s.dim);
  take_layers("ffn_gate.weight", std::int64_t{s.dim} * s.hidden);
  take_layers("ffn_down.weight", std::int64_t{s.dim} * s.hidden);
  take_layers("ffn_up.weight", std::int64_t{s.dim} * s.hidden);
  take("output_norm.weight", s.dim);
  return {s, weights};
}

}  // namespace detrun::test
